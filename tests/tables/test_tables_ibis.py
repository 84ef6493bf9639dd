"""Tables in SQL engines: the moments of their arrays, faults in words, and predictions that stay in the database."""

import math
import os
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fssgd import LinearRegressorGD, Moments
from fssgd._moments import table_registry
from fssgd.tables import ibis as reader
from fssgd.tables import register_table
from strategies import CI

ibis = pytest.importorskip("ibis")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytestmark = [  # of ibis 12.0.0, which calls what its engines have deprecated
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:fetch_:DeprecationWarning"),
]

rng = np.random.default_rng(0)
N = 500
DATA = {
    "id": np.arange(N),
    "a": rng.normal(size=N) + 3,
    "b": rng.integers(-9, 9, N),
    "c": rng.random(N) < 0.3,
    "y": rng.normal(size=N),
    "z": rng.normal(size=N),
    "w": rng.integers(0, 4, N).astype(float),
}
NAMES = ["b", "a", "c"]
X = np.column_stack([DATA[name] for name in NAMES]).astype(float)
NAN, INF = ibis.literal(float("nan")), ibis.literal(float("inf"))


def connect(engine):
    if engine != "postgres":
        return getattr(ibis, engine).connect()
    url = os.environ.get("FSSGD_POSTGRES_URL")
    if not url:
        pytest.skip("FSSGD_POSTGRES_URL names no server: run .ci/postgres pytest")
    return ibis.connect(url)


@pytest.fixture(scope="module", params=["duckdb", "postgres", "sqlite", "polars"])
def connection(request):
    connection = connect(request.param)
    yield connection
    connection.disconnect()


strict = pytest.mark.parametrize("connection", ["duckdb", "postgres"], indirect=True)


def table_of(connection, columns, name="fssgd_test"):
    columns = columns if isinstance(columns, pa.Table) else pa.table(columns)
    return connection.create_table(name, columns, overwrite=True)


def assert_same(moments, expected, rounding=1e-12):
    """Means relative to spread and size, second moments relative to the spreads of their columns."""
    spread = np.sqrt(expected.sums.squares)
    assert (moments.n_samples, moments.n_outputs) == (expected.n_samples, expected.n_outputs)
    np.testing.assert_allclose(moments.weight_sum, expected.weight_sum, rtol=rounding)
    np.testing.assert_array_equal(moments.sums.constant, expected.sums.constant)
    size = abs(expected.sums.mean) + spread / np.sqrt(expected.weight_sum)
    assert (abs(moments.sums.mean - expected.sums.mean) <= rounding * size).all()
    both = slice(None)
    error = abs(moments.sums.matrix - expected.sums.second_moments(both, both))
    assert (error <= rounding * np.outer(spread, spread)).all()
    np.testing.assert_array_equal(moments.sums.matrix, moments.sums.matrix.T)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("target", ["y", ["z", "y"]])
def test_equals_the_moments_of_the_arrays(connection, target, weight):
    table = table_of(connection, DATA)
    m = Moments.from_table(table, target=target, features=NAMES, weight=weight)
    y = np.column_stack([DATA[name] for name in ([target] if isinstance(target, str) else target)])
    assert_same(m, Moments.from_arrays(X, y, weight and DATA["w"]))
    assert list(m.feature_names) == NAMES
    assert weight is None or m.weight_sum == DATA["w"].sum()


