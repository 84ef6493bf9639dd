"""Certified values of NIST's Statistical Reference Datasets, and the refinement that reaches them."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from exact import DATA, EPS, Descent, mp, nist, to_exact
from fssgd import GradientPath, LinearRegressorGD, Moments
from fssgd._rows.design import Rows
from fssgd.backends._refinement import refined_limit

SETS = json.loads((DATA / "nist" / "certified.json").read_text())
# residuals of 2e7 beside a coefficient of 1, cond(Z) = 1.6e3: what rounding of A'r in extended precision leaves is
# between 9 and 10.5 digits, from one processor to another
LEAST = {"wampler5": 8.5}


def digits(found, certified):
    """NIST's log relative error: right digits of the worst coefficient, at most 15."""
    relative = np.abs(found - certified) / np.abs(certified)
    return float(min(15.0, -np.log10(max(relative.max(), 1e-15))))


def all_coefficients(model):
    return np.append(model.intercept_, model.coef_) if model.fit_intercept else model.coef_


def limit(name, **settings):
    X, y, intercept, certified = nist(name)
    model = LinearRegressorGD(max_iter=np.inf, tol=None, fit_intercept=intercept, **settings).fit(X, y)
    return model, certified


@pytest.mark.parametrize("name", SETS)
def test_certified_coefficients(name):
    """Nine digits, but for Filip, whose powers rounded to float64 have other coefficients from the eighth on."""
    model, certified = limit(name)
    assert digits(all_coefficients(model), certified) >= (7.0 if name == "filip" else LEAST.get(name, 9.0))
    assert model.n_iter_ == np.inf
    n, sum_of_squares = SETS[name]["n"], float(SETS[name]["residual_sum_of_squares"])
    X, y, _, _ = nist(name)
    assert model.loss_ * n == pytest.approx(sum_of_squares, rel=1e-6, abs=1e-14 * float(y @ y))


@pytest.mark.parametrize("name", SETS)
def test_coefficients_of_the_data_as_it_is_in_float64(name):
    """Against the least squares of the rounded powers in 80 digits, Filip has as many digits as the others."""
    model, _ = limit(name)
    X, y, intercept, _ = nist(name)
    coef, level = Descent(X, y, standardize=False, fit_intercept=intercept).solve_plainly()
    right = np.append(level, coef) if intercept else coef
    assert digits(all_coefficients(model), right) >= LEAST.get(name, 9.0)


@pytest.mark.parametrize("name", ["longley", "norris", "wampler4", "noint1"])
def test_the_limit_without_standardising(name):
    model, certified = limit(name, standardize=False)
    assert digits(all_coefficients(model), certified) >= 7.0


@pytest.mark.parametrize("name", ["longley", "pontius", "wampler5"])
def test_integer_weights_are_repeated_rows(name):
    """The same data thrice, once as weights: the certified coefficients do not move."""
    X, y, _, certified = nist(name)
    weight = np.r_[np.full(len(y), 3.0), 0.0]
    X, y = np.vstack([X, X[:1] + 1.0]), np.r_[y, 1e6]
    model = LinearRegressorGD(max_iter=np.inf, tol=None).fit(X, y, sample_weight=weight)
    assert digits(all_coefficients(model), certified) >= 9.0


def rows_and_path(X, y, weight=None, **settings):
    path = GradientPath.from_moments(Moments.from_arrays(X, y, weight, accurate=True), **settings)
    values = X if sp.issparse(X) else np.asarray(X, float)
    return Rows(values, y[:, None], weight, path.coordinates), path


def test_refinement_improves_an_ill_conditioned_limit():
    """cond(Z) is about 1e6: refinement loses as many digits of extended precision as QR does of float64."""
    X = np.linspace(1.0, 2.0, 40)[:, None] ** np.arange(1, 7)
    y = np.sin(5 * X[:, 0])
    rows, path = rows_and_path(X, y)
    exact = Descent(X, y)
    right, known = exact.limit(), float(np.linalg.cond(exact.Z.astype(float)))

    def worst(theta):
        return float(max(abs(to_exact(theta[:-1, 0].astype(float)) / right[:-1, 0] - 1)))

    assert worst(path.position(np.inf)) > 1e-12
    # eps of the residual, times cond(Z); and the rounding of the scale, to which theta is relative
    assert worst(refined_limit(rows, path)) <= float(known * np.finfo(np.longdouble).eps) + 4 * EPS


@pytest.mark.parametrize("why", ["penalty", "rank", "sparse", "size"])
def test_what_cannot_be_refined_stays_as_it_is(why, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.random.default_rng(1).normal(size=20)
    if why == "rank":
        X[:, 2] = X[:, 1]
    if why == "size":
        monkeypatch.setattr("fssgd.backends._refinement.MAX_ELEMENTS", 79)
    rows, path = rows_and_path(sp.csr_array(X) if why == "sparse" else X, y, alpha=0.5 if why == "penalty" else 0.0)
    np.testing.assert_array_equal(refined_limit(rows, path), path.position(np.inf))


def test_refinement_of_several_weighted_outputs():
    X, rng = np.linspace(1.0, 2.0, 40)[:, None] ** np.arange(1, 6), np.random.default_rng(2)
    Y, weight = rng.normal(size=(40, 2)), rng.integers(0, 3, size=40).astype(float)
    model = LinearRegressorGD(max_iter=np.inf, tol=None).fit(X, Y, sample_weight=weight)
    right = Descent(X, Y, weight)
    coef, intercept = right.unscale(right.limit())
    np.testing.assert_allclose(model.coef_, coef.T, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-12)


def test_the_limit_of_a_nearly_singular_matrix_without_intercept():
    """X = [[1, 1], [e, 0], [0, e]]: its Gram matrix is singular in float64, and gives [1, 1]."""
    e = 1e-8
    X, y = np.array([[1, 1], [e, 0], [0, e]]), np.array([2.0, 2 * e, 0.0])
    model = LinearRegressorGD(max_iter=np.inf, tol=None, standardize=False, fit_intercept=False).fit(X, y)
    exact = mp.mpf(e)
    assert float((2 + 2 * exact**2) / (1 + exact**2)) == 2.0
    np.testing.assert_allclose(model.coef_, [2.0, 0.0], atol=1e-14)
