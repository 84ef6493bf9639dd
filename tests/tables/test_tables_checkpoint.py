"""Passes over files that are killed and go on, to the bit, and checkpoints that do not fit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fssgd.tables.files
from fssgd import Moments
from fssgd.tables._checkpoint import Checkpoint

pa = pytest.importorskip("pyarrow")
csv, pq = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")

rng = np.random.default_rng(0)
N = 3000
COLUMNS = {"a": rng.normal(size=N) + 5, "b": rng.normal(size=N), "y": rng.normal(size=N), "w": rng.random(N)}
COLUMNS["a"][[7, 1500, 2900]] = np.nan
SETTINGS = {"target": "y", "features": ["b", "a"], "weight": "w", "on_missing": "drop"}
DROPPED = r"Dropped 3 of 3000 rows .* column 'a' \(3 rows\)"

CHILD = """
import json, os, signal, sys
import fssgd._moments.row_sums
fssgd._moments.row_sums.BLOCK_ROWS, fssgd._moments.row_sums.BLOCK_SIZE, fssgd._moments.row_sums.LARGEST_SIZE = 64, 1, 1
from fssgd import Moments
from fssgd.tables._checkpoint import Checkpoint

written, left = Checkpoint.save, int(sys.argv[1])

def save(self, *arguments, **keywords):
    global left
    written(self, *arguments, **keywords)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoint.save = save
