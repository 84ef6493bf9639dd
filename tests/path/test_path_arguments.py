"""What a path accepts as k, the shapes it answers with, and the stopping step it predicts."""

import numpy as np
import pytest

import fssgd._path.step_counts
from exact import EPS, Descent, question_data
from fssgd import GradientPath, LinearRegressorGD, Moments

X = np.random.default_rng(1).normal(size=(30, 3)) @ np.diag([1.0, 0.3, 0.1]) + [0.0, 1.0, 0.0]
Y = np.random.default_rng(2).normal(size=(30, 2)) + 1.0
QUERIES = {"coef": (2, 3), "intercept": (2,), "loss": (), "gradient_norm": (), "degrees_of_freedom": (), "gcv": ()}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_an_array_of_k_adds_a_leading_axis(name, alpha):
    path = GradientPath.from_arrays(X, Y, alpha=alpha)
    ask, shape = getattr(path, name), QUERIES[name]
    several = [0, 3, 2**53 + 1, np.inf]
    assert np.shape(ask(3)) == shape
    for ks in (several, tuple(several), np.array(several)):
        assert np.shape(ask(ks)) == (4, *shape)
        np.testing.assert_allclose(ask(ks), np.array([ask(k) for k in several]), rtol=10 * EPS)
    integers = np.arange(5, dtype=np.uint8)
    np.testing.assert_allclose(ask(integers), np.array([ask(int(k)) for k in integers]), rtol=10 * EPS)
    np.testing.assert_array_equal(ask(3.0), ask(3))
    np.testing.assert_array_equal(ask(np.int64(3)), ask(3))
    assert len(ask([])) == 0


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("k", [-1, 2.5, np.nan, -np.inf, [1, -2], np.array([-1, 3]), np.array([0.5])])
def test_a_k_that_is_not_a_step_count_is_refused(name, k):
    with pytest.raises(ValueError, match=r"k must be a non-negative integer or inf, or an array of them; got "):
        getattr(GradientPath.from_arrays(X, Y), name)(k)


@pytest.mark.parametrize("chunk", [1, 64, 1 << 20])
def test_many_k_at_once_are_each_right(monkeypatch, chunk):
    """Fewer and more than fit into one chunk of powers."""
    monkeypatch.setattr(fssgd._path.step_counts, "NUMBERS_AT_ONCE", chunk)
    path = GradientPath.from_arrays(X, Y, learning_rate=0.4)
    losses, coefs = path.loss(np.arange(100)), path.coef(np.arange(100))
    assert losses.shape == (100,)
    for k in (0, 1, 50, 99):
        assert losses[k] == pytest.approx(path.loss(k), rel=4 * EPS)
        np.testing.assert_allclose(coefs[k], path.coef(k), rtol=10 * EPS)


def test_one_output_has_the_shapes_of_linear_regression():
    for path in (GradientPath.from_arrays(X, Y[:, 0]), GradientPath.from_moments(Moments.from_arrays(X, Y[:, 0]))):
        assert path.coef(5).shape == (3,)
        assert np.shape(path.intercept(5)) == ()
        assert np.shape(path.coef([5, 6])) == (2, 3)
        assert np.shape(path.intercept([5, 6])) == (2,)
    column = GradientPath.from_arrays(X, Y[:, :1])
    assert column.coef(5).shape == (1, 3)
    assert column.intercept(5).shape == (1,)
    without = GradientPath.from_arrays(X, Y, fit_intercept=False)
    np.testing.assert_array_equal(without.intercept([1, 2, 3]), np.zeros((3, 2)))


