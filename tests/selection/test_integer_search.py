"""The best integer against a look at every one of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact import EPS
from fssgd import GradientPath, LinearRegressorGDCV, Moments
from fssgd._descent.settings import Settings
from fssgd._path.error_curve import ErrorCurve
from fssgd._selection.integer_search import SMALLEST_DIVISOR, best_step, first_within, lowest_ratio
from fssgd._selection.scores import GcvScore, MeanError
from strategies import CI

LAST = 2500


@st.composite
def scores(draw, kinds=("gcv", "folds")):
    """Scores of random problems: ill-conditioned, wide, far from the origin, with swinging steps and penalties."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, p = draw(st.integers(6, 50)), draw(st.integers(1, 20))
    X = rng.normal(size=(n, p)) * np.logspace(0, -draw(st.integers(0, 4)), p)
    if draw(st.booleans()):
        X = X @ rng.normal(size=(p, p)) + draw(st.sampled_from([0.0, 10.0]))
    y = X @ rng.normal(size=(p, 1)) + rng.normal(size=(n, 1)) * 10.0 ** draw(st.integers(-2, 1))
    y = y + draw(st.sampled_from([0.0, 1e6]))
    weight = rng.integers(1, 4, size=n).astype(float) if draw(st.booleans()) else None
    standardize, alpha = draw(st.booleans()), draw(st.sampled_from([0.0, 0.0, 1e-3, 0.1]))
    settings = Settings("auto", standardize, draw(st.booleans()), alpha)
    path = GradientPath.of(Moments.of_rows(X, y, weight), settings)
    ratio = draw(st.sampled_from([0.1, 1.0, 1.0, 1.5, 1.97]))
    settings = Settings(ratio * path.learning_rate, standardize, settings.fit_intercept, alpha)
    if draw(st.sampled_from(kinds)) == "gcv":
        path = GradientPath.of(path.moments, settings)
        return GcvScore(path, ErrorCurve.of_training(path, LAST))
    curves = []
    for part in np.array_split(rng.permutation(n), draw(st.integers(1, 4)) + 1):
        rest = np.setdiff1d(np.arange(n), part)
        train, test = (Moments.of_rows(X[i], y[i], None if weight is None else weight[i]) for i in (rest, part))
        curves.append(ErrorCurve.of(GradientPath.of(train, settings), test, LAST))
    return MeanError(curves)


def every_ratio(score):
    """Numerator and divisor at 1..LAST (or as far as an unstable descent is followed)."""
    last = int(min(LAST, score.reach))
    ks = np.arange(1.0, last + 1)
    value, divisor = np.empty(last), np.empty(last)
    for odd in (True, False):
        chosen = ks[(ks % 2 == 1) == odd]
        if len(chosen):
            seen = score.bounds(np.column_stack([chosen, chosen]), odd)
            value[chosen.astype(int) - 1], divisor[chosen.astype(int) - 1] = seen.value[:, 0], seen.divisor[:, 0]
    return value, divisor


@given(scores())
@CI
@pytest.mark.slow
def test_the_lowest_ratio_is_that_of_all_integers(score):
    value, divisor = every_ratio(score)
    with np.errstate(divide="ignore"):
        ratios = np.maximum(value, score.rounding) / divisor
    ratios = ratios[divisor > SMALLEST_DIVISOR]
    found, at = lowest_ratio(score, len(value))
    assert found == np.inf or found == pytest.approx(max(value[at - 1], score.rounding) / divisor[at - 1], rel=1e-9)
    if not len(ratios):
        assert found == np.inf
        return
    k = int(np.argmin(ratios))
    slack = 4 * score.rounding / divisor[divisor > SMALLEST_DIVISOR][k]
    assert ratios[k] * (1 - 1e-13) <= found <= ratios[k] * (1 + 1e-13) + slack