settings = json.loads(sys.argv[4])
Moments.from_table(sys.argv[2], **settings, checkpoint=sys.argv[3], checkpoint_every=0)
"""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("fssgd._moments.row_sums.BLOCK_ROWS", 64)
    monkeypatch.setattr("fssgd._moments.row_sums.BLOCK_SIZE", 1)
    monkeypatch.setattr("fssgd._moments.row_sums.LARGEST_SIZE", 1)


@pytest.fixture(params=["parquet", "csv"])
def folder(request, tmp_path):
    """Files that share blocks, of many row groups each."""
    table, folder = pa.table(COLUMNS), tmp_path / "parts"
    folder.mkdir()
    for k in range(3):
        part = table.slice(k * 1000, 1000)
        if request.param == "csv":
            csv.write_csv(part, f"{folder}/p{k}.csv")
        else:
            pq.write_table(part, f"{folder}/p{k}.parquet", row_group_size=90)
    return folder


@pytest.fixture
def checkpoint(tmp_path):
    return tmp_path / "state.npz"


def bits(moments):
    sums = moments.sums
    return sums.mean.tobytes(), sums.matrix.tobytes(), sums.constant.tobytes(), sums.n_samples, sums.weight


def take(folder, **changed):
    with pytest.warns(UserWarning, match=DROPPED):
        return Moments.from_table(folder, **SETTINGS | changed)


def interrupt(monkeypatch, folder, checkpoint, after, **changed):
    """Stop a pass with an exception once its checkpoint has been written so many times."""
    save, left = Checkpoint.save, [after]

    def stopping(self, *arguments, **keywords):
        save(self, *arguments, **keywords)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    settings = SETTINGS | changed | {"checkpoint": checkpoint, "checkpoint_every": 0}
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", stopping)
        with pytest.raises(KeyboardInterrupt):
            Moments.from_table(folder, **settings)


@pytest.fixture
def rows_read(monkeypatch):
    """Count the rows that the files hand out."""
    count, arrays_of = [0], fssgd.tables.files.arrays_of

    def counting(batch):
        count[0] += len(batch)
        return arrays_of(batch)

    monkeypatch.setattr(fssgd.tables.files, "arrays_of", counting)
    return count


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.slow
def test_a_killed_pass_goes_on_to_the_same_bits(folder, checkpoint, accurate, rows_read):
    whole = take(folder, accurate=accurate)
    settings = json.dumps(SETTINGS | {"accurate": accurate})
    for writes in (3, 18):  # in the first file, and then on from there in the second
        command = [sys.executable, "-c", CHILD, str(writes), str(folder), str(checkpoint), settings]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
    with np.load(checkpoint) as state:
        assert (int(state["state.file"]), int(state["state.rows"]), bool(state["complete"])) == (1, 21 * 64, False)
    rows_read[0] = 0
    assert bits(take(folder, accurate=accurate, checkpoint=checkpoint)) == bits(whole)
    assert rows_read[0] == N - 21 * 64


@pytest.mark.parametrize("after", [1, 15, 16, 31, 46])
def test_a_pass_goes_on_from_any_block(folder, checkpoint, after, monkeypatch):
    interrupt(monkeypatch, folder, checkpoint, after)
    assert bits(take(folder, checkpoint=checkpoint)) == bits(take(folder))


def test_a_complete_checkpoint_answers_at_once(folder, checkpoint, rows_read):
    first = take(folder, checkpoint=str(checkpoint))
    assert rows_read[0] == N
    assert bits(take(folder, checkpoint=checkpoint)) == bits(first)
    assert rows_read[0] == N
    assert list(first.feature_names) == ["b", "a"]


def test_a_checkpoint_is_written_as_often_as_asked(folder, checkpoint, monkeypatch):
    saved, save = [], Checkpoint.save
    monkeypatch.setattr(Checkpoint, "save", lambda self, *a, **k: (saved.append(1), save(self, *a, **k)))
    take(folder, checkpoint=checkpoint, checkpoint_every=1e9)
    assert len(saved) == 1
    checkpoint.unlink()
    take(folder, checkpoint=checkpoint, checkpoint_every=0)
    assert len(saved) == 1 + (N + 63) // 64 + 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target": ["a"], "features": ["b"]}, r"target was \['y'\] and is now \['a'\]"),
        ({"features": ["a", "b"]}, r"features was \['b', 'a'\] and is now \['a', 'b'\]"),
        ({"weight": None}, r"weight was 'w' and is now None"),
        ({"accurate": True}, r"accurate was False and is now True"),
        ({"on_missing": "raise"}, r"on_missing was 'drop' and is now 'raise'"),
    ],
)
def test_other_settings(folder, checkpoint, changed, message, monkeypatch):
    interrupt(monkeypatch, folder, checkpoint, 2)
    with pytest.raises(ValueError, match=rf"state\.npz belongs to another pass: {message}\. Delete it to start again"):
        Moments.from_table(folder, **SETTINGS | changed, checkpoint=checkpoint)


def test_other_files(folder, checkpoint, monkeypatch):
    interrupt(monkeypatch, folder, checkpoint, 2)
    first, *_, last = sorted(folder.iterdir())
    with pytest.raises(ValueError, match=r"another pass: there were 3 files and now there are 2, one is gone or"):
        Moments.from_table([first, folder / f"p1{first.suffix}"], **SETTINGS, checkpoint=checkpoint)
    copy = folder / f"p3{first.suffix}"
    copy.write_bytes(last.read_bytes())
    with pytest.raises(ValueError, match=r"another pass: there were 3 files and now there are 4, p3\.\w+ is new"):
        Moments.from_table(folder, **SETTINGS, checkpoint=checkpoint)
    copy.unlink()
    os.utime(last, ns=(1, 1))
    with pytest.raises(ValueError, match=r"another pass: the file p2\.\w+ has changed since\. Delete it"):
        Moments.from_table(folder, **SETTINGS, checkpoint=checkpoint)


def test_a_folder_that_has_moved_is_the_same_data(folder, checkpoint, monkeypatch):
    interrupt(monkeypatch, folder, checkpoint, 20)
    whole = take(folder)
    moved = folder.rename(folder.with_name("elsewhere"))
    assert bits(take(moved, checkpoint=checkpoint)) == bits(whole)


def rewritten(path, **changes):
    with np.load(path) as archive:
        fields = dict(archive.items())
    fields = {name: value for name, value in (fields | changes).items() if value is not None}
    np.savez(path, **fields)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:500]), r"does not hold a checkpoint: .*not a readable \.npz"),
        (lambda path: path.write_text("hello"), r"does not hold a checkpoint"),
        (lambda path: path.write_bytes(b""), r"does not hold a checkpoint"),
        (
            lambda path: rewritten(path, format="other"),
            r"is not a checkpoint: expected format 'fssgd\.checkpoint', found 'other'",
        ),
        (lambda path: rewritten(path, version=9), r"state\.npz was saved by a newer release of fssgd, in version 9"),
        (lambda path: rewritten(path, fingerprint="{"), r"is damaged: Expecting .*\. Delete it to start again"),
        *(
            (lambda path, text=text: rewritten(path, fingerprint=text), r"is damaged: it does not say which files")
            for text in ("[]", "{}", '{"files": 3}', '{"files": [3]}', '{"files": [["a", 1]]}', np.array([1, 2]))
        ),
        (lambda path: rewritten(path, fingerprint='{"files": [], "files": []}'), r"is damaged: 'files' occurs twice"),
        (lambda path: rewritten(path, **{"state.rows": None}), r"is damaged"),
        (lambda path: rewritten(path, **{"state.row": -1}), r"is damaged: a count is out of range"),
        (lambda path: rewritten(path, **{"state.file": 3}), r"is damaged: a count is out of range"),
        (lambda path: rewritten(path, **{"state.row": 1 << 40}), r"is damaged: a count is out of range"),
        (lambda path: rewritten(path, **{"state.rows": 1.5}), r"is damaged: a count is missing or is not an integer"),
        (
            lambda path: rewritten(path, **{"moments.n_samples": 999}),
            r"is damaged: its moments are not those of the rows",
        ),
        (
            lambda path: rewritten(path, complete=np.array([True, False])),
            r"is damaged: a count is missing or is not an integer",
        ),
        (lambda path: rewritten(path, missing=np.zeros(4)), r"is damaged: missing is not an array of counts"),
        (lambda path: rewritten(path, missing=np.zeros(1, dtype=int)), r"is damaged: it has other columns"),
        (lambda path: rewritten(path, **{"moments.n_outputs": 2}), r"is damaged: it has other columns"),
        (lambda path: rewritten(path, **{"moments.version": 2}), r"state\.npz was saved by a newer release of fssgd"),
        (
            lambda path: rewritten(path, **{"moments.mean": np.full(3, np.nan)}),
            r"is damaged: mean holds values .*\. Delete it to start again",
        ),
        (lambda path: Moments.from_arrays([[1.0], [2.0]], [1, 2]).save(path), r"found 'fssgd\.Moments'"),
    ],
)
def test_damaged_checkpoints(folder, checkpoint, damage, message, monkeypatch):
    interrupt(monkeypatch, folder, checkpoint, 2)
    damage(checkpoint)
    with pytest.raises(ValueError, match=message):
        Moments.from_table(folder, **SETTINGS, checkpoint=checkpoint)


def test_places_where_a_checkpoint_cannot_be(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere to write c\.npz in"):
        Moments.from_table(folder, **SETTINGS, checkpoint=tmp_path / "nowhere" / "c.npz")
    file = next(Path(folder).iterdir())
    with pytest.raises(ValueError, match=r"is one of the files to read: choose another name"):
        Moments.from_table(folder, **SETTINGS, checkpoint=file)
    with pytest.raises(ValueError, match=r"checkpoint is for files, .* a Table cannot"):
        Moments.from_table(pa.table(COLUMNS), **SETTINGS, checkpoint="c.npz")


def test_a_fault_found_after_going_on_is_counted_whole(folder, checkpoint, monkeypatch):
    """The rows before the checkpoint had none, so that the count is that of the file."""
    interrupt(monkeypatch, folder, checkpoint, 20)
    state = dict(np.load(checkpoint).items())
    fingerprint = json.loads(str(state["fingerprint"])) | {"on_missing": "raise"}
    rewritten(checkpoint, fingerprint=json.dumps(fingerprint))
    with pytest.raises(ValueError, match=r"p1\.\w+ has missing values .* in column 'a' \(1 row\)"):
        Moments.from_table(folder, **SETTINGS | {"on_missing": "raise"}, checkpoint=checkpoint)
