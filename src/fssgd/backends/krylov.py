"""The iterate at which stepping stops, from a Krylov space: no decomposition, and far fewer products than steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fssgd._krylov.descent import ACCURACY, KrylovDescent, descend
from fssgd._krylov.distant_start import is_far, iterate_from_afar
from fssgd._krylov.ritz_sums import FixedStepDescent
from fssgd._krylov.space import MEMORY, GolubKahan, KrylovSpace, Lanczos
from fssgd._path.step_counts import StepCounts
from fssgd._rows.design import Design, Rows
from fssgd.backends._base import Backend
from fssgd.backends._problem import Monitor, Problem, Solution, Status

Array = npt.NDArray[np.float64]
Product = Callable[[Array], Any]
MAX_CURVE = 100_000  # steps whose losses are recorded
BLOCK = 1 << 22  # numbers of a float32 design that are cast at a time


@dataclass(frozen=True, kw_only=True)
class Krylov(Backend):
    """Find the iterate at which stepping would stop without a decomposition.

    A Krylov space of the gradient at the start grows, by one product with the data and one with its transpose for each
    dimension, until it is certain at which step the descent stops and the iterate there is accurate to 1e-10. About
    ``5 sqrt(k)`` dimensions suffice for k steps, and far fewer where the eigenvalues of the data decay. Products are
    taken in float64, whatever the dtype of X.

    Parameters
    ----------
    memory : int, default=1_000_000_000
        Bytes that the basis of the space may take: 8 for each dimension, parameter and output. Beyond them it takes
        twice the products, and more than 10**6 steps may be out of reach.
    """

    name: ClassVar[str] = "krylov"
    closed_form: ClassVar[bool] = True
    memory: int = MEMORY

    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Extend the space until the iterate is known; see :meth:`Backend.solve`.

        Raises
        ------
        ValueError
            If the largest space there is room for leaves open where the descent stops, or the iterate there.
        """
        data = _Data.of(problem)
        loss, gradient = data.evaluate(problem.start)
        space = data.space(gradient, self.memory, in_row_space=problem.alpha == 0)
        found = descend(space, data.descent(loss, gradient))
        status = Status(found.reason)
        if not found.certain or (found.truncation > ACCURACY and status is not Status.DIVERGED):
            low, high = found.bracket
            room = f"more memory, as in backend=Krylov(memory={4 * self.memory}), " if not space.is_orthogonal else ""
            raise ValueError(
                f"A Krylov space of dimension {found.dimension} does not suffice: by it the descent stops between "
                f"steps {low} and {high}, and the iterate there is known to {found.truncation:.1g} of its norm. Use "
                f"{room}a larger tol, or a smaller max_iter."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            theta = problem.start + found.displacement()
        if problem.is_stable and is_far(problem.start, theta):
            theta = data.from_afar(theta, found.n_iter, self.memory)
        loss = found.loss if status is Status.DIVERGED else data.evaluate(theta)[0]
        return Solution(theta, found.n_iter, status, loss, found.gradient_norm, _loss_curve(found))


def _loss_curve(found: KrylovDescent) -> Array | None:
    """F at iterates 0 to n_iter, if they are not too many."""
    if found.n_iter > MAX_CURVE:
        return None
    curve = StepCounts.of(np.arange(found.n_iter + 1)).map(found.sums.losses, 1 + len(found.sums.weights))
    return np.asarray(curve, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Data:
    """The rows of a problem, with products in float64.

    Parameters
    ----------
    problem : Problem
    is_apart : bool
        Whether there is an intercept, and the features are centred: then it is an eigenvector by itself. In the space,
        a mean of y that is large would be most of the gradient, and cost the weights digits.
    products : tuple of (callable, callable) or None
        With A and with A'; None where the rows only multiply by A'A.
    targets : ndarray of shape (n_samples, n_outputs) or None
        In float64, likewise.
    """

    problem: Problem
    is_apart: bool
    products: tuple[Product, Product] | None
    targets: Array | None

    @classmethod
    def of(cls, problem: Problem) -> _Data:
        rows = problem.require_rows()
        coordinates = getattr(rows, "coordinates", None)
        is_apart = (
            problem.fit_intercept
            and coordinates is not None
            and getattr(rows, "mean_of_all", None) is None
            and bool(coordinates.mean.any() or (coordinates.scale != 1.0).any())
        )
        if not isinstance(rows, Rows):
            return cls(problem, is_apart, None, None)
        targets = (rows.y.astype(np.float64) - rows.coordinates.target_mean) * rows.sqrt_weights
        return cls(problem, is_apart, _float64_products(Design(rows.matrix, targets, rows.offset)), targets)

    @property
    def is_coupled(self) -> bool:
        """Whether the penalty leaves out one of the parameters of the space: then it is no shift."""
        return self.problem.fit_intercept and not self.is_apart and self.problem.alpha > 0

    def evaluate(self, theta: Array) -> tuple[float, Array]:
        """F and its gradient."""
        if self.products is None:
            loss, gradient = self.problem.evaluate(theta)
            return float(loss), np.asarray(gradient, dtype=np.float64)
        matvec, rmatvec = self.products
        level = np.zeros(theta.shape[1])
        if self.is_apart:  # b far away, times what rounding leaves of the means, is no small gradient of the weights
            theta, level = np.vstack([theta[:-1], level]), theta[-1]
        residual = matvec(theta) - self.targets
        penalty = self.problem.alpha * theta
        if self.problem.fit_intercept:
            penalty[-1] = 0.0
        gradient = 2.0 * (rmatvec(residual) + penalty)
        loss = float(np.vdot(residual, residual) + np.vdot(theta, penalty))
        if self.is_apart:
            loss += float(level @ (level + gradient[-1]))
            gradient[-1] += 2.0 * level
        return loss, gradient

    def descent(self, loss: float, gradient: Array) -> FixedStepDescent:
        """Return what is asked of the space."""
        problem, n_apart = self.problem, int(self.is_apart)
        return FixedStepDescent(
            learning_rate=problem.learning_rate,
            curvature=problem.curvature,
            loss=loss,
            max_iter=problem.max_iter,
            threshold=problem.threshold,
            shift=0.0 if self.is_coupled else 2.0 * problem.alpha,
            apart_eigenvalues=np.full(n_apart, 2.0),
            apart_gradient=gradient[len(gradient) - n_apart :],
            highest_loss=lambda lowest, displacement: problem.highest_loss(lowest, problem.start + displacement),
        )

    def from_afar(self, theta: Array, k: int | float, memory: int) -> Array:
        """Return iterate k to more digits than the start has in common with it, if they are within reach."""
        origin = self.evaluate(np.zeros_like(theta))[1]
        space = self.space(np.hstack([origin, self.problem.start]), memory, in_row_space=False)
        descent = self.descent(0.0, origin)
        found = iterate_from_afar(
            space, replace(descent, apart_eigenvalues=np.empty(0), apart_gradient=np.empty((0, 0))), k
        )
        return theta if found is None else np.vstack([found, theta[len(found) :]])

    def space(self, vectors: Array, memory: int, *, in_row_space: bool) -> KrylovSpace:
        """Return the Krylov space of vectors of all parameters; outside the row space of A it has a dimension more."""
        n_samples, n_parameters = self.problem.require_rows().n_samples, len(vectors) - self.is_apart
        rank = n_parameters if self.is_coupled else min(n_samples + (not in_row_space), n_parameters)
        start = vectors[:n_parameters]
        if self.products is None:
            return Lanczos(self._gram_matvec, start, max_dimension=rank, memory=memory)
        return GolubKahan(self._matvec, self._rmatvec, start, max_dimension=rank, memory=memory)

    def _parameters(self, vectors: Array) -> Array:
        """Vectors of the space as vectors of all parameters."""
        return np.vstack([vectors, np.zeros((1, vectors.shape[1]))]) if self.is_apart else vectors

    def _matvec(self, vectors: Array) -> Array:
        assert self.products is not None
        product: Array = self.products[0](self._parameters(vectors))
        if not self.is_coupled:
            return product
        return np.vstack([product, np.sqrt(self.problem.alpha) * vectors[:-1]])  # rows that pull the weights to 0

    def _rmatvec(self, vectors: Array) -> Array:
        assert self.products is not None
        n_samples = self.problem.require_rows().n_samples
        product: Array = self.products[1](vectors[:n_samples])
        if not self.is_coupled:
            return product[:-1] if self.is_apart else product
        product[:-1] += np.sqrt(self.problem.alpha) * vectors[n_samples:]
        return product

    def _gram_matvec(self, vectors: Array) -> Array:
        theta = self._parameters(vectors)
        product = np.asarray(self.problem.require_rows().gram_matvec(theta), dtype=np.float64)
        if self.is_coupled:
            product = product + self.problem.penalty(theta)
        return product[: len(vectors)]


def _float64_products(design: Design) -> tuple[Product, Product]:
    """Return products with A and with A' in float64.

    One projection does not correct its own rounding, as steps do: in float32 it would be off by 1e-4.
    """
    matrix = design.matrix
    if matrix.dtype == np.float64 or sp.issparse(matrix):  # SciPy multiplies in the larger precision without a copy
        return design.matvec, design.rmatvec
    width = max(1, BLOCK // max(len(matrix), 1))
    parts = [slice(start, start + width) for start in range(0, matrix.shape[1], width)]

    def matvec(theta: Array) -> Array:
        product = np.zeros((len(matrix), theta.shape[1]))
        for part in parts:  # of columns, which lie together
            product += matrix[:, part].astype(np.float64) @ theta[part]
        return product

    def rmatvec(residual: Array) -> Array:
        return np.vstack([matrix[:, part].astype(np.float64).T @ residual for part in parts])

    return matvec, rmatvec