@given(scores(), st.sampled_from([0.0, 1e-6, 0.1, 10.0]))
@CI
@pytest.mark.slow
def test_the_first_within_a_margin_is_the_first_of_all_integers(score, margin):
    value, divisor = every_ratio(score)
    lowest, _ = lowest_ratio(score, len(value))
    if lowest == np.inf:
        return
    margin = margin * lowest
    found = first_within(score, len(value), lowest, margin)
    excess = value - lowest * divisor - margin
    blur = 1e-13 * (value + lowest * divisor)
    assert excess[found - 1] <= score.rounding + blur[found - 1]
    assert (excess[: found - 1] > score.rounding - blur[: found - 1]).all()
    if not margin:
        assert best_step(score, len(value)) == found


@given(scores(), st.floats(1, LAST - 60), st.integers(1, 25))
@CI
@pytest.mark.slow
def test_bounds_hold_at_every_step_between_knots(score, start, pairs):
    """N - r D does not dip below the chord by more than the bound says, for r = 0 and any other."""
    low = int(start)
    high = min(low + 2 * pairs, int(min(LAST, score.reach)))
    high -= (high - low) % 2
    if high <= low:
        return
    seen = score.bounds(np.array([[low, high]], float), bool(low % 2))
    value, divisor = every_ratio(score)
    ks = np.arange(low, high + 1, 2 if score.alternates else 1)
    for ratio in (0.0, 0.5 * value[low - 1], 3.0 * value[low - 1]):
        excess = (value - ratio * divisor)[ks - 1]
        second_derivative_bound = max(
            seen.second_derivative_bound[0, 0] - ratio * seen.divisor_second_derivative_bound[0, 0], 0.0
        )
        floor = min(excess[0], excess[-1]) - second_derivative_bound * (high - low) ** 2 / 8
        size = np.abs(value[ks - 1]).max() + ratio * divisor[ks - 1].max()
        assert excess.min() >= floor - 1e-12 * size - score.rounding


def test_few_scores_are_evaluated():
    """The work grows with the logarithm of max_iter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10)) * np.logspace(0, -3, 10)
    path = GradientPath.from_arrays(X, X.sum(axis=1) + 0.1 * rng.normal(size=60), standardize=False)
    looked = {}
    for last in (10**4, 10**12):
        score = GcvScore(path, ErrorCurve.of_training(path, last))

        class Counting:
            rounding, alternates, count = score.rounding, score.alternates, 0

            def bounds(self, knots, odd, score=score):
                self.count += knots.size
                return score.bounds(knots, odd)

        counting = Counting()
        lowest_ratio(counting, last)
        looked[last] = counting.count
    assert looked[10**4] < 1000
    assert looked[10**12] < 2000


def test_a_minimum_far_out_and_one_at_the_end():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 5)) * [1.0, 1.0, 1e-2, 1e-3, 1e-4]
    y = X @ [1.0, 1.0, 100.0, 1000.0, 0.0] + rng.normal(size=200)
    model = LinearRegressorGDCV(standardize=False, max_iter=2 * 10**9).fit(X, y)
    near = np.unique(np.clip(model.n_iter_ + np.arange(-1000, 1001), 1, None))
    scores = model.path_.gcv(near)
    assert model.n_iter_ > 10**6
    assert model.best_score_ <= scores.min() * (1 + 100 * EPS)
    assert model.best_score_ <= model.path_.gcv(np.geomspace(1, 2e9, 5000).astype(np.int64)).min() * (1 + 1e-12)
    stopped = LinearRegressorGDCV(standardize=False, max_iter=1000).fit(X, y)
    assert stopped.n_iter_ == 1000


@pytest.mark.parametrize("last", [1, 2, 3])
@pytest.mark.parametrize("ratio", [0.5, 1.9])
def test_short_ranges(last, ratio):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    rate = ratio * GradientPath.from_arrays(X, y).learning_rate
    model = LinearRegressorGDCV(learning_rate=rate, max_iter=last).fit(X, y)
    assert model.n_iter_ == 1 + np.argmin(model.path_.gcv(np.arange(1, last + 1)))
