"""
What does scaling do to the descent?
====================================

The loss of a line is a surface over its slope W and intercept b. With the feature as it is, between 0 and 100, the
surface is a valley 115 times as long as it is wide (the root of its condition number), and it runs askew: a steeper
line is made up for by a lower intercept. Standardised, it is a round bowl.
"""

import matplotlib.pyplot as plt
import numpy as np

from fssgd import CoefficientPathDisplay, DescentPathDisplay, LinearRegressorGD

x = np.arange(100, step=0.1)
X, y = x[:, None], x + 20 * np.sin(x / 10) + 15

# %%
# A step that is stable in the valley is decided by its walls, and along its floor it leads nowhere: the descent falls
# to the floor at once, and 100,000 steps later it is still on its way.
settings = {"tol": None, "max_iter": 100_000}
raw = LinearRegressorGD(standardize=False, learning_rate=1e-4, **settings).fit(X, y)
bowl = LinearRegressorGD(learning_rate=0.1, **settings | {"max_iter": 100}).fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, model, title in zip(axes, (raw, bowl), ("as it is: 100,000 steps", "standardised: 100 steps"), strict=True):
    DescentPathDisplay.from_estimator(model, ax=ax)
    ax.set_title(title)

# %%
# The slope of the same two descents. On the raw feature it shoots past its value, because it has to do the intercept's
# work until that has crept up.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, model, title in zip(axes, (raw, bowl), ("as it is", "standardised"), strict=True):
    CoefficientPathDisplay.from_estimator(model, scaled=False, ax=ax)
    ax.set_title(title)
print(f"as it is:     W = {raw.coef_[0]:.4f}, b = {raw.intercept_:.4f} after {raw.n_iter_:,} steps")
print(f"standardised: W = {bowl.coef_[0]:.4f}, b = {bowl.intercept_:.4f} after {bowl.n_iter_:,} steps")

plt.show()
