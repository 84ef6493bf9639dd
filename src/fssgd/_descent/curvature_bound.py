"""An upper bound of L, the largest eigenvalue of the Hessian, from products with it.

k Lanczos steps from a random start underestimate L by more than a factor 1 - eps with a probability of at most
1.648 sqrt(n_parameters) exp(-sqrt(eps) (2 k - 1)), whatever the spectrum.

References
----------
Kuczynski, J. and Wozniakowski, H. (1992). Estimating the largest eigenvalue by the power and Lanczos
algorithms with a random start. SIAM Journal on Matrix Analysis and Applications 13(4), 1094-1122.
:doi:`10.1137/0613066`
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.linalg

Array = npt.NDArray[np.float64]

SLACK = 0.1
FAILURE = 1e-12


def curvature_bound(hessian: Callable[[Array], Array], n_parameters: int) -> tuple[float, Array]:
    """Bound lambda_max of a positive semidefinite matrix from above, within a factor 1 / (1 - 0.1).

    Parameters
    ----------
    hessian : callable
        Takes a vector of shape (n_parameters,) to its product with the matrix.
    n_parameters : int

    Returns
    -------
    bound : float
        Fails to be an upper bound with probability 1e-12 over the start, which is drawn with a fixed seed.
    vector : ndarray of shape (n_parameters,)
        Approximate eigenvector, of norm 1.
    """
    needed = (np.log(1.648 * np.sqrt(n_parameters) / FAILURE) / np.sqrt(SLACK) + 1.0) / 2.0
    n_steps = min(int(np.ceil(needed)), n_parameters)
    unit = 0.0  # products are taken in units of the first, so that no square leaves the range of float64
    vector = np.random.default_rng(0).normal(size=n_parameters)
    basis = np.zeros((n_steps, n_parameters))
    diagonal, beside = np.zeros(n_steps), np.zeros(n_steps)
    norm = float(np.linalg.norm(vector))
    for k in range(n_steps):
        basis[k] = vector / norm
        vector = hessian(basis[k])
        unit = unit or float(np.abs(vector).max())
        if unit == 0.0:
            return 0.0, basis[0]
        vector = vector / unit
        diagonal[k] = basis[k] @ vector
        for _ in range(2):  # orthogonalising twice is enough
            vector = vector - basis[: k + 1].T @ (basis[: k + 1] @ vector)
        norm = float(np.linalg.norm(vector))
        beside[k] = norm
        if norm <= 1e-12 * diagonal.max():  # the Krylov space is invariant
            n_steps = k + 1
            break
    values, vectors = scipy.linalg.eigh_tridiagonal(diagonal[:n_steps], beside[: n_steps - 1])
    return unit * max(float(values[-1]), 0.0) / (1.0 - SLACK), basis[:n_steps].T @ vectors[:, -1]
