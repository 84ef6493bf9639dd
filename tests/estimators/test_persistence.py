"""Models as JSON: nothing is lost, nothing is run, nothing damaged is believed."""

import json
import stat

import numpy as np
import pytest

from fssgd import LinearRegressorGD, Moments
from fssgd.backends import get_backend

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)) + 2.0, RNG.normal(size=(30, 2)) + 1.0
ATTRIBUTES = ["coef_", "intercept_", "scaled_coef_", "scaled_intercept_", "mean_", "scale_", "n_iter_"]
ATTRIBUTES += ["learning_rate_", "loss_", "converged_", "backend_", "n_features_in_"]


def frame():
    return pytest.importorskip("pandas").DataFrame(X, columns=["one", "zwei", "три"])


FITS = {
    "defaults": lambda: LinearRegressorGD().fit(X, Y[:, 0]),
    "several outputs": lambda: LinearRegressorGD(tol=1e-4, alpha=0.5).fit(X, Y),
    "one output in a column": lambda: LinearRegressorGD().fit(X, Y[:, :1]),
    "without intercept": lambda: LinearRegressorGD(fit_intercept=False).fit(X, Y),
    "the limit": lambda: LinearRegressorGD(max_iter=np.inf, tol=None).fit(X, Y),
    "beyond float": lambda: LinearRegressorGD(max_iter=10**30, tol=None).fit(X, Y),
    "float32": lambda: LinearRegressorGD().fit(X.astype(np.float32), Y),
    "frame": lambda: LinearRegressorGD().fit(frame(), Y[:, 0]),
    "stepping": lambda: LinearRegressorGD(backend=get_backend("numpy"), standardize=False, tol=1e-2).fit(X, Y),
    "NumPy scalars": lambda: LinearRegressorGD(
        learning_rate=np.float32(0.1), max_iter=np.int64(7), tol=None, fit_intercept=np.bool_(True)
    ).fit(X, Y),
    "moments": lambda: LinearRegressorGD().fit_moments(Moments.from_arrays(frame(), Y)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


@pytest.mark.parametrize("name", FITS)
def test_every_digit_survives(name, path):
    model = FITS[name]()
    model.save(path)
    loaded = LinearRegressorGD.load(str(path))
    for attribute in ATTRIBUTES:
        before, after = getattr(model, attribute), getattr(loaded, attribute)
        np.testing.assert_array_equal(before, after, err_msg=attribute)
        assert np.shape(before) == np.shape(after)
        assert np.asarray(before).dtype == np.asarray(after).dtype or attribute in (
            "n_iter_",
            "learning_rate_",
            "loss_",
        )
    params, expected = loaded.get_params(), model.get_params()
    expected["backend"] = getattr(expected["backend"], "name", expected["backend"])
    assert params == expected
    new = frame() if hasattr(model, "feature_names_in_") else X
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    assert list(getattr(loaded, "feature_names_in_", [])) == list(getattr(model, "feature_names_in_", []))
    again = path.with_name("again.json")
    loaded.save(again)
    assert again.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


def test_the_document_is_as_designed(path):
    LinearRegressorGD(max_iter=np.inf, tol=None).fit(X, Y[:, 0]).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    keys = {"format", "version", "params", "coef", "intercept", "scaled_coef", "scaled_intercept", "mean", "scale"}
    assert keys | {"n_iter", "learning_rate", "loss", "converged", "backend", "feature_names"} <= document.keys()
    assert document["format"] == "fssgd.LinearRegressorGD"
    assert document["version"] == 1
    assert document["n_iter"] == document["params"]["max_iter"] == "inf"
    assert document["feature_names"] is None


def test_a_loaded_model_goes_on(path):
    """It can be fitted again, warm or cold, but keeps no moments for partial_fit, path_ or an unrecorded curve."""
    model = LinearRegressorGD(warm_start=True, tol=1e-6).fit(X, Y + 1e6)
    model.save(path)
    loaded = LinearRegressorGD.load(path)
    with pytest.raises(ValueError, match=r"partial_fit cannot continue .* or loaded from JSON\)"):
        loaded.partial_fit(X, Y)
    for attribute in ("path_", "loss_curve_"):
        assert not hasattr(loaded, attribute)
    assert loaded.fit(X, Y + 1e6).n_iter_ == 0
    assert loaded.partial_fit(X, Y).n_iter_ > 0


def test_a_model_without_a_fit_is_not_saved(path):
    with pytest.raises(Exception, match=r"This LinearRegressorGD instance is not fitted yet"):
        LinearRegressorGD().save(path)
    assert not path.exists()


def test_writing_is_all_or_nothing(path, monkeypatch):
    model = LinearRegressorGD().fit(X, Y)
    model.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match=r"disk full"):
        LinearRegressorGD().fit(X, -Y).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["model.json"]


def test_an_existing_file_is_replaced_and_readable_as_others_are(path):
    path.write_text("something else")
    (path.parent / "plain").touch()
    LinearRegressorGD().fit(X, Y).save(path)
    assert LinearRegressorGD.load(path).coef_.shape == (2, 3)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((path.parent / "plain").stat().st_mode)


def test_a_missing_folder_or_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere"):
        LinearRegressorGD().fit(X, Y).save(tmp_path / "nowhere" / "model.json")
    with pytest.raises(FileNotFoundError, match=r"absent\.json"):
        LinearRegressorGD.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"is not a saved model: it does not hold valid JSON"),
        ("{", r"is not a saved model: it does not hold valid JSON"),
        ("[" * 100_000, r"is not a saved model: it does not hold valid JSON"),
        (b"\xff\xfe\x00", r"is not a saved model: it does not hold valid JSON"),
        ('{"format": NaN}', r"it does not hold valid JSON \(NaN is not a number\)"),
        ("[1, 2]", r"expected format 'fssgd\.LinearRegressorGD', found 'list'"),
        ('{"format": "pickle"}', r"expected format 'fssgd\.LinearRegressorGD', found 'pickle'"),
    ],
)
def test_files_that_are_something_else(path, text, message):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        LinearRegressorGD.load(path)


