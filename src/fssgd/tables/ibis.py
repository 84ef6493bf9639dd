"""Reader of ibis tables: a SQL engine computes the sums, and no rows leave it.

A pass is three kinds of query: the counts and ranges of the columns, the weighted means, and the sums of centred
products ``sum_i s_i (a_i - mean_a)(b_i - mean_b)``, in tiles of as many columns as an engine takes at once. The error
that the rounding of the means causes is summed with the products and corrected for. Columns and weights are divided by
powers of two that bring them into [-2, 2], and values below 1e-60 of that are replaced by zero, so that no product
leaves the range of float64: PostgreSQL raises an error on overflow and on underflow alike.
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
from fssgd.tables._engine_columns import refuse_existing, sum_pairwise
from fssgd.tables._pass_state import INFINITE, MISSING, NEGATIVE, PassState, moments_of_state, raise_faults
from fssgd.tables._progress import ProgressBar

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

COLUMNS_PER_QUERY = 400  # with three results each: PostgreSQL returns no more than 1,664
TILE_COLUMNS = 22  # a side; DuckDB takes as long at 12 to 30, and a third longer at 8 or 60 (measured)
MIN_SCALED_VALUE = 1e-60
LARGEST_FLOAT = sys.float_info.max
MORE_THAN_ALL_ROWS = 2**62


@dataclass
class _ColumnRanges:
    """Number of rows, and for each column the number of finite values and their minimum and maximum."""

    rows: int
    finite: Counts
    low: Array
    high: Array


def read_ibis(table: Any, spec: TableSpec, progress: bool | None) -> Moments:
    """Compute the moments of an ibis table, view, join or other table expression."""
    where, columns = _described(table)
    spec = spec.choose(columns, where)
    if spec.accurate:
        raise ValueError(
            f"accurate=True needs the rows themselves, and the engine of {where} returns only sums: leave it out, or "
            "fetch the rows from the engine by passing table.to_pyarrow_batches() in place of the table."
        )
    engine = _engine(table, where)
    rows = table.select(**{f"c{j}": _as_float64(table[name]) for j, name in enumerate(spec.columns)})
    ranges, state = _column_ranges(rows), PassState.start(len(spec.columns))
    state.rows = ranges.rows
    # Most tables have neither missing nor infinite values, and need none of these queries.
    if (ranges.finite < ranges.rows).any():
        infinite = _count_infinite(engine, rows)
        missing = ranges.rows - ranges.finite - infinite
        state.faults[INFINITE] = infinite
        if spec.on_missing == "raise":
            state.faults[MISSING] = missing
        raise_faults(state, spec, where)
        rows = rows.filter([rows[name].abs() <= LARGEST_FLOAT for name in rows.columns])
        ranges = _column_ranges(rows)
        state.missing, state.dropped = missing, state.rows - ranges.rows
    if spec.weight is not None and ranges.low[-1] <= 0:
        state.faults[NEGATIVE, -1] = rows.filter(rows[-1] < 0).count().to_pyarrow().as_py()
        raise_faults(state, spec, where)
        rows = rows.filter(rows[-1] > 0)
        ranges = _column_ranges(rows)
    if ranges.rows:
        state.sums = _Summation(engine, rows, ranges, spec.weight is not None, where).sums(progress)
    return moments_of_state(state, spec, where, where)


def predict_ibis(table: Any, features: Sequence[str], coef: Array, intercept: Array, predictions: Sequence[str]) -> Any:
    """Add columns of ``features @ coef.T + intercept`` to a table, which its engine computes.

    Parameters
    ----------
    table : ibis.Table
        Table with the columns of the features.
    features : sequence of str
        Columns of the features, which must be numeric.
    coef : ndarray of shape (n_outputs, n_features)
        Coefficients.
    intercept : ndarray of shape (n_outputs,)
        Intercepts.
    predictions : sequence of str
        Names of the columns to add, which the table must not have.

    Returns
    -------
    ibis.Table
    """
    where, columns = _described(table)
    TableSpec(target=(), features=tuple(features)).check(columns, where)
    refuse_existing(predictions, table.columns, where)
    values = [_as_float64(table[name]) for name in features]
    return table.mutate(
        **{
            name: sum_pairwise([float(b), *(value * float(c) for value, c in zip(values, row, strict=True))])
            for name, row, b in zip(predictions, coef, intercept, strict=True)
        }
    )


class _Summation:
    """Queries for the sums of rows that are finite and of positive weight; the weight, if any, is the last column."""

    def __init__(self, engine: Any, rows: Any, ranges: _ColumnRanges, weighted: bool, where: str) -> None:
        self._engine, self._ranges, self._where = engine, ranges, where
        self._exponents = np.frexp(np.maximum(abs(ranges.low), abs(ranges.high)))[1] - 1
        units = np.ldexp(1.0, self._exponents)
        scaled = {
            name: (rows[name].abs() < float(MIN_SCALED_VALUE * unit)).ifelse(0.0, rows[name] / float(unit))
            for name, unit in zip(rows.columns, units, strict=True)
        }
        self._names = list(rows.columns)
        self._weight = self._names.pop() if weighted else None
        self._scaled = rows.select(**scaled)

    def sums(self, progress: bool | None) -> Sums:
        """Run the queries and return the sums."""
        ranges, d = self._ranges, len(self._names)
        starts = range(0, d, TILE_COLUMNS)
        tiles = [(i, j) for i in starts for j in starts if i <= j]
        scatter, residual_sum = np.empty((d, d)), np.empty(d)
        with closing(ProgressBar(progress, ranges.rows * (len(tiles) + 1))) as bar:
            total, mean = self._means()
            for done, (i, j) in enumerate(tiles, start=1):
                bar.update(ranges.rows * done)
                left, right = slice(i, i + TILE_COLUMNS), slice(j, j + TILE_COLUMNS)
                scatter[left, right], residual_sum[left] = self._products(left, right, total, mean)
                scatter[right, left] = scatter[left, right].T
        scatter -= np.outer(residual_sum, residual_sum) / total
        self._check_ranges(mean + residual_sum / total, scatter.diagonal() / total)
        exponents, weight_exponent = self._exponents[:d], 0 if self._weight is None else self._exponents[-1]
        # For a constant column the range gives the exact mean, and rounding must not give it a variance.
        constant = ranges.low[:d] == ranges.high[:d]
        with np.errstate(over="ignore", under="ignore"):
            scatter = np.ldexp(scatter, exponents[:, None] + exponents + weight_exponent)
            mean = np.where(constant, ranges.low[:d], np.ldexp(mean + residual_sum / total, exponents))
            weight = float(np.ldexp(total, weight_exponent))
        scatter[constant] = scatter[:, constant] = 0.0
        return Sums(ranges.rows, weight, mean, scatter, constant)

    def _means(self) -> tuple[float, Array]:
        """Return the sum of the weights and the means, both in the scaled units."""
        table, means = self._scaled, np.empty(len(self._names))
        total = float(self._ranges.rows)
        weight = None if self._weight is None else table[self._weight]
        for part in _parts(self._names):
            sums = {name: (table[name] if weight is None else table[name] * weight).sum() for name in self._names[part]}
            found = _fetched(table, rows=table.count(), **sums, **({} if weight is None else {"weight": weight.sum()}))
            self._check(found["rows"] == self._ranges.rows)
            total = found.get("weight", total)
            means[part] = np.array([found[name] for name in self._names[part]]) / total
        return total, means

    def _products(self, left: slice, right: slice, total: float, mean: Array) -> tuple[Array, Array]:
        """Return the sums of products of the centred columns ``left`` and ``right``, and the sums of ``left``."""
        rows, columns = self._names[left], self._names[right]
        table, means = self._scaled, dict(zip(self._names, mean.tolist(), strict=True))
        centred = {name: table[name] - means[name] for name in (*rows, *columns)}
        if self._weight is not None:
            sqrt_weight = table[self._weight].sqrt()
            centred = {name: value * sqrt_weight for name, value in centred.items()} | {"sqrt_weight": sqrt_weight}
        table = table.select(**centred)
        # PostgreSQL inlines the centred columns and computes them again for each sum, which took 16 times as long
        # (measured); it does not inline a query with a LIMIT.
        if self._engine.name == "postgres":
            table = table.limit(MORE_THAN_ALL_ROWS)
        sqrt_weight = None if self._weight is None else table["sqrt_weight"]
        weighted = {name: table[name] if sqrt_weight is None else table[name] * sqrt_weight for name in rows}
        residuals = {f"residual_{name}": value.sum() for name, value in weighted.items()}
        pairs = [(a, b) for a in rows for b in columns if left != right or rows.index(a) <= columns.index(b)]
        products = {f"{a}_{b}": (table[a] * table[b]).sum() for a, b in pairs}
        weights = {} if sqrt_weight is None else {"weight": (sqrt_weight * sqrt_weight).sum()}
        found = _fetched(table, rows=table.count(), **weights, **residuals, **products)
        self._check(found["rows"] == self._ranges.rows)
        residual_sum = np.array([found[f"residual_{name}"] for name in rows])
        # As many rows may still be other rows, whose weights or means differ by more than rounding.
        rounding = 8 * (self._ranges.rows + 8) * EPS * total
        self._check(abs(found.get("weight", total) - total) <= rounding and bool((abs(residual_sum) <= rounding).all()))
        value = found | {f"{b}_{a}": found[f"{a}_{b}"] for a, b in pairs}
        return np.array([[value[f"{a}_{b}"] for b in columns] for a in rows]), residual_sum

    def _check_ranges(self, mean: Array, variance: Array) -> None:
        """Raise if means or variances contradict the ranges of the columns, as other rows have been read for these."""
        rounding = 8 * (self._ranges.rows + 8) * EPS
        exponents = -self._exponents[: len(mean)]
        low, high = (np.ldexp(bound[: len(mean)], exponents) for bound in (self._ranges.low, self._ranges.high))
        self._check(bool(((mean >= low - 2 * rounding) & (mean <= high + 2 * rounding)).all()))
        self._check(bool((variance <= ((high - low) ** 2 + rounding**2) * (1 + rounding)).all()))

    def _check(self, unchanged: bool) -> None:
        if not unchanged:
            raise ValueError(
                f"{capitalized(self._where)} changed while it was read, between two queries: read it when "
                "nothing writes to it, or read a copy (table.cache())."
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
    # PostgreSQL can cast a boolean to a 4-byte integer only.
    return (column.cast("int32") if column.type().is_boolean() else column).cast("float64")


def _fetched(table: Any, **sums: Any) -> dict[str, Any]:
    """Return the values of some aggregates by name; a sum over no rows, which SQL makes null, is 0."""
    row = table.aggregate(**sums).to_pyarrow().to_pylist()[0]
    return {name: 0 if value is None else value for name, value in row.items()}


def _parts(names: Sequence[str]) -> Iterator[slice]:
    return (slice(start, start + COLUMNS_PER_QUERY) for start in range(0, len(names), COLUMNS_PER_QUERY))


def _column_ranges(rows: Any) -> _ColumnRanges:
    found: dict[str, Any] = {}
    for part in _parts(rows.columns):
        names = rows.columns[part]
        # The comparison is false for null, and for NaN in engines that order it last as in those that do not.
        aggregates = {f"finite_{name}": (rows[name].abs() <= LARGEST_FLOAT).sum() for name in names}
        aggregates |= {f"low_{name}": rows[name].min() for name in names}
        aggregates |= {f"high_{name}": rows[name].max() for name in names}
        found |= _fetched(rows, rows=rows.count(), **aggregates)
    finite, low, high = ([found[f"{kind}_{name}"] for name in rows.columns] for kind in ("finite", "low", "high"))
    return _ColumnRanges(
        found["rows"], np.array(finite, np.int64), np.array(low, np.float64), np.array(high, np.float64)
    )


def _count_infinite(engine: Any, rows: Any) -> Counts:
    from ibis.expr.operations import IsNan

    # Some engines order NaN above all numbers, and it would be counted here; those without isnan have no NaN.
    counts: list[int] = []
    for part in _parts(rows.columns):
        large = {name: rows[name].abs() > LARGEST_FLOAT for name in rows.columns[part]}
        if engine.has_operation(IsNan):
            large = {name: value & ~rows[name].isnan() for name, value in large.items()}
        counts += _fetched(rows, **{name: value.sum() for name, value in large.items()}).values()
    return np.array(counts, np.int64)
