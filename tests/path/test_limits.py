"""Where a descent converges to: penalised, ill-conditioned and collinear problems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from fssgd import GradientPath, LinearRegressorGD, Moments
from helpers import column, fitted_values


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("standardize", "expected"), [(False, [2.7333333, 10.8]), (True, [2.05, 12.85])])
def test_the_intercept_is_not_penalised(model, standardize, expected, offset):
    """Only W is, in the coordinates of the descent; a penalised intercept gives W = 4.8933, b = 2.16."""
    X, y = column(1, 2, 3, 4, 5), np.add([12, 14, 19, 21, 29], offset)
    fitted = model(alpha=1.0, standardize=standardize, tol=1e-12).fit(X, y)
    assert fitted.converged_
    assert_allclose([fitted.coef_[0], fitted.intercept_ - offset], expected, rtol=2e-8 + 1e-14 * offset)  # eight digits
    penalised = ((fitted.predict(X) - y) ** 2).mean() + fitted.scaled_coef_ @ fitted.scaled_coef_
    assert fitted.loss_ == pytest.approx(penalised, rel=1e-9)


def cars():
    year = np.arange(1990.0, 2021)
    mileage = 200_000 - 6000 * (year - 1990) + 1000 * np.sin(year)
    return np.column_stack([year, mileage]), 1000 + 500 * (year - 1990) - 0.02 * mileage


@pytest.mark.parametrize("standardize", [True, False])
def test_the_limit_of_nearly_collinear_columns_of_different_units(standardize):
    X, y = cars()
    path = GradientPath.from_arrays(X, y, standardize=standardize)
    assert_allclose([*path.coef(np.inf), path.intercept(np.inf)], [500, -0.02, -994_000], rtol=1e-8)
    fitted = LinearRegressorGD(max_iter=np.inf, tol=None, standardize=standardize).fit(X, y)
    assert_allclose(fitted_values(fitted), [500, -0.02, -994_000], rtol=1e-8)
    assert fitted.n_iter_ == np.inf


@pytest.mark.steps(100_000)
@pytest.mark.slow
def test_a_condition_number_of_23266_needs_more_than_100000_steps(model):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=100000 .* condition number is 23265\.7\b"):
        fitted = model().fit(*cars())
    assert_allclose(fitted.coef_, [497.416, -0.020431], rtol=2e-5)  # six and five digits given
    assert not fitted.converged_
    assert fitted.n_iter_ == 100_000


@pytest.mark.parametrize("e", [1e-8, 1e-9, 1e-5])
def test_the_limit_where_the_gram_matrix_in_float64_is_singular(e):
    """The condition number of X is up to 1.4e9, and that of its Gram matrix, the square, beyond 1 / eps."""
    X, y = np.array([[1, 1], [e, 0], [0, e]]), np.array([2, 2 * e, 0])
    settings = {"standardize": False, "fit_intercept": False}
    digits = 10 * np.finfo(float).eps * np.sqrt(2) / e  # of a QR factorisation
    assert_allclose(GradientPath.from_arrays(X, y, **settings).coef(np.inf), [2, 0], atol=digits)
    assert_allclose(LinearRegressorGD(max_iter=np.inf, tol=None, **settings).fit(X, y).coef_, [2, 0], atol=digits)
    moments = Moments.from_arrays(X[:1], y[:1], accurate=True) + Moments.from_arrays(X[1:], y[1:], accurate=True)
    assert_allclose(GradientPath.from_moments(moments, **settings).coef(np.inf), [2, 0], atol=10 * digits)


@pytest.mark.parametrize(
    ("factors", "standardize", "expected"),
    [
        ([1, 1], True, [0.5, 0.5]),
        ([1, 10], True, [0.5, 0.05]),
        ([1, -1, 1, 1], True, [0.25, -0.25, 0.25, 0.25]),
        ([1, 1], False, [0.5, 0.5]),
        ([1, 3], False, [0.1, 0.3]),
    ],
)
@pytest.mark.parametrize("shift", [0.0, 2.5])
def test_collinear_columns_converge_to_the_minimum_norm(model, factors, standardize, expected, shift):
    """The minimum is that in the coordinates of the descent."""
    x = np.arange(6.0) - shift
    X = x[:, None] * factors
    fitted = model(standardize=standardize, tol=1e-12).fit(X, x)
    assert fitted.converged_
    assert_allclose(fitted.coef_, expected, rtol=1e-8)
    assert_allclose(fitted.predict(X), x, atol=1e-8)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("factor", [1.0, 10.0, 1 / 3])
def test_the_limit_of_collinear_columns_has_the_minimum_norm(standardize, factor):
    x = np.arange(6.0)
    path = GradientPath.from_arrays(np.column_stack([x, factor * x]), x, standardize=standardize)
    expected = [0.5, 0.5 / factor] if standardize else np.array([1, factor]) / (1 + factor**2)
    assert_allclose(path.coef(np.inf), expected, rtol=1e-12)
    assert path.intercept(np.inf) == pytest.approx(0, abs=1e-12)
