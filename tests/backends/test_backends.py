"""Names, settings, and a backend from outside that uses public names only."""

import gc
import importlib
import pickle
import sys
import textwrap
import weakref

import numpy as np
import pytest

import fssgd
from fssgd import Backend, LinearRegressorGD, available_backends, register_backend
from fssgd.backends import Problem, Solution, Status, get_backend
from fssgd.backends.numpy import NumPy
from fssgd.backends.spectral import Spectral

X = np.random.default_rng(0).normal(size=(20, 3)) + 1.0
Y = np.random.default_rng(1).normal(size=(20, 2))
STEPS = {"learning_rate": 0.05, "max_iter": 25, "tol": None}


class Momentumless(Backend):
    """A third party's backend with settings of its own."""

    name = "momentumless"

    def __init__(self, *, device="cpu", block=1):
        self.device, self.block = device, block

    def solve(self, problem: Problem, monitor) -> Solution:
        theta, losses, k = problem.start, [problem.loss(problem.start)], 0
        for end in problem.chunk_ends():
            while k < end:
                theta, k = theta - problem.learning_rate * problem.gradient(theta), k + 1
                losses.append(problem.loss(theta))
                if losses[-1] > problem.highest_loss(min(losses), theta):
                    return Solution(theta, k, Status.DIVERGED, losses[-1], np.inf, np.array(losses))
            if monitor(k, theta):
                return Solution(theta, k, Status.STOPPED, losses[-1], 0.0, np.array(losses))
        return Solution(theta, k, Status.MAX_ITER, losses[-1], 0.0, np.array(losses))


@pytest.fixture
def registry(monkeypatch):
    """Names registered in a test are gone after it."""
    monkeypatch.setattr(fssgd.backends._registry, "_registry", fssgd.backends._registry._registry.copy())


@pytest.fixture
def third_party(registry, tmp_path, monkeypatch):
    """A module on the path, as a package of someone else would be."""

    def write(text, module="someones_backends"):
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(text))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return write


def test_a_backend_of_a_third_party_returns_the_same_iterate():
    mine = LinearRegressorGD(backend=Momentumless(), **STEPS).fit(X, Y)
    ours = LinearRegressorGD(backend="numpy", **STEPS).fit(X, Y)
    np.testing.assert_allclose(mine.coef_, ours.coef_, rtol=1e-12)
    np.testing.assert_allclose(mine.intercept_, ours.intercept_, rtol=1e-12)
    np.testing.assert_allclose(mine.loss_curve_, ours.loss_curve_, rtol=1e-12)
    assert mine.backend_ == "momentumless"
    with pytest.raises(fssgd.DivergenceError, match=r"learning_rate=9 is above"):
        LinearRegressorGD(backend=Momentumless(), learning_rate=9.0).fit(X, Y)
    with pytest.raises(ValueError, match=r"max_iter=inf needs the closed form, but the backend is 'momentumless'"):
        LinearRegressorGD(backend=Momentumless(), max_iter=np.inf).fit(X, Y)


def test_a_registered_name_is_imported_when_used(third_party):
    third_party(
        """
        from fssgd import Backend
        from fssgd.backends import Solution, Status

        class Lazy(Backend):
            name = "lazy"

            def solve(self, problem, monitor):
                return Solution(problem.start, 0, Status.CONVERGED, problem.loss(problem.start), 0.0, None)
        """
    )
    register_backend("lazy", "someones_backends:Lazy", extra="someones-package[fast]")
    assert "someones_backends" not in sys.modules
    assert LinearRegressorGD(backend="lazy").fit(X, Y).backend_ == "lazy"
    assert "someones_backends" in sys.modules
    assert "lazy" in available_backends()
    assert available_backends()[:2] == ("spectral", "numpy")


def test_a_backend_that_does_not_step_may_record_no_losses(registry):
    class Still(Backend):
        name = "still"

        def solve(self, problem, monitor):
            return Solution(problem.start, 0, Status.CONVERGED, problem.loss(problem.start), 0.0)

    model = LinearRegressorGD(backend=Still()).fit(X, Y)
    assert model.converged_
    assert not hasattr(model, "loss_curve_")


@pytest.mark.parametrize("name", ["spectral", "numpy", "auto"])
def test_no_name_is_overwritten_without_asking(registry, name):
    message = rf"A backend named '{name}' exists already: choose another name, or pass overw"
    with pytest.raises(ValueError, match="'auto' is reserved" if name == "auto" else message):
        register_backend(name, "someones:Thing")
    if name != "auto":
        register_backend(name, f"{__name__}:Momentumless", overwrite=True)
        assert isinstance(get_backend(name), Momentumless)
    else:
        with pytest.raises(ValueError, match=r"'auto' is reserved"):
            register_backend(name, "someones:Thing", overwrite=True)


@pytest.mark.parametrize("path", ["module", "module.Class", ":Class", "module:", ""])
def test_an_invalid_import_path_is_refused(registry, path):
    with pytest.raises(ValueError, match=rf"path must look like 'module:Class', got '{path}'"):
        register_backend("new", path)
    assert "new" not in available_backends()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        ValueError, match=r"There is no backend 'sepctral': use 'auto',.* 'spectral', 'numpy',.*Backend instance"
    ):
        LinearRegressorGD(backend="sepctral").fit(X, Y)


