"""Weights are repetition: rows of weight 0 are absent, and equal weights are none."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from helpers import column, fitted_values

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("junk", [-100.0, 1e300])
def test_rows_of_weight_0_are_absent(model, container, junk):
    X, weight = column(0, 1, 2, 3, 10), [1, 1, 1, 1, 0]
    fitted = model(tol=1e-12).fit(container(X), [1, 3, 5, 7, junk], sample_weight=weight)
    assert_allclose(fitted_values(fitted), [2, 1], rtol=1e-10)
    assert fitted.mean_[0] == pytest.approx(1.5, rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(1.118034, rel=5e-7)  # seven digits given
    assert fitted.loss_ == pytest.approx(0, abs=1e-20 if fitted.backend_ != "spectral" else 1e-14)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_column_constant_on_the_rows_of_positive_weight_is_constant(model, container):
    X = np.array([[14.62, 0], [14.62, 1], [14.62, 2], [99, 3], [14.62, 4]])
    fitted = model(tol=1e-12).fit(container(X), [1, 3, 5, 7, 9], sample_weight=[1, 2, 1, 0, 1])
    assert fitted.scale_[0] == 1
    assert fitted.mean_[0] == 14.62
    assert_allclose(fitted_values(fitted), [0, 2, 1], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, np.float32])
@pytest.mark.parametrize("standardize", [True, False])
def test_weights_are_repetition_of_rows(model, container, standardize):
    X, y, weight = column(0, 1, 2, 3, 10), np.array([1.0, 3, 5, 7, -100]), np.array([1, 1, 3, 1, 2])
    settings = {"standardize": standardize, "learning_rate": 0.01, "max_iter": 20, "tol": None, "alpha": 0.5}
    weighted = model(**settings).fit(container(X), y, sample_weight=weight)
    repeated = model(**settings).fit(container(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    digits = 1e-5 if container is np.float32 else 1e-12
    assert_allclose(fitted_values(weighted), fitted_values(repeated), rtol=digits)
    assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=digits)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_mean_and_scale_are_weighted(model, container):
    x, weight = np.arange(4.0), np.array([1, 1, 1, 3])
    y = np.array([1.0, 0, 2, 5])
    fitted = model(max_iter=5, tol=None).fit(container(x[:, None]), y, sample_weight=weight)
    assert fitted.mean_[0] == pytest.approx(2, rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(1.1547005384, rel=1e-10)
    repeated = model(max_iter=5, tol=None).fit(container(np.repeat(x, weight)[:, None]), np.repeat(y, weight))
    assert_allclose(fitted.coef_, repeated.coef_, rtol=1e-13)
    assert fitted.intercept_ == pytest.approx(repeated.intercept_, rel=1e-13)
    assert fitted.loss_ == pytest.approx(repeated.loss_, rel=1e-13)


@pytest.mark.parametrize("weight", [np.full(5, 0.5), 3.0, np.full(5, 2, dtype=np.int8)])
def test_equal_weights_are_as_none(model, weight):
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
def test_unusable_weights_are_refused(model, container, weight, words, method):
    with pytest.raises(ValueError, match=words):
        getattr(model(), method)(container(column(0, 1, 2, 3, 10)), np.arange(5.0), sample_weight=weight)
