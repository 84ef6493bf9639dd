"""Iterate k of a descent from far away, of which the displacement would keep no more than the rounding.

From a start of size 1e9, ``theta_0 - phi_k(H) grad F(theta_0)`` leaves an iterate of size 1 seven digits. Of the two
terms of

    theta_k = (1 - eta H)^k theta_0 - phi_k(H) grad F(0)

neither is larger than the iterate, once k steps have left the start behind. Each has a Krylov space of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fssgd._krylov.descent import ACCURACY, MAX_DIMENSION, both_rules, dimensions, needs_singular_values
from fssgd._krylov.ritz_sums import FixedStepDescent, RitzSums
from fssgd._krylov.space import KrylovSpace
from fssgd._path.step_counts import StepCounts, as_float

Array = npt.NDArray[np.float64]
FAR = 1e-12  # relative rounding of an iterate from which the start counts as far away
EPS = float(np.finfo(np.float64).eps)


def is_far(start: Array, theta: Array) -> bool:
    """Tell whether the rounding of the way from the start shows in the iterate.

    Parameters
    ----------
    start, theta : ndarray of shape (n_parameters, n_outputs)

    Returns
    -------
    bool
    """
    return bool((EPS * np.linalg.norm(start, axis=0) > FAR * np.linalg.norm(theta, axis=0)).any())


def iterate_from_afar(
    space: KrylovSpace, descent: FixedStepDescent, k: int | float, *, max_dimension: int = MAX_DIMENSION
) -> Array | None:
    """Return theta_k along the parameters of the space, or None where it is out of reach.

    Parameters
    ----------
    space : KrylovSpace
        Of the n_outputs columns of grad F(0), followed by those of theta_0.
    descent : FixedStepDescent
        With a stable step, and nothing apart.
    k : int or inf
    max_dimension : int, default=3000

    Returns
    -------
    ndarray of shape (n_parameters, n_outputs) or None
    """
    for dimension in dimensions(max_dimension):
        space.extend(dimension)
        lower, upper = both_rules(space, descent, accurate=needs_singular_values(k))
        found, other = _coefficients(lower, k), _coefficients(upper, k)
        both = np.zeros((space.dimension, len(found)))
        truncation = 0.0
        for j, (one, two) in enumerate(zip(found, other, strict=True)):
            both[: len(one), j] = one
            shared = min(len(one), len(two))
            rest = np.concatenate([one[:shared] - two[:shared], one[shared:], two[shared:]])
            truncation = max(truncation, float(np.linalg.norm(rest)))
        parts = np.hsplit(space.combine(both), 2)
        theta = parts[1] - parts[0]
        if space.is_exhausted or truncation <= ACCURACY * float(np.linalg.norm(theta, axis=0).min()):
            return theta
    return None


def _coefficients(sums: RitzSums, k: int | float) -> list[Array]:
    """phi_k(H) of the first half of the columns, and (1 - eta H)^k of the others."""
    n_outputs = len(sums.measures) // 2
    left = sums.filter.residual_factors(StepCounts(as_float(k), bool(k != np.inf and k % 2)))
    start = sum(len(measure.nodes) for measure in sums.measures[:n_outputs])
    found = sums.coefficients(k)[:n_outputs]
    for measure in sums.measures[n_outputs:]:
        factors = left[start : start + len(measure.nodes)]
        if k == np.inf:  # what lies in the null space stays where it is
            factors = np.where(measure.is_null, 1.0, factors)
        found.append(measure.function(factors))
        start += len(measure.nodes)
    return found