def test_what_is_missing_is_named_with_the_command_that_installs_it(third_party):
    third_party("import a_package_that_is_not_there")
    register_backend("gone", "someones_backends:Gone", extra="someones-package[fast]")
    register_backend("nameless", "someones_backends:Gone")
    message = (
        r"'gone' could not be imported \(No module named 'a_package_that.*\): pip install 'someones-package\[fast\]'"
    )
    with pytest.raises(ImportError, match=message) as caught:
        LinearRegressorGD(backend="gone").fit(X, Y)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    with pytest.raises(ImportError, match=r"install what 'someones_backends' needs"):
        get_backend("nameless")
    assert not {"gone", "nameless"} & set(available_backends())


def test_a_backend_that_cannot_run_here(third_party):
    third_party(
        """
        from fssgd import Backend

        class Unable(Backend):
            name = "unable"
            @classmethod
            def is_available(cls):
                return False
            def solve(self, problem, monitor): ...
        """
    )
    register_backend("unable", "someones_backends:Unable", extra="able")
    with pytest.raises(ImportError, match=r"'unable' needs a package that is not installed: pip install 'able'"):
        get_backend("unable")
    assert "unable" not in available_backends()


def test_a_class_that_is_not_there_or_no_backend(third_party):
    third_party("class Other: ...")
    register_backend("absent", "someones_backends:Absent")
    with pytest.raises(TypeError, match=r"'someones_backends:Absent', registered as backend 'absent', does not exist"):
        get_backend("absent")
    register_backend("other", "someones_backends:Other")
    with pytest.raises(
        TypeError, match=r"'someones_backends:Other', registered as backend 'other', is not a subclass of f"
    ):
        get_backend("other")


@pytest.mark.parametrize("name", ["absent", "other"])
def test_one_broken_registration_does_not_hide_the_other_backends(third_party, name):
    third_party("class Other: ...")
    register_backend(name, f"someones_backends:{name.title()}")
    assert "numpy" in available_backends()
    assert name not in available_backends()


def test_settings_are_compared_hashed_shown_and_pickled():
    one, same, other = Momentumless(block=2), Momentumless(block=2), Momentumless(device="gpu")
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert len({one, same, other}) == 2
    assert repr(one) == "Momentumless(block=2, device='cpu')"
    assert eval(repr(one)) == one
    assert dict(one.get_settings()) == {"block": 2, "device": "cpu"}
    assert pickle.loads(pickle.dumps(one)) == one
    assert NumPy() == NumPy() != Spectral()
    assert repr(Spectral()) == "Spectral()"


def test_backends_are_abstract():
    with pytest.raises(TypeError, match=r"abstract"):
        Backend()


def test_a_backend_of_another_type_is_refused():
    with pytest.raises(ValueError, match=r"The 'backend' parameter of LinearRegressorGD must be"):
        LinearRegressorGD(backend=3).fit(X, Y)


def test_the_closed_form_by_name_takes_data_of_any_size_and_moments(monkeypatch):
    """Asked for by name it takes data of any size; a stepping backend takes no moments."""
    monkeypatch.setattr(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", 1)
    assert LinearRegressorGD().fit(X, Y).backend_ == "numpy"
    named = LinearRegressorGD(backend="spectral").fit(X, Y)
    assert named.backend_ == "spectral"
    moments = fssgd.Moments.from_arrays(X, Y)
    assert LinearRegressorGD(backend=Momentumless()).fit_moments(moments).backend_ == "spectral"


@pytest.mark.slow
def test_compilations_are_dropped_with_their_memory(monkeypatch):
    """XLA compiles once for a shape; the shapes used last are kept, and the session of any other is gone."""
    pytest.importorskip("tensorflow")
    module = importlib.import_module("fssgd.backends.tensorflow")
    compiled, new_session, sessions = {}, module._new_session, []

    def recorded(graph):
        session = new_session(graph)
        sessions.append(weakref.ref(session))
        return session

    monkeypatch.setattr(module, "MAX_COMPILATIONS", 2)
    monkeypatch.setattr(module, "_compiled", compiled)
    monkeypatch.setattr(module, "_new_session", recorded)

    def fit(n_features):
        model = LinearRegressorGD(backend=module.TensorFlowGraph(jit_compile=True), **STEPS).fit(X[:, :n_features], Y)
        right = LinearRegressorGD(backend="numpy", **STEPS).fit(X[:, :n_features], Y)
        np.testing.assert_allclose(model.coef_, right.coef_, rtol=1e-12)
        np.testing.assert_allclose(model.loss_curve_, right.loss_curve_, rtol=1e-12)

    for n_features, n_compiled in ((1, 1), (2, 2), (1, 2), (1, 2), (3, 3), (1, 3), (2, 4)):
        fit(n_features)
        assert len(sessions) == n_compiled  # and no more than once for what is still there
        assert len(compiled) <= 2
    gc.collect()
    assert [session() is None for session in sessions] == [False, True, True, False]
    compiled.clear()
    gc.collect()
    assert all(session() is None for session in sessions)
