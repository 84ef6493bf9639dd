"""Dask DataFrames: the moments of the table in one piece, from any partitions, workers lost on the way included."""

import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fssgd import LinearRegressorGD, Moments
from strategies import CI

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "a": rng.normal(size=N) + 100,
        "b": rng.integers(-9, 9, N),
        "c": rng.random(N) < 0.3,
        "y": rng.normal(size=N),
        "w": rng.integers(0, 4, N).astype(float),
    }
)
TOWN = FRAME.assign(town="x")
ASKED = {"target": "y", "features": ["c", "a", "b"], "weight": "w"}
FIELDS = ("mean_x", "mean_y", "scatter_xx", "scatter_xy", "scatter_yy")


def table(frame=FRAME, npartitions=7):
    return dd.from_pandas(frame, npartitions=npartitions)


def cut_at(frame, ends):
    """A table with these partitions, some of them empty."""
    parts = [frame.iloc[start:end] for start, end in zip([0, *ends], [*ends, len(frame)], strict=True)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def refuse(part):
    raise AssertionError("this partition was not to be computed")


def assert_same(got, expected):
    assert (got.n_samples, got.weight_sum) == (expected.n_samples, expected.weight_sum)
    assert list(got.feature_names) == list(expected.feature_names)
    spread = np.sqrt(np.diag(expected.scatter_xx)), np.sqrt(np.diag(expected.scatter_yy))
    sizes = {"x": spread[0], "y": spread[1]}
    for name in FIELDS:
        left, right = (name[-1], None) if name.startswith("mean") else name[-2:]
        size = np.abs(getattr(expected, name)) if right is None else np.outer(sizes[left], sizes[right])
        assert (np.abs(getattr(got, name) - getattr(expected, name)) <= 1e-12 * size).all(), name


@pytest.mark.parametrize("npartitions", [1, 2, 7, 100])
@pytest.mark.parametrize("accurate", [False, True])
def test_partitions_add_up_to_the_table(npartitions, accurate):
    got = Moments.from_table(table(npartitions=npartitions), **ASKED, accurate=accurate)
    assert got.accurate is accurate
    assert_same(got, Moments.from_table(FRAME, **ASKED, accurate=accurate))


@settings(CI, max_examples=50)
@given(st.data())
@pytest.mark.slow
def test_any_partitioning_gives_the_same_moments(data):
    n_rows = data.draw(st.integers(1, 40))
    values = st.integers(-(10**6), 10**6).map(lambda n: n / 64)
    frame = pd.DataFrame(
        {name: data.draw(st.lists(values, min_size=n_rows, max_size=n_rows)) for name in ("a", "b", "y")}, dtype=float
    )
    frame["w"] = data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows).filter(any))
    ends = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=20)))
    asked = {"target": "y", "weight": "w", "accurate": data.draw(st.booleans())}
    with dask.config.set(scheduler="synchronous"):
        got, expected = Moments.from_table(cut_at(frame, ends), **asked), Moments.from_table(frame, **asked)
    largest = np.abs(frame[["a", "b", "y"]]).to_numpy().max() + 1
    for name in FIELDS:
        scale = largest if name.startswith("mean") else expected.weight_sum * largest**2
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=0, atol=1e-14 * scale)
    assert (got.n_samples, got.weight_sum) == (expected.n_samples, expected.weight_sum)
    np.testing.assert_array_equal(got.variance_x == 0, expected.variance_x == 0)


def test_the_result_is_the_same_to_the_bit_on_every_scheduler():
    results = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            results.append(Moments.from_table(table(npartitions=30), **ASKED))
    for name in FIELDS:
        np.testing.assert_array_equal(*(getattr(moments, name) for moments in results))


def test_nullable_and_arrow_columns_are_read():
    frame = FRAME.assign(b=FRAME["b"].astype("Int64"), a=FRAME["a"].astype("Float32"))
    assert_same(Moments.from_table(table(frame), **ASKED), Moments.from_table(frame, **ASKED))


def test_columns_that_are_not_asked_for_are_not_computed():
    other = table(TOWN).assign(bad=table(TOWN)["a"].map_partitions(refuse, meta=("bad", float)))
    assert_same(Moments.from_table(other, **ASKED), Moments.from_table(FRAME, **ASKED))


def test_parquet_is_read_by_column(tmp_path):
    pytest.importorskip("pyarrow")
    TOWN.to_parquet(tmp_path / "t.parquet", row_group_size=50)
    read = dd.read_parquet(tmp_path / "t.parquet", split_row_groups=True)
    assert_same(Moments.from_table(read, **ASKED), Moments.from_table(FRAME, **ASKED))


def test_features_default_to_the_numeric_columns():
    with pytest.warns(UserWarning, match="Columns of the Dask DataFrame that are not numeric .* 'town'") as caught:
        got = Moments.from_table(table(TOWN), target="y", weight="w")
    assert caught[0].filename == __file__
    assert list(got.feature_names) == ["a", "b", "c"]


