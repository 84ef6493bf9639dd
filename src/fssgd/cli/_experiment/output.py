"""Output of results: a console that never cuts a name off, JSON files, pictures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from fssgd._support.atomic_files import write_atomically
from fssgd.cli._outputs import check_outputs

PIPED_WIDTH = 120


def result_console() -> Any:
    """Return a console on stdout, wide enough where that is not a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=PIPED_WIDTH, highlight=False)


def quiet_tensorflow() -> None:
    """Keep TensorFlow, if it is imported later, from telling the terminal what it was compiled with."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def result_folder(out: Path, *names: str) -> Path:
    """Make the folder for results, with those above it, and see that files of these names can be written in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {out} cannot be made a folder ({error}): name another.") from error
    check_outputs([("--out", out / name) for name in names], [])
    return out


def to_json(document: Any) -> str:
    """Return the document as JSON, arrays as lists; what is not finite is refused."""
    return json.dumps(document, indent=1, default=_plain, allow_nan=False)


def write_json(file: Path, document: Any) -> None:
    """Write the document, wholly or not at all."""
    text = to_json(document).encode()
    write_atomically(file, lambda handle: handle.write(text))


def write_picture(file: Path, figure: Any) -> None:
    """Write the figure as PNG, wholly or not at all."""
    write_atomically(file, lambda handle: figure.savefig(handle, format="png"))


def duration(seconds: float) -> str:
    """Return a time in three digits, with its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in JSON.")
