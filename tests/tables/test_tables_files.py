"""Real files: what is in them is read as it was meant, or refused in words that name the file."""

import bz2
import gzip
import itertools
import os
from decimal import Decimal

import numpy as np
import pytest

from fssgd import LinearRegressorGD, Moments
from fssgd.tables import TableSpec
from fssgd.tables._row_batches import open_rows

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")

MINI = b"a,y\n1,3\n2,5\n4,9\n"
BLOCK = 1 << 20


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def fitted(table, **settings):
    moments = Moments.from_table(table, target="y", **settings)
    model = LinearRegressorGD(max_iter=np.inf, tol=None).fit_moments(moments)
    return moments.n_samples, dict(zip(model.feature_names_in_, model.coef_.round(6).tolist(), strict=True))


def rows_of(table, *names):
    """Return the rows, as ``fssgd predict`` reads them."""
    batches = list(open_rows(table, TableSpec((), names)).batches)
    return np.concatenate([np.column_stack(arrays) for arrays, *_ in batches]).tolist()


class TestQuotedLineBreaks:
    def test_a_second_line_with_as_many_commas_is_no_row(self, tmp_path):
        path = put(tmp_path / "t.csv", 'a,note,y\n1,"one\n7,8,9\n",3\n2,two,5\n4,x,9\n')
        assert fitted(path, features=["a"]) == (3, {"a": 2.0})
        assert rows_of(path, "a") == [[1], [2], [4]]

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_quoted_line_ends_across_blocks(self, tmp_path, end):
        rows = "".join(f'{i % 97},"one, ""{i}""{end}two {i}",{2 * (i % 97)}{end}' for i in range(50_000))
        assert fitted(put(tmp_path / "t.csv", f"a,note,y{end}{rows}"), features=["a"]) == (50_000, {"a": 2.0})

    @pytest.mark.parametrize("tail", ["", "\n"])
    @pytest.mark.parametrize("rows", [3, 300_000])
    def test_a_quote_that_is_never_closed_swallows_no_rows(self, tmp_path, rows, tail):
        path = put(tmp_path / "t.csv", 'a,y,note\n1,3,x\n1,3,"x\n' + "2,5,x\n" * rows + "4,9,z" + tail)
        with pytest.raises(ValueError, match=r"t\.csv ends within a cell that begins with a quote .*: close the quote"):
            Moments.from_table(path, target="y", features=["a"])


