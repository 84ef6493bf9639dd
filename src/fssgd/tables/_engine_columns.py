"""Helpers for predictions that an engine computes, whatever the type of its expressions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fssgd._support.words import capitalized


def refuse_existing(predictions: Sequence[str], columns: Collection[str], where: str) -> None:
    """Raise a ValueError if a name to add is that of a column; the case is ignored, as some engines do."""
    by_folded_name = {name.casefold(): name for name in columns}
    for name in predictions:
        if name.casefold() in by_folded_name:
            existing = by_folded_name[name.casefold()]
            raise ValueError(f"{capitalized(where)} has a column {existing!r} already: rename it, or leave it out.")


def sum_pairwise(terms: list[Any]) -> Any:
    """Return the sum of expressions as a balanced tree: engines and compilers limit the depth of an expression."""
    while len(terms) > 1:
        terms = [sum(terms[start + 1 : start + 2], terms[start]) for start in range(0, len(terms), 2)]
    return terms[0]
