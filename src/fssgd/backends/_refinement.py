"""Iterative refinement: the limit of a descent to nearly every digit of float64.

The residual r and the parameters solve the augmented system ``r + A theta = T, A' r = 0``. What a
computed pair leaves of it is evaluated from the rows in extended precision, and solved for with the same
QR factors; repeated, the error falls by about cond(A) * eps each time.

References
----------
Bjorck, A. (1967). Iterative refinement of linear least squares solutions I. BIT 7, 257-278.
:doi:`10.1007/BF01939321`
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from fssgd._path.closed_form import ClosedForm
from fssgd._rows.design import Rows

Wide = npt.NDArray[np.floating[Any]]

MAX_ELEMENTS = 1 << 25  # of the explicit Q: 256 MB
MAX_ROUNDS = 3
SMALL_STEP = 1e-8  # relative to the parameters


def refined_limit(rows: Rows, path: ClosedForm) -> npt.NDArray[np.floating[Any]]:
    """Refine the limit of a descent without penalty; return it as the path has it where that is not possible.

    Parameters
    ----------
    rows : Rows
    path : ClosedForm
        Of accurate moments.

    Returns
    -------
    ndarray of shape (n_parameters, n_outputs)
        In extended precision, so that unscaling, where an intercept may cancel, costs no digit.
    """
    theta = path.position(np.inf)
    n_samples, n_parameters = rows.X.shape[0], len(theta)
    # dependent columns have no one solution to refine, and a penalty has no residual that is orthogonal to the columns
    full_rank = len(path.eigenvalues) == n_parameters and bool((path.eigenvalues > 0).all())
    if path.settings.alpha or not full_rank or sp.issparse(rows.X) or n_samples * n_parameters > MAX_ELEMENTS:
        return theta
    wide = np.longdouble
    coordinates = path.coordinates
    root = np.ones((n_samples, 1), wide) if rows.weight is None else np.sqrt(rows.weight.astype(wide))[:, None]
    design = (rows.X.astype(wide) - coordinates.mean) / coordinates.scale * root
    if coordinates.fit_intercept:
        design = np.hstack([design, root])
    targets = (rows.y.astype(wide) - coordinates.target_mean) * root
    q, r = np.linalg.qr(design.astype(np.float64))
    best, residual = theta.astype(wide), targets - design @ theta
    last = np.inf
    for _ in range(MAX_ROUNDS):
        missed = (targets - residual - design @ best).astype(np.float64)
        uneven = _exact_products(design, residual).astype(np.float64)
        inner = q.T @ missed
        outer = scipy.linalg.solve_triangular(r, uneven, trans="T")
        step = scipy.linalg.solve_triangular(r, inner + outer)
        size = float(np.linalg.norm(step))
        # a small step makes good what rounding the residual left, each time anew; a large one that does not shrink
        # comes from columns that are too ill-conditioned for this
        if not (size < last / 2 or size < SMALL_STEP * float(np.linalg.norm(best))):
            break
        last = size
        best = best + step
        residual = residual + missed - q @ (inner + outer)
    return best


def _exact_products(design: Wide, residual: Wide) -> Wide:
    """Return A' r as if in twice the precision of its factors.

    It is all but 0, and what rounding adds to it reaches the parameters times cond(A)^2: that cost up to three digits
    where the residual is large. So each product is split into its rounded value and the error of that, and pairs are
    summed likewise, by the algorithms of Dekker and Knuth in [1]_.

    References
    ----------
    .. [1] Ogita, T., Rump, S. M. and Oishi, S. (2005). Accurate sum and dot product. SIAM Journal on Scientific
       Computing 26(6), 1955-1988. :doi:`10.1137/030601818`
    """
    split = design.dtype.type(2.0 ** -(-(np.finfo(design.dtype).nmant + 1) // 2) + 1.0)

    def halves(values: Wide) -> tuple[Wide, Wide]:
        high = split * values - (split * values - values)
        return high, values - high

    total = np.empty((design.shape[1], residual.shape[1]), design.dtype)
    high, low = halves(design)
    for j in range(residual.shape[1]):
        column = residual[:, j, None]
        first, second = halves(column)
        product = design * column
        errors = low * second - (product - high * first - low * first - high * second)
        rest = errors.sum(axis=0)
        while len(product) > 1:
            if len(product) % 2:
                product = np.vstack([product, np.zeros_like(product[:1])])
            one, other = product[::2], product[1::2]
            product = one + other
            moved = product - one
            rest += ((one - (product - moved)) + (other - moved)).sum(axis=0)
        total[:, j] = product[0] + rest
    return total