class TestWhichColumnsAreNumbers:
    def test_numbers_that_begin_late(self, tmp_path):
        n = 200_000
        rows = (f"{i % 97},{'' if i < n - 999 else i % 13},{i % 97 + (i % 13) * 3 * (i >= n - 999)}" for i in range(n))
        path = put(tmp_path / "t.csv", "a,late,y\n" + "\n".join(rows))
        with pytest.warns(UserWarning, match=r"column 'late' \(199001 rows\)"):
            assert fitted(path, on_missing="drop") == (999, {"a": 1.0, "late": 3.0})

    @pytest.mark.parametrize("early", ["", "1", "true"])
    def test_text_that_begins_late_is_left_out_as_text_that_begins_at_once(self, tmp_path, early):
        path = put(tmp_path / "t.csv", "a,note,y\n" + f"1,{early},2\n" * 300_000 + "2,word,4\n")
        with pytest.warns(UserWarning, match=r"not numeric were left out of the features: 'note'\. Name"):
            assert fitted(path) == (300_001, {"a": 2.0})

    @pytest.mark.parametrize("n", [300, 300_000])
    def test_truth_values_that_begin_late_are_numbers(self, tmp_path, n):
        path = put(tmp_path / "t.csv", "a,late,y\n" + "1,,2\n" * n + "1,true,5\n2,false,4\n3,true,9\n")
        with pytest.warns(UserWarning, match=rf"column 'late' \({n} rows\)"):
            assert fitted(path, on_missing="drop") == (3, {"a": 2.0, "late": 3.0})

    @pytest.mark.parametrize("n", [3, 300_000])
    def test_a_column_that_is_always_blank_is_left_out(self, tmp_path, n):
        path = put(tmp_path / "t.csv", "a,blank,y\n" + "1,,2\n" * n + "2,,4\n")
        with pytest.warns(UserWarning, match=r"not numeric were left out of the features: 'blank'\. Name"):
            assert fitted(path) == (n + 1, {"a": 2.0})

    def test_parquet_without_rows_has_no_say(self, tmp_path):
        pd.DataFrame({"a": pd.Series([], dtype=object), "y": pd.Series([], dtype=float)}).to_parquet(
            tmp_path / "0.parquet"
        )
        pd.DataFrame({"a": [1.0, 2, 4], "y": [2.0, 4, 8]}).to_parquet(tmp_path / "1.parquet")
        assert fitted(tmp_path) == (3, {"a": 2.0})

    def test_blank_lines_before_the_header(self, tmp_path):
        assert rows_of(put(tmp_path / "x.csv", "\n\r\nx\n1\n\n3\n"), "x")[::2] == [[1], [3]]
        assert fitted(put(tmp_path / "t.csv", "\n\na,y\n1,2\n2,4\n4,8\n")) == (3, {"a": 2.0})

    def test_a_header_that_begins_like_an_archive(self, tmp_path):
        assert fitted(put(tmp_path / "t.csv", "BZh91,y\n1,2\n2,4\n4,8\n")) == (3, {"BZh91": 2.0})

    def test_text_that_begins_late_is_an_error_where_the_column_was_asked_for(self, tmp_path):
        path = put(tmp_path / "t.csv", "a,note,y\n" + "1,5,2\n" * 300_000 + "1,word,2\n")
        message = r"Column 'note' of .*t\.csv could not be read: 'word' is not a number\. .* name the features"
        for asked in (
            {"features": ["a", "note"]},
            {"features": ["a"], "weight": "note"},
            {"checkpoint": tmp_path / "c"},
        ):
            with pytest.raises(ValueError, match=message):
                Moments.from_table(path, target="y", **asked)
        with pytest.raises(ValueError, match=message):
            rows_of(path, "note")
        assert Moments.from_table(path, target="y", features=["a"]).n_samples == 300_001

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_the_order_of_the_files_does_not_matter(self, tmp_path, order):
        texts = ["id,a,b,y\n", "id,a,b,y\nu,1,2,3\nv,2,x,5\n", "id,a,b,y\n1,4,7,9\n2,5,1,11\n"]
        for name, text in zip("012", (texts[k] for k in order), strict=True):
            put(tmp_path / f"{name}.csv", text)
        with pytest.warns(UserWarning, match=r"not numeric were left out of the features: 'id', 'b'\. Name"):
            assert fitted(tmp_path) == (4, {"a": 2.0})

    @pytest.mark.parametrize("first", [0, 1])
    def test_parquet_of_null_or_text_in_one_file(self, tmp_path, first):
        y = pa.array([3.0, 5.0, 9.0])
        tables = [
            pa.table({"a": [1.0, 2.0, 4.0], "b": pa.nulls(3), "c": [1.0, 2.0, 3.0], "y": y}),
            pa.table({"a": [1.0, 2.0, 4.0], "b": [1.0, 0.0, 5.0], "c": ["1", "2", "3"], "y": y}),
        ]
        for k in range(2):
            pq.write_table(tables[k ^ first], tmp_path / f"{k}.parquet")
        with (
            pytest.warns(UserWarning, match=r"left out of the features: 'c'\."),
            pytest.raises(ValueError, match=rf"{first}\.parquet has missing values .*column 'b' \(3 rows\)"),
        ):
            Moments.from_table(tmp_path, target="y")

    @pytest.mark.parametrize("order", ["01", "10"])
    def test_a_column_that_only_one_file_has(self, tmp_path, order):
        put(tmp_path / f"{order[0]}.csv", MINI)
        put(tmp_path / f"{order[1]}.csv", "a,y,b\n1,2,3\n")
        message = rf"{order[0]}\.csv has no column 'b', which others of the 2 files .* have: name the features"
        with pytest.raises(ValueError, match=message):
            Moments.from_table(tmp_path, target="y")
        assert Moments.from_table(tmp_path, target="y", features=["a"]).n_samples == 4

    @pytest.mark.slow
    def test_a_header_longer_than_a_block(self, tmp_path):
        names = [f"column_{j:020d}" for j in range(60_000)]
        rows = "".join(",".join([str(i)] * 60_000) + f",{2 * i}\n" for i in range(3))
        path = put(tmp_path / "t.csv", ",".join([*names, "y"]) + "\n" + rows)
        assert fitted(path, features=names[-1:]) == (3, {names[-1]: 2.0})

    def test_a_row_longer_than_a_block_further_down(self, tmp_path):
        rows = [f"{i % 7},x,{i % 7 * 2}\n" for i in range(500_000)]
        rows[450_000] = "3," + "z" * (3 * BLOCK) + ",6\n"
        assert fitted(put(tmp_path / "t.csv", "a,note,y\n" + "".join(rows)), features=["a"]) == (500_000, {"a": 2.0})


