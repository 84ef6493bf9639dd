"""Arguments and options that commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class OnMissing(StrEnum):
    """What to do with rows in which a value is missing."""

    RAISE = "raise"
    DROP = "drop"


def _step(text: Any) -> Any:
    if text == "auto":
        return text
    return _number(text, "a number, or auto")


def _tolerance(text: Any) -> Any:
    return None if text == "none" else _number(text, "a number, or none")


def _steps(text: Any) -> Any:
    try:
        return float(text) if text == "inf" else int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a whole number, or inf") from None


def _number(text: Any, expected: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not {expected}") from None


Data = Annotated[list[str], typer.Argument(metavar="DATA", hidden=True)]
Target = Annotated[list[str], typer.Option("--target", "-t", metavar="COLUMN", help="Output; repeat for several.")]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", "-f", metavar="COLUMN", help="Feature; repeat for several. Default: others."),
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="Sample weights.")]
LearningRate = Annotated[Any, typer.Option(parser=_step, metavar="STEP", help="Fixed step, or auto.")]
MaxIter = Annotated[Any, typer.Option(parser=_steps, metavar="STEPS", help="At most, or inf.")]
Tol = Annotated[Any, typer.Option(parser=_tolerance, metavar="TOL", help="Tolerance, or none.")]
NoIntercept = Annotated[bool, typer.Option("--no-intercept", help="Let the line go through the origin.")]
Alpha = Annotated[float, typer.Option(metavar="ALPHA", help="Ridge penalty.")]
Accurate = Annotated[bool, typer.Option("--accurate", help="More digits, slower: carry a QR factor.")]
Missing = Annotated[OnMissing, typer.Option("--on-missing", help="Rows with missing values.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
