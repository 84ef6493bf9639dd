"""Steps too small to arrive and starts far away: every search over k ends, and nothing cancels."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from exact import EPS, Descent
from fssgd import GradientPath, LinearRegressorGD, LinearRegressorGDCV, Moments, diagnose

RNG = np.random.default_rng(0)

# Loops over k have an end.


@pytest.mark.parametrize("rate", [1e-290, 1e-300, 1e-307, 5e-324])
def test_a_step_too_small_to_arrive_returns(rate):
    X = RNG.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0]
    path = GradientPath.from_arrays(X, y, learning_rate=rate)
    needed = path.steps_to(1e-8)
    assert needed == np.inf or 10**289 < needed < 10**300
    for backend in ("spectral", "numpy"):
        with pytest.warns(ConvergenceWarning, match=r"no number of them is enough|\de\+\d+ more are needed"):
            model = LinearRegressorGD(learning_rate=rate, backend=backend, max_iter=10).fit(X, y)
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-280)
    assert np.isfinite(path.coef([0, 10**300, 10**400])).all()
    assert (path.ridge_equivalent([1, 10]) > 1e280).all()
    assert LinearRegressorGDCV(learning_rate=rate, max_iter=1000, cv=3).fit(X, y).n_iter_ >= 1
    assert diagnose(X, y, learning_rate=rate).steps == path_of_raw(X, y, rate).steps_to(1e-8)


def path_of_raw(X, y, rate):
    return GradientPath.from_moments(Moments.from_arrays(X, y), learning_rate=rate, standardize=False)


@pytest.mark.parametrize("start", [1e156, 1e200, 1e300, -1e308])
def test_a_start_whose_loss_no_float_holds_is_refused(model, start):
    X = RNG.normal(size=(60, 3))
    with pytest.raises(ValueError, match=r"starts too far away: .* of which float64 cannot hold the loss"):
        model().fit(X, X @ [1.0, 2, 3], coef_init=[start] * 3)


def test_a_warm_start_can_lead_too_far_away():
    """A change of unit takes the weights along: they were for columns 1e200 times as wide."""
    X = RNG.normal(size=(60, 2))
    y = X @ [1.0, 2.0]
    model = LinearRegressorGD(warm_start=True).fit(X * 1e-100, y * 1e60)
    with pytest.raises(ValueError, match="starts too far away"):
        model.fit(X * 1e60, y)


# A start far away costs no digits of where the descent leads.


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("options", [{}, {"standardize": False}, {"fit_intercept": False}, {"alpha": 0.5}])
@pytest.mark.parametrize("shape", [(60, 3), (5, 8)])
def test_the_way_back_from_a_start_far_away_does_not_cancel(size, options, shape):
    """eps |theta_0| is left of a mode as long as the start is, |1 - eta h|^k of it; wide data keeps a null part."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=shape) + 1.0
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=len(X))
    model = LinearRegressorGD(max_iter=np.inf, tol=None, **options)
    right = model.fit(X, y).coef_
    loss = model.loss_
    far = model.fit(X, y, coef_init=[size] * shape[1])
    wide = shape[0] < shape[1] and "alpha" not in options
    if not wide:
        np.testing.assert_allclose(far.coef_, right, rtol=1e-9, atol=1e-9)
    assert abs(far.loss_ - loss) <= 1e-9 * (1 + loss) + 100 * (EPS * size) ** 2 * wide


@pytest.mark.parametrize("size", [1e9, 1e12])
@pytest.mark.parametrize("standardize", [False, True])
def test_iterates_from_far_away_are_as_exact_as_stepping(model, size, standardize):
    """Every k: of the order of eps times how far there is still to go, plus eps times the limit."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=60)
    start = [size, -size, size]
    exact = Descent(X, y, standardize=standardize)
    coef = np.array(start)[:, None]
    exact.start = exact.start + np.vstack([coef * exact.scale[:, None], exact.mean @ coef])
    for k in (1, 10, 100, 2_000):
        found = model(max_iter=k, tol=None, standardize=standardize, learning_rate=0.2).fit(X, y, coef_init=start)
        right, _ = exact.unscale(exact.theta(k, 0.2))
        left = np.abs(exact.unscale(exact.theta(k, 0.2))[0] - exact.unscale(exact.limit())[0]).max()
        away = np.abs(found.coef_[:, None] - right).max()
        assert away <= 100 * EPS * (left + np.abs(right).max()) * (1 + min(k, 100) * (found.backend_ != "spectral"))


@pytest.mark.parametrize(
    ("options", "start"), [({}, {"intercept_init": 1e12}), ({"fit_intercept": False}, {"coef_init": [1e12]})]
)
def test_a_single_coordinate_comes_back_as_well(options, start):
    """Nothing is rotated there, and the way back cancels all the same."""
    x = np.arange(1.0, 9.0)
    y = 3 * x + np.sin(x)
    model = LinearRegressorGD(max_iter=np.inf, tol=None, **options)
    right = model.fit(x[:, None], y).predict(x[:, None])
    np.testing.assert_allclose(model.fit(x[:, None], y, **start).predict(x[:, None]), right, rtol=1e-13)


def test_a_warm_start_after_a_change_of_units_arrives():
    """In grams instead of tonnes: the scaled weights of the first fit are 1e12 times those of the second."""
    rng = np.random.default_rng(10)
    X, noise = rng.normal(size=(80, 2)), rng.normal(size=80)
    y = X @ [1.0, -1.0] + noise
    model = LinearRegressorGD(warm_start=True).fit(X, 1e12 * y)
    model.fit(X, y)
    fresh = LinearRegressorGD().fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=1e-6)
    assert model.loss_ == pytest.approx(fresh.loss_, rel=1e-12)
