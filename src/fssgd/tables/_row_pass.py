"""One pass over the rows of a table that a reader streams: their sums, and the check for missing and invalid values.

Rows are collected into blocks of a fixed size, across batches and files, so that the result depends
on neither: a folder, its rows in memory and a resumed pass give bitwise the same moments.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import rows_of_block, sums_of_rows
from fssgd._moments.sums import Sums, merge_sums
from fssgd._moments.table_spec import TableSpec
from fssgd._support.blas_threads import one_thread
from fssgd.tables._pass_state import PassState, moments_of_state, raise_faults
from fssgd.tables._progress import ProgressBar

Array = npt.NDArray[np.float64]

MAX_SINGLE_THREADED_COLUMNS = 128


class TablePass:
    """Checks and sums the rows of one table; use it as a context manager around the reading.

    Parameters
    ----------
    spec : TableSpec
        Columns of the rows, with the features filled in.
    where : str
        What to call the table in messages.
    progress : bool or None
        Whether to draw a progress bar; None draws one if the pass is long and stderr is a terminal.
    total : int, default=None
        Number of rows, if that is known.
    state : PassState, default=None
        State to resume from.
    after_block : callable, default=None
        Called with the state after each block.
    """

    def __init__(
        self,
        spec: TableSpec,
        where: str,
        progress: bool | None = None,
        total: int | None = None,
        state: PassState | None = None,
        after_block: Callable[[PassState], None] | None = None,
    ) -> None:
        n_columns, self._p = len(spec.columns), len(spec.features or ())
        self._t = len(spec.target)
        self._spec, self._where, self._after_block = spec, where, after_block
        self._buffer = np.empty((n_columns, rows_of_block(self._p + self._t, spec.accurate)))
        self._filled = 0
        self._places: list[tuple[int, str]] = []
        self._faulty: str | None = None
        self.state = state or PassState.start(n_columns)
        self._bar, self._limits = ProgressBar(progress, total), ExitStack()

    def __enter__(self) -> TablePass:
        # On a busy machine passes with a threaded BLAS took up to 100 times as long (measured), and the products of few
        # columns take less time than reading them.
        if self._p + self._t <= MAX_SINGLE_THREADED_COLUMNS:
            self._limits.enter_context(one_thread())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limits.close()
        self._bar.close()

    def add(self, columns: Sequence[npt.NDArray[Any]], where: str | None = None, file: int = 0) -> None:
        """Add a batch of rows.

        Parameters
        ----------
        columns : sequence of ndarray of shape (n_rows,)
            Columns in the order of ``spec.columns``, of any numeric dtype; NaN stands for null.
        where : str, default=None
            What to call the file of the rows in messages.
        file : int, default=0
            Number of the file.
        """
        where, state = where or self._where, self.state
        # The faults of a file are counted up to its end, so that one message tells how many there are to correct.
        if self._faulty is not None and where != self._faulty:
            self._flush()
            raise_faults(self.state, self._spec, self._faulty)
        if file != state.file:
            state.file, state.row = file, 0
        n_rows, done, capacity = len(columns[0]), 0, self._buffer.shape[1]
        while done < n_rows:
            if not self._places or self._places[-1][1] != where:
                self._places.append((self._filled, where))
            count = min(n_rows - done, capacity - self._filled)
            for row, column in zip(self._buffer, columns, strict=True):
                row[self._filled : self._filled + count] = column[done : done + count]
            done += count
            self._filled += count
            state.row += count
            state.rows += count
            if self._filled == capacity:
                self._flush()
        self._bar.update(state.rows)

    def finish(self) -> PassState:
        """Return the state after the last row, faults included, to be merged with that of other rows.

        Returns
        -------
        PassState
        """
        self._flush()
        return self.state

    def moments(self) -> Moments:
        """Return the moments of all rows.

        Returns
        -------
        Moments

        Raises
        ------
        ValueError
            If there are no rows of positive weight, or a value is missing, infinite or a negative weight.
        """
        return moments_of_state(self.finish(), self._spec, self._faulty or self._where, self._where)

    def _flush(self) -> None:
        rows, places, self._filled, self._places = self._buffer[:, : self._filled], self._places, 0, []
        if rows.shape[1] == 0:
            return
        if self._faulty is not None:
            self._count(self._faults(rows), places)
            return
        # Summed first, and examined only if the sums are not finite: NaN and infinity reach them, and a check of each
        # value would be another pass over the rows. A weight of NaN fails the comparison with 0.
        weighted = self._spec.weight is not None
        block_sums = None if weighted and not rows[-1].min() > 0 else self._sums_of(rows)
        if block_sums is None or not math.isfinite(block_sums.squares.sum() + block_sums.mean.sum()):
            valid = self._valid_rows(rows, places)
            if valid is None:
                return
            block_sums = self._sums_of(valid) if valid.shape[1] else None
        state = self.state
        if block_sums is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                state.sums = block_sums if state.sums is None else merge_sums(state.sums, block_sums)
        if self._after_block is not None:
            self._after_block(state)

    def _sums_of(self, rows: Array) -> Sums:
        weight = None if self._spec.weight is None else rows[-1]
        columns = self._p + self._t
        return sums_of_rows(rows[: self._p].T, rows[self._p : columns].T, weight, accurate=self._spec.accurate)

    def _valid_rows(self, rows: Array, places: list[tuple[int, str]]) -> Array | None:
        """Return the rows without missing values and of positive weight, or None if there is a fault.

        From a fault on, nothing but the faults in the same file is counted.
        """
        weighted = self._spec.weight is not None
        if not np.isfinite(rows).all() or (weighted and rows[-1].min() < 0):
            faults = self._faults(rows)
            if (faulty := faults.any(axis=(0, 1))).any():
                starts = [start for start, _ in places]
                self._faulty = places[bisect.bisect(starts, int(np.argmax(faulty))) - 1][1]
                self._count(faults, places)
                return None
            missing = np.isnan(rows)
            dropped = missing.any(axis=0)
            self.state.missing += missing.sum(axis=1)
            self.state.dropped += int(dropped.sum())
            rows = rows[:, ~dropped]
        return rows[:, rows[-1] > 0] if weighted else rows

    def _faults(self, rows: Array) -> npt.NDArray[np.bool_]:
        """Return where the faults of each kind are, as an array of shape (n_kinds, n_columns, n_rows)."""
        missing, negative = np.isnan(rows), np.zeros(rows.shape, dtype=bool)
        if self._spec.weight is not None:
            negative[-1] = rows[-1] < 0
        # The weight of a dropped row does not matter.
        if self._spec.on_missing == "drop":
            negative[:, missing.any(axis=0)] = False
            missing[:] = False
        return np.stack([np.isinf(rows), missing, negative])

    def _count(self, faults: npt.NDArray[np.bool_], places: list[tuple[int, str]]) -> None:
        ends = [start for start, _ in places[1:]] + [faults.shape[2]]
        for (start, place), end in zip(places, ends, strict=True):
            if place == self._faulty:
                self.state.faults += faults[:, :, start:end].sum(axis=2)
