"""What Moments, and fits from them, refuse, and in which words."""

import numpy as np
import pytest
import scipy.sparse as sp

import fssgd._estimators.fitting
from fssgd import LinearRegressorGD, Moments

X = np.random.default_rng(0).normal(size=(8, 3)) + 1.0
Y = np.random.default_rng(1).normal(size=8)


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


ROUTES = {
    "moments": lambda X, y, weight=None: Moments.from_arrays(X, y, weight),
    "accurate": lambda X, y, weight=None: Moments.from_arrays(X, y, weight, accurate=True),
    "fit": lambda X, y, weight=None: LinearRegressorGD().fit(X, y, sample_weight=weight),
    "fit over rows": lambda X, y, weight=None: LinearRegressorGD(backend="numpy").fit(X, y, sample_weight=weight),
    "partial_fit": lambda X, y, weight=None: LinearRegressorGD().partial_fit(X, y, sample_weight=weight),
}


@pytest.fixture(params=ROUTES)
def take(request, monkeypatch):
    if request.param == "fit over rows":  # as if the data were too large to decompose
        monkeypatch.setattr(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", 0)
    return ROUTES[request.param]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weight", [None, np.r_[0.0, np.ones(7)]])
def test_values_that_are_not_finite(take, bad, form, weight):
    """Also in a row of weight 0: 0 times NaN is NaN."""
    what = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=rf"Input X contains {what}"):
        take(form(changed(X, (0, 1), bad)), Y, weight)
    with pytest.raises(ValueError, match=rf"Input y contains {what}"):
        take(form(X), changed(Y, 0, bad), weight)


@pytest.mark.parametrize(("value", "what"), [(1e200, "overflow"), (1e-200, "underflow")])
def test_squares_outside_the_range_of_float64(take, value, what):
    with pytest.raises(ValueError, match=rf"squared deviations of x1 {what} float64: change the unit of these columns"):
        take(X * [1.0, value, 1.0], Y)
    with pytest.raises(ValueError, match=rf"squared deviations of y0 {what} float64"):
        take(X, Y * value)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(8), r"zero"),
        (changed(np.ones(8), 3, -1.0), r"[Nn]egative values in data passed to `sample_weight`"),
        (changed(np.ones(8), 3, np.nan), r"Input sample_weight contains NaN"),
        (np.ones(7), r"sample_weight.shape == \(7,\), expected \(8,\)"),
        (np.ones((8, 1)), r"Sample weights must be 1D"),
    ],
)
def test_weights(take, weight, message):
    with pytest.raises(ValueError, match=message):
        take(X, Y, weight)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_weights_that_add_up_to_more_than_float64_holds(take, form):
    with pytest.raises(
        ValueError, match=r"sample weights overflow float64: the weights sum to inf, and only their ratios"
    ):
        take(form(X), Y, np.full(8, 1e308))


@pytest.mark.parametrize("size", [1e300, 1e-320])
def test_weights_that_take_squares_out_of_range(size):
    """They are refused as weights: the columns are as they should be."""
    unit = 1e10 if size > 1 else 1.0
    with pytest.raises(
        ValueError, match=r"sample weights, (over|under)flow float64: the weights sum to .*divide them all"
    ):
        Moments.from_arrays(X * unit, Y, np.full(8, size))


def test_shapes(take):
    with pytest.raises(ValueError, match=r"Found input variables with inconsistent numbers of samples: \[8, 7\]"):
        take(X, Y[:7])
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array instead"):
        take(Y, Y)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        take(X[:0], Y[:0])


def test_moments_of_other_columns_do_not_add_up():
    one, narrow = Moments.from_arrays(X, Y), Moments.from_arrays(X[:, :2], Y)
    two = Moments.from_arrays(X, np.column_stack([Y, Y]))
    for other, words in ((narrow, "2 features and 1 outputs"), (two, "3 features and 2 outputs")):
        both = (
            rf"(?=.*3 features and 1 outputs)(?=.*{words}).* cannot be added to .*: both sides must describe the same"
        )
        with pytest.raises(ValueError, match=both):
            one + other
    with pytest.raises(TypeError, match=r"unsupported operand"):
        one + 1


def test_names_must_agree_where_there_are_any():
    order = [np.array(list(names), object) for names in ("abc", "acb")]
    named = [Moments.of_rows(X, Y[:, None], None, feature_names=names) for names in order]
    both = r"(?=.*\['a', 'b', 'c'\])(?=.*\['a', 'c', 'b'\]).* cannot be added to .*: use the same column names"
    with pytest.raises(ValueError, match=both):
        named[0] + named[1]
    plain = Moments.from_arrays(X, Y)
    assert list((plain + named[0]).feature_names) == ["a", "b", "c"]
    assert list((named[0] + plain).feature_names) == ["a", "b", "c"]


def test_moments_do_not_change():
    with pytest.raises(AttributeError, match=r"cannot assign to field"):
        Moments.from_arrays(X, Y).n_outputs = 2
