"""Reader of Spark DataFrames: the executors sum their partitions, and only sums are sent.

A partition of any size becomes one row that holds its sums, of about 8 d^2 bytes for d columns. Spark keeps
these rows while they are merged, as many at a time as ``MERGED_BYTES`` allows, until there are few enough
for the driver. Thus n rows in m partitions take O(n d^2) work, spread over the executors, and O(m d^2)
traffic; the driver receives only the input of the last merge. The executors must be able to import fssgd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments import Moments
from fssgd._moments.moments_file import moments_fields, sums_of_fields
from fssgd._moments.table_spec import Column, TableSpec
from fssgd._support.words import capitalized, join_names
from fssgd.tables._engine_columns import refuse_existing, sum_pairwise
from fssgd.tables._pass_state import PassState, merge_states, moments_of_state
from fssgd.tables._row_pass import TablePass
from fssgd.tables.arrow import array_of

WHERE = "the Spark DataFrame"
SCHEMA = "part int, sums binary"
MERGED_BYTES, MAX_MERGED = 1 << 26, 64

Lengths = Sequence[int | None]


def read_spark(table: Any, spec: TableSpec, progress: bool | None) -> Moments:
    """Compute the moments of a Spark DataFrame.

    A column of vectors (of ``pyspark.ml``) gives one feature for each element: ``name_0``, ``name_1`` and so on.
    Such columns are features if they are named, or if no other column is numeric.
    """
    from pyspark.sql import DataFrame

    if not isinstance(table, DataFrame):
        raise TypeError(f"A pyspark {type(table).__name__} is not a table: pass a pyspark.sql.DataFrame.")
    if progress:
        raise ValueError(
            "progress=True is for passes in this process: watch Spark in its own user interface, or with "
            "spark.ui.showConsoleProgress."
        )
    spec = spec.choose(_columns(table.schema, spec), WHERE)
    names, (chosen, lengths) = spec.columns, _select(table, spec)
    spec = _with_elements(spec, lengths)
    parts = chosen.mapInArrow(partial(sum_partition, spec=spec, lengths=lengths), SCHEMA).persist()
    try:
        merged, count = parts, parts.count()
        at_once = min(max(2, MERGED_BYTES // (8 * len(spec.columns) ** 2)), MAX_MERGED)
        while count > at_once:
            count = -(-count // at_once)
            # Neighbours are merged in order, so that the same partitions always give bitwise the same moments.
            neighbours = (merged["part"] / at_once).cast("int")
            merged = merged.repartition(count, neighbours).sortWithinPartitions("part")
            merged = merged.mapInArrow(merge_partition, SCHEMA)
        rows = sorted(merged.collect())
    finally:
        parts.unpersist()
    none = SparkPart(PassState.start(len(spec.columns)), _bounds(lengths))
    total = reduce(merge_parts, (SparkPart.from_bytes(row["sums"]) for row in rows), none)
    for name, length, shortest, longest in zip(names, lengths, *total.bounds.tolist(), strict=True):
        if length is not None and shortest < longest:
            raise ValueError(
                f"Column {name!r} of {WHERE} holds vectors of {shortest} to {longest} elements: all of a column must "
                "have the same length."
            )
    return moments_of_state(total.state, spec, WHERE, WHERE)


@dataclass(frozen=True)
class SparkPart:
    """Sums and counts of some partitions.

    Parameters
    ----------
    state : PassState
        State of the pass over them.
    bounds : ndarray of shape (2, n_columns) of int
        Length of the shortest and longest vector in each column, 0 for columns of numbers.
    """

    state: PassState
    bounds: npt.NDArray[np.int64]

    def to_bytes(self) -> bytes:
        """Return the content of an ``.npz`` file, which holds numbers and never a pickle."""
        state = self.state
        fields: dict[str, Any] = {"bounds": self.bounds, "missing": state.missing, "faults": state.faults}
        fields["counts"] = np.array([state.rows, state.dropped])
        if state.sums is not None:
            fields |= moments_fields(state.sums, 0, None)
        buffer = BytesIO()
        np.savez(buffer, **fields)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> SparkPart:
        """Return the inverse of :meth:`to_bytes`."""
        with np.load(BytesIO(data), allow_pickle=False) as archive:
            fields = {name: archive[name] for name in archive.files}
        sums, (rows, dropped) = sums_of_fields(fields) if "mean" in fields else None, fields["counts"].tolist()
        return cls(PassState(fields["missing"], fields["faults"], sums, rows=rows, dropped=dropped), fields["bounds"])


def merge_parts(a: SparkPart, b: SparkPart) -> SparkPart:
    """Return the sums and counts of the partitions of both."""
    bounds = np.minimum(a.bounds[0], b.bounds[0]), np.maximum(a.bounds[1], b.bounds[1])
    return SparkPart(merge_states(a.state, b.state), np.stack(bounds))


def sum_partition(batches: Iterable[Any], spec: TableSpec, lengths: Lengths) -> Iterator[Any]:
    """Yield one row with the sums of a partition, or none if it has no rows; runs on an executor."""
    bounds = _bounds(lengths)
    with TablePass(spec, WHERE, progress=False) as rows:
        for batch in batches:
            found = np.array([_bounds_of(*one) for one in zip(batch.columns, lengths, strict=True)]).T
            bounds[0], bounds[1] = np.minimum(bounds[0], found[0]), np.maximum(bounds[1], found[1])
            # Vectors of two lengths end in an error, which read_spark raises with the bounds of all partitions.
            if (bounds[0] == bounds[1]).all():
                arrays = (_arrays(*one) for one in zip(batch.columns, lengths, strict=True))
                rows.add([array for several in arrays for array in several])
        state = rows.finish()
    if state.rows or (bounds[0] < bounds[1]).any():
        yield _row(SparkPart(state, bounds))


def merge_partition(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the merged row of several that :func:`sum_partition` has made; runs on an executor."""
    parts = (SparkPart.from_bytes(value.as_py()) for batch in batches for value in batch.column("sums"))
    total = next(parts, None)
    if total is not None:
        yield _row(reduce(merge_parts, parts, total))


