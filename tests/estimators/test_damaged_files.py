"""Saved files of which bytes were changed: each is read as what it is, or is a ValueError that names it, and small."""

import io
import itertools
import json
import os
import random
import re
import tracemalloc
import zipfile

import numpy as np
import pytest
from test_earlier_releases import FOLDER, MTIME

from fssgd import LinearRegressorGD, Moments
from fssgd.tables import TableSpec
from fssgd.tables._checkpoint import Checkpoint

HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
VERSION, FLAGS, KIND = 6, 8, 10  # bytes into an entry of an archive's directory
HOSTILE_JSON = ["null", "true", "-1", "0", "1e400", "-1e400", "1e39", "NaN", "Infinity", "9" * 400, "9" * 5000, '"inf"']
HOSTILE_JSON += ['"x"', "[]", "[[]]", "{}", "[1]", "[1,2,3]", "[[1,2],[3]]", '["a","a"]', "[null]", "[1e400]", "[true]"]
HOSTILE_JSON += ["[" * 10**5, "[" * 70 + "]" * 70, "[" * 900 + "1" + "]" * 900, '{"a":' * 900 + "1" + "}" * 900]


def member(header, data=b"", version=(1, 0)):
    text = header.encode("latin-1") if isinstance(header, str) else header
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + length + text + data


HOSTILE_MEMBERS = {
    "empty": b"",
    "text": b"hello",
    "magic only": b"\x93NUMPY",
    "no header": b"\x93NUMPY\x01\x00\xff\xff",
    "half a header": member("{'descr': '<f8', ((( "),
    "no dictionary": member("[1, 2]"),
    "deep": member("(" * 5000),
    "deeper": member("-" * 9000 + "1"),
    "no ASCII": member("{'descr': '\xe4', 'fortran_order': False, 'shape': (), }"),
    "null bytes": member(b"\0" * 118),
    "objects": member(HEADER % ("|O", "(1,)"), b"cos\nsystem\n(S'false'\ntR."),
    "subarrays": member(HEADER % ("(4294967296,4294967296)f8", "()")),
    "dates": member(HEADER % ("<M8[us]", "()"), bytes(8)),
    "no such type": member(HEADER % ("<f7", "()"), bytes(7)),
    "records": member("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (), }", bytes(8)),
    "too long": member(HEADER % ("<f8", "(1099511627776,)"), bytes(8)),
    "longer than the file": member(HEADER % ("<f8", "(67108864,)"), bytes(8)),
    "beyond int64": member(HEADER % ("<f8", "(99999999999999999999,)"), bytes(8)),
    "less than none": member(HEADER % ("<f8", "(-1, -1)"), bytes(8)),
    "none, of many": member(HEADER % ("<f8", "(0, 1099511627776)")),
    "none, of too many": member(HEADER % ("<f8", "(0, 99999999999999999999)")),
    "as Python 2 had it": member(HEADER % ("<f8", "(1L,)"), bytes(8)),
    "version 2": member(HEADER % ("<f8", "()"), bytes(8), (2, 0)),
    "version 3": member(HEADER % ("<f8", "()"), bytes(8), (3, 0)),
    "version 9": member(HEADER % ("<f8", "()"), bytes(8), (9, 9)),
    "no letter": member(HEADER % ("<U1", "()"), b"\xff\xff\xff\xff"),
    "no letters": member(HEADER % ("<U1", "(2,)"), b"\xff\xff\xff\xff" * 2),
    "NaN": member(HEADER % ("<f8", "()"), np.float64(np.nan).tobytes()),
    "a lone NaN": member(HEADER % ("<f8", "(1,)"), np.float64(np.nan).tobytes()),
    "longer than it says": member(HEADER % ("<f8", "()"), bytes(800)),
}


class Saved:
    """A file of a kind, in a folder, and how it is read."""

    def __init__(self, name, folder):
        self.path = folder / name
        self.whole = (FOLDER / name).read_bytes()
        self._folder = folder
        if "checkpoint" in name:  # its file is not read: it is enough that it is there
            rows = folder / "rows.csv"
            rows.touch()
            os.truncate(rows, 966_409)
            os.utime(rows, ns=(MTIME, MTIME))

    def load(self):
        if self.path.suffix == ".json":
            return LinearRegressorGD.load(self.path)
        if "moments" in self.path.name:
            return Moments.load(self.path)
        spec = TableSpec(("y",), ("a", "b"), None, self.path.name.startswith("accurate"), "raise")
        types = ["a: double\nb: double\ny: double"]
        return Checkpoint(self.path, 30.0, [str(self._folder / "rows.csv")], spec, types).load()[0]

    def check(self, content):
        """Whether it is read; if not, the error is one that says which file it is."""
        self.path.write_bytes(content)
        try:
            found = self.load()
        except ValueError as error:
            said = str(error)
        else:
            said = None
        if said is not None:
            assert str(self.path) in said
            assert len(said) < len(str(self.path)) + 500
            return False
        if self.path.suffix == ".json":
            assert np.isfinite(found.coef_).all()
            assert np.isfinite(found.intercept_).all()
            assert found.coef_.shape[-1] == len(found.mean_) == found.n_features_in_
        else:
            sums = found.sums
            assert np.isfinite(sums.mean).all()
            assert np.isfinite(sums.matrix).all()
            assert not isinstance(found, Moments) or repr(found)
        return True


