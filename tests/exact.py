"""Right values: gradient descent in 80-digit arithmetic, from the float64 data as they are.

Nothing here comes from the library. One step of the descent is an affine map of theta, so k of them are a power of
that map, taken by repeated squaring; H, the gradient and F follow from the definitions, row by row.
"""

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np

DATA = Path(__file__).parent / "data"
EPS = float(np.finfo(np.float64).eps)

mp = mpmath.mp.clone()
mp.dps = 80
to_exact = np.frompyfunc(mp.mpf, 1, 1)
root = np.frompyfunc(mp.sqrt, 1, 1)


class Descent:
    """The problem of the documentation, section 2, in exact arithmetic; theta is W over b, one column an output."""

    def __init__(self, X, y, weight=None, *, standardize=True, fit_intercept=True, alpha=0.0, start=None):
        X, y = to_exact(np.asarray(X, float)), to_exact(np.asarray(y, float).reshape(len(y), -1))
        share = to_exact(np.ones(len(y)) if weight is None else np.asarray(weight, float))
        share = share / share.sum()
        p = X.shape[1]
        self.mean, self.scale = 0 * X[0], 0 * X[0] + 1
        if standardize:
            seen = X[share > 0]
            constant = (seen == seen[0]).all(axis=0)
            mean = np.where(constant, seen[0], share @ X)
            self.scale = np.where(constant, mp.mpf(1), root(share @ (X - mean) ** 2))
            self.mean = mean if fit_intercept else self.mean
        Z = (X - self.mean) / self.scale
        if fit_intercept:
            Z = np.hstack([Z, np.full((len(y), 1), mp.mpf(1))])
        self.fit_intercept, self.p = fit_intercept, p
        self.penalty = np.array([mp.mpf(alpha)] * p + [mp.mpf(0)] * (Z.shape[1] - p))
        self.H = 2 * (Z.T * share) @ Z + np.diag(2 * self.penalty)
        self.slope = 2 * (Z.T * share) @ y
        self.Z, self.y, self.share = Z, y, share
        self.start = np.zeros((Z.shape[1], y.shape[1])) if start is None else np.asarray(start, float)
        self.start = to_exact(self.start.reshape(Z.shape[1], -1))

    def theta(self, k, eta):
        """Iterate k; an integer of any size."""
        eye = np.diag([mp.mpf(1)] * len(self.H))
        power, offset = eye, 0 * self.slope
        square, moved = eye - mp.mpf(eta) * self.H, mp.mpf(eta) * self.slope
        while k:
            if k % 2:
                power, offset = square @ power, square @ offset + moved
            square, moved, k = square @ square, square @ moved + moved, k // 2
        return power @ self.start + offset

    def limit(self):
        """Minimiser of F, where H is regular."""
        solve = mp.lu_solve
        columns = [list(solve(mp.matrix(self.H.tolist()), mp.matrix(list(column)))) for column in self.slope.T]
        return np.array(columns).T

    def solve_plainly(self):
        """Coefficients and intercept of one output at the minimum, rounded to double."""
        coef, intercept = self.unscale(self.limit())
        return coef[:, 0], intercept[0]

    def loss(self, theta):
        residual = self.y - self.Z @ theta
        return float((self.share @ residual**2).sum() + (self.penalty @ theta**2).sum())

    def gradient_norm(self, theta):
        return float(root(((self.H @ theta - self.slope) ** 2).sum()))

    def unscale(self, theta):
        """Coefficients of shape (n_features, n_outputs) and intercepts, in the user's units, rounded to double."""
        coef = theta[: self.p] / self.scale[:, None]
        level = theta[self.p] if self.fit_intercept else 0 * theta[0]
        return coef.astype(float), (level - self.mean @ coef).astype(float)

    @property
    def curvature(self):
        """L."""
        return float(max(mp.eigsy(mp.matrix(self.H.tolist()), eigvals_only=True)))


def error(found, right):
    """Norm of the difference relative to the norm of what is right."""
    found, right = np.asarray(found, float), np.asarray(right, float)
    assert found.shape == right.shape, (found.shape, right.shape)
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def question_data():
    """The data of the question fssgd grew out of: raw, cond(H) = 13299."""
    x = np.arange(100, step=0.1)
    return x[:, None], x + 20 * np.sin(x / 10) + 15


def polynomial_data():
    """Powers 1 to 8 of 60 points: standardised, cond(H) is about 5e11."""
    x = np.linspace(0.0, 2.0, 60)
    return x[:, None] ** np.arange(1, 9), np.cos(3 * x) + x


def seed(name):
    """An experiment of `data/seed.json`, in 50-digit arithmetic."""
    return json.loads((DATA / "seed.json").read_text())[name]


def nist(name):
    """X, y, whether there is an intercept, and the certified coefficients, intercept first."""
    facts = json.loads((DATA / "nist" / "certified.json").read_text())[name]
    table = np.loadtxt(DATA / "nist" / f"{name}.csv", delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    if facts["model"] == "polynomial":
        # NumPy's own powers may be off by an ulp (1.26 on AVX512), which costs the Wampler sets digits
        X = np.array([[float(Fraction(x) ** k) for k in range(1, facts["degree"] + 1)] for x in X[:, 0]])
    return X, y, facts["fit_intercept"], np.array(facts["coefficients"], float)
