"""The map z = (x - mean) / scale, on its own and as the estimator reports it."""

import numpy as np
import pytest

import fssgd._estimators.fitting
from exact import EPS, Descent, error
from fssgd import LinearRegressorGD
from fssgd._descent.coordinates import Scaling
from fssgd._descent.settings import Settings

MEAN, VARIANCE = np.array([3.0, -2.0, 7.0]), np.array([4.0, 0.25, 0.0])


@pytest.mark.parametrize(
    ("settings", "mean", "scale"),
    [
        (Settings(), MEAN, [2.0, 0.5, 1.0]),
        (Settings(fit_intercept=False), [0.0] * 3, [2.0, 0.5, 1.0]),
        (Settings(standardize=False), [0.0] * 3, [1.0] * 3),
        (Settings(standardize=False, fit_intercept=False), [0.0] * 3, [1.0] * 3),
    ],
)
def test_of_columns(settings, mean, scale):
    scaling = Scaling.of_columns(MEAN, VARIANCE, settings)
    np.testing.assert_array_equal(scaling.mean, mean)
    np.testing.assert_array_equal(scaling.scale, scale)


def test_unscale_and_rescale_are_inverse_and_predict_the_same():
    rng = np.random.default_rng(1)
    scaling = Scaling(np.array([3.0, -2.0, 0.5]), np.array([2.0, 0.25, 8.0]))  # powers of two: rounding is in sums only
    weights, level, X = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(20, 3))
    coef, intercept = scaling.unscale(weights, level)
    np.testing.assert_array_equal(coef, weights / scaling.scale[:, None])
    scaled = (X - scaling.mean) / scaling.scale @ weights + level
    np.testing.assert_allclose(X @ coef + intercept, scaled, rtol=0, atol=50 * EPS * np.abs(coef).sum())
    back, height = scaling.rescale(coef, intercept)
    np.testing.assert_array_equal(back, weights)
    np.testing.assert_allclose(height, level, rtol=0, atol=8 * EPS * np.abs(coef).sum())


COLUMNS = {
    "plain": lambda x: x,
    "offset": lambda x: 1e9 + np.round(x * 64),
    "tiny": lambda x: x * 1e-140,
    "huge": lambda x: x * 1e140,
    "constant": lambda x: 0 * x + 14.62,
}


@pytest.mark.parametrize("route", ["moments", "rows"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_mean_and_scale_of_a_fit(monkeypatch, route, weighted, fit_intercept):
    """Relative error of a mean and of a standard deviation: n eps, times mean / scale for the latter's centring."""
    if route == "rows":
        monkeypatch.setattr(fssgd._estimators.fitting, "LIMIT", 0)
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=60), rng.normal(size=60)
    weight = rng.integers(0, 4, size=60).astype(float) if weighted else None
    X = np.column_stack([make(x) for make in COLUMNS.values()])
    model = LinearRegressorGD(backend="numpy", max_iter=1, tol=None, fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weight)
    right = Descent(X, y, weight, fit_intercept=fit_intercept)
    for j, name in enumerate(COLUMNS):
        assert error(model.scale_[j], float(right.scale[j])) <= 200 * EPS, name
        if fit_intercept:
            assert abs(model.mean_[j] - float(right.mean[j])) <= 200 * EPS * np.abs(X[:, j]).max(), name
    if not fit_intercept:
        assert not model.mean_.any()
    constant = list(COLUMNS).index("constant")
    assert model.scale_[constant] == 1.0
    assert model.mean_[constant] == (14.62 if fit_intercept else 0.0)
    assert model.coef_[constant] == 0.0 or not fit_intercept


def test_without_standardize_mean_and_scale_are_zeros_and_ones():
    model = LinearRegressorGD(standardize=False).fit([[1.0, 5.0], [2.0, 9.0], [4.0, 2.0]], [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(model.mean_, [0.0, 0.0])
    np.testing.assert_array_equal(model.scale_, [1.0, 1.0])
