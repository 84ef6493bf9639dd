"""Standard errors against certified values, statsmodels, and repeated draws of the noise."""

import json
import pickle

import numpy as np
import pytest
from scipy import stats

from exact import DATA, Descent, nist
from fssgd import GradientPath, LinearRegressorGD, LinearRegressorGDCV, Moments
from fssgd._insight.summary import summarise

CERTIFIED = json.loads((DATA / "nist" / "certified.json").read_text())
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) @ RNG.normal(size=(3, 3)) + [5.0, 0.0, -1.0]
Y = X @ [1.0, -1.0, 0.5] + RNG.normal(size=40)
WEIGHT = RNG.integers(0, 4, size=40).astype(float)


def limit(X, y, weight=None, **settings):
    return LinearRegressorGD(max_iter=np.inf, tol=None, **settings).fit(X, y, weight).summary()


def digits(found, right):
    right = np.array(right, float)
    return float(np.min(-np.log10(np.maximum(np.abs(np.asarray(found) - right) / np.abs(right), 1e-16))))


@pytest.mark.parametrize("name", sorted(CERTIFIED))
def test_certified_standard_errors(name):
    A, y, fit_intercept, coefficients = nist(name)
    summary, facts = limit(A, y, fit_intercept=fit_intercept), CERTIFIED[name]
    assert digits(summary.coef, coefficients) >= 7
    assert summary.residual_degrees_of_freedom == pytest.approx(len(y) - len(coefficients), rel=1e-12)
    if float(facts["residual_standard_deviation"]) == 0.0:  # the data fits exactly: to the rounding of y
        assert summary.sigma <= 1e-14 * np.abs(y).max()
        assert (summary.standard_error <= 1e-9 * np.abs(summary.coef)).all()
        return
    # the condition number of Filip's columns times eps is 8e-7, and the rounding of its powers moves the 8th digit
    least = 6 if name == "filip" else 8
    assert digits(summary.standard_error, facts["standard_errors"]) >= least
    assert digits(summary.sigma, facts["residual_standard_deviation"]) >= least


@pytest.mark.parametrize("name", ["norris", "noint1", "noint2", "longley"])
def test_the_limit_is_the_table_of_statsmodels(name):
    api = pytest.importorskip("statsmodels.api")
    A, y, fit_intercept, _ = nist(name)
    right = api.OLS(y, api.add_constant(A) if fit_intercept else A).fit()
    compare(limit(A, y, fit_intercept=fit_intercept), right)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_weights_are_precisions_as_in_statsmodels(standardize, scale):
    api = pytest.importorskip("statsmodels.api")
    kept = WEIGHT > 0
    right = api.WLS(Y[kept], api.add_constant(X[kept]), weights=WEIGHT[kept]).fit()
    summary = limit(X, Y, scale * WEIGHT, standardize=standardize)
    compare(summary, right, sigma=np.sqrt(right.scale / WEIGHT[kept].mean()))
    np.testing.assert_allclose(summary.covariance, right.cov_params(), rtol=1e-8)