class TestIndices:
    FRAME = pd.DataFrame({"a": [9.0, 1, 4, 7], "y": [20.0, 3, 9, 16]})

    @pytest.mark.parametrize("index", [[5, 1, 2, 9], pd.Index([5, 1, 2, 9], name="row"), pd.RangeIndex(4)])
    @pytest.mark.parametrize("kind", ["file", "table"])
    def test_the_index_that_pandas_writes_is_no_feature_unless_named(self, tmp_path, index, kind):
        frame = self.FRAME.set_index(index if isinstance(index, pd.Index) else pd.Index(index))
        frame.to_parquet(tmp_path / "t.parquet")
        table = tmp_path / "t.parquet" if kind == "file" else pq.read_table(tmp_path / "t.parquet")
        assert list(Moments.from_table(table, target="y").feature_names) == ["a"]
        if frame.index.name:
            assert list(Moments.from_table(table, target="y", features=["row"]).feature_names) == ["row"]

    def test_readers_that_know_no_metadata(self):
        table = pl.DataFrame({"a": [1.0, 2, 4], "__index_level_0__": [1, 2, 3], "y": [3.0, 5, 9]})
        assert fitted(table) == (3, {"a": 2.0})

    def test_the_nameless_index_of_csv(self, tmp_path):
        self.FRAME.to_csv(tmp_path / "t.csv")
        for table in (tmp_path / "t.csv", pd.read_csv(tmp_path / "t.csv")):
            with pytest.warns(UserWarning, match=r"The unnamed column '(Unnamed: 0)?' of .* was left out"):
                assert list(Moments.from_table(table, target="y").feature_names) == ["a"]

    def test_metadata_that_make_no_sense(self):
        for metadata in (b"{", b"[]", b"{}", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}, null]}'):
            table = pa.table({"a": [1.0, 2, 4], "y": [3.0, 5, 9]}).replace_schema_metadata({b"pandas": metadata})
            assert fitted(table) == (3, {"a": 2.0})


@pytest.mark.parametrize("rates", [["0.5", "1.5", "2.25"], ["-1", "1e-3", ".5"]])
def test_hive_keys_with_fractions_are_numbers(tmp_path, rates):
    for k in rates:
        (tmp_path / f"rate={k}").mkdir()
        table = pa.table({"a": [1.0, 2.0, 4.0], "y": [2 * v + 10 * float(k) for v in (1.0, 2.0, 4.0)]})
        pq.write_table(table, tmp_path / f"rate={k}" / "p.parquet")
    assert fitted(tmp_path) == (9, {"a": 2.0, "rate": 10.0})


def test_hive_keys_that_are_truth_values_are_numbers_and_a_list_of_folders_has_keys_as_well(tmp_path):
    for key, y in (("true", [5.0, 7.0, 11.0]), ("False", [2.0, 4.0, 8.0])):
        (tmp_path / f"flag={key}").mkdir()
        pq.write_table(pa.table({"a": [1.0, 2.0, 4.0], "y": y}), tmp_path / f"flag={key}" / "p.parquet")
    assert fitted(tmp_path) == fitted([tmp_path]) == (6, {"a": 2.0, "flag": 3.0})


