"""Iterate k in closed form, against the same descent in 80-digit arithmetic."""

import numpy as np
import pytest

from exact import EPS, Descent, error, polynomial_data, question_data, seed
from fssgd import GradientPath, LinearRegressorGD, Moments


def of(X, y, weight=None, *, accurate=True, **settings):
    return GradientPath.from_moments(Moments.from_arrays(X, y, weight, accurate=accurate), **settings)


def check(path, right, k, tolerance):
    """theta_k in the user's units, F and the gradient norm to a relative tolerance."""
    theta = right.theta(k, path.learning_rate)
    coef, intercept = right.unscale(theta)
    found, expected = np.append(np.ravel(path.coef(k)), path.intercept(k)), np.append(coef.T.ravel(), intercept)
    rounding = 4 * EPS * float(np.abs(right.y).max())  # of b, which is counted from the mean of y
    assert np.linalg.norm(found - expected) <= tolerance * np.linalg.norm(expected) + rounding
    assert path.loss(k) == pytest.approx(right.loss(theta), rel=max(tolerance, 1e-14))
    first = right.gradient_norm(right.theta(0, 1.0))
    assert path.gradient_norm(k) == pytest.approx(right.gradient_norm(theta), rel=1e-6, abs=1e-9 * first)


def amplification(path, k):
    """What multiplies eps n_parameters in theta_k: min(eta k L, cond H), or its root on the accurate route."""
    most = min(path.learning_rate * k * path.spectrum.largest, path.spectrum.condition_number)
    return 10.0 + (np.sqrt(most) if path.spectrum.accurate else most)


STEPS = [0, 1, 2, 7, 10**3, 10**5, 10**6, 2 * 10**9]


@pytest.mark.parametrize("k", STEPS)
@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("data", ["question", "question standardised", "polynomial"])
def test_every_iterate_is_the_one_of_exact_arithmetic(data, accurate, k):
    X, y = polynomial_data() if data == "polynomial" else question_data()
    X, y = (X, y) if data == "polynomial" else (X[::5], y[::5])
    standardize = data != "question"
    path = of(X, y, accurate=accurate, standardize=standardize, learning_rate="auto" if standardize else 1e-4)
    right = Descent(X, y, standardize=standardize)
    check(path, right, k, 2 * EPS * amplification(path, k))


@pytest.mark.parametrize("k", [10**3, 10**5, 10**6, 10**7, 10**8, 2 * 10**9, 10**12, 10**15])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.slow
def test_a_fit_keeps_ten_digits_however_many_steps(standardize, k):
    """It reads the data again, for a QR, once the scatter matrix would not do."""
    X, y = polynomial_data()
    model = LinearRegressorGD(max_iter=k, tol=None, standardize=standardize).fit(X, y)
    right = Descent(X, y, standardize=standardize)
    coef, intercept = right.unscale(right.theta(k, model.learning_rate_))
    assert error(np.append(model.coef_, model.intercept_), np.append(coef, intercept)) <= 1e-10
    assert model.loss_ == pytest.approx(right.loss(right.theta(k, model.learning_rate_)), rel=1e-8)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("name", ["question_1e5_steps", "question_1e3_steps", "answer2_standardized_1e2_steps"])
def test_experiments_of_the_question(name, accurate):
    right = seed(name)
    X, y = question_data()
    settings = {"learning_rate": right["learning_rate"], "standardize": right["standardize"]}
    path, k = of(X, y, accurate=accurate, **settings), right["max_iter"]
    found = [path.coef(k)[0], path.intercept(k), path.loss(k), path.loss(0)]
    expected = [right["coef"], right["intercept"], right["loss"], right["initial_loss"]]
    tolerance = 2 * EPS * amplification(path, k)
    np.testing.assert_allclose(found, expected, rtol=tolerance + 10 * EPS * 1000**0.5)  # a sum of 1000 rows
    np.testing.assert_allclose(np.sort(path.eigenvalues), right["hessian_eigenvalues"], rtol=1e-12)
    assert 2 / path.spectrum.largest == pytest.approx(right["max_stable_learning_rate"], rel=1e-13)


def test_the_first_iterate_is_the_start_exactly():
    X, y = polynomial_data()
    for rate in ("auto", 1.9 / 15, 100.0):
        path = of(X, y, learning_rate=rate)
        np.testing.assert_array_equal(path.coef(0), np.zeros(8))
        np.testing.assert_array_equal(path.position(0), path.spectrum.start)
        assert abs(path.intercept(0)) <= 4 * EPS * np.abs(y).max()


@pytest.mark.parametrize("alpha", [0.0, 0.25])
@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_limit_is_the_minimiser(alpha, accurate, fit_intercept, standardize):
    X, y = polynomial_data()
    X, weight = X[:, :3], np.linspace(0, 2, len(y))
    settings = {"alpha": alpha, "fit_intercept": fit_intercept, "standardize": standardize}
    path, right = of(X, y, weight, accurate=accurate, **settings), Descent(X, y, weight, **settings)
    coef, intercept = right.unscale(right.limit())
    tolerance = 5 * EPS * amplification(path, np.inf)
    assert error(path.coef(np.inf), coef[:, 0]) <= tolerance
    assert path.intercept(np.inf) == pytest.approx(intercept[0], abs=tolerance * np.abs(coef).sum())
    assert path.loss(np.inf) == pytest.approx(right.loss(right.limit()), rel=1e-9)
    assert path.gradient_norm(np.inf) == 0.0