def compare(summary, right, sigma=None):
    for found, expected in (
        (summary.coef, right.params),
        (summary.standard_error, right.bse),
        (summary.t_value, right.tvalues),
        (np.column_stack([summary.lower, summary.upper]), right.conf_int()),
        (summary.r_squared, right.rsquared),
        (summary.sigma, np.sqrt(right.scale) if sigma is None else sigma),
        (summary.residual_degrees_of_freedom, right.df_resid),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(summary.p_value, right.pvalues, rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("k", [1, 7, 200])
def test_any_number_of_steps(k, fit_intercept, weight, alpha):
    """In 80 digits: coefficients are a matrix times y, found one unit vector at a time."""
    settings = {"fit_intercept": fit_intercept, "alpha": alpha}
    model = LinearRegressorGD(learning_rate=0.05, max_iter=k, tol=None, **settings).fit(X, Y, weight)
    unit = Descent(X, np.eye(40), weight, **settings)
    theta = unit.theta(k, model.learning_rate_)
    hat = (unit.Z @ theta).astype(float)
    coef, intercept = unit.unscale(theta)
    matrix = np.vstack([intercept, coef]) if fit_intercept else coef
    share = np.ones(40) / 40 if weight is None else weight / weight.sum()
    kept = share > 0
    n, df = int(kept.sum()), float(np.trace(hat))
    rss = n * float(share @ (Y - hat @ Y) ** 2)
    variance = rss / (n - df) / (n * share[kept])
    summary = model.summary(level=0.9)
    np.testing.assert_allclose(summary.covariance, (matrix[:, kept] * variance) @ matrix[:, kept].T, rtol=1e-9)
    np.testing.assert_allclose(summary.standard_error, np.sqrt(matrix[:, kept] ** 2 @ variance), rtol=1e-10)
    assert summary.degrees_of_freedom == pytest.approx(df, rel=1e-10)
    assert summary.sigma == pytest.approx(np.sqrt(rss / (n - df)), rel=1e-10)
    centre = share @ Y if fit_intercept else 0.0
    assert summary.r_squared == pytest.approx(1 - rss / (n * float(share @ (Y - centre) ** 2)), rel=1e-8)
    half = stats.t.ppf(0.95, n - df) * summary.standard_error
    np.testing.assert_allclose(summary.upper - summary.coef, half, rtol=1e-9)
    np.testing.assert_allclose(summary.p_value, 2 * stats.t.sf(np.abs(summary.t_value), n - df), rtol=1e-7)


def test_each_output_has_its_own_noise():
    outputs = np.column_stack([Y, 5 * Y[::-1] + 3])
    both = LinearRegressorGD(max_iter=9, tol=None, learning_rate=0.1).fit(X, outputs, WEIGHT).summary()
    assert both.coef.shape == both.standard_error.shape == both.p_value.shape == (2, 4)
    for j in range(2):
        one = LinearRegressorGD(max_iter=9, tol=None, learning_rate=0.1).fit(X, outputs[:, j], WEIGHT).summary()
        for name in ("coef", "standard_error", "t_value", "lower", "upper", "covariance", "sigma", "r_squared"):
            np.testing.assert_allclose(getattr(both, name)[j], getattr(one, name), rtol=1e-9, err_msg=name)
    assert str(both).count("std err") == 2
    assert "Output 1" in str(both)


@pytest.mark.parametrize("outputs", [1, 2])
def test_r_squared_says_whether_it_is_centred(outputs):
    y = Y if outputs == 1 else np.column_stack([Y, Y**2])
    for fit_intercept, kind in ((True, "centred"), (False, "uncentred")):
        model = LinearRegressorGD(max_iter=np.inf, tol=None, fit_intercept=fit_intercept).fit(X, y)
        summary = model.summary()
        assert str(summary).count(f"R-squared, {kind:<9} ") == outputs
        assert summary.to_dict()["fit_intercept"] is fit_intercept
        total = y.var(axis=0) + (0 if fit_intercept else y.mean(axis=0) ** 2)
        right = 1 - ((y - model.predict(X)) ** 2).mean(axis=0) / total
        np.testing.assert_allclose(summary.r_squared, right, rtol=1e-9)


def test_it_prints_and_converts():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["width", "height", "<b>"])
    model = LinearRegressorGDCV(max_iter=50).fit(frame, Y)
    summary = model.summary(level=0.9)
    assert summary.names == ["intercept", "width", "height", "<b>"]
    text = str(summary)
    assert f"{model.n_iter_} steps" in text
    for word in ("std err", "P>|t|", "[0.05", "0.95]", "R-squared", "sigma", "degrees of freedom", "width"):
        assert word in text
    assert f"{summary.standard_error[1]:.5g}" in text
    assert "&lt;b&gt;" in summary._repr_html_()
    table = summary.to_frame()
    assert list(table.index) == summary.names
    np.testing.assert_array_equal(table["standard_error"], summary.standard_error)
    plain = json.loads(json.dumps(summary.to_dict()))
    assert plain["coef"] == summary.coef.tolist()
    assert plain["n_iter"] == model.n_iter_
    several = LinearRegressorGD(max_iter=5, tol=None).fit(frame, np.column_stack([Y, Y])).summary().to_frame()
    assert several.index.names == ["output", "parameter"]
    assert len(several) == 8
    with pytest.raises(AttributeError):
        summary.level = 0.5


def test_standard_errors_are_zero_where_coefficients_do_not_depend_on_y():
    """Its coefficients do not depend on y; nor does that of a constant column."""
    start = LinearRegressorGD(max_iter=0, tol=None).fit(X, Y).summary()
    np.testing.assert_array_equal(start.standard_error, 0.0)
    np.testing.assert_array_equal(start.t_value[1:], 0.0)
    np.testing.assert_array_equal(start.p_value[1:], 1.0)
    constant = limit(np.column_stack([X, np.full(40, 3.0)]), Y)
    assert (constant.coef[-1], constant.standard_error[-1], constant.t_value[-1], constant.p_value[-1]) == (0, 0, 0, 1)
    np.testing.assert_allclose(constant.standard_error[:-1], limit(X, Y).standard_error, rtol=1e-10)
    level = limit(X, np.full(40, 2.0))
    assert level.r_squared == 1.0
    assert level.sigma == 0.0


@pytest.mark.parametrize("how", ["pickle", "moments", "batches", "accurate"])
def test_it_needs_moments_only(how):
    model = LinearRegressorGD(max_iter=20, tol=None, learning_rate=0.1)
    right = model.fit(X, Y, WEIGHT).summary()
    if how == "pickle":
        model = pickle.loads(pickle.dumps(model))
    elif how == "batches":
        model = LinearRegressorGD(max_iter=20, tol=None, learning_rate=0.1)
        model.partial_fit(X[:20], Y[:20], WEIGHT[:20]).partial_fit(X[20:], Y[20:], WEIGHT[20:])
    else:
        model.fit_moments(Moments.from_arrays(X, Y, WEIGHT, accurate=how == "accurate"))
    np.testing.assert_allclose(model.summary().standard_error, right.standard_error, rtol=1e-11)


def test_wide_data_stopped_early():
    A = RNG.normal(size=(12, 30))
    model = LinearRegressorGD(max_iter=5, tol=None, standardize=False).fit(A, A[:, 0])
    summary = model.summary()
    assert np.isfinite(summary.standard_error).all()
    assert 0 < summary.residual_degrees_of_freedom < 12
    with pytest.raises(ValueError, match=r"inf steps the fit uses up 12 of 12 degrees of freedom .* take fewer steps"):
        limit(A, A[:, 0])


def test_models_without_moments_and_invalid_levels_are_refused():
    model = LinearRegressorGD(backend="numpy", max_iter=3, tol=None).fit(X, Y)
    for kind in (ValueError, AttributeError):
        with pytest.raises(
            kind, match=r"summary cannot continue from a model that keeps no moments .* backend='spectral'"
        ):
            model.summary()
    with pytest.raises(ValueError, match="not fitted yet"):
        LinearRegressorGD().summary()
    for level in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match=rf"level must be a number between 0 and 1, such as 0.95; got {level}"):
            LinearRegressorGD().fit(X, Y).summary(level=level)


