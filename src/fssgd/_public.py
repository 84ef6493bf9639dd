"""The public names, from where they are."""

from fssgd._estimators.early_stopping import LinearRegressorGDCV
from fssgd._estimators.gradient_descent import LinearRegressorGD
from fssgd._exceptions import DivergenceError
from fssgd._insight.diagnose import diagnose
from fssgd._insight.diagnosis import Diagnosis
from fssgd._insight.displays import CoefficientPathDisplay, DescentPathDisplay, LearningRateDisplay, LossCurveDisplay
from fssgd._moments.moments import Moments
from fssgd._path.gradient_path import GradientPath
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
