"""What a diagnosis found, and how it reads: numbers, sentences, a table."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fssgd._insight.blame import LISTED, Blame, named
from fssgd._support.jsonable import plain

PENALISED = 100.0  # condition number that a suggested penalty aims at
FEW_STEPS, MANY_STEPS = 100, 1000


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
        What it is the product of: "offset" is what centring the columns takes away, "scale" what dividing them by their
        standard deviations takes away then, and "collinearity" the condition number that is left when standardised.
        (Without an intercept columns are not centred, and "collinearity" has the part of the offsets.)
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

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences."""
        found = [*_on_divergence(self), *_on_scaling(self), *_on_the_step(self), *_on_columns(self)]
        if not found and any(one.reason == "collinearity" for one in self.blame):
            return (f"The descent meets tol={self.tol:g} before it has moved along the flattest directions: leave it.",)
        return tuple(found) or ("Nothing slows this descent down: leave it as it is.",)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain types that JSON knows.

        Returns
        -------
        dict
            inf is the string "inf".
        """
        document: dict[str, Any] = plain({**asdict(self), "advice": self.advice})
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
        size = f"{_plural(self.n_samples, 'row')} and {_plural(self.n_features, 'column')}"
        return f"Gradient descent on {size}, {model}{penalty}"

    def _blamed(self) -> list[str]:
        more = len(self.blame) - LISTED
        return [str(one) for one in self.blame[:LISTED]] + ([f"and {more} more"] if more > 0 else [])

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
            ("Largest stable step", lambda d: _step(d.max_learning_rate)),
            ("Step", lambda d: _step(d.learning_rate)),
            (f"  its steps to tol={self.tol:g}", lambda d: _counted(d, d.steps)),
            ("Step of the best worst case", lambda d: _step(d.best_learning_rate)),
            (f"  its steps to tol={self.tol:g}", lambda d: _counted(d, d.best_steps)),
        ]
        heads = ["standardised" if one.standardize else "as it is" for one in columns]
        return ["", *heads], [[label, *(cell(one) for one in columns)] for label, cell in parts]


def _factor(name: str) -> Callable[[Diagnosis], str]:
    return lambda d: f"{d.condition_factors[name]:.4g}"


def _on_divergence(d: Diagnosis) -> list[str]:
    if d.steps < np.inf or not d.steps_known:
        return []
    if d.learning_rate > d.max_learning_rate * (1.0 + 1e-12):
        why = f"is above {_step(d.max_learning_rate)}, the largest stable step: the descent diverges"
    else:
        why = f"never reaches tol={d.tol:g}: it is all but the largest stable step, {_step(d.max_learning_rate)}"
    return [f"learning_rate={d.learning_rate:.6g} {why}. Use learning_rate='auto'."]


def _on_scaling(d: Diagnosis) -> list[str]:
    after = d.standardized
    if after is None:
        return []
    condition = f"the condition number from {d.condition_number:.4g} to {after.condition_number:.4g}"
    steps = f"the steps to tol={d.tol:g} from {_counted(d, d.steps)} to {_counted(after, after.steps)}"
    if after.steps < 0.5 * d.steps or (after.steps <= d.steps and after.condition_number < 0.5 * d.condition_number):
        return [f"standardize=True brings {condition} and {steps}."]
    if after.condition_number < 0.5 * d.condition_number:
        early = "as it is, the descent meets tol before it has moved along the flattest directions"
        return [f"standardize=True brings {condition}, though {steps}: {early}."]
    if after.condition_number > 2.0 * d.condition_number and after.steps > d.steps:
        return [f"Leave the columns as they are: standardize=True would bring {condition} and {steps}."]
    return []


def _on_the_step(d: Diagnosis) -> list[str]:
    said = []
    if d.best_steps < 0.75 * d.steps and FEW_STEPS < d.steps < np.inf:
        said.append(
            f"learning_rate={_step(d.best_learning_rate)}, the fixed step with the best worst case, takes "
            f"{counted(d.best_steps)} steps to tol={d.tol:g} instead of {counted(d.steps)}."
        )
    if not d.steps_known:
        said.append(
            f"How many steps tol={d.tol:g} takes cannot be told from second moments: their rounding hides directions "
            "along which the descent still has to move. Moments taken with accurate=True see further."
        )
    elif d.condition_number == np.inf and d.accurate:
        said.append(
            "The smallest eigenvalue is too small for float64 to tell from 0: along its direction the descent never "
            "moves, and tol is met without it."
        )
    elif d.condition_number == np.inf:
        said.append(
            "The smallest eigenvalue is too small for second moments to tell from 0: moments taken with accurate=True "
            "see further."
        )
    return said


def _on_columns(d: Diagnosis) -> list[str]:
    said, settled = [], d.standardized or d
    constant = [one.columns[0] for one in d.blame if one.reason == "constant"]
    if constant:
        said.append(f"Leave out {named(constant)}: a constant column says no more than the intercept.")
    if d.n_features + d.fit_intercept > d.n_samples and not d.alpha:
        said.append(
            f"With {_plural(d.n_features, 'column')} for {_plural(d.n_samples, 'row')} many coefficients fit equally "
            "well, and the descent ends at the smallest of them: a penalty (alpha > 0), or a stop before the limit, "
            "chooses others."
        )
    if not d.fit_intercept and any(one.reason == "offset" for one in settled.blame):
        said.append("Columns are centred with an intercept only: fit_intercept=True takes their offsets away.")
    collinear = [one for one in d.blame if one.reason == "collinearity"]
    exact = [one for one in collinear if one.value == np.inf]
    if exact:
        known = "exactly" if d.accurate else "to the rounding of second moments (accurate=True sees further)"
        said.append(
            f"Leave out one column of each group that is dependent {known}, such as {named(exact[0].columns)}: how "
            "they share what they say is settled by their scales alone."
        )
    if len(collinear) > len(exact) and settled.steps > MANY_STEPS:
        near = next(one for one in collinear if one.value < np.inf)
        alpha = settled.alpha + 0.5 * settled.eigenvalue_range[1] / PENALISED
        said.append(
            f"{named(near.columns)} all but determine each other, which standardising does not change. Leave one out, "
            f"or take a penalty: with standardize=True, alpha={float(f'{alpha:.1g}'):g} brings the condition number to "
            f"about {PENALISED:g}, and shrinks the coefficients."
        )
    if settled.steps > MANY_STEPS:
        said.append(
            "For the limit alone no steps are needed: backend='spectral' with max_iter=float('inf') and tol=None "
            "computes it."
        )
    return said


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("s" if count != 1 else "")


def _step(rate: float) -> str:
    """Return a step to four digits, rounded down where rounding up could make a stable one unstable."""
    text = f"{rate:.4g}"
    if not float(text) > rate * (1.0 + 1e-12):
        return text
    return f"{rate - 0.5 * 10.0 ** (math.floor(math.log10(rate)) - 3):.4g}"


def _counted(d: Diagnosis, steps: int | float) -> str:
    return counted(steps) if d.steps_known else "unknown"


def counted(steps: int | float) -> str:
    """Return a number of steps in words that stay short."""
    if steps == np.inf:
        return "never"
    return f"{steps:,}" if steps < 1e12 else f"{steps:.3g}"
