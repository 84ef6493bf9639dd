"""The command: driven as a process where the process matters, in this one elsewhere."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fssgd
from fssgd import LinearRegressorGD, Moments, diagnose

pa = pytest.importorskip("pyarrow")
testing = pytest.importorskip("typer.testing")
csv, pq = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")

from fssgd.cli._app import app  # noqa: E402
from fssgd.tables._checkpoint import Checkpoint  # noqa: E402

COMMAND = [sys.executable, "-m", "fssgd"]
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3)) * [1, 100, 0.01] + [0, 5, 1]
Y = X @ [1.5, -0.02, 30] + 4
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "price": Y, "tax": 2 * Y + X[:, 0], "w": rng.random(500)})


def process(*arguments, **options):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


def command(*arguments, stdin=None, code=0):
    """Run the command in this process, and check how it ends."""
    done = testing.CliRunner().invoke(app, [str(one) for one in arguments], input=stdin, prog_name="fssgd")
    assert done.exit_code == code, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def refused(*arguments, stdin=None):
    """Return the one line that says why."""
    done = command(*arguments, stdin=stdin, code=1)
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


def predictions(model, table):
    model = LinearRegressorGD.load(model)
    return model.predict(table.select(list(model.feature_names_in_)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Homes as CSV and Parquet, in a folder of their own that is the current one."""
    csv.write_csv(TABLE, tmp_path / "homes.csv")
    (tmp_path / "parts").mkdir()
    for part in range(2):
        pq.write_table(TABLE.slice(250 * part, 250), tmp_path / "parts" / f"{part}.parquet", row_group_size=50)
    monkeypatch.chdir(tmp_path)
    return tmp_path


UNSTABLE = ("--no-standardize", "--learning-rate", "1")
LIMIT = "--max-iter", "inf", "--tol", "none"
CHOSEN = ("-f", "a", "-f", "b", "-f", "c", "-t", "price")


