"""The loss in the eigenbasis of its Hessian.

F is a quadratic of theta = (W, b), so with H = V diag(h) V' and gamma = V' grad F(theta_0)

    F(theta) = F_min + sum_j ||gamma_j + h_j v_j' (theta - theta_0)||^2 / (2 h_j).

In the coordinates of the descent a feature has variance ``C_jj`` and mean ``mu_j``, and with an
intercept H = 2 [[C + mu mu' + alpha I, mu], [mu', 1]]. Targets are counted from their mean, and b
from there, which leaves the descent as it is and makes every number independent of their offset.

Two routes lead to the same numbers: eigenvectors of H from the scatter matrix, whose small eigenvalues
are known to eps * h_max; and singular vectors of a square root of H, known to eps * sqrt(h h_max).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.linalg

from fssgd._descent.coordinates import Scaling
from fssgd._descent.settings import Settings
from fssgd._moments.moments import Moments

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """F seen from ``start``, one row an eigenvector.

    Parameters
    ----------
    eigenvalues : ndarray of shape (n_modes,)
        h_j >= 0; exactly 0 where the data does not reach. Modes in the null space may be absent.
    vectors : ndarray of shape (n_parameters, n_modes)
        v_j, the intercept last.
    curvature : ndarray of shape (n_modes,)
        v_j' M v_j, the part of h_j that comes from the data and not from the penalty.
    pull : ndarray of shape (n_modes, n_outputs)
        ``-v_j' grad F`` at theta = 0; exactly 0 where h_j is.
    coordinates : ndarray of shape (n_modes, n_outputs)
        v_j' theta_0.
    start : ndarray of shape (n_parameters, n_outputs)
        theta_0, with b counted from the mean of y if there is an intercept.
    outside : ndarray of shape (n_parameters, n_outputs) or None
        What of theta_0 no mode describes, and no step moves; None where there is a mode for every parameter.
    minima : ndarray of shape (n_outputs,)
        What each output has part in F_min; rounding may take it a little below 0.
    accurate : bool
        Whether it comes from a root.
    unresolved : float
        Norm of the gradient at theta_0 along the directions whose curvature is lost in the rounding of second moments,
        where it is more than that rounding explains. They count as null, and a descent may still have to follow them.
    """

    eigenvalues: Array
    vectors: Array
    curvature: Array
    pull: Array
    coordinates: Array
    start: Array
    outside: Array | None
    minima: Array
    accurate: bool
    unresolved: float = 0.0

    @cached_property
    def gradient(self) -> Array:
        """gamma_j, of shape (n_modes, n_outputs); exactly 0 where h_j is."""
        return np.asarray(self.eigenvalues[:, None] * self.coordinates - self.pull)

    @property
    def starts_apart(self) -> bool:
        """Whether the start is along b alone and b is a mode of its own: then no rotation rounds weights by it."""
        return not (self.start[:-1].any() or self.vectors[:-1, -1:].any())

    @property
    def minimum(self) -> float:
        """F_min, which rounding may take a little below 0."""
        return float(self.minima.sum())

    @property
    def largest(self) -> float:
        """L = lambda_max(H); 0 if F is constant."""
        return float(self.eigenvalues.max(initial=0.0))

    @property
    def condition_number(self) -> float:
        """Ratio of the largest to the smallest eigenvalue that is not null."""
        positive = self.eigenvalues[self.eigenvalues > 0]
        return float(positive.max() / positive.min()) if len(positive) else 1.0

    @property
    def steepest(self) -> Array:
        """Eigenvector of L, of shape (n_parameters,)."""
        return self.vectors[:, int(np.argmax(self.eigenvalues))]

    @property
    def limit(self) -> Array:
        """Where a stable descent leads, of shape (n_parameters, n_outputs)."""
        h = self.eigenvalues[:, None]
        return self.position(np.divide(self.pull, h, out=self.coordinates.copy(), where=h > 0))

    def position(self, coordinates: Array) -> Array:
        """Return theta from its coordinates in the eigenbasis, both with any leading axes."""
        theta = self.vectors @ coordinates
        return theta if self.outside is None else self.outside + theta


def decompose(moments: Moments, scaling: Scaling, settings: Settings, start: Array) -> Spectrum:
    """Decompose F, by the root of the moments where they carry one."""
    mu = (moments.mean_x - scaling.mean) / scaling.scale
    route = _from_root if moments.accurate else _from_scatter
    return route(moments, scaling, mu, settings.fit_intercept, settings.alpha, start)


def _from_scatter(
    moments: Moments, scaling: Scaling, mu: Array, fit_intercept: bool, alpha: float, start: Array
) -> Spectrum:
    p, outputs = moments.n_features, start.shape[1]
    inverse = 1.0 / scaling.scale
    half = 0.5 * moments.weight_sum
    data = moments.scatter_xx * (inverse[:, None] * (inverse / half))
    slope = moments.scatter_xy * (inverse / half)[:, None]
    height = moments.variance_y
    coupled = bool(mu.any())
    if coupled:
        data += 2.0 * np.outer(mu, mu)
    if not fit_intercept:
        slope += 2.0 * np.outer(mu, moments.mean_y)
        height = height + moments.mean_y**2
    elif coupled:
        features, data = data, np.full((p + 1, p + 1), 2.0)  # np.block would be a thirtieth of a small fit
        data[:p, :p], data[:p, p], data[p, :p] = features, 2.0 * mu, 2.0 * mu
        slope = np.vstack([slope, np.zeros((1, outputs))])
    if alpha:
        penalty = np.zeros(len(data))
        penalty[:p] = 2.0 * alpha
        data += np.diag(penalty)
    h, vectors = np.linalg.eigh(data) if len(data) > 1 else (data[0], np.ones((1, 1)))
    pull, coordinates = vectors.T @ slope, vectors.T @ start[: len(data)]
    smallest, unresolved = len(h) * EPS * h[-1], 0.0
    null = h <= smallest
    if null[0]:
        flat = h[null, None] * coordinates[null] - pull[null]
        if coordinates[null].any():  # as with standardize=False, where b starts at minus the mean of y
            still = vectors[:, null] @ coordinates[null]
            height = height + _loss_along(moments, scaling, mu, fit_intercept, alpha, still)
        pull[null], h[null] = 0.0, 0.0
        reached = ~null
        # h is known to eps L, so a gradient is known to eps L times how far from 0 the descent leads
        blur = 10.0 * smallest * float(np.linalg.norm(pull[reached] / h[reached, None]))
        size = float(np.linalg.norm(flat))
        unresolved = size if size > blur else 0.0
    curvature = np.maximum(h - penalty @ vectors**2, 0.0) if alpha else h
    minima = height - (0.5 / np.where(h > 0, h, np.inf)) @ (pull * pull)
    spectrum = Spectrum(h, vectors, curvature, pull, coordinates, start[: len(h)], None, minima, False, unresolved)
    return _with_intercept(spectrum, start) if fit_intercept and not coupled else spectrum


def _loss_along(
    moments: Moments, scaling: Scaling, mu: Array, fit_intercept: bool, alpha: float, theta: Array
) -> Array:
    """F(theta) - F(0) of each output, for a theta that F hardly depends on.

    As ``theta' H theta / 2`` it would have the rounding of H: eps L theta^2, which for an intercept that starts at
    minus the mean of y is far more than the variance of y. So offsets, which cancel, add up before they are squared.
    """
    p = moments.n_features
    weights = theta[:p]
    coef = weights / scaling.scale[:, None]
    spread = (coef * (moments.scatter_xx @ coef - 2.0 * moments.scatter_xy)).sum(axis=0) / moments.weight_sum
    if fit_intercept:
        offset = np.square(mu @ weights + (theta[p] if len(theta) > p else 0.0))
    else:
        offset = np.square(mu @ weights - moments.mean_y) - np.square(moments.mean_y)
    return np.asarray(spread + offset + alpha * (weights * weights).sum(axis=0))


def _from_root(
    moments: Moments, scaling: Scaling, mu: Array, fit_intercept: bool, alpha: float, start: Array
) -> Spectrum:
    p, n_outputs = start.shape[0] - fit_intercept, start.shape[1]
    rows = moments.factor_x / (np.sqrt(moments.weight_sum) * scaling.scale)
    targets = moments.factor_y / np.sqrt(moments.weight_sum)
    coupled = bool(mu.any())
    if coupled or not fit_intercept:
        rows = np.vstack([rows, mu])
        targets = np.vstack([targets, np.zeros((1, n_outputs)) if fit_intercept else moments.mean_y])
    basis, weights = None, start[:p]
    if len(rows) < p:  # everything happens in the span of the rows and of the start
        span = np.vstack([rows, weights.T]) if weights.any() else rows
        basis, _ = np.linalg.qr(span.T)
        rows, weights = rows @ basis, basis.T @ weights
    theta, size, shift = weights, rows.shape[1], 2.0 * alpha
    if fit_intercept and coupled:
        level = np.zeros((len(rows), 1))
        level[-1] = 1.0
        rows, theta = np.hstack([rows, level]), np.vstack([weights, start[p:]])
        if alpha:  # b is not penalised: the penalty becomes rows of the root
            rows = np.vstack([rows, np.sqrt(alpha) * np.eye(size, size + 1)])
            targets = np.vstack([targets, np.zeros((size, n_outputs))])
            shift = 0.0
    left, sigma, vectors = scipy.linalg.svd(rows, full_matrices=bool(alpha) and len(rows) < rows.shape[1])
    vectors, left = vectors.T, left[:, : len(sigma)]
    coordinates = vectors.T @ theta
    null = sigma <= max(rows.shape) * EPS * sigma.max(initial=0.0)
    reached = left.T @ targets
    reached[null] = 0.0
    missed = targets - left @ reached
    if not shift and null.any():  # what starts in the null space stays there, and in F
        missed -= left[:, null] @ (sigma[null, None] * coordinates[: len(sigma)][null])
    sigma[null] = 0.0
    sigma = np.append(sigma, np.zeros(vectors.shape[1] - len(sigma)))
    reached = np.vstack([reached, np.zeros((vectors.shape[1] - len(reached), n_outputs))])
    sigma, reached, vectors, coordinates = sigma[::-1], reached[::-1], vectors[:, ::-1], coordinates[::-1]
    pull, h = 2.0 * sigma[:, None] * reached, 2.0 * sigma**2 + shift
    minima = (missed * missed).sum(axis=0)
    if shift:
        minima = minima + (shift / h) @ (reached * reached)
    curvature = 2.0 * sigma**2
    if alpha and not shift:
        curvature = np.maximum(h - 2.0 * alpha * (vectors[:size] ** 2).sum(axis=0), 0.0)
    outside = None if vectors.shape[1] == len(theta) else theta - vectors @ coordinates
    if basis is not None:
        vectors = np.vstack([basis @ vectors[:size], vectors[size:]])
        outside = None if outside is None else np.vstack([basis @ outside[:size], outside[size:]])
    spectrum = Spectrum(h, vectors, curvature, pull, coordinates, start[: len(vectors)], outside, minima, True)
    return _with_intercept(spectrum, start) if fit_intercept and not coupled else spectrum


def _with_intercept(features: Spectrum, start: Array) -> Spectrum:
    """Add b, an eigenvector of its own of eigenvalue 2 when the features have mean 0: kept exactly apart."""
    (p, modes), n_outputs, outside = features.vectors.shape, start.shape[1], features.outside
    h, curvature = np.full(modes + 1, 2.0), np.full(modes + 1, 2.0)
    vectors, pull = np.zeros((p + 1, modes + 1)), np.zeros((modes + 1, n_outputs))
    h[:modes], curvature[:modes], vectors[:p, :modes] = features.eigenvalues, features.curvature, features.vectors
    pull[:modes] = features.pull
    vectors[p, modes], coordinates = 1.0, np.concatenate([features.coordinates, start[p:]])
    if outside is not None:
        outside = np.concatenate([outside, np.zeros((1, n_outputs))])
    return Spectrum(
        h,
        vectors,
        curvature,
        pull,
        coordinates,
        start,
        outside,
        features.minima,
        features.accurate,
        features.unresolved,
    )
