"""What an import pulls in, and what is public."""

import inspect
import io
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fssgd
import fssgd.backends
import fssgd.tables

HEAVY = {"tensorflow", "jax", "torch", "dask", "distributed", "ibis", "duckdb", "pyspark", "matplotlib", "pandas"}
HEAVY |= {"polars", "pyarrow", "rich", "typer", "onnx", "skl2onnx"}

STAGES = """
import sklearn.linear_model, sklearn.callback
import fssgd; fssgd.LinearRegressorGD
model = fssgd.LinearRegressorGD(backend="numpy").fit([[1.0], [2.0], [4.0]], [1, 2, 3])
model = fssgd.LinearRegressorGD().fit([[1.0], [2.0], [4.0]], [1, 2, 3]).partial_fit([[1.0]], [2]).loss_curve_
path = fssgd.GradientPath.from_moments(fssgd.Moments.from_arrays([[1.0], [2.0], [4.0]], [1, 2, 3])).gcv(1)
names = fssgd.available_backends()
"""


@pytest.fixture(scope="module")
def stages():
    """Modules that each line of STAGES adds to those of a fresh process."""
    code = "import sys\n"
    for line in STAGES.strip().splitlines():
        code += f"before = set(sys.modules)\n{line}\nprint(*sorted(set(sys.modules) - before))\n"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [set(line.split(" ")) for line in done.stdout.splitlines()]


def test_nothing_heavy_is_loaded(stages):
    """Beyond what scikit-learn itself loads where it is installed (pandas, rich)."""
    assert len(stages) == 6
    for added in stages[1:]:
        assert not HEAVY & {name.partition(".")[0] for name in added}


def test_backends_are_imported_when_they_are_used(stages):
    _, imported, stepped, jumped, _, _ = stages
    assert "fssgd._estimators.gradient_descent" in imported
    backends = {f"fssgd.backends.{name}" for name in ("numpy", "spectral", "tensorflow")}
    assert not backends & imported
    assert backends & stepped == {"fssgd.backends.numpy"}
    assert backends & jumped == {"fssgd.backends.spectral"}


def test_an_import_loads_nothing_beyond_scikit_learn(stages):
    beyond = {name.partition(".")[0] for name in stages[1]} - {"fssgd"} - sys.stdlib_module_names
    assert beyond <= {"scipy", "sklearn", "numpy"}


def public_names(module):
    return sorted(
        name for name in vars(module) if not name.startswith("_") and not inspect.ismodule(vars(module)[name])
    )


def test_a_bare_import_loads_next_to_nothing():
    """The command takes Ctrl-C from its first moment on, and most of that is spent on importing scikit-learn."""
    code = (
        "import sys; before = set(sys.modules); import fssgd.cli; print(*set(sys.modules) - before); "
        "print(dir(fssgd)); print(fssgd.backends.Backend, fssgd.Moments)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, names, _ = done.stdout.splitlines()
    assert {name.partition(".")[0] for name in modules.split()} <= {"fssgd", *sys.stdlib_module_names}
    assert all(repr(name) in names for name in fssgd.__all__)
    with pytest.raises(AttributeError, match=r"module 'fssgd' has no attribute 'LinearRegressor'"):
        fssgd.LinearRegressor  # noqa: B018


@pytest.mark.parametrize("module", [fssgd, fssgd.backends, fssgd.tables])
def test_the_public_names_are_the_listed_ones(module):
    assert public_names(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def test_the_public_interface():
    """A name that is added or taken away is a change for users: list it here and in the changelog."""
    assert set(fssgd.__all__) == {
        "Backend",
        "CoefficientPathDisplay",
        "DescentPathDisplay",
        "Diagnosis",
        "DivergenceError",
        "GradientPath",
        "LearningRateDisplay",
        "LinearRegressorGD",
        "LinearRegressorGDCV",
        "LossCurveDisplay",
        "Moments",
        "available_backends",
        "diagnose",
        "register_backend",
    }
    assert {"Problem", "Solution", "Status"} <= set(fssgd.backends.__all__)


PUBLIC_CLASSES = [name for name in fssgd.__all__ if inspect.isclass(getattr(fssgd, name))]


def classes_named(data):
    """Modules and names of the classes that a pickle looks up, and what it holds."""
    found = set()

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            found.add((module, name))
            return super().find_class(module, name)

    return found, Reader(io.BytesIO(data)).load()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", PUBLIC_CLASSES)
def test_a_pickle_names_the_public_place_of_a_class(name, protocol):
    kind = getattr(fssgd, name)
    found, read = classes_named(pickle.dumps(kind, protocol))
    assert found == {("fssgd", name)}
    assert read is kind


def public_objects():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30.0)
    model = fssgd.LinearRegressorGD().fit(X, y)
    return [
        model,
        fssgd.LinearRegressorGDCV(cv=3).fit(X, y),
        model.moments_,
        model.path_,
        fssgd.diagnose(X, y),
        fssgd.DivergenceError("diverged", 1.0, 0.5, 3, "x0"),
    ]


@pytest.mark.parametrize("thing", public_objects(), ids=lambda thing: type(thing).__name__)
def test_a_pickled_object_is_of_its_public_class(thing):
    """So that a pickle stays readable when the private module with the class moves."""
    kind = type(thing)
    found, read = classes_named(pickle.dumps(thing))
    assert ("fssgd", kind.__name__) in found
    assert (kind.__module__, type(read)) == ("fssgd", kind)
    private = {name for module, name in found if module.startswith("fssgd.")}
    assert not private & set(fssgd.__all__)


def test_a_subclass_is_of_its_own_module():
    class Other(fssgd.Backend):
        pass

    assert Other.__module__ == __name__
    for name in fssgd.available_backends():
        assert type(fssgd.backends.get_backend(name)).__module__.startswith("fssgd.backends.")


def test_the_map_in_contributing_is_that_of_the_code():
    package, rooms = Path(fssgd.__file__).parent, set()
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("| `"):
            rooms.add(line.split("`")[1].rstrip("/"))
    assert rooms == {path.parent.name for path in package.glob("*/__init__.py")}
    assert {path.stem for path in package.glob("*.py")} == {"__init__", "__main__", "_exceptions", "_public"}


def test_each_folder_has_a_line_for_each_of_its_files():
    package = Path(fssgd.__file__).parent
    for folder in (path.parent for path in package.rglob("__init__.py") if path.parent != package):
        text = (folder / "__init__.py").read_text(encoding="utf-8")
        names = {path.stem for path in folder.glob("*.py")} | {
            path.parent.name for path in folder.glob("*/__init__.py")
        }
        assert not {name for name in names - {"__init__"} if f"``{name}``" not in text}, folder


def test_every_module_says_what_it_is_for():
    package = Path(fssgd.__file__).parent
    modules = [name for _, name, _ in pkgutil.walk_packages([str(package)], "fssgd.")]
    assert len(modules) > 15
    for path in package.rglob("*.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path
    assert (package / "py.typed").exists()
    assert fssgd.__version__
