"""Which files a command may write: never one that it reads, and each of its own once; it says so before any work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fssgd import LinearRegressorGD, Moments

pa = pytest.importorskip("pyarrow")
pytest.importorskip("typer.testing")
pq = pytest.importorskip("pyarrow.parquet")

from test_cli import COMMAND, command, refused  # noqa: E402

ROWS = "x,y\n1,3\n2,5\n4,9\n"
FIT = ("-t", "y")
posix = pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The same rows as one file and as two in a folder, with a model of them; and nothing of that is written over."""
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)
    Path("parts").mkdir()
    for part in ("a", "b"):
        Path(f"parts/{part}.csv").write_text(ROWS)
    Moments.from_table("rows.csv", target="y").save("moments.npz")
    LinearRegressorGD().fit_moments(Moments.load("moments.npz")).save("model.json")
    before = {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}
    yield tmp_path
    for path, content in before.items():
        assert path.read_bytes() == content, path


def linked(kind, name, target):
    if kind == "symbolic":
        Path(name).symlink_to(target)
    elif kind == "hard":
        os.link(target, name)
    elif kind == "twice":
        Path("between").symlink_to(target)
        Path(name).symlink_to("between")


@pytest.mark.parametrize("option", ["--save", "--checkpoint"])
@pytest.mark.parametrize(
    ("data", "output"),
    [
        ("rows.csv", "rows.csv"),
        ("rows.csv", "./parts/../rows.csv"),
        ("parts", "parts/b.csv"),
        ("parts/*.csv", "parts/a.csv"),
        ("part*", "parts/a.csv"),
    ],
)
def test_fit_does_not_write_over_its_data(option, data, output):
    if data == "part*":  # a pattern that the shell has made two files of
        message = refused("fit", "parts/a.csv", "parts/b.csv", *FIT, option, output)
    else:
        message = refused("fit", data, *FIT, option, output)
    assert f"{option} {os.path.normpath(output) if '..' not in output else 'parts/../rows.csv'} would be" in message
    assert message.endswith(f"{Path(output).name}, which is read: name another file.")


@posix
@pytest.mark.parametrize("kind", ["symbolic", "hard", "twice"])
def test_fit_does_not_write_over_its_data_through_a_link(kind):
    linked(kind, "link.csv", "rows.csv")
    for arguments in (
        ("fit", "rows.csv", *FIT, "--save", "link.csv"),
        ("fit", "rows.csv", *FIT, "--checkpoint", "link.csv"),
        ("fit", "link.csv", *FIT, "--save", "rows.csv"),
        ("predict", "model.json", "rows.csv", "--out", "link.csv"),
        ("predict", "model.json", "link.csv", "--out", "rows.csv"),
    ):
        assert ", which is read: name another file." in refused(*arguments)


def test_predict_writes_over_neither_data_nor_model():
    assert refused("predict", "model.json", "rows.csv", "--out", "rows.csv").startswith(
        "Error: --out rows.csv would be written over "
    )
    assert "parts/b.csv, which is read" in refused("predict", "model.json", "parts", "--out", "parts/b.csv")
    os.link("model.json", "model.csv")
    assert refused("predict", "model.csv", "rows.csv", "--out", "model.csv") == (
        "Error: --out model.csv would be written over model.csv, which is read: name another file."
    )
    assert "over model.json, which is read" in refused("predict", "model.json", "rows.csv", "--out", "model.csv")


@pytest.mark.parametrize("there", [True, False])
def test_two_outputs_are_two_files(there):
    if there:
        Path("state.npz").write_text("")
    message = refused("fit", "rows.csv", *FIT, "--save", "state.npz", "--checkpoint", "./state.npz")
    assert message == (
        "Error: --checkpoint state.npz and --save state.npz are the same file: name another for one of them."
    )
    assert Path("state.npz").exists() == there


@posix
def test_two_links_to_a_file_that_is_not_there_yet():
    for name in ("one", "two"):
        Path(name).symlink_to("later")
    assert "are the same file" in refused("fit", "rows.csv", *FIT, "--save", "one", "--checkpoint", "two")


