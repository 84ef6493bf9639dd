"""Fixtures that run one set of tests on every backend."""

import contextlib
import math
from functools import partial

import numpy as np
import pytest

from fssgd import DivergenceError, LinearRegressorGD
from fssgd.backends import Backend, get_backend

BACKENDS = ("spectral", "krylov", "numpy", "tf-graph", "tf-session")
OPTIONAL = ("tf-graph", "tf-session")
STEP_BUDGET = {  # about 5 s
    "spectral": math.inf,
    "krylov": math.inf,
    "numpy": 400_000,
    "tf-graph": 400_000,
    "tf-session": 20_000,
}


def pytest_configure(config):
    config.addinivalue_line("markers", "steps(n): takes about n steps; left out for backends that need over 5 s")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) if name in OPTIONAL else name for name in BACKENDS])
def backend(request):
    """Name of a backend that can run here, and within the step budget."""
    name = request.param
    marker = request.node.get_closest_marker("steps")
    if marker is not None and marker.args[0] > STEP_BUDGET[name]:
        pytest.skip(f"{marker.args[0]} steps are too many for a test of backend {name!r}")
    if name in OPTIONAL:
        try:
            get_backend(name)
        except (ImportError, ValueError) as error:
            pytest.skip(str(error))
    return name


@pytest.fixture
def step_budget(backend):
    """Most steps that a test of several descents should take in one of them."""
    return STEP_BUDGET[backend]


@pytest.fixture
def model(backend):
    """Constructor of models on the backend under test."""
    return partial(LinearRegressorGD, backend=backend)


class Recording(Backend):
    """Keeps what the backend it wraps hands back, also when the fit then raises."""

    def __init__(self, inner):
        self.inner, self.name, self.closed_form, self.solution = inner, inner.name, inner.closed_form, None

    def solve(self, problem, monitor):
        self.solution = self.inner.solve(problem, monitor)
        return self.solution


@pytest.fixture
def losses(backend):
    """Take data and settings to the losses of the descent, up to where it stops or diverges."""

    def run(X, y, **settings):
        recording = Recording(get_backend(backend))
        with contextlib.suppress(DivergenceError):
            LinearRegressorGD(backend=recording, **settings).fit(X, y)
        solution = recording.solution
        curve = solution.path.loss(np.arange(solution.n_iter + 1)) if backend == "spectral" else solution.loss_curve
        assert len(curve) == solution.n_iter + 1
        return curve

    return run


@pytest.fixture(scope="session")
def question():
    """The data of the question that fssgd grew out of; do not write to it."""
    x = np.arange(100, step=0.1)
    y = x + 20 * np.sin(x / 10) + 15
    x.flags.writeable = y.flags.writeable = False
    return x[:, None], y


@pytest.fixture(scope="module")
def cluster():
    """Client of two worker processes, which Dask computes on while it is open."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers,
        distributed.Client(workers) as client,
    ):
        yield client
