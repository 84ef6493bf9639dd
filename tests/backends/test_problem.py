"""The problem a backend is given: its rows, its loss and gradient, and what it takes for rounding."""

import numpy as np
import pytest
import scipy.sparse as sp

from exact import EPS, Descent
from fssgd import Backend, LinearRegressorGD
from fssgd._descent.coordinates import Coordinates
from fssgd._rows.design import Rows
from fssgd.backends import get_backend
from fssgd.backends._problem import Problem, Status

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(40, 3)) + [1.0, 0.0, -2.0]) * (RNG.random((40, 3)) < 0.6)
Y, WEIGHT = RNG.normal(size=(40, 2)) + 5.0, RNG.integers(0, 4, size=40).astype(float)


class Capture(Backend):
    """Hands the problem of a fit to the test."""

    name, closed_form, problem = "capture", False, None

    def solve(self, problem, monitor):
        self.problem = problem
        return get_backend("numpy").solve(problem, monitor)


def problem_of(X, y, weight=None, **settings):
    capture = Capture()
    LinearRegressorGD(backend=capture, **{"max_iter": 1, "tol": None, **settings}).fit(X, y, sample_weight=weight)
    return capture.problem


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_loss_and_gradient_are_those_of_the_definition(form, dtype, weight, standardize, fit_intercept, alpha):
    """F has the relative error n eps of its terms, grad F that of ||A||' ||residual||; eps is that of X."""
    settings = {"standardize": standardize, "fit_intercept": fit_intercept, "alpha": alpha}
    data = X.astype(dtype)
    problem = problem_of(form(data), Y, weight, **settings)
    assert problem.dtype == dtype
    assert problem.rows.matrix.dtype == dtype
    theta = np.random.default_rng(1).normal(size=(3 + fit_intercept, 2))
    right = Descent(data, Y, weight, start=theta, **settings)
    if fit_intercept:  # the problem counts b from the mean of y
        theta[-1] -= problem.rows.coordinates.target_mean
    theta = theta.astype(dtype)
    tolerance = 100 * float(np.finfo(dtype).eps)
    assert problem.loss(theta) == pytest.approx(right.loss(right.start), rel=tolerance)
    gradient = (right.H @ right.start - right.slope).astype(float)
    size = np.abs(right.H).astype(float).max() * 10 + np.abs(right.slope.astype(float)).max()
    np.testing.assert_allclose(problem.gradient(theta), gradient, rtol=0, atol=tolerance * size)
    assert problem.gradient(theta).dtype == dtype
    assert problem.curvature == pytest.approx(right.curvature, rel=1e-12)
    assert problem.threshold is None


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_matvec_and_rmatvec_are_transposes_also_of_a_centred_sparse_design(fit_intercept):
    n_rows = int((WEIGHT > 0).sum())  # rows of weight 0 are left out
    theta, residual = RNG.normal(size=(3 + fit_intercept, 2)), RNG.normal(size=(n_rows, 2))
    sparse = problem_of(sp.csr_array(X), Y, WEIGHT, fit_intercept=fit_intercept).rows
    dense = problem_of(X, Y, WEIGHT, fit_intercept=fit_intercept).rows
    assert sp.issparse(sparse.matrix)
    assert (sparse.offset is not None) == fit_intercept
    np.testing.assert_allclose(sparse.matvec(theta), dense.matrix @ theta, rtol=0, atol=50 * EPS)
    np.testing.assert_allclose(sparse.rmatvec(residual), dense.matrix.T @ residual, rtol=0, atol=50 * EPS)
    np.testing.assert_allclose(
        np.vdot(sparse.matvec(theta), residual), np.vdot(theta, sparse.rmatvec(residual)), atol=200 * EPS
    )


def test_rows_are_weighted_scaled_and_centred():
    mean, scale = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 8.0])
    rows = Rows(X, Y, WEIGHT, Coordinates(mean, scale, np.array([5.0, 6.0]), True))
    share = np.sqrt(WEIGHT / WEIGHT.sum())[:, None]
    np.testing.assert_allclose(rows.matrix[:, :3], (X - [1, 2, 3]) / [2, 4, 8] * share, rtol=4 * EPS, atol=EPS)
    np.testing.assert_array_equal(rows.matrix[:, 3:], share)
    np.testing.assert_allclose(rows.targets, (Y - [5.0, 6.0]) * share, rtol=4 * EPS)
    assert rows.matrix.flags.f_contiguous
    assert np.linalg.norm(rows.sqrt_weights) == pytest.approx(1.0, rel=4 * EPS)


def test_more_rows_than_are_scaled_at_a_time():
    tall = np.random.default_rng(2).normal(size=(9000, 2)) + 3.0
    rows = Rows(tall, tall[:, :1], None, Coordinates(np.array([3.0, 1.0]), np.array([2.0, 5.0]), np.zeros(1), False))
    np.testing.assert_allclose(rows.matrix, (tall - [3, 1]) / [2, 5] / np.sqrt(9000), rtol=4 * EPS, atol=EPS)


