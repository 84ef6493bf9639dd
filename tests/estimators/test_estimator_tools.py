"""Inside scikit-learn's machinery: pipelines, searches, routing, other processes."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from exact import EPS
from fssgd import LinearRegressorGD, Moments
from fssgd.backends import get_backend

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) + 2.0
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=60)
WEIGHT = RNG.integers(0, 3, size=60).astype(float)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_weights_and_a_start_reach_the_fit_through_a_pipeline(routing):
    model = LinearRegressorGD(max_iter=3, tol=None, learning_rate=0.1)
    model.set_fit_request(sample_weight=True, coef_init=True, intercept_init=False)
    pipeline = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=False)), ("model", model)])
    start = [1.0, 2.0, 3.0]
    pipeline.fit(X, Y, sample_weight=WEIGHT, coef_init=start)
    direct = LinearRegressorGD(max_iter=3, tol=None, learning_rate=0.1)
    direct.fit(StandardScaler().fit_transform(X), Y, sample_weight=WEIGHT, coef_init=start)
    np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
    unweighted = clone_fit(direct, coef_init=start)
    assert not np.allclose(pipeline[-1].coef_, unweighted.coef_, rtol=1e-6)


def clone_fit(model, **given):
    return sklearn.base.clone(model).fit(StandardScaler().fit_transform(X), Y, **given)


def test_weights_and_a_start_reach_every_fit_of_a_search(routing):
    """Weights are sliced with the rows, a start is not."""
    seen = []

    class Watching(LinearRegressorGD):
        def fit(self, X, y, sample_weight=None, coef_init=None, intercept_init=None):
            seen.append((len(X), None if sample_weight is None else len(sample_weight), coef_init))
            return super().fit(X, y, sample_weight, coef_init, intercept_init)

    model = Watching().set_fit_request(sample_weight=True, coef_init=True).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"learning_rate": [0.1, 0.2]}, cv=3)
    search.fit(X, Y, sample_weight=WEIGHT, coef_init=[1.0, 2.0, 3.0])
    assert [(n, m) for n, m, _ in seen] == [(40, 40)] * 6 + [(60, 60)]
    assert all(start == [1.0, 2.0, 3.0] for _, _, start in seen)


@pytest.mark.parametrize("name", ["sample_weight", "coef_init"])
def test_metadata_nobody_asked_for_is_refused(routing, name):
    pipeline = Pipeline([("model", LinearRegressorGD())])
    with pytest.raises(ValueError, match=rf"{name}\] are passed but are not explicitly set as requested or not"):
        pipeline.fit(X, Y, **{name: WEIGHT if name == "sample_weight" else np.zeros(3)})


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite:UserWarning")
def test_a_search_over_backends_and_steps():
    """Steps that diverge are marked failed; instances are parameters like names."""
    grid = {"learning_rate": [1e-3, 0.3, 10.0], "backend": ["numpy", get_backend("spectral")]}
    search = GridSearchCV(LinearRegressorGD(max_iter=50, tol=None), grid, cv=3)
    with pytest.warns(sklearn.exceptions.FitFailedWarning, match=r"6 fits failed out of a total of 18"):
        search.fit(X, Y)
    scores = search.cv_results_["mean_test_score"].reshape(2, 3)
    np.testing.assert_allclose(scores[0, :2], scores[1, :2], rtol=1e-10)
    assert np.isnan(scores[:, 2]).all()
    assert search.best_params_["learning_rate"] == 0.3


def test_as_a_part_of_larger_estimators():
    pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), LinearRegressorGD(tol=1e-12)).fit(X, Y)
    right = make_pipeline(PolynomialFeatures(2, include_bias=False), LinearRegression()).fit(X, Y)
    np.testing.assert_allclose(pipeline.predict(X), right.predict(X), rtol=1e-9, atol=1e-9)
    target = TransformedTargetRegressor(LinearRegressorGD(), func=np.sinh, inverse_func=np.arcsinh).fit(X, Y)
    assert target.predict(X).shape == Y.shape
    several = MultiOutputRegressor(LinearRegressorGD()).fit(X, np.column_stack([Y, -Y]), sample_weight=WEIGHT)
    np.testing.assert_allclose(several.predict(X)[:, 0], -several.predict(X)[:, 1], rtol=1e-10)
    online = MultiOutputRegressor(LinearRegressorGD())
    online.partial_fit(X[:30], np.column_stack([Y, -Y])[:30])
    online.partial_fit(X[30:], np.column_stack([Y, -Y])[30:])
    np.testing.assert_allclose(online.predict(X)[:, 0], LinearRegressorGD().fit(X, Y).predict(X), rtol=1e-10)


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("max_iter", [10, 10**8, np.inf])
def test_the_html_repr(fitted, max_iter):
    """It evaluates every public property; those that cannot be had must not break it."""
    model = LinearRegressorGD(max_iter=max_iter, tol=None)
    html = (model.fit(X, Y) if fitted else model)._repr_html_()
    assert "LinearRegressorGD" in html
    assert repr(model) == f"LinearRegressorGD(max_iter={max_iter}, tol=None)"


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_to_sklearn(fit_intercept, outputs):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    y = Y if outputs == 0 else np.column_stack([Y, Y**2])[:, :outputs]
    model = LinearRegressorGD(fit_intercept=fit_intercept).fit(frame, y)
    plain = model.to_sklearn()
    assert type(plain) is LinearRegression
    np.testing.assert_array_equal(plain.predict(frame), model.predict(frame))
    assert list(plain.feature_names_in_) == ["a", "b", "c"]
    assert np.shape(plain.coef_) == np.shape(LinearRegression().fit(X, y).coef_)
    assert plain.fit_intercept == fit_intercept
    plain.coef_[...] = 0.0
    assert model.coef_.any()


def test_feature_names_are_checked_in_every_batch():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    model = LinearRegressorGD().partial_fit(frame, Y)
    with pytest.raises(ValueError, match=r"The feature names should match those that were passed during fit"):
        model.partial_fit(frame[["b", "a", "c"]], Y)
    with pytest.raises(ValueError, match=r"The feature names should match those that were passed during fit"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.warns(UserWarning, match=r"X does not have valid feature names, but LinearRegressorGD was fitted with"):
        model.predict(X)
    assert list(model.partial_fit(frame, Y).moments_.feature_names) == ["a", "b", "c"]


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "process": lambda model: joblib.Parallel(n_jobs=2)(joblib.delayed(as_it_is)(model) for _ in range(2))[1],
}


def as_it_is(model):
    return model


@pytest.mark.parametrize("how", ["pickle", "deepcopy", pytest.param("process", marks=pytest.mark.slow)])
@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_copies_are_complete(how, backend):
    """They predict, show their path and losses, and go on learning as the original does."""
    model = LinearRegressorGD(backend=get_backend(backend), warm_start=True).fit(X, Y)
    copied = COPIES[how](model)
    np.testing.assert_allclose(copied.predict(X), model.predict(X), rtol=10 * EPS)
    np.testing.assert_allclose(copied.loss_curve_, model.loss_curve_, rtol=1e-10, atol=1e-14)
    if backend == "spectral":
        ks = [0, 3, np.inf]
        np.testing.assert_allclose(copied.path_.coef(ks), model.path_.coef(ks), rtol=1e-12, atol=1e-14)
    assert copied.fit(X, Y).n_iter_ == 0
    if backend == "spectral":
        np.testing.assert_allclose(copied.partial_fit(X, -Y).coef_, np.zeros(3), atol=1e-9)


def test_a_pickle_holds_one_matrix_of_the_columns():
    wide = np.random.default_rng(1).normal(size=(300, 100))
    model = LinearRegressorGD().fit(wide, wide[:, 0])
    assert len(pickle.dumps(model)) < 1.2 * 8 * 101**2
    assert len(pickle.dumps(LinearRegressorGD(backend="numpy").fit(wide, wide[:, 0]))) < 20_000


@pytest.mark.slow
def test_a_pickle_is_read_by_a_fresh_process(tmp_path):
    model = LinearRegressorGD(alpha=0.1).fit(X, Y)
    joblib.dump((model, Moments.from_arrays(X, Y), model.path_, get_backend("numpy")), tmp_path / "all.joblib")
    code = (
        "import sys, joblib, numpy as np\n"
        "model, moments, path, backend = joblib.load(sys.argv[1])\n"
        "assert backend.name == 'numpy'\n"
        "again = type(model)(alpha=0.1).fit_moments(moments)\n"
        "print(repr([*model.coef_.tolist(), *again.coef_.tolist(), *path.coef(model.n_iter_).tolist()]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "all.joblib"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    np.testing.assert_allclose(np.reshape(eval(done.stdout), (3, 3)), np.tile(model.coef_, (3, 1)), rtol=1e-12)


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
@pytest.mark.slow
def test_folds_in_other_processes(backend):
    model = LinearRegressorGD(backend=backend, max_iter=20, tol=None)
    here, elsewhere = (cross_val_score(model, X, Y, cv=4, n_jobs=n) for n in (None, 2))
    np.testing.assert_allclose(elsewhere, here, rtol=1e-12)