@pytest.mark.slow
class TestProcess:
    """What a shell sees."""

    def test_from_a_csv_to_predictions(self, folder):
        done = process("fit", "homes.csv", *CHOSEN, "--save", "model.json")
        assert (done.returncode, done.stderr) == (0, "")
        lines = [line.split() for line in done.stdout.splitlines()]
        assert lines[0] == ["price"]
        assert [line[0] for line in lines[1:5]] == ["a", "b", "c", "(intercept)"]
        np.testing.assert_allclose([float(line[1]) for line in lines[1:5]], [1.5, -0.02, 30, 4], rtol=1e-5)
        assert "converged" in done.stdout
        assert "Saved to  model.json" in done.stdout
        model = LinearRegressorGD.load("model.json")
        np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
        done = process("predict", "model.json", "homes.csv", "--out", "predictions.csv")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "Saved to predictions.csv\n")
        np.testing.assert_allclose(csv.read_csv("predictions.csv")["prediction"], Y, rtol=1e-5)
        assert sorted(os.listdir(".")) == ["homes.csv", "model.json", "parts", "predictions.csv"]

    def test_pipes(self, folder):
        text = Path("homes.csv").read_text()
        done = process("fit", "-", *CHOSEN, "--save", "model.json", input=text)
        assert (done.returncode, done.stderr) == (0, "")
        done = process("predict", "model.json", "-", input=text)
        assert (done.returncode, done.stderr) == (0, "")
        head, *rows = done.stdout.splitlines()
        assert head == "prediction"
        np.testing.assert_array_equal(np.array(rows, dtype=float), predictions("model.json", TABLE))

    def test_a_mistake_is_one_line(self, folder):
        done = process("fit", "homes.csv", "-t", "cost")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"Error: {folder / 'homes.csv'} has no column 'cost': its columns are 'a', 'b', 'c', 'price', 'tax', 'w'.\n"
        )

    def test_usage(self):
        done = process("fit", "homes.csv")
        assert (done.returncode, done.stdout) == (2, "")
        assert "Missing option '--target'" in done.stderr

    def test_version_and_completion(self):
        assert process("--version").stdout == f"fssgd {fssgd.__version__}\n"
        asked = {"_FSSGD_COMPLETE": "complete_bash", "COMP_WORDS": "fssgd ", "COMP_CWORD": "1"}
        assert {"diagnose", "fit", "predict"} <= set(process(env=os.environ | asked).stdout.split())

    def test_without_typer(self):
        code = "import sys; sys.modules['typer'] = None; from fssgd.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert line.endswith("pip install 'fssgd[cli]'.")

    @pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
    def test_interrupted(self):
        """While it waits for more on standard input."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen([*COMMAND, "fit", "-", "-t", "y"], **pipes) as started:
            started.stdin.write(b"x,y\n" + b"1,2\n3,5\n" * 300_000)  # more than a pipe holds: it reads
            started.stdin.flush()
            started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=120)
        assert (started.returncode, out, err) == (130, b"", b"Interrupted.\n")

    @pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
    def test_a_reader_that_closes_the_pipe_early(self, folder):
        command("fit", "homes.csv", *CHOSEN, "--save", "model.json")
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as closed:
            arguments = [*COMMAND, "predict", "model.json", "homes.csv"]
            done = subprocess.run(arguments, stdout=closed, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (1, "")

    def test_tensorflow_is_quiet_about_itself(self, folder):
        pytest.importorskip("tensorflow")
        done = process("fit", "homes.csv", *CHOSEN, "--backend", "tf-graph", "--json")
        assert done.returncode == 0
        found = json.loads(done.stdout)
        assert found["backend"] == "tf-graph"
        assert found["coefficients"]["price"]["c"] == pytest.approx(30, rel=1e-4)


class TestFit:
    @pytest.mark.parametrize("backend", ["auto", "spectral", "numpy"])
    @pytest.mark.parametrize("source", ["homes.csv", "parts", "parts/*.parquet", "-"])
    def test_sources_and_backends(self, folder, backend, source):
        stdin = Path("homes.csv").read_bytes() if source == "-" else None
        settings = ["--max-iter", "40", "--learning-rate", "0.1", "--tol", "none", "--alpha", "0.1", "--weight", "w"]
        done = command("fit", source, *CHOSEN, *settings, "--backend", backend, "--json", stdin=stdin)
        model = LinearRegressorGD(max_iter=40, learning_rate=0.1, tol=None, alpha=0.1)
        weight = TABLE["w"].to_numpy()
        model.fit(X, Y, weight)
        found = json.loads(done.stdout)
        np.testing.assert_allclose(list(found["coefficients"]["price"].values()), model.coef_, rtol=1e-9)
        assert list(found["coefficients"]["price"]) == ["a", "b", "c"]
        assert found["intercept"]["price"] == pytest.approx(model.intercept_)
        assert found["r2"] == pytest.approx(model.score(X, Y, weight), rel=1e-9)
        assert found["loss"] == pytest.approx(model.loss_)
        assert (found["n_iter"], found["learning_rate"], found["converged"]) == (40, 0.1, False)
        assert found["backend"] == ("numpy" if backend == "numpy" else "spectral")
        assert (found["n_samples"], found["target"]) == (500, ["price"])
        assert done.stderr == ""

    def test_several_files_and_targets(self, folder):
        done = command(
            "fit", "parts/1.parquet", "parts/0.parquet", "-f", "a", "-f", "b", "-f", "c", "-t", "tax", "-t", "price"
        )
        head, *rows = (line.split() for line in done.stdout.splitlines()[:5])
        assert head == ["tax", "price"]
        np.testing.assert_allclose(
            [[float(x) for x in row[1:]] for row in rows], [[4, 1.5], [-0.04, -0.02], [60, 30], [8, 4]], rtol=1e-4
        )

    def test_settings(self, folder):
        settings = ["--no-standardize", "--no-intercept", "--tol", "none", "--max-iter", "inf", "--accurate"]
        done = command("fit", "homes.csv", *CHOSEN, *settings, "--save", "model.json")
        assert "Steps     inf of " in done.stdout
        model = LinearRegressorGD.load("model.json")
        expected = {"standardize": False, "fit_intercept": False, "tol": None, "max_iter": np.inf}
        assert expected.items() <= model.get_params().items()
        np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-9)

    def test_warnings_are_lines_on_standard_error(self, folder):
        Path("odd.csv").write_text("name,x,z,y\nA,1,2,1\nB,2,2,3\nC,,1,4\nD,4,3,7\n")
        done = command(
            "fit", "odd.csv", "-t", "y", "--on-missing", "drop", "--max-iter", "2", "--learning-rate", "0.01"
        )
        one, two, three = done.stderr.splitlines()
        assert one.startswith("Warning: Columns of ")
        assert "not numeric were left out of the features: 'name'" in one
        assert two.startswith("Warning: Dropped 1 of 4 rows")
        assert three.startswith("Warning: Gradient descent took max_iter=2 steps")
        assert "with standardize=True and learning_rate='auto'," in three
        assert "odd.csv" in two
        assert ".py" not in done.stderr
        assert "Rows      3" in done.stdout

    def test_rows_are_dropped_for_stepping_backends_too(self, folder):
        Path("odd.csv").write_text("x,z,y\n1,2,1\n2,2,3\n,1,4\n4,3,7\n5,1,\n")
        command_of = ("fit", "odd.csv", "-t", "y", "--on-missing", "drop", "--json")
        stepped = json.loads(command(*command_of, "--backend", "numpy").stdout)
        jumped = json.loads(command(*command_of).stdout)
        assert stepped["n_samples"] == jumped["n_samples"] == 3
        np.testing.assert_allclose(
            list(stepped["coefficients"]["y"].values()), list(jumped["coefficients"]["y"].values())
        )
        assert "missing values (null or NaN) in column 'x' (1 row), column 'y' (1 row)" in refused(
            "fit", "odd.csv", "-t", "y", "--backend", "numpy"
        )

    def test_a_constant_target(self, folder):
        Path("flat.csv").write_text("x,y\n1,2\n2,2\n")
        assert "R2        undefined: the target is constant" in command("fit", "flat.csv", "-t", "y").stdout
        assert json.loads(command("fit", "flat.csv", "-t", "y", "--json").stdout)["r2"] is None

    def test_r2_says_which_it_is(self, folder):
        """Without an intercept score and summary() differ, and each has its line."""
        model = LinearRegressorGD(max_iter=np.inf, tol=None, fit_intercept=False).fit(X, Y)
        centred, uncentred = model.score(X, Y), model.summary().r_squared
        printed = command("fit", "homes.csv", *CHOSEN, "--no-intercept", *LIMIT).stdout
        assert f"R2        {centred:.6g}, centred\nR2        {uncentred:.6g}, uncentred\n" in printed
        found = json.loads(command("fit", "homes.csv", *CHOSEN, "--no-intercept", *LIMIT, "--json").stdout)
        assert (found["r2"], found["r2_uncentred"]) == pytest.approx((centred, uncentred), rel=1e-9)
        usual = command("fit", "homes.csv", *CHOSEN, *LIMIT).stdout
        assert ", centred\n" in usual
        assert "uncentred" not in usual
        Path("zero.csv").write_text("x,y\n1,0\n2,0\n")
        assert (
            "R2        undefined: the target is 0\n"
            in command("fit", "zero.csv", "-t", "y", "--no-intercept", *LIMIT).stdout
        )

    def test_a_column_of_whole_numbers_that_ends(self, folder):
        """On standard input as in a file: types are guessed from the beginning."""
        text = "x,flag,y\n" + "1,true,2\n2,false,3\n" * 100_000 + "2.5,true,1e3\n2.5,true,-1e3\n"
        assert len(text) > 1 << 20
        Path("long.csv").write_text(text)
        found = json.loads(command("fit", "-", "-t", "y", "--json", stdin=text).stdout)
        assert found["n_samples"] == 200_002
        assert found == json.loads(command("fit", "long.csv", "-t", "y", "--json").stdout)

    def test_control_characters_in_names_reach_no_terminal(self, folder):
        Path("t.csv").write_text("a\x1b[31mred,b\u202e,y\n1,2,3\n2,1,5\n4,3,9\n5,5,2\n")
        done = command("fit", "t.csv", "-t", "y")
        assert done.stdout.splitlines()[1].startswith(r"a\x1b[31mred  ")
        assert r"b\u202e " in done.stdout
        os.rename("t.csv", "t\x1b[31m.csv")
        assert r"t\x1b[31m.csv has no column" in refused("fit", "t\x1b[31m.csv", "-t", "q")

    def test_a_pass_resumes_after_an_interruption(self, folder, monkeypatch):
        big = pa.concat_tables([TABLE] * 200)
        pq.write_table(big, "big.parquet")
        whole = command("fit", "big.parquet", *CHOSEN, "--json").stdout
        save = Checkpoint.save

        def interrupting(self, state, complete=False):
            save(self, state, complete)
            raise KeyboardInterrupt

        arguments = ("fit", "big.parquet", *CHOSEN, "--json", "--checkpoint", "state.npz", "--checkpoint-every", "0")
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "save", interrupting)
            done = command(*arguments, code=130)
        assert done.stderr == "Interrupted. The same command continues from state.npz.\n"
        with np.load("state.npz") as state:
            assert 0 < state["state.rows"] < 100_000
        assert command(*arguments).stdout == whole

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("none.csv", "-t", "y"), "There is no file or folder none.csv"),
            (("homes.csv", "-", "-t", "y"), "Standard input (-) cannot be read together with files"),
            (("-", "-t", "y"), "standard input could not be read: it is empty"),
            (("homes.csv", "-t", "price", "--backend", "fast"), "There is no backend 'fast'"),
            (("homes.csv", "-t", "price", "--alpha", "-1"), "The 'alpha' parameter"),
            (("homes.csv", "-t", "price", "-f", "price"), "'price' is named 2 times"),
            (("homes.csv", "-t", "price", "--save", "no/model.json"), "to write model.json in"),
            (("-", "-t", "price", "--checkpoint", "s.npz"), "--checkpoint is for files"),
            (("homes.csv", "-t", "price", "--checkpoint", "s.npz", "--backend", "numpy"), "backend 'numpy' loads it"),
            (
                ("homes.csv", "-t", "price", "--max-iter", "inf", "--backend", "numpy"),
                "max_iter=inf needs the closed form",
            ),
            (("broken.csv", "-t", "y"), "column 'rooms' (1 row): fill them in, or pass on_missing='drop'"),
            (("ragged.csv", "-t", "y"), "ragged.csv could not be read"),
            (("homes.csv", "-t", "price", *UNSTABLE), "the largest stable step for this data"),
            (("homes.csv", "-t", "price", *UNSTABLE, "--backend", "numpy"), "mostly column 'b'"),
        ],
    )
    def test_mistakes(self, folder, arguments, message):
        Path("broken.csv").write_text("rooms,y\n1,2\n,3\n4,5\n")
        Path("ragged.csv").write_text("rooms,y\n1,2\n3,4,5\n")
        assert message in refused("fit", *arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--max-iter", "2.5"), "'2.5' is not a whole number, or inf"),
            (("--learning-rate", "fast"), "'fast' is not a number, or auto"),
            (("--tol", "small"), "'small' is not a number, or none"),
            (("--on-missing", "fill"), "'fill' is not one of 'raise', 'drop'"),
            (("--fast",), "No such option"),
        ],
    )
    def test_usage(self, arguments, message):
        assert message in command("fit", "homes.csv", "-t", "price", *arguments, code=2).stderr


class TestPredict:
    @pytest.fixture
    def model(self, folder):
        command("fit", "parts", *CHOSEN, "--save", "model.json")
        return "model.json"

    def test_columns_are_found_by_name(self, model):
        pq.write_table(TABLE.select(["w", "c", "a", "price", "b"]), "other.parquet")
        command("predict", "model.json", "other.parquet", "--out", "p.parquet")
        table = pq.read_table("p.parquet")
        assert table.schema == pa.schema([("prediction", pa.float64())])
        np.testing.assert_array_equal(table["prediction"], predictions(model, TABLE))

    def test_several_outputs(self, folder):
        command("fit", "parts", "-f", "a", "-f", "c", "-t", "price", "-t", "tax", "--save", "two.json")
        done = command("predict", "two.json", "parts/0.parquet")
        table = csv.read_csv(io.BytesIO(done.stdout.encode()))
        assert table.column_names == ["prediction_0", "prediction_1"]
        expected = predictions("two.json", TABLE.slice(0, 250))
        np.testing.assert_array_equal(np.column_stack([table[name] for name in table.column_names]), expected)

    def test_booleans_and_whole_numbers(self, folder):
        Path("whole.csv").write_text("x,flag,y\n1,true,2\n2,false,3\n4,false,7\n5,true,6\n")
        command("fit", "whole.csv", "-t", "y", "--save", "whole.json")
        done = command("predict", "whole.json", "whole.csv")
        expected = predictions("whole.json", csv.read_csv("whole.csv"))
        np.testing.assert_array_equal(np.array(done.stdout.split()[1:], dtype=float), expected)

    def test_no_rows_give_no_predictions(self, model):
        Path("empty.csv").write_text("a,b,c\n")
        assert command("predict", "model.json", "empty.csv").stdout == "prediction\n"

    def test_compressed_standard_input(self, model):
        packed = gzip.compress(Path("homes.csv").read_bytes())
        assert command("predict", model, "-", stdin=packed).stdout == command("predict", model, "homes.csv").stdout

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
    def test_a_full_disk_is_an_error_in_words(self, model):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([*COMMAND, "predict", model, "homes.csv"], stdout=full, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr.decode().strip()) == (1, "Error: No space left on device.")

    def test_a_missing_column_is_named(self, model):
        csv.write_csv(TABLE.select(["a", "c"]), "narrow.csv")
        assert "narrow.csv has no column 'b': its columns are 'a', 'c'." in refused(
            "predict", "model.json", "narrow.csv"
        )

    def test_missing_values_leave_what_was_there(self, model):
        Path("hole.csv").write_text("a,b,c\n1,,3\n1,2,inf\n,,2\n")
        Path("out.csv").write_text("before")
        message = refused("predict", "model.json", "hole.csv", "--out", "out.csv")
        for column in ("column 'a' (1 row)", "column 'b' (2 rows)", "column 'c' (1 row)"):
            assert column in message
        assert Path("out.csv").read_text() == "before"
        assert not list(Path().glob(".out.csv*"))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"coef": [1, 2', "broken.json is not a saved model: it does not hold valid JSON"),
            ("{}", "broken.json is not a saved model: expected format"),
            (None, "broken.json: No such file or directory."),
        ],
    )
    def test_a_file_that_is_not_a_model(self, folder, text, message):
        if text is not None:
            Path("broken.json").write_text(text)
        assert message in refused("predict", "broken.json", "homes.csv")

    def test_a_model_without_names(self, folder):
        LinearRegressorGD().fit(X, Y).save("nameless.json")
        assert "nameless.json has no feature names to find columns by" in refused(
            "predict", "nameless.json", "homes.csv"
        )

    def test_an_output_in_a_missing_folder(self, model):
        assert "to write p.csv in" in refused("predict", "model.json", "homes.csv", "--out", "no/p.csv")


class TestDiagnose:
    def test_prints_the_diagnosis_of_the_library(self, folder):
        done = command("diagnose", "parts", *CHOSEN, "--learning-rate", "1e-5")
        moments = Moments.from_table("parts", target="price", features=["a", "b", "c"])
        found = diagnose(moments, learning_rate=1e-5)
        assert done.stdout == str(found) + "\n"
        assert "Condition number" in done.stdout
        assert "- standardize=True brings the condition number from " in done.stdout
        again = command("diagnose", "homes.csv", *CHOSEN, "--learning-rate", "1e-5", "--json")
        assert json.loads(again.stdout)["condition_number"] == pytest.approx(found.condition_number)

    def test_settings(self, folder):
        text = Path("homes.csv").read_text()
        settings = ["--no-intercept", "--alpha", "0.5", "--tol", "1e-3", "--weight", "w", "--accurate"]
        found = json.loads(command("diagnose", "-", *CHOSEN, *settings, "--json", stdin=text).stdout)
        moments = Moments.from_arrays(X, Y, TABLE["w"].to_numpy(), accurate=True)
        expected = diagnose(moments, fit_intercept=False, alpha=0.5, tol=1e-3).to_dict()
        for name in ("condition_number", "steps", "best_learning_rate", "tol", "alpha", "fit_intercept", "accurate"):
            assert found[name] == pytest.approx(expected[name], rel=1e-9)

    def test_mistakes(self, folder):
        assert "tol must be a non-negative number, got None" in refused(
            "diagnose", "homes.csv", "-t", "price", "--tol", "none"
        )
        assert "has no column 'cost'" in refused("diagnose", "homes.csv", "-t", "cost")


class TestHelp:
    @pytest.mark.parametrize("arguments", [(), ("fit",), ("predict",), ("diagnose",)])
    def test_fits_a_screen_and_has_an_example(self, arguments, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        lines = command(*arguments, "--help").stdout.splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        assert any(" ".join(("fssgd", *arguments)) in line and ".csv" in line for line in lines)

    def test_without_arguments(self):
        assert "Commands:" in command(code=2).output
