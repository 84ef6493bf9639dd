"""Backend "krylov" against the closed form, on the data and settings of estimators."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from fssgd import DivergenceError, GradientPath, LinearRegressorGD
from fssgd.backends import get_backend, krylov
from fssgd.backends.krylov import Krylov

EXACT = {"rtol": 1e-9, "atol": 1e-12}


def data(n, p, condition, outputs=1, container=np.asarray):
    rng = np.random.default_rng([n, p])
    rank = min(n, p)
    left, right = np.linalg.qr(rng.normal(size=(n, rank)))[0], np.linalg.qr(rng.normal(size=(p, rank)))[0]
    X = left * np.geomspace(1.0, condition**-0.5, rank) @ right.T * 10.0 + 3.0
    Y = X @ rng.normal(size=(p, outputs)) + rng.normal(size=(n, outputs)) + 5.0
    return container(X), Y, rng.uniform(0.5, 2.0, n)


def both(data, **settings):
    one = LinearRegressorGD(backend="krylov", **settings).fit(*data)
    other = LinearRegressorGD(backend="spectral", **settings | {"learning_rate": one.learning_rate_}).fit(*data)
    return one, other


def assert_same(one, other):
    assert one.backend_ == "krylov"
    assert (one.n_iter_, one.converged_) == (other.n_iter_, other.converged_)
    size = np.linalg.norm(other.scaled_coef_)
    assert np.linalg.norm(one.scaled_coef_ - other.scaled_coef_) <= 1e-9 * size
    np.testing.assert_allclose(one.scaled_intercept_, other.scaled_intercept_, **EXACT)
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-9, abs=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n", "p", "condition", "outputs"), [(90, 30, 1e4, 1), (30, 80, 1e3, 2), (60, 60, 1e3, 3)])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize(("max_iter", "tol"), [(1, None), (1000, None), (10**5, 1e-6)])
def test_fits_are_those_of_the_closed_form(n, p, condition, outputs, standardize, fit_intercept, alpha, max_iter, tol):
    settings = {"standardize": standardize, "fit_intercept": fit_intercept, "alpha": alpha}
    assert_same(*both(data(n, p, condition, outputs), **settings, max_iter=max_iter, tol=tol))


@pytest.mark.parametrize("standardize", [True, False])
def test_sparse_rows(standardize):
    rows = sp.random(200, 50, density=0.1, random_state=0, format="csr")
    y = rows @ np.arange(50.0) + 1.0
    assert_same(*both((rows, y), standardize=standardize, max_iter=3000, tol=None))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_float32_rows_are_multiplied_in_float64(container):
    X, Y, weight = data(200, 40, 1e2)
    X = np.where(X > 3.0, X, 0.0).astype(np.float32)
    one, other = both((container(X), Y, weight), max_iter=2000, tol=None)
    assert one.coef_.dtype == np.float32
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-6 * np.abs(other.coef_).max())


@pytest.mark.parametrize("part", [1.5, 1.97])
def test_long_steps(part):
    X, Y, weight = data(90, 30, 1e3)
    rate = part / GradientPath.from_arrays(X, Y, weight).eigenvalues.max()
    assert_same(*both((X, Y, weight), learning_rate=rate, max_iter=333, tol=None))


@pytest.mark.parametrize("alpha", [0.0, 1e-2])
@pytest.mark.parametrize("standardize", [True, False])
def test_the_limit(alpha, standardize):
    assert_same(*both(data(40, 70, 1e2), alpha=alpha, standardize=standardize, max_iter=np.inf, tol=None))


def test_a_warm_start_goes_on():
    X, Y, weight = data(90, 30, 1e3)
    warm = LinearRegressorGD(backend="krylov", max_iter=50, tol=None, warm_start=True)
    warm.fit(X, Y, weight).fit(X, Y, weight)
    whole = LinearRegressorGD(backend="spectral", max_iter=100, tol=None, learning_rate=warm.learning_rate_)
    np.testing.assert_allclose(warm.coef_, whole.fit(X, Y, weight).coef_, rtol=1e-9)


def test_losses_of_all_iterates():
    X, Y, weight = data(90, 30, 1e3)
    one, other = both((X, Y, weight), max_iter=200, tol=None)
    np.testing.assert_allclose(one.loss_curve_, other.loss_curve_, rtol=1e-9)


def test_divergence_is_said_in_words():
    X, Y, weight = data(90, 30, 1e3)
    with pytest.raises(DivergenceError, match=r"the largest stable step for this data"):
        LinearRegressorGD(backend="krylov", learning_rate=10.0).fit(X, Y, weight)


def test_a_basis_that_has_no_room():
    X, Y, weight = data(90, 30, 1e3)
    small = LinearRegressorGD(backend=Krylov(memory=8 * 30 * 5), max_iter=1000, tol=None).fit(X, Y, weight)
    whole = LinearRegressorGD(backend="krylov", max_iter=1000, tol=None).fit(X, Y, weight)
    np.testing.assert_allclose(small.coef_, whole.coef_, rtol=1e-8)


def test_what_is_out_of_reach_is_refused(monkeypatch):
    """Without a basis, directions are found again and again before the smallest eigenvalues are."""
    monkeypatch.setattr(krylov, "descend", partial(krylov.descend, max_dimension=200))
    X, Y, weight = data(200, 100, 1e12)
    model = LinearRegressorGD(backend=Krylov(memory=0), standardize=False, max_iter=np.inf, tol=1e-9)
    with pytest.raises(ValueError, match=r"the descent stops between steps \d+ and .*Krylov\(memory="):
        model.fit(X, Y, weight)


def test_settings():
    backend = get_backend("krylov")
    assert backend.get_settings() == {"memory": 1_000_000_000}
    assert pickle.loads(pickle.dumps(backend)) == Krylov()
    assert Krylov(memory=5) != Krylov()
