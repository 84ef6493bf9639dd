"""The coefficients against the number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._insight.displays._common import (
    COLOURS,
    axes_for,
    feature_names,
    last_step,
    path_of,
    require_single_output,
    set_step_axis,
    spread_steps,
    stop_of,
)
from fssgd._path.gradient_path import GradientPath

MOST_NAMES = 12


class CoefficientPathDisplay:
    """Coefficients of a descent against its steps, on a logarithmic axis.

    Create one with :meth:`from_estimator` or :meth:`from_path`; all parameters are stored as attributes.

    Parameters
    ----------
    steps : ndarray of shape (n_points,)
        Numbers of steps k, ascending.
    coef : ndarray of shape (n_points, n_features)
        Coefficients at those iterates.
    feature_names : sequence of str of length n_features
    scaled : bool, default=True
        Whether they are in units of y per standard deviation of the feature, or per unit of it.
    n_iter : int, default=None
        Step to mark: where a fit stopped.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One a feature, in the order of the columns.
    stop_ : matplotlib Line2D or None
        The mark at ``n_iter``.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fssgd import CoefficientPathDisplay, LinearRegressorGD
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> CoefficientPathDisplay.from_estimator(LinearRegressorGD().fit(X, y))  # doctest: +SKIP
    """

    __module__ = "fssgd"

    def __init__(
        self,
        *,
        steps: npt.NDArray[np.integer[Any]],
        coef: npt.NDArray[np.floating[Any]],
        feature_names: Sequence[str],
        scaled: bool = True,
        n_iter: int | None = None,
    ) -> None:
        self.steps = steps
        self.coef = coef
        self.feature_names = feature_names
        self.scaled = scaled
        self.n_iter = n_iter

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_iter: int | None = None, scaled: bool = True, ax: Any = None, **kwargs: Any
    ) -> CoefficientPathDisplay:
        """Draw the descent of an estimator fitted in closed form.

        Parameters
        ----------
        estimator : LinearRegressorGD
            Fitted, by ``backend="spectral"``.
        max_iter : int, default=None
            Last step drawn; None is the one the fit stopped at. The stop is marked if it comes earlier.
        scaled : bool, default=True
            Multiply each coefficient by the standard deviation of its feature, which makes them comparable.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        CoefficientPathDisplay
        """
        path = path_of(cls.__name__, estimator)
        stop = estimator.n_iter_
        display = cls._of(path, stop_of(estimator, max_iter), scaled)
        display.n_iter = int(stop) if stop < display.steps[-1] else None
        return display.plot(ax, **kwargs)

    @classmethod
    def from_path(
        cls, path: GradientPath, *, max_iter: int | None = None, scaled: bool = True, ax: Any = None, **kwargs: Any
    ) -> CoefficientPathDisplay:
        """Draw a descent from its closed form.

        Parameters
        ----------
        path : GradientPath
            Of one output.
        max_iter : int, default=None
            Last step drawn; None is where the descent has settled.
        scaled, ax, **kwargs
            As for :meth:`from_estimator`.

        Returns
        -------
        CoefficientPathDisplay
        """
        return cls._of(path, max_iter, scaled).plot(ax, **kwargs)

    @classmethod
    def _of(cls, path: GradientPath, max_iter: Any, scaled: bool) -> CoefficientPathDisplay:
        require_single_output(cls.__name__, path)
        steps = spread_steps(last_step(path, max_iter))
        coef = np.reshape(path.coef(steps), (len(steps), -1))
        if scaled:
            coef = coef * np.sqrt(path.moments.variance_x)
        return cls(steps=steps, coef=coef, feature_names=feature_names(path), scaled=scaled)

    def plot(self, ax: Any = None, **kwargs: Any) -> CoefficientPathDisplay:
        """Draw a line a feature.

        Up to 12 are named in the legend; of more, the 12 whose coefficients end largest, and the others are grey.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        CoefficientPathDisplay
        """
        ax = axes_for(type(self).__name__, ax)
        n_features = self.coef.shape[1]
        largest = np.argsort(-np.abs(self.coef[-1]), kind="stable")[:MOST_NAMES]
        styles: dict[int, dict[str, Any]] = {}
        for rank, j in enumerate(largest):  # a colour that comes again is dashed
            dashes = ("-", "--")[rank // len(COLOURS)]
            styles[int(j)] = {
                "color": COLOURS[rank % len(COLOURS)],
                "linestyle": dashes,
                "label": self.feature_names[j],
            }
        others = {"color": "0.75", "linewidth": 0.8, "zorder": 1.5}
        self.lines_ = [
            ax.plot(self.steps, self.coef[:, j], **{**styles.get(j, others), **kwargs})[0] for j in range(n_features)
        ]
        ax.axhline(0.0, color="0.5", linewidth=0.8, zorder=1)
        self.stop_ = None
        if self.n_iter is not None:
            self.stop_ = ax.axvline(self.n_iter, color="0.3", linestyle=":", label=f"stopped, k = {self.n_iter:,}")
        set_step_axis(ax)
        ax.set_ylabel(f"coefficient\n(units of y per {'standard deviation' if self.scaled else 'unit'} of the feature)")
        order = [self.lines_[j] for j in largest] + ([] if self.stop_ is None else [self.stop_])
        title = None if n_features <= MOST_NAMES else f"largest {MOST_NAMES} of {n_features}"
        ax.legend(handles=order, title=title, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        self.ax_, self.figure_ = ax, ax.figure
        return self
