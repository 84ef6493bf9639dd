"""
How many steps? Every answer at once
====================================

Gradient descent fits broad trends first and noise last, so its error on new data falls, then rises: where to stop is
the whole question. With the path in closed form nothing has to be stopped and started over. The error of every number
of steps is known, and the best integer is found exactly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

from fssgd import LinearRegressorGDCV

# Sixty features of very different size, of which all matter a little; more noise than one would wish for.
rng = np.random.default_rng(1)
scales = np.logspace(0, -1.5, 60)
truth = rng.normal(size=60)


def draw(n_samples):
    X = rng.normal(size=(n_samples, 60)) * scales
    return X, X @ truth + 1.5 * rng.normal(size=n_samples)


X, y = draw(150)
X_new, y_new = draw(20_000)

# Four ways to choose, without a look at the new data: a formula, folds, a part held out, and a known level of noise.
common = {"standardize": False, "max_iter": 10_000}
models = {
    "generalised cross-validation": LinearRegressorGDCV(**common),
    "10 folds": LinearRegressorGDCV(cv=10, **common),
    "10 folds, one standard error": LinearRegressorGDCV(cv=10, one_standard_error=True, **common),
    "a fifth held out": LinearRegressorGDCV(criterion="holdout", random_state=0, **common),
    "discrepancy": LinearRegressorGDCV(criterion="discrepancy", noise=1.5, **common),
}
for model in models.values():
    model.fit(X, y)

# Every model here has taken the same path, each to its own point.
path = models["10 folds"].path_
steps = np.unique(np.geomspace(1, 10_000, 300).astype(int))
residuals = y_new - path.intercept(steps)[:, None] - path.coef(steps) @ X_new.T
errors = (residuals**2).mean(axis=1)

# Ridge regression goes by a penalty instead of a number of steps; ``ridge_equivalent`` takes one to the other.
ridge = RidgeCV(alphas=np.logspace(-3, 3, 300)).fit(X, y)
ridge_error = ((y_new - ridge.predict(X_new)) ** 2).mean()

print(f"{'':32}{'steps':>7}{'error on new data':>20}")
for name, model in models.items():
    print(f"{name:32}{model.n_iter_:7}{((y_new - model.predict(X_new)) ** 2).mean():20.3f}")
print(f"{'the best, in hindsight':32}{steps[errors.argmin()]:7}{errors.min():20.3f}")
print(f"{'RidgeCV':32}{'':7}{ridge_error:20.3f}")

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
axes.semilogx(steps, errors, color="black", label="error on new data")
axes.semilogx(steps, models["10 folds"].cv_mse_at(steps), color="grey", label="10 folds")
axes.semilogx(steps, path.gcv(steps), color="grey", linestyle=":", label="generalised cross-validation")
for color, (name, model) in zip(plt.colormaps["tab10"].colors, models.items(), strict=False):
    axes.axvline(model.n_iter_, color=color, linewidth=1, label=f"{name}: {model.n_iter_}")
axes.axhline(ridge_error, color="tab:brown", linestyle="--", label="RidgeCV")
axes.set(xlabel="steps k", ylabel="mean squared error", ylim=(0.85 * errors.min(), 1.6 * errors.min()))
axes.legend(fontsize="small", ncols=2)
plt.show()
