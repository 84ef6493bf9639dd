"""The commands that measure, as a user runs them; what they write is held against known values."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

typer = pytest.importorskip("typer")
pytest.importorskip("rich")
matplotlib_image = pytest.importorskip("matplotlib.image")

from exact import seed  # noqa: E402
from fssgd.cli._experiment import bench, step_timing  # noqa: E402
from fssgd.cli._experiment.descent_timing import backend_descent, loop_descent, progress, time_descent  # noqa: E402
from fssgd.cli._experiment.machine import describe_machine, machine_line  # noqa: E402
from fssgd.cli._experiment.output import duration, result_folder, to_json  # noqa: E402
from fssgd.cli._experiment.question import SCRIPT, question_data, question_loop  # noqa: E402
from fssgd.cli._experiment.step_timing import LinearCost, StepTime, lead_changes, linear_cost, measure  # noqa: E402

BACKENDS = ["spectral", "numpy", "krylov", "tf-graph", "tf-session"]
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
WITHOUT_TENSORFLOW = "import sys; sys.modules['tensorflow'] = None; from fssgd.cli import main; main()"


def run(*arguments, code=None):
    command = [sys.executable, "-m", "fssgd"] if code is None else [sys.executable, "-c", code]
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
        check=False,
    )


def check_picture(file):
    """A PNG that is large enough to read, in more than one colour."""
    pixels = matplotlib_image.imread(file)
    assert pixels.shape[1] >= 800
    assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 50


# fssgd demo


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    """What ``demo --quick --out`` prints and leaves, run once: TensorFlow takes long to import."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    done = run("demo", "--quick", "--out", folder)
    assert done.returncode == 0, done.stderr
    return done, folder, json.loads((folder / "demo.json").read_text())


@pytest.mark.slow
def test_all_names_are_printed_in_full(demonstration):
    done, folder, _ = demonstration
    for name in [SCRIPT, *BACKENDS]:
        assert len(re.findall(rf"^\s*{name}\s", done.stdout, re.MULTILINE)) == 2, name  # a line in either table
    assert "…" not in done.stdout
    assert "Traceback" not in done.stderr
    assert str(folder) in done.stdout
    for word in ("W", "b", "loss", "error", "time", "a step", "than the loop", "Raw, 100,000 steps of 1e-4"):
        assert word in done.stdout
    assert "100 on the standardised feature end at a loss of 176.3993, 100,000 on the raw one at 176.4039" in re.sub(
        r"\s+", " ", done.stdout
    )


@pytest.mark.slow
def test_every_descent_is_where_exact_arithmetic_puts_it(demonstration):
    raw, scaled = demonstration[2]["experiments"]
    for experiment, name in ((raw, "question_1e5_steps"), (scaled, "answer2_standardized_1e2_steps")):
        right = seed(name)
        for key in ("coef", "intercept", "loss"):
            assert experiment["exact"][key] == pytest.approx(right[key], rel=1e-12)
        assert (experiment["n_samples"], experiment["learning_rate"]) == (1_000, right["learning_rate"])
        for found in experiment["runs"]:
            assert found["error"] < 1e-11
            if found["n_steps"] == right["max_iter"]:
                for key in ("coef", "intercept", "loss"):
                    assert found[key] == pytest.approx(right[key], rel=1e-11)
    available = BACKENDS if HAS_TENSORFLOW else BACKENDS[:3]
    for experiment in (raw, scaled):
        assert [found["backend"] for found in experiment["runs"]] == [SCRIPT, *available]


@pytest.mark.slow
def test_times_per_step_and_speedups_agree_with_the_times(demonstration):
    for experiment in demonstration[2]["experiments"]:
        script = experiment["runs"][0]
        for found in experiment["runs"]:
            assert found["n_steps"] == experiment["n_steps"] or found["n_steps"] % 1_000 == 0
            assert found["seconds_per_step"] == pytest.approx(found["seconds"] / found["n_steps"])
            assert found["times_faster"] == pytest.approx(script["seconds_per_step"] / found["seconds_per_step"])
            assert found["startup_seconds"] > 0
    runs = {found["backend"]: found for found in demonstration[2]["experiments"][0]["runs"]}
    assert runs["spectral"]["n_steps"] == 100_000


