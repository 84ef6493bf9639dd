"""Blame: the columns that make a descent slow, and why.

A column is to blame for a factor of 10 or more: by its variance against the intercept's curvature; by
(1 + (mean / standard deviation)^2)^2, which is what the offset of one column alone multiplies the condition number
by; or by its variance inflation factor H_jj (H^-1)_jj after standardising.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fssgd._path.gradient_path import GradientPath
from fssgd._support.words import column_names

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
SMALLEST_BLAMED_FACTOR = 10.0
SMALLEST_PARTNER = 0.5  # of the largest partial correlation
MAX_LISTED = 8


@dataclass(frozen=True)
class Blame:
    """Columns that slow a descent down, and why.

    Parameters
    ----------
    columns : tuple of str
        One column; for "collinearity" the most inflated one, then those that determine it, strongest first.
    reason : {"constant", "scale", "offset", "collinearity"}
    value : float
        For "constant" the constant, for "scale" the standard deviation (without an intercept the root mean
        square), for "offset" the mean divided by the standard deviation, for "collinearity" the variance
        inflation factor of the first column, inf if it is determined exactly.
    """

    columns: tuple[str, ...]
    reason: Literal["constant", "scale", "offset", "collinearity"]
    value: float

    def __str__(self) -> str:
        first, others = repr(self.columns[0]), named(self.columns[1:])
        if self.reason == "constant":
            return f"{first} is constant: it is {self.value:.4g} in every row"
        if self.reason == "scale":
            return f"{first} is of another scale: it spreads by {self.value:.4g}"
        if self.reason == "offset":
            return f"{first} is far from 0: its mean is {abs(self.value):.4g} standard deviations away"
        if self.value == np.inf:
            return f"{first} is an exact linear combination of {others}"
        return f"{first} is nearly a linear combination of {others}: variance inflation {self.value:.4g}"


def named(columns: tuple[str, ...] | list[str]) -> str:
    """Return the names as a list with "and", a long one cut short."""
    names = [repr(name) for name in columns[:MAX_LISTED]]
    if len(columns) > MAX_LISTED:
        names.append(f"{len(columns) - MAX_LISTED} more")
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def columns_to_blame(
    path: GradientPath, standardized_path: GradientPath, factors: dict[str, float]
) -> tuple[Blame, ...]:
    """Return them by cause, worst first; ``factors`` are those of the condition number."""
    return (*_constant(path), *_scale(path, factors), *_offset(path, factors), *_collinearity(standardized_path))


def _worst_first(names: list[str], reason: Any, values: Array, weights: Array) -> list[Blame]:
    """One Blame for each column whose weight is worth it, heaviest first."""
    order = [j for j in np.argsort(-weights, kind="stable") if weights[j] >= SMALLEST_BLAMED_FACTOR]
    return [Blame((names[j],), reason, float(values[j])) for j in order]


def _constant(path: GradientPath) -> list[Blame]:
    moments = path.moments
    if not path.settings.fit_intercept:  # then a constant column is an intercept
        return []
    names = column_names(moments.feature_names, moments.n_features)
    return [Blame((names[j],), "constant", float(moments.mean_x[j])) for j in np.flatnonzero(moments.variance_x == 0)]


def _scale(path: GradientPath, factors: dict[str, float]) -> list[Blame]:
    """Columns whose curvature is far from the intercept's, or without one from the middle of the columns."""
    moments, curvature = path.moments, path.moments.variance_x
    if not path.settings.fit_intercept:
        curvature = curvature + moments.mean_x**2
    seen = curvature > 0
    if factors["scale"] < SMALLEST_BLAMED_FACTOR or not seen.any():
        return []
    middle = 1.0 if path.settings.fit_intercept else float(np.median(curvature[seen]))
    apart = np.exp(np.abs(np.log(np.where(seen, curvature / middle, 1.0))))
    return _worst_first(column_names(moments.feature_names, moments.n_features), "scale", np.sqrt(curvature), apart)


def _offset(path: GradientPath, factors: dict[str, float]) -> list[Blame]:
    """Columns far from 0, where that matters: raw, or without an intercept to centre them by."""
    moments, fit_intercept = path.moments, path.settings.fit_intercept
    matters = factors["offset"] if fit_intercept else path.spectrum.condition_number
    if matters < SMALLEST_BLAMED_FACTOR or moments.n_features == 1 and not fit_intercept:
        return []
    spread = np.sqrt(moments.variance_x)
    ratio = np.divide(moments.mean_x, spread, out=np.zeros_like(spread), where=spread > 0)
    return _worst_first(column_names(moments.feature_names, moments.n_features), "offset", ratio, (1.0 + ratio**2) ** 2)


def _collinearity(path: GradientPath) -> list[Blame]:
    """Columns of a standardised descent that others determine, each group of columns once."""
    p, spectrum = path.moments.n_features, path.spectrum
    if path.moments.n_samples <= p and not path.settings.alpha:  # then any column is determined by the others
        return []
    reached = spectrum.eigenvalues > 0
    vectors, h = spectrum.vectors[:p, reached], spectrum.eigenvalues[reached]
    # dependent columns have no inverse: they show in the projection on the null space, the others in the
    # pseudo-inverse, whose diagonal times that of H is the variance inflation factor
    null = np.eye(p) - vectors @ vectors.T
    inverse = (vectors / h) @ vectors.T
    moments = path.moments
    empty = (moments.variance_x == 0) & (path.settings.fit_intercept | (moments.mean_x == 0))
    exact = (null.diagonal() > np.sqrt(EPS)) & ~empty
    inflation = np.where(exact, np.inf, inverse.diagonal() * ((vectors * h) @ vectors.T).diagonal())
    inflation[empty] = 0.0
    names, found, seen = column_names(path.moments.feature_names, path.moments.n_features), [], set()
    for j in np.argsort(-inflation, kind="stable"):
        if inflation[j] < SMALLEST_BLAMED_FACTOR:
            break
        shared = null if exact[j] else inverse
        others = (exact if exact[j] else ~empty) & (np.arange(p) != j)
        if not others.any():
            continue
        together = np.zeros(p)  # partial correlations, but for a factor of column j
        together[others] = np.abs(shared[j, others]) / np.sqrt(shared.diagonal()[others])
        partners = [i for i in np.argsort(-together, kind="stable") if together[i] >= SMALLEST_PARTNER * together.max()]
        # each member of a group would name the same one again
        group = frozenset([int(j), *map(int, partners)])
        if group not in seen:
            seen.add(group)
            found.append(Blame((names[j], *(names[i] for i in partners)), "collinearity", float(inflation[j])))
    return found
