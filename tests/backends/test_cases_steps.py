"""Cases 1-10 of the field: step size, divergence, convergence."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from cases import column
from fssgd import DivergenceError, GradientPath, LinearRegressorGD


def mean_squared_error(fitted, X, y):
    return float(((fitted.predict(X) - y) ** 2).mean())


# case 1: both numbers are in the message, and no NumPy warning leaks (warnings are errors here)
@pytest.mark.parametrize("eta", [0.01, 0.5, 1e100, 1e308])
@pytest.mark.parametrize("tol", [1e-8, None])
def test_case_01_divergence_names_the_step_and_the_largest_stable_one(model, eta, tol):
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


def test_case_01_losses(losses):
    x = np.arange(100.0)
    curve = losses(x[:, None], 0.1 * x + 0.3, learning_rate=0.01, standardize=False)
    assert_allclose(curve[:2], [35.895, 1.50095e5], rtol=5e-6)
    assert_allclose(curve[2:3], [6.28019e8][: len(curve) - 2], rtol=5e-6)


def test_case_01_losses_in_closed_form():
    x = np.arange(100.0)
    path = GradientPath.from_arrays(x[:, None], 0.1 * x + 0.3, learning_rate=0.01, standardize=False)
    assert_allclose(path.loss([0, 1, 2]), [35.895, 1.50095e5, 6.28019e8], rtol=5e-6)
    assert path.loss(2) / path.loss(1) == pytest.approx(4184.14, rel=2e-6)
    assert path.eigenvalues.max() / 2 == pytest.approx(3284.25, rel=2e-6)
    assert path.loss(10**6) == np.inf  # it overflows, and never turns into NaN


LONELY = column(1, 2, 3, 4, 35), np.array([0.0, -1, -2, -3, -34])


# case 2
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_case_02_a_step_below_the_limit_converges(model, share):
    X, y = LONELY
    fitted = model(learning_rate=share * 3.97893e-3, standardize=False, tol=1e-10).fit(X, y)
    assert fitted.converged_
    # |theta - theta*| <= tol G / h_min = 1e-10 * 340 / 1.353
    assert_allclose([fitted.coef_[0], fitted.intercept_], [-1, 1], atol=3e-8)


@pytest.mark.parametrize("tiles", [1, 2, 40])
def test_case_02_the_limit_does_not_depend_on_the_number_of_rows(model, losses, tiles):
    X, y = LONELY
    settings = {"learning_rate": 0.003, "standardize": False, "max_iter": 50, "tol": None}
    tiled = np.tile(X, (tiles, 1)), np.tile(y, tiles)
    assert_allclose(losses(*tiled, **settings), losses(X, y, **settings), rtol=1e-9)
    with pytest.raises(DivergenceError, match=r"is above 0\.00397893, the largest stable step") as caught:
        model(learning_rate=0.00398, standardize=False).fit(*tiled)
    assert caught.value.max_learning_rate == pytest.approx(3.97893e-3, rel=2e-6)


# case 3
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_case_03_slow_divergence_is_caught_while_small(model, losses, size):
    X = np.repeat([[-10.5], [10.5]], 50, axis=0)
    y = size * X[:, 0]
    with pytest.raises(DivergenceError, match=r"learning_rate=0\.01 is above 0\.00907029") as caught:
        model(learning_rate=0.01, standardize=False).fit(X, y)
    assert caught.value.n_iter <= 2
    curve = losses(X, y, learning_rate=0.01, standardize=False)
    assert_allclose(curve[:2], size**2 * np.array([110.25, 160.08575625]), rtol=1e-12)


# case 4: y = 3x + 1, so that only the slope swings; standardised, W and b both do
@pytest.mark.parametrize(
    ("settings", "expected_losses", "expected_norms"),
    [
        ({"learning_rate": 0.25, "standardize": False}, [37, 36.25, 36], [24.083, 24.021, 24]),
        ({"learning_rate": 1.0}, [37, 37, 37], [12.1655, 12.1655, 12.1655]),
    ],
)
def test_case_04_exactly_at_the_limit(model, settings, expected_losses, expected_norms):
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
def test_case_04_rounding_at_the_limit_is_no_divergence(model, size, n_pairs, standardize):
    x = np.tile([-size, size], n_pairs)
    eta = 1.0 if standardize else 1 / size**2  # 2 / L
    with pytest.warns(ConvergenceWarning, match="is exactly the largest stable step"):
        fitted = model(learning_rate=eta, standardize=standardize, max_iter=1000).fit(x[:, None], 3 * x + 1)
    assert fitted.n_iter_ == 1000
    assert fitted.loss_ == pytest.approx(9 * size**2 + (standardize or size == 1), rel=1e-9)


# case 5: last rows lie beyond the first block of 4096
@pytest.mark.parametrize("n_samples", [3, 5000])
@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("where", ["X", "y", "sparse X", "row of weight 0"])
def test_case_05_data_that_is_not_finite_is_refused_as_such(model, n_samples, value, words, where):
    X, y, weight = np.arange(1.0, n_samples + 1)[:, None], np.arange(1.0, n_samples + 1), np.ones(n_samples)
    (y if where == "y" else X)[-2] = value
    if where == "row of weight 0":
        weight[-2] = 0
    X = sp.csr_array(X) if where == "sparse X" else X
    with pytest.raises(ValueError, match=f"Input {'y' if where == 'y' else 'X'} contains {words}") as caught:
        model().fit(X, y, sample_weight=weight)
    assert not isinstance(caught.value, DivergenceError)
    assert "learning_rate" not in str(caught.value)


# case 6
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
def test_case_06_nothing_to_do(model, X, y, standardize, fit_intercept):
    fitted = model(standardize=standardize, fit_intercept=fit_intercept).fit(X, y)
    assert fitted.n_iter_ == 0
    assert fitted.converged_ is True
    assert fitted.loss_ == 0
    assert_allclose(fitted.loss_curve_, [0])
    assert not fitted.coef_.any()
    assert not np.any(fitted.intercept_)


def test_case_06_a_constant_target_is_reached(model):
    fitted = model().fit(column(1, 2, 4), np.full(3, 5.0))
    assert fitted.converged_
    assert_allclose([*fitted.coef_, fitted.intercept_], [0, 5], atol=1e-12)


def noisy(seed=0, n_samples=60, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * rng.uniform(1, 3, n_features) + rng.uniform(-1, 1, n_features)
    return X, X @ rng.normal(size=n_features) + rng.normal(size=n_samples)


# case 7
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("factor", [1e-6, 1e6, 1e-100, 1e100])
def test_case_07_the_scale_of_y_does_not_matter(model, factor, standardize):
    X, y = noisy()
    base = model(standardize=standardize, tol=1e-6).fit(X, y)
    other = model(standardize=standardize, tol=1e-6).fit(X, factor * y)
    assert abs(other.n_iter_ - base.n_iter_) <= 1  # factor * y is rounded
    assert_allclose(other.coef_, factor * base.coef_, rtol=1e-6)
    assert other.loss_ == pytest.approx(factor**2 * base.loss_, rel=1e-9)


@pytest.mark.parametrize("offset", [-1e6, 1e6, 1e9])
def test_case_07_the_offset_of_y_does_not_matter(model, offset):
    X, y = noisy()
    exact = LinearRegression().fit(X, y).coef_

    def error(y):
        return np.abs(model(tol=1e-12).fit(X, y).coef_ - exact).max()

    # a tolerance of 1e-12 leaves about that; y + offset is itself rounded to eps * offset
    assert error(y + offset) <= error(y) + 1e-11 + 10 * np.finfo(float).eps * abs(offset)


@pytest.mark.parametrize("factor", [1000.0, 1e-3, 1e-100, 1e100])
@pytest.mark.parametrize("weight", [np.ones(60), np.arange(60.0)])
def test_case_07_only_ratios_of_weights_matter(model, weight, factor):
    X, y = noisy()
    settings = {"learning_rate": 0.1, "max_iter": 50, "tol": None}
    base = model(**settings).fit(X, y, sample_weight=weight)
    other = model(**settings).fit(X, y, sample_weight=factor * weight)
    assert_allclose(other.loss_curve_, base.loss_curve_, rtol=1e-12)
    assert_allclose(other.coef_, base.coef_, rtol=1e-12)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_case_07_a_warm_start_at_the_optimum_takes_no_step(model, standardize, offset):
    X, y = noisy()
    fitted = model(standardize=standardize, warm_start=True).fit(X, y + offset)
    coef = fitted.coef_.copy()
    fitted.set_params(max_iter=0).fit(X, y + offset)  # a ConvergenceWarning would be an error
    assert fitted.n_iter_ == 0
    assert fitted.converged_
    assert_allclose(fitted.coef_, coef, rtol=1e-14)


@pytest.mark.parametrize("standardize", [True, False])
def test_case_07_given_the_optimum_no_step_is_taken(model, standardize):
    X, y = noisy()
    optimum = LinearRegression().fit(X, y)
    fitted = model(standardize=standardize, max_iter=0)
    fitted.fit(X, y, coef_init=optimum.coef_, intercept_init=optimum.intercept_)
    assert fitted.n_iter_ == 0
    assert fitted.converged_


# case 8
def never_rises(curve):
    rounding = 1e-13 * curve[0]
    return bool((np.diff(curve) <= rounding).all())


def test_case_08_the_automatic_step_is_stable(model):
    x = np.arange(100.0)
    fitted = model(standardize=False, max_iter=2000, tol=None).fit(x[:, None], 0.1 * x + 0.3)
    assert fitted.learning_rate_ <= 3.04484e-4 / 2 * (1 + 5e-6)  # six digits given
    exact = 2 * np.linalg.eigvalsh(
        np.cov(np.vstack([x, np.ones(100)]), ddof=0) + np.outer([x.mean(), 1], [x.mean(), 1])
    )
    assert fitted.learning_rate_ <= 1 / exact[-1] * (1 + 1e-12)
    assert never_rises(fitted.loss_curve_)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("n_columns", [2, 3])
def test_case_08_equal_largest_eigenvalues(model, standardize, n_columns):
    design = np.array([[-1, -1, 1], [-1, 1, -1], [1, -1, -1], [1, 1, 1]])[:, :n_columns] * 3.0
    fitted = model(standardize=standardize, max_iter=200, tol=None).fit(design, [1.0, 4.0, -2.0, 7.0])
    largest = 2.0 if standardize else 18.0
    assert fitted.learning_rate_ == pytest.approx(1 / largest, rel=1e-14)
    assert never_rises(fitted.loss_curve_)


@pytest.mark.parametrize("eigenvalues", [[4, 4], [4, 4 * (1 - 1e-6)], [4, 1e-3]])
def test_case_08_the_bound_for_data_too_large_to_decompose(eigenvalues):
    n = 5000  # X'X is diagonal, so that its two largest eigenvalues are known
    diagonal = np.full(n, 1e-6)
    diagonal[:2] = np.sqrt(np.multiply(eigenvalues, n / 2))
    X = sp.diags_array(diagonal, format="csr")
    fitted = LinearRegressorGD(standardize=False, fit_intercept=False, max_iter=20, tol=None).fit(X, np.ones(n))
    assert fitted.backend_ == "numpy"
    assert 1 / (2 * 4) <= fitted.learning_rate_ <= 1 / 4 * (1 + 1e-12)  # an upper bound of L, at most 2 L
    assert never_rises(fitted.loss_curve_)


# case 9
def test_case_09_the_warning_says_how_far_it_is(model, question):
    numbers = (
        r"max_iter=1000 .* gradient norm of 9\.64579, above the 0\.00161363 .* condition number is 13299\b.*"
        r"173690 more are needed; with standardize=True and learning_rate='auto', 1 in all"
    )
    with pytest.warns(ConvergenceWarning, match=numbers) as caught:
        fitted = model(learning_rate=1e-4, max_iter=1000, tol=1e-6, standardize=False).fit(*question)
    assert len(caught) == 1
    assert (fitted.n_iter_, fitted.converged_) == (1000, False)


@pytest.mark.steps(174_690)
def test_case_09_the_steps_it_names_are_enough(model, question):
    settings = {"learning_rate": 1e-4, "tol": 1e-6, "standardize": False}
    fitted = model(max_iter=174_690, **settings).fit(*question)
    assert (fitted.n_iter_, fitted.converged_) == (174_690, True)


def test_case_09_steps_to(question):
    path = GradientPath.from_arrays(*question, learning_rate=1e-4, standardize=False)
    assert path.steps_to(1e-6) == 174_690
    assert path.gradient_norm(174_690) <= 1.61363e-3 * (1 + 5e-6) <= path.gradient_norm(174_680)
    assert GradientPath.from_arrays(*question).steps_to(1e-6) == 1


# case 10
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_case_10_columns_of_very_different_size(model, unit):
    X = np.array([[0, 2e6], [1, 1e6], [2, 3e6], [3, 5e6]]) * [1, unit]
    fitted = model().fit(X, X @ [1, 1e-6 / unit] + 4)
    assert fitted.converged_
    # tol=1e-8 leaves |W - W*| <= 1e-8 G / h_min with G about 5 and h_min 0.34, in standardised units
    assert_allclose(fitted.coef_, [1, 1e-6 / unit], rtol=1e-6)
    assert fitted.intercept_ == pytest.approx(4, rel=1e-6)
    assert mean_squared_error(fitted, X, X @ [1, 1e-6 / unit] + 4) < 1e-12
