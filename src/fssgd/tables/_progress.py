"""A progress bar on stderr, where somebody is there to see it."""

from __future__ import annotations

import sys
import time
from typing import Any

DELAY = 2.0


class ProgressBar:
    """Rows read so far, drawn by rich.

    Parameters
    ----------
    show : bool or None
        None draws once a pass has taken 2 s, where rich is installed and stderr is a terminal.
    total : int or None
        Rows to read, where that is known beforehand.
    """

    def __init__(self, show: bool | None, total: int | None = None) -> None:
        self._show, self._total, self._bar = show, total, None
        self._start = time.monotonic() + (DELAY if show is None else 0.0)
        if show:
            self._open(0)
        elif show is None and not sys.stderr.isatty():
            self._show = False

    def update(self, rows: int) -> None:
        """Tell how many rows have been read; costs next to nothing where nothing is drawn."""
        if self._show is False or (self._bar is None and time.monotonic() < self._start):
            return
        if self._bar is None:
            self._open(rows)
        if self._bar is not None:
            self._bar.update(self._task, completed=rows)

    def close(self) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _open(self, rows: int) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError as error:
            if self._show:
                raise ImportError("progress=True needs rich: pip install rich.") from error
            self._show = False
            return
        parts = TextColumn("Rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        bar: Any = Progress(*parts, console=Console(stderr=True))
        self._task, self._bar = bar.add_task("", total=self._total, completed=rows), bar
        bar.start()
