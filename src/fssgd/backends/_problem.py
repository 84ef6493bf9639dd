"""What a backend is given, and what it hands back.

Row i of the weighted design is ``sqrt(s_i / S) [z_i, 1]`` and its target ``sqrt(s_i / S) (y_i - ybar)``,
so that with theta = (W, b - ybar)

    F(theta) = ||A theta - T||^2 + alpha ||W||^2,     grad F = 2 A' (A theta - T) + 2 alpha (W, 0),

whatever the weights, the scaling and the intercept. Without an intercept there is no last column and
no ybar. A sparse design is left uncentred: ``A = matrix - last_column offset'``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fssgd._descent.coordinates import Scaling
from fssgd._descent.settings import rounding_of_limit
from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import BLOCK_ROWS, HARMLESS
from fssgd._path.gradient_path import GradientPath
from fssgd._path.spectrum import decompose

Array = npt.NDArray[np.floating[Any]]
Monitor = Callable[[int, Array], bool]
MAX_CHUNKS = 100
CHUNK_WORK = 50_000_000  # multiplications: some tens of ms


class Status(enum.Enum):
    """Why a descent ended; each value is a sentence that says what to change, if anything."""

    CONVERGED = "The gradient norm reached the tolerance."
    MAX_ITER = (
        "max_iter steps were taken before the gradient norm reached the tolerance: raise max_iter, the step or tol."
    )
    DIVERGED = "The loss rose by more than rounding explains: the step is too large for this data; lower learning_rate."
    STOPPED = "A callback asked to stop."


class WeightedRows(Protocol):
    """The rows of a problem, wherever they are: what is asked of :class:`Rows` in whole."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    def squared_residual_and_gradient(self, theta: Array) -> tuple[Any, Array]:
        """||A theta - T||^2, and A' (A theta - T) of shape (n_parameters, n_outputs)."""

    def gram_matvec(self, vector: Array) -> Array:
        """A' A vector, of shape (n_parameters, n_outputs)."""

    def moments(self, names: Any = None, *, accurate: bool = False) -> Moments:
        """Read the moments off the rows in the user's units."""