@pytest.fixture(
    params=["model.json", "limit_float32.json", "moments.npz", "accurate_moments.npz", "checkpoint.npz"],
)
def saved(request, tmp_path):
    saved = Saved(request.param, tmp_path)
    assert saved.check(saved.whole)
    return saved


def zipped(members, kind=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def marked(content, field, value):
    """Change a field of every entry of an archive, in both places that have it."""
    changed = bytearray(content)
    for start, before in ((b"PK\x01\x02", 0), (b"PK\x03\x04", 2)):
        for match in re.finditer(start, content):
            changed[match.start() + field - before] = value
    return bytes(changed)


def unzipped(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_bits_that_have_flipped(saved):
    generator = random.Random(0)
    for _ in range(100):
        content = bytearray(saved.whole)
        for _ in range(generator.choice([1, 1, 1, 3, 30])):
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        saved.check(bytes(content))


def test_files_cut_short_or_put_together_wrongly(saved):
    generator, whole = random.Random(1), saved.whole
    for _ in range(40):
        start, end = sorted(generator.sample(range(len(whole) + 1), 2))
        assert not saved.check(whole[:start])
        saved.check(whole[start:])
        saved.check(whole[:start] + whole[end:])
        saved.check(whole[:end] + whole[start:])
        saved.check(whole[:start] + generator.randbytes(end - start) + whole[end:])


@pytest.mark.parametrize("name", ["model.json", "limit_float32.json"])
def test_values_of_json_that_are_another_kind(tmp_path, name):
    """In place of each of them, and of each number in a list."""
    saved = Saved(name, tmp_path)
    document = json.loads(saved.whole)
    spots = [(key,) for key in document] + [("params", key) for key in document["params"]]
    spots += [(key, 0) for key, value in document.items() if isinstance(value, list)]
    for *inside, last in spots:
        changed = json.loads(saved.whole)
        place = changed[inside[0]] if inside else changed
        place[last] = "HERE"
        text = json.dumps(changed)
        for value in HOSTILE_JSON:
            read = saved.check(text.replace('"HERE"', value).encode())
            if re.search(r"1e400|NaN|Inf|9{400}|\[{100}", value) and (inside, last) != (["params"], "max_iter"):
                assert not read or (last == "n_iter" and value == "9" * 400), (inside, last, value)


@pytest.mark.parametrize("name", ["model.json", "limit_float32.json"])
def test_values_of_json_that_have_changed_places(tmp_path, name):
    saved = Saved(name, tmp_path)
    document = json.loads(saved.whole)
    for one, other in itertools.combinations(document, 2):
        saved.check(json.dumps({**document, one: document[other], other: document[one]}).encode())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("coef", [1.0, 1e39], r"is damaged: coef holds a value that float32 cannot hold\. Save the model again\."),
        ("intercept", -1e39, r"is damaged: intercept holds a value that float32 cannot hold"),
        ("coef", [1.0, 10**400], r"is damaged: .*too large"),
        ("params", {"alpha": 10**400}, r"is damaged: .*too large"),
        ("params", {"alpha": [0.0]}, r"is damaged: the parameter alpha is of type list"),
        ("params", {"alpha": "inf"}, r"is damaged: its params are not this estimator's"),
        ("loss", 10**400, r"is damaged: .*too large"),
    ],
)
def test_numbers_that_are_too_large(tmp_path, key, value, message):
    saved = Saved("limit_float32.json", tmp_path)
    saved.path.write_text(json.dumps({**json.loads(saved.whole), key: value}))
    with pytest.raises(ValueError, match=rf"limit_float32\.json {message}"):
        saved.load()


def test_the_largest_numbers_are_read(tmp_path):
    saved = Saved("limit_float32.json", tmp_path)
    largest = float(np.finfo(np.float32).max)
    document = {**json.loads(saved.whole), "coef": [largest, -largest], "n_iter": 10**4000}
    assert saved.check(json.dumps(document).encode())
    np.testing.assert_array_equal(saved.load().coef_, np.array([largest, -largest], dtype=np.float32))
    assert saved.load().n_iter_ == 10**4000


