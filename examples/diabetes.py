"""
Early stopping as regularisation: the diabetes data
===================================================

Ten measurements of 442 patients, and how far their disease had progressed a year later. With squares and products that
makes 65 features, more than least squares can use without fitting noise. Gradient descent that is stopped early does
not get that far: directions along which the data is wide are fitted in a few steps, narrow ones hardly at all.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from fssgd import CoefficientPathDisplay, LinearRegressorGD

X, y = load_diabetes(return_X_y=True, scaled=False)
folds = KFold(5, shuffle=True, random_state=0)


def report(name, model):
    scores = cross_val_score(model, X, y, cv=folds)
    print(f"{name:50}{scores.mean():.3f} +- {scores.std():.3f}")


# Years, mmHg and mg/dl stand side by side, and no StandardScaler is needed: the descent standardises by itself.
# tol=None takes exactly max_iter steps; inf is the limit, which is least squares.
squares = PolynomialFeatures(2, include_bias=False)
descent = make_pipeline(squares, LinearRegressorGD(tol=None))
n_steps, alphas = [30, 100, 300, 1_000, 3_000, np.inf], [0.0, 0.01, 0.1]
search = GridSearchCV(descent, {"linearregressorgd__alpha": alphas, "linearregressorgd__max_iter": n_steps}, cv=folds)

# The search is scored on patients that had no part in its choice.
print("R2 in 5-fold cross-validation")
report("LinearRegression, 10 features", LinearRegression())
report("LinearRegression, 65 features", make_pipeline(squares, LinearRegression()))
report("LinearRegressorGD, 65 features, chosen by search", search)

# Down the first column the score rises while the descent picks up what is there, and falls when it comes to the noise.
# The penalty keeps the other columns from falling, and their best is hardly better: stopping early is penalty enough.
scores = search.fit(X, y).cv_results_["mean_test_score"].reshape(len(alphas), len(n_steps))
print("\nThe search on all patients\n   steps" + "".join(f"{f'alpha={alpha}':>12}" for alpha in alphas))
for k, row in zip(n_steps, scores.T, strict=True):
    print(f"{k:8}" + "".join(f"{score:12.3f}" for score in row))

# A fit knows every iterate of its descent, so that the stop can also be chosen from one fit, without any folds.
path = descent.fit(X, y)[-1].path_
k = np.arange(1, 10_001)
best = int(k[path.gcv(k).argmin()])
print(f"\nGeneralised cross-validation stops at {best} steps, {path.degrees_of_freedom(best):.1f} degrees of freedom")
report("LinearRegressorGD, 65 features, stopped there", descent.set_params(linearregressorgd__max_iter=best))

# The coefficients on the way, and that stop. Up to it they come in one after the other; then squares and products that
# say nearly the same begin to pull against each other.
CoefficientPathDisplay.from_path(path, max_iter=30_000)
plt.axvline(best, color="black", linewidth=1)
plt.title(f"65 coefficients, and a stop after {best} steps")
plt.show()
