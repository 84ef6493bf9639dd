"""The typer application: the commands, and the options that come before one."""

from __future__ import annotations

from typing import Annotated

import typer

import fssgd
from fssgd.cli._console import reporting
from fssgd.cli._diagnose import diagnose
from fssgd.cli._experiment.bench import bench
from fssgd.cli._experiment.demo import demo
from fssgd.cli._fit import fit
from fssgd.cli._predict import predict

HELP = """Linear regression by gradient descent of a fixed step, from files.

\b
  fssgd demo --quick --out pictures
  fssgd diagnose homes.csv --target price
  fssgd fit homes.csv --target price --save model.json
  fssgd predict model.json new.csv --out predictions.csv
"""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="Watch every backend take the same steps.")(reporting(demo))
app.command(short_help="Time a step against the number of rows.")(reporting(bench))
app.command(short_help="Say why gradient descent is slow on data.")(diagnose)
app.command(short_help="Fit a model to data.")(fit)
app.command(short_help="Predict data by a saved model.")(predict)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fssgd {fssgd.__version__}")
        raise typer.Exit


@app.callback()
def application(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""
