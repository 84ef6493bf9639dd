"""Parquet files, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fssgd._moments.table_spec import TableSpec


@dataclass
class ParquetSource:
    """One Parquet file.

    Parameters
    ----------
    path : str
        Path of the file.
    fields, metadata, rows : list of pyarrow.Field, dict, int
        Columns, schema metadata and number of rows, known after :meth:`read_schema`.
    """

    path: str
    fields: list[Any] = field(default_factory=list)
    metadata: Any = None
    rows: int | None = None
    _groups: list[int] = field(default_factory=list)

    def read_schema(self, spec: TableSpec) -> None:
        """Read the names and types of the columns, and the number of rows in each row group."""
        import pyarrow.parquet as pq

        footer = pq.read_metadata(self.path)
        schema = footer.schema.to_arrow_schema()
        self.fields, self.metadata, self.rows = list(schema), schema.metadata, footer.num_rows
        self._groups = [footer.row_group(j).num_rows for j in range(footer.num_row_groups)]

    def batches(self, schema: Any, size: int, skip: int = 0) -> Iterator[Any]:
        """Yield record batches from row ``skip`` on, without reading the row groups before it."""
        import pyarrow.parquet as pq

        # Not pyarrow.dataset.Scanner: it reads whole row groups ahead, all of a file if the consumer is slow.

        groups = list(range(len(self._groups)))
        while groups and skip >= self._groups[groups[0]]:
            skip -= self._groups[groups.pop(0)]
        with pq.ParquetFile(
            self.path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
        ) as source:
            for batch in source.iter_batches(size, row_groups=groups, columns=schema.names):
                if skip < len(batch):
                    yield batch.slice(skip)
                skip = max(0, skip - len(batch))
