"""What the rows of a table have come to so far, in a form that merges, and what is said of it at the end."""

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

# in the order in which they are raised, whatever that of the rows
FAULTS = (
    ("contains infinity or a value too large for dtype('float64')", "correct these values"),
    ("has missing values (null or NaN)", "fill them in, or pass on_missing='drop' to drop the rows"),
    ("has negative weights", "weights must be at least 0"),
)


@dataclass
class PassState:
    """How far a pass has come.

    Parameters
    ----------
    missing : ndarray of shape (n_columns,) of int
        Missing values that rows were dropped for.
    faults : ndarray of shape (n_kinds, n_columns) of int
        Occurrences of each of ``FAULTS``; there is no result unless all are 0.
    sums : Sums or None
        Of the rows that count; None if there are none.
    file, row : int
        Where to go on from.
    rows, dropped : int
        Rows seen in all, and those left out for missing values.
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
    """Return the state of a pass over the rows of both, which ends nowhere in particular."""
    sums = a.sums or b.sums
    if a.sums is not None and b.sums is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = merge_sums(a.sums, b.sums)
    rows, dropped = a.rows + b.rows, a.dropped + b.dropped
    return PassState(a.missing + b.missing, a.faults + b.faults, sums, rows=rows, dropped=dropped)


def raise_faults(state: PassState, spec: TableSpec, where: str) -> None:
    """Raise a ValueError that counts the faults of the first kind there is, in ``where``."""
    for (what, advice), counts in zip(FAULTS, state.faults, strict=True):
        if counts.any():
            raise ValueError(f"{capitalized(where)} {what} in {_listed(spec, counts)}: {advice}.")


def moments_of_state(state: PassState, spec: TableSpec, faulty: str, where: str) -> Moments:
    """Return the moments of all rows, or raise what was found wrong with them.

    Parameters
    ----------
    state : PassState
    spec : TableSpec
        With its features chosen.
    faulty, where : str
        What to call the place of the faults, and the whole table, in messages.
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
            f"{_listed(spec, state.missing)}."
        )
    return Moments(sums, len(spec.target), np.array(features, dtype=object))


def _listed(spec: TableSpec, counts: Counts) -> str:
    return join_items(
        f"column {name!r} ({count} row{'s' if count > 1 else ''})"
        for name, count in zip(spec.columns, counts, strict=True)
        if count
    )
