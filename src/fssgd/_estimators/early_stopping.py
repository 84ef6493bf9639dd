"""LinearRegressorGDCV: early stopping as model selection, over all numbers of steps at once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from fssgd._descent.settings import as_float64
from fssgd._estimators.fitting import fit_descent, prepare_from_moments
from fssgd._estimators.gradient_descent import LinearRegressorGD
from fssgd._estimators.linear_model import LinearModel
from fssgd._moments.checks import check_arrays
from fssgd._path.closed_form import ACCURACY
from fssgd._path.gradient_path import GradientPath
from fssgd._path.step_counts import StepCounts
from fssgd._selection.criteria import FirstAtNoise, LowestGcv, LowestValidationError
from fssgd._selection.folds import FoldRows, fold_errors
from fssgd._selection.scores import MeanError
from fssgd._support.optional import is_dask
from fssgd._support.sklearn_private import Interval, StrOptions, _raise_for_params, _routing_enabled
from fssgd.backends import get_backend

Array = npt.NDArray[np.float64]
Criterion = Literal["gcv", "cv", "holdout", "discrepancy"]
MAX_STEPS = 2**53  # past it floats skip integers


class LinearRegressorGDCV(LinearModel):
    """Linear regression by gradient descent that is stopped where it predicts best.

    Every iterate is known in closed form, and so is its error on rows it has not seen. So the best number of steps
    is found among all integers from 1 to ``max_iter``, not on a grid.

    Parameters
    ----------
    learning_rate : float or "auto", default="auto"
        The fixed step, in 1 / (units of the Hessian of F); see :class:`LinearRegressorGD`. "auto" is 1 / L of all
        the data. Folds share the step, so that k means the same in each.
    max_iter : int >= 1, default=100_000
        The largest number of steps to consider, at most 2^53.
    criterion : {"gcv", "cv", "holdout", "discrepancy"}, default="gcv"
        What to go by.

        - "gcv": the generalised cross-validation score, :meth:`GradientPath.gcv`; one pass over the data, no split.
          Steps that leave less than 1e-8 of the degrees of freedom to the residuals do not count.
        - "cv": the mean over folds of the mean squared error on the rows left out. Giving ``cv`` is enough.
        - "holdout": the mean squared error on a random ``validation_fraction`` of the rows. The model that is
          returned is fitted to all of them.
        - "discrepancy": Morozov's principle, the first k with ``RSS_k / n <= noise^2``.
    cv : int, splitter or iterable, default=None
        Folds, as for :class:`~sklearn.model_selection.GridSearchCV`. If given, the criterion is "cv"; None with
        ``criterion="cv"`` is five folds. A generator of folds is good for one fit, and cannot be cloned: a list is
        for more.
    standardize, fit_intercept, alpha
        As for :class:`LinearRegressorGD`. Folds are standardised on their own training rows.
    one_standard_error : bool, default=False
        With folds: take the smallest k whose mean error is within one standard error (over folds) of the smallest.
    validation_fraction : float in (0, 1), default=0.2
        With ``criterion="holdout"``.
    random_state : int, RandomState instance or None, default=None
        Of that split.
    noise : float, default=None
        Standard deviation of the noise in y, in its units (of each output, and of a row of mean weight). With
        ``criterion="discrepancy"``, and needed there.

    Attributes
    ----------
    n_iter_ : int
        The number of steps chosen; where rounding cannot tell several from the best, the smallest.
    best_score_ : float
        The criterion at ``n_iter_`` in squared units of y, outputs added up: the smaller the better.
    coef_, intercept_, loss_, loss_curve_, learning_rate_, scaled_coef_, scaled_intercept_, mean_, scale_, path_, \
            moments_, n_features_in_, feature_names_in_
        As for :class:`LinearRegressorGD`, of ``n_iter_`` steps on all rows.

    See Also
    --------
    LinearRegressorGD : a given number of steps.
    sklearn.linear_model.RidgeCV : the same choice for a penalty.

    Notes
    -----
    Weights are precisions: they weigh training and validation errors of a fold, and folds count alike.

    K-fold errors of any k come from one decomposition a fold, and the moments of its rows: the data is read once.
    A fitted model, and its pickle, keeps a p x p matrix a fold for :meth:`cv_mse_at`.

    The minimum is found by branch and bound, with bounds on the second derivative of the score in k, and is exact to
    the rounding of the score.

    References
    ----------
    Yao, Y., Rosasco, L. and Caponnetto, A. (2007). On early stopping in gradient descent learning. Constructive
    Approximation 26(2), 289-315. :doi:`10.1007/s00365-006-0663-2`

    Golub, G. H., Heath, M. and Wahba, G. (1979). Generalized cross-validation as a method for choosing a good ridge
    parameter. Technometrics 21(2), 215-223. :doi:`10.1080/00401706.1979.10489751`

    Morozov, V. A. (1966). On the solution of functional equations by the method of regularization. Soviet Mathematics
    Doklady 7, 414-417.

    Examples
    --------
    >>> import numpy as np
    >>> from fssgd import LinearRegressorGDCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 30)) @ np.diag(np.logspace(0, -2, 30))
    >>> y = X.sum(axis=1) + rng.normal(size=100)
    >>> LinearRegressorGDCV(standardize=False).fit(X, y).n_iter_
    52
    >>> model = LinearRegressorGDCV(standardize=False, cv=5).fit(X, y)
    >>> model.n_iter_, model.cv_mse_at([1, 54, 10_000]).round(3)
    (54, array([2.852, 1.537, 2.263]))
    """

    __module__ = "fssgd"

    _parameter_constraints: dict[str, Any] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, MAX_STEPS, closed="both")],
        "criterion": [StrOptions({"gcv", "cv", "holdout", "discrepancy"})],
        "cv": ["cv_object"],
        "standardize": ["boolean"],
        "fit_intercept": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "one_standard_error": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
        "noise": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        *,
        learning_rate: float | Literal["auto"] = "auto",
        max_iter: int = 100_000,
        criterion: Criterion = "gcv",
        cv: Any = None,
        standardize: bool = True,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        one_standard_error: bool = False,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        noise: float | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.criterion = criterion
        self.cv = cv
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.one_standard_error = one_standard_error
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.noise = noise

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LinearRegressorGDCV:
        """Choose the number of steps, and take them on all of the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any numeric dtype; float32 is kept, everything else becomes float64.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Outputs share k: their squared errors add up.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; only ratios matter.
        **params : dict
            Passed to the splitter, such as ``groups``, with scikit-learn's metadata routing enabled.

        Returns
        -------
        self : LinearRegressorGDCV

        Raises
        ------
        DivergenceError
            If the step is so large that the loss rose within the steps chosen.
        ValueError
            If the data is not finite, the weights are not usable, shapes disagree, a fold is empty, or parameters
            contradict each other.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` steps do not reach the noise level of ``criterion="discrepancy"``.
        """
        _raise_for_params(params, self, "fit")
        self._validate_params()
        criterion = self._settled_criterion()
        check_arrays(X, y, sample_weight)
        if is_dask(X):
            raise TypeError(
                "LinearRegressorGDCV chooses from rows in memory, and X is a Dask collection: fit LinearRegressorGD, "
                "whose path_.gcv(k) needs no more than moments."
            )
        source = self._validated(X, y, sample_weight, reset=True)
        X, y, weight = source.X, source.y, source.weight
        rows = FoldRows(X, y.reshape(len(y), -1), weight, getattr(self, "feature_names_in_", None))
        splits = self._splits(criterion, X, y, sample_weight, params)
        total, parts = rows.fold_moments(splits)
        settings, max_iter = self._settings(), int(self.max_iter)
        preparation = prepare_from_moments(total, settings, single_output=source.single_output, source=source)
        path = preparation.path
        assert path is not None
        shared = replace(settings, learning_rate=path.learning_rate)
        self.__dict__.pop("_fold_errors", None)
        if splits:
            self._fold_errors = fold_errors(rows, splits, total, parts, shared, max_iter)
            n_iter, score = LowestValidationError(max_iter, self.one_standard_error).choose(self._fold_errors)
        else:
            # ill-conditioned columns: the criterion would choose by errors that second moments do not know
            if path.rounding_at(max_iter) > ACCURACY:
                accurate = rows.moments(accurate=True)
                path = GradientPath.of(accurate, shared, single_output=source.single_output)
            if criterion == "gcv":
                n_iter, score = LowestGcv(max_iter).choose(path)
            else:
                n_iter, score = FirstAtNoise(max_iter, as_float64("noise", self.noise)).choose(path)
        fit_descent(self, preparation, preparation.problem(n_iter, None, source.dtype), get_backend("spectral"))
        self.best_score_ = score
        if criterion == "discrepancy":
            self._warn_above_noise()
        return self

    def cv_mse_at(self, k: Any) -> Any:
        """Mean over folds of the fold's mean squared error on the rows left out; a part held out is one fold.

        Parameters
        ----------
        k : int >= 0, inf, or array-like of shape (n_k,) of them

        Returns
        -------
        float or ndarray of shape (n_k,)
            In squared units of y, outputs added up; a fold's rows are weighted by ``sample_weight``, folds count
            alike. Infinite where the step is unstable in a fold and the error has grown beyond all bounds.

        Raises
        ------
        AttributeError
            If the criterion needed no folds.
        """
        check_is_fitted(self)
        errors: MeanError | None = vars(self).get("_fold_errors")
        if errors is None:
            raise AttributeError(
                f"cv_mse_at has no folds to go by, since criterion={self.criterion!r}: fit with cv=5, or use "
                "path_.gcv(k)."
            )
        return StepCounts.of(k).map(lambda steps: errors.each(steps).mean(axis=0), 2 * self.path_.eigenvalues.size)

    def _settled_criterion(self) -> Criterion:
        """Return the criterion, once it is clear that no other parameter contradicts it."""
        criterion = self.criterion
        if self.cv is not None:
            if criterion not in ("gcv", "cv"):
                raise ValueError(f"cv was given, but criterion={criterion!r} uses no folds: drop one of the two.")
            criterion = "cv"
        if (self.noise is None) == (criterion == "discrepancy"):
            raise ValueError(
                "criterion='discrepancy' needs the standard deviation of the noise: give it as noise=."
                if self.noise is None
                else f"noise was given, but criterion={criterion!r} does not use it: drop it, or use 'discrepancy'."
            )
        if self.one_standard_error and criterion != "cv":
            raise ValueError(f"one_standard_error=True needs folds, but criterion={criterion!r}: give cv, or drop it.")
        return criterion

    def _splits(
        self, criterion: Criterion, X: Any, y: Array, sample_weight: Any, params: dict[str, Any]
    ) -> list[tuple[Any, Any]]:
        """Training and validation rows of each fold; none if the criterion needs none."""
        if criterion == "holdout":
            splitter = ShuffleSplit(1, test_size=float(self.validation_fraction), random_state=self.random_state)
            return list(splitter.split(X, y))
        if criterion != "cv":
            return []
        routed = Bunch(splitter=Bunch(split={}))
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
        splits = check_cv(self.cv).split(X, y, **routed.splitter.split)
        found = [(_indices(train), _indices(test)) for train, test in splits]
        if not found:
            raise ValueError(
                f"cv={self.cv!r} yields no folds: expected at least one. A generator is used up by one fit: give a new "
                "one, or a list of its folds."
            )
        return found

    def _warn_above_noise(self) -> None:
        level = FirstAtNoise(int(self.max_iter), as_float64("noise", self.noise)).level(self.moments_.n_outputs)
        if self.best_score_ > level * (1.0 + 1e-9):
            warnings.warn(
                f"The mean squared error is {self.best_score_:.6g} after max_iter={self.n_iter_} steps, still above "
                f"the {level:.6g} of noise={float(self.noise or 0):g}: raise max_iter, learning_rate or noise.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as JSON, as the :class:`LinearRegressorGD` of ``n_iter_`` steps that it is.

        Parameters
        ----------
        path : str or path-like
            The file to write; its folder must exist.
        """
        check_is_fitted(self)
        params = {
            "learning_rate": self.learning_rate_,
            "max_iter": self.n_iter_,
            "tol": None,
            "standardize": self.standardize,
            "fit_intercept": self.fit_intercept,
            "alpha": self.alpha,
        }
        self._write(path, LinearRegressorGD(**params).get_params(deep=False))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LinearRegressorGD:
        """Read a model that :meth:`save` wrote, as :meth:`LinearRegressorGD.load` does.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        LinearRegressorGD
        """
        model: LinearRegressorGD = LinearRegressorGD.load(path)
        return model

    def get_metadata_routing(self) -> MetadataRouter:
        """Say what ``fit`` takes and passes on: ``sample_weight`` here, and to the splitter what it asks for.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        # folds given one by one ask for nothing, and a generator of them would be used up by a look
        splitter = check_cv([] if isinstance(self.cv, Iterable) and not hasattr(self.cv, "split") else self.cv)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )


def _indices(rows: Any) -> Any:
    """Return the rows of a fold by their numbers, also where they were given as a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows
