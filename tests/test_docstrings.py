"""Every public name says what it takes and returns, checked by numpydoc."""

import inspect

import pytest

import fssgd
import fssgd.backends
import fssgd.tables

validate = pytest.importorskip("numpydoc.validate").validate

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
    faults = [(code, text) for code, text in validate(name)["errors"] if code in CHECKED]
    if name.rpartition(".")[2] in MADE_HERE:
        faults = [(code, text) for code, text in faults if code != "PR01"]
    assert not faults
