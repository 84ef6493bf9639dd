"""Integers, booleans, half and single precision, objects: sums are taken in float64. NaN and infinity are refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fssgd import DivergenceError, Moments
from helpers import fitted_values

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


# squares and differences of small integer types would wrap
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4"]
FLOATS = ["float16", "float32", "float64", ">f8", "object"]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_every_type_of_number_gives_the_same_fit(model, dtype):
    X, y = np.array([[2, 100], [120, 5], [7, 7], [90, 60], [11, 127]]), np.array([3, 127, 0, 90, 8])
    expected = model(**FEW_STEPS).fit(X.astype(float), y.astype(float))
    digits = 1e-5 if dtype == "float32" else 1e-12
    for targets in (y, y.astype(dtype)):
        fitted = model(**FEW_STEPS).fit(X.astype(dtype), targets)
        assert_allclose(fitted_values(fitted), fitted_values(expected), rtol=digits)
        assert fitted.coef_.dtype == (np.float32 if dtype == "float32" else np.float64)
    assert_allclose(model(**FEW_STEPS).fit(X.astype(float), y.astype(dtype)).coef_, expected.coef_, rtol=1e-12)


def test_booleans_are_numbers(model):
    X, y = np.array([[True, False], [False, False], [True, True], [False, True]]), np.array([True, False, True, True])
    expected = model(tol=1e-12).fit(X.astype(float), y.astype(float))
    assert_allclose(fitted_values(model(tol=1e-12).fit(X, y)), fitted_values(expected), rtol=1e-12)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "object", "float16", "float32"])
def test_the_gram_matrix_of_small_types_does_not_overflow(dtype, accurate):
    X = np.array([[200, 300], [400, 100], [250, 50]], dtype=dtype)
    moments = Moments.from_arrays(X, [1, 2, 3], accurate=accurate)
    gram = moments.scatter_xx + 3 * np.outer(moments.mean_x, moments.mean_x)
    assert_allclose(gram, [[262500, 112500], [112500, 102500]], rtol=1e-14)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]"])
def test_nullable_columns_without_nulls_give_the_same_fit(model, pandas, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1, 0, 1, 1], "b": [0, 0, 1, 1]})
    y = [1.0, 2, 4, 3]
    expected = model().fit(frame.astype(float), y)
    assert_allclose(model().fit(frame.astype(dtype), y).coef_, expected.coef_, rtol=1e-12)


@pytest.mark.parametrize("standardize", [True, False])
def test_half_a_million_rows_of_float32(model, standardize):
    """Moments of float32 are summed in float64; stepping backends step in float32, and are off by its rounding."""
    X, y = np.float32([[1.5, 0.1], [2, -0.3], [3, 0.2], [4.25, 0.7]]), np.float32([2, 4, 6, 9])
    tiled, targets = np.tile(X, (125_000, 1)), np.tile(y, 125_000)
    settings = {"standardize": standardize, "max_iter": 100, "tol": None}
    fitted = model(**settings).fit(tiled, targets)
    assert fitted.coef_.dtype == np.float32
    assert fitted.predict(X).dtype == np.float32
    expected = model(**settings).fit(X.astype(float), y.astype(float))
    exactly = fitted.backend_ == "spectral"  # the others sum up half a million products in float32
    assert_allclose(fitted_values(fitted), fitted_values(expected), rtol=1e-5 if exactly else 1e-4)
    assert_allclose(fitted.loss_curve_, expected.loss_curve_, rtol=1e-5 if exactly else 1e-3)
    assert_allclose(model().fit(tiled[:, :1], targets).coef_, model().fit(X[:, :1], y).coef_, rtol=1e-5)


def test_moments_of_float32_are_summed_in_float64():
    X = np.tile(np.float32([[1.1], [2.3], [3.7], [4.9]]) + np.float32(1000), (125_000, 1))
    moments = Moments.from_arrays(X, X[:, 0])
    exact = X[:4].astype(float)
    assert moments.mean_x[0] == pytest.approx(exact.mean(), rel=1e-14)
    assert moments.scatter_xx[0, 0] == pytest.approx(500_000 * exact.var(), rel=1e-12)


@pytest.mark.parametrize("n_samples", [3, 5000])
@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("where", ["X", "y", "sparse X", "row of weight 0"])
def test_data_that_is_not_finite_is_refused_as_such(model, n_samples, value, words, where):
    """And not as a learning rate that is too large; the last rows lie beyond the first block of 4096."""
    X, y, weight = np.arange(1.0, n_samples + 1)[:, None], np.arange(1.0, n_samples + 1), np.ones(n_samples)
    (y if where == "y" else X)[-2] = value
    if where == "row of weight 0":
        weight[-2] = 0
    X = sp.csr_array(X) if where == "sparse X" else X
    with pytest.raises(ValueError, match=f"Input {'y' if where == 'y' else 'X'} contains {words}") as caught:
        model().fit(X, y, sample_weight=weight)
    assert not isinstance(caught.value, DivergenceError)
    assert "learning_rate" not in str(caught.value)
