"""The iterates on the contours of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fssgd._insight.displays._common import (
    COLOURS,
    Array,
    Steps,
    axes_for,
    feature_names,
    last_step,
    path_of,
    require_single_output,
    spread_steps,
    stop_of,
)
from fssgd._path.gradient_path import GradientPath

GRID = 241  # points of the plane along each axis
DECADES = 6  # of the loss that the contours span
MARGIN, APART = 0.2, 0.04  # of the window: around the iterates, and between two numbered ones


class DescentPathDisplay:
    """Iterates of a descent on the contours of its loss, in the plane of two coordinates.

    The coordinates are those of the descent: W in units of y per standard deviation of the feature if it is
    standardised, per unit of the feature if not, and b in units of y. Both axes have one scale, so that what is round
    looks round. Create one with :meth:`from_estimator` or :meth:`from_path`; all parameters are stored as attributes.

    Parameters
    ----------
    first, second : ndarray of shape (n_first,), (n_second,)
        The grid along x and y.
    excess_loss : ndarray of shape (n_second, n_first)
        ``F - F_min`` there, in squared units of y; other coordinates, if any, are at the minimum.
    steps : ndarray of shape (n_points,)
        Numbers of steps k, ascending.
    iterates : ndarray of shape (n_points, 2)
        Where they lead.
    minimum : ndarray of shape (2,)
        Where F is least.
    labels : pair of str
        Names of the coordinates, with units.

    Attributes
    ----------
    contour_ : matplotlib QuadContourSet
    line_ : matplotlib Line2D
        Through the iterates.
    points_ : matplotlib Line2D
        Iterates 0, 1, 10, 100, ... and the last.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    __module__ = "fssgd"

    def __init__(
        self,
        *,
        first: Array,
        second: Array,
        excess_loss: Array,
        steps: npt.NDArray[np.integer[Any]],
        iterates: Array,
        minimum: Array,
        labels: tuple[str, str],
    ) -> None:
        self.first = first
        self.second = second
        self.excess_loss = excess_loss
        self.steps = steps
        self.iterates = iterates
        self.minimum = minimum
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        max_iter: int | None = None,
        coordinates: Sequence[str | int] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> DescentPathDisplay:
        """Draw the descent of an estimator fitted in closed form.

        Parameters
        ----------
        estimator : LinearRegressorGD
            Fitted to one output by ``backend="spectral"``.
        max_iter : int, default=None
            Last step drawn; None is the one the fit stopped at.
        coordinates : pair of str or int, default=None
            Names or numbers of two columns, or one and "intercept". Needed if there are more than two coordinates;
            the contours are then those of the plane through the minimum, and the iterates are projected onto it.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        DescentPathDisplay
        """
        path = path_of(cls.__name__, estimator)
        last = stop_of(estimator, max_iter)
        return cls.from_path(path, max_iter=last, coordinates=coordinates, ax=ax, **kwargs)

    @classmethod
    def from_path(
        cls,
        path: GradientPath,
        *,
        max_iter: int | None = None,
        coordinates: Sequence[str | int] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> DescentPathDisplay:
        """Draw a descent from its closed form.

        Parameters
        ----------
        path : GradientPath
            Of one output.
        max_iter : int, default=None
            Last step drawn; None is where the descent has settled.
        coordinates, ax, **kwargs
            As for :meth:`from_estimator`.

        Returns
        -------
        DescentPathDisplay

        Raises
        ------
        ValueError
            If there are several outputs, or no two coordinates, or if the iterates leave the range of float64.
        """
        require_single_output(cls.__name__, path)
        chosen = _chosen(path, coordinates)
        steps = spread_steps(last_step(path, max_iter))
        plane = _Plane.of(path, steps, chosen)
        half = (1.0 + MARGIN) * float(np.abs(plane.iterates - plane.minimum).max())
        half = half or 1.0  # a descent from the minimum goes nowhere
        first, second = np.linspace(plane.minimum - half, plane.minimum + half, GRID).T
        u, v = np.meshgrid(first - plane.minimum[0], second - plane.minimum[1])
        (a, b), (_, c) = plane.quadratic
        display = cls(
            first=first,
            second=second,
            excess_loss=a * u * u + 2.0 * b * u * v + c * v * v,
            steps=steps,
            iterates=plane.iterates,
            minimum=plane.minimum,
            labels=(_label(path, chosen[0]), _label(path, chosen[1])),
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, levels: Any = None, colorbar: bool = True, **kwargs: Any) -> DescentPathDisplay:
        """Draw contours and iterates.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        levels : array-like of shape (n_levels,), default=None
            Losses above the minimum to draw contours at, ascending; None takes two a decade. Give two displays the
            same ones to compare them.
        colorbar : bool, default=True
            Whether to add one.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for the line.

        Returns
        -------
        DescentPathDisplay
        """
        ax = axes_for(type(self).__name__, ax)
        from matplotlib.colors import LogNorm

        if levels is None:
            top = np.ceil(2.0 * np.log10(max(float(self.excess_loss.max()), 1e-300))) / 2.0
            levels = 10.0 ** np.arange(top - DECADES, top + 0.25, 0.5)
        levels = np.asarray(levels, dtype=float)
        shown = np.maximum(self.excess_loss, 0.5 * levels[0])  # 0 at the minimum, which has no logarithm
        self.contour_ = ax.contourf(
            self.first, self.second, shown, levels, norm=LogNorm(levels[0], levels[-1]), cmap="viridis",
            extend="both",
        )  # fmt: skip
        if colorbar:
            add_colorbar(self.contour_, ax)
        style = {"color": "white", "linewidth": 1.6, "label": "iterates"}
        (self.line_,) = ax.plot(*self.iterates.T, **{**style, **kwargs})
        powers = [i for i, k in enumerate(self.steps) if k in (0, self.steps[-1]) or 10 ** round(np.log10(k)) == k]
        (self.points_,) = ax.plot(
            *self.iterates[powers].T,
            "o",
            color=COLOURS[1],
            markeredgecolor="white",
            markersize=7,
            label="0, 1, 10, ... steps",
        )
        ax.plot(*self.minimum, "x", color="white", markersize=9, markeredgewidth=2.2, zorder=2.5, label="minimum")
        self._number(ax, powers)
        ax.set_aspect("equal")
        ax.set_xlim(self.first[0], self.first[-1])
        ax.set_ylim(self.second[0], self.second[-1])
        ax.set_xlabel(self.labels[0])
        ax.set_ylabel(self.labels[1])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _number(self, ax: Any, powers: list[int]) -> None:
        """Write k beside the marked iterates, where there is room for it."""
        from matplotlib.patheffects import withStroke

        outlined = [withStroke(linewidth=2.5, foreground="black")]
        numbered: list[Array] = []
        away = 1 if self.iterates[0, 0] <= self.minimum[0] else -1  # on the side the descent comes from
        room = APART * float(np.ptp(self.first))
        for i in [powers[-1], *powers[:-1]]:
            place = self.iterates[i]
            if all(float(np.abs(place - other).max()) > room for other in numbered):
                numbered.append(place)
                text = f"{self.steps[i]:,}"
                ax.annotate(
                    text, place, (-9 * away, 0), textcoords="offset points", ha="right" if away > 0 else "left",
                    va="center", color="white", fontsize="small", path_effects=outlined,
                )  # fmt: skip


def add_colorbar(contour: Any, ax: Any) -> Any:
    """Add the bar that says what the colours of one or several displays mean."""
    figure = (ax[0] if isinstance(ax, Sequence) else ax).figure
    label = "loss above its minimum (squared units of y)"
    ticks = [level for level in contour.levels if abs(np.log10(level) - round(np.log10(level))) < 1e-9]
    return figure.colorbar(contour, ax=ax, label=label, ticks=ticks, format="%.0e")


class _Plane(NamedTuple):
    """A descent as seen in the plane of two of its coordinates, b counted from 0."""

    iterates: Array
    minimum: Array
    quadratic: Array  # F - F_min = u' quadratic u, with u counted from the minimum

    @classmethod
    def of(cls, path: GradientPath, steps: Steps, chosen: list[int]) -> _Plane:
        spectrum, h = path.spectrum, path.eigenvalues
        weights, _ = path.coordinates.split(spectrum.start)
        origin = path.coordinates.join(0.0 * weights, path.coordinates.target_mean)[:, 0]
        minimum = (spectrum.limit[:, 0] + origin)[chosen]
        iterates = np.array([path.position(int(k))[chosen, 0] for k in steps]) + origin[chosen]
        if not (np.abs(iterates) < 1e150).all():
            raise ValueError("The iterates leave the range of float64: draw fewer of them, or take a smaller step.")
        across = spectrum.vectors[chosen]
        return cls(iterates, minimum, 0.5 * (across * h) @ across.T)


def _chosen(path: GradientPath, coordinates: Sequence[str | int] | None) -> list[int]:
    """Rows of theta that are the two coordinates."""
    names = feature_names(path) + ["intercept"] * path.settings.fit_intercept
    known = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    if len(names) < 2:
        raise ValueError("DescentPathDisplay draws a plane, and this descent has one coordinate: fit an intercept.")
    if coordinates is None:
        if len(names) > 2:
            raise ValueError(
                f"DescentPathDisplay draws a plane, and this descent has {len(names)} coordinates: choose two of "
                f"{known}, by coordinates=."
            )
        return [0, 1]
    rows = [names.index(c) if c in names else c for c in coordinates]
    right = all(isinstance(row, int) and 0 <= row < len(names) for row in rows)
    if len(rows) != 2 or not right or rows[0] == rows[1]:
        raise ValueError(f"coordinates={coordinates!r} are not two different ones of {known}.")
    return [int(row) for row in rows]


def _label(path: GradientPath, row: int) -> str:
    names = feature_names(path)
    if row == len(names):
        return "b (units of y)"
    what = "W" if len(names) == 1 else f"W of {names[row]}"
    return f"{what} (units of y per {'standard deviation' if path.settings.standardize else 'unit'} of x)"
