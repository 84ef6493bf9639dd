"""Pictures of a descent, after scikit-learn's Display convention; matplotlib is imported when one is drawn."""

from fssgd._display.coefficient_path import CoefficientPathDisplay
from fssgd._display.descent_path import DescentPathDisplay
from fssgd._display.learning_rate import LearningRateDisplay
from fssgd._display.loss_curve import LossCurveDisplay

__all__ = ["CoefficientPathDisplay", "DescentPathDisplay", "LearningRateDisplay", "LossCurveDisplay"]
