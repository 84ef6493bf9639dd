"""Least squares on a Spark DataFrame: fssgd against Spark ML's LinearRegression(solver="normal").

Both read the same Parquet files, which nothing caches, on local[2]; rounds take turns, and the first ones let the JVM
compile what it runs.

    python benchmarks/spark_against_spark_ml.py [rows] [features]
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession

from fssgd import LinearRegressorGD, Moments

FILES, WARM_UP, ROUNDS = 8, 3, 5


def write(folder, n_rows, names):
    """Write the files: features of several scales, and a target that they explain but for noise."""
    rng = np.random.default_rng(0)
    scales, weights = np.logspace(-2, 3, len(names)), rng.normal(size=len(names))
    for k in range(FILES):
        X = rng.normal(size=(n_rows // FILES, len(names)))
        columns = dict(zip(names, (X * scales + 50).T, strict=True)) | {"y": X @ weights + 7 + rng.normal(size=len(X))}
        pq.write_table(pa.table(columns), folder / f"{k}.parquet")


def fit_fssgd(table, names):
    """Return the coefficients."""
    moments = Moments.from_table(table, target="y", features=names)
    return LinearRegressorGD(max_iter=np.inf, tol=None).fit_moments(moments).coef_


def fit_spark_ml(table, names):
    """Return the coefficients."""
    rows = VectorAssembler(inputCols=names, outputCol="x").transform(table)
    return LinearRegression(featuresCol="x", labelCol="y", solver="normal").fit(rows).coefficients.toArray()


def main():
    """Print the seconds of every round, and the ratio of the medians."""
    n_rows, n_features = (int(argument) for argument in (*sys.argv[1:], 2_000_000, 20)[:2])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    names = [f"x{j}" for j in range(n_features)]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n_rows, names)
        table = session.read.parquet(folder)
        seconds, coefs = {fit_fssgd: [], fit_spark_ml: []}, {}
        for number in range(WARM_UP + ROUNDS):
            for fit, times in seconds.items():
                start = time.perf_counter()
                coefs[fit] = fit(table, names)
                times.append(time.perf_counter() - start)
                note = "(warming up)" if number < WARM_UP else ""
                print(f"round {number} {fit.__name__:13} {times[-1]:6.2f} s {note}")
    session.stop()
    ours, theirs = (statistics.median(times[WARM_UP:]) for times in seconds.values())
    difference = np.abs(coefs[fit_fssgd] / coefs[fit_spark_ml] - 1).max()
    print(f"{n_rows} x {n_features}: fssgd {ours:.2f} s, Spark ML {theirs:.2f} s, {theirs / ours:.1f} times faster")
    print(f"largest relative difference of a coefficient: {difference:.1e}")


if __name__ == "__main__":
    main()
