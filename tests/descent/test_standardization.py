"""Fits on columns of any scale, offset or none at all, and their coefficients in the user's units."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from helpers import column, fitted_values

CONVERGED = {"tol": 1e-12}  # on data of a condition number below 1e4: right to 1e-8, relative to W and b


@pytest.mark.parametrize("offset", [0, 100, -1e6])
@pytest.mark.parametrize("unit", [1, 1e-3, 1e6])
def test_the_intercept_is_in_the_users_units(model, offset, unit):
    """b = mean(y) - mean(x) W, with W in the user's units too."""
    x = unit * (np.arange(1.0, 6) + offset)
    fitted = model(**CONVERGED).fit(x[:, None], [12, 14, 19, 21, 29])
    assert fitted.coef_[0] == pytest.approx(4.1 / unit, rel=1e-9)
    assert fitted.intercept_ == pytest.approx(6.7 - 4.1 * offset, rel=1e-9)
    assert fitted.mean_[0] == pytest.approx(unit * (3 + offset), rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(unit * np.sqrt(2), rel=1e-9)


@pytest.mark.parametrize("standardize", [True, False])
def test_scaled_and_unscaled_coefficients_predict_the_same(model, standardize):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)) * [1, 2, 4] + [3, 0, -5], rng.normal(size=30)
    fitted = model(standardize=standardize, max_iter=7, tol=None).fit(X, y)
    scaled = (X - fitted.mean_) / fitted.scale_
    assert_allclose(fitted.predict(X), scaled @ fitted.scaled_coef_ + fitted.scaled_intercept_, rtol=1e-12)
    if not standardize:
        assert_allclose(fitted.mean_, np.zeros(3), atol=0)
        assert_allclose(fitted.scale_, np.ones(3), atol=0)


@pytest.mark.parametrize("constant", [14.62, 0.1, 1 / 3, -1e9 - 0.1, 1e-12, 0.0])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, np.float32])
@pytest.mark.parametrize("n_samples", [50, 4099])
def test_a_constant_column_has_scale_1(model, constant, container, n_samples):
    """The computed standard deviation of 50 rows of 14.62 is 3.6e-15 and not 0: division by it makes noise a column."""
    x = np.arange(float(n_samples))
    X = container(np.column_stack([np.full(n_samples, constant), x]))
    fitted = model(**CONVERGED).fit(X, 2 * x + 1)
    assert fitted.scale_[0] == 1
    assert fitted.mean_[0] == X[[0], :][0, 0]
    assert fitted.coef_[0] == 0
    digits = 1e-5 if X.dtype == np.float32 else 1e-9
    assert fitted.coef_[1] == pytest.approx(2, rel=digits)
    assert fitted.intercept_ == pytest.approx(1, abs=digits * n_samples)


@pytest.mark.parametrize("unit", [1e-9, 1e-30, 1e-140, 1e140])
def test_a_column_of_small_values_is_not_constant(model, unit):
    """An absolute threshold on the standard deviation takes 1e-9, 2e-9, ... for a constant."""
    fitted = model(**CONVERGED).fit(column(1, 2, 3, 4) * unit, [2, 4, 6, 8])
    assert fitted.coef_[0] == pytest.approx(2 / unit, rel=1e-9)
    assert fitted.intercept_ == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gap", [1e-9, 1e-12, 1e-15])
def test_a_column_of_nearly_equal_values_is_not_constant(model, gap, container):
    X = 1 + column(1, 2, 3, 4) * gap  # rounded, by as much as its own spread for the smallest gap
    y = 2 + 3 * (X[:, 0] - 1) / gap
    fitted = model(**CONVERGED).fit(container(X), y)
    assert fitted.scale_[0] == pytest.approx(X.std(), rel=np.finfo(float).eps / gap + 1e-12)
    assert_allclose(fitted.predict(X), y, atol=20 * np.finfo(float).eps / gap)


@pytest.mark.parametrize("constant", [5, 0, 14.62])
def test_a_constant_column_has_no_part_in_predictions_off_its_value(model, constant):
    fitted = model(**CONVERGED).fit([[constant, 0], [constant, 1], [constant, 2]], [1, 3, 5])
    assert fitted.predict([[7, 1]])[0] == pytest.approx(3, rel=1e-9)


@pytest.mark.parametrize("constants", [[1, 2], [0, 0], [0.1, -7e5, 3]])
@pytest.mark.parametrize("sparse", [False, True])
def test_several_constant_columns(model, constants, sparse):
    x = np.arange(6.0)
    X = np.column_stack([*(np.full(6, c) for c in constants), x])
    fitted = model(**CONVERGED).fit(sp.csr_array(X) if sparse else X, 2 * x + 1)
    assert_allclose(fitted.coef_, [0] * len(constants) + [2], rtol=1e-9)
    assert fitted.intercept_ == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("constant", [1.0, 2.0, -0.5])
def test_a_constant_column_shares_the_intercept_in_raw_coordinates(model, constant):
    """Raw from zeros, c W + b = 10 is split as the minimum norm has it; standardised, all of it is b."""
    x = np.array([-1.0, 0, 1, 2])
    X, y = np.column_stack([np.full(4, constant), x]), 10 + 7 * x
    fitted = model(**CONVERGED).fit(X, y)
    assert_allclose(fitted_values(fitted), [0, 7, 10], rtol=1e-9, atol=1e-12)
    raw = model(standardize=False, **CONVERGED).fit(X, y)
    share = 10 / (1 + constant**2)
    assert_allclose(fitted_values(raw), [constant * share, 7, share], rtol=1e-9)


def test_the_scale_is_the_population_standard_deviation(model):
    """ddof = 0: the sample standard deviation (ddof = 1) gives another iterate after ten steps."""
    fitted = model(learning_rate=0.1, max_iter=10, tol=None).fit(column(1, 2, 3, 4), [3, 5, 7, 9])
    assert_allclose(fitted_values(fitted), [1.7852516, 0.8926258], atol=5e-8)  # eight digits given
    assert fitted.scale_[0] == pytest.approx(np.sqrt(1.25), rel=1e-15)
    # each of W and b closes a fifth of its gap a step
    assert_allclose(fitted_values(fitted), np.array([2, 1]) * (1 - 0.8**10), rtol=1e-14)


def mean_squared_error(fitted, X, y):
    return float(((fitted.predict(X) - y) ** 2).mean())


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_columns_of_very_different_units(model, unit):
    X = np.array([[0, 2e6], [1, 1e6], [2, 3e6], [3, 5e6]]) * [1, unit]
    fitted = model().fit(X, X @ [1, 1e-6 / unit] + 4)
    assert fitted.converged_
    # tol=1e-8 leaves |W - W*| <= 1e-8 G / h_min with G about 5 and h_min 0.34, in standardised units
    assert_allclose(fitted.coef_, [1, 1e-6 / unit], rtol=1e-6)
    assert fitted.intercept_ == pytest.approx(4, rel=1e-6)
    assert mean_squared_error(fitted, X, X @ [1, 1e-6 / unit] + 4) < 1e-12