@pytest.mark.slow
def test_pictures_are_there_and_their_series_in_the_json(demonstration):
    _, folder, document = demonstration
    assert sorted(file.name for file in folder.iterdir()) == [
        "demo.json",
        "descent.png",
        "loss_curves.png",
        "time_per_step.png",
    ]
    for file in folder.glob("*.png"):
        check_picture(file)
    figures = document["figures"]
    raw, scaled = figures["loss_curves"].values()
    assert (raw["step"][-1], scaled["step"][-1]) == (100_000, 100)
    assert raw["loss"][raw["step"].index(1_000)] == pytest.approx(seed("question_1e3_steps")["loss"], rel=1e-12)
    raw, scaled = figures["descent"].values()
    short, eigenvalues = seed("question_1e3_steps"), seed("question_1e5_steps")["hessian_eigenvalues"]
    k = raw["step"].index(1_000)
    assert (raw["W"][k], raw["b"][k]) == pytest.approx((short["coef"], short["intercept"]), rel=1e-11)
    assert raw["condition_number"] == pytest.approx(eigenvalues[1] / eigenvalues[0], rel=1e-9)
    assert scaled["condition_number"] == pytest.approx(1.0)
    assert scaled["W"][-1] == pytest.approx(seed("answer2_standardized_1e2_steps")["scaled_coef"], rel=1e-11)
    assert list(figures["seconds_per_step"]) == [found["backend"] for found in document["experiments"][0]["runs"]]
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["numpy"] == np.__version__


@pytest.mark.slow
def test_a_backend_that_is_not_installed_is_named_with_its_cure():
    done = run("demo", "--quick", code=WITHOUT_TENSORFLOW)
    assert done.returncode == 0, done.stderr
    for name in ("tf-graph", "tf-session"):
        assert len(re.findall(rf"{name}\s+not installed", done.stdout)) == 2
        assert f"The backend '{name}' needs a package that is not installed: pip install 'fssgd[tensorflow]'." in (
            done.stdout
        )
    assert "spectral" in done.stdout
    assert "Session.run" not in done.stdout


def test_a_folder_that_cannot_be_made_is_said_to_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="--out .*file cannot be made a folder .*: name another"):
        result_folder(tmp_path / "file")


# the stopwatch


@pytest.mark.parametrize("standardize", [False, True])
def test_the_loop_takes_the_question_s_steps(standardize):
    right = seed("answer2_standardized_1e2_steps" if standardize else "question_1e3_steps")
    found = question_loop(*question_data(), right["learning_rate"], right["max_iter"], standardize)
    assert found[:3] == pytest.approx((right["coef"], right["intercept"], right["loss"]), rel=1e-12)
    assert found[3] == right["max_iter"]


def test_the_data_are_the_question_s(question):
    x, y = question_data()
    np.testing.assert_array_equal(x, question[0][:, 0])
    np.testing.assert_array_equal(y, question[1])
    assert [part.dtype for part in question_data(10, np.float32)] == [np.float32] * 2


@pytest.mark.parametrize("descent", [loop_descent, partial(backend_descent, "numpy")])
def test_what_takes_too_long_is_stopped_and_says_where(descent):
    """A budget that is over before it begins: one report, 1,000 steps, and the iterate they lead to."""
    descend = descent(*question_data(), learning_rate=1e-4, standardize=False)
    timing = time_descent("numpy", descend, 100_000, budget=-1.0, at_least=0.0)
    right = seed("question_1e3_steps")
    assert timing.found.n_iter == 1_000
    assert timing.found[:3] == pytest.approx((right["coef"], right["intercept"], right["loss"]), rel=1e-12)


def test_a_descent_reports_a_hundred_times_at_most():
    for name, steps, reports in (("numpy", 100_000, 100), ("numpy", 999, 1), ("numpy", 2_000, 2), ("spectral", 9, 0)):
        heard = []
        backend_descent(name, *question_data(10), 1e-4, False)(steps, lambda k, heard=heard: heard.append(k))
        assert len(heard) == reports
        assert not heard or heard[-1] == steps


def test_a_first_run_that_is_short_is_followed_by_another():
    taken = []

    def descend(n_steps, report):
        taken.append(n_steps)
        return loop_descent(*question_data(10), 1e-4, False)(n_steps, report)

    timing = time_descent("loop", descend, 50, budget=1.0, at_least=0.0)
    assert taken == [50, 50, 50]
    assert timing.found.n_iter == 50
    assert timing.seconds > 0


def test_a_bar_shows_the_speed_on_a_terminal(monkeypatch, capsys):
    with progress("numpy", 10_000) as show:
        show(5_000)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with progress("numpy", 10_000) as show:
        show(5_000)
        show(10_000)
    shown = capsys.readouterr().err
    assert "numpy" in shown
    assert "steps/s" in shown
    assert "10000/10000" in shown


