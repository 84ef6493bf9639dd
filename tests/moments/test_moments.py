"""Moments against exact sums, whatever the data looks like and however it is cut."""

import numpy as np
import pytest
import scipy.sparse as sp

import fssgd._moments.row_sums
from exact import EPS, to_exact
from fssgd import GradientPath, LinearRegressorGD, Moments

RNG = np.random.default_rng(11)


def exact_moments(X, y, weight=None):
    """Mean and centred scatter of [X y], rounded to double."""
    rows = to_exact(np.column_stack([np.asarray(X, float), np.asarray(y, float)]))
    weight = to_exact(np.ones(len(rows)) if weight is None else np.asarray(weight, float))
    mean = weight @ rows / weight.sum()
    away = rows - mean
    return mean.astype(float), ((away.T * weight) @ away).astype(float)


def found_moments(moments):
    xx, xy, yy = moments.scatter_xx, moments.scatter_xy, moments.scatter_yy
    return np.concatenate([moments.mean_x, moments.mean_y]), np.block([[xx, xy], [xy.T, yy]])


def check(moments, X, y, weight=None, merged=False):
    """Sums are right to sqrt(n) eps of the product of norms, times 100 as mean^2 <= 100 variance is subtracted.

    Merging works from means that are rounded: their difference is off by eps |mean|.
    """
    mean, scatter = exact_moments(X, y, weight)
    means, scatters = found_moments(moments)
    n, size = len(X), np.abs(np.column_stack([np.asarray(X, float), np.asarray(y, float)])).max(axis=0)
    assert (np.abs(means - mean) <= 4 * EPS * np.sqrt(n) * size).all()
    spread = np.sqrt(np.diag(scatter))
    allowed = 100 * np.outer(spread, spread)
    if merged:
        allowed += np.outer(size, spread) + np.outer(spread, size)
    assert (np.abs(scatters - scatter) <= EPS * np.sqrt(n) * allowed).all()


def sparse_values(rows, columns, share=0.2):
    return RNG.normal(size=(rows, columns)) * (RNG.random((rows, columns)) < share)


DATA = {
    "plain": (RNG.normal(size=(50, 3)), RNG.normal(size=(50, 2))),
    "several blocks": (RNG.normal(size=(300, 2)) + [0.0, 9.9], RNG.normal(size=(300, 1))),
    "far from the origin": (
        np.round(RNG.normal(size=(200, 2)) * 64) + 1e9,
        np.round(RNG.normal(size=(200, 1)) * 8) - 1e9,
    ),
    "mixed scales": (RNG.normal(size=(40, 3)) * [1e-150, 1.0, 1e150] + [0, 1e6, 0], RNG.normal(size=(40, 1)) * 1e-50),
    "wide": (RNG.normal(size=(6, 20)) + 3.0, RNG.normal(size=(6, 1))),
    "one row": (RNG.normal(size=(1, 3)), RNG.normal(size=(1, 1))),
    "sparse": (sparse_values(200, 3) + [0.0, 0.0, 50.0], RNG.normal(size=(200, 1)) + 7.0),
    "far from the origin at first": (
        RNG.normal(size=(300, 2)) + np.where(np.arange(300) < 64, 1e12, 0.0)[:, None],
        RNG.normal(size=(300, 1)),
    ),
    "drifting": (np.arange(300.0)[:, None] * [1.0, 1e-3] + [1e9, 1e5], RNG.normal(size=(300, 1))),
    "one value only": (np.repeat([[0.1, 0.0, 1e9 + 0.1, 1.0]], 300, axis=0), RNG.normal(size=(300, 1))),
    "booleans": (RNG.random((60, 3)) < 0.3, RNG.normal(size=(60, 1))),
    "half precision": (RNG.normal(size=(60, 3)).astype(np.float16) + np.float16(1000), RNG.normal(size=(60, 1))),
    "integers": (RNG.integers(-300, 300, size=(60, 3)).astype(np.int16), RNG.normal(size=(60, 1))),
}


@pytest.fixture
def rng():
    return np.random.default_rng(12)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("route", ["scatter", "root", "sparse"])
@pytest.mark.parametrize("cut", ["whole", "tiles", "blocks"])
def test_moments_are_exact_sums_to_rounding(monkeypatch, name, weighted, route, cut):
    if cut != "whole":
        monkeypatch.setattr(fssgd._moments.row_sums, "rows_of_block", lambda *_: 64)
        monkeypatch.setattr(fssgd._moments.row_sums, "BLOCK_ROWS", 64)
    if cut == "blocks":
        monkeypatch.setattr(fssgd._moments.row_sums, "BLOCK_SIZE", 1)
    X, y = DATA[name]
    weight = np.random.default_rng(0).integers(0, 4, size=len(X)).astype(float) if weighted and len(X) > 1 else None
    given = sp.csr_array(X.astype(np.float32) if X.dtype == np.float16 else X) if route == "sparse" else X
    moments = Moments.from_arrays(given, y, weight, accurate=route == "root")
    check(moments, X, y, weight, merged=len(X) > 64 and cut != "whole" and route != "sparse")
    assert moments.n_samples == (len(X) if weight is None else (weight > 0).sum())
    assert moments.weight_sum == (len(X) if weight is None else weight.sum())
    assert (moments.n_features, moments.n_outputs) == (X.shape[1], y.shape[1])
    assert moments.accurate == (route == "root" or len(X) < X.shape[1])


