"""Where a descent starts: at zeros, as told, where the last fit stopped, or with more rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from exact import EPS, Descent, error
from fssgd import LinearRegressorGD, Moments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) @ np.diag([1.0, 3.0, 0.5]) + [0.0, 5.0, 1.0]
Y = X @ RNG.normal(size=(3, 2)) + RNG.normal(size=(40, 2)) + 4.0
WEIGHT = RNG.integers(0, 3, size=40).astype(float)


@pytest.mark.parametrize("start", ["coef", "intercept", "both"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_a_start_is_given_in_the_users_units(model, start, standardize, single):
    y = Y[:, 0] if single else Y
    coef, intercept = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]]), np.array([7.0, -3.0])
    coef, intercept = (coef[0], intercept[0]) if single else (coef, intercept)
    given = {
        "coef_init": coef if start != "intercept" else None,
        "intercept_init": intercept if start != "coef" else None,
    }
    still = model(max_iter=0, tol=None, standardize=standardize).fit(X, y, **given)
    coef, intercept = (
        (0 * coef if given["coef_init"] is None else coef),
        (0 * intercept if start == "coef" else intercept),
    )
    np.testing.assert_allclose(still.coef_, coef, rtol=4 * EPS)
    np.testing.assert_allclose(still.intercept_, intercept, rtol=0, atol=50 * EPS * 10)
    moved = model(max_iter=20, tol=None, standardize=standardize, learning_rate=0.01).fit(X, y, **given)
    plain = Descent(X, y, standardize=standardize)
    theta = np.vstack(
        [np.atleast_2d(coef).T * plain.scale[:, None], np.atleast_2d(intercept) + plain.mean @ np.atleast_2d(coef).T]
    )
    right = Descent(X, y, standardize=standardize)
    right.start = theta
    found = np.atleast_2d(moved.coef_).T
    assert error(found, right.unscale(right.theta(20, 0.01))[0]) <= 1e-12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"coef_init": [1.0, 2.0]},
            r"coef_init has shape \(2,\): expected finite numbers of shape \(3,\), that of the fit",
        ),
        ({"coef_init": [[1.0, 2.0, 3.0]]}, r"coef_init has shape \(1, 3\): expected"),
        ({"coef_init": [1.0, np.nan, 3.0]}, r"coef_init has a value that is not finite: expected"),
        ({"intercept_init": [1.0]}, r"intercept_init has shape \(1,\): expected finite numbers of shape \(\)"),
        ({"intercept_init": np.inf}, r"intercept_init has a value that is not finite"),
    ],
)
def test_a_start_of_another_shape(model, given, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, Y[:, 0], **given)


def test_an_intercept_to_start_from_needs_an_intercept(model):
    with pytest.raises(ValueError, match=r"intercept_init was given, but fit_intercept=False: drop one of the two"):
        model(fit_intercept=False).fit(X, Y[:, 0], intercept_init=1.0)
    model(fit_intercept=False, max_iter=1, tol=None).fit(X, Y[:, 0], intercept_init=0.0)


@pytest.mark.parametrize(
    "settings", [{}, {"standardize": False, "learning_rate": 0.01}, {"fit_intercept": False, "learning_rate": 0.01}]
)
def test_a_warm_start_goes_on_where_the_last_fit_stopped(model, settings):
    settings = {"tol": None, "learning_rate": 0.1, **settings}
    warm = model(warm_start=True, max_iter=15, **settings)
    warm.fit(X, Y + 1e6).fit(X, Y + 1e6)
    once = model(max_iter=30, **settings).fit(X, Y + 1e6)
    np.testing.assert_allclose(warm.coef_, once.coef_, rtol=1e-9)  # b starts 1e6 away
    np.testing.assert_allclose(warm.intercept_, once.intercept_, rtol=1e-12)
    assert warm.n_iter_ == 15
    cold = model(max_iter=15, **settings).fit(X, Y + 1e6)
    np.testing.assert_allclose(cold.coef_, clone(warm).fit(X, Y + 1e6).coef_, rtol=1e-13)  # a clone has no last fit


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_warm_start_on_other_data_begins_at_the_same_predictions(model, standardize, fit_intercept):
    """W and b are re-expressed in the new mean, scale and level."""
    fitted = model(warm_start=True, max_iter=5, tol=None, standardize=standardize, fit_intercept=fit_intercept)
    fitted.fit(X, Y)
    coef, intercept, predicted = fitted.coef_.copy(), fitted.intercept_, fitted.predict(X)
    fitted.set_params(max_iter=0).fit(3.0 * X - 7.0, Y + 50.0)
    np.testing.assert_allclose(fitted.coef_, coef, rtol=20 * EPS)
    np.testing.assert_allclose(fitted.intercept_, intercept, rtol=0, atol=100 * EPS * 50.0)
    np.testing.assert_allclose(fitted.predict(X), predicted, rtol=0, atol=200 * EPS * 50.0)


def test_a_given_start_beats_a_warm_one(model):
    warm = model(warm_start=True, max_iter=5, tol=None).fit(X, Y)
    np.testing.assert_allclose(
        warm.fit(X, Y, coef_init=np.ones((2, 3))).coef_,
        model(max_iter=5, tol=None).fit(X, Y, coef_init=np.ones((2, 3))).coef_,
    )


def test_a_warm_start_at_the_optimum_takes_no_step_and_does_not_warn(model):
    fitted = model(warm_start=True, tol=1e-6).fit(X, Y)
    coef = fitted.coef_.copy()
    assert fitted.fit(X, Y).n_iter_ == 0
    assert fitted.converged_
    np.testing.assert_allclose(fitted.coef_, coef, rtol=10 * EPS)
    with pytest.raises(
        ValueError, match=r"warm_start cannot continue from 3 features and 2 outputs to 2 and 2: fit a new es"
    ):
        fitted.fit(X[:, :2], Y)
    with pytest.raises(ValueError, match=r"warm_start cannot continue from 3 features and 2 outputs to 3 and 1"):
        fitted.fit(X, Y[:, 0])


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_partial_fit_after_fit(backend):
    fitted = LinearRegressorGD(backend=backend).fit(X[:20], Y[:20])
    if backend == "numpy":
        assert not hasattr(fitted, "partial_fit")
        message = (
            r"partial_fit cannot continue from a model that keeps no moments of its data \(backend 'numpy'.*: fit w"
        )
        with pytest.raises(ValueError, match=message):
            fitted.partial_fit(X[20:], Y[20:])
    else:
        fitted.partial_fit(X[20:], Y[20:])
        np.testing.assert_allclose(fitted.coef_, LinearRegressorGD().fit(X, Y).coef_, rtol=1e-12)


def test_partial_fit_always_takes_the_closed_form_from_zeros():
    model = LinearRegressorGD(backend="numpy", warm_start=True, max_iter=7, tol=None, learning_rate=0.1)
    model.partial_fit(X[:10], Y[:10]).partial_fit(X[10:], Y[10:])
    assert model.backend_ == "spectral"
    right = Descent(X, Y)
    assert error(model.coef_, right.unscale(right.theta(7, 0.1))[0].T) <= 1e-12
    assert model.moments_.n_samples == 40


def test_a_batch_that_does_not_fit_is_not_taken_in(tmp_path):
    model = LinearRegressorGD().partial_fit(X, Y)
    for x, y, message in (
        (X[:, :2], Y, r"X has 2 features, but LinearRegressorGD is expecting 3 features as input"),
        (X, Y[:, 0], r"y has shape \(40,\), but earlier batches gave coef_ of shape \(2, 3\): pass the same outputs"),
        (X, Y[:, :1], r"y has shape \(40, 1\), but earlier batches"),
        (np.where(X > 5, np.nan, X), Y, r"Input X contains NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(x, y)
        assert model.moments_.n_samples == 40
    np.testing.assert_allclose(model.partial_fit(X, Y).coef_, LinearRegressorGD().fit(X, Y).coef_, rtol=1e-12)


@pytest.mark.parametrize("y", [Y[:, 0], Y[:, :1], Y], ids=["one output", "one column", "two outputs"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, lambda X: X.astype("f")], ids=["dense", "sparse", "f"])
@pytest.mark.parametrize("dtype", ["d", "f"])
def test_a_later_batch_without_weight_changes_nothing(y, container, dtype):
    model = LinearRegressorGD().partial_fit(X.astype(dtype), y, WEIGHT)
    before = vars(model).copy()
    for nothing in (np.zeros(40), np.zeros(40, dtype=int), np.zeros(40, dtype=bool), 0, -0.0):
        assert model.partial_fit(container(100 * X), -y, nothing) is model
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
    assert model.coef_.dtype == dtype


def test_a_first_batch_without_weight_is_refused_as_by_fit():
    for how in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero number"):
            getattr(LinearRegressorGD(), how)(X, Y, np.zeros(40))
    model = LinearRegressorGD()
    with pytest.raises(ValueError, match="non-zero number"):
        model.partial_fit(X, Y, np.zeros(40))
    assert model.partial_fit(X, Y).moments_.n_samples == 40


def test_a_later_batch_without_weight_is_checked_all_the_same():
    model, none = LinearRegressorGD().partial_fit(X, Y), np.zeros(40)
    for x, y, weight, message in (
        (np.where(X > 5, np.nan, X), Y, none, r"Input X contains NaN"),
        (sp.csr_array(np.where(X > 5, np.inf, X)), Y, none, r"Input X contains infinity"),
        (X, np.where(Y > 0, np.inf, Y), none, r"Input y contains infinity"),
        (X, Y[:, 0], none, r"y has shape \(40,\), but earlier batches gave coef_ of shape \(2, 3\)"),
        (X[:, :2], Y, none, r"X has 2 features, but LinearRegressorGD is expecting 3 features as input"),
        (X, Y, none[:7], r"sample_weight.shape == \(7,\), expected \(40,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(x, y, weight)


@pytest.mark.parametrize("accurate", [False, True])
def test_fit_moments_equals_fit(accurate):
    for y in (Y, Y[:, 0]):
        given = LinearRegressorGD(backend="numpy", tol=1e-5, alpha=0.1).fit_moments(
            Moments.from_arrays(X, y, WEIGHT, accurate=accurate)
        )
        fitted = LinearRegressorGD(tol=1e-5, alpha=0.1).fit(X, y, sample_weight=WEIGHT)
        np.testing.assert_allclose(given.coef_, fitted.coef_, rtol=1e-12)
        np.testing.assert_allclose(given.intercept_, fitted.intercept_, rtol=1e-12)
        assert given.n_iter_ == fitted.n_iter_
        assert given.backend_ == "spectral"
        assert given.n_features_in_ == 3
        assert np.shape(given.coef_) == np.shape(fitted.coef_)