@pytest.mark.parametrize("key", ["coef", "params", "version"])
def test_a_name_that_is_there_twice(tmp_path, key):
    """The second would be believed, whichever is right."""
    saved = Saved("model.json", tmp_path)
    text = saved.whole.decode().rstrip().removesuffix("}")
    saved.path.write_text(f'{text}, "{key}": {json.dumps(json.loads(saved.whole)[key])}}}')
    with pytest.raises(ValueError, match=rf"model\.json is not a saved model: .* \('{key}' occurs twice\)"):
        saved.load()


@pytest.mark.parametrize("name", ["moments.npz", "accurate_checkpoint.npz"])
class TestArchives:
    @pytest.fixture
    def saved(self, name, tmp_path):
        return Saved(name, tmp_path)

    @pytest.mark.parametrize("hostile", HOSTILE_MEMBERS)
    def test_members_that_are_not_arrays_are_refused(self, saved, hostile):
        members = unzipped(saved.whole)
        for name in members:
            assert not saved.check(zipped({**members, name: HOSTILE_MEMBERS[hostile]}.items())), name

    def test_no_room_is_made_for_an_array_that_the_file_is_too_small_to_hold(self, saved):
        members = unzipped(saved.whole)
        content = zipped({**members, next(iter(members)): HOSTILE_MEMBERS["longer than the file"]}.items())
        tracemalloc.start()
        try:
            assert not saved.check(content)
            assert tracemalloc.get_traced_memory()[1] < 4e6
        finally:
            tracemalloc.stop()

    def test_arrays_that_are_missing_twice_there_or_in_the_place_of_another(self, saved):
        members = unzipped(saved.whole)
        assert saved.check(zipped(members.items()))
        for name, data in members.items():
            left = {other: content for other, content in members.items() if other != name}
            assert saved.check(zipped(left.items())) == (name == "feature_names.npy")
            with pytest.warns(UserWarning, match=r"Duplicate name"):
                twice = zipped([*members.items(), (name, data)])
            assert not saved.check(twice)
        for one, other in itertools.combinations(members, 2):
            saved.check(zipped({**members, one: members[other], other: members[one]}.items()))

    @pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_compressed_files_are_refused(self, saved, kind):
        saved.path.write_bytes(zipped(unzipped(saved.whole).items(), kind))
        with pytest.raises(ValueError, match=r"\.npz does not hold .*: it is not a readable \.npz file \(\S* is compr"):
            saved.load()

    def test_encrypted_or_of_an_unknown_kind(self, saved):
        for field, value in ((FLAGS, 1), (KIND, 97), (VERSION, 255)):
            assert not saved.check(marked(saved.whole, field, value))

    def test_compression_bombs_are_refused(self, saved):
        """Many megabytes in a small file; nothing of them is unpacked, or so much as made room for."""
        members, n_values = unzipped(saved.whole), 1 << 22
        bomb = member((HEADER % ("<f8", (n_values,))).ljust(117) + "\n", bytes(8 * n_values))
        for name in ("junk.npy", next(one for one in members if one.endswith("mean.npy"))):
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w") as archive:
                for other, data in ({**members, name: bomb}).items():
                    kind = zipfile.ZIP_DEFLATED if other == name else zipfile.ZIP_STORED
                    archive.writestr(other, data, kind, compresslevel=1)
            for content in (file.getvalue(), marked(file.getvalue(), KIND, zipfile.ZIP_STORED)):
                assert len(content) < 300_000
                tracemalloc.start()
                try:
                    assert saved.check(content) == (name == "junk.npy")
                    assert tracemalloc.get_traced_memory()[1] < 4e6
                finally:
                    tracemalloc.stop()


def test_a_checkpoint_without_its_moments(tmp_path):
    """Not one of no rows that count, which has none: no row was dropped, and none has a weight."""
    saved = Saved("checkpoint.npz", tmp_path)
    left = {name: data for name, data in unzipped(saved.whole).items() if not name.startswith("moments.")}
    saved.path.write_bytes(zipped(left.items()))
    with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged: its moments are missing\. Delete it to start"):
        saved.load()


def test_moments_in_another_byte_order(tmp_path):
    saved = Saved("moments.npz", tmp_path)
    assert saved.check(saved.whole)
    right = saved.load()
    with np.load(saved.path) as archive:
        swapped = {name: array.astype(array.dtype.newbyteorder()) for name, array in archive.items()}
    np.savez(saved.path, **swapped)
    found = saved.load()
    np.testing.assert_array_equal(found.scatter_xx, right.scatter_xx)
    assert found.sums.mean.dtype.isnative
    assert (found.n_samples, list(found.feature_names)) == (100, ["a", "größe"])
