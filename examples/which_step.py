"""
Which step size should I take?
==============================

For least squares one need not search. The eigenvalues of the Hessian say which steps are stable, which is the best, and
how many a tolerance takes with each; ``diagnose`` reads them off the data, and names the columns that are to blame.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from fssgd import DivergenceError, LearningRateDisplay, LinearRegressorGD, diagnose

X, y = load_diabetes(return_X_y=True, scaled=False, as_frame=True)

# %%
# Why it is slow
# --------------
diagnosis = diagnose(X, y)
print(diagnosis)

# %%
# Steps to a tolerance, by step size
# ----------------------------------
# Up to 1 / L doubling the step halves their number. Beyond, the steepest direction overshoots, and from
# 2 / (L + mu) on it is the one that takes longest; at 2 / L it swings for ever.
model = LinearRegressorGD().fit(X, y)
figure, ax = plt.subplots(layout="constrained")
LearningRateDisplay.from_estimator(model, ax=ax)
ax.set_title("Diabetes data, standardised")

# %%
# Past the limit
# --------------
try:
    LinearRegressorGD(learning_rate=1.01 * diagnosis.standardized.max_learning_rate).fit(X, y)
except DivergenceError as error:
    print(error)

plt.show()