def test_the_fit_is_that_of_the_frame():
    got = LinearRegressorGD(max_iter=50, tol=None).fit_moments(Moments.from_table(table(), **ASKED))
    expected = LinearRegressorGD(max_iter=50, tol=None).fit_moments(Moments.from_table(FRAME, **ASKED))
    np.testing.assert_allclose(got.coef_, expected.coef_, rtol=1e-11)


def holed():
    frame = FRAME.copy()
    frame.loc[[3, 200, 399], "a"] = np.nan
    frame.loc[200, "y"] = np.nan
    return frame


def test_missing_values_are_counted_over_all_partitions():
    text = (
        r"^The Dask DataFrame has missing values \(null or NaN\) in column 'a' \(3 rows\), column 'y' \(1 row\): "
        "fill them in, or pass on_missing='drop'"
    )
    with pytest.raises(ValueError, match=text):
        Moments.from_table(table(holed()), **ASKED)


def test_dropped_rows_are_reported_once():
    text = (
        r"Dropped 3 of 400 rows of the Dask DataFrame for missing values \(null or NaN\) in column 'a' \(3 rows\), "
        r"column 'y' \(1 row\)\."
    )
    with pytest.warns(UserWarning, match=text) as caught:
        got = Moments.from_table(table(holed()), **ASKED, on_missing="drop")
    assert [warning.filename for warning in caught] == [__file__]
    assert_same(got, Moments.from_table(FRAME.drop([3, 200, 399]), **ASKED))


def test_faults_are_counted_everywhere_and_infinities_come_first():
    frame = holed()
    frame.loc[[1, 2, 390], "y"] = np.inf
    with pytest.raises(ValueError, match=r"contains infinity .* in column 'y' \(3 rows\): correct these values"):
        Moments.from_table(table(frame, 10), **ASKED)
    frame.loc[[1, 2, 390], "y"] = 0.0
    with pytest.raises(ValueError, match=r"missing values .* in column 'a' \(3 rows\), column 'y' \(1 row\)"):
        Moments.from_table(table(frame, 10), **ASKED)


def test_negative_weights_are_counted():
    frame = FRAME.copy()
    frame.loc[[0, 399], "w"] = -1.0
    with pytest.raises(ValueError, match=r"negative weights in column 'w' \(2 rows\): weights must be at least 0"):
        Moments.from_table(table(frame), **ASKED)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"target": "price"}, "The Dask DataFrame has no column 'price': its columns are 'a', 'b'"),
        ({"target": "y", "features": ["a", "town"]}, "Column 'town' of the Dask DataFrame is not numeric, .* str"),
        ({"target": "town", "features": ["a"]}, "Column 'town' of the Dask DataFrame is not numeric"),
        ({"target": "y", "features": ["a"], "progress": True}, "dask.diagnostics.ProgressBar"),
        ({"target": "y", "features": ["a"], "checkpoint": "c.npz"}, "checkpoint is for files"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_computed(asked, text):
    with pytest.raises(ValueError, match=text):
        Moments.from_table(table(TOWN).map_partitions(refuse, meta=TOWN.iloc[:0]), **asked)


def test_tables_without_rows_or_weight_are_refused():
    with pytest.raises(ValueError, match="There are no rows in the Dask DataFrame"):
        Moments.from_table(cut_at(FRAME.iloc[:0], [0, 0]), **ASKED)
    with pytest.raises(ValueError, match="All weights in the Dask DataFrame are zero"):
        Moments.from_table(table(FRAME.assign(w=0.0)), **ASKED)
    with pytest.raises(ValueError, match="All 400 rows of the Dask DataFrame have a missing value"):
        Moments.from_table(table(FRAME.assign(y=np.nan)), **ASKED, on_missing="drop")


def test_a_series_is_no_table():
    with pytest.raises(TypeError, match="A Dask Series is not a table: pass a DataFrame"):
        Moments.from_table(table()["a"], target="a")


def die_once(part, flag):
    """Kill the process that computes this, the first time."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return part
    os.kill(os.getpid(), signal.SIGKILL)
    return None


@pytest.mark.slow
def test_a_worker_may_die_on_the_way(cluster, tmp_path):
    flag = str(tmp_path / "killed")
    before = set(cluster.run(os.getpid).values())
    got = Moments.from_table(table(npartitions=20).map_partitions(die_once, flag, meta=FRAME.iloc[:0]), **ASKED)
    assert os.path.exists(flag)
    cluster.wait_for_workers(2, timeout=60)
    assert len(before - set(cluster.run(os.getpid).values())) == 1
    with dask.config.set(scheduler="synchronous"):
        here = Moments.from_table(table(npartitions=20), **ASKED)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(got, name), getattr(here, name))


@pytest.mark.slow
def test_faults_come_back_from_workers(cluster):
    with pytest.raises(ValueError, match=r"missing values .* in column 'a' \(3 rows\), column 'y' \(1 row\)"):
        Moments.from_table(table(holed()), **ASKED)
