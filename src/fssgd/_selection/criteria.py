"""Criteria for the number of steps: each chooses one k and gives its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fssgd._path.error_curve import ErrorCurve
from fssgd._path.gradient_path import GradientPath
from fssgd._path.step_counts import StepCounts
from fssgd._selection.integer_search import best_step, first_within
from fssgd._selection.scores import GcvScore, MeanError


class Choice(NamedTuple):
    """The number of steps chosen, and its score."""

    n_iter: int
    score: float


@dataclass(frozen=True)
class LowestGcv:
    """Take the k of the lowest generalised cross-validation score.

    Parameters
    ----------
    max_iter : int
        The largest k to consider.
    """

    max_iter: int

    def choose(self, path: GradientPath) -> Choice:
        """Return the best k; raise a ValueError if the step is unstable, or no k leaves a residual."""
        if not path.stable:
            raise ValueError(
                "Generalised cross-validation counts the degrees of freedom of a descent that converges, and "
                f"learning_rate={path.learning_rate:.6g} is above 2 / L = {2.0 / path.spectrum.largest:.6g}: use a "
                "smaller step, or folds (cv=5)."
            )
        score = GcvScore(path, ErrorCurve.of_training(path, self.max_iter))
        n_iter = best_step(score, _last(self.max_iter, score.reach))
        if n_iter is None:
            raise ValueError(
                f"Generalised cross-validation cannot choose: with n_samples={path.moments.n_samples} rows, already "
                "the first step fits all of them exactly, and leaves no residual to judge by. Use a smaller "
                "learning_rate, more rows, or another criterion."
            )
        return Choice(n_iter, float(path.gcv(n_iter)))


@dataclass(frozen=True)
class LowestValidationError:
    """Take the k of the lowest mean error on the rows that folds, or one holdout, leave out.

    Parameters
    ----------
    max_iter : int
        The largest k to consider.
    one_standard_error : bool
        Take the smallest k within one standard error (over folds) of the lowest instead.
    """

    max_iter: int
    one_standard_error: bool = False

    def choose(self, errors: MeanError) -> Choice:
        """Return the best k; raise a ValueError if no k has a finite error, or one fold has no standard error."""
        n_iter = best_step(errors, _last(self.max_iter, errors.reach))
        if n_iter is None:
            raise ValueError(
                "No number of steps has a finite error on the folds: the step is unstable in one of them, or the "
                "values are too large. Use a smaller learning_rate, or another unit."
            )
        if self.one_standard_error:
            each = errors.each(StepCounts.of([n_iter]))[:, 0]
            if len(each) < 2:
                raise ValueError("one_standard_error=True needs at least two folds to estimate one: got 1.")
            bound = float(each.mean() + each.std(ddof=1) / np.sqrt(len(each)))
            n_iter = first_within(errors, n_iter, bound) or n_iter
        return Choice(n_iter, float(errors.each(StepCounts.of([n_iter])).mean()))


@dataclass(frozen=True)
class FirstAtNoise:
    """Take the first k whose mean squared error is at most that of the noise: Morozov's discrepancy principle.

    Parameters
    ----------
    max_iter : int
        The largest k to consider, which is taken if none reaches the noise.
    noise : float
        Standard deviation of the noise in each output.
    """

    max_iter: int
    noise: float

    def level(self, n_outputs: int) -> float:
        """Return the mean squared error of the noise, outputs added up."""
        return n_outputs * float(np.square(np.float64(self.noise)))

    def choose(self, path: GradientPath) -> Choice:
        """Return the first k, and the mean squared error after it."""
        curve = MeanError([ErrorCurve.of_training(path, self.max_iter)])
        last = _last(self.max_iter, curve.reach)
        n_iter = first_within(curve, last, self.level(path.moments.n_outputs)) or last
        return Choice(n_iter, float(path.squared_errors(StepCounts.of([n_iter])).sum()))


def _last(max_iter: int, reach: float) -> int:
    """Return the largest k to search: beyond ``reach`` an unstable descent has no number for its error."""
    return int(max(1, min(max_iter, reach)))
