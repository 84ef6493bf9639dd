"""The time of one descent, with a progress bar on stderr while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from fssgd._estimators.gradient_descent import LinearRegressorGD
from fssgd.backends import Backend, get_backend
from fssgd.backends._problem import Monitor, Problem, Solution
from fssgd.cli._console import working
from fssgd.cli._experiment.question import STEPS_A_REPORT, Array, question_loop

MOST_REPORTS = 100
AGAIN = 1.5  # seconds a first run may take and be followed by a second
Report = Callable[[int], bool]
"""Is told the number of steps taken so far, and returns whether to stop there."""


class Iterate(NamedTuple):
    """Where a descent ended, in the user's units."""

    coef: float
    intercept: float
    loss: float
    n_iter: int


Descend = Callable[[int, Report], Iterate]
"""Takes a number of steps, and whom to report to up to a hundred times."""


class Timing(NamedTuple):
    """What a descent found and took."""

    found: Iterate
    seconds: float  # of the fastest run
    startup_seconds: float  # of a first call up to its first report, with what it imports, traces and compiles


def backend_descent(backend: str, x: Array, y: Array, learning_rate: float, standardize: bool) -> Descend:
    """Descend by a backend."""

    def descend(n_steps: int, report: Report) -> Iterate:
        watched = _Watched(get_backend(backend), report)
        settings: Any = {"learning_rate": learning_rate, "standardize": standardize, "tol": None}
        model = LinearRegressorGD(max_iter=n_steps, backend=watched, **settings).fit(x[:, None], y)
        return Iterate(float(model.coef_[0]), float(model.intercept_), float(model.loss_), int(model.n_iter_))

    return descend


def loop_descent(x: Array, y: Array, learning_rate: float, standardize: bool) -> Descend:
    """Descend by the question's own loop."""

    def descend(n_steps: int, report: Report) -> Iterate:
        return Iterate(*question_loop(x, y, learning_rate, n_steps, standardize, report))

    return descend


def time_descent(name: str, descend: Descend, n_steps: int, *, budget: float, at_least: float) -> Timing:
    """Time a descent, and again until so much time has been spent.

    Parameters
    ----------
    name : str
        What the bar says.
    descend : callable
    n_steps : int
    budget : float
        Seconds after which a descent is stopped at its next report.
    at_least : float
        Seconds to spend on repetitions.

    Returns
    -------
    Timing
    """
    with working(f"Starting {name}"):
        startup, _ = _run(descend, n_steps, lambda k: True)  # up to the first report, so that all is compiled
    with progress(name, n_steps) as show:
        deadline = time.perf_counter() + budget

        def report(k: int) -> bool:
            show(k)
            return time.perf_counter() > deadline

        seconds, found = _run(descend, n_steps, report)
    runs = [seconds]
    with working(f"Timing {name} again"):
        while sum(runs) < at_least or (len(runs) == 1 and seconds < AGAIN):
            seconds, found = _run(descend, found.n_iter, lambda k: False)
            runs.append(seconds)
    return Timing(found, min(runs), startup)


def _run(descend: Descend, n_steps: int, report: Report) -> tuple[float, Iterate]:
    start = time.perf_counter()
    found = descend(n_steps, report)
    return time.perf_counter() - start, found


@contextmanager
def progress(name: str, n_steps: int) -> Iterator[Callable[[int], None]]:
    """Draw a bar with steps a second, where stderr is a terminal and the descent a long one."""
    if n_steps < 2 * STEPS_A_REPORT or not sys.stderr.isatty():
        yield lambda k: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} steps/s")

    parts = TextColumn(f"{name:16}"), BarColumn(), MofNCompleteColumn(), Speed(), TimeElapsedColumn()
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=n_steps)
        yield lambda k: bar.update(task, completed=k)


class _Watched(Backend):
    """A backend that reports at even distances, however little it has to do."""

    def __init__(self, inner: Backend, report: Report) -> None:
        self.inner, self.report = inner, report
        self.name, self.closed_form = inner.name, inner.closed_form  # type: ignore[misc]

    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        def heard(k: int, theta: Any) -> bool:
            return self.report(k) or monitor(k, theta)

        return self.inner.solve(
            _Divided(**{field.name: getattr(problem, field.name) for field in fields(problem)}), heard
        )


@dataclass(frozen=True, eq=False)
class _Divided(Problem):
    """A problem whose descent is reported on up to a hundred times."""

    def chunk_ends(self) -> Iterator[int]:
        total = int(self.max_iter)
        n_reports = min(MOST_REPORTS, max(1, total // STEPS_A_REPORT))
        return iter(np.linspace(0, total, n_reports + 1)[1:].astype(int).tolist() if total else [])
