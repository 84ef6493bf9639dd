"""A path in ten digits: ten noisy points of a parabola in x and x^2, standardised, learning rate 0.1."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fssgd import GradientPath, LinearRegressorGD, Moments

X = np.column_stack([np.arange(10.0), np.arange(10.0) ** 2])
Y = 3 + 2 * X[:, 0] - 0.1 * X[:, 1] + [0.5, -0.3, 0.2, -0.1, 0.4, -0.6, 0.1, 0.3, -0.2, -0.3]


@pytest.fixture(params=["from_arrays", "from_moments"])
def path(request):
    if request.param == "from_arrays":
        return GradientPath.from_arrays(X, Y, learning_rate=0.1)
    return GradientPath.from_moments(Moments.from_arrays(X, Y), learning_rate=0.1)


def test_eigenvalues(path):
    correlation = np.sort(path.eigenvalues / 2)  # H = 2 C; the intercept adds an eigenvalue of 1
    assert_allclose(correlation, [0.0373092629, 1, 1.9626907371], atol=5e-11)


def test_iterates(path):
    assert_allclose(path.coef(100), [1.2676784037, -0.0257450623], atol=5e-11)
    assert_allclose(path.coef(np.inf), [1.9441666667, -0.0981060606], atol=5e-11)
    assert path.loss(np.inf) == pytest.approx(0.1013984848, abs=5e-11)
    assert_allclose(path.coef([0, 100, np.inf])[1:], [path.coef(100), path.coef(np.inf)], rtol=1e-14)


def test_degrees_of_freedom(path):
    assert_allclose(path.degrees_of_freedom([1, 10, 100]), [0.6, 1.9579458777, 2.5271528751], atol=5e-11)
    assert_allclose(path.degrees_of_freedom([0, np.inf]), [0, 3], atol=1e-12)


def test_generalized_cross_validation(path):
    assert_allclose(path.gcv([1, 10, 100]), [65.7266795743, 3.3270977136, 0.6860621482], atol=5e-11)
    scores = path.gcv(np.arange(5000))
    assert np.argmin(scores) == 596
    assert scores[596] == pytest.approx(0.2065963887, abs=5e-11)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_degrees_of_freedom_of_a_penalised_limit(accurate, standardize):
    moments = Moments.from_arrays(X, Y, accurate=accurate)
    path = GradientPath.from_moments(moments, alpha=1.0, standardize=standardize)
    freedom = path.degrees_of_freedom(10**6)
    assert freedom == pytest.approx(np.trace(hat_matrix(X, standardize, alpha=1.0)), rel=1e-9)
    if standardize:  # the filter factors alone would give 3
        assert freedom == pytest.approx(1.698, abs=5e-4)


def hat_matrix(X, standardize, alpha):
    """What takes y to the fitted values of the limit, from the normal equations."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    A = np.hstack([Z, np.ones((len(X), 1))])
    penalty = alpha * np.diag([1.0] * X.shape[1] + [0.0])
    return A @ np.linalg.solve(A.T @ A / len(X) + penalty, A.T / len(X))


WEIGHT = np.array([1, 2, 0, 1, 1, 3, 1, 0.5, 1, 2])


# the trace of the matrix that takes y to the fitted values, column by column: y = unit vectors, as so many outputs
@pytest.mark.parametrize("k", [0, 1, 2, 10, 100])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.1},
        {"learning_rate": 0.1, "alpha": 1.0},
        {"learning_rate": 0.1, "fit_intercept": False, "alpha": 0.1},
        {"standardize": False, "learning_rate": 1e-4},
        {"standardize": False, "alpha": 1.0},
        {"learning_rate": 0.5, "alpha": 0.01},
    ],
)
def test_degrees_of_freedom_and_gcv_by_fits_of_unit_vectors(model, k, weight, settings):
    smoother = model(max_iter=k, tol=None, **settings).fit(X, np.eye(10), sample_weight=weight).predict(X)
    shares = np.ones(10) if weight is None else weight
    error = np.average((Y - smoother @ Y) ** 2, weights=shares)
    freedom = np.trace(smoother)
    for path in (
        GradientPath.from_arrays(X, Y, weight, **settings),
        GradientPath.from_moments(Moments.from_arrays(X, Y, weight), **settings),
    ):
        assert path.degrees_of_freedom(k) == pytest.approx(freedom, rel=1e-10, abs=1e-12)
        score = error / (1 - freedom / np.count_nonzero(shares)) ** 2
        assert path.gcv(k) == pytest.approx(score, rel=1e-8)


HUGE = pytest.param(10**400, id="1e400")  # no float holds it


@pytest.mark.parametrize("k", [10**3, 10**6, 10**6 + 1, 10**20, HUGE])
@pytest.mark.parametrize("quantity", ["coef", "intercept", "loss", "gradient_norm", "degrees_of_freedom"])
def test_an_unstable_descent_grows_without_nan(k, quantity):
    path = GradientPath.from_arrays(X, Y, learning_rate=1.2)
    assert np.all(np.abs(getattr(path, quantity)(k)) > 1e100)


@pytest.mark.parametrize("k", [2**63, 10**30, HUGE])
def test_max_iter_beyond_float64(model, k):
    fitted = model(max_iter=k, learning_rate=0.1, tol=1e-6).fit(X, Y)
    assert fitted.converged_
    assert_allclose(fitted.coef_, [1.9441666667, -0.0981060606], rtol=1e-4)  # tol G / h_min


@pytest.mark.parametrize("k", [2**63, 10**30, HUGE])
@pytest.mark.parametrize("standardize", [True, False])
def test_exactly_as_many_steps_beyond_float64(k, standardize):
    fitted = LinearRegressorGD(max_iter=k, tol=None, standardize=standardize).fit(X, Y)
    assert fitted.n_iter_ == k
    assert_allclose(fitted.coef_, [1.9441666667, -0.0981060606], atol=5e-10)
