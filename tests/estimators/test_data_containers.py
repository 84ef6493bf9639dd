"""Frames, lists, arrays of any memory layout and read-only ones: the same fit, and nothing is written to them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fssgd import DivergenceError
from helpers import fitted_values

FEW_STEPS = {"learning_rate": 0.1, "max_iter": 20, "tol": None}


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


def test_rows_of_frame_target_and_weight_are_paired_by_position(model, pandas):
    """And not by their labels, which are in another order here."""
    X = pandas.DataFrame({"x": [1.0, 2, 3, 4]}, index=[10, 20, 30, 40])
    y = pandas.Series([2.0, 4, 6, 9], index=[3, 2, 1, 0])
    weight = pandas.Series([1.0, 2, 3, 4], index=[40, 30, 20, 10])
    assert_allclose(fitted_values(model(tol=1e-12).fit(X, y)), [2.3, -0.5], rtol=1e-11)
    expected = model(tol=1e-12).fit(X.to_numpy(), y.to_numpy(), sample_weight=weight.to_numpy())
    assert_array_equal(model(tol=1e-12).fit(X, y, sample_weight=weight).coef_, expected.coef_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_feature_names_of_a_frame_are_checked(model, library):
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
def test_a_divergence_names_the_column_of_a_frame(model, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"width": [1.0, 2, 3, 4], "height": [200.0, 100, 400, 300]})
    with pytest.raises(DivergenceError, match=r"mostly column 'height'"):
        model(standardize=False, learning_rate=1.0).fit(frame, [1.0, 2, 3, 4])


def test_predicting_from_another_number_of_columns_is_refused(model):
    fitted = model().fit([[1, 2], [3, 5], [5, 1]], [1, 2, 3])
    with pytest.raises(ValueError, match="X has 3 features, but LinearRegressorGD is expecting 2 features as input"):
        fitted.predict([[1, 2, 3]])


def as_read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_samples", [7, 5000])
def test_nothing_is_written_to_the_input(model, sparse, dtype, n_samples):
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
def test_memory_layouts_of_the_arrays_make_no_difference(model, layout):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.uniform(1, 2, 20)
    expected, arrange = model(**FEW_STEPS).fit(X, y, sample_weight=weight), LAYOUTS[layout]
    fitted = model(**FEW_STEPS).fit(arrange(X), arrange(y), sample_weight=arrange(weight))
    assert_allclose(fitted_values(fitted), fitted_values(expected), rtol=1e-12)