# fssgd bench


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    done = run("bench", "--sizes", "400,100,200", "--repeats", "3", "--out", folder)
    assert done.returncode == 0, done.stderr
    return done, folder, json.loads((folder / "bench.json").read_text())


@pytest.mark.slow
def test_a_benchmark_times_every_backend_at_every_size(benchmark):
    done, folder, document = benchmark
    names = [SCRIPT, *(BACKENDS if HAS_TENSORFLOW else BACKENDS[:3])]
    found = {(time["backend"], time["n_samples"]): time for time in document["times"]}
    assert sorted(found) == sorted((name, n) for name in names for n in (100, 200, 400))
    for (name, _), time in found.items():
        assert time["median"] > 0
        assert time["lower_quartile"] <= time["median"] <= time["upper_quartile"]
        assert time["unit"] == ("fit" if name in ("spectral", "krylov") else "step")
        assert time["n_repeats"] == 3
        assert time["warm_up_seconds"] > 0
        assert name in done.stdout
    assert document["dtype"] == "float64"
    assert "…" not in done.stdout
    assert sorted(file.name for file in folder.iterdir()) == ["bench.json", "bench.png"]
    check_picture(folder / "bench.png")


@pytest.mark.slow
def test_costs_are_fitted_to_the_medians(benchmark):
    """By another solver of the same problem."""
    document = benchmark[2]
    for cost in document["costs"]:
        times = [time for time in document["times"] if time["backend"] == cost["backend"]]
        n = np.array([time["n_samples"] for time in times], float)
        t = np.array([time["median"] for time in times])
        assert cost["overhead"] >= 0
        assert cost["per_row"] >= 0
        misfit = (cost["overhead"] + cost["per_row"] * n) / t - 1
        assert np.abs(misfit).max() == pytest.approx(cost["worst_error"], abs=1e-6)
        gradient = np.array([(misfit / t).sum() * cost["overhead"], (misfit * n / t).sum() * cost["per_row"]])
        np.testing.assert_allclose(gradient, 0.0, atol=1e-8)  # of the objective, where the bound is not active


@pytest.mark.slow
def test_tensorflow_is_compared_with_numpy(benchmark):
    done, _, document = benchmark
    if not HAS_TENSORFLOW:
        assert document["crossovers"] == []
        return
    pairs = [(found["backend"], found["against"]) for found in document["crossovers"]]
    assert pairs == [(tf, other) for tf in ("tf-graph", "tf-session") for other in (SCRIPT, "numpy")]
    for found in document["crossovers"]:
        medians = [
            {time["n_samples"]: time["median"] for time in document["times"] if time["backend"] == found[who]}
            for who in ("backend", "against")
        ]
        assert found["faster_at_smallest"] == (medians[0][100] < medians[1][100])
        changes = len(found["lead_changes"])
        assert (found["faster_at_smallest"] == (medians[0][400] < medians[1][400])) == (changes % 2 == 0)
    assert f"tf-session overtakes {SCRIPT}" in done.stdout or f"tf-session against {SCRIPT}" in done.stdout


@pytest.mark.slow
def test_json_goes_to_stdout_alone():
    done = run(
        "bench", "--backends", "loop, numpy", "--sizes", "10,1_000", "--dtype", "float32", "--repeats", 1, "--json"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [cost["backend"] for cost in document["costs"]] == [SCRIPT, "numpy"]
    assert document["dtype"] == "float32"
    assert document["crossovers"] == []


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("100", "--sizes '100': give two or more different sizes of at least 2 rows"),
        ("100,100", "give two or more different sizes"),
        ("1,100", "of at least 2 rows"),
        ("many", "--sizes 'many': expected integers with commas between, such as 100,1000"),
        ("", "expected integers with commas between"),
    ],
)
def test_sizes_are_two_numbers_of_rows(sizes, message):
    with pytest.raises(typer.BadParameter, match=message):
        bench._sizes(sizes)


@pytest.mark.parametrize(
    ("backends", "message"),
    [
        ("numpi", "There is no backend 'numpi': .* Here, 'loop' is the question's own loop"),
        (",", "',' names no backend: choose from loop, spectral, numpy"),
    ],
)
def test_backends_are_names_that_are_known(backends, message):
    assert bench._names("numpy, loop,numpy") == ["numpy", SCRIPT]
    with pytest.raises(typer.BadParameter, match=message):
        bench._names(backends)


