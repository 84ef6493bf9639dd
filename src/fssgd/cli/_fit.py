"""The command ``fssgd fit``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fssgd import LinearRegressorGD, Moments
from fssgd.cli._console import aligned, announce_decomposition, reporting, working
from fssgd.cli._input import read_moments, sources
from fssgd.cli._options import (
    Accurate,
    Alpha,
    Data,
    Features,
    Json,
    LearningRate,
    MaxIter,
    Missing,
    NoIntercept,
    OnMissing,
    Target,
    Tol,
    Weight,
)
from fssgd.cli._outputs import check_outputs
from fssgd.tables import TableSpec
from fssgd.tables._row_batches import load_rows


@reporting
def fit(
    data: Data,
    target: Target,
    features: Features = None,
    weight: Weight = None,
    learning_rate: LearningRate = "auto",
    max_iter: MaxIter = "100000",
    tol: Tol = "1e-8",
    no_standardize: Annotated[
        bool, typer.Option("--no-standardize", help="Descend in the features as they are.")
    ] = False,
    no_intercept: NoIntercept = False,
    alpha: Alpha = 0.0,
    backend: Annotated[str, typer.Option(metavar="NAME", help="spectral streams, others load.")] = "auto",
    accurate: Accurate = False,
    on_missing: Missing = OnMissing.RAISE,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model as JSON.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(metavar="FILE", help="Go on from this .npz after a kill.")] = None,
    checkpoint_every: Annotated[float, typer.Option(metavar="SECONDS", help="Between two checkpoints.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Fit DATA: Parquet or CSV files, folders, globs, or - for standard input.

    Example: fssgd fit homes.csv -t price --save model.json
    """
    check_outputs([("--save", save), ("--checkpoint", checkpoint)], data)
    model = LinearRegressorGD(
        learning_rate=learning_rate,
        max_iter=max_iter,
        tol=tol,
        standardize=not no_standardize,
        fit_intercept=not no_intercept,
        alpha=alpha,
        backend=backend,
    )
    table, spec = sources(data), TableSpec.of(target, features or None, weight, accurate, on_missing)
    if backend in ("auto", "spectral"):
        moments = read_moments(table, spec, checkpoint, checkpoint_every)
        announce_decomposition(moments.n_features)
        with working(f"Fitting {moments.n_features:,} features"):
            model.fit_moments(moments)
    elif checkpoint is None:
        moments = _fit_rows(model, table, spec)
    else:
        raise ValueError(f"--checkpoint is for data that is streamed, and backend {backend!r} loads it: leave one out.")
    if save is not None:
        model.save(save)
    found = _summary(model, moments, target)
    typer.echo(json.dumps(found, indent=1) if as_json else _report(found, save))


def _fit_rows(model: LinearRegressorGD, table: Any, spec: TableSpec) -> Moments:
    """Fit with a backend that steps over rows, which it needs in memory."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's own log would drown what is said here
    rows = load_rows(table, spec)
    with working(f"Descending over {len(rows.y):,} rows, backend {model.backend}"):
        model.fit(rows.X, rows.y, rows.weight)
    return rows.moments


def _summary(model: LinearRegressorGD, moments: Moments, target: list[str]) -> dict[str, Any]:
    coefficients = model.coef_.reshape(len(target), -1)
    variance, level = float(moments.variance_y.sum()), float(moments.mean_y @ moments.mean_y)
    error = model.loss_ - model.alpha * float(np.vdot(model.scaled_coef_, model.scaled_coef_))
    return {
        "target": target,
        "coefficients": {
            name: dict(zip(model.feature_names_in_, row.tolist(), strict=True))
            for name, row in zip(target, coefficients, strict=True)
        },
        "intercept": dict(zip(target, np.atleast_1d(model.intercept_).tolist(), strict=True)),
        "loss": float(model.loss_),
        "r2": _share(error, variance),
        **({} if model.fit_intercept else {"r2_uncentred": _share(error, variance + level)}),
        "n_iter": "inf" if model.n_iter_ == np.inf else int(model.n_iter_),
        "converged": bool(model.converged_),
        "learning_rate": float(model.learning_rate_),
        "backend": model.backend_,
        "n_samples": moments.n_samples,
    }


def _share(error: float, total: float) -> float | None:
    """Share of the total that is explained."""
    return 1.0 - max(error, 0.0) / total if total > 0 else None


def _report(found: dict[str, Any], save: Path | None) -> str:
    targets, names = found["target"], list(found["coefficients"][found["target"][0]])
    rows = [["", *targets]]
    rows += [[name, *(f"{found['coefficients'][one][name]:.8g}" for one in targets)] for name in names]
    rows += [["(intercept)", *(f"{found['intercept'][one]:.8g}" for one in targets)]]
    shares = [
        f"R2        {f'undefined: the target is {one}' if found[key] is None else f'{found[key]:.6g}, {kind}'}"
        for key, kind, one in (("r2", "centred", "constant"), ("r2_uncentred", "uncentred", "0"))
        if key in found
    ]
    steps = found["n_iter"] if found["n_iter"] == "inf" else f"{found['n_iter']:,}"
    lines = [
        aligned(rows),
        "",
        f"Loss      {found['loss']:.6g}",
        *shares,
        f"Steps     {steps} of {found['learning_rate']:.6g}{', converged' if found['converged'] else ''}",
        f"Backend   {found['backend']}",
        f"Rows      {found['n_samples']:,}",
        *([f"Saved to  {save}"] if save else []),
    ]
    return "\n".join(lines)
