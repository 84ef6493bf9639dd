"""CSV from files and streams, read block by block, with errors that say what to change in the file."""

from __future__ import annotations

import io
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from fssgd._moments.table_spec import TableSpec
from fssgd._support.words import join_names

BLOCK_BYTES, MAX_BLOCK_BYTES = 1 << 20, 1 << 28  # pyarrow needs a whole row in a block, so these grow for a long one
CODECS = (
    (re.compile(rb"\x1f\x8b"), "gzip"),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bz2"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd"),
)
OTHER_FORMATS = (
    (b"PAR1", "a Parquet file: name it as a file that ends in .parquet"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet: unpack it, or export it as CSV"),
    (b"\xfd7zXZ", "compressed by xz: unpack it"),
    (b"\xff\xfe", "in UTF-16: save it in UTF-8"),
    (b"\xfe\xff", "in UTF-16: save it in UTF-8"),
)
ADVICE_ON_ENCODING = "save it in UTF-8, or read it with pandas.read_csv(path, encoding=...) and pass the table."
END_MARK = uuid.uuid4().hex  # occurs in no file
WRONG_VALUE = re.compile(r"In CSV column #(\d+):.*conversion error to \w+: invalid value '(.*)'", re.DOTALL)


class NotNumericError(ValueError):
    """A value of a column is not a number; ``column`` is the name of the column."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class _Stream(io.RawIOBase):
    """A stream whose first bytes have been read already, followed by an extra last row.

    pyarrow reads a quoted cell that is never closed up to the end of the file and reports no error. The extra row has
    too many cells: a reader that does not meet it has lost it, and the rows before it, in such a cell.
    """

    def __init__(self, head: bytes, rest: Any, last_row: bytes) -> None:
        self._head, self._rest, self._last_row, self._last_byte = memoryview(head), rest, last_row, b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        done = 0
        while done < len(buffer) and (part := self._next(len(buffer) - done)):  # pyarrow takes a short read for the end
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def _next(self, size: int) -> Any:
        part = self._head[:size] if self._head else self._rest.read(size)
        self._head = self._head[len(part) :]
        if part:
            self._last_byte = bytes(part[-1:])
        elif self._last_row:
            row = self._last_row if self._last_byte in (b"\n", b"\r") else b"\n" + self._last_row
            part, self._head, self._last_row = row[:size], memoryview(row)[size:], b""
        return part


@dataclass
class CsvSource:
    """One CSV file, or a stream, which is read once.

    Parameters
    ----------
    path : str
        Path of the file, or what to call the stream in messages.
    stream : binary file object, default=None
        Stream to read instead of a file.
    fields, metadata, rows : list of pyarrow.Field, None, None
        Columns, known after :meth:`read_schema`, and what a CSV file does not tell.
    """

    path: str
    stream: Any = None
    fields: list[Any] = field(default_factory=list)
    metadata: Any = None
    rows: int | None = None
    _head: bytes = b""
    _block: int = BLOCK_BYTES
    _source: Any = None

    def read_schema(self, spec: TableSpec) -> None:
        """Read the names of the columns, and guess their types from the first values."""
        import pyarrow as pa
        import pyarrow.csv as csv

        with self._opened() as source:
            head, block = _read(source, 2 * BLOCK_BYTES).lstrip(b"\r\n"), BLOCK_BYTES
            if not head.strip():
                raise ValueError(
                    f"{self.path} could not be read: it is empty, and a header with column names was expected."
                )
            while True:
                reading = csv.ReadOptions(block_size=block)
                parsing = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda _: "skip")
                try:
                    schema = csv.open_csv(io.BytesIO(head + b"\n"), reading, parsing).schema
                    break
                except pa.ArrowInvalid as error:
                    # "Empty CSV file" is the message for a block that ends before the header does
                    is_longer = _is_too_long(error) or "Empty" in str(error)
                    if len(head) < block or block >= MAX_BLOCK_BYTES or not is_longer:
                        raise self._translated(error) from error
                block *= 4
                head += _read(source, 2 * block - len(head))
            # What has been read of a stream cannot be read again.
            if self.stream is not None:
                self._head, self._source = head, source
        self._block = block
        try:
            self.fields = list(schema)
            names = [one.name for one in self.fields]
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not in UTF-8 ({error}): {ADVICE_ON_ENCODING}") from error
        self._refuse_delimiter(names, spec)
        if self.stream is None:
            self._search_first_values([name for name in names if spec.features is None or name in spec.columns])

    def _search_first_values(self, names: list[str]) -> None:
        """Guess the types of columns without a value so far from their first value, however far down it is."""
        import pyarrow as pa

        untyped = {one.name for one in self.fields if pa.types.is_null(one.type) and names.count(one.name) == 1}
        if not untyped:
            return
        first_values: dict[str, str] = {}
        for batch in self.batches(pa.schema([pa.field(name, pa.string()) for name in sorted(untyped)])):
            for name in untyped - set(first_values):
                if len(values := batch.column(name).drop_null()):
                    first_values[name] = values[0].as_py()
            if len(first_values) == len(untyped):
                break
        self.fields = [
            one.with_type(_type_of(first_values[one.name])) if one.name in first_values else one for one in self.fields
        ]

    def batches(self, schema: Any, skip: int = 0) -> Iterator[Any]:
        """Yield record batches of these fields from row ``skip`` on, in longer blocks if a row needs them."""
        import pyarrow as pa

        # pyarrow cannot change the length of blocks midway: for a longer row the file is read again from the beginning,
        # and the rows that have been yielded are left out.
        done, block = 0, self._block
        while True:
            start = max(skip, done)
            try:
                with self._opened() as source:
                    done = 0
                    for batch in self._read(source, schema, block):
                        done += len(batch)
                        if done > start:
                            yield batch.slice(max(0, len(batch) - (done - start)))
                return
            except pa.ArrowInvalid as error:
                if not _is_too_long(error) or self.stream is not None or block >= MAX_BLOCK_BYTES:
                    raise self._translated(error) from error
            done, block = max(start, done), 4 * block

    def _read(self, source: Any, schema: Any, block: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.csv as csv

        count, seen = len(self.fields), []
        last_row = ",".join([END_MARK] * (count + 1))

        def handle_invalid_row(row: Any) -> str:
            if row.actual_columns == count + 1 and row.text == last_row:
                seen.append(True)
                return "skip"
            return "error"

        head = self._head or _read(source, BLOCK_BYTES).lstrip(b"\r\n")
        rest = pa.PythonFile(_Stream(head, source, f"{last_row}\n".encode()), mode="r")
        # In a file of one column a blank line is a missing value, as a blank cell is in others. Those before the header
        # are removed above, as pyarrow would take the first of them for it.
        parsing = csv.ParseOptions(
            newlines_in_values=True, invalid_row_handler=handle_invalid_row, ignore_empty_lines=count != 1
        )
        converting = csv.ConvertOptions(column_types=schema, include_columns=schema.names, strings_can_be_null=True)
        yield from csv.open_csv(rest, csv.ReadOptions(block_size=block), parsing, converting)
        if not seen:
            raise ValueError(
                f'{self.path} ends within a cell that begins with a quote ("): close the quote, or write "" for a '
                "quote within a quoted cell."
            )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file or stream, uncompressed; the compression is told by the first bytes, whatever the name."""
        import pyarrow as pa

        if self._source is not None:
            yield self._source
            return
        with open(self.path, "rb", buffering=0) if self.stream is None else nullcontext(self.stream) as raw:
            start = _read(raw, 10)
            for magic, what in OTHER_FORMATS:
                if start.startswith(magic):
                    raise ValueError(f"{self.path} is {what}.")
            codec = next((codec for magic, codec in CODECS if magic.match(start)), None)
            whole = _Stream(start, raw, b"")
            if codec is None:
                yield whole
            else:
                yield pa.CompressedInputStream(pa.PythonFile(whole, mode="r"), codec)

    def _translated(self, error: Exception) -> ValueError:
        """Return an error of pyarrow as a ValueError that names the file and says what to change in it."""
        text = str(error)
        if _is_too_long(error):
            return ValueError(
                f"{self.path} could not be read: it has a row that is longer than a block ({text}). If a quote "
                '(") in it is not closed, close it'
                + ("" if self.stream is None else "; if not, name it as a file")
                + "."
            )
        if match := WRONG_VALUE.search(text):
            name = self.fields[int(match[1])].name if int(match[1]) < len(self.fields) else match[1]
            return NotNumericError(
                f"Column {name!r} of {self.path} could not be read: {match[2]!r} is not a number. Correct it, or "
                "name the features without this column.",
                name,
            )
        if "UTF8" in text or "UTF-8" in text:
            return ValueError(f"{self.path} is not in UTF-8 ({text}): {ADVICE_ON_ENCODING}")
        advice = ": put cells with a comma in quotes, and leave none out" if "Expected" in text else ""
        return ValueError(f"{self.path} could not be read: {text}{advice}.")

    def _refuse_delimiter(self, names: list[str], spec: TableSpec) -> None:
        absent = [name for name in spec.columns if name not in names]
        delimiter = next((sign for sign in ";\t|" if any(sign in name for name in names)), None)
        if absent and delimiter is not None:
            raise ValueError(
                f"{self.path} has no column {join_names(absent)}: the delimiter of its header ({join_names(names)}) "
                f"seems to be {delimiter!r}, and a comma was expected. Save it with commas, or read it with "
                f"pandas.read_csv(path, sep={delimiter!r}) and pass the table."
            )


def _read(stream: Any, size: int) -> bytes:
    """Read ``size`` bytes, or fewer if the stream ends; a pipe may return less than asked for before that."""
    parts = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _is_too_long(error: Exception) -> bool:
    return "straddling" in str(error)


def _type_of(text: str) -> Any:
    import pyarrow as pa

    if text.lower() in ("true", "false"):
        return pa.bool_()
    try:
        float(text)
    except ValueError:
        return pa.string()
    return pa.float64()
