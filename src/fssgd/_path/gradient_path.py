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
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import HUGE, Scaling
from fssgd._descent.settings import Settings, as_float64
from fssgd._descent.starts import Start, at_zero
from fssgd._descent.tolerance import ToleranceReference
from fssgd._moments.moments import Moments
from fssgd._path.power_sums import PowerSum, as_float, over_steps, times
from fssgd._path.smoother import Smoother
from fssgd._path.spectral_filter import Filter, Flags
from fssgd._path.spectrum import Spectrum, decompose

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
ACCURACY = 1e-10  # where rounding of second moments may reach further, data at hand is read again


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
    reference: ToleranceReference
    learning_rate: float
    single_output: bool  # one output, from a 1-D y

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
        return cls.of(moments, settings, single_output=np.ndim(y) == 1)

    @classmethod
    def of(
        cls, moments: Moments, settings: Settings, *, start: Start | None = None, single_output: bool | None = None
    ) -> GradientPath:
        """Decompose the problem, with settings bundled and any start.

        Parameters
        ----------
        moments : Moments
        settings : Settings
        start : callable, default=None
            Takes the scaling and the level of y to theta_0, of shape (n_parameters, n_outputs); None is W = 0, b = 0.
        single_output : bool, default=None
            Whether results drop the axis of the outputs; None does if there is one.

        Returns
        -------
        GradientPath
        """
        scaling = Scaling.of_columns(moments.mean_x, moments.variance_x, settings)
        level = moments.mean_y if settings.fit_intercept else np.zeros(moments.n_outputs)
        theta = (start or at_zero(settings))(scaling, level)
        with np.errstate(over="ignore", invalid="ignore"):
            spectrum = decompose(moments, scaling, settings, theta)
        reference = ToleranceReference.of(moments, scaling, settings.fit_intercept).require_in_range(
            spectrum.largest, theta, settings.fit_intercept
        )
        if single_output is None:
            single_output = moments.n_outputs == 1
        return cls(
            moments, settings, scaling, level, spectrum, reference, settings.step(spectrum.largest), single_output
        )

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues h of the Hessian of F in the coordinates of the descent."""
        return self.spectrum.eigenvalues

    @cached_property
    def filter(self) -> Filter:
        """What k steps do to each mode."""
        return Filter(self.eigenvalues, self.learning_rate, len(self.spectrum.vectors))

    @cached_property
    def smoother(self) -> Smoother:
        """The descent as a matrix times y."""
        return Smoother(self.spectrum, self.filter, self.moments.n_samples)

    @cached_property
    def squared_gradient(self) -> PowerSum:
        """||grad F_k||^2 as a sum of powers."""
        if not self.unresolved:
            return PowerSum.of(self._squares, self.filter.logs)
        return PowerSum.of(np.append(self._squares, self.unresolved**2), np.append(self.filter.logs, 0.0))

    @cached_property
    def unresolved(self) -> float:
        """Norm of the gradient along directions that second moments do not resolve, 0 if it is no more than rounding.

        No step makes it smaller: whether a descent would is for the rows to say.
        """
        found = self.spectrum.unresolved
        return found if found and found > self.reference.threshold(0.0, self.spectrum.largest) else 0.0

    @cached_property
    def excess_loss(self) -> PowerSum:
        """F_k - F_min as a sum of powers."""
        return PowerSum.of(0.5 * self._squares * self.filter.inverses, self.filter.logs)

    @cached_property
    def _squares(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.spectrum.gradient, self.spectrum.gradient))

    @property
    def stable(self) -> bool:
        """Whether learning_rate <= 2 / L."""
        return self.filter.stable

    @property
    def at_limit(self) -> bool:
        """Whether learning_rate is 2 / L, to rounding."""
        return self.filter.at_limit

    def position(self, k: int | float) -> Array:
        """Return iterate k in the coordinates of the descent.

        Parameters
        ----------
        k : int >= 0 or inf

        Returns
        -------
        ndarray of shape (n_parameters, n_outputs)
            theta_k; the intercept, if there is one, comes last and is counted from ``level``.
        """
        self._refuse_limit(np.inf == k)
        if k == 0:
            return self.spectrum.start.copy()
        return self._theta(as_float(k), bool(k != np.inf and k % 2))

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
        """Estimate what the rounding of second moments may do to iterate k.

        Parameters
        ----------
        k : int >= 0 or inf

        Returns
        -------
        float
            ``eps min(eta k L, cond(H))``, relative to the coefficients, or how far k steps may lead along directions
            that are not resolved, if that is more; 0 where the moments carry a root.
        """
        if self.spectrum.accurate:
            return 0.0
        if self.unresolved and k > 0:
            size = np.inf if k == np.inf else float(np.linalg.norm(self.position(k)))
            away = self.learning_rate * as_float(k) * self.unresolved
            if not away <= EPS * size:
                return away / size if 0.0 < size < np.inf else np.inf
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

        Raises
        ------
        ValueError
            If k is inf and the step is not below 2 / L, so that there is no limit; or if k is no number of steps.
        """
        return self._of_positions(k, 0)

    def intercept(self, k: Any) -> Any:
        """Intercept in the user's units after k steps.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        float or ndarray of shape (n_outputs,)
            With a leading axis of n_k for an array of k.

        Raises
        ------
        ValueError
            As for :meth:`coef`.
        """
        return self._of_positions(k, 1)

    def loss(self, k: Any) -> Any:
        """F at iterate k, the penalty included.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        float or ndarray of shape (n_k,)
            In squared units of y, outputs added up. Its limit is known to ``eps`` times the variance of y from plain
            moments (of dependent columns that are not standardised, to ``eps`` times its standard deviation times its
            mean). Infinite where an unstable descent overflows.

        Raises
        ------
        ValueError
            If k is no number of steps.
        """
        return self._of_sums(k, self.excess_loss, lambda total: np.maximum(self.spectrum.minimum + total, 0.0))

    def gradient_norm(self, k: Any) -> Any:
        """||grad F|| at iterate k, in the coordinates of the descent.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        float or ndarray of shape (n_k,)
            In units of y, if the features are standardised. What is left of it as k grows is the gradient along
            directions that plain moments do not resolve, of which it is not known how it falls.

        Raises
        ------
        ValueError
            If k is no number of steps.
        """
        return self._of_sums(k, self.squared_gradient, np.sqrt)

    def degrees_of_freedom(self, k: Any) -> Any:
        """Trace of the matrix that takes y to its fitted values after k steps, intercept included.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        float or ndarray of shape (n_k,)
            Between 0 at k = 0 and the rank of the data while the step is at most 1 / L. One output's, whatever the
            number of outputs.

        Raises
        ------
        ValueError
            As for :meth:`coef`.

        Notes
        -----
        ``df(k) = sum_j phi_k(h_j) v_j' M v_j`` with ``M = 2/S [Z 1]' D [Z 1]``: what the filter lets through, of what
        the data and not the penalty has part in.
        """
        return self._of_steps(k, self._refusing(self.smoother.degrees_of_freedom))

    def gcv(self, k: Any) -> Any:
        """Generalised cross-validation score ``(RSS_k / n) / (1 - df(k) / n)^2``.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        float or ndarray of shape (n_k,)
            In squared units of y, outputs added up; inf where all degrees of freedom are used up.

        Raises
        ------
        ValueError
            As for :meth:`coef`.

        Notes
        -----
        RSS_k is the squared error without the penalty. Weights are precisions, not counts: n is the number of rows
        of positive weight, and RSS_k is in units of their mean weight. So doubling all weights changes nothing, and a
        row of weight 2 is one observation of half the variance, where two equal rows are two.

        References
        ----------
        Golub, G. H., Heath, M. and Wahba, G. (1979). Generalized cross-validation as a method for
        choosing a good ridge parameter. Technometrics 21(2), 215-223.
        :doi:`10.1080/00401706.1979.10489751`

        Examples
        --------
        >>> import numpy as np
        >>> from fssgd import GradientPath
        >>> x = np.arange(10.0)[:, None]
        >>> path = GradientPath.from_arrays(x, np.sin(x[:, 0]) + x[:, 0], learning_rate=0.1)
        >>> int(np.argmin(path.gcv(np.arange(1000))))  # the steps to take
        25
        """

        def score(ks: Array, odd: Flags) -> Array:
            error, share = self.squared_errors(ks, odd).sum(axis=1), self.smoother.residual_share(ks, odd)
            with np.errstate(over="ignore", invalid="ignore"):
                ratio = np.divide(error, share**2, out=np.full_like(error, np.inf), where=share**2 > 0)
            return np.where(np.isnan(ratio), np.inf, ratio)  # an unstable descent that has overflowed

        return self._of_steps(k, self._refusing(score))

    def ridge_equivalent(self, k: Any) -> Any:
        """Penalty with which ridge regression shrinks about as much as k steps do.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        float or ndarray of shape (n_k,)
            ``alpha + 1 / (2 eta k)``, on the scale of ``alpha`` (a mean squared error, and standardised features if
            ``standardize``): inf at k = 0, the ``alpha`` of the descent itself at k = inf. Of scikit-learn's ``Ridge``
            on such features, the sum of the weights times as much.

        Raises
        ------
        ValueError
            If k is no number of steps, or the step is above 2 / L: a descent that diverges shrinks nothing.

        Notes
        -----
        Where the data has variance s along a direction, ridge keeps ``s / (s + alpha)`` of the least-squares solution
        and k small steps keep ``1 - exp(-2 eta k s)``. The two agree for small and for large s and differ by at most
        0.21 between, so the estimators are close but not the same: in the limit of small steps the risk of the
        descent is at most 1.69 times that of this ridge [1]_. Ridge leaves the intercept
        alone, the descent fits it step by step.

        References
        ----------
        .. [1] Ali, A., Kolter, J. Z. and Tibshirani, R. J. (2019). A continuous-time view of early stopping for least
           squares regression. Proceedings of Machine Learning Research 89, 1370-1378.
           http://proceedings.mlr.press/v89/ali19a.html

        Examples
        --------
        >>> from fssgd import GradientPath
        >>> path = GradientPath.from_arrays([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0], learning_rate=0.1)
        >>> path.ridge_equivalent([0, 1, 100])
        array([ inf, 5.  , 0.05])
        """
        if not self.stable:
            raise ValueError(
                f"A descent that diverges is like no ridge: learning_rate={self.learning_rate:.6g} is above 2 / L = "
                f"{2.0 / self.spectrum.largest:.6g}. Use a smaller step."
            )

        def penalty(ks: Array, odd: Flags) -> Array:
            with np.errstate(divide="ignore", over="ignore"):
                return self.settings.alpha + 1.0 / (2.0 * self.learning_rate * ks)

        return self._of_steps(k, penalty)

    def steps_to(self, tol: float) -> int | float:
        """Return the first k at which a fit with this ``tol`` stops; inf if there is none.

        Parameters
        ----------
        tol : float >= 0

        Returns
        -------
        int or inf
            The first k with ``||grad F_k|| <= max(tol G, 100 eps sqrt(2 L F_ref))``, G and F_ref taken at W = 0 and
            the best constant b, and eps that of float64.

        Raises
        ------
        ValueError
            If ``tol`` is negative or no number.
        """
        if not tol >= 0:
            raise ValueError(f"tol must be a non-negative number, got {tol!r}.")
        tol = as_float64("tol", tol)
        return self.squared_gradient.first_below(self.reference.threshold(tol, self.spectrum.largest) ** 2)

    def squared_errors(self, ks: Array, odd: Flags) -> Array:
        """Mean squared error of each output, without the penalty.

        Parameters
        ----------
        ks : ndarray of shape (n_k,)
            Numbers of steps, as floats.
        odd : ndarray of shape (n_k,) of bool
            Which of them are odd: floats beyond 2^53 do not say.

        Returns
        -------
        ndarray of shape (n_k, n_outputs)
        """
        squares = 0.5 * self.spectrum.gradient**2 * self.filter.inverses[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.minimum(np.exp(2.0 * times(ks[:, None], self.filter.logs)), 1e300)
            error = self.spectrum.minima + powers @ squares
            if self.settings.alpha:
                weights = self._positions(ks, odd)[:, : len(self.scaling.scale)]
                error = error - self.settings.alpha * (weights**2).sum(axis=1)
        return np.where(np.isnan(error), np.inf, np.maximum(error, 0.0))

    def _theta(self, ks: Array | float, odd: Flags | bool) -> Array:
        """theta_k, with the leading axis of ks; a coordinate that overflows is infinite, and none is NaN."""
        spectrum, (phi, left) = self.spectrum, self.filter.values_and_residual_factors(ks, odd)
        if self.stable:
            # far from the limit still, the way from the start is the shorter sum; near it, what is left of the start
            along = left[..., None] * spectrum.coordinates + phi[..., None] * spectrum.pull
            if spectrum.starts_apart:
                return spectrum.position(along)
            way = phi[..., None] * spectrum.gradient
            near = _longest(way) <= _longest(along)
            origin = np.where(near, spectrum.start, 0.0 if spectrum.outside is None else spectrum.outside)
            return np.asarray(origin + spectrum.vectors @ np.where(near, -way, along))
        with np.errstate(over="ignore"):
            moved = np.where(self._squares[:, None] > 0, np.clip(phi, -HUGE, HUGE)[..., None], 0.0)
            moved = np.clip(moved * spectrum.gradient, -HUGE, HUGE)
            theta = spectrum.start - spectrum.vectors @ moved
        return np.where(np.abs(theta) > EPS * HUGE, np.copysign(np.inf, theta), theta)

    def _positions(self, ks: Array, odd: Flags) -> Array:
        self._refuse_limit(bool(np.isinf(ks).any()))
        theta = self._theta(ks[:, None], odd[:, None])
        return np.where(ks[:, None, None] == 0, self.spectrum.start, theta)  # the start to the last bit

    def _refuse_limit(self, wanted: bool) -> None:
        if wanted and (not self.stable or self.at_limit):
            raise ValueError(
                f"The descent has no limit at k = inf: learning_rate={self.learning_rate:.6g} is not below "
                f"2 / L = {2.0 / self.spectrum.largest:.6g}. Use a smaller step, or a finite k."
            )

    def _refusing(self, each: Callable[[Array, Flags], Array]) -> Callable[[Array, Flags], Array]:
        def checked(ks: Array, odd: Flags) -> Array:
            self._refuse_limit(bool(np.isinf(ks).any()))
            return each(ks, odd)

        return checked

    def _of_positions(self, k: Any, which: Literal[0, 1]) -> Any:
        """Coefficients (0) or intercepts (1) in the user's units."""

        def each(ks: Array, odd: Flags) -> Array:
            theta = self._positions(ks, odd)
            if not self.settings.fit_intercept:
                coef, intercept = self.scaling.unscale(theta, 0.0 * self.level)[0], np.zeros((len(ks), len(self.level)))
            else:
                coef, intercept = self.scaling.unscale(theta[:, :-1], theta[:, -1])
                intercept = intercept + self.level
            if self.single_output:
                return (coef[..., 0], intercept[..., 0])[which]
            return (np.swapaxes(coef, 1, 2), intercept)[which]

        return self._of_steps(k, each)

    def _of_sums(self, k: Any, sums: PowerSum, finish: Callable[[Array], Array]) -> Any:
        def each(ks: Array, odd: Flags) -> Array:
            with np.errstate(over="ignore"):
                return finish(np.exp(2.0 * times(ks[:, None], sums.logs)) @ sums.coefficients)

        return self._of_steps(k, each)

    def _of_steps(self, k: Any, each: Callable[[Array, Flags], Any]) -> Any:
        """Call ``each`` with float k and their parities, some k at a time."""
        return over_steps(k, each, 1 + self.spectrum.vectors.shape[0] * (1 + len(self.level)))


def _longest(parts: Array) -> Array:
    """Largest part of each output, of shape (..., 1, n_outputs): as good as a norm here, and it cannot overflow."""
    return np.asarray(np.abs(parts).max(axis=-2, keepdims=True, initial=0.0))
