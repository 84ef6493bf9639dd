"""F in the eigenbasis of its Hessian: every route must describe the same function of theta."""

import numpy as np
import pytest

from exact import EPS, Descent, error, mp, to_exact
from fssgd import Moments
from fssgd._descent.coordinates import Coordinates
from fssgd._descent.settings import Settings
from fssgd._path.decomposition import decompose

ROWS = {"tall": (12, 3), "square": (4, 4), "wide": (4, 7), "deficient": (12, 3)}


def build(shape, weighted, outputs=2):
    """Data of cond(H) below 1e5, X off centre so that raw descents couple W and b."""
    rng = np.random.default_rng([len(shape), weighted])
    n, p = ROWS[shape]
    X, Y = rng.normal(size=(n, p)) + 1.0, rng.normal(size=(n, outputs)) + 3.0
    if shape == "deficient":
        X[:, 2] = X[:, 0] - 2.0 * X[:, 1]
    return X, Y, rng.integers(1, 5, size=n).astype(float) if weighted else None


def decomposed(X, Y, weight, settings, *, accurate, start=None):
    moments = Moments.from_arrays(X, Y, weight, accurate=accurate)
    coordinates = Coordinates.of_columns(moments.mean_x, moments.variance_x, moments.mean_y, settings)
    level = coordinates.target_mean
    theta = np.zeros((X.shape[1] + settings.fit_intercept, Y.shape[1])) if start is None else start.copy()
    if settings.fit_intercept:
        theta[-1] -= level
    return decompose(moments, coordinates, settings, theta), level


settings_grid = [
    pytest.mark.parametrize("shape", ROWS),
    pytest.mark.parametrize("accurate", [False, True]),
    pytest.mark.parametrize("standardize", [False, True]),
    pytest.mark.parametrize("fit_intercept", [False, True]),
    pytest.mark.parametrize("alpha", [0.0, 0.3]),
]


def over_settings(test):
    for mark in settings_grid:
        test = mark(test)
    return test


@over_settings
@pytest.mark.parametrize("zero_start", [False, True])
def test_spectrum_describes_the_loss_and_its_hessian(shape, accurate, standardize, fit_intercept, alpha, zero_start):
    """Eigenvalues are known to eps L, gamma to eps (L ||theta|| + sqrt(2 L F)), F to eps of its terms."""
    settings = Settings("auto", standardize, fit_intercept, alpha)
    X, Y, weight = build(shape, not standardize)
    rng = np.random.default_rng(7)
    start = 0.0 * rng.normal(size=(X.shape[1] + fit_intercept, 2))
    if not zero_start:
        start = rng.normal(size=start.shape)
    spectrum, level = decomposed(X, Y, weight, settings, accurate=accurate, start=start)
    right = Descent(X, Y, weight, standardize=standardize, fit_intercept=fit_intercept, alpha=alpha, start=start)
    L, modes = right.curvature, len(spectrum.eigenvalues)
    tolerance = 100 * EPS * L

    V = spectrum.vectors
    np.testing.assert_allclose(V.T @ V, np.eye(modes), rtol=0, atol=100 * EPS)
    assert spectrum.largest == pytest.approx(L, rel=100 * EPS)
    H, M = right.H.astype(float), (right.H - np.diag(2 * right.penalty)).astype(float)
    np.testing.assert_allclose(V.T @ H @ V, np.diag(spectrum.eigenvalues), rtol=0, atol=tolerance)
    np.testing.assert_allclose(spectrum.curvature, np.diag(V.T @ M @ V), rtol=0, atol=tolerance)
    np.testing.assert_allclose(abs(spectrum.steepest @ H @ spectrum.steepest), L, rtol=100 * EPS)

    slope = (right.H @ right.start - right.slope).astype(float)  # the gradient at the start
    size = L * (np.abs(start).max() + 5.0) + 5.0
    np.testing.assert_allclose(V.T @ slope, spectrum.gradient, rtol=0, atol=100 * EPS * size)
    np.testing.assert_allclose(V @ (V.T @ slope), slope, rtol=0, atol=100 * EPS * size)  # no mode that moves is missing
    null = spectrum.eigenvalues == 0
    assert not spectrum.gradient[null].any()
    inverse = np.where(null, 0.0, 1.0 / np.where(null, 1.0, spectrum.eigenvalues))
    excess = float((spectrum.gradient**2 * inverse[:, None]).sum() / 2)
    at_start = right.loss(right.start)
    assert spectrum.minimum + excess == pytest.approx(at_start, rel=200 * EPS)
    assert spectrum.accurate == (accurate or shape == "wide")


