"""Moments of tables: every kind gives the moments of its arrays, and refuses in words that name the column."""

import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest

from fssgd import LinearRegressorGD, Moments
from fssgd._moments import table_registry
from fssgd.tables import TablePass, register_table
from fssgd.tables._progress import ProgressBar

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
csv, ds, pq = (pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "dataset", "parquet"))

rng = np.random.default_rng(0)
N = 1000
DATA = {
    "a": rng.normal(size=N) + 3,
    "b": rng.integers(-9, 9, N),
    "c": rng.random(N) < 0.3,
    "y": rng.normal(size=N),
    "z": rng.normal(size=N),
    "w": rng.integers(0, 4, N).astype(float),
}
NAMES = ["b", "a", "c"]
X = np.column_stack([DATA[name] for name in NAMES]).astype(float)


def split(table, write, folder, ending):
    folder.mkdir()
    for k, start in enumerate(range(0, len(table), 300)):
        write(table.slice(start, 300), f"{folder}/part{k}{ending}")
    return folder


def write_parquet(table, path):
    pq.write_table(table, path, row_group_size=70)


def one_file(table, path, write):
    write(table, str(path))
    return path


KINDS = {
    "parquet": lambda t, d: one_file(t, d / "t.parquet", write_parquet),
    "parquet folder": lambda t, d: str(split(t, write_parquet, d / "parts", ".parquet")),
    "parquet glob": lambda t, d: f"{split(t, write_parquet, d / 'parts', '.parquet')}/*.parquet",
    "parquet list": lambda t, d: sorted(split(t, write_parquet, d / "parts", ".pq").iterdir()),
    "csv": lambda t, d: str(one_file(t, d / "t.csv", csv.write_csv)),
    "csv folder": lambda t, d: split(t, csv.write_csv, d / "parts", ".csv"),
    "pyarrow table": lambda t, d: t,
    "pyarrow dataset": lambda t, d: ds.dataset(split(t, write_parquet, d / "parts", ".parquet")),
    "pyarrow reader": lambda t, d: t.to_reader(max_chunksize=130),
    "pyarrow batch": lambda t, d: t.combine_chunks().to_batches()[0],
    "pandas": lambda t, d: t.to_pandas(),
    "pandas of arrow": lambda t, d: t.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda t, d: pl.from_arrow(t),
    "polars lazy": lambda t, d: pl.from_arrow(t).lazy(),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def table_of(kind, tmp_path):
    """Take columns to a table of the kind under test."""
    return lambda columns: KINDS[kind](pa.table(columns), tmp_path)


@pytest.fixture
def blocks(monkeypatch):
    """Make blocks of rows so small that every table has many."""
    monkeypatch.setattr("fssgd._moments.row_sums.BLOCK_ROWS", 64)
    monkeypatch.setattr("fssgd._moments.row_sums.BLOCK_SIZE", 1)
    monkeypatch.setattr("fssgd._moments.row_sums.LARGEST_SIZE", 1)


def assert_same(moments, expected):
    for name in ("mean_x", "mean_y", "scatter_xx", "scatter_xy", "scatter_yy"):
        np.testing.assert_allclose(getattr(moments, name), getattr(expected, name), rtol=1e-12, atol=1e-10)
    assert (moments.n_samples, moments.weight_sum) == (expected.n_samples, expected.weight_sum)


def bits(moments):
    sums = moments.sums
    return sums.mean.tobytes(), sums.matrix.tobytes(), sums.constant.tobytes(), sums.n_samples, sums.weight


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("target", ["y", ["z", "y"]])
def test_equals_the_moments_of_the_arrays(table_of, target, weight, accurate):
    m = Moments.from_table(table_of(DATA), target=target, features=NAMES, weight=weight, accurate=accurate)
    y = np.column_stack([DATA[name] for name in ([target] if isinstance(target, str) else target)])
    assert_same(m, Moments.from_arrays(X, y, weight and DATA["w"], accurate=accurate))
    assert list(m.feature_names) == NAMES
    assert (m.accurate, m.n_outputs) == (accurate, y.shape[1])
    in_memory = Moments.from_table(pa.table(DATA), target=target, features=NAMES, weight=weight, accurate=accurate)
    assert bits(m) == bits(in_memory)


def test_a_model_knows_the_names_and_all_numeric_columns_are_features(table_of):
    columns = DATA | {"town": ["x", "y"] * (N // 2)}
    message = r"not numeric were left out of the features: 'town'\. Name the features"
    with pytest.warns(UserWarning, match=message) as caught:
        m = Moments.from_table(table_of(columns), target="y", weight="w")
    assert caught[0].filename == __file__
    model = LinearRegressorGD().fit_moments(m)
    assert list(model.feature_names_in_) == ["a", "b", "c", "z"]
    frame = pd.DataFrame(DATA)
    fitted = LinearRegressorGD().fit(frame[["a", "b", "c", "z"]].astype(float), DATA["y"], DATA["w"])
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-6)


def holed(column="b", rows=(5, 6, 700)):
    values = DATA[column].tolist()
    for row in rows:
        values[row] = None
    return DATA | {column: values}


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("weight", [None, "w"])
def test_missing_values(table_of, kind, weight):
    per_file = kind.startswith(("parquet ", "csv ")) or kind == "pyarrow dataset"
    columns = DATA | {"b": holed()["b"], "a": holed("a", [1])["a"]}
    count = 2 if per_file else 3
    message = rf"has missing values \(null or NaN\) in column 'b' \({count} rows\), column 'a' \(1 row\): fill them in"
    table = table_of(columns)
    with pytest.raises(ValueError, match=message + ".*on_missing='drop'") as caught:
        Moments.from_table(table, target="y", features=NAMES, weight=weight)
    assert not per_file or "part0." in str(caught.value)
    if kind == "pyarrow reader":
        table = pa.table(columns).to_reader()
    with pytest.warns(
        UserWarning, match=r"Dropped 4 of 1000 rows of .* in column 'b' \(3 rows\), column 'a' \(1 row\)"
    ):
        m = Moments.from_table(table, target="y", features=NAMES, weight=weight, on_missing="drop")
    kept = np.delete(np.arange(N), [1, 5, 6, 700])
    assert_same(m, Moments.from_arrays(X[kept], DATA["y"][kept], weight and DATA["w"][kept]))


@pytest.mark.parametrize("on_missing", ["raise", "drop"])
def test_infinite_values_and_negative_weights(table_of, kind, on_missing):
    columns = DATA | {"a": np.where(np.arange(N) == 3, np.inf, DATA["a"])}
    columns["w"] = np.where(np.arange(N) < 2, -1.0, DATA["w"])
    table = table_of(columns)
    with pytest.raises(ValueError, match=r"contains infinity or a value too large .* in column 'a' \(1 row\)"):
        Moments.from_table(table, target="y", features=NAMES, on_missing=on_missing)
    if kind == "pyarrow reader":
        table = pa.table(columns).to_reader()
    with pytest.raises(ValueError, match=r"has negative weights in column 'w' \(2 rows\): weights must be at least 0"):
        Moments.from_table(table, target="y", features=["b"], weight="w", on_missing=on_missing)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "price"}, r"no column 'price': its columns are 'a', 'b', 'c', 'y', 'z', 'w', 'town'"),
        ({"target": "y", "features": ["a", "q"], "weight": "v"}, r"no column 'q', 'v'"),
        (
            {"target": "y", "features": ["a", "town"]},
            r"'town' of .* not numeric, .* type .*: convert it .* leave it out",
        ),
        ({"target": "town", "features": ["a"]}, r"Column 'town' of .* is not numeric, .*name another column"),
    ],
)
def test_columns_that_cannot_be_had(table_of, arguments, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_table(table_of(DATA | {"town": ["x"] * N}), **arguments)


def test_tables_without_numeric_features(table_of):
    nothing = table_of({"y": [1.0, 2.0], "town": ["a", "b"]})
    with pytest.raises(ValueError, match=r"has no feature beside 'y': not numeric: 'town'"):
        Moments.from_table(nothing, target="y")


def test_tables_without_rows(kind, tmp_path):
    table = pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.int32())})
    if kind in ("pyarrow batch", "parquet list") or kind.endswith(("folder", "glob", "dataset")):
        pytest.skip("no rows make no file")
    with pytest.raises(ValueError, match=r"There are no rows in .*(t\.csv|t\.parquet|the)"):
        Moments.from_table(KINDS[kind](table, tmp_path), target="y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": []}, r"target must be the name of a column or a list"),
        ({"target": 3}, r"target must be the name .* got 3"),
        ({"target": "y", "features": ["y"]}, r"'y' is named 2 times, in target and features"),
        ({"target": "y", "features": ["a", "a"]}, r"'a' is named 2 times, in features"),
        ({"target": ["y", "y"]}, r"'y' is named 2 times, in target: give each"),
        ({"target": "y", "weight": "y"}, r"'y' is named 2 times, in target and weight"),
        ({"target": "y", "weight": 1}, r"weight must be the name of a column, got 1"),
        ({"target": "y", "on_missing": "skip"}, r"on_missing must be 'raise' or 'drop', got 'skip'"),
        ({"target": "y", "progress": "yes"}, r"progress must be None, True or False"),
        ({"target": "y", "checkpoint_every": -1}, r"checkpoint_every must be a number of seconds >= 0, got -1"),
        ({"target": "y", "checkpoint": "c.npz"}, r"checkpoint is for files, .* DataFrame cannot: pass the paths"),
    ],
)
def test_arguments_that_contradict(arguments, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_table(pd.DataFrame(DATA), **arguments)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((3, 2)), r"type numpy\.ndarray: .*Moments\.from_arrays"),
        ([1, 2], r"type builtins\.list"),
        (pd.Series([1.0]), r"pandas Series is not a table"),
        (pl.Series([1.0]), r"polars Series is not a table"),
        (pa.array([1.0]), r"pyarrow DoubleArray is not a table"),
    ],
)
def test_objects_that_are_not_tables(table, message):
    with pytest.raises(TypeError, match=message):
        Moments.from_table(table, target="y")


