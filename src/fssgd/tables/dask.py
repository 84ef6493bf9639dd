"""Reader of Dask DataFrames: one task for each partition computes its sums, which are merged in a tree."""

from __future__ import annotations

from typing import Any

from fssgd._moments.moments import Moments
from fssgd._moments.table_spec import TableSpec
from fssgd._rows.dask_graph import tree_sum
from fssgd.tables._pass_state import PassState, merge_states, moments_of_state
from fssgd.tables._row_pass import TablePass
from fssgd.tables.frames import add_pandas, pandas_columns

WHERE = "the Dask DataFrame"


def read_dask(table: Any, spec: TableSpec, progress: bool | None) -> Moments:
    """Compute the moments of a Dask DataFrame, on the scheduler that is active."""
    import dask.dataframe as dd

    if not isinstance(table, dd.DataFrame):
        raise TypeError(f"A Dask {type(table).__name__} is not a table: pass a DataFrame.")
    if progress:
        raise ValueError(
            "progress=True is for passes in this process: watch Dask with dask.diagnostics.ProgressBar, or on the "
            "dashboard of its cluster."
        )
    spec = spec.choose(pandas_columns(table.dtypes), WHERE)
    states = table[list(spec.columns)].map_partitions(
        _state, spec, meta=(None, object), enforce_metadata=False, align_dataframes=False
    )
    return moments_of_state(tree_sum(states.to_delayed(), merge_states), spec, WHERE, WHERE)


def _state(table: Any, spec: TableSpec) -> PassState:
    """Return the state of a pass over one partition, a pandas DataFrame."""
    # Not entered as a context: that would limit BLAS in the whole process, in which other partitions are summed too.
    rows = TablePass(spec, WHERE, progress=False)
    add_pandas(rows, table, spec)
    return rows.finish()
