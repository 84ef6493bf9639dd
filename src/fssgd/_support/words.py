"""Names and sentences in messages: columns without names, long lists, and warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PACKAGE = str(Path(__file__).resolve().parents[1])
LISTED = 20


def column_names(names: Any, n_features: int) -> list[str]:
    """Return the names of the columns as strings: x0, x1 and so on where they have none."""
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def printable(text: str) -> str:
    """Return the text with what is not to reach a terminal, such as control characters, written as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more


def capital(text: str) -> str:
    return text[0].upper() + text[1:] if text.startswith("the ") else text


def warn_user(message: str) -> None:
    """Warn on behalf of the first caller outside this package, however deep the reader that asks."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
