"""Files that earlier releases wrote are read, to the same values; ``data/0.1.0/make.py.txt`` made them."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from fssgd import LinearRegressorGD, Moments

FOLDER = Path(__file__).parents[1] / "data" / "0.1.0"
N_ROWS, MTIME = 100_000, 1_700_000_000 * 10**9  # of the CSV file that the checkpoints are bound to, in ns


def columns():
    """Whole numbers, whose sums are exact."""
    i = np.arange(N_ROWS)
    a, b = i % 97, i % 89
    return a, b, 2 * a - 3 * b + 5 + i % 7


def arrays():
    a, b, y = (column[:100].astype(float) for column in columns())
    return np.column_stack([a, b]), np.column_stack([y, a - y]), 1 + a % 2


def write_csv(path, without=0):
    """Write the columns; the first rows without what they hold, in as many bytes."""
    lines = [",".join(map(str, row)) for row in zip(*(column.tolist() for column in columns()), strict=True)]
    lines[:without] = ["".join("0" if digit in "123456789" else digit for digit in line) for line in lines[:without]]
    path.write_text("\n".join(["a,b,y", *lines, ""]))
    os.utime(path, ns=(MTIME, MTIME))


def test_a_model():
    X, Y, weight = arrays()
    model = LinearRegressorGD.load(FOLDER / "model.json")
    again = LinearRegressorGD(max_iter=7, tol=None, learning_rate=0.25, alpha=0.5).fit(X, Y, weight)
    assert model.get_params() == again.get_params()
    assert (model.n_iter_, model.converged_, model.backend_) == (7, False, "spectral")
    for name in ("coef_", "intercept_", "scaled_coef_", "scaled_intercept_", "mean_", "scale_", "loss_"):
        np.testing.assert_allclose(getattr(model, name), getattr(again, name), rtol=1e-12, err_msg=name)
    # a prediction is a sum of terms of up to this size, whose coefficients agree to 1e-12
    terms = np.abs(X) @ np.abs(model.coef_.T) + np.abs(model.intercept_)
    np.testing.assert_array_less(np.abs(model.predict(X) - again.predict(X)), 1e-12 * terms)


def test_a_model_of_single_precision_with_names():
    X, Y, _ = arrays()
    model = LinearRegressorGD.load(FOLDER / "limit_float32.json")
    assert (model.max_iter, model.n_iter_, model.coef_.dtype) == (np.inf, np.inf, np.float32)
    assert list(model.feature_names_in_) == ["a", "größe"]
    right = np.linalg.lstsq(np.column_stack([X, np.ones(100)]), Y[:, 0], rcond=None)[0]
    np.testing.assert_allclose([*model.coef_, model.intercept_], right, rtol=1e-6)


@pytest.mark.parametrize("accurate", [False, True])
def test_moments(accurate):
    X, Y, weight = arrays()
    moments = Moments.load(FOLDER / ("accurate_moments.npz" if accurate else "moments.npz"))
    assert (moments.accurate, moments.n_samples, moments.weight_sum) == (accurate, 100, weight.sum())
    assert list(moments.feature_names) == ["a", "größe"]
    rows = np.column_stack([X, Y])
    mean = np.average(rows, axis=0, weights=weight)
    scatter = (rows - mean).T @ (weight[:, None] * (rows - mean))
    np.testing.assert_allclose([*moments.mean_x, *moments.mean_y], mean, rtol=1e-12)
    np.testing.assert_allclose(moments.scatter_xx, scatter[:2, :2], rtol=1e-10)
    np.testing.assert_allclose(moments.scatter_xy, scatter[:2, 2:], rtol=1e-10)
    np.testing.assert_allclose(moments.scatter_yy, scatter[2:, 2:], rtol=1e-10)


@pytest.mark.parametrize(("name", "n_read"), [("checkpoint", 87_381), ("accurate_checkpoint", 4_096)])
def test_a_pass_goes_on_from_a_checkpoint(tmp_path, name, n_read):
    """The rows before it are in the checkpoint: here they are no longer in the file."""
    pytest.importorskip("pyarrow")
    checkpoint = tmp_path / "state.npz"
    shutil.copy(FOLDER / f"{name}.npz", checkpoint)
    with np.load(checkpoint) as state:
        assert (int(state["state.rows"]), bool(state["complete"])) == (n_read, False)
        assert json.loads(str(state["fingerprint"]))["files"][0][::2] == ["rows.csv", MTIME]
    write_csv(tmp_path / "rows.csv", without=n_read)
    accurate = name.startswith("accurate")
    moments = Moments.from_table(tmp_path / "rows.csv", target="y", accurate=accurate, checkpoint=checkpoint)
    rows = np.column_stack(columns()).astype(float)
    assert (moments.n_samples, moments.accurate) == (N_ROWS, accurate)
    np.testing.assert_allclose([*moments.mean_x, *moments.mean_y], rows.mean(axis=0), rtol=1e-12)
    scatter = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
    np.testing.assert_allclose(moments.scatter_xx, scatter[:2, :2], rtol=1e-10)
    np.testing.assert_allclose(moments.scatter_xy, scatter[:2, 2:], rtol=1e-10)
