"""scikit-learn's contract: parameters, clone, searches, copies, check_estimator, conversion."""

import copy
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fssgd import LinearRegressorGD
from fssgd.backends import get_backend
from helpers import column


def data(n_samples=60, n_features=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, n_features)) * [1, 10, 0.1] + [0, 50, -3]
    return X, X @ [1, 2, 30] + rng.normal(size=n_samples)


def run(code, **settings):
    """Run code in its own process, and return what it printed."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code]
    result = subprocess.run(command, capture_output=True, timeout=180, **settings)
    assert result.returncode == 0, result.stderr.decode()[-2000:]
    return result.stdout.decode().strip()


def test_parameters_can_be_read_set_and_cloned(backend):
    settings = {"learning_rate": 0.1, "max_iter": 7, "tol": None, "standardize": False}
    settings |= {"fit_intercept": False, "alpha": 2.0}
    model = LinearRegressorGD(**settings, backend=backend, warm_start=True)
    assert model.get_params() == {**settings, "backend": backend, "warm_start": True}
    assert clone(model).get_params() == model.get_params()
    X, y = data()
    with pytest.raises(ValueError, match="diverged"):
        model.fit(X, y)
    model.set_params(learning_rate=1e-5, alpha=0.0, warm_start=False).fit(X, y)
    changed = LinearRegressorGD(**{**settings, "learning_rate": 1e-5, "alpha": 0.0}, backend=backend).fit(X, y)
    assert_array_equal(model.coef_, changed.coef_)
    assert not hasattr(clone(model), "coef_")


def test_settings_are_read_at_fit_and_left_alone(backend):
    settings = {"learning_rate": "auto", "max_iter": 5, "tol": None, "backend": backend}
    fitted = LinearRegressorGD(**settings).fit(column(1, 2, 3), [1, 2, 4])
    assert {name: getattr(fitted, name) for name in settings} == settings


def test_a_backend_instance_is_a_parameter_too(backend):
    model = clone(LinearRegressorGD(backend=get_backend(backend), max_iter=3, tol=None))
    assert model.get_params()["backend"] == get_backend(backend)
    assert model.fit(*data()).backend_ == backend


@pytest.mark.parametrize("rates", [[1e-3, 1e-1, 10], [10, 1e-1]])
def test_a_search_marks_a_divergence_as_failed(backend, rates):
    X, y = data()
    regressor = LinearRegressorGD(max_iter=200, tol=None, standardize=False, backend=backend)
    model = make_pipeline(StandardScaler(), regressor)
    search = GridSearchCV(model, {"linearregressorgd__learning_rate": rates}, cv=3)
    with (
        pytest.warns(FitFailedWarning, match=r"(?s)3 fits failed .*DivergenceError.*learning_rate=10 is above"),
        pytest.warns(UserWarning, match="scores are non-finite"),
    ):
        search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert_array_equal(np.isnan(scores), [rate == 10 for rate in rates])
    assert search.best_params_ == {"linearregressorgd__learning_rate": 1e-1}
    assert search.best_score_ > 0.99


def test_a_search_can_raise_a_divergence(backend):
    model = LinearRegressorGD(max_iter=200, tol=None, backend=backend)
    search = GridSearchCV(model, {"learning_rate": [10]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="learning_rate=10 is above"):
        search.fit(*data())


COPIES = {
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "joblib": lambda model, path: joblib.load(joblib.dump(model, path / "model.joblib")[0]),
}


@pytest.mark.parametrize("means", COPIES)
@pytest.mark.parametrize("instance", [False, True])
def test_copies_predict_the_same(backend, means, instance, tmp_path):
    X, y = data()
    model = LinearRegressorGD(max_iter=20, tol=None, backend=get_backend(backend) if instance else backend).fit(X, y)
    other = COPIES[means](model, tmp_path)
    assert_array_equal(other.predict(X), model.predict(X))
    assert_allclose(other.loss_curve_, model.loss_curve_, rtol=1e-15)
    assert other.get_params() == model.get_params()
    assert_array_equal(other.fit(X, y).coef_, model.coef_)


@pytest.mark.slow
def test_a_process_without_tensorflow_predicts_the_same(backend, tmp_path):
    X, y = data()
    models = [LinearRegressorGD(max_iter=20, tol=None, backend=b).fit(X, y) for b in (backend, get_backend(backend))]
    kept = [(model, X, model.predict(X)) for model in models]
    joblib.dump(kept, tmp_path / "models.joblib")
    (tmp_path / "models.pickle").write_bytes(pickle.dumps(kept))
    code = (
        "import pickle, joblib, sys\n"
        "with open('models.pickle', 'rb') as file:\n"
        "    kept = joblib.load('models.joblib') + pickle.load(file)\n"
        "assert len(kept) == 4\n"
        "for model, X, expected in kept:\n"
        "    assert (model.predict(X) == expected).all()\n"
        "    repr(model), model._repr_html_()\n"
        "print('tensorflow' in sys.modules)"
    )
    assert run(code, cwd=tmp_path) == "False"


def test_check_estimator_passes(backend):
    """Skipped checks are listed, since a green run can hide them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(LinearRegressorGD(backend=backend), on_fail=None)
    by_status = {
        status: {f"{r['check_name']}: {r['exception']}" for r in results if r["status"] == status}
        for status in ("failed", "xfail")
    }
    assert by_status == {"failed": set(), "xfail": set()}
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert sum(r["status"] == "passed" for r in results) >= 55


@pytest.mark.parametrize("n_outputs", [None, 1, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore::DeprecationWarning:skl2onnx", "ignore::DeprecationWarning:onnx")
@pytest.mark.slow
def test_a_model_converts_to_onnx(model, n_outputs, fit_intercept, dtype):
    skl2onnx = pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = data()
    X = X.astype(dtype)
    targets = y if n_outputs is None else np.column_stack([y, -y + 1])[:, :n_outputs]
    fitted = model(max_iter=100, tol=None, fit_intercept=fit_intercept).fit(X, targets)
    plain = fitted.to_sklearn()
    assert type(plain) is LinearRegression
    assert_array_equal(plain.predict(X), fitted.predict(X))
    converted = skl2onnx.to_onnx(plain, X[:1])
    session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    (predicted,) = session.run(None, {session.get_inputs()[0].name: X})
    rounding = 10 * np.finfo(dtype).eps * np.abs(X).max(axis=0) @ np.abs(np.atleast_2d(fitted.coef_)).max(axis=0)
    assert_allclose(np.reshape(predicted, np.shape(targets)), fitted.predict(X), atol=rounding)


def test_to_sklearn_returns_an_independent_copy_with_the_names(model):
    pandas = pytest.importorskip("pandas")
    frame, y = pandas.DataFrame(data()[0], columns=["a", "b", "c"]), data()[1]
    fitted = model(max_iter=3, tol=None).fit(frame, y)
    plain = fitted.to_sklearn()
    assert_array_equal(plain.feature_names_in_, ["a", "b", "c"])
    assert plain.n_features_in_ == 3
    before = fitted.coef_.copy()
    plain.coef_ += 1
    assert_array_equal(fitted.coef_, before)