@pytest.mark.parametrize("weight", [None, "w"])
def test_hostile_scales_and_constants(connection, weight):
    scales = np.logspace(-6, 6, 13)
    values = rng.normal(size=(N, 13)) * scales + np.resize([-1e9, 0.0, 1e3], 13) * np.maximum(scales, 1)
    values = np.column_stack([values, np.full(N, 0.1), np.where(DATA["w"] > 0, -7.3, 5.0), rng.integers(0, 2, N)])
    names = [f"x{j}" for j in range(values.shape[1])]
    table = table_of(connection, dict(zip(names, values.T, strict=True)) | {"y": values[:, 0] + 1e9, "w": DATA["w"]})
    m = Moments.from_table(table, target="y", features=names, weight=weight)
    assert_same(m, Moments.from_arrays(values, values[:, 0] + 1e9, weight and DATA["w"]), 1e-10)
    exact = [math.fsum(column) / N for column in values.T[:13]]
    if weight is None:
        np.testing.assert_allclose(m.mean_x[:13:3], exact[::3], rtol=4e-16)  # those of offset -1e9
    assert m.mean_x[13] == 0.1
    assert (m.mean_x[14] == -7.3) == (weight == "w")


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.slow
def test_more_columns_than_one_query_takes(connection, weight, monkeypatch):
    monkeypatch.setattr("fssgd.tables.ibis.COLUMNS_PER_QUERY", 37)
    values = rng.normal(size=(N, 65)) + np.arange(65)
    names = [f"x{j}" for j in range(65)]
    table = table_of(connection, dict(zip(names, values.T, strict=True)) | {"y": DATA["y"], "w": DATA["w"]})
    m = Moments.from_table(table, target="y", features=names, weight=weight)
    assert_same(m, Moments.from_arrays(values, DATA["y"], weight and DATA["w"]), 1e-11)


@strict
def test_products_beyond_the_range_of_float64(connection):
    values = np.outer(rng.normal(size=N), [1e-140, 1e140, 1.0])
    values[:3, 2] = [1e-200, -1e-300, 5e-324]
    weight = np.exp(-0.5 * np.linspace(0, 37, N) ** 2) * 1e-10
    table = table_of(connection, {"a": values[:, 0], "b": values[:, 1], "c": values[:, 2], "y": DATA["y"], "w": weight})
    for name, weights in ((None, None), ("w", weight)):
        m = Moments.from_table(table, target="y", features=["a", "b", "c"], weight=name)
        expected = Moments.from_arrays(values, DATA["y"], weights)
        assert_same(m, expected, 1e-11)


@strict
@pytest.mark.parametrize(("scale", "what"), [(1e160, "overflow"), (1e-160, "underflow")])
def test_squares_beyond_the_range_of_float64(connection, scale, what):
    table = table_of(connection, {"a": DATA["a"] * scale, "y": DATA["y"]})
    with pytest.raises(ValueError, match=rf"squared deviations of a {what} float64: change the unit"):
        Moments.from_table(table, target="y")


@strict
def test_numeric_types(connection):
    columns = {
        "small": pa.array([1, 2, -3, 4], pa.int16()),
        "big": pa.array([1, 2, 2**53, 2**60], pa.int64()),
        "half": pa.array([1.5, 2.5, -3.0, 0.0], pa.float32()),
        "price": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("-3.00"), Decimal("0.01")], pa.decimal128(9, 2)),
        "flag": pa.array([True, False, True, True]),
    }
    table = table_of(connection, columns | {"y": [1.0, 2.0, 4.0, 0.0]})
    values = np.array([[float(value) for value in column.to_pylist()] for column in columns.values()]).T
    assert_same(Moments.from_table(table, target="y"), Moments.from_arrays(values, [1.0, 2.0, 4.0, 0.0]))


def test_names_that_need_quotes(connection):
    names = ["select", "a b", 'x"y', "Mixed", "mixed_", "100%s", "x;--", "é", "c0"]
    values = rng.normal(size=(50, len(names)))
    given = [name.replace("%", "percent") for name in names]  # ibis cannot fill a PostgreSQL table with a % in it
    table = table_of(connection, dict(zip(given, values.T, strict=True)) | {"Order": values[:, 0]}, "fssgd Test")
    table = table.rename({"100%s": "100percents"})
    m = Moments.from_table(table, target="Order", features=names)
    assert_same(m, Moments.from_arrays(values, values[:, 0]))
    model = LinearRegressorGD().fit_moments(m)
    predicted = model.predict_table(table).execute()
    np.testing.assert_allclose(predicted["prediction"], model.predict(predicted[names]), rtol=1e-12)


