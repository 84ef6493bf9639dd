"""The command ``fssgd bench``: the time of a step against the number of rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fssgd._insight.displays._common import COLOURS
from fssgd.backends import available_backends, get_backend
from fssgd.cli._console import working
from fssgd.cli._experiment.figures import new_figure
from fssgd.cli._experiment.machine import describe_machine, machine_line
from fssgd.cli._experiment.output import (
    duration,
    quiet_tensorflow,
    result_console,
    result_folder,
    to_json,
    write_json,
    write_picture,
)
from fssgd.cli._experiment.question import SCRIPT
from fssgd.cli._experiment.step_timing import LinearCost, StepTime, lead_changes, linear_cost, measure

LOOP = "loop"  # what the question's own loop is called among the arguments
SIZES = "100,1000,10000,100000,1000000"


class Dtype(StrEnum):
    """Of the data, and so of the steps."""

    float64 = "float64"
    float32 = "float32"


def bench(
    backends: Annotated[
        str | None,
        typer.Option(help="Names with commas between; 'loop' is the question's own.", show_default="all there are"),
    ] = None,
    sizes: Annotated[str, typer.Option(help="Numbers of rows, with commas between.")] = SIZES,
    dtype: Annotated[Dtype, typer.Option(help="Of the data, and so of the steps.")] = Dtype.float64,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of each time.")] = 7,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.png and bench.json.", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Time a step against the number of rows: what a call costs, what a row costs, who overtakes whom.

    One feature and the question's data. The closed form takes no steps: of it, a whole fit is timed.

    Example: fssgd bench --sizes 1000,1000000 --out pictures
    """
    quiet_tensorflow()
    names, rows = _names(backends), _sizes(sizes)
    folder = None if out is None else result_folder(out, "bench.png", "bench.json")
    times = [time for n in _with_progress(rows) for time in measure(names, n, dtype.value, repeats)]
    series = {name: [time for time in times if time.backend == name] for name in names}
    costs = [linear_cost(name, rows, [time.median for time in series[name]]) for name in names]
    overtaken = _crossovers(rows, series)
    machine = describe_machine()
    document = {
        "machine": machine,
        "dtype": dtype.value,
        "n_features": 1,
        "times": [asdict(time) for time in times],
        "costs": [asdict(cost) for cost in costs],
        "crossovers": overtaken,
    }
    if json:
        typer.echo(to_json(document))
    else:
        console = result_console()
        console.print(_times_table(rows, series, dtype.value))
        console.print(_costs_table(costs, series))
        for line in [*(_crossover_line(found, rows[-1]) for found in overtaken), machine_line(machine)]:
            console.print(line, markup=False)
    if folder is not None:
        with working("Drawing"):
            _draw(rows, series, costs, folder / "bench.png")
        write_json(folder / "bench.json", document)


def _names(given: str | None) -> list[str]:
    if given is None:
        return [SCRIPT, *available_backends()]
    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if not names:
        raise typer.BadParameter(f"{given!r} names no backend: choose from {LOOP}, {', '.join(available_backends())}.")
    for name in names:
        if name != LOOP:
            try:
                get_backend(name)
            except (ImportError, ValueError) as error:
                raise typer.BadParameter(f"{error} Here, '{LOOP}' is the question's own loop.") from error
    return [SCRIPT if name == LOOP else name for name in names]


def _sizes(given: str) -> list[int]:
    try:
        rows = sorted({int(size.replace("_", "")) for size in given.split(",")})
    except ValueError as error:
        raise typer.BadParameter(
            f"--sizes {given!r}: expected integers with commas between, such as {SIZES}."
        ) from error
    if len(rows) < 2 or rows[0] < 2:
        raise typer.BadParameter(f"--sizes {given!r}: give two or more different sizes of at least 2 rows.")
    return rows


def _with_progress(rows: list[int]) -> Any:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(rows, "Timing", console=console, transient=True, disable=not sys.stderr.isatty())


