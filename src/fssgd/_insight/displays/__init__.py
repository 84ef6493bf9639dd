"""Pictures of a descent, after scikit-learn's Display convention; matplotlib is imported when one is drawn."""

from fssgd._insight.displays.coefficient_path import CoefficientPathDisplay
from fssgd._insight.displays.descent_path import DescentPathDisplay
from fssgd._insight.displays.learning_rate import LearningRateDisplay
from fssgd._insight.displays.loss_curve import LossCurveDisplay

__all__ = ["CoefficientPathDisplay", "DescentPathDisplay", "LearningRateDisplay", "LossCurveDisplay"]
