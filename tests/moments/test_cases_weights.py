"""Cases 28-32 of the field: weights, sparse and incremental data."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from cases import column, fitted_values, peak_memory
from fssgd import LinearRegressorGD, Moments

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


# case 28
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("junk", [-100.0, 1e300])
def test_case_28_rows_of_weight_0_are_absent(model, container, junk):
    X, weight = column(0, 1, 2, 3, 10), [1, 1, 1, 1, 0]
    fitted = model(tol=1e-12).fit(container(X), [1, 3, 5, 7, junk], sample_weight=weight)
    assert_allclose(fitted_values(fitted), [2, 1], rtol=1e-10)
    assert fitted.mean_[0] == pytest.approx(1.5, rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(1.118034, rel=5e-7)  # seven digits given
    assert fitted.loss_ == pytest.approx(0, abs=1e-20 if fitted.backend_ != "spectral" else 1e-14)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_case_28_constant_where_the_weight_is_positive(model, container):
    X = np.array([[14.62, 0], [14.62, 1], [14.62, 2], [99, 3], [14.62, 4]])
    fitted = model(tol=1e-12).fit(container(X), [1, 3, 5, 7, 9], sample_weight=[1, 2, 1, 0, 1])
    assert fitted.scale_[0] == 1
    assert fitted.mean_[0] == 14.62
    assert_allclose(fitted_values(fitted), [0, 2, 1], rtol=1e-10, atol=1e-14)


# case 29
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, np.float32])
@pytest.mark.parametrize("standardize", [True, False])
def test_case_29_weights_are_repetition(model, container, standardize):
    X, y, weight = column(0, 1, 2, 3, 10), np.array([1.0, 3, 5, 7, -100]), np.array([1, 1, 3, 1, 2])
    settings = {"standardize": standardize, "learning_rate": 0.01, "max_iter": 20, "tol": None, "alpha": 0.5}
    weighted = model(**settings).fit(container(X), y, sample_weight=weight)
    repeated = model(**settings).fit(container(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    digits = 1e-5 if container is np.float32 else 1e-12
    assert_allclose(fitted_values(weighted), fitted_values(repeated), rtol=digits)
    assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=digits)


@pytest.mark.parametrize("weight", [np.full(5, 0.5), 3.0, np.full(5, 2, dtype=np.int8)])
def test_case_29_equal_weights_equal_none(model, weight):
    X, y = column(0, 1, 2, 3, 10), np.array([1.0, 3, 5, 7, -100])
    weighted = model(**FEW_STEPS).fit(X, y, sample_weight=weight)
    assert_allclose(weighted.loss_curve_, model(**FEW_STEPS).fit(X, y).loss_curve_, rtol=1e-13)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1, 1, -1, 1, 1], "[Nn]egative values"),
        ([1, 1, np.nan, 1, 1], "sample_weight contains NaN"),
        ([1, 1, np.inf, 1, 1], "sample_weight contains infinity"),
        ([0, 0, 0, 0, 0], "at least one (non-zero number|row must have a positive weight)"),
        ([1, 1, 1], r"sample_weight.shape == \(3,\), expected \(5,\)"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_case_29_unusable_weights(model, container, weight, words, method):
    with pytest.raises(ValueError, match=words):
        getattr(model(), method)(container(column(0, 1, 2, 3, 10)), np.arange(5.0), sample_weight=weight)


# case 30
def test_case_30_sparse(model):
    x = np.array([0.0, 0, 0, 4, 0, 8])
    fitted = model(tol=1e-12).fit(sp.csr_array(x[:, None]), 2 * x + 1)
    assert fitted.mean_[0] == pytest.approx(2, rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(3.0550505, rel=2e-8)  # eight digits given
    assert_allclose(fitted_values(fitted), [2, 1], rtol=1e-11)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_case_30_sparse_equals_dense(model, losses, standardize, fit_intercept, weighted):
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(80, 5, density=0.2, random_state=rng)) * 3
    y, weight = rng.normal(size=(80, 2)) + 4, rng.integers(0, 3, 80) if weighted else None
    settings = {"standardize": standardize, "fit_intercept": fit_intercept, "alpha": 0.1, **FEW_STEPS}
    sparse = model(**settings).fit(X, y, sample_weight=weight)
    dense = model(**settings).fit(X.toarray(), y, sample_weight=weight)
    assert_allclose(fitted_values(sparse), fitted_values(dense), rtol=1e-11)
    assert_allclose(sparse.loss_curve_, dense.loss_curve_, rtol=1e-11)


# n_features: the closed form, where it is asked for by name, takes a dense p x p matrix, hence fewer columns there
def test_case_30_a_large_sparse_matrix_is_never_dense(backend, model):
    n_samples, n_features = 100_000, 1000 if backend == "spectral" else 10_000
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(n_samples, n_features, density=1e-4, random_state=rng))
    y = X @ rng.normal(size=n_features) + 1

    def fit():
        return model(max_iter=50, tol=None).fit(X, y)

    dense = 8 * n_samples * n_features
    assert peak_memory(fit) < dense / 10
    assert fit().loss_ < 0.99 * y.var()


def test_case_30_by_default_a_large_sparse_matrix_is_stepped_over():
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(100_000, 10_000, density=1e-4, random_state=rng))
    fitted = LinearRegressorGD(max_iter=5, tol=None)
    assert peak_memory(lambda: fitted.fit(X, X @ np.ones(10_000))) < 8 * X.shape[0] * X.shape[1] / 100
    assert fitted.backend_ == "numpy"


# case 31: a sum-of-squares formula gives -128
@pytest.mark.parametrize("sizes", [(4,), (1, 3), (2, 1, 1), (1, 1, 1, 1), (3, 1)])
@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("offset", [1e9, -1e9, 0.0])
def test_case_31_moments_of_batches_far_from_0(sizes, accurate, offset):
    x = offset + column(4, 7, 13, 16)
    parts = np.split(x, np.cumsum(sizes)[:-1])
    moments = [Moments.from_arrays(part, part[:, 0] - offset, accurate=accurate) for part in parts]
    for total in (sum(moments[1:], moments[0]), sum(moments[-2::-1], moments[-1])):
        assert total.n_samples == 4
        assert total.mean_x[0] == offset + 10
        assert total.scatter_xx[0, 0] == pytest.approx(90, rel=1e-14)
        assert total.scatter_xy[0, 0] == pytest.approx(90, rel=1e-14)
        assert total.variance_x[0] == pytest.approx(22.5, rel=1e-14)


@pytest.mark.parametrize("sizes", [(4,), (1, 3), (2, 1, 1)])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_case_31_partial_fit_far_from_0(model, sizes, container):
    fitted = model()
    for part in np.split(1e9 + column(4, 7, 13, 16), np.cumsum(sizes)[:-1]):
        fitted.partial_fit(container(part), 2 * (part[:, 0] - 1e9))
    assert fitted.mean_[0] == pytest.approx(1e9 + 10, rel=2e-16)  # one unit in the last place
    assert fitted.scale_[0] ** 2 == pytest.approx(22.5, rel=1e-14)
    assert fitted.coef_[0] == pytest.approx(2, rel=1e-8)


# case 32
@pytest.mark.parametrize("size", [1, 2, 7, 60])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_case_32_any_split_in_any_order(model, size, seed, weighted, container):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) * [1, 5, 0.1] + [0, 20, -3]
    y = X @ [1, -2, 30] + rng.normal(size=60)
    weight = rng.integers(1, 4, 60).astype(float) if weighted else None
    expected = LinearRegressorGD(**FEW_STEPS).fit(X, y, sample_weight=weight)
    order, fitted = rng.permutation(60), model(**FEW_STEPS)
    for start in range(0, 60, size):
        part = order[start : start + size]
        fitted.partial_fit(container(X[part]), y[part], sample_weight=None if weight is None else weight[part])
    # sums of 60 products of columns up to 30 standard deviations from the origin: some 60 * 30 eps. The intercept is
    # what is left of numbers of about 100, and the loss of the mean square of y
    assert_allclose(fitted_values(fitted), fitted_values(expected), rtol=1e-12, atol=1e-10)
    assert_allclose(fitted.loss_curve_, expected.loss_curve_, rtol=1e-12, atol=1e-13 * expected.loss_curve_[0])


def test_case_32_fit_resets(model):
    X, y = column(1, 2, 3, 4), np.array([2.0, 4, 6, 9])
    fitted = model(**FEW_STEPS).partial_fit(10 * X, -y)
    fitted.fit(X, y)
    assert_allclose(fitted_values(fitted), fitted_values(model(**FEW_STEPS).fit(X, y)), rtol=1e-14)
    fitted.fit(np.hstack([X, X**2]), y)
    assert fitted.n_features_in_ == 2


def test_case_32_partial_fit_goes_on_from_fit(backend, model):
    X, y = column(1, 2, 3, 4), np.array([2.0, 4, 6, 9])
    fitted = model(**FEW_STEPS).fit(X[:2], y[:2])
    if backend == "spectral":
        fitted.partial_fit(X[2:], y[2:])
        assert_allclose(fitted_values(fitted), fitted_values(model(**FEW_STEPS).fit(X, y)), rtol=1e-13)
    else:
        with pytest.raises(
            ValueError, match=rf"keeps no moments of its data \(backend '{backend}'.*backend='spectral'"
        ):
            fitted.partial_fit(X[2:], y[2:])
