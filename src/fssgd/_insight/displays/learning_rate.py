"""The number of steps to a tolerance against the step size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._insight.displays._common import COLOURS, axes_for, path_of
from fssgd._path.gradient_path import GradientPath


class LearningRateDisplay:
    """Steps a descent takes to a tolerance, against its step size, on logarithmic axes.

    Marked are the automatic step 1 / L, the best fixed one 2 / (L + mu) and the largest stable one 2 / L, where L and
    mu are the largest and the smallest positive eigenvalue of the Hessian of F. Create one with :meth:`from_estimator`
    or :meth:`from_path`; all parameters are stored as attributes.

    Parameters
    ----------
    learning_rates : ndarray of shape (n_points,)
        Step sizes, ascending, in 1 / (units of the Hessian of F).
    n_iter : ndarray of shape (n_points,)
        Steps to ``tol``; inf where no number of them is enough.
    tol : float
        As for :class:`~fssgd.LinearRegressorGD`.
    largest, smallest : float
        L and mu.

    Attributes
    ----------
    line_ : matplotlib Line2D
    lines_ : list of matplotlib Line2D
        The marks at 1 / L, 2 / (L + mu) and 2 / L.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    References
    ----------
    Polyak, B. T. (1963). Gradient methods for the minimisation of functionals. USSR Computational
    Mathematics and Mathematical Physics 3(4), 864-878. :doi:`10.1016/0041-5553(63)90382-3`
    """

    __module__ = "fssgd"

    def __init__(
        self,
        *,
        learning_rates: npt.NDArray[np.float64],
        n_iter: npt.NDArray[np.float64],
        tol: float,
        largest: float,
        smallest: float,
    ) -> None:
        self.learning_rates = learning_rates
        self.n_iter = n_iter
        self.tol = tol
        self.largest = largest
        self.smallest = smallest

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, tol: float = 1e-6, learning_rates: Any = None, ax: Any = None, **kwargs: Any
    ) -> LearningRateDisplay:
        """Draw for the problem an estimator was fitted to in closed form.

        Parameters
        ----------
        estimator : LinearRegressorGD
            Fitted, by ``backend="spectral"``; the step it took plays no part.
        tol : float, default=1e-6
            Relative to the gradient norm at zero weights, as for :class:`~fssgd.LinearRegressorGD`.
        learning_rates : array-like of shape (n_points,), default=None
            Step sizes to draw; None spreads some from 1e-3 / L to 2 / L.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to matplotlib's ``plot``.

        Returns
        -------
        LearningRateDisplay
        """
        path = path_of(cls.__name__, estimator)
        return cls.from_path(path, tol=tol, learning_rates=learning_rates, ax=ax, **kwargs)

    @classmethod
    def from_path(
        cls, path: GradientPath, *, tol: float = 1e-6, learning_rates: Any = None, ax: Any = None, **kwargs: Any
    ) -> LearningRateDisplay:
        """Draw for the problem of a closed form.

        Parameters
        ----------
        path : GradientPath
        tol, learning_rates, ax, **kwargs
            As for :meth:`from_estimator`.

        Returns
        -------
        LearningRateDisplay

        Raises
        ------
        ValueError
            If no step moves anything, since all features are constant, or a step size is not positive.
        """
        positive = path.eigenvalues[path.eigenvalues > 0]
        if not len(positive):
            raise ValueError("The loss is constant: every step size takes 0 steps, and there is nothing to draw.")
        largest, smallest = float(positive.max()), float(positive.min())
        if learning_rates is None:
            marks = [1.0 / largest, 2.0 / (largest + smallest), 2.0 / largest]
            towards = (1.0 - np.geomspace(0.5, 1e-4, 60)) * 2.0 / largest  # 2 / L, where the steps shoot up
            learning_rates = [*marks, *towards, *np.geomspace(1e-3 / largest, 1.0 / largest, 120)]
        rates = np.unique(np.asarray(learning_rates, dtype=float))
        if not (len(rates) and (rates > 0).all() and np.isfinite(rates).all()):
            raise ValueError(f"learning_rates must be positive, finite numbers; got {learning_rates!r}.")
        n_iter = np.array([float(path.with_step(float(rate)).steps_to(tol)) for rate in rates])
        display = cls(learning_rates=rates, n_iter=n_iter, tol=tol, largest=largest, smallest=smallest)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> LearningRateDisplay:
        """Draw the curve and its marks.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        name : str, default=None
            Legend label of the curve.
        **kwargs : dict
            Passed to matplotlib's ``plot``.

        Returns
        -------
        LearningRateDisplay
        """
        ax = axes_for(type(self).__name__, ax)
        finite = np.where(np.isfinite(self.n_iter), self.n_iter, np.nan)
        style = {"color": COLOURS[0], "linewidth": 2.0, "label": name or f"steps to tol = {self.tol:g}"}
        (self.line_,) = ax.plot(self.learning_rates, finite, **{**style, **kwargs})
        marks = (
            ("1 / L, automatic", 1.0 / self.largest, COLOURS[2], "-."),
            ("2 / (L + mu), best", 2.0 / (self.largest + self.smallest), COLOURS[4], "-"),
            ("2 / L, largest stable", 2.0 / self.largest, COLOURS[6], ":"),
        )
        self.lines_ = [
            ax.axvline(rate, color=colour, linestyle=dashes, linewidth=1.6, zorder=1.8, label=f"{what}: {rate:.4g}")
            for what, rate, colour, dashes in marks
        ]
        ax.set_xscale("log")
        right = max(float(self.learning_rates.max()), 4.0 / self.largest)
        ax.axvspan(2.0 / self.largest, right, color="0.9", zorder=0, label="diverges")
        ax.set_xlim(float(self.learning_rates.min()), right)
        if np.nanmax(finite, initial=0.0) > 0:
            ax.set_yscale("log", nonpositive="clip")
        ax.set_xlabel("learning rate (1 / units of the Hessian of the loss)")
        ax.set_ylabel(f"steps to tol = {self.tol:g} (count)")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
