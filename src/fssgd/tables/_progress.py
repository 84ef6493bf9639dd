"""A progress bar on stderr."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import Any

DELAY = 2.0  # seconds before the bar is shown by default: most passes are over by then


class ProgressBar:
    """A bar that shows the number of rows read, drawn by rich.

    Parameters
    ----------
    show : bool or None
        Whether to draw it; None draws it after 2 s, if rich is installed and stderr is a terminal.
    total : int or None
        Number of rows to read, if that is known beforehand.
    """

    def __init__(self, show: bool | None, total: int | None = None) -> None:
        self._total, self._rows, self._bar = total, 0, None
        self._timer: threading.Timer | None = None
        if show:
            self._open()
        elif show is None and sys.stderr.isatty():
            # A timer, not a check in update(): a slow engine may return its first rows after minutes.
            self._timer = threading.Timer(DELAY, self._open_if_there)
            self._timer.daemon = True
            self._timer.start()

    def update(self, rows: int) -> None:
        """Set how many rows have been read; costs next to nothing if nothing is drawn."""
        self._rows = rows
        if self._bar is not None:
            self._bar.update(self._task, completed=rows)

    def close(self) -> None:
        """Remove the bar."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # it may be opening the bar just now
            self._timer = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _open_if_there(self) -> None:
        with suppress(ImportError):
            self._open()

    def _open(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError as error:
            raise ImportError("progress=True needs rich: pip install rich.") from error
        parts = TextColumn("Rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        bar: Any = Progress(*parts, console=Console(stderr=True))
        self._task = bar.add_task("", total=self._total, completed=self._rows)
        bar.start()
        self._bar = bar
