"""The figures of the experiment: losses, descents, and the time of a step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fssgd._insight.displays import DescentPathDisplay, LossCurveDisplay
from fssgd._insight.displays._common import COLOURS
from fssgd._insight.displays.descent_path import add_colorbar
from fssgd._path.gradient_path import GradientPath
from fssgd.cli._experiment.output import duration, write_picture

DPI = 150
LEVELS = 10.0 ** np.arange(-1.0, 6.1, 0.5)  # of the loss above its minimum, in squared units of y


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that no window knows of; sizes in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"Pictures need matplotlib ({error}): pip install 'fssgd[cli]'.") from error
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def draw_losses(paths: Mapping[str, tuple[GradientPath, int]], file: Path) -> dict[str, Any]:
    """Draw what is still to be gained against the number of steps.

    Parameters
    ----------
    paths : dict
        Title of a descent to its closed form and its last step.
    file : Path
        The PNG to write.

    Returns
    -------
    dict
        Title to what is drawn.
    """
    figure = new_figure(7.0, 4.2)
    ax, drawn = figure.subplots(), {}
    for title, (path, last) in paths.items():
        display = LossCurveDisplay.from_path(path, max_iter=last, excess=True, name=title, ax=ax)
        drawn[title] = {"step": display.steps, "loss": display.loss, "excess_loss": display.excess_loss}
    ax.set_title("What is still to be gained, down to what float64 resolves", loc="left")
    ax.legend(loc="center right")
    ax.grid(alpha=0.3)
    write_picture(file, figure)
    return drawn


def draw_descents(paths: Mapping[str, tuple[GradientPath, int]], file: Path) -> dict[str, Any]:
    """Draw descents side by side on the contours of their loss; see :func:`draw_losses`."""
    figure = new_figure(8.5, 4.2)
    drawn, panels = {}, list(figure.subplots(1, len(paths)))
    for ax, (title, (path, last)) in zip(panels, paths.items(), strict=True):
        display = DescentPathDisplay.from_path(path, max_iter=last, levels=LEVELS, colorbar=False, ax=ax)
        ax.set_title(f"{title}\ncondition number {path.spectrum.condition_number:,.0f}", fontsize="medium")
        iterates = display.iterates
        drawn[title] = {
            "step": display.steps,
            "W": iterates[:, 0],
            "b": iterates[:, 1],
            "minimum": display.minimum,
            "condition_number": path.spectrum.condition_number,
        }
    add_colorbar(display.contour_, panels)
    write_picture(file, figure)
    return drawn


def draw_times(seconds_per_step: Mapping[str, float], file: Path) -> None:
    """Draw the time a step takes, a dot a backend, on a logarithmic axis."""
    figure = new_figure(7.0, 1.0 + 0.42 * len(seconds_per_step))
    ax = figure.subplots()
    seconds = list(seconds_per_step.values())
    ax.plot(seconds, list(seconds_per_step), "o", color=COLOURS[0], markersize=9)
    for row, value in enumerate(seconds):
        ax.annotate(duration(value), (value, row), (9, 0), textcoords="offset points", va="center")
    ax.set_xscale("log")
    ax.set_xlim(min(seconds) / 3, max(seconds) * 10)
    ax.set_ylim(len(seconds) - 0.5, -0.5)
    ax.set_xlabel("time a step (s)")
    ax.set_title("1,000 points, 100,000 steps", loc="left", fontsize="medium")
    ax.grid(alpha=0.3, axis="x")
    ax.spines[["top", "right"]].set_visible(False)
    write_picture(file, figure)
