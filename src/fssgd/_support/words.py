"""Text of messages: names of columns, long lists of names, and warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PACKAGE = str(Path(__file__).resolve().parents[1])
MAX_LISTED = 20  # of a million columns the first ones are enough


def column_names(names: Any, n_features: int) -> list[str]:
    """Return the names of the columns as strings, or x0, x1 and so on if they have none."""
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def printable(text: str) -> str:
    """Return the text with control characters, which must not reach a terminal, written as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def join_items(items: Iterable[str]) -> str:
    """Return the items with commas between them, and how many more there are after the first ones."""
    items = list(items)
    more = f" and {len(items) - MAX_LISTED} more" if len(items) > MAX_LISTED else ""
    return ", ".join(items[:MAX_LISTED]) + more


def join_names(names: Iterable[str]) -> str:
    """Return the names in quotes, joined by :func:`join_items`."""
    return join_items(map(repr, names))


def capitalized(text: str) -> str:
    """Return "the table" as it begins a sentence; a path begins one as it is."""
    return text[0].upper() + text[1:] if text.startswith("the ") else text


def warn_user(message: str) -> None:
    """Issue a UserWarning that points at the line outside this package which called into it."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
