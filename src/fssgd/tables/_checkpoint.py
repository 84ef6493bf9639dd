"""Checkpoint file of a pass over files, from which a pass that was killed is resumed."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments_file import FIELDS as MOMENTS_FIELDS
from fssgd._moments.moments_file import moments_fields, moments_of_fields
from fssgd._moments.row_sums import rows_of_block
from fssgd._moments.table_spec import TableSpec
from fssgd._support.atomic_files import check_writable, identity, write_atomically
from fssgd._support.saved_files import check_format, parse_json, read_npz, why
from fssgd.tables._pass_state import PassState

FORMAT, VERSION = "fssgd.checkpoint", 1
COUNTS = ("file", "row", "rows", "dropped")
MOMENTS, STATE = "moments.", "state."
FIELDS = ["format", "version", "fingerprint", "complete", "missing", *(STATE + name for name in COUNTS)]
FIELDS += [MOMENTS + name for name in MOMENTS_FIELDS]
ADVICE = "Delete it to start again, or pass another checkpoint."


class Checkpoint:
    """Reads and writes the checkpoint of a pass over files.

    Parameters
    ----------
    path : str or path-like
        An ``.npz`` file, to be created or resumed from.
    every : float
        Seconds between two writes.
    files : list of str
        Files that the pass reads, in order.
    spec : TableSpec
        Columns that it reads.
    schemas : list of str
        Types that the columns of each file are read as.
    """

    def __init__(
        self, path: str | os.PathLike[str], every: float, files: list[str], spec: TableSpec, schemas: list[str]
    ) -> None:
        self.path, self._every, self._spec = Path(path).expanduser(), every, spec
        check_writable(self.path)
        if identity(self.path) in {identity(file) for file in files} - {None}:
            raise ValueError(f"checkpoint={str(path)!r} is one of the files to read: choose another name.")
        self._fingerprint = _fingerprint(files, spec, schemas)
        self._written = time.monotonic()

    def load(self) -> tuple[PassState | None, bool]:
        """Return the state to resume from, None if there is no file yet, and whether the pass is complete.

        Raises
        ------
        ValueError
            If the file is not a checkpoint, is damaged, or belongs to other data or settings.
        """
        if not self.path.exists():
            return None, False
        fields = read_npz(self.path, "a checkpoint", FIELDS)
        check_format(self.path, "a checkpoint", fields, FORMAT, VERSION)
        try:
            saved = _parse_fingerprint(fields.get("fingerprint"))
            counts, missing, complete = _parse_counts(fields)
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged: {why(error)}. {ADVICE}") from error
        if saved != self._fingerprint:
            raise ValueError(
                f"The checkpoint {self.path} belongs to another pass: {_difference(saved, self._fingerprint)}. {ADVICE}"
            )
        packed = {name.removeprefix(MOMENTS): value for name, value in fields.items() if name.startswith(MOMENTS)}
        sums, n_outputs, _ = moments_of_fields(self.path, packed, ADVICE) if packed else (None, 0, None)
        state = PassState(missing, PassState.start(len(missing)).faults, sums, **counts)
        if fault := self._first_inconsistency(state, n_outputs):
            raise ValueError(f"{self.path} is damaged: {fault}. {ADVICE}")
        return state, complete

    def _first_inconsistency(self, state: PassState, n_outputs: int) -> str | None:
        """Return what contradicts the files or the settings, once the fingerprint has shown that these are the same."""
        spec, sums = self._spec, state.sums
        if len(state.missing) != len(spec.columns):
            return "it has other columns"
        if not (state.file < len(self._fingerprint["files"]) and max(state.row, state.dropped) <= state.rows):
            return "a count is out of range"
        if sums is None:
            # No row counts if all weights so far are zero, or all rows have missing values.
            may_be_empty = spec.weight is not None or state.dropped == state.rows
            return None if may_be_empty else "its moments are missing"
        if (n_outputs, len(sums.mean)) != (len(spec.target), len(spec.target) + len(spec.features or ())):
            return "it has other columns"
        if sums.factor_requested != spec.accurate or sums.n_samples > state.rows:
            return "its moments are not those of the rows"
        return None

    def after_block(self, state: PassState) -> None:
        """Write the state if the last write is long enough ago."""
        if time.monotonic() - self._written >= self._every:
            self.save(state)

    def save(self, state: PassState, complete: bool = False) -> None:
        """Write the state atomically: a crash leaves either the previous one or this one."""
        sums = state.sums
        if sums is not None and not math.isfinite(sums.squares.sum() + sums.mean.sum()):
            return  # overflowed: the pass ends with an error that names the column
        fields: dict[str, Any] = {STATE + name: getattr(state, name) for name in COUNTS}
        fields |= {"format": FORMAT, "version": VERSION, "complete": complete, "missing": state.missing}
        fields["fingerprint"] = json.dumps(self._fingerprint)
        if sums is not None:
            packed = moments_fields(sums, len(self._spec.target), None)
            fields |= {MOMENTS + name: value for name, value in packed.items()}
        write_atomically(self.path, lambda handle: np.savez(handle, **fields))
        self._written = time.monotonic()


def _fingerprint(files: list[str], spec: TableSpec, schemas: list[str]) -> dict[str, Any]:
    """Return all that the moments of a pass depend on; the folder is left out, so that it may be moved."""
    common = os.path.commonpath([os.path.dirname(file) for file in files])
    stats = [(os.path.relpath(file, common), os.stat(file)) for file in files]
    return {
        "target": list(spec.target),
        "features": list(spec.features or ()),
        "weight": spec.weight,
        "accurate": spec.accurate,
        "on_missing": spec.on_missing,
        "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats],
        "types": sorted(set(schemas)),
        "rows in a block": rows_of_block(len(spec.target) + len(spec.features or ()), spec.accurate),
    }


def _parse_fingerprint(text: Any) -> dict[str, Any]:
    """Return the fingerprint in a checkpoint, checked as far as :func:`_difference` needs it."""
    saved: Any = parse_json(text) if isinstance(text, str) else None
    files: Any = saved.get("files") if isinstance(saved, dict) else None
    if not isinstance(files, list) or not all(
        isinstance(file, list) and [type(part) for part in file] == [str, int, int] for file in files
    ):
        raise ValueError("it does not say which files it belongs to")
    return dict(saved)


def _parse_counts(fields: dict[str, Any]) -> tuple[dict[str, int], npt.NDArray[np.int64], bool]:
    counts: dict[str, Any] = {name: fields.get(STATE + name) for name in COUNTS}
    missing, complete = fields.get("missing"), fields.get("complete")
    if not (isinstance(missing, np.ndarray) and missing.ndim == 1 and missing.dtype.kind == "i"):
        raise ValueError("missing is not an array of counts")
    if type(complete) is not bool or any(type(count) is not int for count in counts.values()):
        raise ValueError("a count is missing or is not an integer")
    if min(*counts.values(), *missing.tolist()) < 0:
        raise ValueError("a count is out of range")
    return counts, missing.astype(np.int64), complete


def _difference(saved: dict[str, Any], current: dict[str, Any]) -> str:
    """Return the first difference between two fingerprints, for the error message."""
    key = next(key for key in (*current, *saved) if saved.get(key) != current.get(key))
    if key != "files":
        return f"{key} was {saved.get(key)!r} and is now {current.get(key)!r}"
    old, new = ([file[0] for file in fingerprint[key]] for fingerprint in (saved, current))
    if old != new:
        added = next((name for name in new if name not in old), None)
        return f"there were {len(old)} files and now there are {len(new)}, " + (
            f"{added} is new" if added else "one is gone or their order has changed"
        )
    changed = next(name for j, name in enumerate(new) if saved[key][j] != current[key][j])
    return f"the file {changed} has changed since"
