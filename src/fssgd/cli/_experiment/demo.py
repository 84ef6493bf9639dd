"""The command ``fssgd demo``: the question's experiment, run on this machine."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fssgd._path.gradient_path import GradientPath
from fssgd.backends import available_backends, get_backend
from fssgd.cli._console import working
from fssgd.cli._experiment.descent_timing import Descend, Timing, backend_descent, loop_descent, time_descent
from fssgd.cli._experiment.figures import draw_descents, draw_losses, draw_times
from fssgd.cli._experiment.machine import describe_machine, machine_line
from fssgd.cli._experiment.output import duration, quiet_tensorflow, result_console, result_folder, write_json
from fssgd.cli._experiment.question import SCRIPT, question_data

PICTURES = LOSSES, DESCENTS, TIMES = "loss_curves.png", "descent.png", "time_per_step.png"
BUILT_IN = ("spectral", "numpy", "krylov", "tf-graph", "tf-session")
QUICK_BUDGET, QUICK_REPEATS, REPEATS = 2.0, 0.3, 1.0  # seconds


@dataclass(frozen=True)
class Experiment:
    """A descent on the question's data."""

    title: str
    learning_rate: float
    n_steps: int
    standardize: bool


RAW = Experiment("raw, 100,000 steps of 1e-4", 1e-4, 100_000, False)
STANDARDISED = Experiment("standardised, 100 steps of 0.1", 0.1, 100, True)


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Stop slow backends after 2 s; under 30 s in all.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the pictures, as PNG, and the results, as JSON.", show_default=False)
    ] = None,
) -> None:
    """Why is gradient descent in TensorFlow slower than in NumPy? Watch every backend take the same steps.

    A line through 1,000 points: 100,000 steps of 1e-4 on the feature as it is, then 100 of 0.1 on it standardised.

    Example: fssgd demo --quick --out pictures
    """
    folder = None if out is None else result_folder(out, *PICTURES, "demo.json")
    console = result_console()
    quiet_tensorflow()
    x, y = question_data()
    missing = {name: reason for name in BUILT_IN if (reason := _missing(name))}
    paths, reports = {}, []
    for experiment in (RAW, STANDARDISED):
        settings: Any = {"learning_rate": experiment.learning_rate, "standardize": experiment.standardize}
        paths[experiment.title] = GradientPath.from_arrays(x[:, None], y, **settings), experiment.n_steps
        descents = {SCRIPT: loop_descent(x, y, **settings)}
        names = [name for name in dict.fromkeys([*BUILT_IN, *available_backends()]) if name not in missing]
        descents |= {name: backend_descent(name, x, y, **settings) for name in names}
        report = _measure(experiment, paths[experiment.title][0], descents, quick)
        console.print(_table(experiment, report["runs"], missing))
        reports.append(report)
    machine = describe_machine()
    for line in [*missing.values(), _verdict(*reports), machine_line(machine)]:
        console.print(line, markup=False)
    if folder is not None:
        times = {run["backend"]: run["seconds_per_step"] for run in reports[0]["runs"]}
        with working("Drawing"):
            figures = {
                "loss_curves": draw_losses(paths, folder / LOSSES),
                "descent": draw_descents(paths, folder / DESCENTS),
                "seconds_per_step": times,
            }
            draw_times(times, folder / TIMES)
        document = {"machine": machine, "quick": quick, "missing": missing, "experiments": reports, "figures": figures}
        write_json(folder / "demo.json", document)
        console.print(f"Pictures and demo.json are in {folder}", markup=False)


def _missing(name: str) -> str:
    """Why a backend cannot run here, with the command that changes it; empty if it can."""
    try:
        get_backend(name)
    except ImportError as error:
        return str(error)
    return ""


def _measure(experiment: Experiment, path: GradientPath, descents: dict[str, Descend], quick: bool) -> dict[str, Any]:
    """Time every descent, and hold it against the closed form at the step it reached."""
    budget, repeats = (QUICK_BUDGET, QUICK_REPEATS) if quick else (math.inf, REPEATS)
    runs: list[dict[str, Any]] = []
    for name, descend in descents.items():
        timing = time_descent(name, descend, experiment.n_steps, budget=budget, at_least=repeats)
        runs.append(_facts(name, timing, path))
    for run in runs:
        run["times_faster"] = runs[0]["seconds_per_step"] / run["seconds_per_step"]
    k = experiment.n_steps
    exact = {"coef": path.coef(k)[0], "intercept": path.intercept(k), "loss": path.loss(k)}
    return {**asdict(experiment), "n_samples": path.moments.n_samples, "exact": exact, "runs": runs}


def _facts(name: str, timing: Timing, path: GradientPath) -> dict[str, Any]:
    found, k = timing.found, timing.found.n_iter
    exact = np.array([path.coef(k)[0], path.intercept(k), path.loss(k)])
    return {
        "backend": name,
        "n_steps": k,
        "coef": found.coef,
        "intercept": found.intercept,
        "loss": found.loss,
        "error": float(np.abs(np.array(found[:3]) / exact - 1.0).max()),
        "seconds": timing.seconds,
        "seconds_per_step": timing.seconds / k,
        "startup_seconds": timing.startup_seconds,
    }


def _table(experiment: Experiment, runs: list[dict[str, Any]], missing: dict[str, str]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=experiment.title.capitalize(), box=box.SIMPLE_HEAD, padding=0, title_justify="left")
    for name in ("", "W", "b", "loss", "error", "time", "a step", "than the loop"):
        table.add_column(name, justify="right" if name else "left")
    for run in runs:
        cut = "" if run["n_steps"] == experiment.n_steps else f"\n  {run['n_steps']:,} steps"
        table.add_row(
            run["backend"] + cut,
            f"{run['coef']:.4f}",
            f"{run['intercept']:.4f}",
            f"{run['loss']:.4f}",
            f"{run['error']:.0e}",
            duration(run["seconds"]),
            duration(run["seconds_per_step"]),
            "" if run["backend"] == SCRIPT else _times(run["times_faster"]),
        )
    for name in missing:
        table.add_row(name, *[""] * 6, "not installed")
    return table


def _times(faster: float) -> str:
    ratio, word = (faster, "faster") if faster >= 1 else (1 / faster, "slower")
    return f"{ratio:,.0f}x {word}" if ratio >= 10 else f"{ratio:.1f}x {word}"


def _verdict(raw: dict[str, Any], scaled: dict[str, Any]) -> str:
    runs = {run["backend"]: run for run in raw["runs"]}
    script, jump, session = runs[SCRIPT], runs["spectral"], runs.get("tf-session")
    price = "" if session is None else (
        "A call has its price, however little it has to do: a step by Session.run takes "
        f"{duration(session['seconds_per_step'])}, one of the loop {duration(script['seconds_per_step'])}. "
    )  # fmt: skip
    scaled_loss, raw_loss = (report["exact"]["loss"] for report in (scaled, raw))
    in_all = duration(raw["n_steps"] * script["seconds_per_step"])
    return (
        f"{price}The closed form needs one call for all {raw['n_steps']:,} steps: {duration(jump['seconds'])} instead "
        f"of {in_all}.\nScaling does better with a thousandth of the steps: {scaled['n_steps']} on the standardised "
        f"feature end at a loss of {scaled_loss:.4f}, {raw['n_steps']:,} on the raw one at {raw_loss:.4f}."
    )
