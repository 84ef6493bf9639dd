"""Fits on Dask collections: the model of the same arrays in memory, computed where the partitions are."""

import os
import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

import fssgd._estimators.fitting
from fssgd import DivergenceError, GradientPath, LinearRegressorGD, Moments
from fssgd._descent.coordinates import Coordinates
from fssgd._rows.dask_source import DaskSource
from fssgd.backends import Backend
from strategies import CI

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
N, P = 300, 4
X = rng.normal(size=(N, P)) * [1, 10, 0.1, 3] + [0, 5, 1, -50]
Y = X @ rng.normal(size=(P, 2)) + 7 + rng.normal(size=(N, 2))
y = Y[:, 0]
W = rng.integers(0, 3, N).astype(float)
NAMES = ["a", "b", "c", "d"]
STEPS = {"learning_rate": 0.2, "max_iter": 40, "tol": None}


@pytest.fixture(autouse=True)
def scheduler(request):
    """Everything in this thread, unless there is a cluster."""
    if "cluster" in request.fixturenames:
        yield
    else:
        with dask.config.set(scheduler="synchronous"):
            yield


def cut(array, rows=70, columns=None):
    """A Dask array in chunks of so many rows, and columns."""
    return da.from_array(array, chunks=(rows, *((columns or size) for size in array.shape[1:])))


def unknown(array, rows=70):
    """As ``cut``, of chunks whose sizes Dask does not know."""
    array = cut(array, rows)
    return da.map_blocks(lambda block: block, array, chunks=((np.nan,) * array.numblocks[0], *array.chunks[1:]))


def frame(values=X, npartitions=5):
    return dd.from_pandas(pd.DataFrame(values, columns=NAMES), npartitions=npartitions)


def series(values, npartitions=5):
    return dd.from_pandas(pd.Series(values, name="y"), npartitions=npartitions)


def refuse(block):
    raise AssertionError("this partition was not to be computed")


def assert_same(got, expected, rtol=1e-11):
    size = np.abs(expected.coef_ * np.where(expected.scale_ == 0, 1, expected.scale_)).max()
    error = np.abs((got.coef_ - expected.coef_) * expected.scale_).max()
    assert error <= rtol * size
    np.testing.assert_allclose(got.intercept_, expected.intercept_, rtol=rtol, atol=rtol * size)
    np.testing.assert_allclose(got.learning_rate_, expected.learning_rate_, rtol=rtol)
    np.testing.assert_allclose(got.loss_, expected.loss_, rtol=rtol)
    assert (got.n_iter_, got.converged_, got.backend_) == (expected.n_iter_, expected.converged_, expected.backend_)
    assert (got.coef_.shape, got.coef_.dtype) == (expected.coef_.shape, expected.coef_.dtype)
    assert type(got.intercept_) is type(expected.intercept_)


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize("target", [y, Y])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False, "learning_rate": "auto"},
        {"alpha": 0.3},
        {"standardize": False, "learning_rate": "auto"},
    ],
)
def test_a_fit_is_that_of_the_arrays(backend, weight, target, options):
    settings = {**STEPS, **options, "backend": backend}
    got = LinearRegressorGD(**settings).fit(cut(X), cut(target), None if weight is None else cut(weight))
    expected = LinearRegressorGD(**settings).fit(X, target, weight)
    assert_same(got, expected)
    np.testing.assert_allclose(got.loss_curve_, expected.loss_curve_, rtol=1e-11)


