"""Numbers of every kind as settings: those that float64 has no room for are refused, others are what they are."""

from fractions import Fraction

import numpy as np
import pytest

from fssgd import GradientPath, LinearRegressorGD, LinearRegressorGDCV, Moments, diagnose

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = X @ [1.0, 2.0, 3.0] + rng.normal(size=30)
WIDE = np.finfo(np.longdouble).max > np.finfo(np.float64).max
TOO_LARGE = [10**400, 10**5000, Fraction(10**400), *([np.longdouble("1e4000")] if WIDE else [])]
TOO_SMALL = [Fraction(1, 10**400), *([np.longdouble("1e-4000")] if WIDE else [])]
TAKERS = {
    "spectral": lambda **setting: LinearRegressorGD(**setting).fit(X, Y).coef_,
    "numpy": lambda **setting: LinearRegressorGD(backend="numpy", **setting).fit(X, Y).coef_,
    "moments": lambda **setting: LinearRegressorGD(**setting).fit_moments(Moments.from_arrays(X, Y)).coef_,
    "cv": lambda **setting: LinearRegressorGDCV(**setting).fit(X, Y).coef_,
    "path": lambda **setting: GradientPath.from_arrays(X, Y, **setting).coef(3),
    "diagnose": lambda **setting: diagnose(X, Y, **setting).steps,
    "steps_to": lambda tol: GradientPath.from_arrays(X, Y).steps_to(tol),
    "noise": lambda noise: LinearRegressorGDCV(criterion="discrepancy", noise=noise).fit(X, Y).coef_,
}
PAIRS = [
    (taker, name)
    for taker, names in {
        "spectral": ("learning_rate", "alpha", "tol"),
        "numpy": ("learning_rate", "alpha", "tol"),
        "moments": ("learning_rate", "alpha", "tol"),
        "cv": ("learning_rate", "alpha"),
        "path": ("learning_rate", "alpha"),
        "diagnose": ("learning_rate", "alpha", "tol"),
        "steps_to": ("tol",),
        "noise": ("noise",),
    }.items()
    for name in names
]


@pytest.mark.parametrize(("taker", "name"), PAIRS)
def test_settings_that_float64_has_no_room_for(taker, name):
    for values, where in ((TOO_LARGE, "above"), (TOO_SMALL, "below")):
        for value in values:
            kind = type(value).__name__
            message = rf"{name}, given as {kind}, is (above|below) what float64 holds: expected a number between 5e-324"
            if kind == "longdouble" and where == "above":
                message = rf"{message}|{name}. (parameter )?.*must be"
            with pytest.raises(ValueError, match=message):
                TAKERS[taker](**{name: value})


@pytest.mark.parametrize(("taker", "name"), PAIRS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_are_what_they_are_as_floats(taker, name):
    right = TAKERS[taker](**{name: 0.25})
    for value in (Fraction(1, 4), np.longdouble("0.25"), np.float32(0.25), np.float16(0.25)):
        np.testing.assert_array_equal(TAKERS[taker](**{name: value}), right)


def test_negative_fractions_are_refused_as_other_negative_numbers():
    with pytest.raises(ValueError, match=r"'alpha' parameter of LinearRegressorGD must be .* Got -0.5 instead"):
        LinearRegressorGD(alpha=Fraction(-1, 2)).fit(X, Y)


def test_more_steps_than_floats_count():
    model = LinearRegressorGD(max_iter=10**400, tol=None).fit(X, Y)
    assert model.n_iter_ == 10**400
    np.testing.assert_allclose(model.coef_, LinearRegressorGD(max_iter=np.inf, tol=None).fit(X, Y).coef_, rtol=1e-12)
    stepping = LinearRegressorGD(max_iter=10**400, backend="numpy").fit(X, Y)
    assert stepping.n_iter_ == LinearRegressorGD(backend="numpy").fit(X, Y).n_iter_
    with pytest.raises(ValueError, match=r"'max_iter' parameter of LinearRegressorGDCV must be an int in the range"):
        LinearRegressorGDCV(max_iter=10**400).fit(X, Y)


def test_data_that_float64_has_no_room_for():
    huge = [[10**400, 0, 0]] * 30
    for take in (
        LinearRegressorGD().fit,
        LinearRegressorGD().partial_fit,
        LinearRegressorGDCV().fit,
        Moments.from_arrays,
    ):
        for given in ((huge, Y), (X, [10**400] * 30), (X, Y, 10**400), (X, Y, [10**400] * 30)):
            with pytest.raises(ValueError, match=r"A number in X, y or sample_weight is above 1.8e\+308"):
                take(*given)
    model = LinearRegressorGD().fit(X, Y)
    with pytest.raises(ValueError, match=r"A number in X is above"):
        model.predict(huge)
    for start in ({"coef_init": [10**400] * 3}, {"intercept_init": 10**400}):
        with pytest.raises(ValueError, match=r"A number in coef_init or intercept_init is above"):
            model.fit(X, Y, **start)


@pytest.mark.parametrize(("weight", "what"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_one_weight_for_all_rows_that_is_not_finite(weight, what):
    for take in (LinearRegressorGD().fit, Moments.from_arrays, LinearRegressorGDCV().fit):
        with pytest.raises(ValueError, match=f"Input sample_weight contains {what}"):
            take(X, Y, weight)
