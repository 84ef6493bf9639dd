"""CSV from files and streams: what is in the way of reading it as it is meant, and its columns block by block."""

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

BLOCK, LONGEST = 1 << 20, 1 << 28  # bytes: of a block, and of one that holds a single row
CODECS = (
    (re.compile(rb"\x1f\x8b"), "gzip"),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bz2"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd"),
)
NO_CSV = (
    (b"PAR1", "a Parquet file: name it as a file that ends in .parquet"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet: unpack it, or export it as CSV"),
    (b"\xfd7zXZ", "compressed by xz: unpack it"),
    (b"\xff\xfe", "in UTF-16: save it in UTF-8"),
    (b"\xfe\xff", "in UTF-16: save it in UTF-8"),
)
ENCODING = "save it in UTF-8, or read it with pandas.read_csv(path, encoding=...) and pass the table."
END = uuid.uuid4().hex  # in no file
WRONG_VALUE = re.compile(r"In CSV column #(\d+):.*conversion error to \w+: invalid value '(.*)'", re.DOTALL)


class NotNumericError(ValueError):
    """A value of a column is no number; ``column`` is its name."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class _Stream(io.RawIOBase):
    """Some bytes, then the rest of a stream, then a row of too many cells, by which its reader knows of the end.

    A quote that is never closed swallows that row with all before it, which nothing else would tell.
    """

    def __init__(self, head: bytes, rest: Any, end: bytes) -> None:
        self._head, self._rest, self._end, self._last = memoryview(head), rest, end, b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        done = 0
        while done < len(buffer) and (part := self._next(len(buffer) - done)):  # a short read means the end to pyarrow
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def _next(self, size: int) -> Any:
        part = self._head[:size] if self._head else self._rest.read(size)
        self._head = self._head[len(part) :]
        if part:
            self._last = bytes(part[-1:])
        elif self._end:
            end = self._end if self._last in (b"\n", b"\r") else b"\n" + self._end
            part, self._head, self._end = end[:size], memoryview(end)[size:], b""
        return part


@dataclass
class CsvSource:
    """One CSV file, or a stream, which is read once.

    Parameters
    ----------
    path : str
        What to call it in messages, and where it is.
    stream : binary file object, default=None
        What to read instead of a file.
    """

    path: str
    stream: Any = None
    fields: list[Any] = field(default_factory=list)
    metadata: Any = None
    rows: int | None = None
    _head: bytes = b""
    _block: int = BLOCK
    _source: Any = None

    def look(self, spec: TableSpec) -> None:
        """Find the names of the columns, and the types that their first values look like."""
        import pyarrow as pa
        import pyarrow.csv as csv

        with self._opened() as source:
            head, block = _read(source, 2 * BLOCK).lstrip(b"\r\n"), BLOCK
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
                except pa.ArrowInvalid as error:  # "Empty" is a block that ends before the header does
                    if len(head) < block or block >= LONGEST or not (_is_too_long(error) or "Empty" in str(error)):
                        raise self._in_words(error) from error
                block *= 4
                head += _read(source, 2 * block - len(head))
            if self.stream is not None:
                self._head, self._source = head, source
        self._block = block
        try:
            self.fields = list(schema)
            names = [one.name for one in self.fields]
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not in UTF-8 ({error}): {ENCODING}") from error
        self._refuse_delimiter(names, spec)
        if self.stream is None:
            self._look_further([name for name in names if spec.features is None or name in spec.columns])

    def _look_further(self, names: list[str]) -> None:
        """Find the first value of columns that have none so far: it says whether they hold numbers."""
        import pyarrow as pa

        blank = {one.name for one in self.fields if pa.types.is_null(one.type) and names.count(one.name) == 1}
        if not blank:
            return
        begun: dict[str, str] = {}
        for batch in self.batches(pa.schema([pa.field(name, pa.string()) for name in sorted(blank)])):
            for name in blank - set(begun):
                if len(values := batch.column(name).drop_null()):
                    begun[name] = values[0].as_py()
            if len(begun) == len(blank):
                break
        self.fields = [one.with_type(_type_of(begun[one.name])) if one.name in begun else one for one in self.fields]

    def batches(self, schema: Any, skip: int = 0) -> Iterator[Any]:
        """Yield record batches of these fields from row ``skip`` on; longer blocks are tried where a row needs one."""
        import pyarrow as pa

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
                if not _is_too_long(error) or self.stream is not None or block >= LONGEST:
                    raise self._in_words(error) from error
            done, block = max(start, done), 4 * block

    def _read(self, source: Any, schema: Any, block: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.csv as csv

        count, ended = len(self.fields), []
        text = ",".join([END] * (count + 1))

        def wrong(row: Any) -> str:
            if row.actual_columns == count + 1 and row.text == text:
                ended.append(True)
                return "skip"
            return "error"

        head = self._head or _read(source, BLOCK).lstrip(b"\r\n")
        rest = pa.PythonFile(_Stream(head, source, f"{text}\n".encode()), mode="r")
        # a blank line in a file of one column is a cell without a value, as a blank cell is elsewhere
        parsing = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=wrong, ignore_empty_lines=count != 1)
        converting = csv.ConvertOptions(column_types=schema, include_columns=schema.names, strings_can_be_null=True)
        yield from csv.open_csv(rest, csv.ReadOptions(block_size=block), parsing, converting)
        if not ended:
            raise ValueError(
                f'{self.path} ends within a cell that begins with a quote ("): close the quote, or write "" for a '
                "quote within a quoted cell."
            )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open what is unpacked; its first bytes say by what, whatever its name."""
        import pyarrow as pa

        if self._source is not None:
            yield self._source
            return
        with open(self.path, "rb", buffering=0) if self.stream is None else nullcontext(self.stream) as raw:
            start = _read(raw, 10)
            for magic, what in NO_CSV:
                if start.startswith(magic):
                    raise ValueError(f"{self.path} is {what}.")
            codec = next((codec for magic, codec in CODECS if magic.match(start)), None)
            plain = _Stream(start, raw, b"")
            if codec is None:
                yield plain
            else:
                yield pa.CompressedInputStream(pa.PythonFile(plain, mode="r"), codec)

    def _in_words(self, error: Exception) -> ValueError:
        text = str(error)
        if _is_too_long(error):
            return ValueError(
                f"{self.path} could not be read: it has a row that is longer than a block ({text}). If a quote "
                '(") in it is not closed, close it'
                + ("" if self.stream is None else "; if not, name it as a file")
                + "."
            )
        if found := WRONG_VALUE.search(text):
            name = self.fields[int(found[1])].name if int(found[1]) < len(self.fields) else found[1]
            return NotNumericError(
                f"Column {name!r} of {self.path} could not be read: {found[2]!r} is not a number. Correct it, or "
                "name the features without this column.",
                name,
            )
        if "UTF8" in text or "UTF-8" in text:
            return ValueError(f"{self.path} is not in UTF-8 ({text}): {ENCODING}")
        more = ": put cells with a comma in quotes, and leave none out" if "Expected" in text else ""
        return ValueError(f"{self.path} could not be read: {text}{more}.")

    def _refuse_delimiter(self, names: list[str], spec: TableSpec) -> None:
        absent = [name for name in spec.columns if name not in names]
        other = next((sign for sign in ";\t|" if any(sign in name for name in names)), None)
        if absent and other is not None:
            raise ValueError(
                f"{self.path} has no column {join_names(absent)}: the delimiter of its header ({join_names(names)}) "
                f"seems to be {other!r}, and a comma was expected. Save it with commas, or read it with "
                f"pandas.read_csv(path, sep={other!r}) and pass the table."
            )


def _read(stream: Any, size: int) -> bytes:
    """Read so many bytes unless the stream ends before."""
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
