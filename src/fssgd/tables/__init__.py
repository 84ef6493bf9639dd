"""Moments of tables: files, frames and whatever else hands out rows, one file per kind of table.

To add a kind, write a function that takes a table to its moments and register it for the module in
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

One whose table can add up sums by itself (a SQL engine, a cluster) returns the
:class:`~fssgd.Moments` it got from there, with ``feature_names`` of ``spec.features``;
``tables/ibis.py`` is one to follow. It can have a second function, ``predict`` of
:func:`register_table`, that adds predictions to such a table where it is.
"""

from fssgd._moments.table_registry import read_table, register_table
from fssgd._moments.table_spec import Column, TableSpec
from fssgd.tables._row_pass import TablePass

__all__ = ["Column", "TablePass", "TableSpec", "read_table", "register_table"]
