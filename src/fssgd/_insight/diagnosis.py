"""Diagnosis: the numbers that explain the speed of a descent, printed as a report or a table."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fssgd._insight.blame import MAX_LISTED, Blame
from fssgd._support.jsonable import plain


@dataclass(frozen=True)
class Diagnosis:
    """Why gradient descent takes the steps it takes on some data; made by :func:`~fssgd.diagnose`.

    Printed, it is a report; in a notebook, a table.

    Attributes
    ----------
    n_samples, n_features : int
        Rows of positive weight, and columns.
    standardize, fit_intercept : bool
    alpha : float
        The descent that is described.
    eigenvalue_range : tuple of float
        Smallest and largest eigenvalue (mu, L) of the Hessian of F in the coordinates of the descent, those that are
        null left out.
    null_directions : int
        Directions along which F does not change: the descent never moves there.
    condition_number : float
        L / mu; inf if the smallest eigenvalue that is not null is too small to be told from 0.
    condition_factors : dict
        Factors whose product it is: "offset" is removed by centring the columns, "scale" by then dividing them by their
        standard deviations, and "collinearity" is the condition number of the standardised descent. (Without an
        intercept columns are not centred, and their offsets are part of "collinearity".)
    learning_rate, max_learning_rate, best_learning_rate : float
        The step in question; 2 / L, the largest stable one; and 2 / (L + mu), the one of the fastest worst case, which
        shrinks every error by (L - mu) / (L + mu) or more a step. In 1 / (units of the eigenvalues).
    tol : float
    steps, best_steps : int or inf
        Steps until a fit with ``tol`` stops at ``learning_rate``, and at ``best_learning_rate``; inf if never.
    steps_known : bool
        False where second moments do not resolve directions along which the descent still has to move: then no number
        of steps can be told, and both are inf.
    blame : tuple of Blame
        The columns that make it slow.
    standardized : Diagnosis or None
        The same after standardising, at the automatic step; None if this one is standardised.
    accurate : bool
        Whether a QR factor was at hand, and not only second moments: it resolves condition numbers up to 1e30 instead
        of 1e15.
    advice : tuple of str
        What to do, in sentences.
    """

    __module__ = "fssgd"

    n_samples: int
    n_features: int
    standardize: bool
    fit_intercept: bool
    alpha: float
    eigenvalue_range: tuple[float, float]
    null_directions: int
    condition_number: float
    condition_factors: dict[str, float]
    learning_rate: float
    max_learning_rate: float
    best_learning_rate: float
    tol: float
    steps: int | float
    best_steps: int | float
    steps_known: bool
    blame: tuple[Blame, ...]
    standardized: Diagnosis | None
    accurate: bool
    advice: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain types that JSON knows.

        Returns
        -------
        dict
            inf is the string "inf".
        """
        document: dict[str, Any] = plain(asdict(self))
        if self.standardized is not None:
            document["standardized"] = self.standardized.to_dict()
        return document

    def __str__(self) -> str:
        names, rows = self._table()
        widths = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
        lines = [self._title(), ""]
        for label, *cells in [names, *rows]:
            padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([label.ljust(widths[0]), *padded]))
        if self.blame:
            lines += ["", "To blame", *(f"- {line}" for line in self._blamed())]
        return "\n".join([*lines, "", "Advice", *(f"- {sentence}" for sentence in self.advice)])

    def _repr_html_(self) -> str:
        names, rows = self._table()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in names)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        lists = [("To blame", self._blamed()), ("Advice", self.advice)]
        below = "".join(
            f"<p><b>{title}</b></p><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"
            for title, lines in lists
            if lines
        )
        title = f"<p>{html.escape(self._title())}</p>"
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"

    def _title(self) -> str:
        model = "with an intercept" if self.fit_intercept else "without an intercept"
        penalty = f", alpha={self.alpha:g}" if self.alpha else ""
        size = f"{plural(self.n_samples, 'row')} and {plural(self.n_features, 'column')}"
        return f"Gradient descent on {size}, {model}{penalty}"

    def _blamed(self) -> list[str]:
        more = len(self.blame) - MAX_LISTED
        return [str(one) for one in self.blame[:MAX_LISTED]] + ([f"and {more} more"] if more > 0 else [])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the head and the rows of the report, the first cell of each a label."""
        columns = [self] if self.standardized is None else [self, self.standardized]
        parts: list[tuple[str, Callable[[Diagnosis], str]]] = [
            ("Condition number", lambda d: f"{d.condition_number:.4g}"),
            *(
                (f"  {'by' if name == 'offset' else 'times by'} {name}", _factor(name))
                for name in self.condition_factors
                if self.standardized is not None
            ),
            ("Largest eigenvalue of the Hessian", lambda d: f"{d.eigenvalue_range[1]:.4g}"),
            ("Smallest that is not null", lambda d: f"{d.eigenvalue_range[0]:.4g}"),
            ("Null directions", lambda d: f"{d.null_directions}"),
            ("Largest stable step", lambda d: step_text(d.max_learning_rate)),
            ("Step", lambda d: step_text(d.learning_rate)),
            (f"  its steps to tol={self.tol:g}", lambda d: steps_text(d, d.steps)),
            ("Step of the best worst case", lambda d: step_text(d.best_learning_rate)),
            (f"  its steps to tol={self.tol:g}", lambda d: steps_text(d, d.best_steps)),
        ]
        heads = ["standardised" if one.standardize else "as it is" for one in columns]
        return ["", *heads], [[label, *(cell(one) for one in columns)] for label, cell in parts]


def _factor(name: str) -> Callable[[Diagnosis], str]:
    return lambda d: f"{d.condition_factors[name]:.4g}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is 1."""
    return f"{count:,} {noun}" + ("s" if count != 1 else "")


def step_text(rate: float) -> str:
    """Return a step to four digits, rounded down where rounding up could make a stable one unstable."""
    text = f"{rate:.4g}"
    if not float(text) > rate * (1.0 + 1e-12):
        return text
    return f"{rate - 0.5 * 10.0 ** (math.floor(math.log10(rate)) - 3):.4g}"


def steps_text(d: Diagnosis, steps: int | float) -> str:
    """Return a number of steps of this descent, or that it is not known."""
    return counted(steps) if d.steps_known else "unknown"


def counted(steps: int | float) -> str:
    """Return a number of steps in words that stay short."""
    if steps == np.inf:
        return "never"
    return f"{steps:,}" if steps < 1e12 else f"{steps:.3g}"
