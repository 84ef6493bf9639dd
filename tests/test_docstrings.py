"""Every public name says what it takes and returns, checked by numpydoc; every example is run."""

import ast
import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import fssgd
import fssgd.backends
import fssgd.tables

# no docstring; parameters not documented, unknown or in another order; no Returns or Yields; an undocumented Yields
CHECKED = {"GL08", "PR01", "PR02", "PR03", "PR10", "RT01", "YD01"}
# made by the library, not by its users: their attributes are documented, and not the arguments of their constructors
MADE_HERE = {"Column", "Diagnosis", "DivergenceError", "GradientPath", "Moments", "Status"}


def is_described(name, value):
    kinds = property, classmethod, staticmethod
    return not name.startswith("_") and (isinstance(value, kinds) or inspect.isfunction(value))


def public_names():
    for module in (fssgd, fssgd.backends, fssgd.tables):
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(getattr(thing, "__get__", None)) and not inspect.isclass(thing):
                continue  # the type of a callable
            yield f"{module.__name__}.{name}"
            bases = thing.__mro__ if inspect.isclass(thing) else ()
            for members in (vars(base) for base in bases if base.__module__.startswith("fssgd")):
                yield from (f"{module.__name__}.{name}.{one}" for one in members if is_described(one, members[one]))


@pytest.mark.parametrize("name", sorted(set(public_names())))
def test_docstring_sections(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    faults = [(code, text) for code, text in validate(name)["errors"] if code in CHECKED]
    if name.rpartition(".")[2] in MADE_HERE:
        faults = [(code, text) for code, text in faults if code != "PR01"]
    assert not faults


def names_with_examples(path, module):
    """Names of what has examples in its docstring, as the source has them."""

    def walk(node, name):
        if ">>>" in (ast.get_docstring(node) or ""):
            yield name
        for one in node.body:
            if isinstance(one, ast.ClassDef | ast.FunctionDef):
                yield from walk(one, f"{name}.{one.name}")

    return set(walk(ast.parse(path.read_text(encoding="utf-8")), module))


PACKAGE = Path(fssgd.__file__).parent
WITH_EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_example_is_collected(path):
    """Also those of the methods of a class whose __module__ is "fssgd": see conftest.py beside the tests' folder."""
    module = ".".join(("fssgd", *path.relative_to(PACKAGE).with_suffix("").parts))
    expected = names_with_examples(path, module)
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module), module)
    assert {test.name for test in found if test.examples} == expected


def test_the_examples_of_a_public_method_are_among_them():
    """So that the test above has something to say about classes that name another module than their own."""
    path = PACKAGE / "_moments" / "moments.py"
    assert "m.Moments.from_table" in names_with_examples(path, "m")
    assert fssgd.Moments.__module__ == "fssgd"


def test_no_example_is_collected_twice():
    fssgd.Moments  # noqa: B018 - a public name is in vars(fssgd) once it has been used
    assert not [test for test in doctest.DocTestFinder().find(fssgd, "fssgd") if test.examples]
