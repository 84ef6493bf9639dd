"""Pictures of a descent, after scikit-learn's Display convention; matplotlib is imported when one is drawn.

- ``loss_curve``: the loss over the steps; start reading here. ``coefficient_path``: the coefficients over the steps.
- ``descent_path``: the iterates on the contours of the loss. ``learning_rate``: steps to a tolerance over the step.
- ``_common``: axes, colours and the axis of steps that they share.
"""

from fssgd._insight.displays.coefficient_path import CoefficientPathDisplay
from fssgd._insight.displays.descent_path import DescentPathDisplay
from fssgd._insight.displays.learning_rate import LearningRateDisplay
from fssgd._insight.displays.loss_curve import LossCurveDisplay

__all__ = ["CoefficientPathDisplay", "DescentPathDisplay", "LearningRateDisplay", "LossCurveDisplay"]
