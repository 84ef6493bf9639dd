"""Offsets of x and of y cost the first steps, the loss and the standard errors no digits."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgWarning

from exact import EPS, Descent, error
from fssgd import LinearRegressorGD, Moments


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [1e4, 1e8])
@pytest.mark.parametrize("form", ["dense", "fortran", "sparse"])
def test_first_steps_with_large_offsets(model, backend, weighted, offset, form):
    """What rounding leaves of a centred column's mean meets an intercept that starts at minus the mean of y."""
    rng = np.random.default_rng(11)
    X = np.c_[rng.normal(size=(50, 1)) + offset, rng.normal(size=(50, 1))]
    y = 2 * (X[:, 0] - offset) + 0.1 * rng.normal(size=50) + offset
    weight = rng.integers(1, 4, 50).astype(float) if weighted else None
    given = {"dense": X, "fortran": np.asfortranarray(X), "sparse": sparse.csr_array(X)}[form]
    exact = Descent(X, y, weight)
    for k in (1, 3):
        found = model(max_iter=k, tol=None, learning_rate=0.3).fit(given, y, weight)
        right, _ = exact.unscale(exact.theta(k, 0.3))
        # the values are known to eps offset, and the mean of what is left to eps: times an intercept at -offset
        assert error(found.coef_[:, None], right) <= 40 * EPS * offset


def test_first_steps_of_partitions_with_large_offsets():
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(60, 2)) + [1e8, 0.0], rng.normal(size=60) + 1e8
    exact = Descent(X, y)
    found = LinearRegressorGD(max_iter=2, tol=None, learning_rate=0.3, backend="numpy").fit(
        da.from_array(X, chunks=(17, 2)), da.from_array(y, chunks=17)
    )
    assert error(found.coef_[:, None], exact.unscale(exact.theta(2, 0.3))[0]) <= 40 * EPS * 1e8


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("kind", ["wide", "dependent", "dependent, from moments", "constant"])
def test_the_loss_of_raw_deficient_data_does_not_know_the_offset_of_y(kind, offset):
    """To eps times the variance of y, plus the square of what y is rounded to; from moments that times a deviation."""
    rng = np.random.default_rng(13)
    X = rng.normal(size=(5, 8) if kind == "wide" else (40, 3))
    if kind.startswith("dependent"):
        X = np.c_[X, X @ [1.0, 2.0, -1.0], np.ones(len(X))]
    if kind == "constant":
        X = np.c_[X, np.full(40, 7.0)]
    y = X[:, 0] + rng.normal(size=len(X)) + offset
    model = LinearRegressorGD(max_iter=np.inf, tol=None, standardize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        model = model.fit_moments(Moments.from_arrays(X, y)) if kind.endswith("moments") else model.fit(X, y)
    centred = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y - y.mean(), rcond=1e-12)[0]
    right = np.mean((y - y.mean() - np.c_[X, np.ones(len(X))] @ centred) ** 2)
    rounding = EPS * offset * y.std() if kind.endswith("moments") else (EPS * offset) ** 2
    assert abs(model.loss_ - right) <= 1e-12 * y.var() + 100 * rounding


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e7])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standard_errors_under_a_penalty_do_not_know_the_offset_of_columns(offset, fit_intercept):
    """Against the matrix that takes y to the ridge solution, with columns centred where that changes nothing."""
    rng = np.random.default_rng(14)
    plain, alpha = rng.normal(size=(50, 2)), 0.1
    X = plain + ([offset, 0.0] if fit_intercept else 0.0)
    y = plain @ [1.0, 2.0] + rng.normal(size=50)
    model = LinearRegressorGD(
        max_iter=np.inf, tol=None, standardize=False, alpha=alpha, fit_intercept=fit_intercept
    ).fit(X, y)
    Z = X - X.mean(axis=0) if fit_intercept else X
    take = np.linalg.solve(Z.T @ Z + 50 * alpha * np.eye(2), Z.T)
    hat = Z @ take + (1 / 50 if fit_intercept else 0.0)
    residual = (y - y.mean() if fit_intercept else y) - Z @ (take @ y)
    sigma = np.sqrt(residual @ residual / (50 - np.trace(hat)))
    found = model.summary().standard_error[1:] if fit_intercept else model.summary().standard_error
    np.testing.assert_allclose(found, sigma * np.sqrt((take**2).sum(axis=1)), rtol=1e-12 + 1e2 * EPS * offset)


@pytest.mark.parametrize("offset", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("rate", [1e-12, 1e-6, 1e-2])
def test_weights_that_have_hardly_moved_keep_their_digits(model, backend, rate, offset):
    """Beside an intercept that starts at minus the mean of y, rotated into eigenvectors and back: they start at 0."""
    rng = np.random.default_rng(14)
    X, y = rng.normal(size=(30, 2)) + 0.5, rng.normal(size=30) + offset
    exact = Descent(X, y, standardize=False)
    found = model(standardize=False, learning_rate=rate, max_iter=1, tol=None).fit(X, y)
    assert error(found.coef_[:, None], exact.unscale(exact.theta(1, rate))[0]) <= 100 * EPS * offset
