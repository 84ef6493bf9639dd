"""Linear regression by fixed-step-size gradient descent, on swappable backends that return the same iterate."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from fssgd._public import (
        Backend,
        CoefficientPathDisplay,
        DescentPathDisplay,
        Diagnosis,
        DivergenceError,
        GradientPath,
        LearningRateDisplay,
        LinearRegressorGD,
        LinearRegressorGDCV,
        LossCurveDisplay,
        Moments,
        available_backends,
        diagnose,
        register_backend,
    )

__version__ = "0.1.0"

__all__ = [
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
]


def __getattr__(name: str) -> object:
    """Import the public names when one is used: the command has to take Ctrl-C before NumPy and all are imported."""
    if name in (*__all__, "backends"):
        public = importlib.import_module("fssgd._public")
        globals().update({one: getattr(public, one) for one in __all__})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
