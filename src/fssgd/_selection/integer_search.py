"""The best integer number of steps, exactly: branch and bound on a smooth score.

A score is a ratio N(k) / D(k), infinite where D is 0 to rounding: a generalised cross-validation score, or an error
with D = 1. Some k of an interval beats the best ratio r so far only if ``G = N - r D`` is negative there. Between two
knots a < b a function lies above its chord less ``max G'' (b - a)^2 / 8``, so that

    min G >= min(G(a), G(b)) - max(0, max N'' - r min D'') (b - a)^2 / 8,

and an interval in which this is not negative is done with. The others are cut in four. As an interval shrinks its
bounds on N'' and D'' become their values, so near a minimum k* an interval at distance d is done with once its length
is about d: the number of evaluations grows with log(max_iter), not with max_iter.

Where a factor ``1 - eta h`` is negative the score is smooth in k over the even and over the odd k, not over both: each
are searched on their own.

*Exactly* is to the rounding of the score: of the k that cannot be told from the best, the smallest is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

CUTS = 4
FIRST_KNOT_RATIO = 1.5
EQUAL_WITHIN = 8.0 * float(np.finfo(np.float64).eps)  # relative difference of scores that are equal
SMALLEST_DIVISOR = 1e-16  # a divisor that is 0 to rounding: (1 - df / n)^2 with no residual left
INTERVALS_AT_ONCE = 1024  # intervals looked at in one go


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is known of a score at and between knots.

    Parameters
    ----------
    value, divisor : ndarray of shape (n_rows, n_knots)
        N and D.
    second_derivative_bound, divisor_second_derivative_bound : ndarray of shape (n_rows, n_knots - 1)
        At least the largest N'', and at most the smallest D'', between neighbours.
    """

    value: Array
    divisor: Array
    second_derivative_bound: Array
    divisor_second_derivative_bound: Array


class Score(Protocol):
    """What can be searched."""

    @property
    def rounding(self) -> float:
        """How far apart two values N may lie and still be equal."""

    @property
    def alternates(self) -> bool:
        """Whether even and odd k have to be told apart."""

    def bounds(self, knots: Array, odd: bool) -> Bounds:
        """Look at rows of ascending knots, of shape (n_rows, n_knots); ``odd`` if all of them are."""


def best_step(score: Score, last: int) -> int | None:
    """Return the smallest integer k in [1, last] that is as good as any, to rounding; None if no score is finite."""
    ratio, k = lowest_ratio(score, last)
    return None if ratio == np.inf else first_within(score, k, ratio)


def lowest_ratio(score: Score, last: int) -> tuple[float, int]:
    """Return the smallest N(k) / D(k) over the integers k in [1, last], and one k that has it.

    N below its rounding counts as that much. Without a finite ratio, inf and ``last``.
    """
    best, at = np.inf, last
    for odd, stride, knots in _lattices(score, last):
        pending = [knots]
        while pending:
            knots = pending.pop()
            bounds = score.bounds(knots, odd)
            ratio = np.full(knots.shape, np.inf)
            counts = bounds.divisor > SMALLEST_DIVISOR
            np.divide(np.maximum(bounds.value, score.rounding), bounds.divisor, out=ratio, where=counts)
            lowest = int(np.argmin(ratio))
            if ratio.flat[lowest] < best:
                best, at = float(ratio.flat[lowest]), int(knots.flat[lowest])
            blur = score.rounding + EQUAL_WITHIN * best * np.minimum(bounds.divisor[:, :-1], bounds.divisor[:, 1:])
            pending += _cut(knots, stride, _floor(bounds, knots, best) < -blur)
    return best, at


def first_within(score: Score, last: int, ratio: float, margin: float = 0.0) -> int | None:
    """Return the smallest integer k in [1, last] with ``N(k) <= ratio D(k) + margin``, to rounding; None if none is."""
    found, margin = np.inf, margin + score.rounding
    for odd, stride, knots in _lattices(score, last):
        pending = [knots]
        while pending:
            knots = pending.pop()
            bounds = score.bounds(knots, odd)
            enough = margin + EQUAL_WITHIN * ratio * bounds.divisor
            hits = (bounds.value - ratio * bounds.divisor <= enough) & (bounds.divisor > SMALLEST_DIVISOR)
            found = min(found, float(np.min(knots, where=hits, initial=np.inf)))
            open_still = _floor(bounds, knots, ratio) <= np.maximum(enough[:, :-1], enough[:, 1:])
            pending += _cut(knots, stride, open_still & (knots[:, :-1] < found))
    return None if found == np.inf else int(found)


def _lattices(score: Score, last: int) -> Iterator[tuple[bool, int, Array]]:
    """Yield parity, stride and first knots of each set of k on which the score is smooth."""
    steps = np.floor(FIRST_KNOT_RATIO ** np.arange(0.0, np.log(last) / np.log(FIRST_KNOT_RATIO) + 1.0))
    if not score.alternates:
        yield False, 1, np.unique(np.append(np.minimum(steps, last), last))[None]
        return
    for first in (1, 2)[: min(last, 2)]:
        end = last - (last - first) % 2
        knots = np.minimum(steps - (steps - first) % 2, end)
        yield bool(first % 2), 2, np.unique(np.append(np.maximum(knots, first), end))[None]


def _floor(bounds: Bounds, knots: Array, ratio: float) -> Array:
    """Return a lower bound of N - ratio D over each interval; -inf where nothing is known."""
    with np.errstate(invalid="ignore", over="ignore"):  # the ratio may be inf
        excess = bounds.value - ratio * bounds.divisor
        second_derivative_bound = np.maximum(
            bounds.second_derivative_bound - ratio * bounds.divisor_second_derivative_bound, 0.0
        )
        floor = np.minimum(excess[:, :-1], excess[:, 1:]) - second_derivative_bound * np.diff(knots) ** 2 / 8.0
    return np.where(np.isnan(floor), -np.inf, floor)


def _cut(knots: Array, stride: int, kept: Flags) -> list[Array]:
    """Cut the kept intervals that have a k inside in up to four; a row each, in parts of bounded size."""
    low, width = knots[:, :-1], np.diff(knots)
    kept = kept & (width > stride)
    low, width = low[kept], width[kept]
    if not len(low):
        return []
    inner = stride * np.floor(np.arange(CUTS + 1) / CUTS * (width[:, None] / stride))
    rows = low[:, None] + inner
    return [rows[i : i + INTERVALS_AT_ONCE] for i in range(0, len(rows), INTERVALS_AT_ONCE)]