@pytest.mark.parametrize("limit", [4096, 0])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"alpha": 0.3}])
@pytest.mark.parametrize("weight", [None, W])
def test_past_the_limit_of_the_closed_form_the_partitions_are_stepped_over(monkeypatch, limit, sparse, options, weight):
    """By default, too: the columns are measured and the step bounded where the partitions are."""
    monkeypatch.setattr(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", limit)
    inside, outside = X.copy(), cut(X, 70)
    inside[np.abs(inside) < 0.3] = 0.0
    outside = cut(inside)
    if sparse:
        inside, outside = sp.csr_array(inside), outside.map_blocks(sp.csr_array)
    settings = {"tol": 1e-2, **options}
    got = LinearRegressorGD(**settings).fit(outside, cut(y), None if weight is None else cut(weight))
    expected = LinearRegressorGD(**settings).fit(inside, y, weight)
    assert got.backend_ == ("numpy" if limit == 0 else "spectral")
    assert_same(got, expected, 1e-10)
    np.testing.assert_allclose(got.loss_curve_, expected.loss_curve_, rtol=1e-10)


def test_more_columns_than_the_closed_form_takes(monkeypatch):
    wide = rng.normal(size=(60, 4200))
    got = LinearRegressorGD(max_iter=3, tol=None).fit(unknown(wide, 20), unknown(wide[:, 0], 20))
    monkeypatch.setattr(
        fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", 0
    )  # in memory the number of rows is known to be small
    expected = LinearRegressorGD(backend="numpy", max_iter=3, tol=None).fit(wide, wide[:, 0])
    np.testing.assert_allclose(got.coef_, expected.coef_, rtol=0, atol=1e-12)
    assert DaskSource.of(cut(wide), cut(wide[:, 0]), None).decomposition_size == 60
    assert DaskSource.of(unknown(wide), unknown(wide[:, 0]), None).decomposition_size == 4200


@settings(CI, max_examples=40)
@given(
    st.lists(st.integers(0, N), max_size=12).map(sorted),
    st.sampled_from(["spectral", "numpy"]),
    st.booleans(),
    st.booleans(),
)
@pytest.mark.slow
def test_any_partitioning_gives_the_same_fit(ends, backend, weighted, accurate):
    sizes = tuple(np.diff([0, *ends, N]).tolist())
    weight = W.copy() if weighted else None
    if weighted:
        weight[: sizes[0]] = 0.0  # a partition without weight
        weight[-1] = 1.0
    parts = [da.from_array(a, chunks=(sizes, *a.shape[1:])) for a in (X, y, *([weight] if weighted else []))]
    with dask.config.set(scheduler="synchronous"):
        got = LinearRegressorGD(backend=backend, **STEPS).fit(*parts)
        moments = Moments.from_arrays(*parts, accurate=accurate)
    assert_same(got, LinearRegressorGD(backend=backend, **STEPS).fit(X, y, weight))
    expected = Moments.from_arrays(X, y, weight, accurate=accurate)
    np.testing.assert_allclose(moments.scatter_xx, expected.scatter_xx, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(moments.mean_x, expected.mean_x, rtol=1e-13)


KINDS = {
    "other chunks": lambda: (cut(X, 70), cut(y, 45), cut(W, 300)),
    "chunks of columns": lambda: (cut(X, 70, 3), cut(y), cut(W)),
    "unknown sizes": lambda: (unknown(X), unknown(y), unknown(W)),
    "some sizes unknown": lambda: (unknown(X), cut(y), unknown(W)),
    "arrays beside": lambda: (cut(X), y, W),
    "lists beside": lambda: (cut(X), y.tolist(), W.tolist()),
    "frame and series": lambda: (frame(), series(y), series(W)),
    "frame and arrays": lambda: (frame(), unknown(y, 60), unknown(W, 60)),
    "array and series": lambda: (unknown(X, 60), series(y), series(W)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_collections_may_be_of_any_kind(kind, backend):
    got = LinearRegressorGD(backend=backend, **STEPS).fit(*KINDS[kind]())
    assert_same(got, LinearRegressorGD(backend=backend, **STEPS).fit(X, y, W))
    assert hasattr(got, "feature_names_in_") == kind.startswith("frame")
    assert got.n_features_in_ == P


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_the_dtype_of_x_is_kept(backend):
    narrow = X.astype(np.float32)
    for data in ((cut(narrow), cut(y)), (frame(narrow), series(y))):
        got = LinearRegressorGD(backend=backend, **STEPS).fit(*data)
        expected = LinearRegressorGD(backend=backend, **STEPS).fit(narrow, y)
        assert_same(got, expected, 1e-5)
        assert got.coef_.dtype == np.float32
    integers = LinearRegressorGD(**STEPS).fit(cut(X.astype(int)), cut(y))
    assert_same(integers, LinearRegressorGD(**STEPS).fit(X.astype(int), y))


def test_nullable_columns_without_nulls_are_numbers():
    table = frame(X.round()).astype({"a": "Int64", "b": "Float64"})
    assert_same(LinearRegressorGD(**STEPS).fit(table, series(y)), LinearRegressorGD(**STEPS).fit(X.round(), y))


def test_names_go_into_the_moments():
    model = LinearRegressorGD().fit(frame(), series(y))
    assert list(model.feature_names_in_) == NAMES == list(model.moments_.feature_names)
    assert list(Moments.from_arrays(frame(), series(y)).feature_names) == NAMES
    assert Moments.from_arrays(cut(X), cut(y)).feature_names is None
    assert model.moments_.n_samples == N


def test_partial_fit_goes_on():
    model = LinearRegressorGD(**STEPS).fit(frame(X[:100]), series(y[:100]), series(W[:100]))
    model.partial_fit(frame(X[100:200]), series(y[100:200]), series(W[100:200]))
    model.partial_fit(pd.DataFrame(X[200:], columns=NAMES), y[200:], W[200:])
    assert_same(model, LinearRegressorGD(**STEPS).fit(X, y, W))
    assert_same(LinearRegressorGD(**STEPS).partial_fit(cut(X), cut(y), cut(W)), model)
    with pytest.raises(ValueError, match=r"y has shape \(300, 2\), but earlier batches gave coef_ of shape \(4,\)"):
        model.partial_fit(frame(), cut(Y, 60))
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame().rename(columns={"a": "z"}), series(y))


def test_a_later_batch_without_weight_is_checked_and_changes_nothing():
    model = LinearRegressorGD(**STEPS).partial_fit(cut(X), cut(Y))
    before = vars(model).copy()
    assert model.partial_fit(unknown(X), unknown(-Y), unknown(0 * W)) is model
    assert model.partial_fit(cut(-X), cut(-Y), 0 * W) is model
    assert model.partial_fit(-X, -Y, 0 * W) is model
    assert all(vars(model)[name] is value for name, value in before.items())
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.partial_fit(cut(np.where(X > 1, np.nan, X)), cut(Y), cut(0 * W))
    with pytest.raises(ValueError, match=r"y has shape \(300,\), but earlier batches gave coef_ of shape \(2, 4\)"):
        model.partial_fit(cut(X), cut(y), cut(0 * W))


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_warm_and_given_starts(backend):
    settings = {**STEPS, "backend": backend}
    start = {"coef_init": [1.0, 2.0, 3.0, 4.0], "intercept_init": 5.0}
    got = LinearRegressorGD(**settings).fit(cut(X), cut(y), **start)
    assert_same(got, LinearRegressorGD(**settings).fit(X, y, **start))
    warm = LinearRegressorGD(**settings, warm_start=True).fit(cut(X), cut(y))
    further = LinearRegressorGD(**{**settings, "max_iter": 80}).fit(X, y)
    np.testing.assert_allclose(warm.fit(cut(X), cut(y)).coef_, further.coef_, rtol=1e-10)


def test_ill_conditioned_data_is_read_again_by_qr():
    """Powers of x: the scatter matrix alone leaves few right digits of the limit."""
    x = np.linspace(-0.9, 1, 200)
    powers = np.vander(x, 13, increasing=True)[:, 1:]
    truth = np.arange(1.0, 13.0)
    target = powers @ truth + 3
    model = LinearRegressorGD(backend="spectral", max_iter=np.inf, tol=None)
    got = model.fit(cut(powers, 30), cut(target, 30))
    assert got.moments_.accurate
    np.testing.assert_allclose(got.coef_, truth, rtol=1e-9)
    with pytest.warns(LinAlgWarning, match="Rounding of the second moments"):
        alone = model.fit_moments(Moments.from_arrays(cut(powers, 30), cut(target, 30)))
    assert np.abs(alone.coef_ / truth - 1).max() > 1e-9
    path = GradientPath.from_arrays(cut(powers, 30), cut(target, 30))
    np.testing.assert_allclose(path.coef(np.inf), truth, rtol=1e-9)


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_too_large_a_step_diverges_as_in_memory(backend):
    errors = []
    for data in ((X, y), (cut(X), cut(y)), (frame(), series(y))):
        with pytest.raises(DivergenceError, match="Gradient descent diverged") as caught:
            LinearRegressorGD(learning_rate=3.0, backend=backend).fit(*data)
        errors.append(caught.value)
    assert errors[0].n_iter == errors[1].n_iter == errors[2].n_iter
    assert errors[1].max_learning_rate == pytest.approx(errors[0].max_learning_rate, rel=1e-12)
    assert [error.feature for error in errors[:2]] == [f"x{NAMES.index(errors[2].feature)}"] * 2


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_a_descent_that_runs_out_of_steps_warns(backend):
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        LinearRegressorGD(max_iter=2, backend=backend).fit(cut(X), cut(y))
    assert caught[0].filename == __file__


def test_a_fitted_model_pickles_and_holds_no_collection():
    for backend in ("spectral", "numpy"):
        model = LinearRegressorGD(backend=backend, **STEPS).fit(cut(X), cut(y))
        assert b"dask" not in (data := pickle.dumps(model))
        np.testing.assert_array_equal(pickle.loads(data).coef_, model.coef_)


class TestPredictions:
    @pytest.mark.parametrize("target", [y, Y])
    @pytest.mark.parametrize("data", [lambda: cut(X), lambda: cut(X, 70, 3), lambda: unknown(X)])
    def test_of_arrays(self, target, data):
        model = LinearRegressorGD(**STEPS).fit(X, target)
        predicted = model.predict(data())
        assert isinstance(predicted, da.Array)
        assert (predicted.ndim, predicted.dtype) == (target.ndim, np.float64)
        assert predicted.numblocks[0] == 5
        np.testing.assert_allclose(predicted.compute(), model.predict(X), rtol=1e-13)

    def test_of_frames(self):
        model = LinearRegressorGD(**STEPS).fit(frame(), series(y))
        predicted = model.predict(frame())
        expected = model.predict(pd.DataFrame(X, columns=NAMES))
        np.testing.assert_allclose(predicted.compute(), expected, rtol=1e-13)
        beside = frame().assign(predicted=predicted)
        np.testing.assert_allclose(beside["predicted"].compute(), expected, rtol=1e-13)

    def test_are_lazy(self):
        model = LinearRegressorGD(**STEPS).fit(X, y)
        predicted = model.predict(cut(X).map_blocks(refuse, dtype=float, meta=np.empty((0, 0))))
        with pytest.raises(AssertionError, match="was not to be computed"):
            predicted.compute()

    def test_match_columns_by_name(self):
        model = LinearRegressorGD(**STEPS).fit(frame(), series(y))
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            model.predict(frame()[NAMES[::-1]])
        with pytest.raises(ValueError, match="X has 3 features, but LinearRegressorGD is expecting 4"):
            LinearRegressorGD().fit(X, y).predict(cut(X[:, :3]))

    def test_are_never_silently_nan(self):
        hole = X.copy()
        hole[200, 1] = np.nan
        predicted = LinearRegressorGD(**STEPS).fit(X, y).predict(cut(hole))
        with pytest.raises(ValueError, match="Input X contains NaN"):
            predicted.compute()

    def test_keep_float32(self):
        model = LinearRegressorGD(**STEPS).fit(X.astype(np.float32), y)
        predicted = model.predict(cut(X.astype(np.float32)))
        assert predicted.dtype == predicted.compute().dtype == np.float32

    def test_are_scored(self):
        model = LinearRegressorGD(**STEPS).fit(X, y)
        assert model.score(cut(X), cut(y), cut(W)) == pytest.approx(model.score(X, y, W), rel=1e-12)
        model.fit(frame(), series(y))
        named = pd.DataFrame(X, columns=NAMES)
        assert model.score(frame(), series(y)) == pytest.approx(model.score(named, y), rel=1e-12)


def with_value(array, value):
    array = array.copy()
    array.flat[-1] = value
    return array


CASES = {
    "rows of y": (lambda: (cut(X), cut(y[:200])), "inconsistent numbers of samples: X has 300 rows, y has 200"),
    "rows of an array": (lambda: (cut(X), y[:200]), "inconsistent numbers of samples"),
    "rows of weights": (lambda: (cut(X), cut(y), cut(W[:9])), "X has 300 rows, sample_weight has 9"),
    "unknown partitions": (
        lambda: (unknown(X), unknown(y, 50)),
        "X has 5 partitions of rows and y has 6, of sizes that are not all known: repartition both alike, or call "
        "compute_chunk_sizes",
    ),
    "unknown sizes differ": (lambda: (unknown(X, 70), unknown(y, 74)), "inconsistent numbers of samples"),
    "array beside unknown": (lambda: (unknown(X), y), "y is a ndarray, which cannot be cut into the chunks of X"),
    "dimensions of X": (lambda: (cut(y), cut(y)), "X has 1 dimensions, expected 2: reshape it"),
    "dimensions of y": (lambda: (cut(X), cut(Y[:, :, None])), "y has 3 dimensions, expected 1 or 2"),
    "dimensions of weights": (lambda: (cut(X), cut(y), cut(Y)), "sample_weight has 2 dimensions, expected 1"),
    "weight as a number": (
        lambda: (cut(X), cut(y), 2.0),
        "sample_weight is array.*: expected one number for each row of X",
    ),
    "text in X": (lambda: (cut(np.full((9, 2), "a")), cut(y[:9])), "X has dtype <U1: expected numbers"),
    "text in y": (lambda: (cut(X), cut(np.full(N, "a"))), "y has dtype <U1: expected numbers"),
    "text column": (
        lambda: (frame().assign(town="a"), series(y)),
        r"X has columns that are not numeric: 'town' \(.*\). Convert them, or leave them out",
    ),
    "NaN in X": (lambda: (cut(with_value(X, np.nan)), cut(y)), "Input X contains NaN"),
    "inf in X": (lambda: (cut(with_value(X, np.inf)), cut(y)), "Input X contains infinity"),
    "NaN in y": (lambda: (cut(X), cut(with_value(y, np.nan))), "Input y contains NaN"),
    "NaN without weight": (
        lambda: (cut(with_value(X, np.nan)), cut(y), cut(with_value(W, 0.0))),
        "Input X contains NaN",
    ),
    "null in a frame": (lambda: (frame(with_value(X, np.nan)), series(y)), "Input X contains NaN"),
    "negative weight": (
        lambda: (cut(X), cut(y), cut(with_value(W, -1.0))),
        "Negative values in data passed to `sample",
    ),
    "NaN weight": (lambda: (cut(X), cut(y), cut(with_value(W, np.nan))), "Input sample_weight contains NaN"),
    "no weight": (lambda: (cut(X), cut(y), cut(0 * W)), "Sample weights must contain at least one non-zero number"),
    "no rows": (
        lambda: (unknown(X)[unknown(y) > 1e9], unknown(y)[unknown(y) > 1e9]),
        r"Found array with 0 sample\(s\)",
    ),
    "overflow": (lambda: (cut(1e200 * X), cut(y)), "The squared deviations of x0, x1, x2, x3 overflow float64"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("limit", [4096, 0])
def test_invalid_collections_are_refused(monkeypatch, case, limit):
    monkeypatch.setattr(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", limit)
    data, text = CASES[case]
    with pytest.raises(ValueError, match=text):
        LinearRegressorGD().fit(*data())


def test_shapes_are_refused_before_anything_is_computed():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LinearRegressorGD().fit(cut(X).map_blocks(refuse, dtype=float, meta=np.empty((0, 0))), cut(y[:200]))


class InMemory(Backend):
    name = "in-memory"

    def solve(self, problem, monitor):
        return problem.rows_in_memory()


def test_a_backend_that_needs_the_rows_in_memory_says_what_to_use():
    with pytest.raises(ValueError, match="spread over the partitions of a collection.*backend='numpy'.*or 'spectral'"):
        LinearRegressorGD(backend=InMemory()).fit(cut(X), cut(y))


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
@pytest.mark.slow
def test_a_cluster_gives_the_same_model(cluster, backend):
    got = LinearRegressorGD(backend=backend, **STEPS).fit(cut(X), cut(y), cut(W))
    assert_same(got, LinearRegressorGD(backend=backend, **STEPS).fit(X, y, W))
    np.testing.assert_allclose(got.predict(cut(X)).compute(), got.predict(X), rtol=1e-13)


@pytest.mark.slow
def test_steps_go_on_when_a_worker_dies(cluster):
    """Between two steps: the partitions it held are laid out again by another."""
    rows = DaskSource.of(cut(X, 20), cut(y, 20), None).rows(
        Coordinates(X.mean(axis=0), X.std(axis=0), np.zeros(1), True)
    )
    theta = rng.normal(size=(P + 1, 1))
    before = rows.squared_residual_and_gradient(theta)
    held = cluster.has_what()
    victim = max(held, key=lambda address: len(held[address]))
    assert len(held[victim]) > 0
    (pid,) = cluster.run(os.getpid, workers=[victim]).values()
    os.kill(pid, signal.SIGKILL)
    after = rows.squared_residual_and_gradient(theta)
    assert float(after[0]) == float(before[0])
    np.testing.assert_array_equal(after[1], before[1])
    assert victim not in cluster.has_what()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: da.ones(6, chunks=3), r"^X has 1 dimensions, expected 2: reshape it\.$"),
        (lambda: da.ones((4, 3, 2), chunks=2), r"^X has 3 dimensions, expected 2: reshape it\.$"),
        (lambda: frame()["a"] if "a" in frame() else frame().iloc[:, 0], r"^X has 1 dimensions"),
    ],
)
def test_predict_says_what_shape_it_expects(wrong, text):
    model = LinearRegressorGD().fit(cut(X), cut(y))
    with pytest.raises(ValueError, match=text):
        model.predict(wrong())


def test_complex_frames_and_missing_targets_are_refused():
    table = frame()
    column = table.columns[0]
    with pytest.raises(ValueError, match=r"X has columns that are not numeric: .* \(complex128\)"):
        LinearRegressorGD().fit(table.assign(**{column: table[column] + 1j}), series(y))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        LinearRegressorGD().fit(cut(X), None)
