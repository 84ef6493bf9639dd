"""Summary: standard errors, t and p values and confidence intervals after any number of steps.

After k steps the coefficients are a fixed matrix times y, so their covariance is known once sigma^2 is, and that is
estimated by ``RSS_k / (n - df(k))``. In the limit without a penalty all of it is ordinary least squares.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from fssgd._path.gradient_path import GradientPath
from fssgd._path.step_counts import StepCounts
from fssgd._support.jsonable import plain
from fssgd._support.words import column_names, printable

Array = npt.NDArray[np.float64]
SMALLEST_RESIDUAL_SHARE = 1e-8  # degrees of freedom that have to be left, of those of the rows
COLUMNS = {
    "coef": "coef",
    "standard_error": "std err",
    "t_value": "t",
    "p_value": "P>|t|",
    "lower": "lower",
    "upper": "upper",
}


@dataclass(frozen=True, eq=False)
class Summary:
    """Estimates and their uncertainty, of a linear model after k steps of gradient descent.

    Attributes
    ----------
    names : list of str
        Names of the parameters: "intercept", if there is one, then the features.
    coef, standard_error, t_value, p_value, lower, upper : ndarray of shape (n_parameters,) or (n_outputs, n_parameters)
        Estimates in the user's units, their standard errors, ``coef / standard_error``, two-sided p values for a
        coefficient of 0, and ends of the confidence intervals; t has n - df(k) degrees of freedom.
    level : float
        Confidence level of the intervals.
    sigma : float or ndarray of shape (n_outputs,)
        Standard deviation of the noise, ``sqrt(RSS_k / (n - df(k)))``, for a row of mean weight.
    r_squared : float or ndarray of shape (n_outputs,)
        Share of the squared deviations of y that is explained: from its mean (centred) with an intercept, from 0
        (uncentred) without one. ``score`` is centred in either case.
    degrees_of_freedom, residual_degrees_of_freedom : float
        df(k), the trace of the hat matrix, and n - df(k).
    n_samples : int
        Rows of positive weight.
    n_iter : int or inf
        k.
    learning_rate, alpha : float
        The step, and the penalty.
    fit_intercept : bool
        Whether there is an intercept, and ``r_squared`` is centred.
    spread : ndarray of shape (n_parameters, n)
        G, with ``sigma^2 G G'`` the covariance of the coefficients of an output.

    Notes
    -----
    Weights are precisions: a row of weight s_i has the variance ``sigma^2 / s_i``, s_i in units of the mean weight.

    A descent that is stopped early, or penalised, is biased towards where it starts, and the variance is only a part
    of its error: the intervals are for the expectation of the estimate, which is the true coefficient only in the
    limit.

    From plain moments RSS_k is known to ``eps`` times the squared deviations of y. Where R2 is above 1 - 1e-10 or so,
    fit ``Moments.from_arrays(..., accurate=True)``.
    """

    names: list[str]
    coef: Array
    standard_error: Array
    t_value: Array
    p_value: Array
    lower: Array
    upper: Array
    level: float
    sigma: Any
    r_squared: Any
    degrees_of_freedom: float
    residual_degrees_of_freedom: float
    n_samples: int
    n_iter: int | float
    learning_rate: float
    alpha: float
    fit_intercept: bool
    spread: Array

    @property
    def covariance(self) -> Array:
        """Covariance of the coefficients: (n_parameters, n_parameters), with a leading axis for several outputs."""
        return np.asarray(np.multiply.outer(np.square(self.sigma), self.spread @ self.spread.T))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the spread, in lists and plain numbers.

        Returns
        -------
        dict
        """
        fields = {name: value for name, value in vars(self).items() if name != "spread"}
        document: dict[str, Any] = plain(
            {name: value.tolist() if hasattr(value, "tolist") else value for name, value in fields.items()}
        )
        return document

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame, a row a parameter.

        Returns
        -------
        pandas.DataFrame
            Indexed by parameter, for several outputs by output and parameter.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: run pip install pandas.") from error
        index = pd.Index(self.names, name="parameter")
        if self.coef.ndim == 2:
            index = pd.MultiIndex.from_product([range(len(self.coef)), self.names], names=["output", "parameter"])
        return pd.DataFrame({name: getattr(self, name).ravel() for name in COLUMNS}, index=index)

    def __str__(self) -> str:
        steps = "the limit" if self.n_iter == np.inf else f"{self.n_iter} steps"
        title = f"Least squares by gradient descent: {steps} of step size {self.learning_rate:.6g}"
        return "\n".join([title, *(line for output in self._outputs() for line in self._table(output))])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _outputs(self) -> list[Any]:
        return [...] if self.coef.ndim == 1 else list(range(len(self.coef)))

    def _table(self, output: Any) -> list[str]:
        """Lines of the table of one output."""
        cells = {name: np.asarray(getattr(self, name))[output] for name in COLUMNS}
        ends = [f"[{0.5 - self.level / 2:.4g}", f"{0.5 + self.level / 2:.4g}]"]
        facts = [
            [("rows", self.n_samples), ("degrees of freedom", self.degrees_of_freedom)],
            [("sigma", np.asarray(self.sigma)[output]), ("residual", self.residual_degrees_of_freedom)],
            [
                (f"R-squared, {'centred' if self.fit_intercept else 'uncentred'}", np.asarray(self.r_squared)[output]),
                ("penalty", self.alpha),
            ],
        ]
        names = [printable(name) for name in self.names]
        width = max(map(len, names))
        head = " " * width + "".join(f"{text:>12}" for text in [*COLUMNS.values()][:4] + ends)
        return [
            *([] if output is ... else ["", f"Output {output}"]),
            *("    ".join(f"{name:<20}{value:>12.6g}" for name, value in line) for line in facts),
            "",
            head,
            "-" * len(head),
            *(
                f"{name:<{width}}" + "".join(_short(values[j], kind) for kind, values in cells.items())
                for j, name in enumerate(names)
            ),
        ]


