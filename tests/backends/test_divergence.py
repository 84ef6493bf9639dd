"""Steps above, at and just below the largest stable one, on every backend."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from fssgd import DivergenceError, GradientPath, LinearRegressorGD, Moments
from helpers import column, fitted_values


@pytest.mark.parametrize("eta", [0.01, 0.5, 1e100, 1e308])
@pytest.mark.parametrize("tol", [1e-8, None])
def test_divergence_names_the_step_and_the_largest_stable_one(model, eta, tol):
    """On 0 to 99, unscaled, 0.01 is 33 times too large; no warning of an overflow leaks (warnings are errors here)."""
    x = np.arange(100.0)
    numbers = rf"learning_rate={re.escape(f'{eta:g}')} is above 0\.000304484\b"
    with pytest.raises(DivergenceError, match=numbers) as caught:
        model(learning_rate=eta, standardize=False, tol=tol).fit(x[:, None], 0.1 * x + 0.3)
    error = caught.value
    assert error.n_iter <= 3
    assert error.learning_rate == eta
    assert error.max_learning_rate == pytest.approx(3.04484e-4, rel=5e-6)  # six digits given
    assert error.feature == "x0"
    assert "standardize=True" in str(error)


def test_losses_of_a_divergent_descent(losses):
    x = np.arange(100.0)
    curve = losses(x[:, None], 0.1 * x + 0.3, learning_rate=0.01, standardize=False)
    assert_allclose(curve[:2], [35.895, 1.50095e5], rtol=5e-6)
    assert_allclose(curve[2:3], [6.28019e8][: len(curve) - 2], rtol=5e-6)


def test_losses_of_a_divergent_descent_in_closed_form():
    x = np.arange(100.0)
    path = GradientPath.from_arrays(x[:, None], 0.1 * x + 0.3, learning_rate=0.01, standardize=False)
    assert_allclose(path.loss([0, 1, 2]), [35.895, 1.50095e5, 6.28019e8], rtol=5e-6)
    assert path.loss(2) / path.loss(1) == pytest.approx(4184.14, rel=2e-6)
    assert path.eigenvalues.max() / 2 == pytest.approx(3284.25, rel=2e-6)
    assert path.loss(10**6) == np.inf  # it overflows, and never turns into NaN


LONELY = column(1, 2, 3, 4, 35), np.array([0.0, -1, -2, -3, -34])


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_step_below_the_largest_stable_one_converges(model, share):
    X, y = LONELY
    fitted = model(learning_rate=share * 3.97893e-3, standardize=False, tol=1e-10).fit(X, y)
    assert fitted.converged_
    # |theta - theta*| <= tol G / h_min = 1e-10 * 340 / 1.353
    assert_allclose([fitted.coef_[0], fitted.intercept_], [-1, 1], atol=3e-8)


@pytest.mark.parametrize("tiles", [1, 2, 40])
def test_the_largest_stable_step_does_not_depend_on_the_number_of_rows(model, losses, tiles):
    """With a sum of squares instead of their mean, 40 copies of the rows would need a step 40 times smaller."""
    X, y = LONELY
    settings = {"learning_rate": 0.003, "standardize": False, "max_iter": 50, "tol": None}
    tiled = np.tile(X, (tiles, 1)), np.tile(y, tiles)
    assert_allclose(losses(*tiled, **settings), losses(X, y, **settings), rtol=1e-9)
    with pytest.raises(DivergenceError, match=r"is above 0\.00397893, the largest stable step") as caught:
        model(learning_rate=0.00398, standardize=False).fit(*tiled)
    assert caught.value.max_learning_rate == pytest.approx(3.97893e-3, rel=2e-6)


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_slow_divergence_is_caught_while_the_loss_is_small(model, losses, size):
    """Columns of -10.5 and 10.5 at 0.01: the loss grows by a factor of 1.45 a step only."""
    X = np.repeat([[-10.5], [10.5]], 50, axis=0)
    y = size * X[:, 0]
    with pytest.raises(DivergenceError, match=r"learning_rate=0\.01 is above 0\.00907029") as caught:
        model(learning_rate=0.01, standardize=False).fit(X, y)
    assert caught.value.n_iter <= 2
    curve = losses(X, y, learning_rate=0.01, standardize=False)
    assert_allclose(curve[:2], size**2 * np.array([110.25, 160.08575625]), rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "expected_losses", "expected_norms"),
    [
        ({"learning_rate": 0.25, "standardize": False}, [37, 36.25, 36], [24.083, 24.021, 24]),
        ({"learning_rate": 1.0}, [37, 37, 37], [12.1655, 12.1655, 12.1655]),
    ],
)
def test_the_largest_stable_step_neither_diverges_nor_converges(model, settings, expected_losses, expected_norms):
    """y = 3x + 1: raw, only the slope oscillates; standardised, W and b both do."""
    X, y = column(-2, 2, -2, 2), np.array([-5.0, 7, -5, 7])
    for k, loss, norm in zip([0, 1, 1000], expected_losses, expected_norms, strict=True):
        with pytest.warns(ConvergenceWarning, match="is exactly the largest stable step") as caught:
            fitted = model(max_iter=k, **settings).fit(X, y)
        assert not fitted.converged_
        assert fitted.n_iter_ == k
        assert fitted.loss_ == pytest.approx(loss, rel=1e-12)
        reached = re.search(r"gradient norm of ([\d.]+),", str(caught[0].message))
        assert float(reached[1]) == pytest.approx(norm, rel=3e-5)  # five digits given


@pytest.mark.parametrize(("size", "n_pairs"), [(1, 1), (1, 3), (2, 5), (3, 1), (3, 3), (10.5, 50)])
@pytest.mark.parametrize("standardize", [True, False])
def test_rounding_at_the_largest_stable_step_is_no_divergence(model, size, n_pairs, standardize):
    x = np.tile([-size, size], n_pairs)
    eta = 1.0 if standardize else 1 / size**2  # 2 / L
    with pytest.warns(ConvergenceWarning, match="is exactly the largest stable step"):
        fitted = model(learning_rate=eta, standardize=standardize, max_iter=1000).fit(x[:, None], 3 * x + 1)
    assert fitted.n_iter_ == 1000
    assert fitted.loss_ == pytest.approx(9 * size**2 + (standardize or size == 1), rel=1e-9)


def cars():
    year = np.arange(1990.0, 2021)
    mileage = 200_000 - 6000 * (year - 1990) + 1000 * np.sin(year)
    return np.column_stack([year, mileage]), 1000 + 500 * (year - 1990) - 0.02 * mileage


EXACT = {
    "line": (np.arange(100.0)[:, None], 0.1 * np.arange(100.0) + 0.3),
    "lonely": (column(1, 2, 3, 4, 35), np.array([0.0, -1, -2, -3, -34])),
    "plane": (np.array([[0, 2e3], [1, 1e3], [2, 3e3], [3, 5e3]]), np.array([4.002, 5.001, 6.003, 7.005]) + 1e6),
    "collinear": (np.outer(np.arange(6.0), [1, 1, 3]), np.arange(6.0)),
    "cars": cars(),
    "zero": (column(1, 2, 5), np.zeros(3)),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("share", [1.0, 1.9, 1.999])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.slow
def test_rounding_of_an_exact_fit_is_no_divergence(model, step_budget, name, share, standardize, dtype):
    """The loss of an exact fit fluctuates around 1e-30 by rounding, and may rise by a large part of itself."""
    X, y = EXACT[name]
    X = X.astype(dtype)
    largest = GradientPath.from_moments(Moments.from_arrays(X, y), standardize=standardize).eigenvalues.max()
    steps = int(min(20_000, step_budget / 20))
    fitted = model(learning_rate=share / largest, standardize=standardize, max_iter=steps, tol=None).fit(X, y)
    assert np.isfinite(fitted_values(fitted)).all()
    assert fitted.loss_ <= fitted.loss_curve_[0]


def first_risen(backend, X, y, **settings):
    with pytest.raises(DivergenceError, match="by step") as caught:
        LinearRegressorGD(backend=backend, max_iter=100_000, **settings).fit(X, y)
    return caught.value.n_iter


@pytest.mark.parametrize("name", ["line", "lonely", "plane", "collinear", "cars"])
@pytest.mark.parametrize("share", [2.001, 2.1])
@pytest.mark.parametrize("standardize", [True, False])
def test_every_backend_stops_an_unstable_descent_at_the_same_step(backend, name, share, standardize):
    X, y = EXACT[name]
    largest = GradientPath.from_arrays(X, y, standardize=standardize).eigenvalues.max()
    settings = {"learning_rate": share / largest, "standardize": standardize}
    stopped = first_risen(backend, X, y, **settings)
    assert abs(stopped - first_risen("spectral", X, y, **settings)) <= 3