def test_names_of_a_frame():
    with pytest.raises(ValueError, match=r"must be strings, found 0 of type int"):
        Moments.from_table(pd.DataFrame(X), target="y")
    twice = pd.DataFrame(X, columns=["a", "a", "y"])
    with pytest.raises(ValueError, match=r"has 2 columns named 'a': rename"):
        Moments.from_table(twice, target="y")


def test_weights_that_are_all_zero_and_rows_that_are_all_missing():
    frame = pd.DataFrame(DATA)
    with pytest.raises(ValueError, match=r"All weights in the pandas DataFrame are zero"):
        Moments.from_table(frame.assign(w=0.0), target="y", features=["a"], weight="w")
    with pytest.raises(ValueError, match=r"All 1000 rows of the pandas DataFrame have a missing value"):
        Moments.from_table(frame.assign(a=np.nan), target="y", features=["a"], on_missing="drop")


def test_squares_that_overflow():
    with pytest.raises(ValueError, match=r"squared deviations of a overflow float64"):
        Moments.from_table(pa.table(DATA | {"a": DATA["a"] * 1e200}), target="y", features=["a"])


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 2**53 + 1], pa.int64()),
        pa.array([1, 2, 2**63], pa.uint64()),
        pa.array([1.5, 2.5, -3.0], pa.float16()),
        pa.array([1.5, 2.5, -3.0], pa.float32()),
        pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("-3.00")], pa.decimal128(9, 2)),
        pa.array([True, False, True]),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("on_file", [False, True])
