"""Where a pass over files stands, on disk, so that one that was killed goes on from there."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from fssgd._atomic import check_writable, identity, write_atomically
from fssgd._blocks import rows_of_block
from fssgd._moments_file import moments_fields, moments_of_fields, read_npz
from fssgd.tables._spec import TableSpec
from fssgd.tables._state import PassState

FORMAT, VERSION = "fssgd.checkpoint", 1
COUNTS = ("file", "row", "rows", "dropped")
MOMENTS, STATE = "moments.", "state."


class Checkpoint:
    """The state of a pass over some files, written every so many seconds.

    Parameters
    ----------
    path : str or path-like
        An ``.npz`` file, to be created or gone on from.
    every : float
        Seconds between two writes.
    files : list of str
    spec : TableSpec
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
        """Return where to go on from and whether nothing is left to do; None if there is no file yet.

        Raises
        ------
        ValueError
            If the file is something else or damaged, or belongs to other data or settings.
        """
        if not self.path.exists():
            return None, False
        fields = read_npz(self.path, "a checkpoint")
        if (found := str(fields.get("format"))) != FORMAT or fields.get("version") != VERSION:
            raise ValueError(f"{self.path} is not a checkpoint that this release reads, its format is {found!r}.")
        try:
            then = json.loads(str(fields["fingerprint"]))
            counts = {name: int(fields[STATE + name]) for name in COUNTS}
            missing, complete = fields["missing"].astype(np.int64), bool(fields["complete"])
            if min(counts.values()) < 0 or missing.ndim != 1 or not isinstance(then, dict):
                raise ValueError("a count is out of range")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"The checkpoint {self.path} is damaged ({error}): {self._advice}") from error
        if then != self._fingerprint:
            raise ValueError(
                f"The checkpoint {self.path} belongs to another pass: {_difference(then, self._fingerprint)}. "
                f"{self._advice.capitalize()}"
            )
        packed = {name.removeprefix(MOMENTS): value for name, value in fields.items() if name.startswith(MOMENTS)}
        sums = moments_of_fields(self.path, packed)[0] if packed else None
        shape = len(self._spec.target) + len(self._spec.features or ())
        if len(missing) != len(self._spec.columns) or (sums is not None and len(sums.mean) != shape):
            raise ValueError(f"The checkpoint {self.path} is damaged (it has other columns): {self._advice}")
        return PassState(missing, PassState.start(len(missing)).faults, sums, **counts), complete

    @property
    def _advice(self) -> str:
        return "delete it to start afresh, or pass another checkpoint."

    def after_block(self, state: PassState) -> None:
        """Write the state if it is time to."""
        if time.monotonic() - self._written >= self._every:
            self.save(state)

    def save(self, state: PassState, complete: bool = False) -> None:
        """Write the state, so that a crash leaves the previous one or this one."""
        sums = state.sums
        if sums is not None and not math.isfinite(sums.squares.sum() + sums.mean.sum()):
            return  # overflowed: the end of the pass says so
        fields: dict[str, Any] = {STATE + name: getattr(state, name) for name in COUNTS}
        fields |= {"format": FORMAT, "version": VERSION, "complete": complete, "missing": state.missing}
        fields["fingerprint"] = json.dumps(self._fingerprint)
        if sums is not None:
            packed = moments_fields(sums, len(self._spec.target), None)
            fields |= {MOMENTS + name: value for name, value in packed.items()}
        write_atomically(self.path, lambda handle: np.savez(handle, **fields))
        self._written = time.monotonic()


def _fingerprint(files: list[str], spec: TableSpec, schemas: list[str]) -> dict[str, Any]:
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


def _difference(then: dict[str, Any], now: dict[str, Any]) -> str:
    key = next(key for key in (*now, *then) if then.get(key) != now.get(key))
    if key != "files" or not isinstance(then.get(key), list):
        return f"{key} was {then.get(key)!r} and is now {now.get(key)!r}"
    old, new = ([file[0] for file in side[key]] for side in (then, now))
    if old != new:
        only = next((name for name in new if name not in old), None)
        return f"the files were {len(old)} and are now {len(new)}, " + (
            f"{only} is new" if only else "one is gone or their order has changed"
        )
    changed = next(a for a, b in zip(new, range(len(new)), strict=True) if then[key][b] != now[key][b])
    return f"the file {changed} has changed since"