def _row(part: SparkPart) -> Any:
    import pyarrow as pa
    from pyspark import TaskContext

    task: Any = TaskContext.get()
    return pa.record_batch(
        {"part": pa.array([task.partitionId()], pa.int32()), "sums": pa.array([part.to_bytes()], pa.binary())}
    )


def _columns(schema: Any, spec: TableSpec) -> list[Column]:
    from pyspark.sql.types import BooleanType, NumericType

    numeric = {field.name for field in schema if isinstance(field.dataType, (NumericType, BooleanType))}
    others = {field.name for field in schema} - {*spec.target, spec.weight}
    vectors = {field.name for field in schema if _is_vector(field)}
    if spec.features is not None:
        numeric |= vectors & set(spec.features)
    elif not numeric & others:
        numeric |= vectors & others
    return [Column(field.name, field.dataType.simpleString(), field.name in numeric) for field in schema]


def _is_vector(field: Any) -> bool:
    return bool(field.dataType.simpleString() == "vector")


def _select(table: Any, spec: TableSpec) -> tuple[Any, list[int | None]]:
    """Return the columns in order, vectors as arrays, and the length of the vectors in each; None for numbers.

    As in Spark ML, the length is taken from the metadata of the column, or else from the first vector.
    """
    from pyspark.sql import functions as F

    fields, places = table.schema.fields, {name: place for place, name in enumerate(table.columns)}
    # By position: names may hold dots and backticks, which have a meaning in F.col, or differ only in case.
    table = table.toDF(*(f"c{place}" for place in range(len(fields))))
    columns: list[Any] = []
    lengths: list[int | None] = []
    for name in spec.columns:
        field, column = fields[places[name]], F.col(f"c{places[name]}")
        if _is_vector(field):
            array = _array(column)
            length = field.metadata.get("ml_attr", {}).get("num_attrs")
            if length is None:  # unknown without an ML pipeline stage that has made the column
                first = table.select(F.size(array)).where(column.isNotNull()).head(1)
                length = first[0][0] if first else 1
            if length == 0:
                raise ValueError(
                    f"Column {name!r} of {WHERE} holds vectors without elements: leave it out of features."
                )
            column = array.alias(f"c{places[name]}")
        columns.append(column)
        lengths.append(length if _is_vector(field) else None)
    return table.select(*columns), lengths


