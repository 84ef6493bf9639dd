"""
Why are my coefficients wrong in the first digit?
=================================================

Powers of x look more and more alike, and a library that forms ``X'X``, or cuts singular values off to be safe, has
fewer and fewer right digits as the degree grows. Here the right answer is known: y is a polynomial with coefficients 1.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import LinearRegression, Ridge

from fssgd import LinearRegressorGD, Moments

x = np.linspace(0.0, 2.0, 64)  # in steps that float64 holds exactly or nearly so
DEGREES = range(1, 13)


def digits(coef):
    error = abs(np.asarray(coef) - 1.0).max()
    return float(np.clip(-np.log10(max(error, 1e-16)), 0, 16))


def from_moments(X, y, accurate):
    model = LinearRegressorGD(max_iter=np.inf, tol=None)
    return model.fit_moments(Moments.from_arrays(X, y, accurate=accurate)).coef_


LIMIT = LinearRegressorGD(max_iter=np.inf, tol=None)
FITS = {
    "LinearRegressorGD, fit": lambda X, y: LIMIT.fit(X, y).coef_,
    "LinearRegressorGD, accurate moments": lambda X, y: from_moments(X, y, accurate=True),
    "scikit-learn LinearRegression": lambda X, y: LinearRegression().fit(X, y).coef_,
    "normal equations (Ridge, alpha=0)": lambda X, y: Ridge(alpha=0.0, solver="cholesky").fit(X, y).coef_,
}

# %%
# The condition number of the standardised powers says how many digits each way may lose: those that go through second
# moments lose twice as many. ``fit`` notices when fewer than ten digits would be left, reads the data again through a
# QR factorisation, and refines the result with residuals in extended precision. (``Ridge`` notices too, at the end.)
warnings.simplefilter("ignore", LinAlgWarning)
found = {name: [] for name in FITS}
condition = []
for degree in DEGREES:
    X = x[:, None] ** np.arange(1, degree + 1)
    y = X.sum(axis=1) + 1.0
    condition.append(np.linalg.cond((X - X.mean(axis=0)) / X.std(axis=0)))
    for name, fit in FITS.items():
        try:
            found[name].append(digits(fit(X, y)))
        except np.linalg.LinAlgError:
            found[name].append(0.0)

figure, ax = plt.subplots(layout="constrained")
for (name, values), marker in zip(found.items(), "osD^", strict=True):
    ax.plot(DEGREES, values, marker=marker, label=name)
left = 16 - np.log10(condition)
ax.plot(DEGREES, left, ":", color="grey", label="16 digits less those of the condition number")
ax.set(xlabel="degree", ylabel="right digits of the worst coefficient", ylim=(0, 17))
ax.set_title("Fitting 1 + x + x² + ... to 64 points")
ax.legend(frameon=False, fontsize=8)

plt.show()
