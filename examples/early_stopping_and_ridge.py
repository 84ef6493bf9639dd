"""
Is early stopping the same as ridge regression?
===============================================

Nearly. Both shrink the directions in which the data varies little, and leave those in which it varies much. k steps of
eta multiply the least squares answer along an eigenvector of eigenvalue h by ``1 - (1 - eta h)^k``, a ridge penalty by
``h / (h + 2 alpha)``. With ``alpha = 1 / (2 eta k)`` the two curves start with the same slope and end at the same 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from fssgd import GradientPath

# %%
# What is left of a direction
# ---------------------------
h, k = np.logspace(-3, 1, 200), 10
figure, ax = plt.subplots(layout="constrained")
ax.semilogx(h, 1 - (1 - 0.1 * h) ** k, label="10 steps of 0.1")
ax.semilogx(h, h / (h + 2 * (1 / (2 * 0.1 * k))), "--", label="ridge, alpha = 1 / (2 eta k)")
ax.set(xlabel="eigenvalue h", ylabel="share of the least squares answer", title="Two ways to shrink")
ax.legend(frameon=False)

# %%
# The coefficients of ten measurements
# ------------------------------------
# The whole descent is one decomposition: the coefficients at 300 numbers of steps come from one call. Ridge is fitted
# 300 times. Its penalty counts the sum of squared errors, not their mean, hence the factor n.
X, y = load_diabetes(return_X_y=True, scaled=False)
Z = StandardScaler().fit_transform(X)
path = GradientPath.from_arrays(Z, y, standardize=False)
steps = np.unique(np.logspace(0, 5, 300).astype(int))
stopped = path.coef(steps)
alphas = len(y) / (2 * path.learning_rate * steps)
penalised = np.array([Ridge(alpha=alpha).fit(Z, y).coef_ for alpha in alphas])

figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 4), layout="constrained")
for ax, curves, title in zip(axes, (stopped, penalised), ("gradient descent", "ridge"), strict=True):
    ax.semilogx(steps, curves)
    ax.set(xlabel="steps k, or alpha = n / (2 eta k)", title=title)
axes[0].set_ylabel("coefficient (progression per standard deviation)")

share = np.linalg.norm(stopped - penalised, axis=1) / np.linalg.norm(stopped, axis=1)
print(f"largest relative difference along the way: {share.max():.2f}, at {steps[share.argmax()]} steps")

plt.show()
