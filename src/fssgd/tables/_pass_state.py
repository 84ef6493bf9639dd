"""State of a pass over the rows of a table, which can be merged, and the moments or the error that it ends with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fssgd._moments.checks import check_resolved
from fssgd._moments.moments import Moments
from fssgd._moments.sums import Sums, merge_sums
from fssgd._moments.table_spec import TableSpec
from fssgd._support.words import capitalized, join_items, warn_user

Counts = npt.NDArray[np.int64]

INFINITE, MISSING, NEGATIVE = range(3)

# Of several kinds of fault the first in this list is raised, so that the message does not depend on the order of rows.
FAULTS = (
    ("contains infinity or a value too large for dtype('float64')", "correct these values"),
    ("has missing values (null or NaN)", "fill them in, or pass on_missing='drop' to drop the rows"),
    ("has negative weights", "weights must be at least 0"),
)


@dataclass
class PassState:
    """Sums and counts of the rows that a pass has read.

    Parameters
    ----------
    missing : ndarray of shape (n_columns,) of int
        Number of missing values for which rows were dropped.
    faults : ndarray of shape (n_kinds, n_columns) of int
        Number of occurrences of each of ``FAULTS``; the pass ends with an error unless all are 0.
    sums : Sums or None
        Sums of the valid rows of positive weight; None if there are none.
    file, row : int
        Position to resume from: number of the file, and rows of it that are read.
    rows, dropped : int
        Number of rows read, and of those dropped for missing values.
    """

    missing: Counts
    faults: Counts
    sums: Sums | None = None
    file: int = 0
    row: int = 0
    rows: int = 0
    dropped: int = 0

    @classmethod
    def start(cls, n_columns: int) -> PassState:
        """Return the state before the first row."""
        return cls(np.zeros(n_columns, dtype=np.int64), np.zeros((len(FAULTS), n_columns), dtype=np.int64))


def merge_states(a: PassState, b: PassState) -> PassState:
    """Return the state of a pass over the rows of both, without a position to resume from."""
    sums = a.sums or b.sums
    if a.sums is not None and b.sums is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = merge_sums(a.sums, b.sums)
    rows, dropped = a.rows + b.rows, a.dropped + b.dropped
    return PassState(a.missing + b.missing, a.faults + b.faults, sums, rows=rows, dropped=dropped)


def raise_faults(state: PassState, spec: TableSpec, where: str) -> None:
    """Raise a ValueError that counts the faults of the first kind that occurs, if there are any."""
    for (what, advice), counts in zip(FAULTS, state.faults, strict=True):
        if counts.any():
            raise ValueError(f"{capitalized(where)} {what} in {_column_counts(spec, counts)}: {advice}.")


def moments_of_state(state: PassState, spec: TableSpec, faulty: str, where: str) -> Moments:
    """Return the moments of all rows, or raise a ValueError if there are faults or no valid rows.

    Parameters
    ----------
    state : PassState
        State after the last row.
    spec : TableSpec
        Columns that were read, with the features filled in.
    faulty, where : str
        What to call the file with the faults, and the whole table, in messages.
    """
    raise_faults(state, spec, faulty)
    features = list(spec.features or ())
    if state.sums is None:
        if state.rows == 0:
            raise ValueError(f"There are no rows in {where}.")
        if state.dropped == state.rows:
            raise ValueError(f"All {state.rows} rows of {where} have a missing value (null or NaN).")
        raise ValueError(f"All weights in {where} are zero: at least one row must have a positive weight.")
    sums, names = state.sums, [*features, *spec.target]
    check_resolved(
        sums.mean, sums.squares, sums.constant, np.empty((0, len(names))), np.empty((0, 0)), names, sums.weight
    )
    if state.dropped:
        warn_user(
            f"Dropped {state.dropped} of {state.rows} rows of {where} for missing values (null or NaN) in "
            f"{_column_counts(spec, state.missing)}."
        )
    return Moments(sums, len(spec.target), np.array(features, dtype=object))


def _column_counts(spec: TableSpec, counts: Counts) -> str:
    return join_items(
        f"column {name!r} ({count} row{'s' if count > 1 else ''})"
        for name, count in zip(spec.columns, counts, strict=True)
        if count
    )
