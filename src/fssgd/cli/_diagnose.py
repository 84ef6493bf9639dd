"""The command ``fssgd diagnose``."""

from __future__ import annotations

import json
from typing import Any

import typer

import fssgd
from fssgd.cli._console import announce_decomposition, reporting, working
from fssgd.cli._input import read_moments, sources
from fssgd.cli._options import (
    Accurate,
    Alpha,
    Data,
    Features,
    Json,
    LearningRate,
    Missing,
    NoIntercept,
    OnMissing,
    Target,
    Tol,
    Weight,
)
from fssgd.cli._outputs import check_outputs
from fssgd.tables import TableSpec


@reporting
def diagnose(
    data: Data,
    target: Target,
    features: Features = None,
    weight: Weight = None,
    learning_rate: LearningRate = "auto",
    tol: Tol = "1e-8",
    no_intercept: NoIntercept = False,
    alpha: Alpha = 0.0,
    accurate: Accurate = False,
    on_missing: Missing = OnMissing.RAISE,
    as_json: Json = False,
) -> None:
    """Say why gradient descent is slow on DATA.

    DATA are Parquet or CSV files, folders, globs; - for CSV on standard input.

    Example: fssgd diagnose homes.csv --target price
    """
    check_outputs([], data)
    moments = read_moments(sources(data), TableSpec.of(target, features or None, weight, accurate, on_missing))
    announce_decomposition(moments.n_features)
    settings: dict[str, Any] = {"fit_intercept": not no_intercept, "alpha": alpha}
    with working(f"Diagnosing {moments.n_features:,} features"):
        found = fssgd.diagnose(moments, learning_rate=learning_rate, tol=tol, **settings)
    typer.echo(json.dumps(found.to_dict(), indent=1) if as_json else str(found))