def test_links_to_folders_are_followed_but_not_in_circles(tmp_path):
    put(tmp_path / "data" / "1.csv", MINI)
    put(tmp_path / "elsewhere" / "2.csv", MINI)
    (tmp_path / "data" / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "data")
    assert fitted(tmp_path / "data") == (6, {"a": 2.0})


def test_a_link_that_leads_nowhere_is_not_passed_over(tmp_path):
    put(tmp_path / "1.csv", MINI)
    (tmp_path / "2.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(FileNotFoundError, match=r"2\.csv is a link to .*gone\.csv, which is not there"):
        fitted(tmp_path)


def test_hive_keys_that_are_text_or_missing(tmp_path):
    for k, day in (("1", "2020-01-01"), ("__HIVE_DEFAULT_PARTITION__", "2020-01-02")):
        put(tmp_path / f"k={k}" / f"day={day}" / "p.csv", MINI)
    with (
        pytest.warns(UserWarning, match=r"left out of the features: 'day'"),
        pytest.raises(ValueError, match=r"missing values .* in column 'k' \(3 rows\)"),
    ):
        Moments.from_table(tmp_path, target="y")


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.5"), Decimal("2.5"), Decimal("4.5")],
        [Decimal(1), 2.0, 4],
        [1, 2.5, 4],
        [True, False, True],
    ],
    ids=["decimal", "mixed", "numbers", "booleans"],
)
def test_python_numbers_in_pandas(values):
    y = [2 * float(value) for value in values]
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object), "y": y})
    assert fitted(frame) == (3, {"a": 2.0})
    holed = pd.DataFrame({"a": pd.Series([*values, None], dtype=object), "y": [*y, 0.0]})
    with pytest.warns(UserWarning, match=r"Dropped 1 of 4 rows"):
        assert fitted(holed, on_missing="drop") == (3, {"a": 2.0})


class TestPackedCsv:
    PACKED = {
        "gz": gzip.compress(MINI),
        "bz2": bz2.compress(MINI),
        "zst": pa.compress(MINI, "zstd", asbytes=True),
    }

    @pytest.mark.parametrize("ending", PACKED)
    def test_every_compression_and_a_stream_of_it(self, tmp_path, ending):
        for name in (f"t.csv.{ending}", f"T.CSV.{ending.upper()}", "unpacked.csv"):
            assert fitted(put(tmp_path / name, self.PACKED[ending])) == (3, {"a": 2.0})
        with (tmp_path / "unpacked.csv").open("rb") as stream:
            assert rows_of(stream, "a") == [[1], [2], [4]]

    def test_parts_of_gzip_in_a_row(self, tmp_path):
        data = gzip.compress(MINI) + gzip.compress(b"5,11\n")
        assert fitted(put(tmp_path / "t.csv.gz", data)) == (4, {"a": 2.0})

    @pytest.mark.parametrize("ending", ["gz", "bz2"])
    def test_a_truncated_compressed_file(self, tmp_path, ending):
        path = put(tmp_path / f"t.csv.{ending}", self.PACKED[ending][:-6])
        with pytest.raises(ValueError, match=rf"t\.csv\.{ending} could not be read: .* cut off, fetch it again"):
            Moments.from_table(path, target="y")

    def test_a_parquet_suffix_in_capitals(self, tmp_path):
        pq.write_table(pa.table({"a": [1.0, 2, 4], "y": [3.0, 5, 9]}), tmp_path / "T.PARQUET")
        assert fitted(tmp_path) == (3, {"a": 2.0})


def test_a_blank_line_in_a_file_of_one_column_is_a_missing_value(tmp_path):
    path = put(tmp_path / "t.csv", "x\n1\n\n3\n")
    with path.open("rb") as stream:
        for table in (path, stream):
            np.testing.assert_array_equal(rows_of(table, "x"), [[1], [np.nan], [3]])
    assert rows_of(put(tmp_path / "u.csv", "x,y\n1,2\n\n3,4"), "x") == [[1], [3]]


