"""Moments as .npz files, and what is left when some rows are subtracted."""

import io
import zipfile

import numpy as np
import pytest
from test_moments import exact_moments, found_moments

from exact import EPS
from fssgd import LinearRegressorGD, Moments

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)) + [0.0, 1e3, 2.0], RNG.normal(size=(60, 2))
WEIGHT = RNG.integers(0, 4, size=60).astype(float)


def frame():
    return pytest.importorskip("pandas").DataFrame(X, columns=["one", "zwei", "три"])


KINDS = {
    "plain": lambda: Moments.from_arrays(X, Y),
    "weighted": lambda: Moments.from_arrays(X, Y, WEIGHT),
    "accurate": lambda: Moments.from_arrays(X, Y, accurate=True),
    "wide": lambda: Moments.from_arrays(X[:2], Y[:2]),
    "named": lambda: Moments.from_arrays(frame(), Y),
    "constant": lambda: Moments.from_arrays(np.full((5, 1), 0.1), np.arange(5.0)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_digit_survives(kind, tmp_path):
    moments, path = KINDS[kind](), tmp_path / "moments"  # no suffix is added
    moments.save(path)
    loaded = Moments.load(str(path))
    for mine, theirs in zip(found_moments(moments), found_moments(loaded), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for name in ("n_samples", "weight_sum", "n_features", "n_outputs", "accurate"):
        assert getattr(loaded, name) == getattr(moments, name)
        assert type(getattr(loaded, name)) is type(getattr(moments, name))
    assert repr(loaded) == repr(moments)
    assert (loaded.feature_names is None) == (moments.feature_names is None)
    if kind == "named":
        assert list(loaded.feature_names) == ["one", "zwei", "три"]
    np.testing.assert_array_equal(loaded.variance_x == 0, moments.variance_x == 0)
    np.testing.assert_array_equal((loaded + loaded).mean_x, (moments + moments).mean_x)
    assert (loaded + moments).accurate == (moments + moments).accurate
    fits = [LinearRegressorGD().fit_moments(each).coef_ for each in (moments, loaded)]
    np.testing.assert_array_equal(*fits)
    assert [entry.name for entry in tmp_path.iterdir()] == ["moments"]


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x05\x06" + b"\x00" * 18, b"\x80\x04]."])
def test_files_that_are_something_else(tmp_path, content):
    (tmp_path / "moments.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"moments\.npz (does not hold saved|is not a file of saved) moments: "):
        Moments.load(tmp_path / "moments.npz")


def test_no_pickle_is_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", format=np.array([print], dtype=object))
    with pytest.raises(ValueError, match=r"does not hold saved moments: it is not a readable \.npz file"):
        Moments.load(tmp_path / "evil.npz")
    with pytest.raises(FileNotFoundError, match=r"absent"):
        Moments.load(tmp_path / "absent.npz")


DAMAGE = [
    ("format", "other", r"expected format 'fssgd\.Moments', found 'other'"),
    ("version", 2, r"saved by a newer release of fssgd, in version 2 of the format, and this one reads version 1: up"),
    *(("version", value, r"is damaged: its version is ") for value in (0, True, 1.5, "1", np.array([1, 1]))),
    ("mean", np.full(5, np.nan), r"mean holds values that are not finite numbers or booleans"),
    ("mean", np.full(5, np.inf), r"mean holds values that are not finite numbers or booleans"),
    ("mean", np.zeros(5, dtype=np.float32), r"mean is not an array of float64"),
    ("mean", np.zeros((5, 1)), r"the arrays do not describe the same columns"),
    ("mean", 0.0, r"mean is not an array of float64"),
    ("mean", np.zeros(4), r"the arrays do not describe the same columns"),
    ("mean", np.array(["a"] * 5), r"mean is not an array of float64"),
    ("matrix", np.triu(np.ones((5, 5))), r"the second moments are not a symmetric matrix of sums of squares"),
    ("matrix", -np.eye(5), r"the second moments are not a symmetric matrix of sums of squares"),
    ("matrix", np.eye(4), r"the arrays do not describe the same columns"),
    (
        "matrix",
        np.diag([1.0, 2.0, -0.1, 0.0, 0.0]),
        r"the second moments are not a symmetric matrix of sums of squares",
    ),
    ("matrix", np.eye(5)[:4], r"the second moments are not a symmetric matrix of sums of squares"),
    ("matrix", np.eye(5)[0], r"the arrays do not describe the same columns"),
    ("constant", np.zeros(5), r"constant is not an array of bool"),
    (
        "constant",
        np.arange(5, dtype=np.uint8).view(bool),
        r"constant holds values that are not finite numbers or booleans",
    ),
    ("constant", np.zeros(4, dtype=bool), r"the arrays do not describe the same columns"),
    ("n_samples", 0, r"a count is out of range"),
    ("n_samples", np.array([60, 60]), r"n_samples is not one int"),
    ("n_samples", 60.0, r"n_samples is not one int"),
    ("n_outputs", 0, r"a count is out of range"),
    ("weight", np.inf, r"a count is out of range"),
    ("weight", np.nan, r"a count is out of range"),
    ("weight", 60, r"weight is not one float"),
    ("chosen", True, r"it has no factor, though accurate moments were requested"),
    ("chosen", 1, r"chosen is not one bool"),
    ("feature_names", np.arange(3), r"feature_names do not fit the columns"),
    ("feature_names", "abc", r"feature_names do not fit the columns"),
    ("weight", -1.0, r"a count is out of range"),
    ("n_outputs", 5, r"a count is out of range"),
    ("feature_names", np.array(["a", "b"]), r"feature_names do not fit the columns"),
]


@pytest.mark.parametrize(("name", "value", "message"), DAMAGE)
def test_damage_is_noticed(tmp_path, name, value, message):
    path = tmp_path / "moments.npz"
    KINDS["plain"]().save(path)
    with np.load(path) as archive:
        fields = dict(archive)
    np.savez(path, **{**fields, name: value})
    with pytest.raises(ValueError, match=message):
        Moments.load(path)
    del fields[name if name != "feature_names" else "mean"]
    np.savez(path, **fields)
    with pytest.raises(ValueError, match=r"is missing|expected format|its version is None"):
        Moments.load(path)


def test_a_truncated_file(tmp_path):
    path = tmp_path / "moments.npz"
    KINDS["plain"]().save(path)
    whole = path.read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 10):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"does not hold saved moments"):
            Moments.load(path)
    flipped = bytearray(whole)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        start = archive.getinfo("matrix.npy").header_offset
    flipped[start + 200] ^= 0xFF
    path.write_bytes(bytes(flipped))
    with pytest.raises(ValueError, match=r"does not hold saved moments|is damaged"):
        Moments.load(path)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("size", [1, 20, 50])
def test_subtracting_undoes_adding(weight, size):
    """To the rounding of the sum it is taken from."""
    parts = [(X[:size], Y[:size], None if weight is None else weight[:size] + 1.0)]
    parts += [(X[size:], Y[size:], None if weight is None else weight[size:])]
    first, rest = (Moments.from_arrays(*part) for part in parts)
    total = first + rest
    left = total - first
    mean, scatter = exact_moments(*parts[1])
    means, scatters = found_moments(left)
    spread = np.sqrt(np.diag(found_moments(total)[1]))
    size_of = np.abs(np.column_stack([X, Y])).max(axis=0)
    ratio = total.weight_sum / rest.weight_sum
    assert (np.abs(means - mean) <= 20 * ratio * EPS * size_of).all()
    allowed = 500 * ratio * EPS * (np.outer(spread, spread) + np.outer(size_of, spread) + np.outer(spread, size_of))
    assert (np.abs(scatters - scatter) <= allowed).all()
    assert left.n_samples == rest.n_samples
    assert left.weight_sum == pytest.approx(rest.weight_sum, rel=1e-14)


def test_what_cannot_be_subtracted():
    total, part = Moments.from_arrays(X, Y), Moments.from_arrays(X[:20], Y[:20])
    with pytest.raises(ValueError, match=r"Subtracting 60 rows of weight 60 from 20 rows of weight 20 leaves"):
        part - total
    with pytest.raises(ValueError, match=r"Subtracting 60 rows .* from 60 rows"):
        total - total
    with pytest.raises(ValueError, match=r"Accurate moments cannot be subtracted from: compute the"):
        Moments.from_arrays(X, Y, accurate=True) - part
    with pytest.raises(ValueError, match=r"cannot be subtracted from moments of 3 features and 2 outputs: both"):
        total - Moments.from_arrays(X[:, :2], Y)
    with pytest.raises(TypeError, match=r"unsupported operand"):
        total - 1
    wild = X.copy()
    wild[:3] *= 1e6
    lost = r"Subtraction would leave 3 of 5 columns with less than 0\.0001 of their variation"
    with pytest.raises(ValueError, match=lost):
        Moments.from_arrays(wild, Y) - Moments.from_arrays(wild[:3], Y[:3])


def test_a_constant_column_stays_constant_when_rows_are_subtracted():
    flat = np.column_stack([np.full(60, 0.1), X[:, 0]])
    left = Moments.from_arrays(flat, Y) - Moments.from_arrays(flat[:20], Y[:20])
    assert left.mean_x[0] == 0.1
    assert left.variance_x[0] == 0.0
    again = LinearRegressorGD().fit(flat[20:], Y[20:])
    np.testing.assert_allclose(LinearRegressorGD().fit_moments(left).coef_, again.coef_, rtol=1e-10, atol=1e-12)
