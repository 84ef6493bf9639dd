"""The descent as a matrix times y, and the ridge it resembles."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from exact import EPS
from fssgd import GradientPath, LinearRegressorGD, Moments
from fssgd._insight.summary import summarise
from fssgd._path.step_counts import StepCounts
from strategies import CI, Data, problems, stable_ratios

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4)) @ RNG.normal(size=(4, 4))
Y = X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=50)


@given(problems(max_rows=8, alphas=(0.0, 0.3, 2.0)), stable_ratios, st.integers(0, 60), st.booleans())
@CI
def test_covariance_against_the_matrix_itself(data, ratio, k, accurate):
    """Column i of that matrix is where a descent on the unit vector e_i arrives; var(y_i) = 1 / s_i, mean weight 1."""
    assume(data.L > 0)
    eta, kept = ratio / data.L, data.share > 0
    n = int(kept.sum())
    unit = Data(data.X, np.eye(len(data.Y)), data.weight, data.options)
    matrix = unit.iterates(eta, k)[k][:, kept]
    mean, scale = data.scaling
    matrix[: len(scale)] /= scale[:, None]
    if data.options["fit_intercept"]:
        matrix[-1] -= mean @ matrix[: len(scale)]
        matrix = np.roll(matrix, 1, axis=0)
    expected = (matrix / (n * data.share[kept])) @ matrix.T
    moments = Moments.from_arrays(data.X, data.Y, data.weight, accurate=accurate)
    path = GradientPath.from_moments(moments, learning_rate=eta, **data.options)
    assume(path.degrees_of_freedom(k) < n * (1 - 1e-6))
    summary = summarise(path, k, path.coef(k), path.intercept(k))
    found = summary.spread @ summary.spread.T
    size = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    lost = 1 + (np.abs(data.X) / scale).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * size.max() + 1e3 * (1 + k) * EPS * lost**2)
    assert summary.degrees_of_freedom == pytest.approx(float(path.degrees_of_freedom(k)), abs=1e-9 * lost)


@given(problems(max_rows=8, alphas=(0.0, 0.3)), stable_ratios, st.integers(0, 60), st.booleans())
@CI
@pytest.mark.slow
def test_squared_errors_of_each_output(data, ratio, k, accurate):
    assume(data.L > 0)
    moments = Moments.from_arrays(data.X, data.Y, data.weight, accurate=accurate)
    path = GradientPath.from_moments(moments, learning_rate=ratio / data.L, **data.options)
    residual = data.Y - data.Z @ data.iterates(ratio / data.L, k)[k]
    lost = 1 + (np.abs(data.X) / data.scaling[1]).max()
    found = path.squared_errors(StepCounts.of(k))
    size = (1 + k) * EPS * lost * (1 + (data.Y**2).max())
    np.testing.assert_allclose(found, data.share @ residual**2, rtol=1e-8, atol=1e3 * size)


def test_many_steps_at_once_are_each_step_alone():
    path = GradientPath.from_arrays(X, np.column_stack([Y, Y**2]), RNG.uniform(size=50), alpha=0.01, learning_rate=0.3)
    ks = np.array([0, 1, 2, 3, 50, 10**6])
    for name in ("coef", "intercept", "loss", "gradient_norm", "degrees_of_freedom", "gcv", "ridge_equivalent"):
        method = getattr(path, name)
        alone = np.array([method(int(k)) for k in ks])
        for given_as in (ks, list(map(int, ks)), tuple(ks), ks.astype(float)):
            np.testing.assert_allclose(method(given_as), alone, rtol=1e-14, err_msg=name)
        assert method([]).shape[0] == 0
    assert path.coef(ks).shape == (6, 2, 4)
    assert path.intercept(ks).shape == (6, 2)


def test_precisions_are_not_counts():
    """Their unit does not matter to GCV, but a row of weight 2 is not two rows."""
    weight = RNG.integers(1, 3, size=50)
    once = GradientPath.from_arrays(X, Y, weight)
    twice = GradientPath.from_arrays(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    assert GradientPath.from_arrays(X, Y, 7.0 * weight).gcv(20) == pytest.approx(once.gcv(20), rel=1e-12)
    assert twice.loss(20) == pytest.approx(once.loss(20), rel=1e-12)
    assert twice.gcv(20) < once.gcv(20) * (1 - 1e-3)
    absent = GradientPath.from_arrays(np.vstack([X, X]), np.append(Y, 5 * Y), np.append(weight, 0 * weight))
    assert absent.gcv(20) == pytest.approx(once.gcv(20), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_the_ridge_equivalent_shrinks_alike(alpha):
    """To 0.21 of the whole way in every direction, and to first order in those of small curvature."""
    path = GradientPath.from_arrays(X, Y, alpha=alpha, learning_rate=0.01)
    ks = np.array([1, 10, 100, 10**4])
    penalties = path.ridge_equivalent(ks)
    np.testing.assert_allclose(penalties, alpha + 1 / (2 * 0.01 * ks), rtol=1e-15)
    data = path.spectrum.curvature[:4]
    for k, penalty in zip(ks, penalties, strict=True):
        kept = data * path.filter.values(StepCounts(float(k), False))[:4]
        assert (np.abs(kept - data / (data + 2 * penalty)) <= 0.21).all()
    assert path.ridge_equivalent(0) == np.inf
    assert path.ridge_equivalent(np.inf) == alpha
    small = GradientPath.from_arrays(1e-4 * X, Y, standardize=False, learning_rate=0.01, alpha=alpha)
    kept = small.spectrum.curvature[:4] * small.filter.values(StepCounts.of(3))[:4]
    if not alpha:
        np.testing.assert_allclose(kept, small.spectrum.curvature[:4] / (2 * small.ridge_equivalent(3)), rtol=1e-6)


def test_the_ridge_equivalent_on_the_scale_of_scikit_learn():
    """Ridge adds up squared errors: n times the penalty. In the middle of the path the fits are close."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    path = GradientPath.from_arrays(X, Y)
    for k in (3, 10, 30):
        ridge = Ridge(alpha=50 * path.ridge_equivalent(k)).fit(Z, Y)
        model = LinearRegressorGD(max_iter=k, tol=None).fit(X, Y)
        assert np.linalg.norm(model.scaled_coef_ - ridge.coef_) <= 0.21 * np.linalg.norm(path.position(np.inf)[:-1])
    limit = Ridge(alpha=50 * 0.3).fit(Z, Y)
    penalised = GradientPath.from_arrays(X, Y, alpha=0.3)
    np.testing.assert_allclose(penalised.position(np.inf)[:-1, 0], limit.coef_, rtol=1e-9)


def test_ridge_equivalent_is_refused_for_a_divergent_step():
    path = GradientPath.from_arrays(X, Y, learning_rate=3.0)
    message = r"ridge_equivalent is undefined for a divergent step: learning_rate=3 is above 2 / L = 0\.\d+\. Use a sm"
    with pytest.raises(ValueError, match=message):
        path.ridge_equivalent(3)
    with pytest.raises(ValueError, match="k must be a non-negative integer or inf"):
        GradientPath.from_arrays(X, Y).ridge_equivalent(1.5)
