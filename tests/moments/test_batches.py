"""Data in batches: moments that are added, and partial_fit."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fssgd import LinearRegressorGD, Moments
from helpers import column, fitted_values

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


@pytest.mark.parametrize("sizes", [(4,), (1, 3), (2, 1, 1), (1, 1, 1, 1), (3, 1)])
@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("offset", [1e9, -1e9, 0.0])
def test_moments_of_batches_far_from_the_origin(sizes, accurate, offset):
    """At 1e9 the variance as mean of squares minus square of mean is -128 instead of 22.5."""
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
def test_partial_fit_far_from_the_origin(model, sizes, container):
    fitted = model()
    for part in np.split(1e9 + column(4, 7, 13, 16), np.cumsum(sizes)[:-1]):
        fitted.partial_fit(container(part), 2 * (part[:, 0] - 1e9))
    assert fitted.mean_[0] == pytest.approx(1e9 + 10, rel=2e-16)  # one unit in the last place
    assert fitted.scale_[0] ** 2 == pytest.approx(22.5, rel=1e-14)
    assert fitted.coef_[0] == pytest.approx(2, rel=1e-8)


@pytest.mark.parametrize("size", [1, 2, 7, 60])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_any_split_into_batches_in_any_order_gives_the_same_fit(model, size, seed, weighted, container):
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


def test_fit_forgets_earlier_batches(model):
    X, y = column(1, 2, 3, 4), np.array([2.0, 4, 6, 9])
    fitted = model(**FEW_STEPS).partial_fit(10 * X, -y)
    fitted.fit(X, y)
    assert_allclose(fitted_values(fitted), fitted_values(model(**FEW_STEPS).fit(X, y)), rtol=1e-14)
    fitted.fit(np.hstack([X, X**2]), y)
    assert fitted.n_features_in_ == 2


def test_partial_fit_continues_from_fit(backend, model):
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


def far_batches():
    x = np.r_[np.arange(10.0), np.arange(1000.0, 1010)]
    return [(part[:, None], 2 * part + 1) for part in np.split(x, 2)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.filterwarnings("ignore:Rounding of the second moments")  # the second batch alone, raw: cond(H) is 1e11
@pytest.mark.parametrize("standardize", [True, False])
def test_partial_fit_of_batches_far_apart(model, reverse, standardize):
    """partial_fit has no rows to step over, so that every backend uses the closed form."""
    fitted = model(standardize=standardize, max_iter=np.inf, tol=None)
    for X, y in reversed(far_batches()) if reverse else far_batches():
        fitted.partial_fit(X, y)
    assert_allclose(fitted_values(fitted), [2, 1], rtol=1e-8)  # raw, cond(H) is 1e6
    assert fitted.backend_ == "spectral"


@pytest.mark.parametrize("k", [0, 1, 3, 50])
def test_partial_fit_starts_again_in_the_scale_of_all_batches(model, k):
    """Coefficients found in the scale of the first batch alone mean something else in the scale of both."""
    batches, settings = far_batches(), {"learning_rate": 0.1, "max_iter": k, "tol": None}
    incremental = model(**settings)
    for batch in batches:
        incremental.partial_fit(*batch)
    at_once = model(**settings).fit(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))
    assert_allclose(incremental.coef_, at_once.coef_, rtol=1e-12)
    assert incremental.intercept_ == pytest.approx(at_once.intercept_, rel=1e-12)
    # moments know F to rounding of the variance of y, here 1e6
    assert incremental.loss_ == pytest.approx(at_once.loss_, rel=1e-12, abs=1e-8)
