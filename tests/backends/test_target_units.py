"""Scale and offset of y, and scale of the weights: what they must not change."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

from exact import EPS
from fssgd import LinearRegressorGD


def noisy(seed=0, n_samples=60, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * rng.uniform(1, 3, n_features) + rng.uniform(-1, 1, n_features)
    return X, X @ rng.normal(size=n_features) + rng.normal(size=n_samples)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("factor", [1e-6, 1e6, 1e-100, 1e100])
def test_the_scale_of_y_scales_the_coefficients_and_nothing_else(model, factor, standardize):
    X, y = noisy()
    base = model(standardize=standardize, tol=1e-6).fit(X, y)
    other = model(standardize=standardize, tol=1e-6).fit(X, factor * y)
    assert abs(other.n_iter_ - base.n_iter_) <= 1  # factor * y is rounded
    assert_allclose(other.coef_, factor * base.coef_, rtol=1e-6)
    assert other.loss_ == pytest.approx(factor**2 * base.loss_, rel=1e-9)


@pytest.mark.parametrize("offset", [-1e6, 1e6, 1e9])
def test_an_offset_of_y_costs_the_coefficients_no_digits(model, offset):
    X, y = noisy()
    exact = LinearRegression().fit(X, y).coef_

    def error(y):
        return np.abs(model(tol=1e-12).fit(X, y).coef_ - exact).max()

    # a tolerance of 1e-12 leaves about that; y + offset is itself rounded to eps * offset
    assert error(y + offset) <= error(y) + 1e-11 + 10 * np.finfo(float).eps * abs(offset)


@pytest.mark.parametrize("factor", [1000.0, 1e-3, 1e-100, 1e100])
@pytest.mark.parametrize("weight", [np.ones(60), np.arange(60.0)])
def test_only_ratios_of_weights_matter(model, weight, factor):
    X, y = noisy()
    settings = {"learning_rate": 0.1, "max_iter": 50, "tol": None}
    base = model(**settings).fit(X, y, sample_weight=weight)
    other = model(**settings).fit(X, y, sample_weight=factor * weight)
    assert_allclose(other.loss_curve_, base.loss_curve_, rtol=1e-12)
    assert_allclose(other.coef_, base.coef_, rtol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.01, "tol": 1e-6}])
def test_an_offset_of_y_moves_the_intercept_and_nothing_else(model, question, offset, settings):
    X, y = question
    base, moved = model(**settings).fit(X, y), model(**settings).fit(X, y + offset)
    assert moved.converged_
    assert moved.loss_ == pytest.approx(base.loss_, rel=1e-6)
    assert moved.coef_[0] == pytest.approx(base.coef_[0], rel=1e-6)
    # tol G / h, G = 56 and h = 2, is what either may be away from the limit
    assert moved.intercept_ - offset == pytest.approx(base.intercept_, abs=1e-6 + 56 * moved.tol)


@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_an_offset_of_y_in_raw_coordinates(question, offset):
    X, y = question
    base, moved = (LinearRegressorGD(standardize=False, max_iter=np.inf, tol=None).fit(X, t) for t in (y, y + offset))
    assert moved.loss_ == pytest.approx(base.loss_, rel=1e-6)
    assert moved.coef_[0] == pytest.approx(base.coef_[0], rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 5.0, 1e6])
@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.1}, {"standardize": False, "learning_rate": 0.1}])
def test_y_orthogonal_to_every_column_converges(model, offset, settings):
    """The gradient in W is 0 from the start: the descent converges, and does not run to max_iter."""
    X, y = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1.0]]), np.array([1, -1, -1, 1.0])
    fitted = model(**settings).fit(X, y + offset)
    assert fitted.converged_
    assert fitted.n_iter_ < 1000
    assert_allclose([*fitted.coef_, fitted.intercept_ - offset], [0, 0, 0], atol=1e-12 + 1e-15 * offset)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("standardize", [True, False])
def test_y_orthogonal_to_every_column_up_to_rounding_converges(model, offset, standardize):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    span = np.linalg.qr(np.column_stack([np.ones(200), X]))[0]
    fitted = model(standardize=standardize).fit(X, y - span @ (span.T @ y) + offset)
    assert fitted.converged_
    assert fitted.n_iter_ < 2000
    # without a scale the descent starts ``offset`` away, and the six eigenvectors that lead it back are orthogonal to
    # 6 eps each
    assert_allclose(fitted.coef_, np.zeros(5), atol=1e-12 + 36 * EPS * offset)
