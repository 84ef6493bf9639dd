"""Values near the limits of their dtype: refused by name, or right; never NaN and never a false convergence."""

import numpy as np
import pytest
import scipy.sparse as sp

from fssgd import LinearRegressorGD, Moments
from fssgd._moments.column_statistics import column_statistics

X = np.random.default_rng(1).normal(size=(20, 3))
Y = X @ [1.0, 2.0, 3.0] + 4.0


@pytest.mark.parametrize("factor", [1e39, 1e-25])
def test_targets_that_float32_cannot_step_on(backend, model, factor):
    if backend in ("spectral", "krylov") and factor < 1:
        np.testing.assert_allclose(
            model().fit(X.astype("f"), Y * factor).coef_, np.array([1, 2, 3]) * factor, rtol=1e-4
        )
        return
    with pytest.raises(ValueError, match=r"(limits|range) of float32"):
        model().fit(X.astype("f"), Y * factor)


def test_a_row_of_weight_0_may_hold_anything_finite(model):
    rows, weight = np.vstack([np.full(3, 1.7e308), X]), np.r_[0.0, np.ones(20)]
    np.testing.assert_allclose(model().fit(rows, np.r_[9.0, Y], weight).coef_, model().fit(X, Y).coef_, rtol=1e-12)


@pytest.mark.parametrize("n_rows", [10, 49, 50])
def test_full_sparse_columns_far_from_0(n_rows):
    column = 1.7e9 + np.arange(n_rows)
    mean, variance, _ = column_statistics(sp.csr_array(column[:, None]), None)
    assert variance[0] == pytest.approx(np.arange(n_rows).var(), rel=1e-12)
    assert mean[0] == pytest.approx(column.mean(), rel=1e-15)


def test_batches_of_two_dtypes_count_as_the_finer_one():
    both = LinearRegressorGD().partial_fit(X, Y).partial_fit(X.astype("f"), Y)
    whole = LinearRegressorGD().fit(np.vstack([X, X.astype("f")]), np.r_[Y, Y])
    assert both.coef_.dtype == np.float64
    assert both.n_iter_ == whole.n_iter_
    np.testing.assert_allclose(both.coef_, whole.coef_, rtol=1e-12)


@pytest.mark.parametrize("y", [np.array(["1", "2"] * 10), np.arange(20).astype("datetime64[s]")])
def test_targets_that_are_no_numbers(model, y):
    for take in (model().fit, Moments.from_arrays):
        with pytest.raises(ValueError, match=r"y has dtype .*: expected numbers"):
            take(X, y)


def test_fit_moments_refuses_arrays():
    with pytest.raises(TypeError, match=r"Expected fssgd.Moments, got ndarray: use fit"):
        LinearRegressorGD().fit_moments(X)
