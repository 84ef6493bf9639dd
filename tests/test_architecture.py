"""What an import pulls in, and what is public."""

import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

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
