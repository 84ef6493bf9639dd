"""The public names, from where they are."""

from fssgd._diagnosis import diagnose
from fssgd._display import CoefficientPathDisplay, DescentPathDisplay, LearningRateDisplay, LossCurveDisplay
from fssgd._errors import DivergenceError
from fssgd._estimator import LinearRegressorGD
from fssgd._findings import Diagnosis
from fssgd._moments import Moments
from fssgd._path import GradientPath
from fssgd._selection import LinearRegressorGDCV
from fssgd.backends import Backend, available_backends, register_backend

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
