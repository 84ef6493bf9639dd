"""Choosing the number of steps: folds, scores, and scikit-learn's contract."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from exact import EPS
from fssgd import DivergenceError, GradientPath, LinearRegressorGD, LinearRegressorGDCV
from strategies import CI, Data, problems, stable_ratios

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 60)) @ np.diag(np.logspace(0, -2, 60))
Y = X[:, :5] @ np.ones(5) + 0.5 * RNG.normal(size=120)
WEIGHT = RNG.integers(0, 4, size=120).astype(float)
FOLDS = KFold(5, shuffle=True, random_state=0)
GRID = [1, 3, 10, 30, 100, 300, 1000, 3000]


def fold_errors(X, y, splits, ks, weight=None, **settings):
    """Mean over folds, by fitting each fold step by step and scoring its predictions."""
    errors = np.zeros(len(ks))
    for train, test in splits:
        for i, k in enumerate(ks):
            model = LinearRegressorGD(max_iter=k, tol=None, backend="numpy", **settings)
            model.fit(X[train], y[train], None if weight is None else weight[train])
            share = None if weight is None else weight[test]
            error = mean_squared_error(y[test], model.predict(X[test]), sample_weight=share, multioutput="raw_values")
            errors[i] += error.sum() / len(splits)
    return errors


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.slow
def test_fold_errors_equal_those_of_a_grid_search(standardize, alpha):
    settings = {"learning_rate": 0.1, "standardize": standardize, "alpha": alpha}
    model = LinearRegressorGD(tol=None, backend="numpy", **settings)
    search = GridSearchCV(model, {"max_iter": GRID}, cv=FOLDS, scoring="neg_mean_squared_error").fit(X, Y)
    chosen = LinearRegressorGDCV(cv=FOLDS, **settings).fit(X, Y)
    np.testing.assert_allclose(chosen.cv_mse_at(GRID), -search.cv_results_["mean_test_score"], rtol=1e-10)
    assert chosen.best_score_ <= -search.best_score_ * (1 + 1e-12)
    assert chosen.best_score_ == pytest.approx(chosen.cv_mse_at(chosen.n_iter_), rel=1e-12)


@pytest.mark.parametrize(
    "splitter",
    [3, KFold(4, shuffle=True, random_state=1), TimeSeriesSplit(3), ShuffleSplit(3, random_state=0), LeaveOneOut()],
    ids=lambda splitter: str(splitter).partition("(")[0],
)
@pytest.mark.parametrize("kind", ["plain", "weights", "wide", "sparse", "outputs", "no intercept", "one step swings"])
def test_fold_errors_by_hand(splitter, kind):
    n = 24
    A, y, weight = X[:n, :6] + 1.0, Y[:n], None
    settings = {"learning_rate": 0.15}
    if kind == "weights":
        weight = WEIGHT[:n] + 0.5
    elif kind == "wide":
        A, settings = X[:n, :40], {"learning_rate": 0.02}
    elif kind == "outputs":
        y = np.column_stack([y, 3 * RNG.normal(size=n) + 7])
    elif kind == "no intercept":
        settings = {"learning_rate": 0.02, "fit_intercept": False}
    elif kind == "one step swings":
        settings = {"learning_rate": 0.08, "standardize": False}  # 1.4 / L
    model = LinearRegressorGDCV(cv=splitter, max_iter=300, **settings)
    model.fit(sp.csr_array(A) if kind == "sparse" else A, y, weight)
    splits = list((KFold(3) if splitter == 3 else splitter).split(A, y))
    ks = [1, 2, 5, 60]
    expected = fold_errors(A, y, splits, ks, weight, **settings)
    np.testing.assert_allclose(model.cv_mse_at(ks), expected, rtol=1e-9)
    assert model.best_score_ <= expected.min() * (1 + 1e-9)


@given(problems(max_rows=9, alphas=(0.0, 0.3)), stable_ratios, st.integers(2, 3))
@CI
@pytest.mark.slow
def test_fold_errors_against_stepping(data, ratio, n_folds):
    """The definition, in plain NumPy, with constant columns and rows of weight 0."""
    assume(data.L > 0)
    n, eta = len(data.Y), ratio / data.L
    kept = np.ones(n, bool) if data.weight is None else data.weight > 0
    folds = [np.arange(n)[i::n_folds] for i in range(n_folds)]
    assume(all(kept[fold].any() and kept[np.setdiff1d(np.arange(n), fold)].any() for fold in folds))
    splits = [(np.setdiff1d(np.arange(n), fold), fold) for fold in folds]
    model = LinearRegressorGDCV(learning_rate=eta, max_iter=40, cv=splits, **data.options)
    model.fit(data.X, data.Y, data.weight)
    expected, noise = np.zeros(41), 0.0
    for train, test in splits:
        weight = None if data.weight is None else data.weight[train]
        fold = Data(data.X[train], data.Y[train], weight, data.options)
        mean, scale = fold.scaling
        Z = (data.X[test] - mean) / scale
        if data.options["fit_intercept"]:
            Z = np.column_stack([Z, np.ones(len(test))])
        share = data.share[test] / data.share[test].sum()
        residual = data.Y[test] - Z @ fold.iterates(eta, 40)
        expected += np.einsum("i,kit->k", share, residual**2) / n_folds
        distance = fold.bounds(eta, 40)[0]
        size = np.linalg.norm(Z) * np.maximum(distance, 1e-13 * np.abs(fold.iterates(eta, 40)).max((1, 2)))
        noise = noise + 10 * size * (np.sqrt(expected) + size) + 1e3 * EPS * (1 + np.abs(Z).max()) ** 2 * data.rms**2
    found = model.cv_mse_at(np.arange(41))
    assert (np.abs(found - expected) <= 1e-9 * expected + noise + 1e-13 * (data.Y**2).sum()).all()


def test_one_standard_error_takes_fewer_steps():
    best = LinearRegressorGDCV(cv=FOLDS).fit(X, Y)
    sparing = LinearRegressorGDCV(cv=FOLDS, one_standard_error=True).fit(X, Y)
    each = []
    for train, test in FOLDS.split(X):
        model = LinearRegressorGD(learning_rate=best.learning_rate_, max_iter=best.n_iter_, tol=None)
        each.append(mean_squared_error(Y[test], model.fit(X[train], Y[train]).predict(X[test])))
    bound = np.mean(each) + np.std(each, ddof=1) / np.sqrt(5)
    errors = best.cv_mse_at(np.arange(1, best.n_iter_ + 1))
    assert sparing.n_iter_ == 1 + np.argmax(errors <= bound) < best.n_iter_
    assert sparing.best_score_ == pytest.approx(errors[sparing.n_iter_ - 1], rel=1e-12)


def test_generalised_cross_validation_is_the_default():
    for settings in ({}, {"alpha": 0.01}, {"standardize": False, "fit_intercept": False}):
        model = LinearRegressorGDCV(max_iter=5000, **settings).fit(X, Y, WEIGHT)
        scores = model.path_.gcv(np.arange(1, 5001))
        assert model.n_iter_ == 1 + np.argmin(scores)
        assert model.best_score_ == pytest.approx(scores.min(), rel=1e-13)
        assert isinstance(model.n_iter_, int)


def test_a_part_held_out():
    model = LinearRegressorGDCV(criterion="holdout", validation_fraction=0.25, random_state=3).fit(X, Y)
    split = next(ShuffleSplit(1, test_size=0.25, random_state=3).split(X))
    ks = [1, 10, model.n_iter_, 1000]
    expected = fold_errors(X, Y, [split], ks, learning_rate=model.learning_rate_)
    np.testing.assert_allclose(model.cv_mse_at(ks), expected, rtol=1e-9)
    assert model.best_score_ == pytest.approx(expected[2], rel=1e-9)
    assert model.moments_.n_samples == len(X)
    again = LinearRegressorGDCV(criterion="holdout", validation_fraction=0.25, random_state=3).fit(X, Y)
    assert again.n_iter_ == model.n_iter_


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_discrepancy_principle(alpha, outputs):
    y = np.column_stack([Y, Y[::-1]])[:, :outputs]
    model = LinearRegressorGDCV(criterion="discrepancy", noise=0.6, alpha=alpha).fit(X, y, WEIGHT)
    kept = WEIGHT / WEIGHT.sum()

    def error(k):
        fitted = X @ model.path_.coef(k).reshape(outputs, -1).T + model.path_.intercept(k)
        return float((kept @ (y - fitted) ** 2).sum())

    assert error(model.n_iter_) <= outputs * 0.36 < error(model.n_iter_ - 1)
    assert model.best_score_ == pytest.approx(error(model.n_iter_), rel=1e-10)


def test_a_noise_level_out_of_reach_warns():
    model = LinearRegressorGDCV(criterion="discrepancy", noise=0.01, max_iter=50)
    with pytest.warns(ConvergenceWarning, match=r"is 0\.\d+ after max_iter=50 steps, still above the 0\.0001 of noise"):
        model.fit(X, Y)
    assert model.n_iter_ == 50


def test_a_fitted_model_is_the_one_of_that_many_steps():
    model = LinearRegressorGDCV(cv=3).fit(X, np.column_stack([Y, -2 * Y]), WEIGHT)
    right = LinearRegressorGD(max_iter=model.n_iter_, tol=None).fit(X, np.column_stack([Y, -2 * Y]), WEIGHT)
    for name in ("coef_", "intercept_", "scaled_coef_", "mean_", "scale_", "loss_", "learning_rate_"):
        np.testing.assert_allclose(getattr(model, name), getattr(right, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), right.predict(X), rtol=1e-9)
    np.testing.assert_allclose(model.loss_curve_, right.loss_curve_, rtol=1e-9)
    assert (model.backend_, model.converged_, model.n_features_in_) == ("spectral", False, 60)
    assert model.score(X, np.column_stack([Y, -2 * Y])) > 0.5
    single = LinearRegressorGDCV().fit(X.astype(np.float32), Y)
    assert single.coef_.dtype == np.float32
    assert single.coef_.shape == (60,)
    assert np.ndim(single.intercept_) == 0


@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.parametrize("cv", [None, 5])
def test_an_offset_of_y_does_not_change_the_choice_of_folds(offset, cv):
    """Standardised, the intercept is a mode of its own; once it has settled the offset is gone to rounding."""
    near = LinearRegressorGDCV(cv=cv, learning_rate=0.05, max_iter=5000).fit(X, Y)
    far = LinearRegressorGDCV(cv=cv, learning_rate=0.05, max_iter=5000).fit(X, Y + offset)
    assert near.n_iter_ > 10
    settled = 400  # (1 - 2 * 0.05)^400 offset = 5e-10
    np.testing.assert_allclose(far.path_.gcv(settled), near.path_.gcv(settled), rtol=1e-6)
    if cv:
        np.testing.assert_allclose(far.cv_mse_at(settled), near.cv_mse_at(settled), rtol=1e-6)


@pytest.mark.parametrize("cv", [4, 7])
def test_a_step_that_is_too_large(cv):
    """It diverges slowly in some folds and in all; the best k before that is found, and no NaN."""
    L = GradientPath.from_arrays(X, Y).spectrum.largest
    model = LinearRegressorGDCV(learning_rate=2.02 / L, max_iter=10**6, cv=cv).fit(X, Y)
    assert np.isfinite(model.best_score_)
    assert model.n_iter_ < 200
    values = model.cv_mse_at([1, model.n_iter_, 10**4, 10**6, 10**15])
    assert np.isfinite(values[:2]).all()
    assert values[-1] == np.inf
    assert not np.isnan(values).any()
    with pytest.raises(DivergenceError, match=r"learning_rate=100 is above .* the largest stable step for this data"):
        LinearRegressorGDCV(learning_rate=100.0, criterion="discrepancy", noise=1e-3, max_iter=5).fit(X, Y)


def test_data_that_fits_exactly():
    y = X[:, :3] @ [1.0, 2.0, 3.0] + 4.0
    for settings in ({}, {"cv": 5}):
        model = LinearRegressorGDCV(max_iter=10**7, **settings).fit(X[:, :3], y)
        np.testing.assert_allclose(model.coef_, [1.0, 2.0, 3.0], rtol=1e-6)
        assert 0.0 <= model.best_score_ <= 1e-12


def test_ill_conditioned_folds_are_read_again():
    x = np.linspace(0.0, 2.0, 60)
    A, y = x[:, None] ** np.arange(1, 9), np.cos(3 * x) + x
    cv = KFold(3, shuffle=True, random_state=0)
    model = LinearRegressorGDCV(cv=cv, learning_rate=0.1, max_iter=10**12).fit(A, y)
    ks, errors = [10**4, 10**9, 10**11], []
    for train, test in cv.split(A):
        path = GradientPath.from_arrays(A[train], y[train], learning_rate=0.1)
        errors.append([np.mean((y[test] - A[test] @ path.coef(k) - path.intercept(k)) ** 2) for k in ks])
    np.testing.assert_allclose(model.cv_mse_at(ks), np.mean(errors, axis=0), rtol=1e-9)


def test_ill_conditioned_data_is_read_again_for_its_score():
    x = np.linspace(0.0, 2.0, 60)
    A, y = x[:, None] ** np.arange(1, 9), np.cos(3 * x) + x + 1e-4 * RNG.normal(size=60)
    model = LinearRegressorGDCV(learning_rate=0.1, max_iter=10**12).fit(A, y)
    path = GradientPath.from_arrays(A, y, learning_rate=0.1)
    assert model.best_score_ == pytest.approx(path.gcv(model.n_iter_), rel=1e-9)
    assert model.best_score_ <= path.gcv(np.geomspace(1, 1e12, 3000).astype(np.int64)).min() * (1 + 1e-9)


# scikit-learn's contract
REPEATS = "a random part of the rows is not the same once rows are repeated"
UNEQUAL = {f"check_sample_weight_equivalence_on_{kind}_data": REPEATS for kind in ("dense", "sparse")}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (LinearRegressorGDCV(), {}),
        (LinearRegressorGDCV(cv=3), {}),
        (LinearRegressorGDCV(criterion="holdout", random_state=0), UNEQUAL),
    ],
    ids=str,
)
def test_check_estimator(model, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, on_fail=None, expected_failed_checks=expected)
    failed = {f"{r['check_name']}: {r['exception']}" for r in results if r["status"] == "failed"}
    assert failed == set()
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert sum(r["status"] == "passed" for r in results) >= 50


def generators():
    """Folds that are handed out once, each of a kind of its own."""
    yield FOLDS.split(X)
    yield iter(list(FOLDS.split(X)))
    yield map(tuple, FOLDS.split(X))
    yield zip(*map(list, zip(*FOLDS.split(X), strict=True)), strict=True)


@pytest.mark.parametrize("routing", [False, True])
def test_folds_that_are_handed_out_once_survive_all_but_a_fit(routing):
    right = LinearRegressorGDCV(cv=FOLDS).fit(X, Y)
    with sklearn.config_context(enable_metadata_routing=routing):
        for folds in generators():
            model = LinearRegressorGDCV(cv=folds)
            assert model.get_params()["cv"] is folds
            model.get_metadata_routing()
            if routing:
                make_pipeline(model).get_metadata_routing()
            assert type(folds).__name__ in repr(model)
            assert "LinearRegressorGDCV" in model._repr_html_()
            assert model.fit(X, Y).n_iter_ == right.n_iter_
            with pytest.raises(ValueError, match=r"^cv=<.* yields no folds: .* used up by one fit: give a new one"):
                model.fit(X, Y)
            assert model.set_params(cv=list(FOLDS.split(X))).fit(X, Y).fit(X, Y).n_iter_ == right.n_iter_


def test_groups_reach_the_splitter_and_weights_the_fit():
    groups = np.arange(120) // 10
    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearRegressorGDCV(cv=GroupKFold(4).set_split_request(groups=True)).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(X, Y, sample_weight=WEIGHT, groups=groups)
        direct = LinearRegressorGDCV(cv=list(GroupKFold(4).split(X, Y, groups)))
        direct.fit(StandardScaler().fit_transform(X), Y, sample_weight=WEIGHT)
        assert pipeline[-1].n_iter_ == direct.n_iter_
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
        with pytest.raises(TypeError, match=r"unexpected argument.*nothing"):
            model.fit(X, Y, nothing=groups)
    with pytest.raises(ValueError, match="only supported if enable_metadata_routing=True"):
        LinearRegressorGDCV(cv=GroupKFold(4)).fit(X, Y, groups=groups)


def test_copies_and_files(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X[:, :3], columns=list("abc"))
    model = LinearRegressorGDCV(cv=FOLDS, max_iter=500).fit(frame, Y)
    again = pickle.loads(pickle.dumps(model))
    assert again.cv_mse_at(7) == model.cv_mse_at(7)
    np.testing.assert_array_equal(again.path_.coef(5), model.path_.coef(5))
    assert not hasattr(clone(model), "n_iter_")
    model.save(tmp_path / "model.json")
    for loader in (LinearRegressorGDCV, LinearRegressorGD):
        loaded = loader.load(tmp_path / "model.json")
        assert type(loaded) is LinearRegressorGD
        np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
        assert (loaded.max_iter, loaded.learning_rate) == (model.n_iter_, model.learning_rate_)
    np.testing.assert_allclose(model.to_sklearn().predict(frame), model.predict(frame), rtol=1e-14)
    assert "LinearRegressorGDCV" in model._repr_html_()
    assert list(model.feature_names_in_) == list("abc")


def test_a_second_fit_forgets_the_first():
    model = LinearRegressorGDCV(cv=3).fit(X, Y)
    model.set_params(cv=None).fit(X[:, :4], Y)
    assert model.coef_.shape == (4,)
    with pytest.raises(AttributeError, match=r"no folds to go by, since criterion='gcv': fit with cv=5, or use path_"):
        model.cv_mse_at(3)
    with pytest.raises(NotFittedError):
        LinearRegressorGDCV(cv=3).cv_mse_at(3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": 3, "criterion": "holdout"}, r"cv was given, but criterion='holdout' uses no folds: drop one"),
        ({"cv": 3, "criterion": "discrepancy"}, r"cv was given, but criterion='discrepancy' uses no folds"),
        ({"criterion": "discrepancy"}, r"needs the standard deviation of the noise: give it as noise="),
        ({"noise": 1.0}, r"noise was given, but criterion='gcv' does not use it: drop it, or use 'discrepancy'"),
        ({"one_standard_error": True}, r"one_standard_error=True needs folds, but criterion='gcv': give cv, or drop"),
        ({"one_standard_error": True, "cv": ShuffleSplit(1)}, r"needs at least two folds to estimate one: got 1"),
        ({"max_iter": 0}, r"'max_iter' parameter .* must be an int in the range \[1, 9007199254740992\]"),
        ({"max_iter": np.inf}, r"'max_iter' parameter"),
        ({"criterion": "aic"}, r"'criterion' parameter"),
        ({"cv": [(np.arange(5), np.arange(0))]}, r"Fold 0 of 1 has no validation row of positive weight: use fewer"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        LinearRegressorGDCV(**settings).fit(X, Y)


def test_folds_without_weight_and_fits_without_residual_are_refused():
    weight = np.r_[np.zeros(40), np.ones(80)]
    with pytest.raises(ValueError, match=r"Fold 0 of 3 has no validation row of positive weight"):
        LinearRegressorGDCV(cv=3).fit(X, Y, weight)
    with pytest.raises(ValueError, match=r"cannot choose: with n_samples=2 rows, already the first step fits all"):
        LinearRegressorGDCV().fit([[1.0], [2.0]], [1.0, 3.0])


def by_hand(X, y, folds, k):
    errors = []
    for train, test in folds:
        model = LinearRegressorGD(max_iter=k, tol=None, learning_rate=0.1, backend="numpy").fit(X[train], y[train])
        errors.append(np.mean((y[test] - model.predict(X[test])) ** 2))
    return np.mean(errors)


@pytest.mark.parametrize(
    "folds",
    [
        [([4, 5, 6, 7], [0, 0, 0, 1, 2, 3]), ([0, 1, 2, 3], [4, 5, 6, 7])],  # a row validates three times
        [([0, 0, 1, 1, 2, 3], [6, 7]), ([4, 5, 5, 6], [0, 1, 2])],  # a bootstrap
        [([True, False] * 4, [False, True] * 4), ([False, True] * 4, [True, False] * 4)],
    ],
)
def test_folds_of_repeated_rows_and_of_masks(folds):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    folds = [tuple(np.array(rows) for rows in fold) for fold in folds]
    model = LinearRegressorGDCV(learning_rate=0.1, cv=folds).fit(X, y)
    assert model.cv_mse_at(10) == pytest.approx(by_hand(X, y, folds, 10), rel=1e-10)
    alone = LinearRegressorGD(max_iter=model.n_iter_, tol=None, learning_rate=0.1).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-12)
    assert model.moments_.n_samples == 8


def test_folds_and_steps_without_a_score_are_refused():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    with pytest.raises(ValueError, match=r"^cv=\S.* yields no folds: .* A generator is used up by one fit"):
        LinearRegressorGDCV(cv=iter([])).fit(X, y)
    with pytest.raises(ValueError, match=r"is above 2 / L = .*: use a smaller step, or folds"):
        LinearRegressorGDCV(learning_rate=3.0).fit(X, y)


def test_a_constant_target_needs_one_step():
    X = np.random.default_rng(5).normal(size=(30, 3))
    assert LinearRegressorGDCV(learning_rate=0.1).fit(X, np.full(30, 5.0)).best_score_ < 1e-12
