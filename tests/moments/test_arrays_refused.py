"""What is no array but often meant as data, and in which words it is refused."""

import io
import pathlib

import numpy as np
import pytest
import scipy.sparse as sp

from fssgd import GradientPath, LinearRegressorGD, LinearRegressorGDCV, Moments, diagnose

X = np.random.default_rng(0).normal(size=(8, 2))
Y = X @ [1.0, 2.0] + np.arange(8.0)
ROUTES = {
    "fit": lambda X, y, weight=None: LinearRegressorGD().fit(X, y, weight),
    "partial_fit": lambda X, y, weight=None: LinearRegressorGD().partial_fit(X, y, weight),
    "later partial_fit": lambda X, y, weight=None: LinearRegressorGD().partial_fit(*DATA).partial_fit(X, y, weight),
    "moments": Moments.from_arrays,
    "path": GradientPath.from_arrays,
    "diagnose": diagnose,
    "cv": lambda X, y, weight=None: LinearRegressorGDCV(cv=2).fit(X, y, weight),
}
DATA = X, Y
PATHS = {
    "a path": ("homes.csv", "the text or path 'homes.csv'"),
    "a Path": (pathlib.Path("homes.csv"), "the text or path 'homes.csv'"),
    "bytes": (b"homes.csv", "the text or path b'homes.csv'"),
    "paths": (["a.csv", "b.csv"], r"a list of texts or paths \(the first is 'a.csv'\)"),
    "Paths": ((pathlib.Path("a.csv"),), r"a tuple of texts or paths \(the first is 'a.csv'\)"),
    "an open file": (io.StringIO("a,b"), "a _io.StringIO"),
    "a generator": ((row for row in X), "a builtins.generator"),
    "a dict": ({"a": X[:, 0]}, "a builtins.dict"),
}


@pytest.fixture(params=ROUTES)
def take(request):
    return ROUTES[request.param]


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("X", [X, sp.csr_array(X)], ids=["dense X", "sparse X"])
def test_a_sparse_y(take, form, X):
    with pytest.raises(TypeError, match=rf"y is sparse \(a {form.__name__}\): expected an .* pass y.toarray\("):
        take(X, form(Y[:, None]))
    if form is sp.coo_array:
        with pytest.raises(TypeError, match=r"y is sparse"):
            take(X, form(Y))


@pytest.mark.parametrize("fill", [0.0, np.nan])
def test_a_y_of_sparse_columns(take, fill):
    pd = pytest.importorskip("pandas")
    column = pd.arrays.SparseArray(Y, fill_value=fill)
    with pytest.raises(TypeError, match=r"y is sparse \(columns of dtype Sparse\[.*pass y.sparse.to_dense\(\)"):
        take(X, pd.DataFrame({"y": column}))
    take(X, pd.Series(column))  # which NumPy makes dense by itself


def test_a_sparse_y_in_dask_collections():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(4, 2))
    with pytest.raises(TypeError, match="y is sparse"):
        LinearRegressorGD().fit(rows, sp.csr_array(Y[:, None]))
    with pytest.raises(TypeError, match="y is sparse"):
        LinearRegressorGD().fit(rows, da.from_array(Y[:, None], chunks=(4, 1)).map_blocks(sp.csr_array))
    hidden = da.from_array(Y[:, None], chunks=(4, 1)).map_blocks(sp.csr_array, meta=np.empty((0, 0)))
    with pytest.raises(TypeError, match="y is sparse"):
        LinearRegressorGD().fit(rows, hidden)


@pytest.mark.parametrize("given", PATHS)
def test_paths_and_other_things_that_are_read_and_not_passed(take, given):
    value, what = PATHS[given]
    message = rf"X is {what}: expected numbers of shape \(n_samples, n_features\), .* pass Moments.from_table\(path"
    with pytest.raises(TypeError, match=message):
        take(value, Y)
    with pytest.raises(TypeError, match=message):
        LinearRegressorGD().fit(X, Y).predict(value)


@pytest.mark.parametrize("name", ["price", b"price", pathlib.Path("price")])
def test_names_in_place_of_columns(take, name):
    with pytest.raises(TypeError, match=r"y is the text or path b?'price': .* pass the column and not its name"):
        take(X, name)
    with pytest.raises(TypeError, match=r"sample_weight is the text or path b?'price': expected numbers of shape"):
        take(X, Y, name)


def test_lists_of_numbers_are_arrays(take):
    take(X.tolist(), Y.tolist(), 2.0)
    take(tuple(map(tuple, X.tolist())), tuple(Y.tolist()), [1] * 8)
    take(memoryview(X), memoryview(Y))
