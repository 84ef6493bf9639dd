"""Fits that continue from the last one, on the same data and on other data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from helpers import column, fitted_values

CONVERGED = {"tol": 1e-12}  # on data of a condition number below 1e4: right to 1e-8, relative to W and b


def noisy(seed=0, n_samples=60, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * rng.uniform(1, 3, n_features) + rng.uniform(-1, 1, n_features)
    return X, X @ rng.normal(size=n_features) + rng.normal(size=n_samples)


@pytest.mark.parametrize("pieces", [(20,), (10, 10), (1, 19), (7, 7, 6), (0, 20)])
def test_pieces_of_a_descent_by_warm_start_are_the_whole(model, pieces):
    X, y = column(-1, 0, 1, 2), np.array([0.0, 1, 4, 5])
    fitted = model(standardize=False, learning_rate=0.1, tol=None, warm_start=True)
    for k in pieces:
        fitted.set_params(max_iter=k).fit(X, y)
    assert_allclose(fitted_values(fitted), [1.8108814260, 1.5818265871], atol=5e-11)  # ten decimals given
    assert fitted.n_iter_ == pieces[-1]


@pytest.mark.parametrize("standardize", [True, False])
def test_a_fit_from_given_coefficients_continues_the_descent_they_are_of(model, standardize):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)) * [1, 2, 0.5] + 4, rng.normal(size=(20, 2)) - 9
    settings = {"standardize": standardize, "learning_rate": 0.01, "tol": None, "alpha": 0.1}
    ten, twenty = (model(max_iter=k, **settings).fit(X, Y) for k in (10, 20))
    fitted = model(max_iter=10, **settings)
    fitted.fit(X, Y, coef_init=ten.coef_, intercept_init=ten.intercept_)
    assert_allclose(fitted_values(fitted), fitted_values(twenty), rtol=1e-12)
    assert_allclose(fitted.loss_curve_, twenty.loss_curve_[10:], rtol=1e-12)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_warm_start_at_the_optimum_takes_no_step(model, standardize, offset):
    X, y = noisy()
    fitted = model(standardize=standardize, warm_start=True).fit(X, y + offset)
    coef = fitted.coef_.copy()
    fitted.set_params(max_iter=0).fit(X, y + offset)  # a ConvergenceWarning would be an error
    assert fitted.n_iter_ == 0
    assert fitted.converged_
    assert_allclose(fitted.coef_, coef, rtol=1e-14)


@pytest.mark.parametrize("standardize", [True, False])
def test_a_second_warm_fit_of_the_same_data_takes_no_step(model, standardize):
    """With a constant column, whose coefficient must survive the change of coordinates as 0."""
    x = np.arange(10.0)
    X, y = np.column_stack([np.full(10, 5.0), x]), 2 * x + 1
    once = model(standardize=standardize).fit(X, y)
    twice = model(standardize=standardize, warm_start=True).fit(X, y).fit(X, y)
    assert twice.n_iter_ == 0
    assert_allclose(twice.coef_, once.coef_, rtol=1e-14)
    assert twice.intercept_ == pytest.approx(once.intercept_, rel=1e-14)


@pytest.mark.parametrize("n_outputs", [None, 2])
@pytest.mark.parametrize("standardize", [True, False])
def test_a_warm_start_is_converted_to_the_new_means_and_scales(model, standardize, n_outputs):
    rng = np.random.default_rng(0)
    shape = 20 if n_outputs is None else (20, n_outputs)
    X, y = rng.normal(size=(20, 2)) * [1, 10] + [0, 50], rng.normal(size=shape) + 7
    other_X, other_y = 3 * X - 40, y - 1e3
    fitted = model(max_iter=25, tol=None, warm_start=True, standardize=standardize).fit(X, y)
    expected = fitted.predict(other_X)
    fitted.set_params(max_iter=0).fit(other_X, other_y)
    assert_allclose(fitted.predict(other_X), expected, rtol=1e-11)
    errors = (fitted.predict(other_X) - other_y) ** 2
    assert fitted.loss_ == pytest.approx(errors.mean(axis=0).sum(), rel=1e-11)


def test_a_warm_start_with_a_column_that_is_constant_no_longer(model):
    x = np.arange(10.0)
    fitted = model(warm_start=True).fit(np.column_stack([np.full(10, 5.0), x]), 2 * x + 1)
    X = np.column_stack([x % 3, x])
    fitted.set_params(**CONVERGED).fit(X, 2 * x + 1 - 4 * X[:, 0])
    assert_allclose(fitted_values(fitted), [-4, 2, 1], rtol=1e-8)


def test_a_warm_start_with_another_number_of_columns_is_refused(model):
    fitted = model(warm_start=True).fit(column(1, 2, 3), [1, 2, 4])
    with pytest.raises(ValueError, match=r"warm_start cannot continue from 1 features .* 2 .*warm_start=False"):
        fitted.fit([[1, 2], [2, 1], [3, 3]], [1, 2, 4])