def bare(**changes):
    """A problem without an estimator around it."""
    settings = {"start": np.zeros((1, 1)), "learning_rate": 0.1, "max_iter": 10, "threshold": None, "alpha": 0.0}
    settings |= {"fit_intercept": False, "curvature": 2.0, "target_size": 3.0, "dtype": np.dtype(float)}
    return Problem(**{**settings, **changes})


@pytest.mark.parametrize("work", [0, 1000, 10**9])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 99, 100, 101, 12345, 10**30])
def test_chunks_cover_all_steps_in_at_most_a_hundred_equal_ones(monkeypatch, work, max_iter):
    """And none is shorter than ``work``: 40 multiplications a step."""
    monkeypatch.setattr("fssgd.backends._problem.CHUNK_WORK", work)
    rows = Rows(X[:, :1], Y[:, :1], None, Coordinates(np.zeros(1), np.ones(1), np.zeros(1), False))
    ends = list(bare(max_iter=max_iter, rows=rows).chunk_ends())
    assert len(ends) == min(max_iter, len(ends)) <= 100
    sizes = [b - a for a, b in zip([0, *ends], ends, strict=False)]
    assert sum(sizes) == max_iter
    assert len(set(sizes[:-1])) <= 1
    if sizes:
        assert 0 < sizes[-1] <= sizes[0]
        assert sizes[0] >= min(max_iter, work // 50)
        assert work or max_iter <= 50 or len(ends) > 50  # progress is worth reporting


@pytest.mark.parametrize("lowest", [0.0, 1e-30, 1.0])
@pytest.mark.parametrize("size", [0.0, 7.0])
def test_the_rise_of_the_loss_that_rounding_explains(lowest, size):
    """m + 4 d sqrt(m) + d^2 with d = 8 eps (rms + sqrt(L / 2) ||theta||); anything at all for a stable step."""
    for rate, stable in ((0.5, True), (1.0, True), (1.0 + EPS, True), (1.0 + 1e-12, False)):
        problem = bare(learning_rate=rate)  # L = 2
        assert problem.is_stable == stable
        assert np.isinf(problem.highest_loss(lowest, np.full((1, 1), size))) == stable
    for dtype in (np.float64, np.float32):
        d = 8 * float(np.finfo(dtype).eps) * (3.0 + np.sqrt(2.0 / 2) * size)
        found = bare(dtype=np.dtype(dtype), learning_rate=1.01).highest_loss(lowest, np.full((1, 1), size, dtype=dtype))
        assert found == pytest.approx(lowest + 4 * d * np.sqrt(lowest) + d * d, rel=1e-14)
        assert found > lowest


@pytest.mark.parametrize("eta", [1.0, 1.9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_exact_fit_raises_no_false_alarm(eta, dtype):
    """The computed F wobbles about its floor for thousands of steps."""
    x = (np.random.default_rng(3).normal(size=(30, 4)) * [1, 1, 0.2, 3] + 1).astype(dtype)
    y = x @ np.array([1.0, -2.0, 3.0, 0.5]) + 4
    rate = eta / Descent(x, y).curvature
    model = LinearRegressorGD(learning_rate=rate, max_iter=5000, tol=None, backend="numpy").fit(x, y)
    assert model.n_iter_ == 5000
    assert (np.diff(model.loss_curve_[-1000:]) > 0).any()  # so the allowance was needed
    assert model.loss_ < 1e3 * float(np.finfo(dtype).eps) ** 2 * y.var()


def test_a_problem_without_rows_says_what_can_solve_it():
    with pytest.raises(ValueError, match=r"Only the moments of the data are known: .* Use backend='spectral'"):
        bare().rows_in_memory()
    with pytest.raises(
        ValueError, match=r"this problem has none: solve it with a stepping backend, such as backend='nu"
    ):
        get_backend("spectral").solve(bare(), lambda k, theta: False)


def test_a_status_has_the_name_it_prints():
    assert [status.value for status in Status] == ["converged", "max_iter", "diverged", "stopped"]
    assert all(status.value == status.name.lower() for status in Status)


def test_the_penalty_leaves_the_intercept_alone():
    theta = np.array([[1.0, 2.0], [3.0, 4.0]])
    start = np.zeros((2, 2))
    apart = bare(alpha=0.5, fit_intercept=True, start=start).penalty(theta)
    np.testing.assert_array_equal(apart, [[0.5, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(bare(alpha=0.5, start=start).penalty(theta), 0.5 * theta)
    np.testing.assert_array_equal(theta, [[1.0, 2.0], [3.0, 4.0]])