def _crossovers(rows: Sequence[int], series: dict[str, list[StepTime]]) -> list[dict[str, Any]]:
    """Where a TensorFlow backend overtakes something in NumPy, or is overtaken."""
    medians = {name: [time.median for time in times] for name, times in series.items()}
    pairs = [(tf, other) for tf in medians if tf.startswith("tf-") for other in (SCRIPT, "numpy") if other in medians]
    return [
        {
            "backend": tf,
            "against": other,
            "faster_at_smallest": medians[tf][0] < medians[other][0],
            "lead_changes": lead_changes(rows, medians[tf], medians[other]),
        }
        for tf, other in pairs
    ]


def _crossover_line(found: dict[str, Any], largest: int) -> str:
    """Say so in words, as "tf-session overtakes numpy at about 250,000 rows"."""
    who, other, is_faster = found["backend"], found["against"], found["faster_at_smallest"]
    if not found["lead_changes"]:
        return (
            f"{who} is faster than {other} throughout"
            if is_faster
            else f"{who} overtakes {other}: none up to {largest:,} rows"
        )
    events = []
    for n in found["lead_changes"]:
        is_faster = not is_faster
        events.append(f"{'overtakes' if is_faster else 'falls behind'} at about {float(f'{n:.2g}'):,.0f} rows")
    return f"{who} against {other}: {', '.join(events)}"


def _times_table(rows: Sequence[int], series: dict[str, list[StepTime]], dtype: str) -> Any:
    table = _new_table(f"Time of a step, {dtype}: median, ± half the range between the quartiles")
    table.add_column("rows", justify="right")
    for name, times in series.items():
        unit = "" if times[0].unit == "step" else "\na fit"
        table.add_column(name.replace(" ", "\n") + unit, justify="right")
    for i, n in enumerate(rows):
        table.add_row(f"{n:,}", *(_spread(times[i]) for times in series.values()))
    return table


def _spread(time: StepTime) -> str:
    return f"{duration(time.median)} ±{(time.upper_quartile - time.lower_quartile) / 2 / time.median:.0%}"


def _costs_table(costs: list[LinearCost], series: dict[str, list[StepTime]]) -> Any:
    table = _new_table("Fitted as overhead + cost a row")
    for title in ("", "overhead", "a row", "worst misfit", "warm-up"):
        table.add_column(title, justify="right" if title else "left")
    for cost in costs:
        warm_up = max(time.warm_up_seconds for time in series[cost.backend])
        table.add_row(
            cost.backend, duration(cost.overhead), duration(cost.per_row), f"{cost.worst_error:.0%}", duration(warm_up)
        )
    return table


def _new_table(title: str) -> Any:
    from rich import box
    from rich.table import Table

    return Table(title=title, box=box.SIMPLE_HEAD, padding=0, title_justify="left")


def _draw(rows: Sequence[int], series: dict[str, list[StepTime]], costs: list[LinearCost], file: Path) -> None:
    """Draw medians with quartiles, and what was fitted to them, on logarithmic axes."""
    import numpy as np

    figure = new_figure(7.0, 4.6)
    ax, n = figure.subplots(), np.geomspace(rows[0], rows[-1], 100)
    for cost, colour, marker in zip(costs, COLOURS * 10, "osD^vPX" * 10, strict=False):
        times = series[cost.backend]
        median = np.array([time.median for time in times])
        below = median - [time.lower_quartile for time in times]
        above = [time.upper_quartile for time in times] - median
        name = cost.backend if times[0].unit == "step" else f"{cost.backend}: a whole fit"
        ax.errorbar(rows, median, [below, above], fmt=marker, color=colour, markersize=6, capsize=3, label=name)
        ax.plot(n, cost.overhead + cost.per_row * n, color=colour, linewidth=1.2, alpha=0.7)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rows n (count)")
    ax.set_ylabel("time a step (s)")
    ax.set_title("Dots: median and quartiles. Lines: overhead + cost a row", loc="left", fontsize="medium")
    ax.grid(alpha=0.3)
    ax.legend()
    write_picture(file, figure)
