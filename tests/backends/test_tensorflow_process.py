"""What TensorFlow leaves behind in the process that uses it, and in those beside it."""

import logging
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fssgd import LinearRegressorGD


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


pytestmark = pytest.mark.slow
tensorflow_only = pytest.mark.parametrize("backend", ["tf-graph", "tf-session"], indirect=True)


class Messages(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


@tensorflow_only
def test_sixty_fits_leave_graph_memory_and_eager_mode_as_they_were(backend):
    tf = pytest.importorskip("tensorflow")
    X, y = data(60)
    heard = Messages()
    tf.get_logger().addHandler(heard)
    try:
        for i in range(60):
            rows = slice(0, 60 - i % 3)  # folds of a cross-validation differ by a row
            LinearRegressorGD(max_iter=5 + i % 4, tol=None, learning_rate=0.1 / (1 + i), backend=backend).fit(
                X[rows], y[rows]
            )
            if i == 9:
                before = resident_megabytes()
    finally:
        tf.get_logger().removeHandler(heard)
    assert resident_megabytes() - before < 40
    assert not [text for text in heard.texts if "retracing" in text]
    assert tf.executing_eagerly()
    assert not tf.compat.v1.get_default_graph().get_operations()


def test_cross_validation_in_parallel_ends():
    """A process forked from one that has run TensorFlow may wait for ever for threads that only its parent has."""
    pytest.importorskip("tensorflow")
    code = (
        "import numpy as np\n"
        "from fssgd import LinearRegressorGD\n"
        "from sklearn.model_selection import cross_val_score\n"
        "X = np.random.default_rng(0).normal(size=(90, 3))\n"
        "for backend in ('tf-graph', 'tf-session'):\n"
        "    model = LinearRegressorGD(max_iter=200, backend=backend).fit(X, X.sum(axis=1))\n"
        "    print(cross_val_score(model, X, X.sum(axis=1), n_jobs=2, cv=3).min() > 0.99)"
    )
    assert run(code).split() == ["True", "True"]