def test_intervals_cover_the_expectation():
    """Noise drawn 2000 times: 90 % intervals hold the mean of the estimate 90 % of the time."""
    rng, truth = np.random.default_rng(5), X @ [1.0, -1.0, 0.5] + 2.0
    draws = truth[:, None] + 0.7 * rng.normal(size=(40, 2000))
    path = GradientPath.from_arrays(X, draws, learning_rate=0.2)
    target = GradientPath.from_arrays(X, truth, learning_rate=0.2)
    summary = summarise(path, 12, path.coef(12), path.intercept(12), level=0.9)
    expected = np.append(target.intercept(12), target.coef(12))
    inside = ((summary.lower <= expected) & (expected <= summary.upper)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.9, atol=4 * np.sqrt(0.09 / 2000) + 0.01)  # sigma holds a little bias too
    assert np.mean(summary.sigma**2) == pytest.approx(0.49, rel=0.1)


def test_a_descent_that_diverges_has_no_summary():
    X = np.array([[10.0, 1.0], [-10.0, 1.0], [10.0, -1.0], [-10.0, -1.0]] * 3)
    y = X[:, 1] + np.tile([0.1, 0.1, -0.1, -0.1], 3)
    model = LinearRegressorGD(standardize=False, learning_rate=0.0101, max_iter=3, tol=None).fit(X, y)
    with pytest.raises(
        ValueError, match=r"^Degrees of freedom are undefined for a divergent step.* is above 2 / L = 0\.01\."
    ):
        model.summary()
