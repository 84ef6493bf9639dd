"""Where a descent stops, what it reports of it, and descents that have no step to take."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from fssgd import GradientPath
from helpers import column, fitted_values


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (column(1, 2), np.zeros(2)),
        (column(1, 2), np.zeros((2, 3))),
        (column(0, 0), np.zeros(2)),
        (column(7), np.zeros(1)),
        (np.zeros((2, 3)), np.zeros(2)),
    ],
)
def test_targets_of_zero_take_no_step(model, X, y, standardize, fit_intercept):
    """A loss of 0 at the start: no 0 / 0 in the stopping rule."""
    fitted = model(standardize=standardize, fit_intercept=fit_intercept).fit(X, y)
    assert fitted.n_iter_ == 0
    assert fitted.converged_ is True
    assert fitted.loss_ == 0
    assert_allclose(fitted.loss_curve_, [0])
    assert not fitted.coef_.any()
    assert not np.any(fitted.intercept_)


def test_a_constant_target_is_reached(model):
    fitted = model().fit(column(1, 2, 4), np.full(3, 5.0))
    assert fitted.converged_
    assert_allclose([*fitted.coef_, fitted.intercept_], [0, 5], atol=1e-12)


def noisy(seed=0, n_samples=60, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * rng.uniform(1, 3, n_features) + rng.uniform(-1, 1, n_features)
    return X, X @ rng.normal(size=n_features) + rng.normal(size=n_samples)


@pytest.mark.parametrize("standardize", [True, False])
def test_from_the_least_squares_solution_no_step_is_taken(model, standardize):
    X, y = noisy()
    optimum = LinearRegression().fit(X, y)
    fitted = model(standardize=standardize, max_iter=0)
    fitted.fit(X, y, coef_init=optimum.coef_, intercept_init=optimum.intercept_)
    assert fitted.n_iter_ == 0
    assert fitted.converged_


def test_the_warning_says_how_many_steps_are_missing(model, question):
    numbers = (
        r"max_iter=1000 .* gradient norm of 9\.64579, above the 0\.00161363 .* condition number is 13299\b.*"
        r"173690 more are needed; with standardize=True and learning_rate='auto', 1 in all"
    )
    with pytest.warns(ConvergenceWarning, match=numbers) as caught:
        fitted = model(learning_rate=1e-4, max_iter=1000, tol=1e-6, standardize=False).fit(*question)
    assert len(caught) == 1
    assert (fitted.n_iter_, fitted.converged_) == (1000, False)


@pytest.mark.steps(174_690)
@pytest.mark.slow
def test_the_steps_that_the_warning_names_are_enough(model, question):
    settings = {"learning_rate": 1e-4, "tol": 1e-6, "standardize": False}
    fitted = model(max_iter=174_690, **settings).fit(*question)
    assert (fitted.n_iter_, fitted.converged_) == (174_690, True)


def test_the_closed_form_knows_the_stopping_step(question):
    path = GradientPath.from_arrays(*question, learning_rate=1e-4, standardize=False)
    assert path.steps_to(1e-6) == 174_690
    assert path.gradient_norm(174_690) <= 1.61363e-3 * (1 + 5e-6) <= path.gradient_norm(174_680)
    assert GradientPath.from_arrays(*question).steps_to(1e-6) == 1


def test_the_loss_curve_begins_at_the_start(model):
    """Entry 0 is the loss before the first step, and not after it."""
    fitted = model(standardize=False, learning_rate=0.1, max_iter=3, tol=None).fit(column(-1, 1), [1.0, 5])
    assert_allclose(fitted.loss_curve_, [13, 8.32, 5.3248, 3.407872], rtol=1e-14)
    assert_allclose(fitted_values(fitted), [0.976, 1.464], rtol=1e-14)
    assert fitted.loss_ == pytest.approx(fitted.loss_curve_[-1], rel=1e-14)
    assert fitted.n_iter_ == 3


@pytest.mark.parametrize("k", [0, 1, 2, 5, 101])
@pytest.mark.parametrize("start", [None, [2.0]])
def test_entry_i_of_the_loss_curve_is_the_loss_at_iterate_i(model, k, start):
    X, y = column(-1, 1, 4), np.array([1.0, 5, 5])
    curve = model(learning_rate=0.1, max_iter=k, tol=None).fit(X, y, coef_init=start).loss_curve_
    assert len(curve) == k + 1
    for i in {0, 1, k // 2, k}:
        if i <= k:
            fitted = model(learning_rate=0.1, max_iter=i, tol=None).fit(X, y, coef_init=start)
            assert curve[i] == pytest.approx(((fitted.predict(X) - y) ** 2).mean(), rel=1e-12)


def test_the_loss_curve_ends_where_the_descent_converges(model):
    fitted = model(learning_rate=0.1, tol=1e-6).fit(column(-1, 1, 4), [1.0, 5, 5])
    assert fitted.converged_
    assert len(fitted.loss_curve_) == fitted.n_iter_ + 1
    earlier = {"learning_rate": 0.1, "tol": 1e-6, "max_iter": fitted.n_iter_ - 1}
    with pytest.warns(ConvergenceWarning, match="At this step 1 more are needed"):
        model(**earlier).fit(column(-1, 1, 4), [1.0, 5, 5])
