"""Matrices with known singular values, and the descents on them from their closed form."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fssgd._path.power_sums import PowerSum
from fssgd._path.spectral_filter import Filter
from fssgd._path.step_counts import StepCounts, as_float

SPECTRA = {
    "geometric, cond 1e4": lambda p: np.geomspace(1.0, 1e-2, p),
    "geometric, cond 1e8": lambda p: np.geomspace(1.0, 1e-4, p),
    "geometric, cond 1e12": lambda p: np.geomspace(1.0, 1e-6, p),
    "uniform": lambda p: np.sqrt(np.linspace(1.0 / p, 1.0, p)),
    "clustered": lambda p: np.repeat([1.0, 0.3, 1e-2, 1e-3], -(-p // 4))[:p] * (1.0 - 1e-9 * (np.arange(p) % 7)),
    "outlier": lambda p: np.append(1.0, np.linspace(0.02, 0.01, p - 1)),
    "power": lambda p: 1.0 / np.arange(1, p + 1),
    "null space": lambda p: np.append(np.geomspace(1.0, 1e-3, p - p // 4), np.zeros(p // 4)),
}


@dataclass
class Known:
    """F with Hessian 2 A'A + shift I and A = U diag(s) V', seen from a start where its gradient is known."""

    s: np.ndarray
    shift: float
    part: float
    outputs: int = 1
    wide: bool = False
    seed: int = 0

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        p, rank = len(self.s), int((self.s > 0).sum())
        self.n = rank if self.wide else p + 7
        left = np.linalg.qr(rng.normal(size=(self.n, rank)))[0]
        self.V = np.linalg.qr(rng.normal(size=(p, p)))[0]
        order = np.argsort(self.s == 0, kind="stable")  # non-zero values first
        self.s, self.V = self.s[order], self.V[:, order]
        self.A = left * self.s[:rank] @ self.V[:, :rank].T
        self.gamma = 2.0 * self.s[:, None] * rng.normal(size=(p, self.outputs))
        if self.shift:  # a warm start: some of it in the null space
            self.gamma += self.shift * rng.normal(size=(p, self.outputs))
        if self.outputs > 1:
            self.gamma[:, 1] = 0.0
        self.g = self.V @ self.gamma
        self.h = 2.0 * self.s**2 + self.shift
        self.L = float(self.h.max())
        self.eta = self.part / self.L
        self.size = float(np.linalg.norm(self.g))

    def matvec(self, vectors):
        return self.A @ vectors

    def rmatvec(self, vectors):
        return self.A.T @ vectors

    def gram_matvec(self, vectors):
        return self.A.T @ (self.A @ vectors)

    @cached_property
    def filter(self):
        return Filter(self.h, self.eta, len(self.h))

    @cached_property
    def squared_gradient(self):
        return PowerSum.of((self.gamma**2).sum(axis=1), self.filter.logs)

    def stop(self, max_iter, threshold):
        if threshold is not None:
            k = self.squared_gradient.first_below(threshold**2)
            if k <= max_iter:
                return k, "converged"
        return max_iter, "max_iter"

    def displacement(self, k):
        phi = self.filter.values(StepCounts(as_float(k), bool(k != np.inf and k % 2)))
        return -self.V @ (phi[:, None] * self.gamma)

    def drop(self, k):
        """F_0 - F_k."""
        phi = self.filter.values(StepCounts(2.0 * as_float(k), False))
        return 0.5 * float((phi[:, None] * self.gamma**2).sum())


def relative(found, right):
    """Largest relative error of a column."""
    size = np.linalg.norm(right, axis=0)
    return float((np.linalg.norm(found - right, axis=0) / np.where(size > 0, size, 1.0)).max())