DAMAGE = [
    ("version", 2, r"saved by a newer release of fssgd, in version 2 of the format, and this one reads version 1: up"),
    *(("version", value, rf"is damaged: its version is {value}\.") for value in (None, 0, True, 1.5)),
    ("coef", [[1.0], [2.0, 3.0]], r"is damaged: .* Save the model again"),
    ("coef", [], r"coef has shape \(0,\), expected \(n_features,\) or"),
    ("coef", 3.0, r"coef has shape \(\), expected"),
    ("coef", [[[1.0]]], r"coef has shape \(1, 1, 1\), expected"),
    ("coef", "1.0", r"coef holds something that is not a number"),
    ("coef", [True, False, True], r"coef holds something that is not a number"),
    ("coef", [1.0, 2.0], r"has shape .*, expected"),
    ("mean", [1.0, 10**400, 2.0], r"is damaged"),
    ("mean", [1.0, None, 2.0], r"mean holds something that is not a number"),
    ("scale", [1.0, 0.0, 1.0], r"scale must be positive"),
    ("scale", [1.0, "inf", 1.0], r"scale holds something that is not a number"),
    ("scaled_intercept", [0.0, 0.0, 0.0], r"scaled_intercept has shape \(3,\)"),
    ("params", [], r"params is not an object"),
    (
        "params",
        {"learning_rate": -1},
        r"is damaged: its params are not this estimator's \(The 'learning_rate' parameter",
    ),
    ("params", {"momentum": 0.9}, r"is damaged: its params are not this estimator's \(.*momentum"),
    ("n_iter", -1, r"n_iter, converged or backend is not what it should be"),
    ("n_iter", 2.5, r"2\.5 is not a number of steps"),
    ("n_iter", True, r"True is not a number of steps"),
    ("converged", 1, r"n_iter, converged or backend is not what it should be"),
    ("backend", None, r"n_iter, converged or backend is not what it should be"),
    ("loss", "low", r"loss holds something that is not a number"),
    ("loss", [1.0], r"is damaged: .* Save the model again"),
    ("learning_rate", None, r"learning_rate holds something that is not a number"),
    ("learning_rate", [0.1, 0.2], r"is damaged: .* Save the model again"),
    ("feature_names", ["a", "b"], r"feature_names must be null or 3 strings"),
    ("feature_names", ["a", "b", 3], r"feature_names must be null or 3 strings"),
    ("dtype", "int8", r"dtype is 'int8', expected 'float64' or 'float32'"),
    ("dtype", ["float64"], r"dtype is \['float64'\], expected"),
]


@pytest.mark.parametrize(("key", "value", "message"), DAMAGE)
def test_damage_is_noticed(path, key, value, message):
    LinearRegressorGD().fit(X, Y).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, key: value}))
    with pytest.raises(ValueError, match=message):
        LinearRegressorGD.load(path)


@pytest.mark.parametrize("depth", [70, 300, 480, 900])
def test_numbers_nested_without_end(path, depth):
    LinearRegressorGD().fit(X, Y).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps({**document, "coef": 0}).replace('"coef": 0', '"coef": ' + "[" * depth + "]" * depth)
    path.write_text(text)
    with pytest.raises(ValueError, match=r"is damaged|does not hold valid JSON"):
        LinearRegressorGD.load(path)


@pytest.mark.parametrize("key", ["coef", "mean", "loss", "learning_rate"])
def test_numbers_beyond_float64(path, key):
    LinearRegressorGD().fit(X, Y[:, 0]).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    value = 0.123456789 if np.ndim(document[key]) == 0 else [0.123456789] * 3
    path.write_text(json.dumps({**document, key: value}).replace("0.123456789", "1e999"))
    with pytest.raises(ValueError, match=r"model\.json is not a saved model: .* \(1e999 is more than float64 holds\)"):
        LinearRegressorGD.load(path)


@pytest.mark.parametrize("key", ["coef", "params", "feature_names", "n_iter"])
def test_a_missing_key_is_named(path, key):
    LinearRegressorGD().fit(X, Y).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    del document[key]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=rf"is damaged: {key} missing\. Save the model again"):
        LinearRegressorGD.load(path)