def test_numeric_types(values, on_file, tmp_path):
    table = pa.table({"a": values, "y": [1.0, 2.0, 4.0]})
    expected = np.array([float(value) for value in values.to_pylist()])
    m = Moments.from_table(one_file(table, tmp_path / "t.parquet", write_parquet) if on_file else table, target="y")
    np.testing.assert_allclose(m.mean_x, [expected.mean()], rtol=1e-15)


@pytest.mark.parametrize(
    "values", [["x"], [np.datetime64("2020-01-01", "us")], pa.array(["x"]).dictionary_encode(), [b"x"], [[1.0]]]
)
def test_types_that_are_not_numeric(values):
    with pytest.raises(ValueError, match=r"Column 'a' of the pyarrow Table is not numeric, it is of type"):
        Moments.from_table(pa.table({"a": values, "y": [1.0]}), target="y", features="a")


def test_a_filtered_dataset_stays_filtered():
    table = ds.dataset(pa.table(DATA)).filter(ds.field("c"))
    assert Moments.from_table(table, target="y", features=["a"]).n_samples == DATA["c"].sum()


def test_pandas_extension_types():
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 5], "Int64"), "c": pd.array([True, False, None, True], "boolean")})
    with pytest.warns(UserWarning, match=r"Dropped 2 of 4 rows .* column 'a' \(1 row\), column 'c' \(1 row\)"):
        m = Moments.from_table(frame.assign(y=1.5), target="y", on_missing="drop")
    np.testing.assert_array_equal(m.mean_x, [3.0, 1.0])


