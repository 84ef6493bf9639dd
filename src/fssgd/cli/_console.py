"""Errors, warnings, progress and aligned text on the terminal, shared by the commands."""

from __future__ import annotations

import functools
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from scipy.linalg import LinAlgWarning

from fssgd._support.words import printable
from fssgd.cli._signals import Ended, ended_by_signals

OPERATIONS_PER_N3, SPEED = 9.0, 2e10  # of a symmetric eigendecomposition, and how many a second


def reporting(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command print errors and warnings on stderr, a line each; exit with 1 for an error, 128 + n by a signal."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        with ended_by_signals():
            try:
                with _printing_problems():
                    function(*args, **options)
            except KeyboardInterrupt as error:
                end = error if isinstance(error, Ended) else Ended(signal.SIGINT)
                checkpoint = options.get("checkpoint")
                on = f" The same command continues from {checkpoint}." if checkpoint and checkpoint.exists() else ""
                with suppress(OSError):  # of a terminal that has hung up
                    _print_line(f"{end}{on}")
                raise typer.Exit(end.code) from None

    return run


@contextmanager
def _printing_problems() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shown in (UserWarning, LinAlgWarning):
            warnings.simplefilter("always", shown)
        warnings.showwarning = lambda message, *_, **__: _print_line(f"Warning: {message}")
        try:
            yield
        except BrokenPipeError:  # whoever reads has seen enough: typer ends quietly
            raise
        except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
            _print_line(f"Error: {_message_of(error)}")
            raise typer.Exit(1) from None


@contextmanager
def working(what: str, *, shown: bool = True) -> Iterator[Callable[[str], None]]:
    """Show on stderr what is being done, where that is a terminal; the function that is yielded changes the text.

    A spinner shows that the command is alive, and leaves nothing behind. It is not for a time in which a bar is drawn.
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda what: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(f"{what} ...")) as status:
        yield lambda what: status.update(Text(f"{what} ..."))


def announce_decomposition(n_features: int) -> None:
    """Announce, where stderr is a terminal, that a decomposition will take minutes."""
    seconds = OPERATIONS_PER_N3 * n_features**3 / SPEED
    if seconds > 60.0 and sys.stderr.isatty():
        _print_line(
            f"Decomposing the second moments of {n_features:,} features takes about {seconds / 60:,.0f} minutes on a "
            "few cores: fewer --features are faster."
        )


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Align the cells of each column, the first to the left and numbers to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


def _message_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error)


def _print_line(message: str) -> None:
    typer.echo(printable(" ".join(message.splitlines())), err=True)
