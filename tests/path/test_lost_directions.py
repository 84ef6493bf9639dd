"""Directions that the rounding of second moments hides: no descent is called converged for not having seen them."""

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from exact import Descent
from fssgd import GradientPath, LinearRegressorGD, LinearRegressorGDCV, Moments, diagnose
from fssgd.backends import get_backend

RNG = np.random.default_rng(0)
N = 200
NOISE, OTHER = RNG.normal(size=N), RNG.normal(size=N)
OTHER -= np.c_[NOISE, np.ones(N)] @ np.linalg.lstsq(np.c_[NOISE, np.ones(N)], OTHER, rcond=None)[0]

# X, y, settings: an eigenvalue of H is below p eps L, and y depends on its direction
HIDDEN = {
    "time stamp": (np.c_[1.7e9 + RNG.uniform(0, 1e5, N), OTHER], 3 * OTHER + 5, {"standardize": False}),
    "units far apart": (np.c_[1e9 * NOISE, OTHER], OTHER, {"standardize": False}),
    "nearly collinear": (np.c_[NOISE, NOISE + 3e-8 * OTHER], OTHER, {}),
    "nearly collinear, several outputs": (np.c_[NOISE, NOISE + 3e-8 * OTHER], np.c_[OTHER, -2 * OTHER], {}),
}

hidden = pytest.mark.parametrize("name", HIDDEN)


@hidden
def test_rows_at_hand_are_read_again_before_the_stopping_step_is_settled(name):
    """The gradient stays what exact arithmetic has it at, far above the threshold."""
    X, y, settings = HIDDEN[name]
    with pytest.warns(ConvergenceWarning, match=r"took max_iter=1000 steps .* more are needed"):
        model = LinearRegressorGD(max_iter=1000, **settings).fit(X, y)
    exact = Descent(X, y, **settings)
    theta = exact.theta(1000, model.learning_rate_)
    assert not model.converged_
    assert model.n_iter_ == 1000
    norm = exact.gradient_norm(theta)
    assert model.path_.gradient_norm(1000) == pytest.approx(norm, rel=1e-6)
    assert norm > 100 * model.path_.reference.threshold(1e-8, model.path_.spectrum.largest)
    assert model.loss_ == pytest.approx(exact.loss(theta), rel=1e-9)


@hidden
def test_enough_steps_of_rows_at_hand_reach_least_squares(name):
    X, y, settings = HIDDEN[name]
    model = LinearRegressorGD(max_iter=np.inf, **settings).fit(X, y)
    assert model.converged_
    assert 10**6 < model.n_iter_ < np.inf
    assert model.score(X, y) > 1 - 1e-6


