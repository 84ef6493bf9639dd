"""Ill-conditioned data against 80-digit arithmetic: what each route resolves, and what is said where it does not."""

import warnings

import numpy as np
import pytest
from hypothesis import given, seed
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning

from exact import EPS, Descent, error
from fssgd import LinearRegressorGD, Moments
from fssgd._path.closed_form import ACCURACY
from strategies import CI

ADVICE = (
    r"^Rounding of the second moments may reach [\d.e-]+ of the coefficients after inf steps, because columns are "
    r"nearly collinear or of very different scales\. Take the moments with accurate=True, or use fit\(X, y\), which "
    r"reads such data twice\.$"
)


def near_collinear(condition, offset=0.0):
    """Standardised columns of roughly this condition number (that of H is its square), in units far apart."""
    rng = np.random.default_rng(5)
    left, _ = np.linalg.qr(rng.normal(size=(40, 4)))
    right, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    X = (left * np.geomspace(1.0, 1.0 / condition, 4)) @ right * [1e-6, 1.0, 1e3, 1e6]
    return X + offset * np.abs(X).max(axis=0), left @ [1.0, -2.0, 3.0, 1.0] + 0.1 * rng.normal(size=40)


def scaled(model):
    return np.append(model.scaled_coef_, model.scaled_intercept_)


def right(X, y):
    """The minimiser in the coordinates of the descent, and the condition number of the standardised columns."""
    exact = Descent(X, y)
    return exact.limit()[:, 0], float(np.linalg.cond(exact.Z.astype(float)))


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("condition", [1e1, 1e4, 1e8, 1e11])
def test_a_fit_of_rows_has_nearly_all_digits(condition, offset):
    """Second moments serve up to an error of 1e-10; past that there is refinement in extended precision."""
    X, y = near_collinear(condition, offset)
    theta, known = right(X, y)
    bound = ACCURACY + known * float(np.finfo(np.longdouble).eps)
    assert error(scaled(LinearRegressorGD(max_iter=np.inf, tol=None).fit(X, y)), theta) < bound


@pytest.mark.parametrize("condition", [1e1, 1e4, 1e7, 1e10])
@given(st.data())
@seed(3)
@CI
@pytest.mark.slow
def test_accurate_moments_merged_in_any_tree_lose_digits_by_the_condition_number_only(condition, draws):
    """And not by its square, as second moments do."""
    X, y = near_collinear(condition)
    cuts = draws.draw(st.lists(st.integers(1, len(X) - 1), unique=True, max_size=8))
    parts = [
        Moments.from_arrays(*part, accurate=True)
        for part in zip(np.split(X, sorted(cuts)), np.split(y, sorted(cuts)), strict=True)
    ]
    while len(parts) > 1:
        first = parts.pop(draws.draw(st.integers(0, len(parts) - 1)))
        second = parts.pop(draws.draw(st.integers(0, len(parts) - 1)))
        parts.append(first + second)
    theta, known = right(X, y)
    residual = 1 + known * np.linalg.norm(y - y.mean()) / (np.sqrt(len(y)) * np.linalg.norm(theta.astype(float)))
    with warnings.catch_warnings(action="error"):
        model = LinearRegressorGD(max_iter=np.inf, tol=None).fit_moments(parts[0])
    assert error(scaled(model), theta) < 40 * EPS * known * residual


def test_second_moments_say_that_they_do_not_resolve():
    X, y = near_collinear(1e6)
    moments, model = Moments.from_arrays(X, y), LinearRegressorGD(max_iter=np.inf, tol=None)
    with pytest.warns(LinAlgWarning, match=ADVICE) as caught:
        model.fit_moments(moments)
    with pytest.warns(LinAlgWarning, match=ADVICE):
        LinearRegressorGD(max_iter=np.inf, tol=None).partial_fit(X, y)
    assert caught[0].filename == __file__
    said = float(str(caught[0].message).split("reach ")[1].split(" of")[0])
    theta, _ = right(X, y)
    assert error(scaled(model), theta) < 10 * said


@pytest.mark.parametrize(
    "settings", [{}, {"max_iter": 1000, "tol": None}, {"max_iter": np.inf, "tol": None, "alpha": 1e-3}]
)
def test_no_advice_where_few_steps_or_a_penalty_need_no_more_digits(settings):
    X, y = near_collinear(1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LinAlgWarning)
        warnings.filterwarnings("ignore", "Gradient descent took max_iter")
        LinearRegressorGD(**settings).partial_fit(X, y)


def test_a_constant_column_is_no_collinearity():
    X, y = near_collinear(1e1)
    LinearRegressorGD(max_iter=np.inf, tol=None).partial_fit(np.column_stack([X, np.full(len(X), 3.0)]), y)
    with pytest.warns(LinAlgWarning, match="may reach 1 of the coefficients"):
        LinearRegressorGD(max_iter=np.inf, tol=None).partial_fit(np.column_stack([X, X[:, 0]]), y)
