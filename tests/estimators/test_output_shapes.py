"""One output, one column and several outputs: shapes, losses and the steps they share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

from helpers import column, peak_memory

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 2)])
def test_shapes_are_those_of_linear_regression(model, shape):
    X, y = (
        column(1, 2, 3, 4),
        np.broadcast_to(column(2, 4, 6, 9), (4, 2))[:, 0]
        if shape == (4,)
        else np.broadcast_to(column(2, 4, 6, 9), shape),
    )
    fitted, reference = model(tol=1e-12).fit(X, y), LinearRegression().fit(X, y)
    assert fitted.coef_.shape == reference.coef_.shape
    assert np.shape(fitted.intercept_) == np.shape(reference.intercept_)
    assert fitted.predict(X).shape == y.shape
    assert_allclose(fitted.coef_, np.full(fitted.coef_.shape, 2.3), rtol=1e-11)
    assert_allclose(fitted.intercept_, np.full(np.shape(fitted.intercept_), -0.5), rtol=1e-11)


@pytest.mark.parametrize(("shape", "start"), [((4,), [1.5]), ((4, 1), [[1.5]])])
def test_the_loss_pairs_each_prediction_with_its_own_target(model, shape, start):
    """Predictions of shape (n, 1) minus y of shape (n,) broadcast to n x n, whose mean square is 11.75."""
    X, y = column(1, 2, 3, 4), np.reshape([2.0, 4, 6, 9], shape)
    for standardize in (True, False):
        fitted = model(max_iter=0, tol=None, standardize=standardize).fit(X, y, coef_init=start)
        assert fitted.loss_ == pytest.approx(3.125, rel=1e-14)  # an n x n broadcast has 11.75
        assert_allclose(fitted.loss_curve_, [3.125], rtol=1e-14)


def test_two_outputs(model):
    x = np.arange(6.0)
    fitted = model(tol=1e-12).fit(x[:, None], np.column_stack([2 * x + 1, -x + 4]))
    assert_allclose(fitted.coef_, [[2], [-1]], rtol=1e-11)
    assert_allclose(fitted.intercept_, [1, 4], rtol=1e-11)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_each_output_is_a_descent_of_its_own(model, standardize, fit_intercept):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)) * [1, 100] + [0, 5]
    settings = {"standardize": standardize, "fit_intercept": fit_intercept, "alpha": 0.1, **FEW_STEPS}
    fitted = model(**settings).fit(X, Y)
    alone = [model(**settings).fit(X, y) for y in Y.T]
    for j, one in enumerate(alone):
        assert_allclose(fitted.coef_[j], one.coef_, rtol=1e-12)
        assert np.broadcast_to(fitted.intercept_, 2)[j] == pytest.approx(one.intercept_, rel=1e-12)
    assert fitted.loss_ == pytest.approx(sum(one.loss_ for one in alone), rel=1e-12)
    assert_allclose(fitted.loss_curve_, sum(one.loss_curve_ for one in alone), rtol=1e-12)


def test_outputs_stop_at_the_same_step(model):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    fitted = model(tol=1e-6).fit(X, Y)
    exactly = model(max_iter=fitted.n_iter_, tol=None).fit(X, Y)
    assert isinstance(fitted.n_iter_, int)
    assert_allclose(fitted.coef_, exactly.coef_, rtol=1e-12)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.slow
def test_memory_of_a_fit_is_linear_in_the_number_of_rows(model, standardize):
    """An n x n broadcast would take 8e12 bytes."""
    n_samples = 1_000_000
    x = np.linspace(-1, 1, n_samples)
    y = 2 * x + 1
    fitted = model(standardize=standardize, learning_rate=0.1, max_iter=5, tol=None)
    peak = peak_memory(lambda: fitted.fit(x[:, None], y))
    assert peak < 12 * 8 * n_samples  # a dozen columns of doubles
    assert fitted.intercept_ == pytest.approx(1 - 0.8**5, rel=1e-9)
