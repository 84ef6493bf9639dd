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
import fssgd
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
    assert "fssgd._estimator" in imported
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


@pytest.mark.parametrize("module", [fssgd, fssgd.backends, fssgd.tables])
def test_the_public_names_are_the_listed_ones(module):
    assert public_names(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def test_the_names_the_design_fixes_are_there():
    fixed = {
        "LinearRegressorGD",
        "LinearRegressorGDCV",
        "diagnose",
        "Moments",
        "GradientPath",
        "DivergenceError",
        "Backend",
    }
    fixed |= {"CoefficientPathDisplay", "DescentPathDisplay", "LearningRateDisplay", "LossCurveDisplay"}
    assert fixed | {"available_backends", "register_backend"} <= set(fssgd.__all__)
    assert {"Problem", "Solution", "Status"} <= set(fssgd.backends.__all__)


def documented(module):
    """Public objects, and the public methods and properties defined in the package."""
    for name in module.__all__:
        thing = getattr(module, name)
        yield name, thing
        if inspect.isclass(thing):
            for attribute in dir(thing):
                member = inspect.getattr_static(thing, attribute)
                origin = getattr(inspect.unwrap(getattr(member, "__func__", member)), "__module__", None)
                if (
                    not attribute.startswith("_")
                    and callable(getattr(thing, attribute))
                    and str(origin).startswith("fssgd")
                ):
                    yield f"{name}.{attribute}", getattr(thing, attribute)


@pytest.mark.parametrize("module", [fssgd, fssgd.backends, fssgd.tables])
def test_every_public_name_is_documented(module):
    assert module.__doc__
    names = [name for name, thing in documented(module) if not (inspect.getdoc(thing) or "").strip()]
    assert not names
    assert len(list(documented(module))) > len(module.__all__)


def test_a_list_of_parameters_is_complete():
    for name, thing in [*documented(fssgd), *documented(fssgd.backends), *documented(fssgd.tables)]:
        if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
            continue
        given = [p for p in inspect.signature(thing).parameters.values() if p.name not in ("self", "args", "kwargs")]
        if len(given) < 2 or "Enum" in str(type(thing)):
            continue
        text = inspect.getdoc(thing)
        if "Parameters\n-----" not in text:  # a class built by a method of its own, a one-liner
            continue
        missing = [p.name for p in given if p.name not in text]
        assert not missing, f"{name}: {missing}"


def test_every_module_says_what_it_is_for():
    package = Path(fssgd.__file__).parent
    modules = [name for _, name, _ in pkgutil.walk_packages([str(package)], "fssgd.")]
    assert len(modules) > 15
    for path in package.rglob("*.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path
    assert (package / "py.typed").exists()
    assert fssgd.__version__
