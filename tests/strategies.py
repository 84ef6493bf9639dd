"""Random problems for the property tests, and how far two computations of one descent may lie apart."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from exact import EPS

CI = settings(derandomize=True, deadline=None, max_examples=100)
SMALL = st.integers(-16, 16)


@dataclass
class Data:
    """A problem in plain float64 NumPy: the definition, without any of the library's reparametrisations."""

    X: np.ndarray
    Y: np.ndarray
    weight: np.ndarray | None
    options: dict = field(default_factory=dict)

    @cached_property
    def share(self):
        weight = np.ones(len(self.Y)) if self.weight is None else self.weight
        return weight / weight.sum()

    @cached_property
    def scaling(self):
        kept = self.X[self.share > 0]
        mean, scale = self.share @ self.X, np.ones(self.X.shape[1])
        if not self.options["standardize"]:
            return 0 * mean, scale
        varies = (kept != kept[0]).any(axis=0)
        scale[varies] = np.sqrt(self.share @ (self.X - mean) ** 2)[varies]
        mean[~varies] = kept[0, ~varies]
        return (mean if self.options["fit_intercept"] else 0 * mean), scale

    @cached_property
    def Z(self):
        mean, scale = self.scaling
        Z = (self.X - mean) / scale
        return np.column_stack([Z, np.ones(len(Z))]) if self.options["fit_intercept"] else Z

    @cached_property
    def penalty(self):
        penalty = np.full(self.Z.shape[1], float(self.options["alpha"]))
        penalty[self.X.shape[1] :] = 0.0
        return penalty

    @cached_property
    def H(self):
        return 2 * (self.Z.T * self.share) @ self.Z + np.diag(2 * self.penalty)

    @cached_property
    def eigenvalues(self):
        return np.maximum(np.linalg.eigvalsh(self.H), 0.0)

    @property
    def L(self):
        return float(self.eigenvalues[-1])

    @cached_property
    def rms(self):
        """Of the targets, from their mean if there is an intercept."""
        level = self.share @ self.Y if self.options["fit_intercept"] else 0.0
        return float(np.sqrt((self.share @ (self.Y - level) ** 2).sum()))

    def gradient(self, theta):
        return 2 * self.Z.T @ (self.share[:, None] * (self.Z @ theta - self.Y)) + 2 * self.penalty[:, None] * theta

    def iterates(self, eta, k):
        """theta_0 .. theta_k from zeros, b counted from 0."""
        thetas = [np.zeros((self.Z.shape[1], self.Y.shape[1]))]
        for _ in range(k):
            thetas.append(thetas[-1] - eta * self.gradient(thetas[-1]))
        return np.array(thetas)

    def bounds(self, eta, k):
        """How far computed iterates 0..k may lie from exact ones, and what rounding does to a gradient on the way.

        An evaluation of grad F, or a perturbation of H and the slope by rounding them, is off by
        ``u_i = c (n + p) eps (1 + m) (L ||theta_i|| + sqrt(2 L) ||y||)``, where m = max |x| / scale is what centring
        loses. Step i commits eta u_i + eps ||theta_i||, and step j > i carries it on by at most g = max |1 - eta h|
        each: ``D_k = sum_i (eta u_i + eps ||theta_i||) g^(k - 1 - i)``, which covers null directions (g = 1) and
        unstable steps (g > 1).
        """
        thetas = self.iterates(eta, k)
        if self.options["fit_intercept"]:  # counted from there, as the library does: an offset of y costs nothing
            thetas[:, -1] -= self.share @ self.Y
        self.norms = norms = np.sqrt((thetas**2).sum(axis=(1, 2)))
        lost = (np.abs(self.X) / self.scaling[1]).max() if self.options["standardize"] else 0.0
        u = 4 * sum(self.X.shape) * EPS * (1 + lost) * (self.L * norms + np.sqrt(2 * self.L) * self.rms)
        growth = np.abs(1 - eta * self.eigenvalues).max()
        distance = np.zeros(k + 1)
        for i in range(k):
            distance[i + 1] = distance[i] * growth + eta * u[i] + EPS * norms[i]
        return distance + EPS * norms, u  # theta_k itself is rounded once more


@st.composite
def problems(draw, max_rows=10, max_columns=3, weights=True, alphas=(0.0, 0.0, 0.3)):
    """Few rows of small integers times powers of 2: constant, repeated and missing directions are common."""
    n, p, t = draw(st.integers(2, max_rows)), draw(st.integers(1, max_columns)), draw(st.integers(1, 2))
    X = (
        draw(arrays(np.int64, (n, p), elements=SMALL))
        / 8
        * 2.0 ** draw(arrays(np.int64, p, elements=st.integers(-3, 3)))
    )
    X = X + draw(arrays(np.int64, p, elements=st.sampled_from([0, 0, 1, 500])))
    Y = draw(arrays(np.int64, (n, t), elements=SMALL)) / 4 + draw(st.sampled_from([0, 3, 1000]))
    weight = None
    if weights and draw(st.booleans()):
        weight = draw(arrays(np.int64, n, elements=st.integers(0, 4))).astype(float)
        weight[draw(st.integers(0, n - 1))] += 1.0
    options = {
        "alpha": draw(st.sampled_from(alphas)),
        "standardize": draw(st.booleans()),
        "fit_intercept": draw(st.booleans()),
    }
    return Data(X, Y, weight, options)


stable_ratios = st.sampled_from([0.01, 0.5, 1.0, 1.3, 1.9, 1.999])  # of eta to 1 / L
