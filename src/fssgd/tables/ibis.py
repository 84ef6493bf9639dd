"""SQL engines, and whatever else ibis speaks: the engine adds up, and nothing but sums leaves it.

A pass is three kinds of query: a survey of counts and extremes, the weighted means, and the sums of centred products
``sum_i s_i (a_i - mean_a)(b_i - mean_b)``, in tiles of as many columns as an engine takes at once. What the rounding of
the means left behind is summed with the products and corrected for. Columns and weights are divided by powers of two
that bring them into [-2, 2], and what is faint beside that is taken for zero, so that no product leaves the range of
float64: PostgreSQL raises an error on overflow and on underflow alike.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import EPS
from fssgd._moments.sums import Sums
from fssgd._moments.table_spec import Column, TableSpec
from fssgd._support.words import capitalized
from fssgd.tables._engine_columns import added_up, refuse_taken
from fssgd.tables._pass_state import INFINITE, MISSING, NEGATIVE, PassState, moments_of_state, raise_faults
from fssgd.tables._progress import ProgressBar

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

SURVEYED = 400  # columns a query, with three results each: PostgreSQL returns no more than 1,664
TILE = 22  # columns a side; DuckDB takes as long at 12 to 30, and a third longer at 8 or 60 (measured)
FAINT = 1e-60
LARGEST = sys.float_info.max
ENDLESS = 2**62


@dataclass
class _Survey:
    """Rows, and what each column is like: how many of its values are finite, and their extremes."""

    rows: int
    finite: Counts
    low: Array
    high: Array


def read_ibis(table: Any, spec: TableSpec, progress: bool | None) -> Moments:
    """Take an ibis table, or what is derived from one, to its moments."""
    where, columns = _described(table)
    spec = spec.choose(columns, where)
    if spec.accurate:
        raise ValueError(
            f"accurate=True needs the rows themselves, and the engine of {where} hands out sums: leave it out, or "
            "let the rows leave the engine, with table.to_pyarrow_batches() in place of the table."
        )
    engine = _engine(table, where)
    rows = table.select(**{f"c{j}": _as_float64(table[name]) for j, name in enumerate(spec.columns)})
    survey, state = _survey(rows), PassState.start(len(spec.columns))
    state.rows = survey.rows
    if (survey.finite < survey.rows).any():
        infinite = _count_infinite(engine, rows)
        missing = survey.rows - survey.finite - infinite
        state.faults[INFINITE] = infinite
        if spec.on_missing == "raise":
            state.faults[MISSING] = missing
        raise_faults(state, spec, where)
        rows = rows.filter([rows[name].abs() <= LARGEST for name in rows.columns])
        survey = _survey(rows)
        state.missing, state.dropped = missing, state.rows - survey.rows
    if spec.weight is not None and survey.low[-1] <= 0:
        state.faults[NEGATIVE, -1] = rows.filter(rows[-1] < 0).count().to_pyarrow().as_py()
        raise_faults(state, spec, where)
        rows = rows.filter(rows[-1] > 0)
        survey = _survey(rows)
    if survey.rows:
        state.sums = _Summation(engine, rows, survey, spec.weight is not None, where).sums(progress)
    return moments_of_state(state, spec, where, where)


def predict_ibis(table: Any, features: Sequence[str], coef: Array, intercept: Array, predictions: Sequence[str]) -> Any:
    """Add columns of ``features @ coef.T + intercept`` to a table, to be computed by its engine.

    Parameters
    ----------
    table : ibis.Table
    features : sequence of str
        Columns of the features, each there and numeric.
    coef : ndarray of shape (n_outputs, n_features)
    intercept : ndarray of shape (n_outputs,)
    predictions : sequence of str
        Names of the columns to add, which the table must not have.

    Returns
    -------
    ibis.Table
    """
    where, columns = _described(table)
    TableSpec(target=(), features=tuple(features)).check(columns, where)
    refuse_taken(predictions, table.columns, where)
    values = [_as_float64(table[name]) for name in features]
    return table.mutate(
        **{
            name: added_up(
                [float(height), *(value * float(slope) for value, slope in zip(values, slopes, strict=True))]
            )
            for name, slopes, height in zip(predictions, coef, intercept, strict=True)
        }
    )


class _Summation:
    """Means and products of rows that are finite and of positive weight; the weight, if any, is their last column."""

    def __init__(self, engine: Any, rows: Any, survey: _Survey, weighted: bool, where: str) -> None:
        self._engine, self._survey, self._where = engine, survey, where
        self._exponents = np.frexp(np.maximum(abs(survey.low), abs(survey.high)))[1] - 1
        units = np.ldexp(1.0, self._exponents)
        scaled = {
            name: (rows[name].abs() < float(FAINT * unit)).ifelse(0.0, rows[name] / float(unit))
            for name, unit in zip(rows.columns, units, strict=True)
        }
        self._names = list(rows.columns)
        self._weight = self._names.pop() if weighted else None
        self._scaled = rows.select(**scaled)

    def sums(self, progress: bool | None) -> Sums:
        """Run the queries; what is known of constant columns is taken from the survey."""
        survey, d = self._survey, len(self._names)
        starts = range(0, d, TILE)
        tiles = [(i, j) for i in starts for j in starts if i <= j]
        scatter, rest = np.empty((d, d)), np.empty(d)
        with closing(ProgressBar(progress, survey.rows * (len(tiles) + 1))) as bar:
            total, mean = self._means()
            for done, (i, j) in enumerate(tiles, start=1):
                bar.update(survey.rows * done)
                one, two = slice(i, i + TILE), slice(j, j + TILE)
                scatter[one, two], rest[one] = self._products(one, two, total, mean)
                scatter[two, one] = scatter[one, two].T
        scatter -= np.outer(rest, rest) / total
        self._check_extremes(mean + rest / total, scatter.diagonal() / total)
        exponents, of_weight = self._exponents[:d], 0 if self._weight is None else self._exponents[-1]
        constant = survey.low[:d] == survey.high[:d]
        with np.errstate(over="ignore", under="ignore"):
            scatter = np.ldexp(scatter, exponents[:, None] + exponents + of_weight)
            mean = np.where(constant, survey.low[:d], np.ldexp(mean + rest / total, exponents))
            weight = float(np.ldexp(total, of_weight))
        scatter[constant] = scatter[:, constant] = 0.0
        return Sums(survey.rows, weight, mean, scatter, constant)

    def _means(self) -> tuple[float, Array]:
        """Return the sum of weights and the means, both scaled."""
        table, means = self._scaled, np.empty(len(self._names))
        total = float(self._survey.rows)
        weight = None if self._weight is None else table[self._weight]
        for part in _parts(self._names):
            sums = {name: (table[name] if weight is None else table[name] * weight).sum() for name in self._names[part]}
            found = _fetched(table, rows=table.count(), **sums, **({} if weight is None else {"weight": weight.sum()}))
            self._check(found["rows"] == self._survey.rows)
            total = found.get("weight", total)
            means[part] = np.array([found[name] for name in self._names[part]]) / total
        return total, means

    def _products(self, one: slice, two: slice, total: float, mean: Array) -> tuple[Array, Array]:
        """Return sums of the products of some columns and others, and of the first columns themselves, all centred."""
        rows, columns = self._names[one], self._names[two]
        table, means = self._scaled, dict(zip(self._names, mean.tolist(), strict=True))
        centred = {name: table[name] - means[name] for name in (*rows, *columns)}
        if self._weight is not None:
            root = table[self._weight].sqrt()
            centred = {name: value * root for name, value in centred.items()} | {"root": root}
        table = table.select(**centred)
        # unless kept from it, PostgreSQL computes them again for each sum: 16 times the time
        if self._engine.name == "postgres":
            table = table.limit(ENDLESS)
        root = None if self._weight is None else table["root"]
        rests = {f"rest_{name}": (table[name] if root is None else table[name] * root).sum() for name in rows}
        pairs = [(a, b) for a in rows for b in columns if one != two or rows.index(a) <= columns.index(b)]
        products = {f"{a}_{b}": (table[a] * table[b]).sum() for a, b in pairs}
        weights = {} if root is None else {"weight": (root * root).sum()}
        found = _fetched(table, rows=table.count(), **weights, **rests, **products)
        self._check(found["rows"] == self._survey.rows)
        rest = np.array([found[f"rest_{name}"] for name in rows])
        rounding = 8 * (self._survey.rows + 8) * EPS * total
        self._check(abs(found.get("weight", total) - total) <= rounding and bool((abs(rest) <= rounding).all()))
        value = found | {f"{b}_{a}": found[f"{a}_{b}"] for a, b in pairs}
        return np.array([[value[f"{a}_{b}"] for b in columns] for a in rows]), rest

    def _check_extremes(self, mean: Array, variance: Array) -> None:
        """Means and variances that the extremes of the survey do not allow are of rows that came after it."""
        rounding = 8 * (self._survey.rows + 8) * EPS
        exponents = -self._exponents[: len(mean)]
        low, high = (np.ldexp(bound[: len(mean)], exponents) for bound in (self._survey.low, self._survey.high))
        self._check(bool(((mean >= low - 2 * rounding) & (mean <= high + 2 * rounding)).all()))
        self._check(bool((variance <= ((high - low) ** 2 + rounding**2) * (1 + rounding)).all()))

    def _check(self, unchanged: bool) -> None:
        if not unchanged:
            raise ValueError(
                f"{capitalized(self._where)} changed while it was read, between one query and the next: read it when "
                "nothing writes to it, or a copy (table.cache())."
            )


def _described(table: Any) -> tuple[str, list[Column]]:
    import ibis

    if not isinstance(table, ibis.Table):
        raise TypeError(f"An ibis {type(table).__name__} is not a table: pass a Table.")
    columns = [
        Column(name, str(kind), bool(kind.is_numeric() or kind.is_boolean())) for name, kind in table.schema().items()
    ]
    name = getattr(table.op(), "name", None)
    return "the ibis table" if name is None else f"the ibis table {name!r}", columns


def _engine(table: Any, where: str) -> Any:
    import ibis
    from ibis.expr.operations import UnboundTable

    if table.op().find(UnboundTable):
        raise ValueError(
            f"{capitalized(where)} is not bound to an engine: make it from a connection, such as "
            "ibis.duckdb.connect(path).table(name)."
        )
    return ibis.get_backend(table)


def _as_float64(column: Any) -> Any:
    # PostgreSQL casts a boolean to a 4-byte integer and to no other number
    return (column.cast("int32") if column.type().is_boolean() else column).cast("float64")


def _fetched(table: Any, **sums: Any) -> dict[str, Any]:
    """Return the one row of aggregates; a sum over no rows is 0."""
    row = table.aggregate(**sums).to_pyarrow().to_pylist()[0]
    return {name: 0 if value is None else value for name, value in row.items()}


def _parts(names: Sequence[str]) -> Iterator[slice]:
    return (slice(start, start + SURVEYED) for start in range(0, len(names), SURVEYED))


def _survey(rows: Any) -> _Survey:
    found: dict[str, Any] = {}
    for part in _parts(rows.columns):
        names = rows.columns[part]
        # false for null, and for NaN, which engines order last or not at all
        asked = {f"finite_{name}": (rows[name].abs() <= LARGEST).sum() for name in names}
        asked |= {f"low_{name}": rows[name].min() for name in names}
        asked |= {f"high_{name}": rows[name].max() for name in names}
        found |= _fetched(rows, rows=rows.count(), **asked)
    finite, low, high = ([found[f"{kind}_{name}"] for name in rows.columns] for kind in ("finite", "low", "high"))
    return _Survey(found["rows"], np.array(finite, np.int64), np.array(low, np.float64), np.array(high, np.float64))


def _count_infinite(engine: Any, rows: Any) -> Counts:
    from ibis.expr.operations import IsNan

    counts: list[int] = []
    for part in _parts(rows.columns):
        large = {name: rows[name].abs() > LARGEST for name in rows.columns[part]}
        if engine.has_operation(IsNan):
            large = {name: value & ~rows[name].isnan() for name, value in large.items()}
        counts += _fetched(rows, **{name: value.sum() for name, value in large.items()}).values()
    return np.array(counts, np.int64)
