"""Readers that compute the moments of a table, one file per kind of table.

- ``frames``: pandas and polars DataFrames; the shortest reader, start reading here.
- ``arrow``: tables, record batches and datasets of pyarrow.
- ``files``: Parquet and CSV files, with ``_paths`` (which files are meant), ``_parquet_files``, ``_csv_files`` and
  ``_checkpoint`` (the file from which a pass is resumed).
- ``dask``, ``spark``, ``ibis``: tables that a cluster or a SQL engine sums itself; the latter two also predict,
  with ``_engine_columns``.
- ``_row_pass``: :class:`TablePass`, which checks and sums the rows that a reader streams.
- ``_pass_state``: the state of a pass, which can be merged with that of other rows.
- ``_progress``: the progress bar.
- ``_row_batches``: the rows themselves, for predictions and plots of the command line.

To add a kind, write a function that computes the moments of a table and register it for the module in
which the class of the table is defined; nothing is imported before such a table is passed::

    from fssgd.tables import register_table

    register_table("vaex", "my_package.fssgd:read_vaex", extra="my-package[vaex]")

A function that streams rows leaves the checking and the summing to :class:`TablePass`::

    def read_vaex(table, spec, progress):
        kinds = [Column(n, str(t), t.is_numeric) for n, t in table.schema().items()]
        spec = spec.choose(kinds, "the vaex DataFrame")
        with TablePass(spec, "the vaex DataFrame", progress, total=len(table)) as rows:
            for _, _, arrays in table.to_arrays(list(spec.columns), chunk_size=65_536):
                rows.add(arrays)
        return rows.moments()

A reader of tables that can compute sums themselves (a SQL engine, a cluster) returns
:class:`~fssgd.Moments` of these sums, with ``spec.features`` as ``feature_names``;
``tables/ibis.py`` is an example. It can have a second function, ``predict`` of
:func:`register_table`, that adds predictions to a table without fetching its rows.
"""

from fssgd._moments.table_registry import read_table, register_table
from fssgd._moments.table_spec import Column, TableSpec
from fssgd.tables._row_pass import TablePass

__all__ = ["Column", "TablePass", "TableSpec", "read_table", "register_table"]
