"""What is said of a table once its rows are counted: its faults, the rows left out, and its moments if all is well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from fssgd._blocks import Sums, check_resolved
from fssgd._moments import Moments
from fssgd.tables._spec import TableSpec, capital, warn_user

FAULTS = {
    "infinite": ("contains infinity or a value too large for dtype('float64')", "correct these values"),
    "missing": (
        "has missing values (null or NaN)",
        "fill them in, or pass on_missing='drop' to drop the rows",
    ),
    "negative": ("has negative weights", "weights must be at least 0"),
}


def raise_fault(kind: str, where: str, spec: TableSpec, counts: Iterable[int]) -> NoReturn:
    """Raise a ValueError for a fault; ``counts`` has the rows at fault of each of ``spec.columns``."""
    what, advice = FAULTS[kind]
    raise ValueError(f"{capital(where)} {what} in {_listed(spec, counts)}: {advice}.")


def raise_without_rows(where: str, rows: int, dropped: int) -> NoReturn:
    """Raise a ValueError for a table of which no row counts."""
    if rows == 0:
        raise ValueError(f"There are no rows in {where}.")
    if dropped == rows:
        raise ValueError(f"All {rows} rows of {where} have a missing value (null or NaN).")
    raise ValueError(f"All weights in {where} are zero: at least one row must have a positive weight.")


def checked_moments(
    sums: Sums, spec: TableSpec, where: str, *, rows: int, dropped: int, missing: Iterable[int]
) -> Moments:
    """Return the moments, with the warning that counts what was dropped.

    Raises
    ------
    ValueError
        If squares left the range of float64.
    """
    features = list(spec.features or ())
    names = [*features, *spec.target]
    check_resolved(sums.mean, sums.squares, sums.constant, np.empty((0, len(names))), np.empty((0, 0)), names)
    if dropped:
        warn_user(
            f"Dropped {dropped} of {rows} rows of {where} for missing values (null or NaN) in {_listed(spec, missing)}."
        )
    return Moments(sums, len(spec.target), np.array(features, dtype=object))


def _listed(spec: TableSpec, counts: Iterable[int]) -> str:
    return ", ".join(
        f"column {name!r} ({count} row{'s' if count > 1 else ''})"
        for name, count in zip(spec.columns, counts, strict=True)
        if count
    )
