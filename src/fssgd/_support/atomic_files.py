"""Files that are either written completely or not at all, and a check beforehand whether they can be written."""

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

PREFIX = ".fssgd-"  # of temporary files; the rest of their names has a fixed length, as that of a file has a limit
_unfinished: set[str] = set()


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], Any]) -> None:
    """Call ``write`` on a temporary file beside ``path``, then move that to ``path``.

    If ``path`` is a link, the file that it leads to is replaced. The new file has the mode of the old one, and its
    owner if this process may change owners. A pipe or a device is written to directly.

    Raises
    ------
    OSError
        If the file cannot be written; the message names ``path``, and not the temporary file.
    """
    given = Path(path).expanduser()
    existing = check_writable(given)
    if existing is not None and not stat.S_ISREG(existing.st_mode):  # replaced, /dev/null would become a file
        with io.BufferedWriter(_File(str(given), str(given))) as handle:
            write(handle)
        return
    target = os.path.realpath(given)
    with _temporary_file(target, str(given), 0o666 if existing is None else 0o600) as (temporary, descriptor):
        with io.BufferedWriter(_File(descriptor, str(given))) as handle:
            write(handle)
            handle.flush()
            os.fsync(descriptor)
        if existing is not None:
            _copy_mode_and_owner(temporary, existing)
        with _naming(str(given)):
            os.replace(temporary, target)


def check_writable(path: Path) -> os.stat_result | None:
    """Return the status of the file that ``path`` leads to, or None if there is no file yet.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    if not path.name or path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder, not a file to write: give it a name.")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} to write {path.name} in.")
    try:
        existing = os.stat(path)
    except FileNotFoundError:
        existing = None
    special = existing is not None and not stat.S_ISREG(existing.st_mode)
    if not (special or os.access(folder, os.W_OK | os.X_OK)):
        raise PermissionError(f"{path.name} cannot be written in {folder}: this user may not write there.")
    return existing


def identity(file: str | os.PathLike[str] | int) -> tuple[int, int] | str | None:
    """Return a value that is equal for two names of the same file, by hard or symbolic links too.

    Returns the path of a file that does not exist yet, and None for a pipe or a device, which are not overwritten.
    """
    try:
        existing = os.stat(file)
    except OSError:
        return os.path.realpath(file)  # type: ignore[arg-type]  # a descriptor is open
    return (existing.st_dev, existing.st_ino) if stat.S_ISREG(existing.st_mode) else None


def remove_unfinished() -> None:
    """Remove the temporary files of this process, which is about to end without running ``finally`` blocks."""
    for temporary in list(_unfinished):
        with suppress(OSError):
            os.unlink(temporary)


class _File(io.FileIO):
    """A file whose errors name ``path``, though it was opened by descriptor or by another name."""

    def __init__(self, file: str | int, path: str) -> None:
        super().__init__(file, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        with _naming(self._path):
            return super().write(data)


@contextmanager
def _temporary_file(target: str, path: str, mode: int) -> Iterator[tuple[str, int]]:
    """Create a file beside ``target``, locked while this process lives, and remove it if the block fails."""
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
        with suppress(OSError):  # a file system without locks, where no file is taken for abandoned either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # another process took it for abandoned, before it was locked


def _remove_abandoned(folder: str, start: str) -> None:
    """Remove the temporary files that killed writers of the same file left, which are those without a lock."""
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


def _copy_mode_and_owner(path: str, existing: os.stat_result) -> None:
    """Give a file the mode of another, and its owner if that is allowed."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, existing.st_uid, existing.st_gid)
    os.chmod(path, stat.S_IMODE(existing.st_mode))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Replace the path in an OSError by ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from error