@hidden
def test_moments_that_hide_a_gradient_do_not_claim_convergence(name):
    X, y, settings = HIDDEN[name]
    moments = Moments.from_arrays(X, y)
    fits = (
        lambda model: model.fit_moments(moments),
        lambda model: model.partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]),
    )
    for fit in fits:
        model = LinearRegressorGD(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            with pytest.warns(ConvergenceWarning, match=r"cannot be told from second moments.*accurate=True"):
                fit(model)
        assert not model.converged_
        assert model.n_iter_ == 100_000
        assert model.path_.steps_to(1e-8) == np.inf
        assert model.path_.gradient_norm(10**9) >= 0.9 * model.path_.unresolved > 0


@hidden
def test_accurate_moments_see_the_direction(name):
    X, y, settings = HIDDEN[name]
    model = LinearRegressorGD(max_iter=np.inf, **settings).fit_moments(Moments.from_arrays(X, y, accurate=True))
    again = LinearRegressorGD(max_iter=np.inf, **settings).fit(X, y)
    assert model.converged_
    assert model.n_iter_ == pytest.approx(again.n_iter_, rel=0.1)


@hidden
def test_advice_to_standardize_is_given_to_raw_descents_alone(name):
    X, y, settings = HIDDEN[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LinearRegressorGD(**settings).fit_moments(Moments.from_arrays(X, y))
    (text,) = [str(one.message) for one in caught if one.category is ConvergenceWarning]
    assert ("or standardize=True" in text) == ("standardize" in settings)


@hidden
def test_a_diagnosis_of_moments_does_not_know_the_steps(name):
    X, y, settings = HIDDEN[name]
    found = diagnose(Moments.from_arrays(X, y), **{"standardize": True, **settings})
    assert (found.steps, found.steps_known) == (np.inf, False)
    assert "unknown" in str(found)
    assert any("cannot be told from second moments" in one for one in found.advice)
    seen = diagnose(X, y, **{"standardize": True, **settings})
    assert seen.steps_known
    assert 10**6 < seen.steps < np.inf


def test_stepping_says_how_many_steps_are_missing_though_moments_do_not_know():
    """It once said that minus 999 more were needed."""
    X, y, settings = HIDDEN["time stamp"]
    with pytest.warns(ConvergenceWarning, match=r"At this step \d\.\d*e\+\d+ more are needed; with standardize=True"):
        LinearRegressorGD(backend="numpy", max_iter=1000, **settings).fit(X, y)


def test_stepping_that_its_dtype_keeps_above_the_threshold_says_so():
    """Never a negative number of missing steps: by the closed form enough were taken."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=50)
    backend = get_backend("numpy")

    class NeverContent(type(backend)):
        name = "never-content"

        def solve(self, problem, monitor):
            from dataclasses import replace

            return super().solve(replace(problem, threshold=None), monitor)

    with pytest.warns(ConvergenceWarning, match=r"Without rounding \d+ would be enough at this step: float64"):
        LinearRegressorGD(backend=NeverContent(), max_iter=500).fit(X, y)


def test_a_loose_tolerance_or_none_asks_for_no_second_reading():
    """What is hidden decides nothing then: the gradient along it is below the threshold, or not asked for."""
    X, y, settings = HIDDEN["time stamp"]
    loose = LinearRegressorGD(tol=1e3, **settings).fit(X, y)
    fixed = LinearRegressorGD(tol=None, max_iter=1, **settings).fit(X, y)
    assert loose.converged_
    assert not fixed.path_.spectrum.accurate


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["twice", "ten times", "one-hot", "constant", "sum"])
def test_exact_dependence_hides_nothing(kind, standardize, fit_intercept):
    """Moments of dependent columns converge as before: along their null direction the gradient is rounding."""
    columns = {
        "twice": np.c_[NOISE, NOISE],
        "ten times": np.c_[NOISE, 10 * NOISE],
        "one-hot": np.eye(4)[RNG.integers(0, 4, N)],
        "constant": np.c_[NOISE, np.full(N, 0.1)],
        "sum": np.c_[NOISE, OTHER, NOISE + OTHER, 1e3 * NOISE],
    }
    X = columns[kind]
    y = X @ np.arange(1.0, X.shape[1] + 1) + OTHER + 3
    settings = {"standardize": standardize, "fit_intercept": fit_intercept}
    model = LinearRegressorGD(max_iter=10**12, **settings).fit_moments(Moments.from_arrays(X, y))
    assert model.converged_
    assert model.path_.unresolved == 0.0


def test_folds_are_read_again_where_moments_hide_a_direction():
    """Along it the error of the folds falls, however late; by second moments alone it would stay."""
    X, y, settings = HIDDEN["nearly collinear"]
    model = LinearRegressorGDCV(max_iter=9 * 10**15, cv=4, **settings).fit(X, y)
    assert model.n_iter_ > 10**15
    assert model.best_score_ < 0.1 * y.var()


@hidden
def test_the_limit_of_moments_that_hide_a_gradient_is_not_converged(name):
    """No number of steps meets tol by what they know, and inf is no exception."""
    X, y, settings = HIDDEN[name]
    model = LinearRegressorGD(max_iter=np.inf, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        with pytest.warns(ConvergenceWarning, match=r"cannot be told from second moments.*accurate=True"):
            model.fit_moments(Moments.from_arrays(X, y))
    assert not model.converged_
    assert model.n_iter_ == np.inf


def test_all_of_the_movement_may_be_hidden():
    """Nothing that moments resolve moves, and the iterate stays at zeros: relative to them any movement is endless."""
    X = np.array([[1e9, 1.0], [1e9, -1.0], [-1e9, 1.0], [-1e9, -1.0]])
    model = LinearRegressorGD(standardize=False, fit_intercept=False, tol=None, max_iter=10)
    with pytest.warns(LinAlgWarning, match="may reach 1 of the coefficients after 10 steps"):
        model.fit_moments(Moments.from_arrays(X, X[:, 1]))
    assert not model.coef_.any()


def test_steps_that_moments_do_know_are_told():
    """What is hidden is below the threshold, and decides nothing: no second reading either."""
    X, y, settings = HIDDEN["units far apart"]
    y = y + NOISE
    path = GradientPath.from_moments(Moments.from_arrays(X, y), learning_rate=1e-22, **settings)
    needed = path.steps_to(1e-8)
    assert 0 < path.unresolved < 0.5 * path.reference.threshold(1e-8, path.spectrum.largest)
    assert 10**4 < needed < np.inf
    model = LinearRegressorGD(learning_rate=1e-22, max_iter=10, **settings)
    for fit in (lambda: model.fit(X, y), lambda: model.fit_moments(path.moments)):
        with pytest.warns(ConvergenceWarning, match=f"At this step {needed - 10} more are needed"):
            fit()
        assert not model.path_.spectrum.accurate
    assert LinearRegressorGD(tol=1e3, **settings).fit(X, y).path_.spectrum.accurate is False
