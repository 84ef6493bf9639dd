"""Data too large to decompose: column statistics, and the bound on the curvature."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp

import fssgd._estimators.fitting
from exact import EPS, Descent, error, to_exact
from fssgd import DivergenceError, LinearRegressorGD
from fssgd._descent.curvature_bound import curvature_bound
from fssgd._moments.column_statistics import column_statistics

RNG = np.random.default_rng(0)
FORMS = {"dense": np.asarray, "csr": sp.csr_array}
COLUMNS = np.column_stack(
    [
        RNG.normal(size=200) * (RNG.random(200) < 0.1),
        np.round(RNG.normal(size=200) * 64) + 1e9,
        RNG.normal(size=200) * 1e-140,
        RNG.normal(size=200) * 1e140,
        RNG.normal(size=200) + 5.0,
    ]
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_and_variance(form, weighted):
    """Centred before squaring: the mean is right to sqrt(n) eps max|x|, the variance to n eps."""
    weight = RNG.random(200) + 0.1 if weighted else None
    mean, variance, constant = column_statistics(FORMS[form](COLUMNS), weight)
    assert not constant.any()
    share = to_exact(np.ones(200) if weight is None else weight)
    share = share / share.sum()
    exact = to_exact(COLUMNS)
    right_mean, right = share @ exact, share @ (exact - share @ exact) ** 2
    assert (np.abs(mean - right_mean.astype(float)) <= 20 * EPS * np.abs(COLUMNS).max(axis=0)).all()
    np.testing.assert_allclose(variance, right.astype(float), rtol=100 * EPS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("value", [0.0, 0.1, -14.62, 1e9 + 0.1, 1e-140])
def test_constant_columns(form, weighted, value):
    weight = RNG.random(200) + 0.1 if weighted else None
    mean, variance, constant = column_statistics(FORMS[form](np.full((200, 1), value)), weight)
    assert constant.all()
    assert mean[0] == value
    assert variance[0] == 0.0
    almost = np.full((200, 1), value)
    almost[7] += max(abs(value), 1.0) * 1e-10
    _, variance, constant = column_statistics(FORMS[form](almost), weight)
    assert variance[0] > 0.0
    assert not constant[0]


@functools.cache
def basis(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def rotated(values, size, seed=0):
    """The product with a matrix that has these eigenvalues, then zeros, in a random basis."""
    vectors = basis(size, seed)
    values = np.r_[values, np.zeros(size - len(values))]
    return lambda vector: vectors @ (values * (vectors.T @ vector))


SPECTRA = {
    "one": ([3.0], 1),
    "identity": (np.ones(50), 50),
    "low rank": ([3.0], 200),
    "rank three": ([3.0, 2.0, 1e-9], 200),
    "clustered at the top": (1.0 + 1e-9 * np.arange(100), 300),
    "two equal": (np.r_[2.0, 2.0, np.linspace(0, 1.999, 198)], 200),
    "uniform": (np.linspace(0, 1, 400), 400),
    "geometric": (0.5 ** np.arange(300), 300),
    "crowded below": (1.0 - np.linspace(0, 1, 400) ** 2, 400),
    "crowded at zero": (np.linspace(0, 1, 400) ** 8, 400),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("scale", [1.0, 1e-280, 1e-30, 1e30, 1e280])
def test_the_bound_is_above_the_curvature_and_within_its_factor(name, scale):
    values, size = SPECTRA[name]
    product = rotated(np.asarray(values) * scale, size)
    bound, vector = curvature_bound(product, size)
    largest = max(values) * scale
    assert largest * (1 - 100 * EPS) <= bound <= largest / 0.9 * (1 + 100 * EPS)
    assert np.linalg.norm(vector) == pytest.approx(1.0, rel=1e-10)
    assert vector @ product(vector) >= 0.9 * largest * (1 - 100 * EPS)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_bound_of_nothing_is_nothing(size):
    bound, vector = curvature_bound(np.zeros_like, size)
    assert bound == 0.0
    assert np.linalg.norm(vector) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_an_outlier_among_many(seed):
    """The start has next to nothing of the one steep direction."""
    assert curvature_bound(rotated(np.r_[1.2, np.linspace(0, 1, 150)], 200, seed), 200)[0] >= 1.2


@pytest.fixture
def unseen(monkeypatch):
    """Data is taken as too large to decompose."""
    monkeypatch.setattr(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", 0)


WIDE = np.random.default_rng(5).normal(size=(30, 12)) @ np.diag(np.geomspace(1, 0.3, 12)) + 1.0
TARGET = WIDE @ np.arange(12.0) + np.random.default_rng(6).normal(size=30)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settings", [{}, {"alpha": 0.2}, {"fit_intercept": False}, {"standardize": False}])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_over_rows_takes_the_step_and_tolerance_of_a_decomposed_one(unseen, form, settings, weighted):
    weight = np.arange(30.0) % 4 if weighted else None
    right = Descent(WIDE, TARGET, weight, **settings)
    L = right.curvature
    model = LinearRegressorGD(tol=1e-3, max_iter=10**6, **settings).fit(FORMS[form](WIDE), TARGET, sample_weight=weight)
    assert model.backend_ == "numpy"
    assert 0.5 / L <= model.learning_rate_ <= 1 / L * (1 + 100 * EPS)
    k = model.n_iter_
    theta = right.theta(k, model.learning_rate_)
    assert error(model.coef_, right.unscale(theta)[0][:, 0]) <= 1e-10
    assert model.loss_ == pytest.approx(right.loss(theta), rel=1e-10)
    origin = 0 * right.start
    if right.fit_intercept:
        origin[-1] = right.share @ right.y
    threshold = 1e-3 * right.gradient_norm(origin)
    assert right.gradient_norm(theta) <= threshold * (1 + 1e-9)
    assert right.gradient_norm(right.theta(k - 1, model.learning_rate_)) > threshold * (1 - 1e-9)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_divergence_over_rows_names_the_column(unseen, standardize):
    X = WIDE.copy()
    X[:, 4] *= 100 if not standardize else 1
    match = r"is above .*, a step known to be stable for this data \(2 / L"
    with pytest.raises(DivergenceError, match=match) as caught:
        LinearRegressorGD(learning_rate=5.0, standardize=standardize).fit(X, TARGET)
    assert caught.value.max_learning_rate <= 2 / Descent(X, TARGET, standardize=standardize).curvature * (1 + 100 * EPS)
    if not standardize:
        assert caught.value.feature == "x4"


@pytest.mark.parametrize("limit", [0, 4096])
@pytest.mark.parametrize("weighted", [False, True])
def test_entries_stored_twice_add_up(monkeypatch, limit, weighted):
    """A CSR matrix may hold the value 2 as 1 + 1."""
    monkeypatch.setattr(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", limit)
    X = sp.csr_array((np.array([1.0, 1.0, 5.0, 2.0, 7.0, 3.0]), [0, 0, 1, 0, 1, 0], [0, 3, 4, 5, 6]), shape=(4, 2))
    assert not X.has_canonical_format
    weight = np.array([2.0, 1.0, 0.0, 1.0]) if weighted else None
    model = LinearRegressorGD(backend="numpy", max_iter=1, tol=None).fit(X, np.arange(4.0), sample_weight=weight)
    right = Descent(X.toarray(), np.arange(4.0), weight)
    np.testing.assert_allclose(model.mean_, right.mean.astype(float), rtol=4 * EPS)
    np.testing.assert_allclose(model.scale_, right.scale.astype(float), rtol=4 * EPS)


def test_constant_data_over_rows(unseen):
    model = LinearRegressorGD().fit(np.full((6, 3), 7.0), np.full(6, 2.5))
    np.testing.assert_array_equal(model.coef_, np.zeros(3))
    assert model.intercept_ == pytest.approx(2.5, rel=4 * EPS)
    assert LinearRegressorGD(fit_intercept=False).fit(np.zeros((6, 3)), np.ones(6)).learning_rate_ == 1.0
