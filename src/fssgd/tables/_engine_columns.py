"""What predictions inside an engine share, whatever its expressions are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fssgd._support.words import capitalized


def refuse_taken(predictions: Sequence[str], taken: Collection[str], where: str) -> None:
    """Raise a ValueError if a table has a column of a name to add, in any case: engines may not tell cases apart."""
    folded = {name.casefold(): name for name in taken}
    for name in predictions:
        if name.casefold() in folded:
            found = folded[name.casefold()]
            raise ValueError(f"{capitalized(where)} has a column {found!r} already: rename it, or leave it out.")


def added_up(terms: list[Any]) -> Any:
    """Add up in pairs: engines and compilers bound the depth of an expression."""
    while len(terms) > 1:
        terms = [sum(terms[start + 1 : start + 2], terms[start]) for start in range(0, len(terms), 2)]
    return terms[0]