@pytest.mark.parametrize(
    "settings", [{}, {"standardize": False, "learning_rate": 0.3}, {"alpha": 0.05}, {"fit_intercept": False}]
)
@pytest.mark.parametrize("tol", [0.9, 0.1, 1e-3, 1e-8])
def test_steps_to_is_the_first_step_that_meets_tol(settings, tol):
    """And the number of steps of a fit; the threshold is read off the gradient at W = 0 and the best b."""
    path = GradientPath.from_arrays(X, Y, **settings)
    options = {name: value for name, value in settings.items() if name != "learning_rate"}
    start = np.zeros((3 + path.settings.fit_intercept, 2))
    mean, scale = path.coordinates.mean, path.coordinates.scale
    if path.settings.fit_intercept:
        start[-1] = Y.mean(axis=0)
    right = Descent(X, Y, start=start, **options)
    threshold = tol * right.gradient_norm(right.start)
    k = path.steps_to(tol)
    assert path.gradient_norm(k) <= threshold * (1 + 1e-12)
    assert k == 0 or path.gradient_norm(k - 1) > threshold * (1 - 1e-12)
    for backend in ("spectral", "numpy"):
        assert LinearRegressorGD(tol=tol, backend=backend, **settings).fit(X, Y).n_iter_ == k
    np.testing.assert_allclose(scale, right.scale.astype(float), rtol=10 * EPS)
    np.testing.assert_allclose(mean, right.mean.astype(float), rtol=0, atol=10 * EPS)


def test_a_tolerance_below_what_the_dtype_resolves_is_not_asked_for():
    """The floor is 100 eps sqrt(2 L F) with F at W = 0 and the best b."""
    path = GradientPath.from_arrays(X, Y, learning_rate=0.1)
    floor = 100 * EPS * np.sqrt(2 * path.spectrum.largest * Y.var(axis=0).sum())
    k = path.steps_to(0.0)
    assert path.gradient_norm(k) <= floor * (1 + 1e-12) < path.gradient_norm(k - 1) * (1 + 2e-12)
    assert path.steps_to(1e-30) == k


@pytest.mark.parametrize("tol", [-1e-9, np.nan])
def test_an_invalid_tolerance_is_refused(tol):
    with pytest.raises(ValueError, match=r"tol must be a non-negative number, got"):
        GradientPath.from_arrays(X, Y).steps_to(tol)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.inf, np.nan])
def test_an_invalid_learning_rate_is_refused(rate):
    with pytest.raises(ValueError, match=r"learning_rate must be a positive number or 'auto', got"):
        GradientPath.from_arrays(X, Y, learning_rate=rate)


@pytest.mark.parametrize("alpha", [-1.0, np.inf, np.nan])
def test_an_invalid_penalty_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must be a non-negative number, got"):
        GradientPath.from_arrays(X, Y, alpha=alpha)


def test_the_automatic_step_is_the_reciprocal_of_the_curvature():
    path = GradientPath.from_arrays(X, Y, standardize=False, alpha=0.2)
    assert path.learning_rate == pytest.approx(1 / Descent(X, Y, standardize=False, alpha=0.2).curvature, rel=20 * EPS)
    flat = GradientPath.from_arrays(np.zeros((3, 1)), [1.0, 2.0, 3.0], fit_intercept=False)
    assert flat.learning_rate == 1.0
    assert flat.steps_to(1e-8) == 0


def test_a_fit_with_as_many_parameters_as_rows_has_no_cross_validation_score():
    """Its residuals and n - df are both 0: neither a number nor a NumPy warning comes of it."""
    for x, y in (([[1.0], [2.0]], [1.0, 3.0]), (X[:3], Y[:3]), (X[:2], Y[:2])):
        path = GradientPath.from_arrays(x, y)
        assert path.degrees_of_freedom(np.inf) == pytest.approx(len(y), rel=10 * EPS)
        assert not np.isfinite(path.gcv(np.inf))
        assert np.isfinite(path.gcv(0))


def test_weights_of_zero_do_not_count_as_rows():
    weight = np.r_[np.ones(20), np.zeros(10)]
    weighted, fewer = GradientPath.from_arrays(X, Y, weight), GradientPath.from_arrays(X[:20], Y[:20])
    np.testing.assert_allclose(weighted.gcv([1, 10, np.inf]), fewer.gcv([1, 10, np.inf]), rtol=1e-12)


def test_a_fit_carries_its_path():
    x, y = question_data()
    model = LinearRegressorGD(learning_rate=1e-4, max_iter=50, tol=None, standardize=False).fit(x, y)
    np.testing.assert_array_equal(model.path_.coef(50), model.coef_)
    assert model.path_.intercept(50) == model.intercept_
    np.testing.assert_allclose(model.loss_curve_, model.path_.loss(np.arange(51)), rtol=4 * EPS)
    assert model.path_.loss(50) == pytest.approx(model.loss_, rel=4 * EPS)