@pytest.mark.parametrize(("away", "light", "heavy"), [(1e12, 1e-40, 1.0), (1e18, 1e-80, 1.0), (1e100, 1e-130, 1e120)])
@pytest.mark.parametrize("tail", [64, 200])
def test_rows_far_away_whose_weight_is_as_good_as_none(rng, monkeypatch, away, light, heavy, tail):
    """As under weights that decay: what lies where an earlier block did not loses no digits to where that lay."""
    monkeypatch.setattr(fssgd._moments.row_sums, "rows_of_block", lambda *_: 64)
    monkeypatch.setattr(fssgd._moments.row_sums, "BLOCK_SIZE", 1)
    first = np.arange(64 + tail) < 64
    X = (np.where(first, away, 5.0) + 1e-6 * rng.normal(size=len(first)))[:, None]
    y, weight = rng.normal(size=(len(first), 1)), np.where(first, light, heavy)
    for order in (slice(None), slice(None, None, -1)):
        moments = Moments.from_arrays(X[order], y[order], weight[order])
        mean, scatter = exact_moments(X, y, weight)
        np.testing.assert_allclose(moments.mean_x, mean[:1], rtol=4 * EPS)
        # where blocks merge, their means are rounded: eps |mean| in deviations of 1e-6
        np.testing.assert_allclose(moments.scatter_xx, scatter[:1, :1], rtol=8 * EPS * 5.0 / 1e-6)


@pytest.mark.parametrize("route", ["scatter", "root"])
def test_integers_past_those_that_float64_tells_apart(route):
    """Nanoseconds since 1970: neighbours 64 ns apart are one value, and a column of these is constant."""
    stamps = np.full(1000, 1_700_000_000_000_000_000)
    stamps[::2] += 64
    X, y = np.column_stack([stamps, np.arange(1000)]), np.arange(1000.0)
    moments = Moments.from_arrays(X, y, accurate=route == "root")
    assert float(stamps[0]) == float(stamps[1])
    assert moments.scatter_xx[0, 0] == 0.0
    np.testing.assert_allclose(moments.scatter_xx, Moments.from_arrays(X.astype(float), y).scatter_xx, rtol=1e-12)


def test_moments_are_float64_whatever_the_targets_are(rng):
    X = rng.normal(size=(20, 2))
    for y in (rng.integers(-9, 9, size=20), rng.normal(size=20).astype(np.longdouble), rng.random(20) < 0.5):
        moments = Moments.from_arrays(X, y)
        assert moments.mean_y.dtype == moments.mean_x.dtype == moments.scatter_xy.dtype == np.float64


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_matrix, sp.dok_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_sparse_formats_and_dtypes(rng, form, dtype):
    X = rng.integers(0, 3, size=(30, 4)) * (rng.random((30, 4)) < 0.5)
    y = rng.normal(size=30)
    check(Moments.from_arrays(form(sp.csr_array(X.astype(dtype))), y), X, y)


@pytest.mark.parametrize("accurate", [False, True])
def test_entries_that_a_sparse_matrix_holds_twice_add_up(accurate):
    """Row 0 stores its second column as 1 + 1: constant where the other rows hold 2, and not where they hold 1."""
    for other in (2.0, 1.0):
        data = np.array([1.0, 1.0, 1.0, 5.0, other, 7.0, other])
        X = sp.csr_array((data, [0, 1, 1, 0, 1, 0, 1], [0, 3, 5, 7]), shape=(3, 2))
        y = np.array([1.0, 2.0, 4.0])
        assert not X.has_canonical_format
        moments = Moments.from_arrays(X, y, accurate=accurate)
        check(moments, X.toarray(), y)
        assert (moments.variance_x[1] == 0) == (other == 2.0)


CONSTANTS = {"dense": lambda X: X, "sparse": sp.csr_array}


