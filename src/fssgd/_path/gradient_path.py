"""Every iterate of one gradient descent, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fssgd._descent.settings import Settings, as_float64
from fssgd._moments.moments import Moments
from fssgd._path.closed_form import ClosedForm
from fssgd._path.power_sums import PowerSum
from fssgd._path.step_counts import StepCounts

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GradientPath(ClosedForm):
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

    __module__ = "fssgd"

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
            If k is inf and the step is not below 2 / L, so that there is no limit; or if k is not a non-negative
            integer or inf.
        """
        return self._in_user_units(k, 0)

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
        return self._in_user_units(k, 1)

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
            If k is not a non-negative integer or inf.
        """
        # F_min of an exact fit may be -1e-17, and a loss of less than nothing helps nobody
        return np.maximum(self.spectrum.minimum + self._sums(k, self.excess_loss), 0.0)

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
            If k is not a non-negative integer or inf.
        """
        return np.sqrt(self._sums(k, self.squared_gradient))

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
        ``df(k) = sum_j phi_k(h_j) v_j' M v_j`` with ``M = 2/S [Z 1]' D [Z 1]``: the filter times the part of the
        curvature that comes from the data and not from the penalty.
        """

        def trace(steps: StepCounts) -> Array:
            self._require_limit(steps)
            return self.smoother.degrees_of_freedom(steps)

        return self._map_steps(k, trace)

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

        def score(steps: StepCounts) -> Array:
            self._require_limit(steps)
            error, share = self.squared_errors(steps).sum(axis=-1), self.smoother.residual_share(steps)
            # all degrees of freedom used up, as with more columns than rows at k = inf: 0 / 0, and no k to choose
            with np.errstate(over="ignore", invalid="ignore"):
                ratio = np.divide(error, share**2, out=np.full_like(error, np.inf), where=share**2 > 0)
            return np.where(np.isnan(ratio), np.inf, ratio)  # an unstable descent that has overflowed

        return self._map_steps(k, score)

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
            If k is not a non-negative integer or inf, or the step is above 2 / L.

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
        self.require_stable("ridge_equivalent is undefined for a divergent step")

        def penalty(steps: StepCounts) -> Array:
            with np.errstate(divide="ignore", over="ignore"):  # k = 0 is ridge of an infinite penalty: no step, W = 0
                return np.asarray(self.settings.alpha + 1.0 / (2.0 * self.learning_rate * steps.values))

        return self._map_steps(k, penalty)

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

    def _in_user_units(self, k: Any, which: Literal[0, 1]) -> Any:
        """Coefficients (0) or intercepts (1)."""

        def convert(steps: StepCounts) -> Array:
            theta = self._positions(steps)  # width in _map_steps: this is the most that a k holds
            fitted: Array = self.coordinates.as_fitted(*self.coordinates.to_user(theta))[which]
            return fitted

        return self._map_steps(k, convert)

    def _sums(self, k: Any, sums: PowerSum) -> Any:
        """Values of a sum of powers, infinite where they overflow."""

        def evaluate(steps: StepCounts) -> Array:
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(2.0 * steps.times(sums.logs)) @ sums.coefficients)

        return self._map_steps(k, evaluate)