@posix
@pytest.mark.parametrize(("source", "how"), [("rows.csv", ">> rows.csv"), ("- < rows.csv", "> rows.csv")])
@pytest.mark.slow
def test_redirections_of_the_shell_are_outputs_and_data(source, how):
    """With >, the shell has emptied the file before the command begins, which at least says why there are no rows."""
    Path("copy.csv").write_text(ROWS)
    line = f"{sys.executable} -m fssgd predict model.json {source} {how}".replace("rows.csv", "copy.csv")
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    name = "standard input" if "<" in source else str(Path("copy.csv").absolute())
    said = f"Error: standard output would be written over {name}, which is read: name another file.\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert Path("copy.csv").read_text() == (ROWS if ">>" in how else "")


@posix
@pytest.mark.slow
def test_a_file_on_standard_input_is_read():
    with open("rows.csv") as rows:
        arguments = [*COMMAND, "predict", "model.json", "-", "--out", "rows.csv"]
        done = subprocess.run(arguments, stdin=rows, capture_output=True, text=True)
    said = "Error: --out rows.csv would be written over standard input, which is read: name another file.\n"
    assert (done.returncode, done.stderr) == (1, said)


@posix
@pytest.mark.slow
def test_standard_output_that_is_closed():
    line = f"{sys.executable} -m fssgd predict model.json rows.csv >&-"
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    said = "Error: There is no standard output to write to: name a file by --out.\n"
    assert (done.returncode, done.stderr) == (1, said)


@posix
@pytest.mark.slow
def test_devices_may_be_written_to():
    command("fit", "rows.csv", *FIT, "--save", os.devnull)
    done = subprocess.run(
        [*COMMAND, "fit", "-", *FIT, "--save", "/dev/stderr"], input=ROWS, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert '"format": "fssgd.LinearRegressorGD"' in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "rows.csv", *FIT, "--save", "parts"), "'parts' is a folder, not a file to write: give it a name."),
        (("fit", "rows.csv", *FIT, "--checkpoint", "parts"), "'parts' is a folder, not a file to write"),
        (("fit", "rows.csv", *FIT, "--checkpoint", "no/s.npz"), "There is no folder "),
        (("predict", "model.json", "rows.csv", "--out", "parts"), "'parts' is a folder, not a file to write"),
        (("fit", "rows.csv", *FIT, "--save", "a" * 256), "aaa: File name too long."),
        (("fit", "rows.csv", *FIT, "--save", "/dev/full"), "/dev/full: No space left on device."),
    ],
)
def test_where_nothing_can_be_written(arguments, message):
    assert message in refused(*arguments)


@pytest.mark.parametrize("name", ["m" * 250 + ".json", "model.json"])
def test_a_file_that_is_not_read_is_replaced(name):
    Path("other").mkdir()
    other = Path("other") / name
    other.write_text("before")
    command("fit", "parts", *FIT, "--save", other, "--checkpoint", "other/state.npz")
    assert LinearRegressorGD.load(other).coef_.round(9) == [2.0]
    assert sorted(os.listdir("other")) == sorted([name, "state.npz"])


@pytest.mark.parametrize("arguments", [("demo", "--quick"), ("bench", "--sizes", "10,100", "--backends", "loop")])
def test_an_output_that_cannot_be_written_is_refused_before_the_measurement(arguments, monkeypatch):
    """By a name of theirs that is a folder."""
    monkeypatch.setattr("time.perf_counter", lambda: pytest.fail("something is being timed"))
    taken = Path("results") / ("demo.json" if arguments[0] == "demo" else "bench.png")
    taken.mkdir(parents=True)
    assert f"'{taken}' is a folder, not a file to write: give it a name." in refused(*arguments, "--out", "results")


def test_a_checkpoint_is_not_written_over_the_data():
    os.link("rows.csv", "hard.npz")
    for name in ("rows.csv", "./parts/../rows.csv", "hard.npz"):
        with pytest.raises(ValueError, match=rf"checkpoint='{name}' is one of the files to read: choose another name"):
            Moments.from_table("rows.csv", target="y", checkpoint=name)
    with pytest.raises(IsADirectoryError, match=r"'parts' is a folder, not a file to write"):
        Moments.from_table("rows.csv", target="y", checkpoint="parts")
