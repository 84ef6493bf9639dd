"""How the cost of a fit grows with rows, features and steps.

    python benchmarks/growth.py [--rounds 5]

Every point is the median over rounds in which all methods take turns. Writes docs/results/growth.json and growth.png.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

from measure import RESULTS, SLOWING, machine, save

for name in SLOWING:
    os.environ.pop(name, None)

import matplotlib  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402

from fssgd import LinearRegressorGD  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {
    "closed form": "#0072B2",
    "stepping in NumPy": "#D55E00",
    "LinearRegression": "#009E73",
    "X.T @ X": "#999999",
}
SIZES = {
    "rows": [10**3, 10**4, 10**5, 10**6],
    "features": [1, 10, 30, 100, 300, 1000],
    "steps": [1, 10, 100, 1000, 10**4, 10**6, 10**8],
}
TITLES = {
    "rows": "20 features, 100 steps",
    "features": "20,000 rows, 100 steps",
    "steps": "20,000 rows, 20 features",
}


def problem(rows: int, features: int) -> tuple[Any, Any]:
    """Return normal features and a noisy linear target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    return X, X @ rng.normal(size=features) + rng.normal(size=rows)


def contenders(axis: str, size: int) -> dict[str, Callable[[], Any]]:
    """Return what is timed at one size."""
    rows, features, steps = {"rows": (size, 20, 100), "features": (20_000, size, 100), "steps": (20_000, 20, size)}[
        axis
    ]
    X, y = problem(rows, features)
    settings: dict[str, Any] = {"max_iter": steps, "tol": None}
    fits: dict[str, Callable[[], Any]] = {
        "closed form": lambda: LinearRegressorGD(backend="spectral", **settings).fit(X, y)
    }
    if axis != "steps":
        fits["LinearRegression"] = lambda: LinearRegression().fit(X, y)
        fits["X.T @ X"] = lambda: X.T @ X
    if rows * features * steps <= 4 * 10**9:
        fits["stepping in NumPy"] = lambda: LinearRegressorGD(backend="numpy", **settings).fit(X, y)
    return fits


def measured(axis: str, rounds: int) -> dict[str, list[tuple[int, float]]]:
    """Return (size, median seconds) of every method along one axis."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for size in SIZES[axis]:
        fits = contenders(axis, size)
        seconds: dict[str, list[float]] = {name: [] for name in fits}
        for turn in range(rounds + 1):
            for name, fit in fits.items():
                begun = time.perf_counter()
                fit()
                if turn:
                    seconds[name].append(time.perf_counter() - begun)
        for name, values in seconds.items():
            curves.setdefault(name, []).append((size, float(np.median(values))))
        print(axis, size, {name: f"{curves[name][-1][1]:.2g} s" for name in fits}, flush=True)
    return curves


def main() -> None:
    """Measure, save, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    curves = {axis: measured(axis, rounds) for axis in SIZES}
    save("growth", {"machine": machine("numpy", "scikit-learn", "fssgd"), "seconds": curves})
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for ax, (axis, lines) in zip(axes, curves.items(), strict=True):
        for name, points in lines.items():
            ax.loglog(*zip(*points, strict=True), "o-", color=COLOURS[name], label=name, markersize=4)
        ax.set(xlabel=f"number of {axis}", title=TITLES[axis])
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("time of a fit (s)")
    axes[0].legend(frameon=False)
    figure.savefig(RESULTS / "growth.png", dpi=150)


if __name__ == "__main__":
    main()