def mean_left_by_centring(X: Any, weight: npt.NDArray[np.float64] | None, scaling: Scaling) -> npt.NDArray[np.float64]:
    """Return the weighted mean of ``X - mean``: not 0, where the rounding of a mean far from 0 shows.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,) or None
    scaling : Scaling

    Returns
    -------
    ndarray of shape (n_features,)
        0 for columns within ten standard deviations of 0.
    """
    left = np.zeros(X.shape[1])
    far = np.flatnonzero(is_far(scaling))
    if len(far):
        n_samples = X.shape[0]
        share = np.full(n_samples, 1.0 / n_samples) if weight is None else weight / weight.sum()
        for start in range(0, n_samples, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            rows = X[part][:, far]
            left[far] += share[part] @ ((rows.toarray() if sp.issparse(rows) else rows) - scaling.mean[far])
    return left


def is_far(scaling: Scaling) -> npt.NDArray[np.bool_]:
    """Tell which columns are centred, and so far from 0 that it costs digits; of shape (n_features,)."""
    return np.asarray(scaling.mean * scaling.mean > HARMLESS * scaling.scale * scaling.scale)


def working_dtype(X: Any) -> np.dtype[Any]:
    """Return the precision that a descent on X works in."""
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


@dataclass(frozen=True, eq=False)
class Design:
    """A weighted design and its targets, laid out for stepping.

    Parameters
    ----------
    matrix : ndarray or CSR array of shape (n_samples, n_parameters)
    targets : ndarray of shape (n_samples, n_outputs)
    offset : ndarray of shape (n_features,) or None
        What a sparse matrix still has to be centred by.
    """

    matrix: Any
    targets: Array
    offset: Array | None

    def matvec(self, theta: Array) -> Array:
        """A theta, of shape (n_samples, n_outputs)."""
        if self.offset is not None:
            theta = np.vstack([theta[:-1], theta[-1] - self.offset @ theta[:-1]])
        return np.asarray(self.matrix @ theta)

    def rmatvec(self, residual: Array) -> Array:
        """A' residual, of shape (n_parameters, n_outputs)."""
        result = np.asarray(self.matrix.T @ residual)
        if self.offset is not None:
            result[:-1] -= np.outer(self.offset, result[-1])
        return result

    def squared_residual_and_gradient(self, theta: Array) -> tuple[Any, Array]:
        """||A theta - T||^2, and A' (A theta - T) of shape (n_parameters, n_outputs)."""
        residual = self.matvec(theta) - self.targets
        return np.vdot(residual, residual), self.rmatvec(residual)

    def gram_matvec(self, vector: Array) -> Array:
        """A' A vector, of shape (n_parameters, n_outputs)."""
        return self.rmatvec(self.matvec(vector))


@dataclass(frozen=True, eq=False)
class Rows:
    """The weighted rows of a problem in memory, built when first asked for.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        In the user's units, of any dtype of numbers.
    y : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,) or None
    scaling : Scaling
    level : ndarray of shape (n_outputs,)
        Weighted mean of y, or zeros without an intercept.
    fit_intercept : bool
    mean_rest : ndarray of shape (n_features,) or None
        Where these are some rows of more: :attr:`rest` of all of them.
    """

    X: Any
    y: Array
    weight: npt.NDArray[np.float64] | None
    scaling: Scaling
    level: npt.NDArray[np.float64]
    fit_intercept: bool
    mean_rest: npt.NDArray[np.float64] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of a descent."""
        return working_dtype(self.X)

    @cached_property
    def sqrt_weights(self) -> npt.NDArray[np.float64]:
        """sqrt(s_i / S), of shape (n_samples, 1)."""
        n_samples = self.X.shape[0]
        if self.weight is None:
            return np.full((n_samples, 1), np.sqrt(1.0 / n_samples))
        return np.asarray(np.sqrt(self.weight / self.weight.sum())[:, None])

    @cached_property
    def offset(self) -> Array | None:
        """What a sparse design still has to be centred by, of shape (n_features,); None for a dense one."""
        if not (sp.issparse(self.X) and self.fit_intercept and self.scaling.mean.any()):
            return None
        return np.asarray(np.where(self._far, 0.0, self.scaling.mean / self.scaling.scale), dtype=self.dtype)

    @cached_property
    def rest(self) -> npt.NDArray[np.float64]:
        """What the rounding of the means leaves of the means of the centred columns, of shape (n_features,).

        The intercept starts at minus the mean of y. Times that, a mean of 1e-8 instead of 0 is no small gradient: with
        x and y both at 1e8, it made half of the first step. Zeros where no column is that far from 0.
        """
        return mean_left_by_centring(self.X, self.weight, self.scaling) if self.mean_rest is None else self.mean_rest

    @cached_property
    def _far(self) -> npt.NDArray[np.bool_]:
        """Columns of a sparse X so far from 0 that they are centred entry by entry: all but full, or constant."""
        return np.asarray(is_far(self.scaling) | ((self.scaling.scale == 1.0) & (self.scaling.mean != 0)))

    @cached_property
    def matrix(self) -> Any:
        """The design, of shape (n_samples, n_features + fit_intercept), in :attr:`dtype`; CSR or Fortran-ordered."""
        dtype, share = self.dtype, self.sqrt_weights
        if sp.issparse(self.X):
            columns = sp.csc_array(self.X, dtype=np.float64)
            if self.offset is not None and self._far.any():
                away = columns[:, self._far].toarray() - self.scaling.mean[self._far] - self.rest[self._far]
                away = sp.csc_array(away)
                order = np.argsort(np.concatenate([np.flatnonzero(~self._far), np.flatnonzero(self._far)]))
                columns = sp.csc_array(sp.hstack([columns[:, ~self._far], away]))[:, order]
            scaled = sp.diags_array(share[:, 0]) @ sp.csr_array(columns) @ sp.diags_array(1.0 / self.scaling.scale)
            return sp.csr_array(sp.hstack([scaled, share]) if self.fit_intercept else scaled, dtype=dtype)
        n_samples, n_features = self.X.shape
        matrix = np.empty((n_samples, n_features + self.fit_intercept), dtype=dtype, order="F")
        for start in range(0, n_samples, 4096):  # a block at a time: float64 arithmetic without a float64 copy
            part = slice(start, start + 4096)
            centred = self.X[part] - self.scaling.mean - self.rest
            matrix[part, :n_features] = centred / self.scaling.scale * share[part]
        if self.fit_intercept:
            matrix[:, n_features:] = share
        return matrix

    @cached_property
    def targets(self) -> Array:
        """T, of shape (n_samples, n_outputs), in :attr:`dtype`."""
        return np.asarray((self.y - self.level) * self.sqrt_weights, dtype=self.dtype)

    @cached_property
    def design(self) -> Design:
        """What a step needs of the rows."""
        return Design(self.matrix, self.targets, self.offset)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    def matvec(self, theta: Array) -> Array:
        """A theta, of shape (n_samples, n_outputs)."""
        return self.design.matvec(theta)

    def rmatvec(self, residual: Array) -> Array:
        """A' residual, of shape (n_parameters, n_outputs)."""
        return self.design.rmatvec(residual)

    def squared_residual_and_gradient(self, theta: Array) -> tuple[Any, Array]:
        """||A theta - T||^2, and A' (A theta - T) of shape (n_parameters, n_outputs)."""
        return self.design.squared_residual_and_gradient(theta)

    def gram_matvec(self, vector: Array) -> Array:
        """A' A vector, of shape (n_parameters, n_outputs)."""
        return self.design.gram_matvec(vector)

    def moments(self, names: Any = None, *, accurate: bool = False) -> Moments:
        """Read the moments off the rows in the user's units."""
        return Moments.of_rows(self.X, self.y, self.weight, accurate=accurate, feature_names=names)


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
        """Return the rows, wherever they are; raise a ValueError where only their moments are known."""
        if self.rows is None:
            raise ValueError(
                "Only the moments of the data are known: a stepping backend needs its rows. Use backend='spectral'."
            )
        return self.rows

    def rows_in_memory(self) -> Rows:
        """Return the rows, for a backend that needs them in memory; raise a ValueError where they are not."""
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
        spectrum = decompose(moments, self.path.scaling, self.path.settings, self.start)
        return replace(self.path, moments=moments, spectrum=spectrum)

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
        pulled = self.alpha * theta
        if self.fit_intercept:
            pulled[-1] = 0
        return np.asarray(pulled, dtype=self.dtype)

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
        if self.is_stable:
            return np.inf
        eps = float(np.finfo(self.dtype).eps)
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