class TestFiles:
    def test_paths_that_hold_nothing(self, tmp_path):
        (tmp_path / "notes.txt").write_text("x")
        for path, error, message in [
            ("none.csv", FileNotFoundError, r"There is no file or folder .*none\.csv"),
            ("*.csv", ValueError, r"No files match .*\*\.csv"),
            ("", ValueError, r"There are no Parquet or CSV files in the folder"),
            ("notes.txt", ValueError, r"notes\.txt does not tell its format: expected it to end in one of \.parquet"),
        ]:
            with pytest.raises(error, match=message):
                Moments.from_table(tmp_path / path, target="y")
        with pytest.raises(ValueError, match=r"s3://b/x\.parquet is not a local path: open it with pyarrow\.dataset"):
            Moments.from_table("s3://b/x.parquet", target="y")

    def test_lists_that_do_not_fit(self, tmp_path):
        files = [one_file(pa.table(DATA), tmp_path / "t.parquet", write_parquet)]
        files += [one_file(pa.table(DATA), tmp_path / "t.csv", csv.write_csv)]
        with pytest.raises(ValueError, match=r"t\.parquet and .*t\.csv are of different formats"):
            Moments.from_table(files, target="y")
        with pytest.raises(ValueError, match=r"t\.csv is listed twice"):
            Moments.from_table([files[1], tmp_path / "*.csv"], target="y")

    def test_the_home_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        one_file(pa.table(DATA), tmp_path / "t.parquet", write_parquet)
        assert Moments.from_table("~/t.parquet", target="y").n_samples == N
        assert Moments.from_table("~/*.parquet", target="y").n_samples == N

    @pytest.mark.parametrize("ending", [".csv", ".parquet"])
    def test_the_file_at_fault_is_named(self, tmp_path, ending):
        write = csv.write_csv if ending == ".csv" else write_parquet
        write(pa.table({"a": [1, 2], "y": [1.0, 2.0]}), f"{tmp_path}/p0{ending}")
        second = f"{tmp_path}/p1{ending}"
        for columns, message in [
            ({"a": [1, 2]}, r"p1\..* has no column 'y': its columns are 'a'"),
            ({"a": ["x", "z"], "y": [1.0, 2.0]}, r"Column 'a' of .*p1\..* is not numeric, it is of type string"),
            ({"a": [1, None], "y": [1.0, 2.0]}, r"p1\..* has missing values .* in column 'a' \(1 row\)"),
        ]:
            write(pa.table(columns), second)
            with pytest.raises(ValueError, match=message):
                Moments.from_table(tmp_path, target="y", features=["a"])
        with open(second, "wb"):
            pass
        with pytest.raises(ValueError, match=r"p1\..* could not be read: "):
            Moments.from_table(tmp_path, target="y", features=["a"])

    @pytest.mark.parametrize("ending", [".csv", ".parquet"])
    def test_numeric_types_may_differ_between_files(self, tmp_path, ending):
        write = csv.write_csv if ending == ".csv" else write_parquet
        for k, values in enumerate([[1, 2**53 + 1], [1.5, 4.5], [True, False], [4, 5]]):
            write(pa.table({"a": values, "y": [1.0, 2.0]}), f"{tmp_path}/p{k}{ending}")
        assert Moments.from_table(tmp_path, target="y").mean_x == [pytest.approx((17 + 2**53) / 8, rel=1e-15)]

    def test_a_csv_whose_whole_numbers_stop_after_the_first_block(self, tmp_path):
        lines = ["a,y,n"] + [f"{k},{k % 7}," for k in range(200_000)] + ["0.5,1,"]
        (tmp_path / "t.csv").write_text("\n".join(lines))
        m = Moments.from_table(tmp_path / "t.csv", target="y", features=["a"])
        assert (m.n_samples, m.mean_x[0]) == (200_001, pytest.approx((199_999 * 100_000 + 0.5) / 200_001))
        with (tmp_path / "t.csv").open("a") as file:
            file.write("\nword,1,\n")
        with pytest.raises(ValueError, match=r"t\.csv could not be read: .*word"):
            Moments.from_table(tmp_path / "t.csv", target="y", features=["a"])
        with pytest.raises(ValueError, match=r"missing values .*column 'n'"):
            Moments.from_table(tmp_path / "t.csv", target="y", features=["n"])

    @pytest.mark.parametrize("write", [csv.write_csv, write_parquet])
    def test_hive_partitions_are_columns(self, tmp_path, write):
        for year in (2020, 2021):
            (tmp_path / f"year={year}").mkdir()
            ending = "csv" if write is csv.write_csv else "parquet"
            write(pa.table({"a": [1.0, 2.0], "y": [1.0, year]}), f"{tmp_path}/year={year}/p.{ending}")
            (tmp_path / f"year={year}" / "_note.csv").write_text("not data")
        m = Moments.from_table(tmp_path, target="y")
        assert list(m.feature_names) == ["a", "year"]
        np.testing.assert_array_equal(m.mean_x, [1.5, 2020.5])


