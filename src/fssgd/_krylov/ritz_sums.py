"""A gradient descent along the Ritz vectors of a Krylov space: its gradient norms, losses and coefficients.

The eigenvalues h_j of the small matrix, and the coordinates gamma_j of the gradient along its eigenvectors, stand for
those of the Hessian,

    theta_k - theta_0 = -V [phi_k(T) |g| e_1],    phi_k(h) = (1 - (1 - eta h)^k) / h,
    ||grad F_k||^2 = sum_j gamma_j^2 (1 - eta h_j)^(2k),
    F_k = F_0 - sum_j gamma_j^2 phi_2k(h_j) / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fssgd._krylov.quadrature import Measure
from fssgd._path.power_sums import PowerSum
from fssgd._path.spectral_filter import Filter
from fssgd._path.step_counts import StepCounts, as_float

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class FixedStepDescent:
    """What is asked of the Krylov space of the gradient at the start.

    Parameters
    ----------
    learning_rate : float
        eta.
    curvature : float
        Upper bound of the largest eigenvalue of H.
    loss : float
        F_0.
    max_iter : int or inf
    threshold : float or None
        Stop at the first k with ||grad F_k|| <= threshold; None runs all the steps.
    shift : float
        What H adds to 2 A'A along every parameter: twice the penalty where all of them are penalised.
    apart_eigenvalues : ndarray of shape (n_apart,)
        Of parameters that are eigenvectors by themselves and kept out of the space, such as the intercept of centred
        features. They come last in displacements.
    apart_gradient : ndarray of shape (n_apart, n_outputs)
        g along them.
    highest_loss : callable or None
        Takes the lowest F so far and a displacement to the largest F that rounding explains there; above it the descent
        has diverged. None never does.
    """

    learning_rate: float
    curvature: float
    loss: float
    max_iter: int | float
    threshold: float | None
    shift: float = 0.0
    apart_eigenvalues: Array = field(default_factory=lambda: np.empty(0))
    apart_gradient: Array = field(default_factory=lambda: np.empty((0, 0)))
    highest_loss: Callable[[float, Array], float] | None = None


@dataclass(frozen=True, eq=False)
class RitzSums:
    """A descent along the eigenvectors of the small matrices of a Krylov space.

    Parameters
    ----------
    descent : FixedStepDescent
    measures : list of Measure
        Of H, one an output.
    n_parameters : int
    """

    descent: FixedStepDescent
    measures: list[Measure]
    n_parameters: int

    @cached_property
    def filter(self) -> Filter:
        """Factors of k steps along the nodes of all outputs, the parameters apart last."""
        nodes = [measure.nodes for measure in self.measures]
        return Filter(
            np.concatenate([*nodes, self.descent.apart_eigenvalues]), self.descent.learning_rate, self.n_parameters
        )

    @cached_property
    def weights(self) -> Array:
        """Squared gradient at the start along each node."""
        apart = (self.descent.apart_gradient**2).sum(axis=1)
        return np.concatenate([*(measure.weights for measure in self.measures), apart])

    @cached_property
    def _is_null(self) -> npt.NDArray[np.bool_]:
        apart = np.zeros(len(self.descent.apart_eigenvalues), dtype=bool)
        return np.concatenate([*(measure.is_null for measure in self.measures), apart])

    @cached_property
    def squared_gradient(self) -> PowerSum:
        """||grad F_k||^2 as a sum of powers."""
        return PowerSum.of(self.weights, self.filter.logs)

    @cached_property
    def excess_loss(self) -> PowerSum:
        """F_k less its minimum over the space, as a sum of powers."""
        inverses = np.where(self._is_null, 0.0, self.filter.inverses)  # the squared rounding of g over that of h
        return PowerSum.of(0.5 * self.weights * inverses, self.filter.logs)

    @cached_property
    def minimum(self) -> float:
        """Minimum of F over the space."""
        return max(self.descent.loss - self.excess_loss.at(0), 0.0)

    def loss(self, k: int | float) -> float:
        """F_k; inf where it overflows."""
        return self.minimum + self.excess_loss.at(k)

    def losses(self, steps: StepCounts) -> Array:
        """F_k at several k; inf where it overflows."""
        with np.errstate(over="ignore"):
            powers = np.exp(2.0 * steps.times(self.excess_loss.logs))
            return np.asarray(self.minimum + powers @ self.excess_loss.coefficients)

    def travelled(self, k: int | float) -> list[Array]:
        """phi_k at the nodes of each output, and last of the parameters apart."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.filter.values(StepCounts(as_float(k), bool(k != np.inf and k % 2)))
        if k == np.inf:  # of least norm: nothing moves along the null space
            values[self._is_null] = 0.0
        else:
            values[self.filter.eigenvalues == 0] = self.descent.learning_rate * as_float(k)
        return np.split(values, np.cumsum([len(measure.nodes) for measure in self.measures]))

    def coefficients(self, k: int | float) -> list[Array]:
        """phi_k(H) g of each output, in the basis of its space."""
        return [measure.function(phi) for measure, phi in zip(self.measures, self.travelled(k)[:-1], strict=True)]

    def rounding_of_coefficients(self, k: int | float) -> list[Array]:
        """Error of each output's coefficients by the rounding of its nodes, one term a node."""
        logs = np.split(self.filter.logs, np.cumsum([len(measure.nodes) for measure in self.measures]))
        rate, found = self.filter.learning_rate * min(as_float(k), 1e300), []
        for measure, phi, part in zip(self.measures, self.travelled(k), logs, strict=False):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                left = np.exp(StepCounts(as_float(k), False).times(part))
                slope = (rate * left + np.abs(phi)) / measure.nodes  # of phi_k, at most
                slope = np.where(left <= 1.0, np.fmin(slope, rate * np.abs(phi)), slope)
                error = slope * measure.uncertainty * measure.components
            found.append(np.where(measure.is_null & (k == np.inf), 0.0, error))
        return found

    def rounding_of_norm(self, k: int | float) -> float:
        """Relative error of ||grad F_k|| by the rounding of nodes and weights; inf where it is 0."""
        uncertainty = np.concatenate([*(m.uncertainty for m in self.measures), 0.0 * self.descent.apart_eigenvalues])
        norm, start = np.sqrt(self.squared_gradient.at(k)), np.sqrt(self.weights.sum())
        if not (norm > 0.0 and 0 < k < np.inf):
            return 0.0 if k == 0 else np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            left = self.weights * np.exp(2.0 * StepCounts(as_float(k), False).times(self.filter.logs))
            moved = as_float(k) * self.filter.learning_rate * float(left @ uncertainty) / norm**2
        return float(EPS * start / norm + moved)
