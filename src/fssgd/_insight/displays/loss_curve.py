"""The loss against the number of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from fssgd._insight.displays._common import (
    COLOURS,
    LOSS_LABEL,
    PENALISED_LABEL,
    axes_for,
    last_step,
    path_of,
    set_step_axis,
    spread_steps,
    stop_of,
)
from fssgd._path.gradient_path import GradientPath

EPS = float(np.finfo(np.float64).eps)


class LossCurveDisplay:
    """Loss of a descent against its steps, on logarithmic axes.

    Create one with :meth:`from_estimator` or :meth:`from_path`; all parameters are stored as attributes.

    Parameters
    ----------
    steps : ndarray of shape (n_points,)
        Numbers of steps k, ascending.
    loss : ndarray of shape (n_points,)
        F at those iterates, in squared units of y.
    excess_loss : ndarray of shape (n_points,), default=None
        ``F_k - F_min``, in squared units of y, where the least possible loss is known.
    name : str, default=None
        Legend label of the curve.
    penalised : bool, default=False
        Whether F has a penalty on the weights, for the label.

    Attributes
    ----------
    line_ : matplotlib Line2D
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from fssgd import GradientPath, LossCurveDisplay
    >>> path = GradientPath.from_arrays([[1.0], [2.0], [3.0], [4.0]], [3.0, 5.0, 7.0, 9.0], learning_rate=0.1)
    >>> LossCurveDisplay.from_path(path, max_iter=100).ax_.get_xlabel()  # doctest: +SKIP
    'step k (count)'
    """

    __module__ = "fssgd"

    def __init__(
        self,
        *,
        steps: npt.NDArray[np.integer[Any]],
        loss: npt.NDArray[np.floating[Any]],
        excess_loss: npt.NDArray[np.floating[Any]] | None = None,
        name: str | None = None,
        penalised: bool = False,
    ) -> None:
        self.steps = steps
        self.loss = loss
        self.excess_loss = excess_loss
        self.name = name
        self.penalised = penalised

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        max_iter: int | None = None,
        excess: bool = False,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> LossCurveDisplay:
        """Draw the descent of a fitted estimator, whatever its backend.

        Parameters
        ----------
        estimator : LinearRegressorGD
            Fitted.
        max_iter : int, default=None
            Last step drawn; None is the one the fit stopped at. A stepping backend knows no later one.
        excess : bool, default=False
            Draw the loss above its minimum; needs a closed-form fit.
        name : str, default=None
            Of the curve; None is the name of the backend.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to matplotlib's ``plot``.

        Returns
        -------
        LossCurveDisplay
        """
        check_is_fitted(estimator)
        name = estimator.backend_ if name is None else name
        if hasattr(estimator, "moments_"):
            last = stop_of(estimator, max_iter)
            path = path_of(cls.__name__, estimator)
            return cls.from_path(path, max_iter=last, excess=excess, name=name, ax=ax, **kwargs)
        try:
            recorded = np.asarray(estimator.loss_curve_)
        except AttributeError as error:
            raise ValueError(
                f"{cls.__name__} found no losses in this {type(estimator).__name__}, as one loaded from a file has "
                "none: fit it again."
            ) from error
        known = len(recorded) - 1
        if max_iter is not None and max_iter not in range(1, known + 1):
            raise ValueError(
                f"max_iter={max_iter} is not among the {known} steps that backend {estimator.backend_!r} took: choose "
                "one of them, or fit with backend='spectral', which knows every step."
            )
        steps = spread_steps(known if max_iter is None else max_iter)
        display = cls(steps=steps, loss=recorded[steps], name=name, penalised=estimator.alpha > 0)
        return display.plot(ax, excess=excess, **kwargs)

    @classmethod
    def from_path(
        cls,
        path: GradientPath,
        *,
        max_iter: int | None = None,
        excess: bool = False,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> LossCurveDisplay:
        """Draw a descent from its closed form.

        Parameters
        ----------
        path : GradientPath
        max_iter : int, default=None
            Last step drawn; None is where the descent has settled.
        excess, name, ax, **kwargs
            As for :meth:`from_estimator`.

        Returns
        -------
        LossCurveDisplay
        """
        steps = spread_steps(last_step(path, max_iter))
        above = np.array([path.excess_loss.at(int(k)) for k in steps])
        penalised = path.settings.alpha > 0
        display = cls(steps=steps, loss=path.loss(steps), excess_loss=above, name=name, penalised=penalised)
        return display.plot(ax, excess=excess, **kwargs)

    def plot(self, ax: Any = None, *, excess: bool = False, name: str | None = None, **kwargs: Any) -> LossCurveDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw, also on top of another curve; None makes a figure.
        excess : bool, default=False
            Draw ``F_k - F_min``, what is still to be gained, no lower than eps times what it is at the first
            point: float64 resolves no less of F.
        name : str, default=None
            Of the curve, instead of the one given at construction.
        **kwargs : dict
            Passed to matplotlib's ``plot``.

        Returns
        -------
        LossCurveDisplay

        Raises
        ------
        ValueError
            If ``excess`` is asked for and the least possible loss is not known.
        """
        if excess and self.excess_loss is None:
            raise ValueError(
                "The loss above its minimum is known after a closed-form fit only: use backend='spectral', "
                "LossCurveDisplay.from_path, or excess=False."
            )
        ax = axes_for(type(self).__name__, ax)
        values = np.asarray(self.excess_loss if excess else self.loss, dtype=float)
        label = PENALISED_LABEL if self.penalised else LOSS_LABEL
        name = self.name if name is None else name
        drawn = np.maximum(values, EPS * values[0]) if excess else values
        style = {"color": COLOURS[len(ax.lines) % len(COLOURS)], "linewidth": 2.0, "label": name}
        (self.line_,) = ax.plot(self.steps, drawn, **{**style, **kwargs})
        set_step_axis(ax)
        if (values > 0).any():
            ax.set_yscale("log", nonpositive="clip")
        if excess:
            label = label.replace(" (", "\nabove its minimum (")
        ax.set_ylabel(label)
        if name is not None:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
