"""Linear regression by fixed-step-size gradient descent, on swappable backends that return the same iterate."""

from fssgd._diagnosis import diagnose
from fssgd._display import CoefficientPathDisplay, DescentPathDisplay, LearningRateDisplay, LossCurveDisplay
from fssgd._errors import DivergenceError
from fssgd._estimator import LinearRegressorGD
from fssgd._findings import Diagnosis
from fssgd._moments import Moments
from fssgd._path import GradientPath
from fssgd._selection import LinearRegressorGDCV
from fssgd.backends import Backend, available_backends, register_backend

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
