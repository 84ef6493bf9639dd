"""Parquet files, read without holding more of them than a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fssgd._moments.table_spec import TableSpec


@dataclass
class ParquetSource:
    """One Parquet file."""

    path: str
    fields: list[Any] = field(default_factory=list)
    metadata: Any = None
    rows: int | None = None
    _groups: list[int] = field(default_factory=list)

    def look(self, spec: TableSpec) -> None:
        """Find the columns, and how many rows there are in each row group."""
        import pyarrow.parquet as pq

        found = pq.read_metadata(self.path)
        schema = found.schema.to_arrow_schema()
        self.fields, self.metadata, self.rows = list(schema), schema.metadata, found.num_rows
        self._groups = [found.row_group(j).num_rows for j in range(found.num_row_groups)]

    def batches(self, schema: Any, size: int, skip: int = 0) -> Iterator[Any]:
        """Yield record batches from row ``skip`` on, without reading the row groups before it.

        Not by a scanner, which holds whole row groups, several at once: all of a file where reading is slow.
        """
        import pyarrow.parquet as pq

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
