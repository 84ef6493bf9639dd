"""Cases 21-27 of the field: shapes, types, frames, read-only and strided arrays."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

from cases import column, fitted_values
from fssgd import DivergenceError, Moments

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


# case 21
@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 2)])
def test_case_21_shapes_are_those_of_linear_regression(model, shape):
    X, y = (
        column(1, 2, 3, 4),
        np.broadcast_to(column(2, 4, 6, 9), (4, 2))[:, 0]
        if shape == (4,)
        else np.broadcast_to(column(2, 4, 6, 9), shape),
    )
    fitted, reference = model(tol=1e-12).fit(X, y), LinearRegression().fit(X, y)
    assert fitted.coef_.shape == reference.coef_.shape
    assert np.shape(fitted.intercept_) == np.shape(reference.intercept_)
    assert fitted.predict(X).shape == y.shape
    assert_allclose(fitted.coef_, np.full(fitted.coef_.shape, 2.3), rtol=1e-11)
    assert_allclose(fitted.intercept_, np.full(np.shape(fitted.intercept_), -0.5), rtol=1e-11)


@pytest.mark.parametrize(("shape", "start"), [((4,), [1.5]), ((4, 1), [[1.5]])])
def test_case_21_the_loss_pairs_rows(model, shape, start):
    X, y = column(1, 2, 3, 4), np.reshape([2.0, 4, 6, 9], shape)
    for standardize in (True, False):
        fitted = model(max_iter=0, tol=None, standardize=standardize).fit(X, y, coef_init=start)
        assert fitted.loss_ == pytest.approx(3.125, rel=1e-14)  # an n x n broadcast has 11.75
        assert_allclose(fitted.loss_curve_, [3.125], rtol=1e-14)


# case 22
def test_case_22_two_outputs(model):
    x = np.arange(6.0)
    fitted = model(tol=1e-12).fit(x[:, None], np.column_stack([2 * x + 1, -x + 4]))
    assert_allclose(fitted.coef_, [[2], [-1]], rtol=1e-11)
    assert_allclose(fitted.intercept_, [1, 4], rtol=1e-11)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_case_22_each_column_is_its_own_descent(model, standardize, fit_intercept):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)) * [1, 100] + [0, 5]
    settings = {"standardize": standardize, "fit_intercept": fit_intercept, "alpha": 0.1, **FEW_STEPS}
    fitted = model(**settings).fit(X, Y)
    alone = [model(**settings).fit(X, y) for y in Y.T]
    for j, one in enumerate(alone):
        assert_allclose(fitted.coef_[j], one.coef_, rtol=1e-12)
        assert np.broadcast_to(fitted.intercept_, 2)[j] == pytest.approx(one.intercept_, rel=1e-12)
    assert fitted.loss_ == pytest.approx(sum(one.loss_ for one in alone), rel=1e-12)
    assert_allclose(fitted.loss_curve_, sum(one.loss_curve_ for one in alone), rtol=1e-12)


def test_case_22_with_a_tolerance_outputs_share_k(model):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    fitted = model(tol=1e-6).fit(X, Y)
    exactly = model(max_iter=fitted.n_iter_, tol=None).fit(X, Y)
    assert isinstance(fitted.n_iter_, int)
    assert_allclose(fitted.coef_, exactly.coef_, rtol=1e-12)


# case 23: squares and differences of small integer types would wrap
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4"]
FLOATS = ["float16", "float32", "float64", ">f8", "object"]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_case_23_every_type_of_number(model, dtype):
    X, y = np.array([[2, 100], [120, 5], [7, 7], [90, 60], [11, 127]]), np.array([3, 127, 0, 90, 8])
    expected = model(**FEW_STEPS).fit(X.astype(float), y.astype(float))
    digits = 1e-5 if dtype == "float32" else 1e-12
    for targets in (y, y.astype(dtype)):
        fitted = model(**FEW_STEPS).fit(X.astype(dtype), targets)
        assert_allclose(fitted_values(fitted), fitted_values(expected), rtol=digits)
        assert fitted.coef_.dtype == (np.float32 if dtype == "float32" else np.float64)
    assert_allclose(model(**FEW_STEPS).fit(X.astype(float), y.astype(dtype)).coef_, expected.coef_, rtol=1e-12)


def test_case_23_bool(model):
    X, y = np.array([[True, False], [False, False], [True, True], [False, True]]), np.array([True, False, True, True])
    expected = model(tol=1e-12).fit(X.astype(float), y.astype(float))
    assert_allclose(fitted_values(model(tol=1e-12).fit(X, y)), fitted_values(expected), rtol=1e-12)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "object", "float16", "float32"])
def test_case_23_the_gram_matrix_of_small_integers(dtype, accurate):
    X = np.array([[200, 300], [400, 100], [250, 50]], dtype=dtype)
    moments = Moments.from_arrays(X, [1, 2, 3], accurate=accurate)
    gram = moments.scatter_xx + 3 * np.outer(moments.mean_x, moments.mean_x)
    assert_allclose(gram, [[262500, 112500], [112500, 102500]], rtol=1e-14)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]"])
def test_case_23_nullable_columns(model, pandas, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1, 0, 1, 1], "b": [0, 0, 1, 1]})
    y = [1.0, 2, 4, 3]
    expected = model().fit(frame.astype(float), y)
    assert_allclose(model().fit(frame.astype(dtype), y).coef_, expected.coef_, rtol=1e-12)


# case 24: moments are accumulated in float64 whatever the data is
@pytest.mark.parametrize("standardize", [True, False])
def test_case_24_half_a_million_rows_of_float32(model, standardize):
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


def test_case_24_float32_moments():
    X = np.tile(np.float32([[1.1], [2.3], [3.7], [4.9]]) + np.float32(1000), (125_000, 1))
    moments = Moments.from_arrays(X, X[:, 0])
    exact = X[:4].astype(float)
    assert moments.mean_x[0] == pytest.approx(exact.mean(), rel=1e-14)
    assert moments.scatter_xx[0, 0] == pytest.approx(500_000 * exact.var(), rel=1e-12)


# case 25
def test_case_25_rows_are_paired_by_position(model, pandas):
    X = pandas.DataFrame({"x": [1.0, 2, 3, 4]}, index=[10, 20, 30, 40])
    y = pandas.Series([2.0, 4, 6, 9], index=[3, 2, 1, 0])
    weight = pandas.Series([1.0, 2, 3, 4], index=[40, 30, 20, 10])
    assert_allclose(fitted_values(model(tol=1e-12).fit(X, y)), [2.3, -0.5], rtol=1e-11)
    expected = model(tol=1e-12).fit(X.to_numpy(), y.to_numpy(), sample_weight=weight.to_numpy())
    assert_array_equal(model(tol=1e-12).fit(X, y, sample_weight=weight).coef_, expected.coef_)


# case 26
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_case_26_feature_names(model, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"width": [1.0, 2, 3, 4], "height": [2.0, 1, 4, 3]})
    y = [2.0, 4, 6, 9]
    fitted = model().fit(frame, y)
    assert_array_equal(fitted.feature_names_in_, ["width", "height"])
    assert fitted.n_features_in_ == 2
    assert_allclose(fitted.coef_, model().fit(np.asarray(frame), y).coef_, rtol=1e-14)
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        fitted.predict(frame[["height", "width"]])
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frames.DataFrame({"width": [1.0], "depth": [2.0]}))
    if fitted.backend_ == "spectral":
        with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
            fitted.partial_fit(frame[["height", "width"]], y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_case_26_a_divergence_names_the_column(model, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"width": [1.0, 2, 3, 4], "height": [200.0, 100, 400, 300]})
    with pytest.raises(DivergenceError, match=r"mostly column 'height'"):
        model(standardize=False, learning_rate=1.0).fit(frame, [1.0, 2, 3, 4])


def test_case_26_a_wrong_column_count(model):
    fitted = model().fit([[1, 2], [3, 5], [5, 1]], [1, 2, 3])
    with pytest.raises(ValueError, match="X has 3 features, but LinearRegressorGD is expecting 2 features as input"):
        fitted.predict([[1, 2, 3]])


# case 27
def as_read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_samples", [7, 5000])
def test_case_27_nothing_is_written_to_the_input(model, sparse, dtype, n_samples):
    rng = np.random.default_rng(0)
    X, y = (
        as_read_only((rng.normal(size=(n_samples, 3)) + 3).astype(dtype)),
        as_read_only(rng.normal(size=n_samples).astype(dtype)),
    )
    weight, start = as_read_only(rng.integers(0, 3, n_samples).astype(float)), as_read_only(np.ones(3))
    if sparse:
        X = sp.csr_array(X)
        for part in (X.data, X.indices, X.indptr):
            part.flags.writeable = False
    arrays = [*((X.data, X.indices, X.indptr) if sparse else (X,)), y, weight, start]
    before = [array.copy() for array in arrays]
    for standardize in (True, False):
        fitted = model(standardize=standardize, max_iter=5, tol=None, learning_rate=0.01, alpha=0.1, warm_start=True)
        fitted.fit(X, y, sample_weight=weight, coef_init=start).fit(X, y, sample_weight=weight).predict(X)
        model().partial_fit(X, y, sample_weight=weight).partial_fit(X, y)
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


LAYOUTS = {
    "list": np.ndarray.tolist,
    "Fortran": np.asfortranarray,
    "strided": lambda a: (
        np.repeat(np.repeat(a, 2, axis=0), 3, axis=a.ndim - 1)[::2, ::3] if a.ndim > 1 else np.repeat(a, 2)[::2]
    ),
    "reversed": lambda a: a[::-1].copy()[::-1],
    "transposed": lambda a: a.T.copy().T,
    "unaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), dtype=np.uint8)[1:].view(a.dtype).reshape(a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_case_27_memory_layouts(model, layout):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.uniform(1, 2, 20)
    expected, arrange = model(**FEW_STEPS).fit(X, y, sample_weight=weight), LAYOUTS[layout]
    fitted = model(**FEW_STEPS).fit(arrange(X), arrange(y), sample_weight=arrange(weight))
    assert_allclose(fitted_values(fitted), fitted_values(expected), rtol=1e-12)


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "coo_matrix", "lil_array", "dok_matrix"])
def test_case_27_sparse_layouts(model, kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)) * rng.integers(0, 2, (20, 3)), rng.normal(size=20)
    fitted = model(**FEW_STEPS).fit(getattr(sp, kind)(X), y)
    assert_allclose(fitted_values(fitted), fitted_values(model(**FEW_STEPS).fit(X, y)), rtol=1e-11)


def test_case_27_duplicate_and_unsorted_sparse_entries(model):
    X = sp.csr_array((np.array([1.0, 2, 3, 5, 1]), np.array([1, 0, 0, 1, 1]), np.array([0, 3, 4, 5])), shape=(3, 2))
    y = [1.0, 2, 4]
    dense = model(**FEW_STEPS).fit(X.toarray(), y)
    assert_allclose(fitted_values(model(**FEW_STEPS).fit(X, y)), fitted_values(dense), rtol=1e-12)