@pytest.mark.parametrize(
    ("arguments", "message"), [(("--sizes", "many"), "expected integers"), (("--dtype", "float16"), "float32")]
)
@pytest.mark.slow
def test_what_cannot_be_measured_is_a_usage_error(arguments, message):
    done = run("bench", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert message in done.stderr


def test_a_line_is_found_where_there_is_one():
    n = np.array([10.0, 100.0, 1e4, 1e6])
    cost = linear_cost("numpy", n, 3e-6 + 2e-9 * n)
    assert (cost.overhead, cost.per_row) == pytest.approx((3e-6, 2e-9), rel=1e-9)
    assert cost.worst_error < 1e-9


def test_a_cost_is_never_negative():
    """Seconds that grow faster than rows would ask for an overhead below 0."""
    cost = linear_cost("numpy", [1, 10, 100], [1e-6, 12e-6, 150e-6])
    assert cost.overhead == 0.0
    falling = linear_cost("numpy", [1, 10, 100], [3e-6, 2e-6, 1e-6])
    assert falling.per_row == 0.0
    assert isinstance(falling, LinearCost)


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        ([2.0, 4.0, 8.0], []),
        ([0.5, 0.5, 0.5], []),
        ([4.0, 1.0, 0.25], [10.0 ** (2 / 3) * 10]),
        ([0.1, 10.0, 0.1], None),
    ],
)
def test_lead_changes_are_where_the_cost_lines_cross(first, changes):
    """On logarithmic axes: 4 falls to 1 while the other stays... at 1 from 10 to 1,000 rows."""
    found = lead_changes([10, 1_000, 100_000], first, [1.0, 1.0, 1.0])
    if changes is None:
        assert found == pytest.approx([100.0, 10_000.0])
    elif first[0] == 4.0:
        assert found == pytest.approx([1_000.0])
    else:
        assert found == []


@pytest.mark.parametrize(
    ("faster", "changes", "line"),
    [
        (False, [], "tf-session overtakes numpy: none up to 1,000,000 rows"),
        (True, [], "tf-session is faster than numpy throughout"),
        (False, [123_456.0], "tf-session against numpy: overtakes at about 120,000 rows"),
        (
            True,
            [2_345.0, 5e5],
            "tf-session against numpy: falls behind at about 2,300 rows, overtakes at about 500,000 rows",
        ),
    ],
)
def test_crossovers_in_words(faster, changes, line):
    found = {"backend": "tf-session", "against": "numpy", "faster_at_smallest": faster, "lead_changes": changes}
    assert bench._crossover_line(found, 1_000_000) == line


def test_a_step_is_what_more_steps_take_longer(monkeypatch):
    """A backend that takes 5 s a call and 2 s a step, by a clock of its own."""
    monkeypatch.setattr(step_timing, "_prepared", lambda name, x, y: lambda k: 5.0 + 2.0 * k)
    (time,) = measure(["numpy"], 10, "float64", 3)
    assert time == StepTime("numpy", 10, "step", 2.0, 2.0, 2.0, 2, 3, time.warm_up_seconds)


def test_a_slow_first_call_is_not_taken_for_the_time_of_its_steps(monkeypatch):
    """A step takes 5 us, but the first call of two steps is held up for a second."""
    calls = []

    def run(k):
        calls.append(k)
        return 1.0 if len(calls) == 4 else 5e-6 * k

    assert step_timing._calibrated(run) == 4_096  # 0.02 s are 4,001 steps
    monkeypatch.setattr(step_timing, "_prepared", lambda name, x, y: lambda k: 5.0)
    monkeypatch.setattr(step_timing, "MOST_STEPS", 8)
    with pytest.raises(ValueError, match="8 steps of numpy on 10 rows took no longer than one: .* too busy"):
        measure(["numpy"], 10, "float64", 3)


# odds and ends


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12.34, "12.3 s"), (1234.5, "1,234 s"), (0.01234, "12.3 ms"), (5e-6, "5 us"), (7.18e-9, "7.18 ns"), (0.0, "0 ns")],
)
def test_times_are_three_digits_and_a_unit(seconds, text):
    assert duration(seconds) == text


def test_json_refuses_values_it_cannot_hold():
    assert json.loads(to_json({"a": np.arange(2), "b": np.float64(1.5), "c": np.int64(3)})) == {
        "a": [0, 1],
        "b": 1.5,
        "c": 3,
    }
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json([np.inf])
    with pytest.raises(TypeError, match="object has no place in JSON"):
        to_json(object())


def test_the_machine_is_described_in_a_line():
    line = machine_line(describe_machine())
    assert f"numpy {np.__version__}" in line
    assert "cores" in line