@over_settings
def test_null_space_has_its_exact_dimension(shape, accurate, standardize, fit_intercept, alpha):
    """Rank of the design by hand; a penalty lifts every direction of W, and none of b."""
    X, Y, weight = build(shape, False)
    spectrum, _ = decomposed(X, Y, weight, Settings("auto", standardize, fit_intercept, alpha), accurate=accurate)
    centred = standardize and fit_intercept
    rank = {"tall": 3, "square": 3 if centred else 4, "wide": 3 if centred else 4, "deficient": 2}[shape]
    if fit_intercept:
        n, p = X.shape
        rank = min(rank + 1, n) if not centred else rank + 1
    positive = spectrum.eigenvalues > 0
    if not alpha:
        assert positive.sum() == rank
        assert spectrum.condition_number == pytest.approx(
            spectrum.eigenvalues[positive].max() / spectrum.eigenvalues[positive].min()
        )
    else:
        assert spectrum.eigenvalues.min() > 1e-3  # 0.6 but for b's mode, which the penalty on W leaves positive


def test_a_centred_intercept_is_a_mode_of_its_own():
    X, Y, weight = build("tall", True)
    spectrum, level = decomposed(X, Y, weight, Settings(), accurate=False)
    assert spectrum.eigenvalues[-1] == 2.0
    np.testing.assert_array_equal(spectrum.vectors[-1], [0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(spectrum.gradient[-1], -2.0 * level)


@pytest.mark.parametrize("e", [1e-8, 1e-12, 1e-14])
def test_factors_resolve_eigenvalues_that_a_scatter_matrix_loses(e):
    """X = [[1, 1], [e, 0], [0, e]], H = 2/3 X'X: eigenvalues (2 + e^2) and e^2, times 2/3."""
    X, y = np.array([[1, 1], [e, 0], [0, e]]), np.array([[2.0], [2 * e], [0.0]])
    settings = Settings("auto", False, False)
    accurate, _ = decomposed(X, y, None, settings, accurate=True)
    right = np.array([2 / 3 * e * e, 2 / 3 * (2 + e * e)])
    np.testing.assert_allclose(accurate.eigenvalues[1], right[1], rtol=20 * EPS)
    # sigma is known to eps sigma_max, so h to 2 eps sqrt(h_max h)
    np.testing.assert_allclose(accurate.eigenvalues[0], right[0], rtol=20 * EPS * np.sqrt(right[1] / right[0]))
    plain, _ = decomposed(X, y, None, settings, accurate=False)
    assert plain.eigenvalues[0] == 0.0


def test_eigenvalues_of_an_ill_conditioned_matrix_against_exact_ones():
    X = np.linspace(0, 1, 20)[:, None] ** np.arange(1, 7)
    Y = X[:, :1]
    right = Descent(X, Y)
    exact = np.sort([float(h) for h in mp.eigsy(mp.matrix(right.H.tolist()), eigvals_only=True)])
    for accurate, power in ((False, 1.0), (True, 0.5)):
        found = np.sort(decomposed(X, Y, None, Settings(), accurate=accurate)[0].eigenvalues)
        allowed = 100 * EPS * exact.max() ** power * exact ** (1 - power)
        assert (np.abs(found - exact) <= allowed).all()
    assert exact.max() / exact.min() > 5e7


@pytest.mark.parametrize("accurate", [False, True])
def test_constant_features_and_constant_targets(accurate):
    X = np.column_stack([np.full(6, 0.1), np.arange(6.0)])
    spectrum, _ = decomposed(X, np.full((6, 1), 0.3), None, Settings(), accurate=accurate)
    np.testing.assert_allclose(np.sort(spectrum.eigenvalues), [0.0, 2.0, 2.0], atol=10 * EPS)
    assert spectrum.minimum == 0.0
    assert error(spectrum.gradient[-1], [-0.6]) <= 4 * EPS
    nothing, _ = decomposed(X[:, :1], np.full((6, 1), 0.3), None, Settings("auto", True, False), accurate=accurate)
    assert nothing.largest == pytest.approx(2 * float(to_exact(0.1)) ** 2, rel=4 * EPS)
