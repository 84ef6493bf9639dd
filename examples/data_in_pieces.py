"""
How do I fit data that comes in pieces?
=======================================

With ``partial_fit``: rows in any pieces, any order, one at a time if need be. It is not stochastic gradient descent.
After every call the model is exactly the one that ``fit`` gives for all the rows so far, and there is nothing to tune.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDRegressor

from fssgd import LinearRegressorGD, Moments

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 0.0, -3.0]
right = np.array([2.0, -0.5, 10.0, 1.0])
y = X @ right + 4.0 + 3.0 * rng.normal(size=len(X))

# %%
# Scikit-learn's ``SGDRegressor`` has a ``partial_fit`` too, which takes one step for each row. It needs scaled
# features and a schedule of steps, and its answer depends on both and on the order of the rows. Here it gets the
# scaling from all the data, which a stream does not know.
exact, stochastic = LinearRegressorGD(), SGDRegressor(penalty=None, random_state=0)
mean, scale = X.mean(axis=0), X.std(axis=0)
seen, errors = [], {"LinearRegressorGD.partial_fit": [], "SGDRegressor.partial_fit": []}
for start in range(0, len(X), 100):
    rows = slice(start, start + 100)
    exact.partial_fit(X[rows], y[rows])
    stochastic.partial_fit((X[rows] - mean) / scale, y[rows])
    seen.append(start + 100)
    found = exact.coef_ * scale, stochastic.coef_
    for values, coef in zip(errors.values(), found, strict=True):
        values.append(np.linalg.norm(coef - right * scale) / np.linalg.norm(right * scale))

figure, ax = plt.subplots(layout="constrained")
for name, values in errors.items():
    ax.loglog(seen, values, label=name)
ax.loglog(seen, errors["LinearRegressorGD.partial_fit"][0] * np.sqrt(seen[0] / np.array(seen)), ":", color="grey")
ax.set(xlabel="rows seen", ylabel="relative error of the coefficients", title="Every row counts once, whenever it came")
ax.legend(frameon=False)

# %%
# The pieces may as well lie on different machines: what each knows of its rows is a few sums, which add up.
parts = [Moments.from_arrays(*part) for part in zip(np.array_split(X, 7), np.array_split(y, 7), strict=True)]
total = sum(parts[1:], parts[0])
merged = LinearRegressorGD().fit_moments(total)
print("largest difference to fit(X, y):", abs(merged.coef_ - LinearRegressorGD().fit(X, y).coef_).max())

plt.show()
