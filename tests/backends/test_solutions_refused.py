"""A backend from elsewhere that returns what is no solution: the error names it and says what is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from fssgd import LinearRegressorGD
from fssgd.backends import Backend, Solution, Status, get_backend

X = np.random.default_rng(0).normal(size=(8, 2))
Y = X @ [1.0, 2.0] + np.arange(8.0)
STEPS = {"max_iter": 5, "tol": None, "learning_rate": 0.1}


class Foreign(Backend):
    """What NumPy finds, but for one thing."""

    name = "foreign"

    def __init__(self, change):
        self.change = change

    def solve(self, problem, monitor):
        return self.change(get_backend("numpy").solve(problem, monitor))


def changed(**fields):
    return Foreign(lambda solution: replace(solution, **fields))


CURVE = r"the losses of iterates 0 to n_iter, real numbers of shape \(5 \+ 1,\), or None"
WRONG = {
    "theta is an array of float64 of shape \\(1, 3\\): expected .* shape of problem.start, \\(3, 1\\)": {
        "theta": np.ones((1, 3))
    },
    "theta is an array of float64 of shape \\(3,\\): expected": {"theta": np.ones(3)},
    "theta is an array of int64 of shape \\(3, 1\\): expected an array of floats": {"theta": np.ones((3, 1), int)},
    "theta is an array of complex128": {"theta": np.ones((3, 1), complex)},
    "theta is an array of object": {"theta": np.ones((3, 1), object)},
    "theta is \\[\\[1.0\\], \\[1.0\\], \\[1.0\\]\\]: expected an array": {"theta": [[1.0]] * 3},
    "theta is an array of float64 of shape .*: expected numbers: .* DIVERGED": {"theta": np.full((3, 1), np.nan)},
    "status is 'done': expected one of Status.CONVERGED, Status.MAX_ITER": {"status": "done"},
    "status is True: expected": {"status": True},
    "status is <Status.CONVERGED.*: expected another, as tol=None asks": {"status": Status.CONVERGED},
    "n_iter is 6: expected an integer from 0 to max_iter=5": {"n_iter": 6},
    "n_iter is -1: expected": {"n_iter": -1},
    "n_iter is 5.0: expected": {"n_iter": 5.0},
    "n_iter is inf: expected": {"n_iter": np.inf},
    "n_iter is True: expected": {"n_iter": True},
    "n_iter is None: expected": {"n_iter": None},
    "loss is None: expected a real number": {"loss": None},
    "loss is nan: expected a number: .* DIVERGED": {"loss": np.nan},
    "loss is \\(1\\+0j\\): expected a real number": {"loss": 1 + 0j},
    "loss is an array of float64 of shape \\(2,\\): expected a real number": {"loss": np.ones(2)},
    "gradient_norm is '0': expected a real number": {"gradient_norm": "0"},
    "gradient_norm is .*nan.*: expected a number": {"gradient_norm": np.float32(np.nan)},
    f"loss_curve is an array of float64 of shape \\(5,\\): expected {CURVE}": {"loss_curve": np.ones(5)},
    f"loss_curve is an array of float64 of shape \\(6, 1\\): expected {CURVE}": {"loss_curve": np.ones((6, 1))},
    f"loss_curve is \\[\\[1\\], 2\\]: expected {CURVE}": {"loss_curve": [[1], 2]},
    f"loss_curve is \\['a', .*: expected {CURVE}": {"loss_curve": ["a"] * 6},
    "path is 'straight': expected a GradientPath or None": {"path": "straight"},
}


@pytest.mark.parametrize("message", WRONG)
def test_fields_that_are_not_what_they_should_be(message):
    with pytest.raises(ValueError, match=rf"^Backend 'foreign' returned a Solution whose {message}"):
        LinearRegressorGD(backend=changed(**WRONG[message]), **STEPS).fit(X, Y)


@pytest.mark.parametrize("result", [None, np.ones((3, 1)), (np.ones((3, 1)), 5), Solution])
def test_a_returned_value_that_is_not_a_solution(result):
    kind = type(result).__name__
    with pytest.raises(TypeError, match=f"^Backend 'foreign' returned a {kind} from solve: expected a fssgd"):
        LinearRegressorGD(backend=Foreign(lambda solution: result), **STEPS).fit(X, Y)


def test_a_run_that_ends_early_without_saying_why():
    early = changed(n_iter=3, loss_curve=None)
    with pytest.raises(ValueError, match=r"returned a Solution of status MAX_ITER after 3 of 5"):
        LinearRegressorGD(backend=early, **STEPS).fit(X, Y)
    stopped = changed(n_iter=3, loss_curve=None, status=Status.STOPPED)
    assert LinearRegressorGD(backend=stopped, **STEPS).fit(X, Y).n_iter_ == 3


def test_a_backend_without_a_name():
    class Nameless(Backend):
        def solve(self, problem, monitor):
            raise AssertionError

    with pytest.raises(TypeError, match=r"^Nameless has no name: set its class attribute name"):
        LinearRegressorGD(backend=Nameless(), **STEPS).fit(X, Y)


def test_other_kinds_of_real_numbers_will_do():
    right = LinearRegressorGD(backend="numpy", **STEPS).fit(X, Y)
    given = Foreign(
        lambda one: replace(
            one, n_iter=np.int32(5), loss=np.float32(one.loss), gradient_norm=1, loss_curve=one.loss_curve.tolist()
        )
    )
    model = LinearRegressorGD(backend=given, **STEPS).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, right.coef_)
    assert model.loss_curve_.dtype == float
    np.testing.assert_array_equal(model.loss_curve_, right.loss_curve_)
