"""LinearRegressorGD: a number of steps of gradient descent, or as many as a tolerance asks for."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fssgd._descent.starts import Start, at_coefficients, at_iterate, at_zero
from fssgd._estimators.callbacks import CallbackSupportMixin, FitMonitor, with_callbacks
from fssgd._estimators.fitting import (
    fit_descent,
    fitted_attributes,
    is_decomposable,
    prepare_from_moments,
    prepare_from_rows,
)
from fssgd._estimators.linear_model import LinearModel, after_closed_form, check_features
from fssgd._moments.checks import NoWeightError, check_arrays, within_float64
from fssgd._moments.moments import Moments
from fssgd._rows.arrays import ArraySource
from fssgd._rows.dask_source import DaskSource
from fssgd._rows.source import Source
from fssgd._support.optional import is_dask
from fssgd._support.sklearn_private import Interval, Options, StrOptions
from fssgd.backends import Backend, get_backend


class LinearRegressorGD(CallbackSupportMixin, LinearModel):
    """Linear regression by fixed-step-size gradient descent, on a backend of your choice.

    Minimises, from zeros and with simultaneous updates of W and b,

    ``F(W, b) = sum_i s_i ||y_i - z_i W - b||^2 / S + alpha ||W||_F^2``,  S = sum_i s_i,

    the mean squared error plus a ridge penalty, without a factor 1/2; ``z = (x - mean) / scale`` if
    ``standardize`` else x. Every backend returns the same iterate, to rounding.

    Parameters
    ----------
    learning_rate : float or "auto", default="auto"
        The fixed step eta, in 1 / (units of the Hessian of F, in the coordinates of the descent). Stable
        iff eta <= 2 / L, L the largest eigenvalue of that Hessian. "auto" is 1 / L: exactly while
        min(n_samples, n_features) <= 4096, beyond that from an upper bound within 1.12 of L.
    max_iter : int >= 0 or inf, default=100_000
        Steps to take at most. inf, the limit itself, with the closed form only.
    tol : float or None, default=1e-8
        Stop at the first k with ``||grad F_k|| <= max(tol G, 100 eps sqrt(2 L F_ref))``; G and F_ref are the
        gradient norm and F at W = 0 and the best constant b, eps that of the dtype of X. So neither
        the scale nor the offset of y matters. None takes exactly max_iter steps and never warns.
    standardize : bool, default=True
        Descend in centred features of unit (population) standard deviation. Without an intercept they
        are divided but not centred. A constant column has scale 1.
    fit_intercept : bool, default=True
        Whether b is a parameter of the descent; it is never penalised.
    alpha : float >= 0, default=0.0
        Strength of the penalty on W, in the coordinates of the descent.
    backend : str or Backend, default="auto"
        "spectral" (closed form), "numpy", "krylov" (no decomposition, and no ``path_``), a name known to
        :func:`~fssgd.register_backend`, or an instance with settings. "auto" is "spectral" while
        min(n_samples, n_features) <= 4096 (n_features alone if X is sparse, or a Dask collection of unknown length),
        else "numpy". A Dask collection takes these three.
    warm_start : bool, default=False
        Start from the solution of the previous fit, re-expressed in the new scaling.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients in the units of y per unit of x; float32 if X is.
    intercept_ : float or ndarray of shape (n_outputs,)
    n_iter_ : int or inf
        Steps taken.
    converged_ : bool
        Whether ``tol`` was met.
    loss_ : float
        F at the solution, in squared units of y. The closed form knows it to eps times the variance of y.
    loss_curve_ : ndarray of shape (``n_iter_ + 1``,)
        F at iterates 0 to ``n_iter_``. Computed when asked for after a closed-form fit, up to 1e6 steps.
    learning_rate_ : float
        The step used.
    backend_ : str
        Name of the backend used.
    scaled_coef_, scaled_intercept_ : ndarray, float or ndarray
        W and b in the coordinates of the descent, float64.
    mean_, scale_ : ndarray of shape (n_features,)
        Zeros and ones with ``standardize=False``.
    path_ : GradientPath
        Every other iterate, after a closed-form fit.
    moments_ : Moments
        What the fit knows of its data, after a closed-form fit.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    GradientPath : all iterates at once.
    sklearn.linear_model.LinearRegression : the limit k = inf.

    References
    ----------
    Polyak, B. T. (1963). Gradient methods for the minimisation of functionals. USSR Computational
    Mathematics and Mathematical Physics 3(4), 864-878. :doi:`10.1016/0041-5553(63)90382-3`

    Examples
    --------
    >>> import numpy as np
    >>> from fssgd import LinearRegressorGD
    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> model = LinearRegressorGD().fit(x, [3.0, 5.0, 7.0, 9.0])
    >>> model.coef_, round(float(model.intercept_), 12), model.n_iter_
    (array([2.]), 1.0, 1)
    >>> LinearRegressorGD(learning_rate=0.1, max_iter=10, tol=None).fit(x, [3.0, 5.0, 7.0, 9.0]).coef_
    array([1.78525164])
    """

    __module__ = "fssgd"

    _parameter_constraints: dict[str, Any] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 0, None, closed="left"), Options(Real, {np.inf})],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "standardize": ["boolean"],
        "fit_intercept": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "backend": [str, Backend],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        learning_rate: float | Literal["auto"] = "auto",
        max_iter: float = 100_000,
        tol: float | None = 1e-8,
        standardize: bool = True,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        backend: str | Backend = "auto",
        warm_start: bool = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.backend = backend
        self.warm_start = warm_start

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, coef_init: Any = None, intercept_init: Any = None
    ) -> LinearRegressorGD:
        """Descend on all of the data, from zeros unless told otherwise.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Any numeric dtype; float32 is kept, everything else becomes float64. A Dask array or DataFrame is
            summed up, or stepped over, where its partitions are; nothing but sums is gathered.
        y : array-like or Dask collection of shape (n_samples,) or (n_samples, n_outputs)
            Outputs share k: their squared errors add up. Beside a Dask X, anything is cut into its partitions
            if their sizes are known; otherwise the partitions must be the same already.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Non-negative; only ratios matter.
        coef_init : array-like of the shape of ``coef_``, default=None
            Where to start, in the user's units. If both are None: the previous solution with ``warm_start``,
            else zeros. One alone leaves the other at 0. (A cross-validator slices fit parameters whose length
            is n_samples.)
        intercept_init : float or array-like of shape (n_outputs,), default=None
            Likewise.

        Returns
        -------
        self : LinearRegressorGD

        Raises
        ------
        DivergenceError
            If the loss rose by more than rounding explains.
        ValueError
            If the data is not finite, the weights are not usable, or shapes disagree.

        Warns
        -----
        ConvergenceWarning
            If max_iter steps did not reach tol.
        """
        self._validate_params()
        source = self._source(X, y, sample_weight, reset=True)
        backend, settings = self._chosen_backend(source), self._settings()
        start = self._start(coef_init, intercept_init)
        names = getattr(self, "feature_names_in_", None)
        if backend.needs_moments or is_decomposable(source):
            moments, single_output = source.moments(names), source.single_output
            preparation = prepare_from_moments(moments, settings, start, single_output=single_output, source=source)
        else:
            preparation = prepare_from_rows(source, settings, start, names)
        coordinates, dtype = preparation.coordinates, source.dtype
        if not backend.closed_form:  # steps square gradients in the dtype of X, the closed form takes their logarithms
            preparation.reference.require_in_range(preparation.curvature, preparation.start, coordinates, dtype.name)
        problem = preparation.problem(self.max_iter, self.tol, dtype)
        monitor = FitMonitor(
            self,
            0 if backend.closed_form else len(list(problem.chunk_ends())),
            lambda theta: fitted_attributes(coordinates, np.reshape(theta, coordinates.shape), dtype),
            {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}},
        )
        fit_descent(self, preparation, problem, backend, monitor, self.tol)
        monitor.finish()
        return self

    def fit_moments(self, moments: Moments) -> LinearRegressorGD:
        """Descend, by the closed form, on data of which only the moments are known.

        Parameters
        ----------
        moments : Moments
            Of all the rows.

        Returns
        -------
        self : LinearRegressorGD

        Raises
        ------
        DivergenceError
            If the loss rises by more than rounding explains.
        TypeError
            If ``moments`` is something else.

        Warns
        -----
        ConvergenceWarning
            If max_iter steps do not reach tol.
        LinAlgWarning
            If rounding of the moments may show in the coefficients: the data is ill-conditioned for the number of
            steps taken, and the moments were not taken with ``accurate=True``.
        """
        self._validate_params()
        if not isinstance(moments, Moments):
            raise TypeError(
                f"Expected fssgd.Moments, got {type(moments).__name__}: use fit(X, y), or Moments.from_arrays(X, y)."
            )
        if moments.feature_names is not None:
            self.feature_names_in_ = moments.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = moments.n_features
        return self._fit_moments(moments, moments.n_outputs == 1)

    @after_closed_form
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegressorGD:
        """Take in more rows: afterwards the model is the one ``fit`` gives for all rows so far.

        Calls from several threads lose rows, since each reads the rows so far and writes them back with its own: hold
        a lock, or add up :class:`~fssgd.Moments` of each thread and call :meth:`fit_moments` once.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Any number of rows, with the columns of the first batch.
        y : array-like or Dask collection of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            A later batch whose weights are all zero is checked, and changes nothing.

        Returns
        -------
        self : LinearRegressorGD

        Raises
        ------
        ValueError
            After a fit by a stepping backend, which keeps no moments to go on from.

        Warns
        -----
        ConvergenceWarning, LinAlgWarning
            As :meth:`fit_moments`.
        """
        self._validate_params()
        started = hasattr(self, "coef_")
        source = self._source(X, y, sample_weight, reset=not started)
        if started and source.y.shape[1:] != self.coef_.shape[:-1]:
            raise ValueError(
                f"y has shape {source.y.shape}, but earlier batches gave coef_ of shape {self.coef_.shape}: "
                "pass the same outputs in every batch."
            )
        try:  # a later batch of zero weights has been checked by now, and adds nothing
            moments = source.moments(getattr(self, "feature_names_in_", None))
        except NoWeightError:
            if not started:
                raise
            return self
        if started:
            moments = self.moments_ + moments
        dtype = np.result_type(source.dtype, self.coef_.dtype) if started else source.dtype
        return self._fit_moments(moments, source.single_output, dtype)

    def _source(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> ArraySource | DaskSource:
        check_arrays(X, y, sample_weight)
        if is_dask(X):
            partitions = DaskSource.of(X, y, sample_weight)
            check_features(self, X, reset=reset)
            return partitions
        return self._validated(X, y, sample_weight, reset=reset)

    def _chosen_backend(self, source: Source) -> Backend:
        name = self.backend
        if name == "auto":
            name = "spectral" if is_decomposable(source) else "numpy"
        backend = get_backend(name) if isinstance(name, str) else name
        if not isinstance(getattr(backend, "name", None), str):
            raise TypeError(f"{type(backend).__name__} has no name: set its class attribute name to a str.")
        if self.max_iter == np.inf and not backend.closed_form:
            raise ValueError(
                f"max_iter=inf needs the closed form, but the backend is {backend.name!r}: use backend='spectral'."
            )
        return backend

    def _fit_moments(
        self, moments: Moments, single_output: bool, dtype: npt.DTypeLike = np.float64
    ) -> LinearRegressorGD:
        preparation = prepare_from_moments(moments, self._settings(), single_output=single_output)
        problem = preparation.problem(self.max_iter, self.tol, dtype)
        fit_descent(self, preparation, problem, get_backend("spectral"), tol=self.tol)
        return self

    def _start(self, coef_init: Any, intercept_init: Any) -> Start:
        if coef_init is not None or intercept_init is not None:
            with within_float64("coef_init or intercept_init"):
                coef = None if coef_init is None else np.asarray(coef_init, dtype=np.float64)
                intercept = None if intercept_init is None else np.asarray(intercept_init, dtype=np.float64)
            return at_coefficients(coef, intercept)
        if self.warm_start and hasattr(self, "coef_"):
            return at_iterate(*self._iterate)
        return at_zero
