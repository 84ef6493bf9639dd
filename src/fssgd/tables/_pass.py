"""One pass over the rows of a table, whatever hands them out: blocks of rows to sums, faults to messages.

Rows are gathered into blocks of the size that sums are taken of, across batches and files, so that
the result depends on neither: a folder, its table in memory and a pass resumed halfway agree to the bit.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from fssgd._blocks import Sums, check_resolved, merge_sums, rows_of_block, sums_of_rows
from fssgd._moments import Moments
from fssgd.tables._progress import ProgressBar
from fssgd.tables._spec import TableSpec, capital, warn_user

Array = npt.NDArray[np.float64]

SINGLE_THREADED = 128
FAULTS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "infinite": (np.isinf, "contains infinity or a value too large for dtype('float64')", "correct these values"),
    "missing": (
        np.isnan,
        "has missing values (null or NaN)",
        "fill them in, or pass on_missing='drop' to drop the rows",
    ),
    "negative": (lambda values: values < 0, "has negative weights", "weights must be at least 0"),
}


@dataclass
class PassState:
    """How far a pass has come: to row ``row`` of file ``file``, ``rows`` in all, of which some were dropped.

    ``fault`` is the kind of the first fault and where it was; ``faults`` counts every kind from there on, by column.
    """

    missing: npt.NDArray[np.int64]
    sums: Sums | None = None
    file: int = 0
    row: int = 0
    rows: int = 0
    dropped: int = 0
    fault: tuple[str, str] | None = None
    faults: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)


def merge_states(a: PassState, b: PassState) -> PassState:
    """Return the state of a pass over the rows of both, those of ``a`` first."""
    sums = a.sums or b.sums
    if a.sums is not None and b.sums is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = merge_sums(a.sums, b.sums)
    faults = dict(a.faults)
    for kind, counts in b.faults.items():
        faults[kind] = faults[kind] + counts if kind in faults else counts
    rows, dropped = a.rows + b.rows, a.dropped + b.dropped
    return PassState(a.missing + b.missing, sums, b.file, b.row, rows, dropped, a.fault or b.fault, faults)


class TablePass:
    """Adds up the rows of one table; use it as a context manager around the reading.

    Parameters
    ----------
    spec : TableSpec
        With its features chosen.
    where : str
        What to call the table in messages.
    progress : bool or None
        Whether to draw a progress bar; None decides.
    total : int, default=None
        Number of rows, where that is known.
    state : PassState, default=None
        Where to go on from.
    after_block : callable, default=None
        Called with the state whenever it has moved on.
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
        self.state = state or PassState(np.zeros(n_columns, dtype=np.int64))
        self._bar, self._limits = ProgressBar(progress, total), ExitStack()

    def __enter__(self) -> TablePass:
        # on a busy machine passes with a threaded BLAS took from once to over 100 times as long (measured), and
        # the product of few columns is faster than reading them
        if self._p + self._t <= SINGLE_THREADED:
            self._limits.enter_context(threadpool_limits(1, user_api="blas"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limits.close()
        self._bar.close()

    def add(self, columns: Sequence[npt.NDArray[Any]], where: str | None = None, file: int = 0) -> None:
        """Take in a batch of rows.

        Parameters
        ----------
        columns : sequence of ndarray of shape (n_rows,)
            In the order of ``spec.columns``, of any numeric dtype; NaN stands for null.
        where : str, default=None
            The file they are from, for messages.
        file : int, default=0
            Its number.
        """
        where, state = where or self._where, self.state
        if state.fault is not None and where != state.fault[1]:
            self._flush()
            self._raise_fault()
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
        """Return the state after all rows, with what was found wrong with them."""
        self._flush()
        return self.state

    def moments(self) -> Moments:
        """Return the moments of all rows, or raise what was found wrong with them."""
        state, features = self.finish(), list(self._spec.features or ())
        if state.fault is not None:
            self._raise_fault()
        if state.sums is None:
            if state.rows == 0:
                raise ValueError(f"There are no rows in {self._where}.")
            if state.dropped == state.rows:
                raise ValueError(f"All {state.rows} rows of {self._where} have a missing value (null or NaN).")
            raise ValueError(f"All weights in {self._where} are zero: at least one row must have a positive weight.")
        sums, names = state.sums, [*features, *self._spec.target]
        check_resolved(sums.mean, sums.squares, sums.constant, np.empty((0, len(names))), np.empty((0, 0)), names)
        if state.dropped:
            warn_user(
                f"Dropped {state.dropped} of {state.rows} rows of {self._where} for missing values (null or NaN) in "
                f"{self._listed(state.missing)}."
            )
        return Moments(sums, self._t, np.array(features, dtype=object))

    def _flush(self) -> None:
        rows, places, self._filled, self._places = self._buffer[:, : self._filled], self._places, 0, []
        if rows.shape[1] == 0:
            return
        if self.state.fault is not None:
            self._count(rows, places)
            return
        weighted = self._spec.weight is not None
        one = None if weighted and not rows[-1].min() > 0 else self._summed(rows)
        if one is None or not math.isfinite(one.squares.sum() + one.mean.sum()):
            kept = self._examined(rows, places)
            if kept is None:
                return
            one = self._summed(kept) if kept.shape[1] else None
        state = self.state
        if one is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                state.sums = one if state.sums is None else merge_sums(state.sums, one)
        if self._after_block is not None:
            self._after_block(state)

    def _summed(self, rows: Array) -> Sums:
        weight = None if self._spec.weight is None else rows[-1]
        columns = self._p + self._t
        return sums_of_rows(rows[: self._p].T, rows[self._p : columns].T, weight, accurate=self._spec.accurate)

    def _examined(self, rows: Array, places: list[tuple[int, str]]) -> Array | None:
        """Return the rows that count; None if there is a fault, whose occurrences in its file are counted from now."""
        for kind in ("infinite", "missing") if self._spec.on_missing == "raise" else ("infinite",):
            if self._found(kind, rows, places):
                return None
        missing = np.isnan(rows)
        bad = missing.any(axis=0)
        if bad.any():
            self.state.missing += missing.sum(axis=1)
            self.state.dropped += int(bad.sum())
            rows = rows[:, ~bad]
        if self._spec.weight is not None:
            if self._found("negative", rows, places):
                return None
            rows = rows[:, rows[-1] > 0]
        return rows

    def _found(self, kind: str, rows: Array, places: list[tuple[int, str]]) -> bool:
        bad = self._mask(kind, rows)
        if not bad.any():
            return False
        first = int(np.argmax(bad.any(axis=0)))
        self.state.fault = kind, places[bisect.bisect([start for start, _ in places], first) - 1][1]
        self._count(rows, places)
        return True

    def _count(self, rows: Array, places: list[tuple[int, str]]) -> None:
        fault, faults = self.state.fault, self.state.faults
        assert fault is not None
        ends = [start for start, _ in places[1:]] + [rows.shape[1]]
        for (start, place), end in zip(places, ends, strict=True):
            if place == fault[1]:
                for kind in FAULTS:
                    counts = self._mask(kind, rows[:, start:end]).sum(axis=1)
                    faults[kind] = faults[kind] + counts if kind in faults else counts

    def _mask(self, kind: str, rows: Array) -> npt.NDArray[np.bool_]:
        mask = np.zeros(rows.shape, dtype=bool)
        part = slice(-1, None) if kind == "negative" else slice(None)
        mask[part] = FAULTS[kind][0](rows[part])
        return mask

    def _raise_fault(self) -> None:
        assert self.state.fault is not None
        kind, where = self.state.fault
        _, what, advice = FAULTS[kind]
        raise ValueError(f"{capital(where)} {what} in {self._listed(self.state.faults[kind])}: {advice}.")

    def _listed(self, counts: npt.NDArray[np.int64]) -> str:
        return ", ".join(
            f"column {name!r} ({count} row{'s' if count > 1 else ''})"
            for name, count in zip(self._spec.columns, counts, strict=True)
            if count
        )
