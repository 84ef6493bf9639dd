"""The map z = (x - mean) / scale, on its own and as the estimator reports it."""

import numpy as np
import pytest

import fssgd._estimators.fitting
from exact import EPS, Descent, error
from fssgd import LinearRegressorGD
from fssgd._descent.coordinates import Coordinates
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
    coordinates = Coordinates.of_columns(MEAN, VARIANCE, np.array([5.0]), settings)
    np.testing.assert_array_equal(coordinates.mean, mean)
    np.testing.assert_array_equal(coordinates.scale, scale)
    np.testing.assert_array_equal(coordinates.target_mean, [5.0 if settings.fit_intercept else 0.0])


def coordinates_of(fit_intercept=True, single_output=False, n_outputs=2):
    mean = np.array([3.0, -2.0, 0.5]) if fit_intercept else np.zeros(3)
    target_mean = np.array([4.0, -8.0])[:n_outputs] if fit_intercept else np.zeros(n_outputs)
    scale = np.array([2.0, 0.25, 8.0])  # powers of two: rounding is in sums only
    return Coordinates(mean, scale, target_mean, fit_intercept, single_output)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_both_ways_are_inverse_and_predict_the_same(fit_intercept):
    rng, coordinates = np.random.default_rng(1), coordinates_of(fit_intercept)
    theta, X = rng.normal(size=coordinates.shape), rng.normal(size=(20, 3))
    weights, centred_intercept = coordinates.split(theta)
    np.testing.assert_array_equal(coordinates.join(weights, centred_intercept), theta)
    coef, intercept = coordinates.to_user(theta)
    np.testing.assert_array_equal(coef, weights / coordinates.scale[:, None])
    scaled = (X - coordinates.mean) / coordinates.scale @ weights + centred_intercept + coordinates.target_mean
    size = EPS * (np.abs(coef).sum() + np.abs(coordinates.target_mean).sum())
    np.testing.assert_allclose(X @ coef + intercept, scaled, rtol=0, atol=50 * size)
    assert fit_intercept or not intercept.any()
    np.testing.assert_allclose(coordinates.from_user(coef, intercept), theta, rtol=0, atol=8 * size)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_differences_of_iterates_go_to_the_users_units_without_the_means_of_y(fit_intercept):
    rng, coordinates = np.random.default_rng(2), coordinates_of(fit_intercept)
    one, other = rng.normal(size=(2, *coordinates.shape))
    pairs = zip(coordinates.to_user(one), coordinates.to_user(other), strict=True)
    coef, intercept = (a - b for a, b in pairs)
    found = coordinates.linear_to_user(one - other)
    np.testing.assert_allclose(found[int(fit_intercept) :], coef, rtol=0, atol=50 * EPS * np.abs(coef).max())
    if fit_intercept:
        np.testing.assert_allclose(found[0], intercept, rtol=0, atol=50 * EPS * (np.abs(coef).sum() + 20))


def test_an_iterate_moves_to_other_coordinates_and_predicts_the_same():
    rng, one, other = np.random.default_rng(3), coordinates_of(), coordinates_of(fit_intercept=False)
    theta = rng.normal(size=one.shape)
    new = Coordinates(one.mean + 1, one.scale * 4, one.target_mean - 2, True)
    for a, b in zip(one.to_user(theta), new.to_user(new.moved_from(theta, one)), strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=100 * EPS * np.abs(a).max())
    assert other.moved_from(theta, one).shape == (3, 2)  # an intercept that is not fitted is dropped
    _, intercept = one.to_user(one.moved_from(theta[:3], other))  # and one that was not is 0 in the user's units
    np.testing.assert_allclose(intercept, 0.0, rtol=0, atol=1000 * EPS)


def test_fitted_attributes_have_the_shapes_of_scikit_learn():
    theta = np.arange(8.0).reshape(4, 2)
    several, one = coordinates_of(), coordinates_of(single_output=True, n_outputs=1)
    assert [a.shape for a in several.as_fitted(*several.to_user(theta))] == [(2, 3), (2,)]
    assert [a.shape for a in one.as_fitted(*one.to_user(theta[:, :1]))] == [(3,), ()]
    assert [a.shape for a in several.as_fitted(*several.to_user(np.stack([theta] * 5)))] == [(5, 2, 3), (5, 2)]


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
        monkeypatch.setattr(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", 0)
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
