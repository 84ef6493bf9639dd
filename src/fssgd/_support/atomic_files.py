"""Files that are either whole or not there, and how to tell beforehand what cannot be written."""

from __future__ import annotations

import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that somebody has open
    fcntl = None  # type: ignore[assignment]

PREFIX = ".fssgd-"  # of temporary files, whose names are of one length, however long that of the file
_unfinished: set[str] = set()


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], Any]) -> None:
    """Call ``write`` on a temporary file beside ``path``, then put it in its place.

    A link stays one: the file that it leads to is replaced. That file keeps its mode, and its owner where this process
    may give files away. A pipe or a device is written to as it is.

    Raises
    ------
    OSError
        If the file cannot be written; ``path`` is what it names.
    """
    given = Path(path).expanduser()
    there = check_writable(given)
    if there is not None and not stat.S_ISREG(there.st_mode):  # replaced, /dev/null would be a device no more
        with io.BufferedWriter(_File(str(given), str(given))) as handle:
            write(handle)
        return
    target = os.path.realpath(given)
    with _temporary_file(target, str(given), 0o666 if there is None else 0o600) as (temporary, descriptor):
        with io.BufferedWriter(_File(descriptor, str(given))) as handle:
            write(handle)
            handle.flush()
            os.fsync(descriptor)
        if there is not None:
            _own_alike(temporary, there)
        with _naming(str(given)):
            os.replace(temporary, target)


def check_writable(path: Path) -> os.stat_result | None:
    """Return what the system knows of the file that ``path`` leads to, None if there is none yet.

    Raises
    ------
    OSError
        If it can be told already that it cannot be written.
    """
    if not path.name or path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder, not a file to write: give it a name.")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} to write {path.name} in.")
    try:
        there = os.stat(path)
    except FileNotFoundError:
        there = None
    special = there is not None and not stat.S_ISREG(there.st_mode)
    if not (special or os.access(folder, os.W_OK | os.X_OK)):
        raise PermissionError(f"{path.name} cannot be written in {folder}: this user may not write there.")
    return there


def identity(file: str | os.PathLike[str] | int) -> tuple[int, int] | str | None:
    """Return what names that lead to one file share, by links of either kind too, and if it is not there yet.

    None for a pipe or a device, which nothing is lost of when it is written to.
    """
    try:
        there = os.stat(file)
    except OSError:
        return os.path.realpath(file)  # type: ignore[arg-type]  # a descriptor is open
    return (there.st_dev, there.st_ino) if stat.S_ISREG(there.st_mode) else None


def remove_unfinished() -> None:
    """Remove the temporary files of this process, which is about to end without unwinding."""
    for temporary in list(_unfinished):
        with suppress(OSError):
            os.unlink(temporary)


class _File(io.FileIO):
    """A file whose errors name ``path``, whatever it was opened by."""

    def __init__(self, file: str | int, path: str) -> None:
        super().__init__(file, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        with _naming(self._path):
            return super().write(data)


@contextmanager
def _temporary_file(target: str, path: str, mode: int) -> Iterator[tuple[str, int]]:
    """Make a file beside ``target``, locked while this process lives, that is gone afterwards if it was not moved."""
    folder, name = os.path.split(target)
    start = f"{PREFIX}{zlib.crc32(os.fsencode(name)):08x}-"
    _remove_abandoned(folder, start)
    temporary, lock = os.path.join(folder, start + os.urandom(8).hex()), None
    _unfinished.add(temporary)
    try:
        with _naming(path):
            descriptor = _create_locked(temporary, mode)
        lock = None if fcntl is None else os.dup(descriptor)
        yield temporary, descriptor
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        _unfinished.discard(temporary)
        if lock is not None:
            os.close(lock)


def _create_locked(path: str, mode: int) -> int:
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        if fcntl is None:
            return descriptor
        with suppress(OSError):  # of a file system without locks, where nothing is taken for abandoned either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # another process took it for abandoned, before it was locked


def _remove_abandoned(folder: str, start: str) -> None:
    """Remove what killed writers of the same file left: nobody holds a lock on it."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(start):
                with suppress(OSError):
                    _remove_unlocked(os.path.join(folder, name))


def _remove_unlocked(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(descriptor)


def _own_alike(path: str, there: os.stat_result) -> None:
    """Give a file the mode of another, and its owner where that is allowed."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, there.st_uid, there.st_gid)
    os.chmod(path, stat.S_IMODE(there.st_mode))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from error
