"""Linear regression by fixed-step-size gradient descent, on swappable backends that return the same iterate."""

from fssgd._errors import DivergenceError
from fssgd._estimator import LinearRegressorGD
from fssgd._moments import Moments
from fssgd._path import GradientPath
from fssgd._selection import LinearRegressorGDCV
from fssgd.backends import Backend, available_backends, register_backend

__version__ = "0.1.0.dev0"

__all__ = [
    "Backend",
    "DivergenceError",
    "GradientPath",
    "LinearRegressorGD",
    "LinearRegressorGDCV",
    "Moments",
    "available_backends",
    "register_backend",
]
