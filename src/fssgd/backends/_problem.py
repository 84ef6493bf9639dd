"""The contract of a backend: the problem it is given, and the solution it returns.

Row i of the weighted design is ``sqrt(s_i / S) [z_i, 1]`` and its target ``sqrt(s_i / S) (y_i - ybar)``,
so that with theta = (W, b - ybar)

    F(theta) = ||A theta - T||^2 + alpha ||W||^2,     grad F = 2 A' (A theta - T) + 2 alpha (W, 0),

whatever the weights, the scaling and the intercept. Without an intercept there is no last column and
no ybar. A sparse design is left uncentred: ``A = matrix - last_column offset'``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._descent.settings import Settings, rounding_of_limit
from fssgd._path.gradient_path import GradientPath
from fssgd._rows.design import Rows
from fssgd._rows.source import WeightedRows

Array = npt.NDArray[np.floating[Any]]
Monitor = Callable[[int, Array], bool]
MAX_CHUNKS = 100
CHUNK_WORK = 50_000_000  # multiplications: some tens of ms


class Status(enum.Enum):
    """Why a descent ended.

    Attributes
    ----------
    CONVERGED
        The gradient norm reached the tolerance.
    MAX_ITER
        max_iter steps were taken.
    DIVERGED
        The loss rose by more than rounding explains: the step is too large for this data.
    STOPPED
        A callback asked to stop.
    """

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    DIVERGED = "diverged"
    STOPPED = "stopped"


@dataclass(frozen=True, eq=False)
class Problem:
    """A least-squares problem in the coordinates of the descent, and how to descend.

    Parameters
    ----------
    start : ndarray of shape (n_parameters, n_outputs)
        theta_0; the intercept, if there is one, comes last and is counted from the mean of y.
    learning_rate : float
        The step, already resolved.
    max_iter : int or inf
    threshold : float or None
        Stop at the first k with ||grad F_k|| <= threshold; None runs all the steps.
    alpha : float
        Penalty on W.
    fit_intercept : bool
    curvature : float
        L, the largest eigenvalue of the Hessian of F, or an upper bound of it.
    target_size : float
        Root of the mean square of the targets, in the units of y.
    dtype : dtype
        Precision of the data and of the steps.
    rows : WeightedRows or None
        The data, in memory or elsewhere; None where only its moments are known.
    path : GradientPath or None
        The closed form, where min(n_samples, n_features) is small enough for one.
    """

    start: npt.NDArray[np.float64]
    learning_rate: float
    max_iter: int | float
    threshold: float | None
    alpha: float
    fit_intercept: bool
    curvature: float
    target_size: float
    dtype: np.dtype[Any]
    rows: WeightedRows | None = None
    path: GradientPath | None = None

    def require_rows(self) -> WeightedRows:
        """Return the rows, wherever they are.

        Returns
        -------
        WeightedRows

        Raises
        ------
        ValueError
            If only their moments are known.
        """
        if self.rows is None:
            raise ValueError(
                "Only the moments of the data are known: a stepping backend needs its rows. Use backend='spectral'."
            )
        return self.rows

    def rows_in_memory(self) -> Rows:
        """Return the rows, for a backend that needs them in memory.

        Returns
        -------
        Rows

        Raises
        ------
        ValueError
            If they are partitions of a collection, or only their moments are known.
        """
        rows = self.require_rows()
        if not isinstance(rows, Rows):
            raise ValueError(
                "The rows are spread over the partitions of a collection, and this backend needs them in memory: use "
                "backend='numpy', which steps over them where they are, or 'spectral'."
            )
        return rows

    def accurate_path(self) -> GradientPath:
        """Return the closed form from a QR factorisation of the rows, which are read once more for it.

        Returns
        -------
        GradientPath
        """
        assert self.path is not None
        moments = self.require_rows().moments(self.path.moments.feature_names, accurate=True)
        return self.path.with_moments(moments)

    @property
    def is_stable(self) -> bool:
        """Whether learning_rate <= 2 / L, to the rounding of L."""
        return self.learning_rate * self.curvature <= 2.0 + rounding_of_limit(len(self.start))

    def penalty(self, theta: Array) -> Array:
        """Half the gradient of the penalty, ``alpha (W, 0)``.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters, n_outputs)

        Returns
        -------
        ndarray of the shape of theta
        """
        return np.asarray(self.penalties * theta, dtype=self.dtype)

    @cached_property
    def penalties(self) -> Array:
        """The penalty on each parameter, of shape (n_parameters, 1): alpha on W, 0 on b."""
        settings = Settings(alpha=self.alpha, fit_intercept=self.fit_intercept)
        # in the dtype of the steps: products with float64 would round a float32 descent in other places
        return settings.penalty(len(self.start) - self.fit_intercept).astype(self.dtype)[:, None]

    def loss(self, theta: Array) -> float:
        """F at theta.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters, n_outputs)

        Returns
        -------
        float
        """
        return float(self.evaluate(theta)[0])

    def gradient(self, theta: Array) -> Array:
        """Gradient of F at theta.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters, n_outputs)

        Returns
        -------
        ndarray of the shape of theta
        """
        return self.evaluate(theta)[1]

    def evaluate(self, theta: Array) -> tuple[Any, Array]:
        """F and its gradient at theta, from one pass over the rows, wherever they are.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters, n_outputs)

        Returns
        -------
        loss : float
        gradient : ndarray of the shape of theta
        """
        error, back = self.require_rows().squared_residual_and_gradient(theta)
        pull = self.penalty(theta)
        return error + np.vdot(theta, pull), 2 * (back + pull)

    def highest_loss(self, lowest: float, theta: Array) -> float:
        """Return the largest computed F that rounding explains at theta, once F was ``lowest``.

        Parameters
        ----------
        lowest : float
        theta : ndarray of shape (n_parameters, n_outputs)

        Returns
        -------
        float

        Notes
        -----
        With d = 8 eps (rms(T) + sqrt(L / 2) ||theta||), the error of a residual's norm, that is
        ``lowest + 4 d sqrt(lowest) + d^2``. Above it, the loss has risen. With a stable step it cannot rise.
        """
        if self.is_stable:  # the loss may rise by rounding for ever, near a minimum of 0, and that is no divergence
            return np.inf
        eps = float(np.finfo(self.dtype).eps)
        # in float64: the square of a float32 theta of 1e20 overflows, and the allowance with it
        size = float(np.linalg.norm(np.asarray(theta, dtype=np.float64)))
        d = 8.0 * eps * (self.target_size + float(np.sqrt(self.curvature / 2.0)) * size)
        return lowest + 4.0 * d * float(np.sqrt(lowest)) + d * d

    def chunk_ends(self) -> Iterator[int]:
        """Yield the steps after which a stepping backend reports.

        They are equally spaced, at most 100, and far enough apart that a report costs next to nothing.

        Returns
        -------
        iterator of int
        """
        # max_iter may be 1e30: sizes are Python's integers, and at most a hundred of them exist at a time
        total = int(self.max_iter)
        size = max(-(-total // MAX_CHUNKS), CHUNK_WORK // (self.require_rows().n_samples * self.start.size + 1), 1)
        return iter([*range(size, total, size), total] if total else [])


@dataclass(frozen=True, eq=False)
class Solution:
    """The iterate a backend stopped at.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters, n_outputs)
    n_iter : int or inf
        Steps taken.
    status : Status
    loss : float
        F at theta.
    gradient_norm : float
        ||grad F|| at theta.
    loss_curve : ndarray of shape (n_iter + 1,) or None
        F at iterates 0..n_iter; None where ``path`` gives it.
    path : GradientPath or None
        The closed form that theta came from.
    """

    theta: Array
    n_iter: int | float
    status: Status
    loss: float
    gradient_norm: float
    loss_curve: npt.NDArray[np.float64] | None = None
    path: GradientPath | None = None
