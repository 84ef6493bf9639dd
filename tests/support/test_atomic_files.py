"""Files that are replaced: wholly or not at all, where their links lead, as they were; and nothing is left behind."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fssgd._support.atomic_files import PREFIX, write_atomically

fcntl = pytest.importorskip("fcntl", reason="links, modes and locks as POSIX has them")
resource = pytest.importorskip("resource")

WRITER = """
import os, signal, sys
from fssgd._support.atomic_files import write_atomically

def write(handle):
    handle.write(b"half")
    handle.flush()
    print("writing", flush=True)
    sys.stdin.read()

write_atomically(sys.argv[1], write)
"""
IN_A_CLOSED_FOLDER = """
import os, sys
from fssgd._support.atomic_files import write_atomically

if os.geteuid() == 0:  # who may write in any
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for name in sys.argv[1:]:
    try:
        write_atomically(name, lambda handle: handle.write(b"new"))
    except OSError as error:
        print(type(error).__name__, error)
"""


def put(path, content=b"new"):
    write_atomically(path, lambda handle: handle.write(content))


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def temporaries(folder):
    return [name for name in os.listdir(folder) if name.startswith(PREFIX)]


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_a_new_file_follows_the_umask(tmp_path, umask):
    put(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o640


@pytest.mark.parametrize("kept", [0o600, 0o666, 0o444, 0o640])
def test_a_file_keeps_its_mode(tmp_path, umask, kept):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(kept)
    put(path)
    assert (path.read_bytes(), mode(path)) == (b"new", kept)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    put(path)
    there = path.stat()
    assert (there.st_uid, there.st_gid) == (12345, 54321)


@pytest.mark.parametrize("relative", [True, False])
def test_a_link_stays_one(tmp_path, relative):
    """And one that leads to it by another; the file is replaced in its own folder, not in that of the link."""
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link.symlink_to("there/file" if relative else target)
    (tmp_path / "again").symlink_to(link)
    before = target.stat().st_ino
    put(tmp_path / "again")
    assert (tmp_path / "again").is_symlink()
    assert link.is_symlink()
    assert (target.read_bytes(), mode(target)) == (b"new", 0o600)
    assert target.stat().st_ino != before  # replaced, not written over
    assert sorted(os.listdir(tmp_path)) == ["again", "link", "there"]


def test_a_link_to_a_file_that_is_not_there_makes_it(tmp_path):
    (tmp_path / "link").symlink_to("later")
    put(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "later").read_bytes() == b"new"


def test_a_link_to_itself(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match=r"Too many levels of symbolic links: .*link"):
        put(tmp_path / "link")
    assert os.listdir(tmp_path) == ["link"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        put(pipe, b"through")
        assert reader.communicate(timeout=60)[0] == b"through"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to_and_stays_one():
    put(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize("size", [1, 10**6])
def test_a_full_device_is_named(size):
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        put("/dev/full", b"0" * size)


@pytest.mark.parametrize("room", [0, 300])
@pytest.mark.parametrize("size", [1000, 10**6])
def test_a_full_disk_leaves_what_was_there(tmp_path, room, size):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(OSError, match=rf"File too large: '{path}'"):
            put(path, b"0" * size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127 + "a"])
def test_names_as_long_as_the_system_allows(tmp_path, name):
    for content in (b"one", b"two"):
        put(tmp_path / name, content)
        assert (tmp_path / name).read_bytes() == content
    assert os.listdir(tmp_path) == [name]
    with pytest.raises(OSError, match=r"File name too long: .*aa'"):
        put(tmp_path / f"{name}a")


@pytest.mark.parametrize("folder", [".", "", "inner", "inner/"])
def test_a_folder_is_no_file(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    with pytest.raises(IsADirectoryError, match=r"'(inner|\.)' is a folder, not a file to write: give it a name\."):
        put(folder)


def test_a_folder_that_is_not_there(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(FileNotFoundError, match=rf"There is no folder {folder} to write model\.json in"):
            put(folder / "model.json")


def test_a_folder_that_may_not_be_written_in():
    with tempfile.TemporaryDirectory() as name:  # not tmp_path, which others may not look into
        folder = Path(name) / "closed"
        folder.mkdir()
        (folder / "there").write_text("old")
        os.chmod(folder, 0o555)
        os.chmod(name, 0o755)
        command = [sys.executable, "-c", IN_A_CLOSED_FOLDER, folder / "new", folder / "there"]
        done = subprocess.run(command, capture_output=True, text=True)
        for line, written in zip(done.stdout.splitlines(), ("new", "there"), strict=True):
            assert line == f"PermissionError {written} cannot be written in {folder}: this user may not write there."
        assert done.stderr == ""
        assert os.listdir(folder) == ["there"]
        assert (folder / "there").read_text() == "old"
        folder.chmod(0o755)


def test_an_error_while_writing_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match=r"^the data are gone$"):  # of what is read, and so not of this file
        write_atomically(path, lambda handle: (_ for _ in ()).throw(OSError("the data are gone")))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def writer(path):
    """Start a process that is in the middle of writing ``path``."""
    started = subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout.readline() == "writing\n"
    return started


def test_what_a_killed_writer_left_is_removed_and_not_what_a_living_one_has(tmp_path):
    path = tmp_path / "file"
    with writer(path) as killed, writer(path) as other, writer(tmp_path / "another") as elsewhere:
        assert len(temporaries(tmp_path)) == 3
        for one in (killed, elsewhere):
            one.send_signal(signal.SIGKILL)
            one.wait()
        put(path)
        assert len(temporaries(tmp_path)) == 2  # of the living one, and that of another file
        assert other.communicate("", timeout=60) == ("", None)
    assert path.read_bytes() == b"half"  # it was the last to end
    put(tmp_path / "another")
    assert sorted(os.listdir(tmp_path)) == ["another", "file"]


def test_files_that_only_look_abandoned_are_left(tmp_path):
    """A folder, and a link, whose target is nobody's business."""
    put(tmp_path / "file")
    with writer(tmp_path / "file") as killed:
        (name,) = temporaries(tmp_path)
        killed.kill()
    start = name.rpartition("-")[0]
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / f"{start}-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{start}-folder").mkdir()
    put(tmp_path / "file")
    assert sorted(temporaries(tmp_path)) == sorted([f"{start}-link", f"{start}-folder"])
    assert (tmp_path / "elsewhere").read_text() == "kept"


def test_many_writers_at_once(tmp_path):
    """None takes away what another is about to move into place."""
    code = (
        "import sys\nfrom fssgd._support.atomic_files import write_atomically\n"
        "for _ in range(200):\n    write_atomically(sys.argv[1], lambda handle: handle.write(sys.argv[2].encode()))"
    )
    contents = [letter * 20_000 for letter in "abc"]
    path = tmp_path / "file"
    writers = [subprocess.Popen([sys.executable, "-c", code, path, content]) for content in contents]
    while any(one.poll() is None for one in writers):
        assert not path.exists() or path.read_text() in contents
        time.sleep(0.01)
    assert [one.returncode for one in writers] == [0, 0, 0]
    assert os.listdir(tmp_path) == ["file"]