def _short(value: float, kind: str) -> str:
    return f"{value:>12.3f}" if kind == "p_value" else f"{value:>12.5g}"


def summarise(
    path: GradientPath, k: int | float, coef: Any, intercept: Any, feature_names: Any = None, level: float = 0.95
) -> Summary:
    """Summarise a model that took k steps along ``path``.

    Parameters
    ----------
    path : GradientPath
    k : int >= 0 or inf
    coef, intercept : ndarray, float or ndarray
        As the path has them at k, or more exactly.
    feature_names : array-like of str, default=None
    level : float in (0, 1), default=0.95
        Confidence level of the intervals.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError
        If the step is unstable, no degrees of freedom are left to estimate the noise from, or level is not between 0
        and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95; got {level!r}.")
    path.require_stable("Degrees of freedom are undefined for a divergent step")
    steps = StepCounts.of(k)
    n_samples, fit_intercept = path.moments.n_samples, path.settings.fit_intercept
    residual = n_samples * float(path.smoother.residual_share(steps))
    if not residual > SMALLEST_RESIDUAL_SHARE * n_samples:
        raise ValueError(
            f"After {k} steps the fit uses up {n_samples - residual:.6g} of {n_samples} degrees of freedom (one a row) "
            "and leaves none to estimate the noise from: take fewer steps, fewer features or more rows."
        )
    error = path.squared_errors(steps)
    spread = _unscaled_spread(path, steps)
    estimate = np.asarray(coef, dtype=np.float64).reshape(path.moments.n_outputs, -1)
    names = column_names(feature_names, estimate.shape[1])
    if fit_intercept:
        names = ["intercept", *names]
        estimate = np.column_stack([np.ravel(np.asarray(intercept, dtype=np.float64)), estimate])
    sigma = np.sqrt(error * (n_samples / residual))
    deviation = sigma[:, None] * np.sqrt(np.einsum("ij,ij->i", spread, spread))
    # a fit without error: t is infinite, but for a coefficient of exactly 0, which is 0 for certain
    certain = np.where(estimate == 0.0, 0.0, np.copysign(np.inf, estimate))
    t_value = np.divide(estimate, deviation, out=certain, where=deviation > 0)
    half = float(stdtrit(residual, 0.5 + level / 2.0)) * deviation
    total = path.moments.variance_y + (0.0 if fit_intercept else path.moments.mean_y**2)
    r_squared = 1.0 - np.divide(error, total, out=(error > 0).astype(np.float64), where=total > 0)
    fields = {
        "coef": estimate,
        "standard_error": deviation,
        "t_value": t_value,
        "p_value": 2.0 * stdtr(residual, -np.abs(t_value)),
        "lower": estimate - half,
        "upper": estimate + half,
        "sigma": sigma,
        "r_squared": r_squared,
    }
    return Summary(
        names=[str(name) for name in names],
        **{name: value[0] if path.coordinates.single_output else value for name, value in fields.items()},
        level=float(level),
        degrees_of_freedom=n_samples - residual,
        residual_degrees_of_freedom=residual,
        n_samples=n_samples,
        n_iter=k,
        learning_rate=path.learning_rate,
        alpha=path.settings.alpha,
        fit_intercept=fit_intercept,
        spread=spread,
    )


def _unscaled_spread(path: GradientPath, steps: StepCounts) -> Array:
    """Spread of intercept and coefficients in the user's units."""
    vectors = path.coordinates.linear_to_user(path.spectrum.vectors)
    return path.smoother.spread(steps, vectors, _factor_of_data(path) if path.settings.alpha else None)


def _factor_of_data(path: GradientPath) -> Array:
    """R with R'R the Hessian without its penalty, in its eigenbasis: rows of deviations, then one of offsets."""
    moments, coordinates = path.moments, path.coordinates
    weights, intercepts = coordinates.split(path.spectrum.vectors)
    if moments.accurate:
        rows = moments.factor_x / (np.sqrt(moments.weight_sum) * coordinates.scale)
    else:  # of correlations: columns of very different scales would cost each other's digits
        deviation = np.sqrt(np.where(moments.variance_x > 0, moments.variance_x, 1.0))
        values, axes = np.linalg.eigh(moments.scatter_xx / np.outer(moments.weight_sum * deviation, deviation))
        rows = np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T * (deviation / coordinates.scale)
    offsets = coordinates.feature_means(moments) @ weights + intercepts
    return np.asarray(np.sqrt(2.0) * np.vstack([rows @ weights, offsets]))
