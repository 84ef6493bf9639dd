"""Least squares on Dask arrays: fssgd against dask-ml's LinearRegression with L-BFGS, on the same data in one run.

    pip install 'fssgd[dask]' dask-ml
    python benchmarks/dask_against_dask_ml.py [rows] [columns]

Both fit the limit of the descent, in turn, and the ratio is that of their median times. The error is that of the
predictions, relative to what the best ones miss: 0 is least squares itself.
"""

import statistics
import sys
import time

import dask
import dask.array as da
import numpy as np
from dask_ml.linear_model import LinearRegression

from fssgd import LinearRegressorGD

TARGET = 5.0
ROUNDS = 3


def make(n_rows: int, n_columns: int) -> tuple[da.Array, da.Array]:
    """Return standard normal features and a noisy linear target, in memory, in chunks of 100,000 rows."""
    random = da.random.default_rng(0)
    X = random.normal(size=(n_rows, n_columns), chunks=(100_000, n_columns))
    y = X @ np.linspace(-1.0, 1.0, n_columns) + 3.0 + random.normal(size=n_rows, chunks=100_000)
    return dask.persist(X, y)


def main(n_rows: int = 1_000_000, n_columns: int = 20) -> None:
    """Fit both in turn and print times, errors and their ratio."""
    X, y = make(n_rows, n_columns)
    models = {
        "dask-ml LinearRegression, lbfgs": LinearRegression(solver="lbfgs"),
        "fssgd LinearRegressorGD": LinearRegressorGD(max_iter=np.inf, tol=None),
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(ROUNDS):
        for name, model in models.items():
            start = time.perf_counter()
            model.fit(X, y)
            seconds[name].append(time.perf_counter() - start)
    design = da.hstack([X, da.ones((n_rows, 1), chunks=(X.chunks[0], 1))])
    best = np.linalg.solve(*dask.compute(design.T @ design, design.T @ y))
    residual = da.linalg.norm(y - design @ best)
    print(f"{n_rows} rows, {n_columns} columns, {X.numblocks[0]} partitions")
    for name, model in models.items():
        found = np.append(np.ravel(model.coef_), model.intercept_)
        error = (da.linalg.norm(design @ (found - best)) / residual).compute()
        print(f"{name:35} {statistics.median(seconds[name]):8.3f} s   error {error:.0e}")
    other, ours = (statistics.median(times) for times in seconds.values())
    print(f"fssgd is {other / ours:.1f} times faster (target {TARGET:g})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