def read_dict(table, spec, progress):
    with TablePass(spec, "the dict", progress) as rows:
        rows.add([table[name] for name in spec.columns])
    return rows.moments()


def return_the_table(table, spec, progress):
    return table


class Table(dict):
    pass


Table.__module__ = "somebody.elses.tables"


class TestRegistry:
    @pytest.fixture(autouse=True)
    def _restored(self, monkeypatch):
        for name in ("_readers", "_predictors"):
            monkeypatch.setattr(table_registry, name, getattr(table_registry, name).copy())

    def test_a_registered_type_is_read(self):
        table = Table(DATA)
        with pytest.raises(TypeError, match=r"somebody\.elses\.tables\.Table"):
            Moments.from_table(table, target="y", features=["a"])
        register_table("somebody", f"{__name__}:read_dict")
        m = Moments.from_table(table, target="y", features=["a"])
        assert bits(m) == bits(Moments.from_table(pa.table(DATA), target="y", features=["a"]))

    def test_the_longest_prefix_wins_and_an_import_that_fails_names_the_command(self):
        register_table("somebody", "no_such_module:f")
        with pytest.raises(ImportError, match=r"could not be imported .*: install what 'no_such_module' needs"):
            Moments.from_table(Table(DATA), target="y")
        register_table("somebody.elses", "no_such_module:f", extra="elses[all]")
        with pytest.raises(ImportError, match=r"pip install 'elses\[all\]'"):
            Moments.from_table(Table(DATA), target="y")
        register_table("somebody.elses", "builtins:str", overwrite=True)
        with pytest.raises(TypeError, match=r"decoding|str"):
            Moments.from_table(Table(DATA), target="y")

    def test_a_reader_that_returns_something_else(self):
        register_table("somebody", f"{__name__}:return_the_table")
        with pytest.raises(TypeError, match=r"elses\.tables returned a Table instead of Moments"):
            Moments.from_table(Table(DATA), target="y")

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"'pandas' have a reader already: pass overwrite=True"):
            register_table("pandas", "a:b")
        with pytest.raises(ValueError, match=r"path must look like 'module:function', got 'a'"):
            register_table("new", "a")


def test_files_need_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'fssgd\[tables\]'"):
        Moments.from_table(tmp_path, target="y")


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.slow
def test_frames_load_no_pyarrow(library):
    code = f"""
import sys, {library} as frames
from fssgd import Moments
before = set(sys.modules)
Moments.from_table(frames.DataFrame({{"a": [1.0, 2.0], "y": [1, 2]}}), target="y")
assert not {{"pyarrow.dataset", "rich"}} & (set(sys.modules) - before)
"""
    subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], check=True)


class TestProgress:
    def test_shown_on_request(self, capsys):
        Moments.from_table(pa.table(DATA), target="y", progress=True)
        out, err = capsys.readouterr()
        assert out == ""
        assert "1000/1000" in err

    def test_shown_on_a_terminal_when_it_takes_long(self, monkeypatch, capsys):
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        Moments.from_table(pa.table(DATA), target="y")
        assert capsys.readouterr().err == ""
        monkeypatch.setattr("fssgd.tables._progress.DELAY", 0.0)
        Moments.from_table(pa.table(DATA), target="y", progress=False)
        assert capsys.readouterr().err == ""
        bar = ProgressBar(None, total=1000)
        bar._timer.join()  # it opens by the clock: a first batch may be long in coming
        bar.update(1000)
        bar.close()
        assert "1000/1000" in capsys.readouterr().err

    def test_without_rich(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "rich.console", None)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        monkeypatch.setattr("fssgd.tables._progress.DELAY", 0.0)
        assert Moments.from_table(pa.table(DATA), target="y").n_samples == N
        with pytest.raises(ImportError, match=r"progress=True needs rich: pip install rich"):
            Moments.from_table(pa.table(DATA), target="y", progress=True)
