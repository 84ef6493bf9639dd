"""The mean squared error of every iterate of a path, on rows given by their moments.

theta_k moves along the eigenvectors v_j of the Hessian of its own data by phi_k(h_j) gamma_j, so its mean squared
error on any rows is a quadratic of the phi_k(h_j):

    E(k) = c + 2 b' x + x' A x,    A_ij = (gamma_i . gamma_j) v_i' G v_j,

G the second moments of these rows in the coordinates of the descent. One k costs a product with a matrix of n_modes
by n_modes, whatever the number of rows.

A mode that settles within the search (eta h horizon >= 1) is counted from its limit, ``x_j = |1 - eta h_j|^k / h_j``,
any other from the start, ``x_j = phi_k(h_j)``: so that what is far away and never reached does not have to cancel. The
signs are kept apart. Then each of x_j, |x_j'| and |x_j''| is a monotone function of k over the even, and over the
odd k, and ``E'' = 2 (b + A x)' x'' + 2 x'' A x'`` is bounded on an interval by taking each product of A at
the end that makes it large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments import Moments
from fssgd._path.gradient_path import GradientPath
from fssgd._path.spectral_filter import Filter
from fssgd._path.step_counts import Flags, StepCounts, times

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
LARGEST_LOG = 300.0  # |log| of a factor: its square still has room in float64, and is no slow denormal


@dataclass(frozen=True, eq=False)
class Motion:
    """x_j and the sizes of its derivatives, at knots of shape (...): each (..., n_modes)."""

    x: Array
    speed: Array
    second_derivative_bound: Array


@dataclass(frozen=True, eq=False)
class Modes:
    """How the modes of a path move, as monotone functions and signs.

    Parameters
    ----------
    filter : Filter
    horizon : int or float
        The largest k of interest.
    """

    filter: Filter
    horizon: float

    @cached_property
    def settled(self) -> Flags:
        """Modes that are counted from their limit."""
        # A slow mode has a limit far away (gradient / h) that k steps never see: from there, two huge numbers would
        # cancel. A fast mode counted from the start would cancel as well, once it has settled.
        return np.asarray(self.filter.factors >= 1.0 / self.horizon)

    @cached_property
    def rates(self) -> Array:
        """-log |1 - eta h|; 0 for eta h = 1, a mode that has landed after one step."""
        # such a mode is 0 from k = 1 on; its infinite rate times 0 would be NaN in the derivatives
        return np.asarray(np.where(np.isinf(self.filter.logs), 0.0, -self.filter.logs))

    def signs(self, odd: Flags | bool) -> Array:
        """What to multiply x_j by before it meets b and A."""
        alternating = (self.filter.factors > 1.0) & odd  # then the search goes over even and odd k apart
        return np.where(self.settled, np.where(alternating, 1.0, -1.0), 1.0)

    @cached_property
    def turns(self) -> tuple[Array, Array]:
        """Signs of x_j' and x_j''."""
        speed = np.where(self.settled, -np.sign(self.rates), 1.0)
        return speed, np.where(self.settled, 1.0, -1.0)

    def at(self, ks: Array) -> Array:
        """x_j alone."""
        with np.errstate(over="ignore", invalid="ignore"):
            logs = np.minimum(times(ks[..., None], self.filter.logs), LARGEST_LOG)
            return np.asarray(np.where(self.settled, np.exp(logs), -np.expm1(logs)) * self.filter.inverses)

    def logs(self, ks: Array) -> Array:
        """k log |1 - eta h_j|, within what a search can follow."""
        # a denormal 1e-320 makes a product a hundred times slower, and an overflow ends the search in NaN
        return np.clip(times(ks[..., None], self.filter.logs), -LARGEST_LOG, LARGEST_LOG)

    def motion(self, ks: Array) -> Motion:
        """x_j, |x_j'| and |x_j''|."""
        logs = self.logs(ks)
        left = np.exp(logs) * self.filter.inverses
        x = left if self.settled.all() else np.where(self.settled, left, -np.expm1(logs) * self.filter.inverses)
        rates = np.abs(self.rates)
        speed = left * rates
        return Motion(x, speed, speed * rates)


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Mean squared error along a path, outputs added up, on rows given by their moments.

    Parameters
    ----------
    modes : Modes
    constant : float
        c.
    slope : ndarray of shape (n_modes,)
        b.
    matrix : ndarray of shape (n_modes, n_modes)
        A.
    rounding : float
        How far apart two of its values may lie and still be equal.
    """

    modes: Modes
    constant: float
    slope: Array
    matrix: Array
    rounding: float

    @classmethod
    def of(cls, path: GradientPath, moments: Moments, horizon: int) -> ErrorCurve:
        """Set up the quadratic for the rows that ``moments`` describe.

        Parameters
        ----------
        path : GradientPath
        moments : Moments
            Of the same features and outputs.
        horizon : int
            The largest k of interest.
        """
        modes, spectrum, coordinates = Modes(path.filter, horizon), path.spectrum, path.coordinates
        gradient, scale = spectrum.gradient, coordinates.scale
        limit = spectrum.pull * path.filter.inverses[:, None]
        origin = spectrum.position(np.where(modes.settled[:, None], limit, spectrum.coordinates))
        weights, intercept = coordinates.split(origin)
        vectors, intercepts = coordinates.split(spectrum.vectors)
        # these rows have means of their own: what is left of theirs adds to the error, and moves with b
        mu = coordinates.feature_means(moments)
        miss = moments.mean_y - coordinates.target_mean - mu @ weights - intercept
        drift = mu @ vectors + intercepts
        if moments.accurate:
            factor = moments.factor_x / (np.sqrt(moments.weight_sum) * scale)
            targets = moments.factor_y / np.sqrt(moments.weight_sum)
            residual, reach = targets - factor @ weights, factor @ vectors
            constant, uneven, second = np.sum(residual**2), reach.T @ residual, reach.T @ reach
        else:
            inverse = 1.0 / scale
            scatter = moments.scatter_xx * (inverse[:, None] * (inverse / moments.weight_sum))
            cross = moments.scatter_xy * (inverse / moments.weight_sum)[:, None]
            left = cross - scatter @ weights
            constant = moments.variance_y.sum() - np.sum(weights * (cross + left))
            uneven, second = vectors.T @ left, vectors.T @ scatter @ vectors
        # a perfect fit leaves the rounding of a difference, of either sign, and a squared error is not negative
        constant = max(float(constant), 0.0) + float(miss @ miss)
        slope = ((uneven + np.outer(drift, miss)) * gradient).sum(axis=1)
        second = (second + np.outer(drift, drift)) * (gradient @ gradient.T)
        return cls(modes, constant, slope, second, 8.0 * EPS * (constant + _variation(moments)))

    @classmethod
    def of_training(cls, path: GradientPath, horizon: int) -> ErrorCurve:
        """Set up the quadratic for the rows that the path itself is fitted to.

        Without a penalty it is ``F_min + sum_j ||gamma_j||^2 h_j x_j^2 / 2`` with all modes counted from their
        limits: a sum of positive terms, exact down to the rounding of F_min.
        """
        if path.settings.alpha:
            return cls.of(path, path.moments, horizon)
        # the quadratic of all the rows would carry eps times the variance of y: too much where the fit is all but exact
        squares = 0.5 * path.eigenvalues * (path.spectrum.gradient**2).sum(axis=1)
        modes, slope = Modes(path.filter, np.inf), np.zeros(len(squares))
        rounding = EPS**2 if path.spectrum.accurate else EPS
        lowest, variation = path.spectrum.minimum, _variation(path.moments)
        return cls(modes, max(lowest, 0.0), slope, np.diag(squares), 8.0 * rounding * variation)

    @property
    def alternates(self) -> bool:
        """Whether even and odd k have to be told apart."""
        return self.modes.filter.alternates

    @property
    def reach(self) -> float:
        """Largest k whose error is a number well within float64."""
        growth = float(self.modes.filter.logs.max(initial=0.0))
        return np.floor(LARGEST_LOG / growth) if growth > 0 else np.inf

    def at(self, steps: StepCounts) -> Array:
        """E(k), of shape (n_k,), for any k; inf where an unstable descent has grown beyond all bounds."""
        ks = np.asarray(steps.values)
        x = self.modes.signs(steps.odd_column()) * self.modes.at(ks)
        return np.where(ks > self.reach, np.inf, np.maximum(self._quadratic(x), 0.0))

    def _quadratic(self, x: Array) -> Array:
        flat = x.reshape(-1, x.shape[-1])
        value = self.constant + np.einsum("ij,ij->i", flat @ self.matrix + 2.0 * self.slope, flat)
        return np.asarray(value.reshape(x.shape[:-1]))

    def bounds(self, knots: Array, odd: bool) -> tuple[Array, Array]:
        """Return E at knots of shape (n_rows, n_knots), and bounds from above of E'' between neighbours."""
        # E'' = 2 (b + A x)' x'' + 2 x'' A x' is a sum of products of monotone functions. Taken apart by sign, each is
        # bounded by its values at the ends of the interval, and the tighter the shorter that is.
        motion, sign = self.modes.motion(knots), self.modes.signs(odd)
        first, second = (sign * turn for turn in self.modes.turns)
        value = self._quadratic(sign * motion.x)
        (x, x_high), (v, v_high), (w, w_high) = (
            extent(f) for f in (motion.x, motion.speed, motion.second_derivative_bound)
        )
        # a product u A w of u, w >= 0 is at most u_high A+ w_high - u_low A- w_low, where A+- = (|A| +- A) / 2
        sizes = _times(np.stack([x_high, x, v_high, v]), np.abs(self.matrix))
        signed = _times(np.stack([x_high * sign, x * sign, v_high * first, v * first]), self.matrix)
        linear = 2.0 * self.slope * second
        bound = _dot(sizes[0] + signed[0] * second + np.maximum(linear, 0.0), w_high)
        bound += _dot(signed[1] * second - sizes[1] + np.minimum(linear, 0.0), w)
        bound += _dot(sizes[2] + signed[2] * first, v_high) + _dot(signed[3] * first - sizes[3], v)
        return value, bound


def extent(values: Array) -> tuple[Array, Array]:
    """Smaller and larger of neighbours along the second axis."""
    return np.minimum(values[:, :-1], values[:, 1:]), np.maximum(values[:, :-1], values[:, 1:])


def _times(vectors: Array, matrix: Array) -> Array:
    """Return vectors @ matrix, in one product."""
    return np.asarray((vectors.reshape(-1, len(matrix)) @ matrix).reshape(vectors.shape))


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("...j,...j->...", a, b))


def _variation(moments: Moments) -> float:
    """Variance of y; what its rounding would be where it is constant."""
    return float(moments.variance_y.sum()) or EPS * float(moments.mean_y @ moments.mean_y)
