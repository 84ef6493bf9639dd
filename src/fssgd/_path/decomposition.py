"""The decomposition of the loss: its spectrum from the moments of the data.

In the coordinates of the descent a feature has variance ``C_jj`` and mean ``mu_j``, and with an intercept

    H = 2 [[C + mu mu' + alpha I, mu], [mu', 1]].

Two routes lead to the same numbers: eigenvectors of H from the scatter matrix, whose small eigenvalues are known to
``eps h_max``; and singular vectors of a matrix R with ``2 R'R = H``, which knows them to ``eps sqrt(h h_max)``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.linalg

from fssgd._descent.coordinates import Coordinates
from fssgd._descent.settings import Settings
from fssgd._moments.moments import Moments
from fssgd._path.spectrum import Spectrum

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


def decompose(moments: Moments, coordinates: Coordinates, settings: Settings, start: Array) -> Spectrum:
    """Decompose F, by the triangular factor of the moments where they carry one.

    Parameters
    ----------
    moments : Moments
    coordinates : Coordinates
    settings : Settings
        Of which the penalty counts.
    start : ndarray of shape (n_parameters, n_outputs)
        theta_0.

    Returns
    -------
    Spectrum
    """
    mu = coordinates.feature_means(moments)
    # centred features leave b an eigenvector of its own: kept out of the matrix, rounding cannot couple it to them
    is_apart = coordinates.fit_intercept and not mu.any()
    from_moments = _from_factor if moments.accurate else _from_scatter
    spectrum = from_moments(moments, coordinates, mu, settings, start, is_apart)
    return _with_intercept(spectrum, start) if is_apart else spectrum


def _from_scatter(
    moments: Moments, coordinates: Coordinates, mu: Array, settings: Settings, start: Array, is_apart: bool
) -> Spectrum:
    """Decompose H itself, without the intercept if that is apart."""
    p, n_outputs = moments.n_features, start.shape[1]
    # one pass over the p x p matrix instead of one each for rows and columns; eigh reads its lower half only
    inverse, half = 1.0 / coordinates.scale, 0.5 * moments.weight_sum
    hessian = moments.scatter_xx * (inverse[:, None] * (inverse / half))
    slope = moments.scatter_xy * (inverse / half)[:, None]  # -grad F(0)
    loss = moments.variance_y  # F(0)
    if mu.any():
        hessian += 2.0 * np.outer(mu, mu)
    if not coordinates.fit_intercept:  # y is counted from 0, and its mean pulls at the weights
        slope += 2.0 * np.outer(mu, moments.mean_y)
        loss = loss + moments.mean_y**2
    elif not is_apart:  # raw columns: b is one more row and column
        features, hessian = hessian, np.full((p + 1, p + 1), 2.0)  # np.block would be a thirtieth of a small fit
        hessian[:p, :p], hessian[:p, p], hessian[p, :p] = features, 2.0 * mu, 2.0 * mu
        slope = np.vstack([slope, np.zeros((1, n_outputs))])
    n_parameters = len(hessian)
    penalty = 2.0 * settings.penalty(p)[:n_parameters]
    if settings.alpha:
        hessian.flat[:: n_parameters + 1] += penalty
    h, vectors = np.linalg.eigh(hessian) if n_parameters > 1 else (hessian[0], np.ones((1, 1)))
    pull, coordinates_of_start = vectors.T @ slope, vectors.T @ start[:n_parameters]
    smallest, unresolved = n_parameters * EPS * h[-1], 0.0
    null = h <= smallest
    if null[0]:  # dependent or constant columns: what is left of their eigenvalues is rounding
        flat = h[null, None] * coordinates_of_start[null] - pull[null]
        if coordinates_of_start[null].any():  # as with standardize=False, where b starts at minus the mean of y
            still = vectors[:, null] @ coordinates_of_start[null]
            loss = loss + _loss_along(moments, coordinates, mu, settings, still)
        pull[null], h[null] = 0.0, 0.0
        reached = ~null
        # h is known to eps L, so a gradient is known to eps L times how far from 0 the descent leads; a larger one
        # along a null direction is real: the columns are not dependent, only closer to it than second moments tell
        blur = 10.0 * smallest * float(np.linalg.norm(pull[reached] / h[reached, None]))
        size = float(np.linalg.norm(flat))
        unresolved = size if size > blur else 0.0
    # the part of h that the data has: a difference, which rounding may take below 0 where the penalty is all of it
    curvature = np.maximum(h - penalty @ vectors**2, 0.0) if settings.alpha else h
    minima = loss - (0.5 / np.where(h > 0, h, np.inf)) @ (pull * pull)
    return Spectrum(
        h, vectors, curvature, pull, coordinates_of_start, start[:n_parameters], None, minima, False, unresolved
    )


def _loss_along(moments: Moments, coordinates: Coordinates, mu: Array, settings: Settings, theta: Array) -> Array:
    """F(theta) - F(0) of each output, for a theta that F hardly depends on.

    As ``theta' H theta / 2`` it would have the rounding of H: eps L theta^2, which for an intercept that starts at
    minus the mean of y is far more than the variance of y. So offsets, which cancel, add up before they are squared.
    """
    p = moments.n_features
    weights = theta[:p]
    coef = weights / coordinates.scale[:, None]
    spread = (coef * (moments.scatter_xx @ coef - 2.0 * moments.scatter_xy)).sum(axis=0) / moments.weight_sum
    if coordinates.fit_intercept:
        offset = np.square(mu @ weights + (theta[p] if len(theta) > p else 0.0))
    else:
        offset = np.square(mu @ weights - moments.mean_y) - np.square(moments.mean_y)
    return np.asarray(spread + offset + settings.alpha * (weights * weights).sum(axis=0))


def _from_factor(
    moments: Moments, coordinates: Coordinates, mu: Array, settings: Settings, start: Array, is_apart: bool
) -> Spectrum:
    """Decompose R, the rows of which are those of the triangular factor, and as many more as F has other terms."""
    p, n_outputs, alpha = moments.n_features, start.shape[1], settings.alpha
    rows = moments.factor_x / (np.sqrt(moments.weight_sum) * coordinates.scale)
    targets = moments.factor_y / np.sqrt(moments.weight_sum)
    has_intercept = coordinates.fit_intercept and not is_apart
    if not is_apart:  # the factor is of centred columns: one more row brings back their means
        rows = np.vstack([rows, mu])
        targets = np.vstack([targets, np.zeros((1, n_outputs)) if has_intercept else moments.mean_y])
    basis, weights = None, start[:p]
    if len(rows) < p:  # fewer rows than columns: everything happens in the span of the rows and of the start
        span = np.vstack([rows, weights.T]) if weights.any() else rows
        basis, _ = np.linalg.qr(span.T)
        rows, weights = rows @ basis, basis.T @ weights
    theta, size, shift = weights, rows.shape[1], 2.0 * alpha
    if has_intercept:
        ones = np.zeros((len(rows), 1))
        ones[-1] = 1.0
        rows, theta = np.hstack([rows, ones]), np.vstack([weights, start[p:]])
        if alpha:  # b is not penalised, so the penalty is no shift of all eigenvalues: it becomes rows of its own
            rows = np.vstack([rows, np.sqrt(alpha) * np.eye(size, size + 1)])
            targets = np.vstack([targets, np.zeros((size, n_outputs))])
            shift = 0.0
    # a penalty gives null directions an eigenvalue too, so all of them are asked for then
    left, sigma, vectors = scipy.linalg.svd(rows, full_matrices=bool(alpha) and len(rows) < rows.shape[1])
    vectors, left = vectors.T, left[:, : len(sigma)]
    coordinates_of_start = vectors.T @ theta
    # what is below the rounding of the largest singular value is taken for a dependent column, as LAPACK's rank is
    null = sigma <= max(rows.shape) * EPS * sigma.max(initial=0.0)
    reached = left.T @ targets
    reached[null] = 0.0
    # the residual itself, not a difference of sums of squares: a perfect fit has one of eps, and not of sqrt(eps)
    missed = targets - left @ reached
    if not shift and null.any():  # what starts in the null space stays there, and in F
        missed -= left[:, null] @ (sigma[null, None] * coordinates_of_start[: len(sigma)][null])
    sigma[null] = 0.0
    n_more = vectors.shape[1] - len(sigma)
    sigma, reached = np.append(sigma, np.zeros(n_more)), np.vstack([reached, np.zeros((n_more, n_outputs))])
    sigma, reached = sigma[::-1], reached[::-1]  # ascending, as eigh has them
    vectors, coordinates_of_start = vectors[:, ::-1], coordinates_of_start[::-1]
    pull, h = 2.0 * sigma[:, None] * reached, 2.0 * sigma**2 + shift
    minima = (missed * missed).sum(axis=0)
    if shift:  # ridge leaves a residual along every direction, of which the penalty is a part
        minima = minima + (shift / h) @ (reached * reached)
    curvature = 2.0 * sigma**2
    if alpha and not shift:
        curvature = np.maximum(h - 2.0 * alpha * (vectors[:size] ** 2).sum(axis=0), 0.0)
    # with fewer modes than parameters a start may lie outside of what they span, where no step moves it
    outside = None if vectors.shape[1] == len(theta) else theta - vectors @ coordinates_of_start
    if basis is not None:
        vectors = np.vstack([basis @ vectors[:size], vectors[size:]])
        outside = None if outside is None else np.vstack([basis @ outside[:size], outside[size:]])
    return Spectrum(h, vectors, curvature, pull, coordinates_of_start, start[: len(vectors)], outside, minima, True)


def _with_intercept(features: Spectrum, start: Array) -> Spectrum:
    """Add b, which is an eigenvector of eigenvalue 2 where the features have mean 0."""
    (p, n_modes), n_outputs, outside = features.vectors.shape, start.shape[1], features.outside
    vectors = np.zeros((p + 1, n_modes + 1))
    vectors[:p, :n_modes], vectors[p, n_modes] = features.vectors, 1.0
    return replace(
        features,
        eigenvalues=np.append(features.eigenvalues, 2.0),
        vectors=vectors,
        curvature=np.append(features.curvature, 2.0),
        pull=np.vstack([features.pull, np.zeros((1, n_outputs))]),
        coordinates=np.concatenate([features.coordinates, start[p:]]),
        start=start,
        outside=None if outside is None else np.concatenate([outside, np.zeros((1, n_outputs))]),
    )