PAIR = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]) @ np.diag([1.0, 0.5])  # h = 2, 0.5, and 2 for b
TARGET = np.array([1.0, 4.0, 2.0, 9.0])


@pytest.mark.parametrize("k", [1, 2, 3, 10, 2**53 + 1, 2**60, 2**60 + 1])
@pytest.mark.parametrize(("rate", "x"), [(0.5, 1.0), (1.0, 2.0), (0.75, 1.5), (0.25, 0.5)])
def test_exact_landmarks_of_the_factor(rate, x, k):
    """eta h of the steep modes is 1 (one step lands), 2 (it swings for ever, by the parity of k), or between."""
    path = of(PAIR, TARGET, learning_rate=rate, standardize=False)
    assert path.learning_rate * path.spectrum.largest == x
    right = Descent(PAIR, TARGET, standardize=False)
    check(path, right, k, 20 * EPS)
    assert path.at_limit == (x == 2.0)
    assert path.stable


def test_a_step_at_the_limit_swings_and_has_no_limit():
    path = of(PAIR, TARGET, learning_rate=1.0, standardize=False)
    assert path.intercept(2**60) == pytest.approx(0.0, abs=4 * EPS)
    assert path.intercept(2**60 + 1) == pytest.approx(8.0, rel=4 * EPS)
    assert path.steps_to(1e-6) == np.inf
    assert path.loss(np.inf) == pytest.approx(path.loss(2**60), rel=4 * EPS)
    with pytest.raises(
        ValueError, match=r"no limit at k = inf: learning_rate=1 is not below 2 / L = 1\. Use a smaller"
    ):
        path.coef(np.inf)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("nudge", [-EPS, 0.0, EPS])
def test_within_rounding_of_the_limit_is_at_the_limit(seed, nudge):
    """2 / L is itself rounded: the steep mode must neither die out nor grow for that, however many steps."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20, 3)) + 1.0, rng.normal(size=20)
    L = of(X, y, standardize=False).spectrum.largest
    path = of(X, y, standardize=False, learning_rate=2.0 / L * (1.0 + nudge))
    assert path.at_limit
    assert path.stable
    swing = path.coef([10**8, 2**70]) - path.coef([10**8 + 1, 2**70 + 1])
    assert np.linalg.norm(swing[0]) > 1e-3
    np.testing.assert_allclose(swing[0], swing[1], rtol=1e-6)
    assert path.loss(2**70) == pytest.approx(path.loss(10**8), rel=1e-9)
    assert path.steps_to(1e-6) == np.inf


@pytest.mark.parametrize("k", [1, 2, 3, 50, 100])
def test_a_step_above_the_limit_grows_as_it_should(k):
    """The relative error of (1 - eta h)^k is k eps times log|1 - eta h| plus the error of eta h itself."""
    X, y = question_data()
    path = of(X[::10], y[::10], learning_rate=2.2e-3, standardize=False)
    assert not path.stable
    check(path, Descent(X[::10], y[::10], standardize=False), k, 200 * EPS * (1 + k))


@pytest.mark.parametrize("k", [10**4, 10**30, 10**400], ids=["1e4", "1e30", "1e400"])
@pytest.mark.parametrize("standardize", [False, True])
def test_growth_overflows_to_infinity_and_never_to_nan(k, standardize):
    X, y = question_data()
    path = of(X, y, learning_rate=3.0, standardize=standardize)
    assert path.loss(k) == np.inf
    assert path.gradient_norm(k) == np.inf
    assert not np.isnan(path.coef(k)).any()
    assert not np.isnan(path.intercept(k))
    with pytest.raises(ValueError, match=r"no limit at k = inf: learning_rate=3 is not below"):
        path.intercept(np.inf)


WIDE = np.random.default_rng(3).normal(size=(4, 6)) + 1.0
WIDE_TARGET = np.random.default_rng(4).normal(size=(4, 2)) + 2.0


@pytest.mark.parametrize("k", [1, 1000, 10**7])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("started", [False, True])
def test_more_columns_than_rows(k, alpha, standardize, fit_intercept, started):
    """What the rows do not reach stays at the start, or shrinks there if there is a penalty."""
    start = np.random.default_rng(5).normal(size=(6 + fit_intercept, 2)) * started
    right = Descent(WIDE, WIDE_TARGET, standardize=standardize, fit_intercept=fit_intercept, alpha=alpha, start=start)
    coef, intercept = right.unscale(right.start)
    settings = {"standardize": standardize, "fit_intercept": fit_intercept, "alpha": alpha}
    model = LinearRegressorGD(backend="spectral", max_iter=k, tol=None, **settings)
    model.fit(WIDE, WIDE_TARGET, coef_init=coef.T, intercept_init=intercept if fit_intercept else None)
    theta = right.theta(k, model.learning_rate_)
    coef, intercept = right.unscale(theta)
    tolerance = 20 * EPS * amplification(model.path_, k)
    largest = max(np.abs(coef).max(), np.abs(start).max(), 1.0)
    np.testing.assert_allclose(model.coef_, coef.T, rtol=0, atol=tolerance * largest)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=0, atol=9 * tolerance * largest)
    assert model.loss_ == pytest.approx(right.loss(theta), rel=10 * tolerance, abs=100 * EPS)
