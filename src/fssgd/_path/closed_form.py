"""The closed form: iterate k of gradient descent for any k, from one decomposition.

With theta = (W, b), H = V diag(h) V' and gamma = V' grad F(theta_0),

    theta_k = theta_0 - V [phi_k(h) gamma],    phi_k(h) = (1 - (1 - eta h)^k) / h,
            = V [(1 - eta h)^k V' theta_0 - phi_k(h) V' grad F(0)],
    F_k = F_min + sum_j ||gamma_j||^2 (1 - eta h_j)^(2k) / (2 h_j),
    ||grad F_k||^2 = sum_j ||gamma_j||^2 (1 - eta h_j)^(2k).

The sum of the smaller terms is the one that is evaluated. In the first form a start far away cancels against
the way back from it, and leaves its rounding; in the second the rounding of the start is left in weights that
have hardly begun to move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import HUGE, Coordinates
from fssgd._descent.settings import Settings
from fssgd._descent.starts import Start, at_zero
from fssgd._descent.tolerance import ToleranceReference
from fssgd._moments.moments import Moments
from fssgd._path.decomposition import decompose
from fssgd._path.power_sums import PowerSum
from fssgd._path.smoother import Smoother
from fssgd._path.spectral_filter import Filter
from fssgd._path.spectrum import Spectrum
from fssgd._path.step_counts import StepCounts, as_float

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
ACCURACY = 1e-10  # where rounding of second moments may reach further, data at hand is read again


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """One gradient descent in the eigenbasis of its Hessian; :class:`GradientPath` adds what users ask of it.

    Parameters
    ----------
    moments : Moments
    settings : Settings
    coordinates : Coordinates
    spectrum : Spectrum
    reference : ToleranceReference
    """

    moments: Moments
    settings: Settings
    coordinates: Coordinates
    spectrum: Spectrum
    reference: ToleranceReference

    @classmethod
    def of(
        cls, moments: Moments, settings: Settings, *, start: Start = at_zero, single_output: bool | None = None
    ) -> Self:
        """Decompose the problem, with settings bundled and any start.

        Parameters
        ----------
        moments : Moments
        settings : Settings
        start : callable, default=at_zero
            Takes the coordinates to theta_0, of shape (n_parameters, n_outputs).
        single_output : bool, default=None
            Whether results drop the axis of the outputs; None does if there is one.

        Returns
        -------
        ClosedForm
        """
        if single_output is None:
            single_output = moments.n_outputs == 1
        coordinates = Coordinates.of_columns(
            moments.mean_x, moments.variance_x, moments.mean_y, settings, single_output=single_output
        )
        theta = start(coordinates)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused right below
            spectrum = decompose(moments, coordinates, settings, theta)
        reference = ToleranceReference.of_moments(moments, coordinates)
        reference.require_in_range(spectrum.largest, theta, coordinates)
        return cls(moments, settings, coordinates, spectrum, reference)

    def with_step(self, learning_rate: float) -> Self:
        """Return the same descent with another step.

        Parameters
        ----------
        learning_rate : float

        Returns
        -------
        ClosedForm
        """
        return replace(self, settings=replace(self.settings, learning_rate=learning_rate))

    def with_moments(self, moments: Moments) -> Self:
        """Return the same descent from other moments of the same rows, which have more digits.

        Parameters
        ----------
        moments : Moments

        Returns
        -------
        ClosedForm
        """
        spectrum = decompose(moments, self.coordinates, self.settings, self.spectrum.start)
        return replace(self, moments=moments, spectrum=spectrum)

    @cached_property
    def learning_rate(self) -> float:
        """The step eta, in 1 / (units of h)."""
        return self.settings.step(self.spectrum.largest)

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues h of the Hessian of F in the coordinates of the descent."""
        return self.spectrum.eigenvalues

    @cached_property
    def filter(self) -> Filter:
        """Factors of k steps along each eigenvector."""
        return Filter(self.eigenvalues, self.learning_rate, len(self.spectrum.vectors))

    @cached_property
    def smoother(self) -> Smoother:
        """The descent as a matrix times y."""
        return Smoother(self.spectrum, self.filter, self.moments.n_samples)

    @cached_property
    def _squares(self) -> Array:
        """||gamma_j||^2, of shape (n_modes,)."""
        return np.asarray(np.einsum("ij,ij->i", self.spectrum.gradient, self.spectrum.gradient))

    @cached_property
    def excess_loss(self) -> PowerSum:
        """F_k - F_min as a sum of powers."""
        return PowerSum.of(0.5 * self._squares * self.filter.inverses, self.filter.logs)

    @cached_property
    def squared_gradient(self) -> PowerSum:
        """||grad F_k||^2 as a sum of powers."""
        if not self.unresolved:
            return PowerSum.of(self._squares, self.filter.logs)
        # a mode that no step moves: so that a tolerance below it is never said to be met
        return PowerSum.of(np.append(self._squares, self.unresolved**2), np.append(self.filter.logs, 0.0))

    @cached_property
    def unresolved(self) -> float:
        """Norm of the gradient along directions that second moments do not resolve, 0 if it is no more than rounding.

        No step makes it smaller: whether a descent would is for the rows to say.
        """
        found = self.spectrum.unresolved
        return found if found and found > self.reference.threshold(0.0, self.spectrum.largest) else 0.0

    @property
    def stable(self) -> bool:
        """Whether learning_rate <= 2 / L."""
        return self.filter.stable

    @property
    def at_limit(self) -> bool:
        """Whether learning_rate is 2 / L, to rounding."""
        return self.filter.at_limit

    def require_stable(self, message: str) -> None:
        """Raise an error unless learning_rate <= 2 / L.

        Parameters
        ----------
        message : str
            What the step is too large for.

        Raises
        ------
        ValueError
        """
        if not self.stable:
            raise ValueError(
                f"{message}: learning_rate={self.learning_rate:.6g} is above 2 / L = "
                f"{2.0 / self.spectrum.largest:.6g}. Use a smaller step."
            )

    def _require_limit(self, steps: StepCounts) -> None:
        """Raise a ValueError if the limit is asked for and there is none."""
        if steps.any_infinite and (not self.stable or self.at_limit):
            raise ValueError(
                f"The descent has no limit at k = inf: learning_rate={self.learning_rate:.6g} is not below "
                f"2 / L = {2.0 / self.spectrum.largest:.6g}. Use a smaller step, or a finite k."
            )

    def position(self, k: int | float) -> Array:
        """Return iterate k in the coordinates of the descent.

        Parameters
        ----------
        k : int >= 0 or inf

        Returns
        -------
        ndarray of shape (n_parameters, n_outputs)
            theta_k; the intercept, if there is one, comes last and is counted from the mean of y.
        """
        if k == 0:  # to the last bit, which V (V' theta_0) is not
            return self.spectrum.start.copy()
        steps = StepCounts(as_float(k), bool(k != np.inf and k % 2))
        self._require_limit(steps)
        return self._theta(steps)

    def _positions(self, steps: StepCounts) -> Array:
        """Return the iterates, of shape (n_k, n_parameters, n_outputs)."""
        self._require_limit(steps)
        theta = self._theta(steps)
        return np.where(steps.column()[..., None] == 0, self.spectrum.start, theta)  # the start to the last bit

    def _theta(self, steps: StepCounts) -> Array:
        """theta_k, with the leading axis of k; a coordinate that overflows is infinite, and none is NaN."""
        spectrum, (phi, left) = self.spectrum, self.filter.values_and_residual_factors(steps)
        if self.stable:
            # far from the limit still, the way from the start is the shorter sum; near it, what is left of the start
            along = left[..., None] * spectrum.coordinates + phi[..., None] * spectrum.pull
            if spectrum.starts_apart:  # zeros, the usual start: both sums are the same but for b
                return spectrum.position(along)
            way = phi[..., None] * spectrum.gradient
            near = _largest(way) <= _largest(along)
            origin = np.where(near, spectrum.start, 0.0 if spectrum.outside is None else spectrum.outside)
            return np.asarray(origin + spectrum.vectors @ np.where(near, -way, along))
        with np.errstate(over="ignore"):  # an unstable step: factors grow beyond all bounds, and inf times 0 is NaN
            moved = np.where(self._squares[:, None] > 0, np.clip(phi, -HUGE, HUGE)[..., None], 0.0)
            moved = np.clip(moved * spectrum.gradient, -HUGE, HUGE)
            theta = spectrum.start - spectrum.vectors @ moved
        return np.where(np.abs(theta) > EPS * HUGE, np.copysign(np.inf, theta), theta)

    def squared_errors(self, steps: StepCounts) -> Array:
        """Mean squared error of each output, without the penalty.

        Parameters
        ----------
        steps : StepCounts

        Returns
        -------
        ndarray of shape (n_k, n_outputs), or (n_outputs,) for one k
        """
        squares = 0.5 * self.spectrum.gradient**2 * self.filter.inverses[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            # an unstable step overflows; inf times a coefficient of 0 would be NaN, and inf is meant
            powers = np.minimum(np.exp(2.0 * steps.times(self.filter.logs)), 1e300)
            error = self.spectrum.minima + powers @ squares
            if self.settings.alpha:  # the sum above is of F, which has the penalty in it
                weights, _ = self.coordinates.split(self._positions(steps))
                error = error - self.settings.alpha * (weights**2).sum(axis=-2)
        # inf - inf of an overflowed loss and its penalty; a perfect fit is 0, and not the rounding below it
        return np.where(np.isnan(error), np.inf, np.maximum(error, 0.0))

    def settled_at(self, k: int | float) -> bool:
        """Tell whether iterate k is the limit, to rounding.

        Parameters
        ----------
        k : int >= 0 or inf

        Returns
        -------
        bool
        """
        # of a start far away the square of eps is still more than the limit has
        return self.stable and self.excess_loss.at(k) <= EPS**2 * min(self.excess_loss.at(0), self.reference.loss)

    def rounding_at(self, k: int | float) -> float:
        """Estimate how far the rounding of second moments may move iterate k.

        Parameters
        ----------
        k : int >= 0 or inf

        Returns
        -------
        float
            ``eps min(eta k L, cond(H))``, relative to the coefficients, or how far k steps may lead along directions
            that are not resolved, if that is more; 0 where the moments carry a triangular factor.
        """
        if self.spectrum.accurate:
            return 0.0
        if self.unresolved and k > 0:  # nearly dependent columns: how far along them the gradient may have led by now
            size = np.inf if k == np.inf else float(np.linalg.norm(self.position(k)))
            away = self.learning_rate * as_float(k) * self.unresolved
            if not away <= EPS * size:
                return away / size if 0.0 < size < np.inf else np.inf
        grown = self.learning_rate * self.spectrum.largest * as_float(k)
        if grown <= 1.0:  # fewer steps than 1 / (eta L): no direction has gone further than the steepest
            return EPS
        # a constant column is null for certain; any other null direction may be one that rounding hides
        constant = (self.moments.variance_x == 0) & (self.moments.mean_x == self.coordinates.mean)
        null = int((self.eigenvalues == 0).sum()) - int(constant.sum())
        return EPS * min(grown, np.inf if null > 0 else self.spectrum.condition_number)

    def _map_steps(self, k: Any, function: Callable[[StepCounts], Any]) -> Any:
        """Return ``function`` of k as the user passed it, some values at a time."""
        n_parameters, n_outputs = self.coordinates.shape
        return StepCounts.of(k).map(function, 1 + n_parameters * (1 + n_outputs))


def _largest(parts: Array) -> Array:
    """Largest part of each output, of shape (..., 1, n_outputs): as good as a norm here, and it cannot overflow."""
    return np.asarray(np.abs(parts).max(axis=-2, keepdims=True, initial=0.0))
