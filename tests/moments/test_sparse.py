"""Sparse X: the same fit as of the dense matrix, in the memory of the sparse one."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fssgd import LinearRegressorGD
from helpers import fitted_values, peak_memory

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


def test_mean_and_scale_count_the_zeros_of_a_sparse_column(model):
    x = np.array([0.0, 0, 0, 4, 0, 8])
    fitted = model(tol=1e-12).fit(sp.csr_array(x[:, None]), 2 * x + 1)
    assert fitted.mean_[0] == pytest.approx(2, rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(3.0550505, rel=2e-8)  # eight digits given
    assert_allclose(fitted_values(fitted), [2, 1], rtol=1e-11)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_sparse_fit_is_that_of_the_dense_matrix(model, losses, standardize, fit_intercept, weighted):
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(80, 5, density=0.2, random_state=rng)) * 3
    y, weight = rng.normal(size=(80, 2)) + 4, rng.integers(0, 3, 80) if weighted else None
    settings = {"standardize": standardize, "fit_intercept": fit_intercept, "alpha": 0.1, **FEW_STEPS}
    sparse = model(**settings).fit(X, y, sample_weight=weight)
    dense = model(**settings).fit(X.toarray(), y, sample_weight=weight)
    assert_allclose(fitted_values(sparse), fitted_values(dense), rtol=1e-11)
    assert_allclose(sparse.loss_curve_, dense.loss_curve_, rtol=1e-11)


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "coo_matrix", "lil_array", "dok_matrix"])
def test_every_sparse_format(model, kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)) * rng.integers(0, 2, (20, 3)), rng.normal(size=20)
    fitted = model(**FEW_STEPS).fit(getattr(sp, kind)(X), y)
    assert_allclose(fitted_values(fitted), fitted_values(model(**FEW_STEPS).fit(X, y)), rtol=1e-11)


def test_duplicate_and_unsorted_sparse_entries(model):
    X = sp.csr_array((np.array([1.0, 2, 3, 5, 1]), np.array([1, 0, 0, 1, 1]), np.array([0, 3, 4, 5])), shape=(3, 2))
    y = [1.0, 2, 4]
    dense = model(**FEW_STEPS).fit(X.toarray(), y)
    assert_allclose(fitted_values(model(**FEW_STEPS).fit(X, y)), fitted_values(dense), rtol=1e-12)


# n_features: the closed form, where it is asked for by name, takes a dense p x p matrix, hence fewer columns there
@pytest.mark.slow
def test_a_large_sparse_matrix_is_never_made_dense(backend, model):
    n_samples, n_features = 100_000, 1000 if backend == "spectral" else 10_000
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(n_samples, n_features, density=1e-4, random_state=rng))
    y = X @ rng.normal(size=n_features) + 1

    def fit():
        return model(max_iter=50, tol=None).fit(X, y)

    dense = 8 * n_samples * n_features
    assert peak_memory(fit) < dense / 10
    assert fit().loss_ < 0.99 * y.var()


def test_a_large_sparse_matrix_is_stepped_over_by_default():
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(100_000, 10_000, density=1e-4, random_state=rng))
    fitted = LinearRegressorGD(max_iter=5, tol=None)
    assert peak_memory(lambda: fitted.fit(X, X @ np.ones(10_000))) < 8 * X.shape[0] * X.shape[1] / 100
    assert fitted.backend_ == "numpy"
