"""What the commands share: how they fail, warn and print."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer
from scipy.linalg import LinAlgWarning

from fssgd._checks import printable

FLAGS = {"standardize=True": "standardising", "fit_intercept=True": "an intercept", "accurate=True": "--accurate"}
VALUES = {"float('inf')": "inf", "None": "none"}
SETTING = re.compile(
    r"(?<![\w/'\"])(?:(learning_rate|alpha|backend|on_missing|checkpoint)=('[^']*'|[\w+-]+(?:\.[\w+-]+)?)"
    r"|(max_iter|tol)=(float\('inf'\)|inf|None))"
)


def reporting(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command tell errors and warnings on stderr, a line each; exit with 1 for an error, 130 if interrupted."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for shown in (UserWarning, LinAlgWarning):
                warnings.simplefilter("always", shown)
            warnings.showwarning = lambda message, *_, **__: _say(f"Warning: {message}")
            try:
                function(*args, **options)
            except BrokenPipeError:  # whoever reads has seen enough: typer ends quietly
                raise
            except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
                _say(f"Error: {_told(error)}")
                raise typer.Exit(1) from None
            except KeyboardInterrupt:
                checkpoint = options.get("checkpoint")
                on = f" The same command goes on from {checkpoint}." if checkpoint and checkpoint.exists() else ""
                _say(f"Interrupted.{on}")
                raise typer.Exit(130) from None

    return run


def writable(path: Path | None) -> None:
    """Raise before the work is done, and not after it, if ``path`` has no folder to be written in."""
    if path is not None and (not path.name or path.expanduser().is_dir()):
        raise IsADirectoryError(f"{str(path)!r} is a folder, not a file to write: give it a name.")
    if path is not None and not path.expanduser().absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.expanduser().absolute().parent} to write {path.name} in.")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Align the cells of each column, the first to the left and numbers to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


def in_options(text: str) -> str:
    """Say in the command's options what the library says in Python's arguments."""
    for flag, words in FLAGS.items():
        text = text.replace(flag, words)

    def option(match: re.Match[str]) -> str:
        name, value = filter(None, match.groups())
        return f"--{name.replace('_', '-')} {VALUES.get(value, value.strip(chr(39)))}"

    return SETTING.sub(option, text)


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error)


def _say(message: str) -> None:
    typer.echo(in_options(printable(" ".join(message.splitlines()))), err=True)
