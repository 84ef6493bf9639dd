"""What is said when a descent does not end well: the numbers, the column, the cure."""

import pickle
import re
import warnings

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from exact import Descent, question_data
from fssgd import DivergenceError, GradientPath, LinearRegressorGD, Moments

X, Y = question_data()
X, Y = X[::10], Y[::10]
LIMIT = 2 / Descent(X, Y, standardize=False).curvature


def number(pattern, text):
    return float(re.search(pattern, text).group(1))


def test_divergence_names_step_limit_column_and_cure(model):
    with pytest.raises(
        DivergenceError, match=r"diverged: by step \d+ the loss had risen\. learning_rate=0\.001 is above"
    ) as caught:
        model(learning_rate=1e-3, standardize=False).fit(X, Y)
    error, text = caught.value, str(caught.value)
    assert isinstance(error, ValueError)
    assert error.learning_rate == 1e-3
    assert error.max_learning_rate == pytest.approx(LIMIT, rel=1e-12)
    assert error.feature == "x0"
    assert 1 <= error.n_iter <= 3
    assert number(r"is above ([\d.e-]+), the largest stable step", text) == pytest.approx(LIMIT, rel=1e-5)
    assert number(r"Use a learning_rate below ([\d.e-]+), or", text) == pytest.approx(LIMIT, rel=1e-5)
    assert text.endswith("or standardize=True, which evens out the scales of the columns.")


def test_divergence_of_standardised_data_does_not_advise_to_standardise(model):
    with pytest.raises(DivergenceError, match=r"or learning_rate='auto'\.$") as caught:
        model(learning_rate=3.0).fit(X, Y)
    assert caught.value.max_learning_rate == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("scale", "feature"), [(1e-3, "the intercept"), (1e3, "column 'size'")])
def test_the_column_to_blame_by_its_name(model, scale, feature):
    frame = pytest.importorskip("pandas").DataFrame({"age": np.sin(Y), "size": X[:, 0] * scale})
    with pytest.raises(DivergenceError, match=rf"the steepest direction is mostly {feature}"):
        model(learning_rate=2.0, standardize=False).fit(frame, Y)


def test_a_step_just_above_the_limit_is_found_where_the_loss_turns(model):
    """F falls for a long while before the steep mode takes over; just below the limit nothing is raised."""
    with pytest.raises(DivergenceError, match=r"diverged") as caught:
        model(learning_rate=LIMIT * 1.001, standardize=False, max_iter=10**5, tol=None).fit(X, Y)
    path = GradientPath.from_arrays(X, Y, learning_rate=LIMIT * 1.001, standardize=False)
    losses = path.loss(np.arange(caught.value.n_iter + 1))
    turn = int(np.argmin(losses))
    assert 0 <= caught.value.n_iter - turn <= 3
    model(learning_rate=LIMIT * 0.999, standardize=False, max_iter=2000, tol=None).fit(X, Y)


def fail():
    LinearRegressorGD(learning_rate=1e-3, standardize=False).fit(X, Y)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_divergence_survives_pickling(protocol):
    with pytest.raises(DivergenceError, match=r"diverged") as caught:
        fail()
    copy = pickle.loads(pickle.dumps(caught.value, protocol))
    assert type(copy) is DivergenceError
    assert str(copy) == str(caught.value)
    assert vars(copy) == vars(caught.value)


@pytest.mark.slow
def test_a_divergence_comes_back_from_another_process():
    with pytest.raises(DivergenceError, match=r"learning_rate=0\.001 is above") as caught:
        joblib.Parallel(n_jobs=2)(joblib.delayed(fail)() for _ in range(2))
    assert caught.value.feature == "x0"


def test_a_fit_that_failed_leaves_the_last_one_alone(model):
    fitted = model(standardize=False, tol=None, max_iter=5).fit(X, Y)
    coef = fitted.coef_.copy()
    with pytest.raises(DivergenceError, match=r"diverged"):
        fitted.set_params(learning_rate=1.0).fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_, coef)


def test_the_warning_counts_the_steps_that_are_missing(model):
    """Gradient norm, threshold, condition number and the steps to go are those of exact arithmetic."""
    fitted = model(learning_rate=1e-4, max_iter=1000, tol=1e-6, standardize=False)
    with pytest.warns(ConvergenceWarning, match=r"took max_iter=1000 steps to a gradient norm of") as caught:
        fitted.fit(X, Y)
    text = str(caught[0].message)
    assert caught[0].filename == __file__
    right = Descent(X, Y, standardize=False, start=[[0.0], [float(Y.mean())]])
    threshold = 1e-6 * right.gradient_norm(right.start)
    reached = Descent(X, Y, standardize=False)
    norm = reached.gradient_norm(reached.theta(1000, 1e-4))
    assert number(r"gradient norm of ([\d.]+), above", text) == pytest.approx(norm, rel=1e-5)
    assert number(r"above the ([\d.e-]+) that tol=1e-06", text) == pytest.approx(threshold, rel=1e-5)
    more = int(number(r"At this step (\d+) more are needed", text))
    assert reached.gradient_norm(reached.theta(1000 + more, 1e-4)) <= threshold * (1 + 1e-9)
    assert reached.gradient_norm(reached.theta(999 + more, 1e-4)) > threshold * (1 - 1e-9)
    assert "with standardize=True and learning_rate='auto', 1 in all from zeros." in text
    eigenvalues = np.linalg.eigvalsh(right.H.astype(float))
    assert number(r"condition number is ([\d.]+)\.", text) == pytest.approx(eigenvalues[1] / eigenvalues[0], rel=1e-5)


def test_exactly_at_the_limit_the_warning_says_that_no_number_of_steps_is_enough(model):
    """h = 2 for both modes: at eta = 1 they swing for ever."""
    x, y = np.array([[-1.0], [1.0]] * 2), np.array([0.0, 3.0] * 2)
    message = r"No number of steps is enough: learning_rate=1 is exactly the largest stable step, 2 / L = 1, "
    with pytest.warns(ConvergenceWarning, match=message):
        fitted = model(learning_rate=1.0, standardize=False, max_iter=7).fit(x, y)
    assert not fitted.converged_


@pytest.mark.parametrize("how", ["fit_moments", "partial_fit"])
def test_fits_from_moments_warn_where_they_were_called(how):
    model = LinearRegressorGD(learning_rate=1e-4, max_iter=10)
    with pytest.warns(ConvergenceWarning, match=r"took max_iter=10 steps") as caught:
        _ = model.partial_fit(X, Y) if how == "partial_fit" else model.fit_moments(Moments.from_arrays(X, Y))
    assert caught[0].filename == __file__


def test_data_too_large_to_decompose_is_warned_about_too(monkeypatch):
    monkeypatch.setattr("fssgd._estimators.fitting.MAX_DECOMPOSITION_SIZE", 0)
    with pytest.warns(ConvergenceWarning, match=r"Raise max_iter, tol, or learning_rate\.$"):
        LinearRegressorGD(learning_rate=1e-4, max_iter=10).fit(X, Y)


@pytest.mark.parametrize("settings", [{"tol": None}, {"tol": 1e-3, "max_iter": 10**6}])
def test_a_fit_that_converges_or_takes_all_its_steps_does_not_warn(model, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(**{"max_iter": 5, **settings}).fit(X, Y)