def _array(column: Any) -> Any:
    """Return a column of vectors as one of arrays; vector_to_array alone fails on null."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions as F

    return F.when(column.isNotNull(), vector_to_array(column))


def _with_elements(spec: TableSpec, lengths: Lengths) -> TableSpec:
    """Return the spec with a feature for each element of the vectors."""
    features: list[str] = []
    for name, length in zip(spec.features or (), lengths, strict=False):
        features += [name] if length is None else [f"{name}_{k}" for k in range(length)]
    spec = replace(spec, features=tuple(features))
    twice = [name for name, count in Counter(spec.columns).items() if count > 1]
    if twice:
        raise ValueError(
            f"An element of the vectors of {WHERE} would have the name {join_names(twice)} of another column: "
            "rename one of them."
        )
    return spec


def _bounds(lengths: Lengths) -> npt.NDArray[np.int64]:
    return np.array([[length or 0 for length in lengths]] * 2, dtype=np.int64)


def _bounds_of(column: Any, length: int | None) -> tuple[int, int]:
    import pyarrow.compute as pc

    if length is None:
        return 0, 0
    found = pc.min_max(pc.list_value_length(column)).as_py()
    return (length, length) if found["min"] is None else (found["min"], found["max"])


def _arrays(column: Any, length: int | None) -> list[npt.NDArray[Any]]:
    if length is None:
        return [array_of(column)]
    rows = np.full((len(column), length), np.nan)
    rows[column.is_valid().to_numpy(zero_copy_only=False)] = column.flatten().to_numpy().reshape(-1, length)
    return list(np.ascontiguousarray(rows.T))


def predict_spark(table: Any, features: Sequence[str], coef: Any, intercept: Any, predictions: Sequence[str]) -> Any:
    """Add columns of ``features @ coef.T + intercept``, as expressions that Spark computes in the JVM.

    Parameters
    ----------
    table : pyspark.sql.DataFrame
        Table with the columns of the features.
    features : sequence of str
        Columns of the features; elements of a column of vectors have the names that :func:`read_spark` gives them.
    coef : ndarray of shape (n_outputs, n_features)
        Coefficients.
    intercept : ndarray of shape (n_outputs,)
        Intercepts.
    predictions : sequence of str
        Names of the columns to add, which the table must not have.

    Returns
    -------
    pyspark.sql.DataFrame
        The table with additional columns of doubles, null where a feature is null.
    """
    from pyspark.sql import functions as F

    refuse_existing(predictions, table.columns, WHERE)
    renamed = table.toDF(*(f"c{place}" for place in range(len(table.columns))))
    columns = _features(table, features)
    added = [
        sum_pairwise([F.lit(float(b)), *(F.lit(float(c)) * one for c, one in zip(row, columns, strict=True))]).alias(
            name
        )
        for name, row, b in zip(predictions, coef, intercept, strict=True)
    ]
    return renamed.select("*", *added).toDF(*table.columns, *predictions)


def _features(table: Any, names: Sequence[str]) -> list[Any]:
    """Return the features as expressions of the columns ``c0``, ``c1`` and so on, which :func:`_select` reads by."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType, NumericType

    places = {field.name: (place, field) for place, field in enumerate(table.schema)}
    elements: dict[str, Any] = {}
    for name, (place, field) in places.items():
        if _is_vector(field):
            array = _array(F.col(f"c{place}"))
            count = sum(one.rpartition("_")[0] == name for one in names)
            error = F.raise_error(F.lit(f"Column {name!r} of {WHERE} holds vectors of other than {count} elements."))
            array = F.when(F.size(array) != count, error).otherwise(array)
            elements |= {f"{name}_{k}": array[k] for k in range(count)}
    both = [name for name in names if name in elements and name in places]
    if both:
        raise ValueError(
            f"{capitalized(WHERE)} has a column and an element of a vector called {join_names(both)}: "
            "leave one of them out."
        )
    scalar_names = [name for name in names if name not in elements]
    numeric = {f.name for f in table.schema if isinstance(f.dataType, (NumericType, BooleanType))}
    columns = [Column(f.name, f.dataType.simpleString(), f.name in numeric) for f in table.schema]
    TableSpec(target=(), features=tuple(scalar_names)).check(columns, WHERE)
    return [elements[n] if n in elements else F.col(f"c{places[n][0]}").cast("double") for n in names]
