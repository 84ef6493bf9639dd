"""The closed form: iterate k of gradient descent for any k, from one decomposition.

With theta = (W, b), H = V diag(h) V' and gamma = V' grad F(theta_0),

    theta_k = theta_0 - V [phi_k(h) gamma],    phi_k(h) = (1 - (1 - eta h)^k) / h,
    F_k = F_min + sum_j ||gamma_j||^2 (1 - eta h_j)^(2k) / (2 h_j),
    ||grad F_k||^2 = sum_j ||gamma_j||^2 (1 - eta h_j)^(2k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fssgd._decay import PowerSum, as_float, as_steps, log_factors, times
from fssgd._moments import Moments
from fssgd._reference import Reference
from fssgd._scaling import HUGE, Scaling
from fssgd._settings import Settings, rounding_of_limit
from fssgd._spectrum import Spectrum, decompose

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
CHUNK = 1 << 20  # powers held at a time while many k are asked for

Locate = Callable[[Scaling, Array], Array]


def _zeros(settings: Settings) -> Locate:
    def locate(scaling: Scaling, level: Array) -> Array:
        theta = np.zeros((len(scaling.scale) + settings.fit_intercept, len(level)))
        if settings.fit_intercept:
            theta[-1] = -level
        return theta

    return locate


@dataclass(frozen=True, eq=False)
class GradientPath:
    """Every iterate of one gradient descent on least squares, in closed form.

    Build one with :meth:`from_moments` or :meth:`from_arrays`; a fitted
    :class:`~fssgd.LinearRegressorGD` has one as ``path_``.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_modes,)
        Eigenvalues h of the Hessian of F in the coordinates of the descent, ascending but for
        an intercept's that is decoupled, which comes last.
    learning_rate : float
        The step eta, in 1 / (units of h).

    Notes
    -----
    F is the mean squared error plus ``alpha ||W||^2``, without a factor 1/2. The filter form of
    the iterates goes back to Landweber [1]_.

    References
    ----------
    .. [1] Landweber, L. (1951). An iteration formula for Fredholm integral equations of the first
       kind. American Journal of Mathematics 73(3), 615-624. :doi:`10.2307/2372313`

    Examples
    --------
    >>> import numpy as np
    >>> from fssgd import GradientPath
    >>> path = GradientPath.from_arrays([[1.0], [2.0], [3.0], [4.0]], [3.0, 5.0, 7.0, 9.0], learning_rate=0.1)
    >>> path.coef(10).round(7), round(float(path.intercept(10)), 7)
    (array([1.7852516]), 0.8926258)
    >>> path.coef(np.inf)
    array([2.])
    >>> path.steps_to(1e-6)
    67
    """

    moments: Moments
    settings: Settings
    scaling: Scaling
    level: Array  # what b is counted from, of shape (n_outputs,)
    spectrum: Spectrum
    reference: Reference
    learning_rate: float
    single: bool  # one output, from a 1-D y

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        *,
        learning_rate: float | Literal["auto"] = "auto",
        standardize: bool = True,
        fit_intercept: bool = True,
        alpha: float = 0.0,
    ) -> GradientPath:
        """Decompose the problem that ``moments`` describe; the descent starts at zeros.

        Parameters
        ----------
        moments : Moments
            Of all the rows. With ``accurate=True`` moments the path has more right digits on
            ill-conditioned data.
        learning_rate : float or "auto", default="auto"
            Fixed step size; "auto" is 1 / L, L the largest eigenvalue of the Hessian of F.
        standardize, fit_intercept : bool, default=True
            As for :class:`~fssgd.LinearRegressorGD`.
        alpha : float >= 0, default=0.0
            As for :class:`~fssgd.LinearRegressorGD`.

        Returns
        -------
        GradientPath
        """
        return cls.of(moments, Settings(learning_rate, standardize, fit_intercept, alpha))

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        learning_rate: float | Literal["auto"] = "auto",
        standardize: bool = True,
        fit_intercept: bool = True,
        alpha: float = 0.0,
    ) -> GradientPath:
        """Decompose the problem by a QR factorisation of the data, the accurate route.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
        learning_rate, standardize, fit_intercept, alpha
            As for :meth:`from_moments`.

        Returns
        -------
        GradientPath
        """
        moments = Moments.from_arrays(X, y, sample_weight, accurate=True)
        settings = Settings(learning_rate, standardize, fit_intercept, alpha)
        return cls.of(moments, settings, single=np.ndim(y) == 1)

    @classmethod
    def of(
        cls, moments: Moments, settings: Settings, *, start: Locate | None = None, single: bool | None = None
    ) -> GradientPath:
        """Decompose the problem, seen from where ``start(scaling, level)`` says the descent begins."""
        scaling = Scaling.of_columns(moments.mean_x, moments.variance_x, settings)
        level = moments.mean_y if settings.fit_intercept else np.zeros(moments.n_outputs)
        theta = (start or _zeros(settings))(scaling, level)
        with np.errstate(over="ignore", invalid="ignore"):
            spectrum = decompose(moments, scaling, settings, theta)
        reference = Reference.of(moments, scaling, settings.fit_intercept).checked(spectrum.largest)
        if single is None:
            single = moments.n_outputs == 1
        return cls(moments, settings, scaling, level, spectrum, reference, settings.step(spectrum.largest), single)

    @property
    def eigenvalues(self) -> Array:
        return self.spectrum.eigenvalues

    @cached_property
    def _factors(self) -> Array:
        """x_j = eta h_j; within rounding of 2 it is 2, the limit of stability itself."""
        largest = self._largest_factor
        if not largest < 1e300:
            return np.clip(self.eigenvalues, 0.0, 1e300 / self.learning_rate) * self.learning_rate
        steps = self.learning_rate * self.eigenvalues
        if largest > 1.5:
            steps[np.abs(steps - 2.0) <= rounding_of_limit(len(self.spectrum.vectors))] = 2.0
        return steps

    @cached_property
    def _largest_factor(self) -> float:
        x = self.learning_rate * self.spectrum.largest
        return 2.0 if abs(x - 2.0) <= rounding_of_limit(len(self.spectrum.vectors)) else x

    @cached_property
    def _logs(self) -> Array:
        return log_factors(self._factors)

    @cached_property
    def squared_gradient(self) -> PowerSum:
        """||grad F_k||^2 as a sum of powers."""
        return PowerSum.of(self._squares, self._logs)

    @cached_property
    def excess_loss(self) -> PowerSum:
        """F_k - F_min as a sum of powers."""
        return PowerSum.of(0.5 * self._squares * self._inverses, self._logs)

    @cached_property
    def _squares(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.spectrum.gradient, self.spectrum.gradient))

    @cached_property
    def _inverses(self) -> Array:
        """1 / h_j, and 0 in the null space, where gamma is 0 too."""
        h = self.eigenvalues
        return np.divide(1.0, h, out=np.zeros_like(h), where=h > 0)

    @property
    def stable(self) -> bool:
        """Whether learning_rate <= 2 / L."""
        return self._largest_factor <= 2.0

    @property
    def at_limit(self) -> bool:
        """Whether learning_rate is 2 / L, to rounding."""
        return self._largest_factor == 2.0

    def position(self, k: int | float) -> Array:
        """Return theta_k, of shape (n_parameters, n_outputs), with b counted from ``level``."""
        self._refuse_limit(np.inf == k)
        return self._move(self._phi(as_float(k), bool(k != np.inf and k % 2)))

    def settled_at(self, k: int | float) -> bool:
        """Whether iterate k is the limit, to rounding."""
        return self.stable and self.excess_loss.at(k) <= EPS**2 * self.excess_loss.at(0)

    def rounding_at(self, k: int | float) -> float:
        """``eps min(eta k L, cond(H))``: what rounding of a scatter matrix may do to iterate k; 0 from a root."""
        if self.spectrum.accurate:
            return 0.0
        grown = self.learning_rate * self.spectrum.largest * as_float(k)
        if grown <= 1.0:
            return EPS
        constant = (self.moments.variance_x == 0) & (self.moments.mean_x == self.scaling.mean)
        null = int((self.eigenvalues == 0).sum()) - int(constant.sum())
        return EPS * min(grown, np.inf if null > 0 else self.spectrum.condition_number)

    def coef(self, k: Any) -> Any:
        """Coefficients in the user's units after k steps.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        ndarray of shape (n_features,) or (n_outputs, n_features)
            With a leading axis of n_k for an array of k.
        """
        return self._of_positions(k, lambda theta: self._unscaled(theta)[0])

    def intercept(self, k: Any) -> Any:
        """Intercept in the user's units after k steps: a scalar or (n_outputs,); see :meth:`coef`."""
        return self._of_positions(k, lambda theta: self._unscaled(theta)[1])

    def loss(self, k: Any) -> Any:
        """F at iterate k, in squared units of y; a float, or (n_k,) for an array of k.

        F_min is known to ``eps`` times the variance of y from plain moments.
        """
        return self._of_sums(k, self.excess_loss, lambda total: np.maximum(self.spectrum.minimum + total, 0.0))

    def gradient_norm(self, k: Any) -> Any:
        """||grad F|| at iterate k, in the coordinates of the descent; a float or (n_k,)."""
        return self._of_sums(k, self.squared_gradient, np.sqrt)

    def degrees_of_freedom(self, k: Any) -> Any:
        """Trace of the matrix that takes y to its fitted values after k steps, intercept included.

        ``df(k) = sum_j phi_k(h_j) v_j' M v_j`` with ``M = 2/S [Z 1]' D [Z 1]``; a float or (n_k,).
        """
        seen, curvature = self.spectrum.curvature > 0, self.spectrum.curvature

        def trace(ks: Array, odd: npt.NDArray[np.bool_]) -> Array:
            self._refuse_limit(bool(np.isinf(ks).any()))
            with np.errstate(over="ignore"):
                return np.asarray(self._phi(ks[:, None], odd[:, None])[:, seen] @ curvature[seen])

        return self._of_steps(k, trace)

    def gcv(self, k: Any) -> Any:
        """Generalised cross-validation ``(RSS_k / n) / (1 - df(k) / n)^2``; a float or (n_k,).

        RSS_k is the weighted squared error without the penalty, per unit of mean weight, and n
        counts the rows of positive weight.

        References
        ----------
        Golub, G. H., Heath, M. and Wahba, G. (1979). Generalized cross-validation as a method for
        choosing a good ridge parameter. Technometrics 21(2), 215-223.
        :doi:`10.1080/00401706.1979.10489751`
        """

        def score(ks: Array, odd: npt.NDArray[np.bool_]) -> Array:
            self._refuse_limit(bool(np.isinf(ks).any()))
            error = self.loss(ks)
            with np.errstate(over="ignore", invalid="ignore"):
                if self.settings.alpha:
                    weights = self._positions(ks, odd)[:, : len(self.scaling.scale)]
                    error = np.maximum(error - self.settings.alpha * (weights**2).sum(axis=(1, 2)), 0.0)
                share = self._residual_share(ks, odd)
                ratio = np.divide(error, share**2, out=np.full_like(error, np.inf), where=share != 0)
            return np.where(np.isnan(ratio), np.inf, ratio)  # an unstable descent that has overflowed

        return self._of_steps(k, score)

    def steps_to(self, tol: float) -> int | float:
        """Return the first k at which a fit with this ``tol`` stops; inf if there is none.

        That is the first k with ``||grad F_k|| <= max(tol G, 100 eps sqrt(2 L F_ref))``, G and F_ref
        taken at W = 0 and the best constant b, and eps that of float64.
        """
        if not tol >= 0:
            raise ValueError(f"tol must be a non-negative number, got {tol!r}.")
        return self.squared_gradient.first_below(self.reference.threshold(tol, self.spectrum.largest) ** 2)

    def _phi(self, ks: Array | float, odd: npt.NDArray[np.bool_] | bool) -> Array:
        """phi_k(h_j), of shape (n_modes,), or (n_k, n_modes) for ks and odd of shape (n_k, 1)."""
        with np.errstate(invalid="ignore", over="ignore"):
            logs = times(ks, self._logs)
            reached = -np.expm1(logs)  # 1 - a^k, without cancelling
            if self._largest_factor > 1.0:
                reached = np.where((self._factors > 1.0) & odd, 1.0 + np.exp(logs), reached)
            return np.asarray(reached * self._inverses)

    def _move(self, phi: Array) -> Array:
        """theta_k, with the leading axes of phi; a coordinate that overflows is infinite, and none is NaN."""
        if self.stable:
            return np.asarray(self.spectrum.start - self.spectrum.vectors @ (phi[..., None] * self.spectrum.gradient))
        with np.errstate(over="ignore"):
            moved = np.where(self._squares[:, None] > 0, np.clip(phi, -HUGE, HUGE)[..., None], 0.0)
            moved = np.clip(moved * self.spectrum.gradient, -HUGE, HUGE)
            theta = self.spectrum.start - self.spectrum.vectors @ moved
        return np.where(np.abs(theta) > EPS * HUGE, np.copysign(np.inf, theta), theta)

    def _residual_share(self, ks: Array, odd: npt.NDArray[np.bool_]) -> Array:
        """1 - df(k) / n as a sum of terms that are positive while the step is stable."""
        h, curvature = self.eigenvalues, self.spectrum.curvature
        seen = h > 0
        share = np.where(seen, curvature / np.where(seen, h, 1.0), 0.0)
        powers = np.exp(times(ks[:, None], self._logs))
        powers = np.where((self._factors > 1.0) & odd[:, None], -powers, powers)
        left = (1.0 - share)[seen].sum() + powers[:, seen] @ share[seen]
        return np.asarray((self.moments.n_samples - int(seen.sum()) + left) / self.moments.n_samples)

    def _positions(self, ks: Array, odd: npt.NDArray[np.bool_]) -> Array:
        self._refuse_limit(bool(np.isinf(ks).any()))
        return self._move(self._phi(ks[:, None], odd[:, None]))

    def _refuse_limit(self, wanted: bool) -> None:
        if wanted and (not self.stable or self.at_limit):
            raise ValueError(
                f"The descent has no limit at k = inf: learning_rate={self.learning_rate:.6g} is not below "
                f"2 / L = {2.0 / self.spectrum.largest:.6g}. Use a smaller step, or a finite k."
            )

    def _unscaled(self, theta: Array) -> tuple[Array, Array]:
        weights, level = (theta[:-1], theta[-1]) if self.settings.fit_intercept else (theta, 0.0 * self.level)
        coef, intercept = self.scaling.unscale(weights, level)
        if not self.settings.fit_intercept:
            return (coef[:, 0] if self.single else coef.T), np.zeros(()) if self.single else np.zeros(len(self.level))
        intercept = intercept + self.level
        return (coef[:, 0], intercept[0]) if self.single else (coef.T, intercept)

    def _of_positions(self, k: Any, read: Callable[[Array], Any]) -> Any:
        def each(ks: Array, odd: npt.NDArray[np.bool_]) -> Any:
            return np.array([read(theta) for theta in self._positions(ks, odd)])

        return self._of_steps(k, each)

    def _of_sums(self, k: Any, sums: PowerSum, finish: Callable[[Array], Array]) -> Any:
        def each(ks: Array, odd: npt.NDArray[np.bool_]) -> Array:
            with np.errstate(over="ignore"):
                return finish(np.exp(2.0 * times(ks[:, None], sums.logs)) @ sums.coefficients)

        return self._of_steps(k, each)

    def _of_steps(self, k: Any, each: Callable[[Array, npt.NDArray[np.bool_]], Any]) -> Any:
        """Call ``each`` with float k and their parities, some k at a time."""
        ks, odd = as_steps(k)
        size = max(1, CHUNK // (1 + self.spectrum.vectors.shape[0] * (1 + len(self.level))))
        parts = [each(ks[i : i + size], odd[i : i + size]) for i in range(0, len(ks), size)]
        result = np.concatenate(parts) if parts else np.empty(0)
        return result[0] if np.ndim(k) == 0 else result
