"""Progress out, a wish to stop back, through scikit-learn's callback framework."""

import threading

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate

from exact import EPS
from fssgd import DivergenceError, GradientPath, LinearRegressorGD
from fssgd._estimators.callbacks import FitMonitor
from fssgd.backends import get_backend

pytest.importorskip("sklearn.callback")

X = np.random.default_rng(0).normal(size=(30, 3)) @ np.diag([1.0, 0.4, 0.1])
Y = np.random.default_rng(1).normal(size=30) + X @ [1.0, 2.0, 3.0]
STEPPING = {"learning_rate": 0.1, "backend": "numpy"}


class Log:
    """Records what it is told; asks to stop after a number of chunks."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events, self.models, self.contexts = [], [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(f"begin {context.task_name}")
        self.contexts.append((context.task_name, context.max_subtasks, np.shape(X), np.shape(y), metadata))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "steps":
            self.models.append(fitted_estimator)
        return self.stop_after is not None and len(self.models) == self.stop_after


class Propagated(Log):
    """Follows a search into its fits."""

    max_propagation_depth = None
    lock = threading.Lock()


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    """A hundred chunks, though so small a problem is done before anyone can look."""
    monkeypatch.setattr("fssgd.backends._problem.CHUNK_WORK", 0)


@pytest.mark.parametrize(("max_iter", "chunks"), [(0, 0), (1, 1), (100, 100), (250, 84)])
def test_a_stepping_backend_reports_its_chunks(max_iter, chunks):
    log = Log()
    model = LinearRegressorGD(max_iter=max_iter, tol=None, **STEPPING).set_callbacks(log).fit(X, Y)
    assert log.events == ["setup", "begin fit", *["begin steps", "end steps"] * chunks, "end fit", "teardown"]
    assert log.contexts[0] == ("fit", chunks, (30, 3), (30,), {"sample_weight": None})
    assert model.n_iter_ == max_iter


def test_the_closed_form_reports_that_it_fits():
    log = Log(stop_after=0)
    LinearRegressorGD().set_callbacks(log).fit(X, Y)
    assert log.events == ["setup", "begin fit", "end fit", "teardown"]


def test_a_chunk_hands_over_the_model_as_it_is_then():
    """250 steps in chunks of 3: after the first it predicts as a fit of 3 steps, in the user's units."""
    log = Log()
    LinearRegressorGD(max_iter=250, tol=None, **STEPPING).set_callbacks(log).fit(X, Y)
    path = GradientPath.from_arrays(X, Y, learning_rate=0.1)
    for i, model in enumerate(log.models[:-1]):
        np.testing.assert_allclose(model.coef_, path.coef(3 * (i + 1)), rtol=1e-11, atol=10 * EPS)
        np.testing.assert_allclose(
            model.predict(X), X @ path.coef(3 * (i + 1)) + path.intercept(3 * (i + 1)), rtol=1e-10
        )


@pytest.mark.parametrize("stop_after", [1, 5, 50])
def test_a_callback_can_stop_the_descent(stop_after):
    """At the end of a chunk, without a warning that it did not converge."""
    log = Log(stop_after)
    model = LinearRegressorGD(max_iter=250, tol=1e-12, **STEPPING).set_callbacks(log).fit(X, Y)
    assert model.n_iter_ == 3 * stop_after
    assert not model.converged_
    assert len(model.loss_curve_) == model.n_iter_ + 1
    np.testing.assert_allclose(
        model.coef_, GradientPath.from_arrays(X, Y, learning_rate=0.1).coef(3 * stop_after), rtol=1e-11
    )
    assert log.events[-2:] == ["end fit", "teardown"]


def test_convergence_ends_the_chunk_it_happens_in():
    log = Log()
    model = LinearRegressorGD(max_iter=10_000, tol=1e-6, **STEPPING).set_callbacks(log).fit(X, Y)
    assert model.converged_
    assert log.events.count("begin steps") == log.events.count("end steps") == model.n_iter_ // 100 + 1


def test_a_divergence_still_tears_down():
    log = Log()
    model = LinearRegressorGD(learning_rate=5.0, backend="numpy").set_callbacks(log)
    with pytest.raises(DivergenceError, match=r"diverged"):
        model.fit(X, Y)
    assert log.events[-1] == "teardown"
    assert not [name for name in vars(model) if "callback" in name and name != "_skl_callbacks"]


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_a_search_reports_its_fits(backend):
    log = Propagated()
    grid = {"learning_rate": [0.01, 0.1]}
    model = LinearRegressorGD(max_iter=3, tol=None, backend=backend)
    GridSearchCV(model, grid, cv=2).set_callbacks(log).fit(X, Y)
    assert log.events.count("setup") == log.events.count("teardown") == 1
    on_half = [name for name, _, shape, _, _ in log.contexts if shape == (15, 3)]
    assert on_half.count("fit") == 4
    assert on_half.count("steps") == (12 if backend == "numpy" else 0)


def test_no_contexts_pile_up_when_nobody_listens(monkeypatch):
    """A subcontext costs 5 us and stays in memory."""
    made = []
    monkeypatch.setattr("sklearn.callback._callback_context.CallbackContext.subcontext", lambda *a, **k: made.append(a))
    LinearRegressorGD(max_iter=250, tol=None, **STEPPING).fit(X, Y)
    assert not made


@pytest.mark.parametrize("listening", [False, True])
def test_a_monitor_may_be_called_more_often_than_announced(listening):
    """A third party's backend that miscounts must not bring the fit down."""

    class Estimator(LinearRegressorGD):
        pass

    estimator = Estimator()
    if listening:
        estimator.set_callbacks(Log())
    data = {"X": X, "y": Y, "metadata": {}}
    monitor = FitMonitor(estimator, 1, lambda theta: {"coef_": theta}, data)
    assert [monitor(k, np.zeros(3)) for k in range(3)] == [False] * 3
    monitor.finish()


def test_fits_under_a_scikit_learn_without_callbacks(monkeypatch):
    """Estimators whose scikit-learn has no callbacks."""
    monkeypatch.delattr("sklearn.callback.CallbackSupportMixin._init_callback_context")
    model = LinearRegressorGD(max_iter=50, tol=None, **STEPPING).fit(X, Y)
    np.testing.assert_allclose(model.coef_, GradientPath.from_arrays(X, Y, learning_rate=0.1).coef(50), rtol=1e-11)
    assert cross_validate(model, X, Y, cv=3)["test_score"].shape == (3,)
    assert get_backend("numpy").solve
