"""What an estimator is told, where it starts, and what a fit leaves behind."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression

from exact import EPS, Descent, error
from fssgd import LinearRegressorGD, Moments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) @ np.diag([1.0, 3.0, 0.5]) + [0.0, 5.0, 1.0]
Y = X @ RNG.normal(size=(3, 2)) + RNG.normal(size=(40, 2)) + 4.0
WEIGHT = RNG.integers(0, 3, size=40).astype(float)
DEFAULTS = {
    "learning_rate": "auto",
    "max_iter": 100_000,
    "tol": 1e-8,
    "standardize": True,
    "fit_intercept": True,
    "alpha": 0.0,
    "backend": "auto",
    "warm_start": False,
}


def test_parameters_are_kept_as_given_and_read_at_fit():
    model = LinearRegressorGD()
    assert model.get_params() == DEFAULTS
    given = {name: object() for name in DEFAULTS}
    assert LinearRegressorGD(**given).get_params() == given  # not validated, converted or copied
    model.set_params(max_iter=3, tol=None, learning_rate=0.1)
    assert clone(model).get_params() == model.get_params()
    model.fit(X, Y)
    assert model.n_iter_ == 3
    assert model.get_params() == {**DEFAULTS, "max_iter": 3, "tol": None, "learning_rate": 0.1}
    assert not hasattr(clone(model), "coef_")
    with pytest.raises(ValueError, match=r"Invalid parameter 'momentum' for estimator LinearRegressorGD"):
        model.set_params(momentum=0.9)
    with pytest.raises(TypeError, match=r"positional"):
        LinearRegressorGD(0.1)


INVALID = [
    ("learning_rate", [0, -0.1, np.inf, np.nan, "fast", None, [0.1]]),
    ("max_iter", [-1, 2.5, np.nan, -np.inf, "inf", None, 1e3]),
    ("tol", [-1e-9, np.nan, "auto"]),
    ("standardize", ["yes", None, 2]),
    ("fit_intercept", ["yes", None, 2]),
    ("alpha", [-1.0, np.inf, np.nan, None, "auto"]),
    ("backend", [None, 3, 0.5]),
    ("warm_start", ["yes", None, 2]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in INVALID for value in values])
@pytest.mark.parametrize("how", ["fit", "partial_fit", "fit_moments"])
def test_an_invalid_parameter_is_named(name, value, how):
    arguments = (Moments.from_arrays(X, Y),) if how == "fit_moments" else (X, Y)
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of LinearRegressorGD must be .* Got "):
        getattr(LinearRegressorGD(**{name: value}), how)(*arguments)


@pytest.mark.parametrize("max_iter", [10**30, 10**400, np.inf], ids=["1e30", "1e400", "inf"])
@pytest.mark.parametrize("tol", [1e-6, None])
def test_any_number_of_steps_by_the_closed_form(max_iter, tol):
    model = LinearRegressorGD(max_iter=max_iter, tol=tol, learning_rate=0.1).fit(X, Y)
    right = Descent(X, Y)
    k = model.n_iter_ if tol else 10**30
    coef, intercept = right.unscale(right.theta(k, 0.1))
    assert error(model.coef_, coef.T) <= 1e-12
    assert error(model.intercept_, intercept) <= 1e-12
    assert model.converged_ == (tol is not None)
    assert model.n_iter_ == (k if tol else max_iter)
    if tol is None:
        with pytest.raises(AttributeError, match=r"loss_curve_ would have .* entries: use path_\.loss\(k\) for the k"):
            _ = model.loss_curve_
        assert not hasattr(model, "loss_curve_")


def test_stepping_takes_a_huge_max_iter_but_not_infinity():
    model = LinearRegressorGD(max_iter=10**30, backend="numpy").fit(X, Y)
    assert model.converged_
    assert model.n_iter_ < 1000
    with pytest.raises(
        ValueError, match=r"max_iter=inf needs the closed form, but the backend is 'numpy': use backend='sp"
    ):
        LinearRegressorGD(max_iter=np.inf, backend="numpy").fit(X, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_no_dtype_is_asked_for_more_than_it_resolves(dtype, backend):
    """The floor of the tolerance is 100 eps sqrt(2 L F), eps that of X."""
    fitted = LinearRegressorGD(tol=0.0, learning_rate=0.1, backend=backend).fit(X.astype(dtype), Y)
    assert fitted.converged_
    right = Descent(X.astype(dtype), Y)
    floor = 100 * float(np.finfo(dtype).eps) * np.sqrt(2 * right.curvature * Y.var(axis=0).sum())
    k = fitted.n_iter_
    norms = [right.gradient_norm(right.theta(step, 0.1)) for step in (k, k - 1)]
    noise = 0.2 if backend == "numpy" else 1e-6  # of the computed gradient, in units of its floor
    assert norms[0] <= floor * (1 + noise)
    assert norms[1] > floor * (1 - noise)


def test_infinitely_many_steps_at_the_limit_of_stability_end_nowhere():
    x = np.array([[-1.0], [1.0]] * 2)
    for tol in (None, 1e-8):
        with pytest.raises(
            ValueError, match=r"The descent has no limit at k = inf: learning_rate=1 is not below 2 / L"
        ):
            LinearRegressorGD(learning_rate=1.0, max_iter=np.inf, standardize=False, tol=tol).fit(x, [0.0, 3.0] * 2)


def test_no_steps_at_all(model):
    fitted = model(max_iter=0, tol=None).fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_, np.zeros((2, 3)))
    np.testing.assert_allclose(fitted.intercept_, np.zeros(2), atol=4 * EPS * Y.max())
    assert fitted.n_iter_ == 0
    assert not fitted.converged_
    np.testing.assert_allclose(fitted.loss_curve_, [(Y**2).mean(axis=0).sum()], rtol=20 * EPS)


def test_a_fit_forgets_the_last_one():
    """No moments, path, losses or names of earlier data."""
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    model = LinearRegressorGD().fit(frame, Y)
    assert model.moments_.n_samples == 40
    model.set_params(backend="numpy").fit(X, Y)
    for attribute in ("moments_", "path_", "feature_names_in_"):
        assert not hasattr(model, attribute)
    model.set_params(backend="spectral", max_iter=2, tol=None).fit(X[:10], Y[:10])
    assert len(model.loss_curve_) == 3
    assert model.moments_.n_samples == 10
    model.fit_moments(Moments.from_arrays(frame, Y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    model.fit_moments(Moments.from_arrays(X, Y))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array, sp.bsr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_formats(model, form, dtype):
    data = np.where(X > 1, X, 0).astype(dtype)
    fitted = model(max_iter=5, tol=None).fit(form(sp.csr_array(data)), Y, sample_weight=WEIGHT)
    right = Descent(data, Y, WEIGHT)
    coef, intercept = right.unscale(right.theta(5, fitted.learning_rate_))
    tolerance = 100 * float(np.finfo(dtype).eps)
    assert fitted.coef_.dtype == dtype
    assert error(fitted.coef_, coef.T) <= tolerance
    assert error(fitted.intercept_, intercept) <= tolerance
    np.testing.assert_allclose(fitted.predict(form(sp.csr_array(data))), fitted.predict(data), rtol=tolerance)


def test_predictions_need_a_fit_and_the_same_columns(model):
    for ask in ("predict", "to_sklearn", "loss_curve_", "path_", "score"):
        with pytest.raises((NotFittedError, AttributeError), match=r"not fitted yet"):
            _ = {
                "predict": lambda m: m.predict(X),
                "score": lambda m: m.score(X, Y),
                "to_sklearn": lambda m: m.to_sklearn(),
            }.get(ask, lambda m, ask=ask: getattr(m, ask))(model())
    with pytest.raises(ValueError, match=r"X has 2 features, but LinearRegressorGD is expecting 3 features as input"):
        model().fit(X, Y).predict(X[:, :2])


def test_the_converged_fit_is_least_squares(model):
    fitted, right = model(tol=1e-12).fit(X, Y, sample_weight=WEIGHT), LinearRegression().fit(X, Y, WEIGHT)
    np.testing.assert_allclose(fitted.coef_, right.coef_, rtol=1e-9)
    assert fitted.score(X, Y, WEIGHT) == pytest.approx(right.score(X, Y, WEIGHT), rel=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 steps"):
        model(max_iter=1, learning_rate=0.01).fit(X, Y)