@strict
def test_all_numeric_columns_are_features(connection):
    table = table_of(connection, DATA | {"town": ["x", "y"] * (N // 2)})
    message = r"Columns of the ibis table 'fssgd_test' that are not numeric were left out of the features: 'town'\."
    with pytest.warns(UserWarning, match=message) as caught:
        m = Moments.from_table(table, target="y", weight="w")
    assert caught[0].filename == __file__
    assert list(m.feature_names) == ["id", "a", "b", "c", "z"]


@strict
@pytest.mark.parametrize("weight", [None, "w"])
def test_missing_values(connection, weight):
    table = table_of(connection, DATA)
    table = table.mutate(
        b=table.id.isin([5, 6, 300]).ifelse(ibis.null("int64"), table.b),
        a=(table.id == 1).ifelse(NAN, (table.id == 5).ifelse(ibis.null("float64"), table.a)),
    )
    message = r"The ibis table has missing values .* in column 'b' \(3 rows\), column 'a' \(2 rows\): fill them in"
    with pytest.raises(ValueError, match=message + ".*on_missing='drop'"):
        Moments.from_table(table, target="y", features=NAMES, weight=weight)
    message = r"Dropped 4 of 500 rows of the ibis table for .* in column 'b' \(3 rows\), column 'a' \(2 rows\)\."
    with pytest.warns(UserWarning, match=message):
        m = Moments.from_table(table, target="y", features=NAMES, weight=weight, on_missing="drop")
    kept = np.delete(np.arange(N), [1, 5, 6, 300])
    assert_same(m, Moments.from_arrays(X[kept], DATA["y"][kept], weight and DATA["w"][kept]))


def test_nulls_in_every_engine(connection):
    table = table_of(connection, DATA | {"a": [None, None, *DATA["a"][2:]]})
    with pytest.raises(ValueError, match=r"'fssgd_test' has missing values .* in column 'a' \(2 rows\)"):
        Moments.from_table(table, target="y", features=NAMES)
    with pytest.warns(UserWarning, match=r"Dropped 2 of 500 rows"):
        m = Moments.from_table(table, target="y", features=NAMES, on_missing="drop")
    assert_same(m, Moments.from_arrays(X[2:], DATA["y"][2:]))


@strict
@pytest.mark.parametrize("on_missing", ["raise", "drop"])
def test_infinite_values_and_negative_weights(connection, on_missing):
    table = table_of(connection, DATA)
    table = table.mutate(
        a=(table.id == 3).ifelse(INF, (table.id == 4).ifelse(-INF, (table.id == 5).ifelse(NAN, table.a))),
        w=(table.id < 2).ifelse(-1.0, table.w),
    )
    with pytest.raises(
        ValueError, match=r"contains infinity or a value too large .* in column 'a' \(2 rows\): correct"
    ):
        Moments.from_table(table, target="y", features=NAMES, on_missing=on_missing)
    with pytest.raises(ValueError, match=r"has negative weights in column 'w' \(2 rows\): weights must be at least 0"):
        Moments.from_table(table, target="y", features=["b"], weight="w", on_missing=on_missing)


@strict
def test_tables_without_rows_that_count(connection):
    table = table_of(connection, DATA)
    with pytest.raises(ValueError, match=r"There are no rows in the ibis table\."):
        Moments.from_table(table.filter(table.id < 0), target="y", features=NAMES, weight="w")
    with pytest.raises(ValueError, match=r"All weights in the ibis table are zero: at least one row"):
        Moments.from_table(table.mutate(w=0.0 * table.w), target="y", features=NAMES, weight="w")
    with pytest.raises(ValueError, match=r"All 500 rows of the ibis table have a missing value"):
        Moments.from_table(table.mutate(a=NAN), target="y", features=NAMES, weight="w", on_missing="drop")


@strict
def test_columns_that_cannot_be_had(connection):
    table = table_of(connection, DATA | {"town": ["x"] * N})
    for arguments, message in [
        ({"target": "price"}, r"The ibis table 'fssgd_test' has no column 'price': its columns are 'id', 'a'"),
        ({"target": "y", "features": ["a", "town"]}, r"Column 'town' of .* is not numeric, it is of type string"),
        (
            {"target": "y", "features": ["a"], "accurate": True},
            r"the engine of the ibis table 'fssgd_test' returns only ",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            Moments.from_table(table, **arguments)
    accurate = Moments.from_table(table.to_pyarrow_batches(), target="y", features=["a"], accurate=True)
    assert accurate.accurate


@strict
def test_expressions(connection):
    table, other = table_of(connection, DATA), table_of(connection, {"id": DATA["id"], "e": DATA["z"]}, "fssgd_other")
    joined = table.filter(table.c).join(other, "id").mutate(f=lambda t: t.a * t.e)
    kept = DATA["c"]
    expected = Moments.from_arrays(
        np.column_stack([DATA["z"], DATA["a"] * DATA["z"]])[kept], DATA["y"][kept], DATA["w"][kept]
    )
    assert_same(Moments.from_table(joined, target="y", features=["e", "f"], weight="w"), expected)
    view = connection.create_view("fssgd_view", joined, overwrite=True)
    assert_same(Moments.from_table(view, target="y", features=["e", "f"], weight="w"), expected)
    connection.drop_view("fssgd_view")


def test_tables_of_no_engine():
    memory = ibis.memtable(pa.table(DATA))
    assert_same(Moments.from_table(memory, target="y", features=NAMES), Moments.from_arrays(X, DATA["y"]))
    unbound = ibis.table({"a": "float64", "y": "float64"}, name="houses")
    with pytest.raises(
        ValueError, match=r"The ibis table 'houses' is not bound to an engine: make it from a connection"
    ):
        Moments.from_table(unbound, target="y")
    with pytest.raises(TypeError, match=r"An ibis FloatingColumn is not a table: pass a Table"):
        Moments.from_table(unbound.a, target="y")


@strict
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO fssgd_test SELECT * FROM fssgd_test WHERE id = 0",
        "UPDATE fssgd_test SET a = a + 1 WHERE id = 0",
        "UPDATE fssgd_test SET w = 5 WHERE id = 0",
    ],
)
@pytest.mark.parametrize("after", [1, 2])
def test_a_table_that_changes_during_the_pass(connection, statement, after, monkeypatch):
    """A writer between two queries; weights are 1 or more so that each row counts."""
    table, fetched, queries = table_of(connection, DATA | {"w": DATA["w"] + 1}), reader._fetched, []

    def interrupted(*args, **sums):
        found = fetched(*args, **sums)
        queries.append(sums)
        if len(queries) == after:
            cursor = connection.raw_sql(statement)
            cursor.close() if connection.name == "postgres" else None  # DuckDB's is the connection
        return found

    monkeypatch.setattr(reader, "_fetched", interrupted)
    if after == 1 and "UPDATE" in statement:  # before anything was added up
        assert Moments.from_table(table, target="y", features=["a", "b"], weight="w").n_samples == N
        return
    with pytest.raises(ValueError, match=r"The ibis table 'fssgd_test' changed while it was read, .* a copy"):
        Moments.from_table(table, target="y", features=["a", "b"], weight="w")


@pytest.mark.parametrize("target", ["y", ["z", "y"]])
def test_predictions_are_those_of_the_model(connection, target):
    table = table_of(connection, DATA)
    model = LinearRegressorGD().fit_moments(Moments.from_table(table, target=target, features=NAMES))
    predicted = model.predict_table(table)
    assert isinstance(predicted, ibis.Table)
    names = ["prediction"] if target == "y" else ["prediction_0", "prediction_1"]
    assert list(predicted.columns) == [*DATA, *names]
    found = predicted.order_by("id").to_pyarrow().to_pandas()
    expected = model.predict(found[NAMES].astype(float))
    np.testing.assert_allclose(found[names].to_numpy(), expected.reshape(N, -1), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_predictions_of_many_columns():
    values = rng.normal(size=(30, 1500))
    names = [f"x{j}" for j in range(1500)]
    columns = dict(zip(names, values.T, strict=True))
    moments = Moments.from_table(pa.table(columns | {"y": DATA["y"][:30]}), target="y", features=names, accurate=True)
    model = LinearRegressorGD().fit_moments(moments)
    table = ibis.memtable(pa.table(columns))
    found = model.predict_table(table).select("prediction").to_pyarrow()["prediction"].to_numpy()
    np.testing.assert_allclose(found, values @ model.coef_ + model.intercept_, atol=1e-12)


def test_predictions_of_nulls_and_of_tables_without_an_engine(connection):
    model = LinearRegressorGD().fit_moments(Moments.from_table(pa.table(DATA), target="y", features=NAMES))
    table = table_of(connection, {"a": [1.0, None], "b": [1, 2], "c": [True, False]})
    found = model.predict_table(table).filter(lambda t: t.prediction.isnull()).b.to_pyarrow().to_pylist()
    assert found == [2]
    unbound = ibis.table({"a": "float64", "b": "int64", "c": "boolean"}, name="houses")
    assert "prediction" in model.predict_table(unbound).columns


def test_what_cannot_be_predicted():
    table = ibis.memtable(pa.table(DATA))
    model = LinearRegressorGD().fit_moments(Moments.from_table(table, target="y", features=NAMES))
    for other, message in [
        (table.drop("a"), r"The ibis table has no column 'a'"),
        (table.mutate(a=table.a.cast("string")), r"Column 'a' of the ibis table is not numeric, it is of type string"),
        (model.predict_table(table), r"The ibis table has a column 'prediction' already: rename it, or leave it out"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict_table(other)
    with pytest.raises(TypeError, match=r"an engine works on \(.*ibis.*\), got a pyarrow\.lib\.Table: pass its"):
        model.predict_table(pa.table(DATA))
    with pytest.raises(
        ValueError, match=r"finds columns by their names, and this model was fitted to data without any"
    ):
        LinearRegressorGD().fit(X, DATA["y"]).predict_table(table)


def test_another_package_can_predict(monkeypatch):
    for name in ("_readers", "_predictors"):
        monkeypatch.setattr(table_registry, name, getattr(table_registry, name).copy())
    with pytest.raises(ValueError, match=r"predict must look like 'module:function', got 'operator'"):
        register_table("decimal", "operator:pos", predict="operator")
    register_table("decimal", "operator:pos", predict=f"{__name__}:recorded")
    model = LinearRegressorGD().fit_moments(Moments.from_table(pa.table(DATA), target=["y", "z"], features=NAMES))
    table, features, coef, intercept, predictions = model.predict_table(Decimal(1))
    assert (table, features, predictions) == (1, NAMES, ["prediction_0", "prediction_1"])
    assert (coef.shape, intercept.shape) == ((2, 3), (2,))
    register_table("decimal", "operator:pos", overwrite=True)
    with pytest.raises(TypeError, match=r"an engine works on \(pyspark, ibis\), got a decimal\.Decimal"):
        model.predict_table(Decimal(1))


def recorded(*args):
    return args


@pytest.fixture(scope="module")
def duckdb():
    connection = ibis.duckdb.connect()
    yield connection
    connection.disconnect()


finite = st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda value: round(value, 3))


@CI
@given(
    rows=st.lists(st.tuples(finite, finite, finite, st.integers(0, 3)), min_size=1, max_size=30),
    offset=st.sampled_from([0.0, 1e9]),
    weighted=st.booleans(),
)
@pytest.mark.slow
def test_any_rows(duckdb, rows, offset, weighted):
    *columns, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    columns[0] += offset
    table = ibis.memtable(pa.table(dict(zip(["a", "b", "y", "w"], [*columns, weight], strict=True))))
    arguments = {"target": "y", "features": ["a", "b"], "weight": "w" if weighted else None}
    if weighted and not weight.any():
        with pytest.raises(ValueError, match="are zero: at least one row must have a positive weight"):
            Moments.from_table(table, **arguments)
        return
    m = Moments.from_table(table, **arguments)
    expected = Moments.from_arrays(np.column_stack(columns[:2]), columns[2], weight if weighted else None)
    assert_same(m, expected, 1e-10)
