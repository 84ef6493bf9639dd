"""Gradient descent as a linear smoother: degrees of freedom and covariances of the iterates.

After k steps the parameters are a fixed matrix times y.

With M = 2/S [Z 1]' D [Z 1], the part of the Hessian H = V diag(h) V' that comes from the data,

    df(k) = tr(hat matrix) = sum_j phi_k(h_j) v_j' M v_j,
    n - df(k) = n - df(inf) + sum_j (1 - eta h_j)^k v_j' M v_j / h_j,

the second a sum of terms of one sign. Where rows of weight s_i have variance ``sigma^2 / s_i``, s_i counted in units
of their mean, theta_k has the covariance ``sigma^2 (2 / n) V phi_k V' M V phi_k V'``. In the limit without a penalty
that is the textbook's ``sigma^2 (X'X)^-1``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fssgd._path.spectral_filter import Filter
from fssgd._path.spectrum import Spectrum
from fssgd._path.step_counts import StepCounts

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Smoother:
    """The matrix that takes y to parameters and fitted values, seen through its spectrum.

    Parameters
    ----------
    spectrum : Spectrum
    filter : Filter
    n_samples : int
        Rows of positive weight.
    """

    spectrum: Spectrum
    filter: Filter
    n_samples: int

    def degrees_of_freedom(self, steps: StepCounts) -> Array:
        """Return df(k), of shape (n_k,)."""
        curvature = self.spectrum.curvature
        seen = curvature > 0  # at k = inf with a penalty, or an unstable step, a null direction would be inf times 0
        with np.errstate(over="ignore"):
            return np.asarray(self.filter.values(steps)[..., seen] @ curvature[seen])

    def residual_share(self, steps: StepCounts) -> Array:
        """Return 1 - df(k) / n, of shape (n_k,), as a sum of terms that are positive while the step is stable."""
        # 1 - df / n by subtraction would be 0 or negative to rounding where the fit is all but saturated
        left = self.fixed_residual + self.filter.residual_factors(steps) @ self.fitted_shares
        return np.asarray(left / self.n_samples)

    @cached_property
    def fitted_shares(self) -> Array:
        """How much of each mode the limit fits, v_j' M v_j / h_j: exactly 1, but for a penalty."""
        h = self.spectrum.eigenvalues
        # curvature / h is 1 to the last bit without a penalty, where both are the same array
        return np.divide(self.spectrum.curvature, h, out=np.zeros_like(h), where=h > 0)

    @cached_property
    def fixed_residual(self) -> float:
        """n minus the degrees of freedom of the limit."""
        seen = self.spectrum.eigenvalues > 0
        # counted, not subtracted: n - df(inf) is exactly 0 where there are as many parameters as rows
        return float(self.n_samples - int(seen.sum()) + (1.0 - self.fitted_shares)[seen].sum())

    def spread(self, steps: StepCounts, vectors: Array, factor: Array | None) -> Array:
        """Return G with ``sigma^2 G G'`` the covariance of what ``vectors`` makes of theta_k.

        Parameters
        ----------
        steps : StepCounts
            One k.
        vectors : ndarray of shape (n, n_modes)
            A linear function of the eigenvectors: they themselves for theta_k, unscaled for coefficients.
        factor : ndarray of shape (n_rows, n_modes) or None
            R with ``R' R = V' M V``; None where that is diag(h), without a penalty. (As ``diag(h) - V' (H - M) V`` it
            would have the rounding of the largest eigenvalue.)

        Returns
        -------
        ndarray of shape (n, n_modes) or (n, n_rows)
        """
        # G and not the covariance: squaring it would halve the digits of a small standard error beside a large one
        moved, h = vectors * self.filter.values(steps), self.spectrum.eigenvalues
        spread = moved * np.sqrt(h) if factor is None else moved @ factor.T
        return np.asarray(spread * np.sqrt(2.0 / self.n_samples))