def test_names_that_repeat_matter_only_if_asked_for(tmp_path):
    path = put(tmp_path / "t.csv", "a,b,b,y\n1,7,8,3\n2,7,9,5\n4,7,7,9\n")
    assert fitted(path, features=["a"]) == (3, {"a": 2.0})
    with pytest.raises(ValueError, match=r"t\.csv has 2 columns named 'b': rename all but one"):
        Moments.from_table(path, target="y", features=["b"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("größe,y\n1,3\n".encode("latin-1"), r"t\.csv is not in UTF-8 .*0xf6.*: save it in UTF-8, or read it with"),
        ("a,y\n1,3\n".encode("utf-16"), r"t\.csv is in UTF-16: save it in UTF-8"),
        (b"a;y\n1,5;4\n", r"t\.csv has no column 'y': the delimiter .*'a;y'.* be ';', and a comma was expected"),
        (b"a\ty\n1\t4\n", r"the delimiter of its header .* be '\\t', and a comma .*sep='\\t'"),
        (b"PAR1....", r"t\.csv is a Parquet file: name it"),
        (b"PK\x03\x04....", r"t\.csv is a zip archive or a spreadsheet: unpack it"),
        (b"", r"t\.csv could not be read: it is empty, and a header"),
        (b"a,y", r"There are no rows in .*t\.csv"),
        (b"a,y\n1,2\n3,4,5\n", r"t\.csv could not be read: .*Expected 2 columns, got 3.*put cells with a comma in"),
    ],
)
def test_files_that_are_not_csv(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_table(put(tmp_path / "t.csv", data), target="y")


@pytest.mark.parametrize("damage", [b"PAR1" + bytes(50) + b"PAR1", b"", b"hello", "cut", "page"])
def test_damaged_parquet(tmp_path, damage):
    pq.write_table(pa.table({"a": [1.0, 2, 4], "y": [3.0, 5, 9]}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    data = {"cut": whole[: len(whole) // 2], "page": whole[:4] + b"\xff" * 30 + whole[34:]}.get(damage, damage)
    with pytest.raises(ValueError, match=r"t\.parquet could not be read: .* damaged or cut off, fetch it again"):
        Moments.from_table(put(tmp_path / "t.parquet", data), target="y")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_and_a_link_to_it_are_refused(tmp_path, link):
    path = put(tmp_path / "d" / "t.csv", MINI)
    link(path, tmp_path / "d" / "u.csv")
    for table in (tmp_path / "d", f"{tmp_path}/d/*.csv", [path, tmp_path / "d" / "u.csv"]):
        with pytest.raises(ValueError, match=r"t\.csv and .*u\.csv are the same file: its rows would count twice"):
            Moments.from_table(table, target="y")
    assert fitted(tmp_path / "d" / "u.csv") == (3, {"a": 2.0})


@pytest.mark.parametrize(
    ("mark", "data", "message"),
    [
        ("_delta_log/0.json", "p.parquet", r"lake is a Delta table, .*deltalake\.DeltaTable\(path\)\.to_pyarrow_table"),
        ("metadata/v1.metadata.json", "data/p.parquet", r"lake is an Iceberg table, .*table\.scan\(\)\.to_arrow\(\)"),
        (".hoodie/hoodie.properties", "x/p.parquet", r"lake is a Hudi table"),
        ("_spark_metadata/0", "p.parquet", r"lake is a sink of Spark's structured streaming"),
    ],
)
def test_delta_and_iceberg_tables_are_refused_with_the_call_that_reads_them(tmp_path, mark, data, message):
    put(tmp_path / "all" / "lake" / mark, "{}")
    file = put(tmp_path / "all" / "lake" / data, "")
    pq.write_table(pa.table({"a": [1.0, 2, 4], "y": [3.0, 5, 9]}), file)
    for table in (tmp_path / "all" / "lake", tmp_path / "all", file.parent, f"{file.parent}/*.parquet"):
        with pytest.raises(ValueError, match=message):
            Moments.from_table(table, target="y")
    assert fitted([file]) == (3, {"a": 2.0})  # as named by DeltaTable.file_uris


def test_control_characters_in_names_are_escaped():
    table = pa.table({"a\x1b[31m": [1e200, 2.0], "y": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"squared deviations of a\\x1b\[31m overflow"):
        Moments.from_table(table, target="y")