@pytest.mark.parametrize("value", [0.0, 0.1, -14.62, 1e9 + 0.1, 1e-140, 1e140])
@pytest.mark.parametrize("form", CONSTANTS)
@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_constant_columns_are_exactly_constant(rng, value, form, accurate, weighted):
    """Also where only rows of weight 0 differ, and after merging."""
    X = np.column_stack([np.full(5000, value), rng.normal(size=5000)])
    weight = rng.random(5000) + 0.1 if weighted else None
    if weighted:
        weight[[0, 17]], X[[0, 17], 0] = 0.0, 33.0
    y = np.full(5000, value)
    make = CONSTANTS[form]
    halves = [slice(0, 2000), slice(2000, None)]
    whole = Moments.from_arrays(make(X), y, weight, accurate=accurate)
    parts = [
        Moments.from_arrays(make(X[h]), y[h], None if weight is None else weight[h], accurate=accurate) for h in halves
    ]
    for moments in (whole, parts[0] + parts[1]):
        assert moments.mean_x[0] == value
        assert moments.mean_y[0] == value
        assert moments.variance_x[0] == 0.0
        assert not moments.scatter_xx[0].any()
        assert not moments.scatter_xy.any()
        assert moments.variance_y[0] == 0.0


@pytest.mark.parametrize("form", CONSTANTS)
def test_a_column_that_hardly_varies_is_not_constant(form):
    """One bit, at 1e9 and at 1; and a constant in each of two batches that are not the same."""
    for centre in (1e9, 1.0, 1e-9):
        x = np.r_[np.full(4999, centre), np.nextafter(centre, 2 * centre)]
        moments = Moments.from_arrays(CONSTANTS[form](x[:, None]), np.arange(5000.0))
        assert moments.variance_x[0] > 0
        gap = x[-1] - x[0]
        assert moments.scatter_xx[0, 0] == pytest.approx(gap**2 * 4999 / 5000, rel=1e-6)
        two = [Moments.from_arrays(CONSTANTS[form](part[:, None]), np.zeros(2)) for part in (x[:2], x[[-1, -1]])]
        assert (two[0] + two[1]).scatter_xx[0, 0] == pytest.approx(gap**2, rel=1e-6)


@pytest.mark.parametrize("order", ["C", "F", "strided", "readonly", "lists"])
def test_layouts_and_untouched_input(rng, order):
    X, y, weight = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.random(40)
    given = {
        "C": X,
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "readonly": X.copy(),
        "lists": X.tolist(),
    }
    data = given[order]
    copies = np.array(data), y.copy(), weight.copy()
    if order == "readonly":
        for array in (data, y, weight):
            array.flags.writeable = False
    moments = Moments.from_arrays(data, y, weight)
    check(moments, X, y, weight)
    for before, after in zip(copies, (np.array(data), y, weight), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("accurate", [False, True])
def test_float32_is_summed_in_float64(accurate):
    X = np.tile(np.array([[0.1], [0.2], [0.3], [0.7]], dtype=np.float32), (50_000, 1))
    y = np.tile(np.array([1, 2, 3, 7], dtype=np.float32), 50_000)
    moments = Moments.from_arrays(X, y, accurate=accurate)
    mean, scatter = exact_moments(X[:4], y[:4])
    bound = 200_000 * EPS  # of a sum in float64; one in float32 would be off by 1e-2
    np.testing.assert_allclose(moments.mean_x, mean[:1], rtol=bound)
    np.testing.assert_allclose(moments.scatter_xx / 50_000, scatter[:1, :1], rtol=bound)
    assert moments.scatter_xx.dtype == np.float64


def test_feature_names_come_from_frames(rng):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = rng.normal(size=(5, 2)), np.arange(5.0)
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})):
        moments = Moments.from_arrays(frame, y)
        assert list(moments.feature_names) == ["a", "b"]
        model = LinearRegressorGD().fit_moments(moments)
        assert list(model.feature_names_in_) == ["a", "b"]
    assert Moments.from_arrays(X, y).feature_names is None
    assert "n_samples=5, n_features=2, n_outputs=1, accurate=False" in repr(Moments.from_arrays(X, y))


def test_accurate_moments_add_up_to_accurate_ones(rng):
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    parts = [slice(0, 4), slice(4, 11), slice(11, 30)]
    roots = [Moments.from_arrays(X[part], y[part], accurate=True) for part in parts]
    total = roots[0] + roots[1] + roots[2]
    assert total.accurate
    assert total.factor_x.shape[0] <= 4
    check(total, X, y)
    mixed = roots[0] + roots[1] + Moments.from_arrays(X[parts[2]], y[parts[2]])
    assert not mixed.accurate
    check(mixed, X, y)
    assert GradientPath.from_moments(total).spectrum.accurate


def test_wide_batches_turn_into_a_scatter_matrix_once_there_are_rows_enough(rng):
    X, y = rng.normal(size=(12, 5)), rng.normal(size=12)
    total = Moments.from_arrays(X[:3], y[:3])
    for start in range(3, 12, 3):
        assert total.accurate == (total.n_samples < 6)
        total = total + Moments.from_arrays(X[start : start + 3], y[start : start + 3])
        check(total, X[: start + 3], y[: start + 3])
    assert not total.accurate
