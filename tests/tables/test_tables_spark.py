"""Moments of Spark DataFrames: those of the arrays, whatever the partitions, and the words of every other table."""

import os
import shutil
import sys
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import fssgd
from fssgd import LinearRegressorGD, Moments
from fssgd.tables import spark as spark_tables
from fssgd.tables.spark import predict_spark

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs java"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

rng = np.random.default_rng(0)
N = 3000
X = rng.normal(size=(N, 4)) * [1e-6, 1.0, 1e3, 1e-5] + [1.0, -2.0, 1e5, 0.0]
Y = np.column_stack([X @ [1e6, 2.0, 1e-3, 1e5], rng.normal(size=N)])
W = rng.integers(0, 4, N) / 2
NAMES = ["a.b", "x`y", "b c", "a"]
DATA = dict(zip(NAMES, X.T, strict=True)) | {"y": Y[:, 0], "z": Y[:, 1], "w": W}


@pytest.fixture(scope="module")
def session():
    """A Spark of two threads whose Python workers import this very fssgd."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(Path(fssgd.__file__).parents[1]), prepend=os.pathsep)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.memory", "2g").config("spark.sql.shuffle.partitions", "4")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.sql.files.openCostInBytes", "1g")  # a partition for each file
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture
def frame(session, tmp_path):
    """Take columns to a DataFrame that reads them from Parquet, in several partitions."""

    def build(columns, parts=3):
        table = pa.table(columns)
        rows = max(1, -(-len(table) // parts))
        (folder := tmp_path / str(len(list(tmp_path.iterdir())))).mkdir()
        for k in range(parts):
            pq.write_table(table.slice(k * rows, rows), folder / f"{k:03}.parquet")
        return session.read.parquet(str(folder))

    return build


def assert_same(moments, X, y, weight=None, accurate=False):
    """To rounding, of means relative to the values and of products relative to the spreads."""
    expected = Moments.from_arrays(X, y, weight, accurate=accurate)
    spread_x, spread_y = np.sqrt(expected.scatter_xx.diagonal()), np.sqrt(expected.scatter_yy.diagonal())
    np.testing.assert_allclose(moments.mean_x, expected.mean_x, rtol=1e-14)
    np.testing.assert_allclose(moments.mean_y, expected.mean_y, rtol=0, atol=1e-14 * np.abs(y).max(0).max())
    for block, rows, columns in (("xx", spread_x, spread_x), ("xy", spread_x, spread_y), ("yy", spread_y, spread_y)):
        difference = getattr(moments, f"scatter_{block}") - getattr(expected, f"scatter_{block}")
        assert np.abs(difference / np.outer(rows, columns)).max() < 1e-9, block
    assert (moments.n_samples, moments.weight_sum) == (expected.n_samples, expected.weight_sum)


@pytest.mark.parametrize(("weight", "accurate"), [("w", False), (None, True)])
def test_equals_the_moments_of_the_arrays(frame, weight, accurate):
    m = Moments.from_table(frame(DATA), target=["y", "z"], features=NAMES, weight=weight, accurate=accurate)
    assert_same(m, X, Y, weight and W, accurate)
    assert (list(m.feature_names), m.n_outputs, m.accurate) == (NAMES, 2, accurate)


@pytest.mark.parametrize(("parts", "at_once"), [(1, 64), (9, 2)])
def test_the_partitions_make_no_difference(frame, monkeypatch, parts, at_once):
    monkeypatch.setattr(spark_tables, "MAX_MERGED", at_once)
    table = frame(DATA, parts)
    assert table.rdd.getNumPartitions() == parts
    m, again = (Moments.from_table(table, target="y", features=NAMES[:3], weight="w") for _ in range(2))
    assert m.sums.matrix.tobytes() == again.sums.matrix.tobytes()
    assert_same(m, X[:, :3], Y[:, :1], W)
    fitted = LinearRegressorGD(max_iter=50, tol=None).fit(X[:, :3], Y[:, 0], W)
    model = LinearRegressorGD(max_iter=50, tol=None).fit_moments(m)
    assert np.abs((model.coef_ - fitted.coef_) * X[:, :3].std(0) / Y[:, 0].std()).max() < 1e-10


def test_nothing_stays_in_the_store(session, frame):
    Moments.from_table(frame(DATA), target="y", features=["a"])
    with pytest.raises(ValueError, match="has no column"):
        Moments.from_table(frame(DATA), target="y", features=["b"])
    assert session.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_empty_partitions_and_an_empty_table(session):
    few = session.range(0, 3, 1, 6).selectExpr("id * id as a", "id + 2 as y")
    m = Moments.from_table(few, target="y")
    assert_same(m, np.array([[0.0], [1.0], [4.0]]), np.array([[2.0], [3.0], [4.0]]))
    with pytest.raises(ValueError, match=r"^There are no rows in the Spark DataFrame\.$"):
        Moments.from_table(few.where("a > 9"), target="y")


def test_names_that_differ_in_case_only(session):
    table = session.range(4).selectExpr("id as y", "id * id as a", "5 - id as A")
    m = Moments.from_table(table, target="y", features=["A"])
    assert_same(m, 5.0 - np.arange(4)[:, None], np.arange(4.0)[:, None])


def test_every_type_of_number(session):
    values = [(i % 100, i * 3, i * i, -i * i, i / 7, i / 3, Decimal(i) / 4, i % 3 == 0, float(i)) for i in range(200)]
    kinds = "a byte, b short, c int, d long, e float, f double, g decimal(12, 3), h boolean, y double"
    m = Moments.from_table(session.createDataFrame(values, kinds), target="y")
    rows = np.array([[float(value) for value in row] for row in values])
    rows[:, 4] = rows[:, 4].astype(np.float32)
    assert_same(m, rows[:, :-1], rows[:, -1:])
    assert list(m.feature_names) == list("abcdefgh")


def vectors(session, rows, kinds="v vector, y double"):
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    types = {"vector": VectorUDT(), "double": DoubleType(), "string": StringType()}
    fields = [StructField(name, types[kind]) for name, kind in (one.split() for one in kinds.split(", "))]
    dense = [tuple(Vectors.dense(one) if isinstance(one, list) else one for one in row) for row in rows]
    return session.createDataFrame(dense, StructType(fields))


def test_vectors_give_a_feature_for_each_element(session):
    from pyspark.ml.linalg import Vectors

    rows = [([1.0, 2.0, 0.0], 3.0, 1.0), ([4.0, 0.0, 1.0], 5.0, 2.0), ([0.0, 1.0, 7.0], 1.0, 4.0)]
    rows += [(Vectors.sparse(3, [1], [9.0]), 2.0, 3.0)]
    X = np.array([[1, 2, 0], [4, 0, 1], [0, 1, 7], [0, 9, 0]], dtype=float)
    table = vectors(session, rows, "v vector, a double, y double")
    m = Moments.from_table(table, target="y", features=["a", "v"])
    others, y = np.array([[3.0], [5.0], [1.0], [2.0]]), np.array([[1.0], [2.0], [4.0], [3.0]])
    assert_same(m, np.hstack([others, X]), y)
    assert list(m.feature_names) == ["a", "v_0", "v_1", "v_2"]
    alone = Moments.from_table(table, target="y", features="v", weight="a")
    assert_same(alone, X, y, others[:, 0])
    assert list(Moments.from_table(table.drop("a"), target="y").feature_names) == ["v_0", "v_1", "v_2"]
    with pytest.warns(UserWarning, match=r"not numeric were left out of the features: 'v'"):
        assert list(Moments.from_table(table, target="y").feature_names) == ["a"]


def test_vectors_of_the_assembler(session, frame):
    from pyspark.ml.feature import VectorAssembler

    table = VectorAssembler(inputCols=["A1", "z"], outputCol="v").transform(
        frame({"A1": X[:, 2], "z": W, "y": Y[:, 0]})
    )
    m = Moments.from_table(table, target="y", features=["v"])
    assert_same(m, np.column_stack([X[:, 2], W]), Y[:, :1])


def test_missing_vectors(session):
    table = vectors(session, [([1.0, 2.0], 1.0), (None, 2.0), ([3.0, float("nan")], 3.0), ([0.0, 5.0], 5.0)])
    message = r"missing values \(null or NaN\) in column 'v_0' \(1 row\), column 'v_1' \(2 rows\): fill them in"
    with pytest.raises(ValueError, match=message):
        Moments.from_table(table, target="y")
    with pytest.warns(UserWarning, match="Dropped 2 of 4 rows of the Spark DataFrame"):
        m = Moments.from_table(table, target="y", on_missing="drop")
    assert_same(m, np.array([[1.0, 2.0], [0.0, 5.0]]), np.array([[1.0], [5.0]]))
    with pytest.raises(ValueError, match=r"missing values .* in column 'v_0' \(1 row\)"):
        Moments.from_table(table.where("v is null"), target="y")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [([1.0, 2.0], 1.0), ([1.0], 2.0), ([1.0] * 5, 3.0)],
            r"Column 'v' of .* holds vectors of 1 to 5 elements: all",
        ),
        ([([], 1.0), ([], 2.0)], r"Column 'v' of .* holds vectors without elements: leave it out of features\."),
    ],
)
def test_vectors_that_will_not_do(session, rows, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_table(vectors(session, rows), target="y", features=["v"])


def test_vectors_with_a_name_that_is_taken(session):
    table = vectors(session, [([1.0], 1.0, 2.0)], "v vector, v_0 double, y double")
    with pytest.raises(ValueError, match=r"would have the name 'v_0' of another column: rename one of them"):
        Moments.from_table(table, target="y", features=["v", "v_0"])
    with pytest.raises(ValueError, match=r"Column 'v' of the Spark DataFrame is not numeric, it is of type vector"):
        Moments.from_table(table, target="v", features=["v_0"])


def test_faults_are_counted_over_all_partitions(frame):
    holes, negative = DATA["a"].tolist(), W.copy()
    holes[1] = holes[2900] = None
    negative[:3] = -1
    infinite = np.where(np.arange(N) % 1000 == 5, np.inf, DATA["b c"])
    table = frame(DATA | {"a": holes, "b c": infinite, "w": negative})
    message = r"^The Spark DataFrame contains infinity or a value too large .* in column 'b c' \(3 rows\): correct"
    with pytest.raises(ValueError, match=message):
        Moments.from_table(table, target="y", features=["b c", "a"], weight="w")
    with pytest.raises(ValueError, match=r"has missing values \(null or NaN\) in column 'a' \(2 rows\): fill them in"):
        Moments.from_table(table, target="y", features=["a"], weight="w")
    with pytest.raises(ValueError, match=r"has negative weights in column 'w' \(3 rows\): weights must be at least 0"):
        Moments.from_table(table, target="y", features=["x`y"], weight="w")
    message = (
        r"^Dropped 2 of 3000 rows of the Spark DataFrame for missing values \(null or NaN\) in column 'a' \(2 rows\)"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        m = Moments.from_table(table, target="y", features=["a"], on_missing="drop")
    assert [one.filename for one in caught if one.category is UserWarning] == [__file__]
    kept = np.delete(np.arange(N), [1, 2900])
    assert_same(m, X[kept][:, 3:], Y[kept, :1])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"w": np.zeros(N)}, r"All weights in the Spark DataFrame are zero: at least one row"),
        ({"a": [None] * (N - 1) + [float("nan")]}, r"All 3000 rows of the Spark DataFrame have a missing value"),
        ({"a": np.where(W > 1, 1e200, -1e200)}, r"The squared deviations of a overflow float64"),
    ],
)
def test_tables_that_come_to_nothing(frame, column, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_table(frame(DATA | column), target="y", features=["a"], weight="w", on_missing="drop")


def test_columns_that_cannot_be_had(session):
    table = session.range(3).selectExpr("id as y", "'x' as town", "id as a", "2 * id as a")
    for arguments, message in (
        ({"target": "Y"}, r"The Spark DataFrame has no column 'Y': its columns are 'y', 'town', 'a'"),
        ({"target": "y", "features": ["town"]}, r"'town' of the Spark DataFrame is not numeric, it is of type string"),
        ({"target": "y", "features": ["a"]}, r"has 2 columns named 'a': rename all but one"),
    ):
        with pytest.raises(ValueError, match=message):
            Moments.from_table(table, **arguments)
    with pytest.raises(ValueError, match=r"has no feature beside 'y': not numeric: 'town'"):
        Moments.from_table(table.select("y", "town"), target="y")
    with pytest.raises(TypeError, match=r"^A pyspark RDD is not a table: pass a pyspark\.sql\.DataFrame\.$"):
        Moments.from_table(session.sparkContext.parallelize([1]), target="y")


@pytest.mark.parametrize("outputs", [1, 2])
def test_prediction_stays_in_spark(frame, outputs):
    names = ["a.b", "x`y", "b"]
    table = frame({"a.b": X[:, 0], "x`y": X[:, 1], "b": W > 1, "id": np.arange(N)})
    rows = pd.DataFrame(np.column_stack([X[:, :2], W > 1]), columns=names)
    model = LinearRegressorGD().fit(rows, Y[:, 0] if outputs == 1 else Y)
    predicted = model.predict_table(table)
    added = ["prediction"] if outputs == 1 else ["prediction_0", "prediction_1"]
    assert predicted.columns == [*table.columns, *added]
    values = np.array(predicted.orderBy("id").select(*added).collect())
    np.testing.assert_allclose(values, model.predict(rows).reshape(N, -1), rtol=1e-12, atol=1e-12)
    assert "Python" not in predicted._jdf.queryExecution().toString()
    with pytest.raises(ValueError, match=rf"has a column '{added[0]}'.* already: rename it, or leave it out\."):
        model.predict_table(predicted)
    with pytest.raises(ValueError, match=r"has no column 'q': its columns are 'a\.b', 'x`y', 'b', 'id'"):
        predict_spark(table, ["a.b", "x`y", "q"], np.ones((1, 3)), np.ones(1), ["prediction"])


def test_prediction_from_vectors_and_nulls(session):
    table = vectors(session, [([1.0, 2.0], 1.0), (None, 2.0), ([3.0, 4.0], None)])
    predicted = predict_spark(
        table, ["v_0", "v_1", "y"], np.array([[10.0, 100.0, 1.0]]), np.array([0.5]), ["prediction"]
    )
    assert [row.prediction for row in predicted.collect()] == [211.5, None, None]


def test_prediction_of_many_columns(session):
    coef = rng.normal(size=300)
    table = session.range(2).selectExpr(*(f"id + {j} as x{j}" for j in range(300)))
    predicted = predict_spark(table, table.columns, coef[None], np.ones(1), ["prediction"])
    rows = np.arange(2)[:, None] + np.arange(300)
    found = [row.prediction for row in predicted.collect()]
    np.testing.assert_allclose(found, rows @ coef + 1.0, rtol=1e-10)


def test_prediction_refuses_what_it_could_mistake(session):
    table = vectors(session, [([1.0, 2.0], 1.0), ([2.0, 1.0], 2.0)])
    model = np.array([[1.0, 2.0]]), np.array([0.0]), ["prediction"]
    doubled = table.withColumn("v_0", table["y"])
    with pytest.raises(ValueError, match=r"has a column and an element of a vector called 'v_0': leave one"):
        predict_spark(doubled, ["v_0", "v_1"], *model)
    longer = vectors(session, [([1.0, 2.0, 99.0], 1.0)])
    with pytest.raises(Exception, match="holds vectors of other than 2 elements"):
        predict_spark(longer, ["v_0", "v_1"], *model).collect()
    text = session.createDataFrame([("3.0", 1.0)], ["a", "b"])
    with pytest.raises(ValueError, match=r"Column 'a' of the Spark DataFrame is not numeric"):
        predict_spark(text, ["a", "b"], *model)
    with pytest.raises(ValueError, match="progress=True is for passes in this process: watch Spark"):
        Moments.from_table(table, target="y", progress=True)
