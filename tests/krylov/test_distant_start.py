"""Iterates from far away, to more digits than their displacement has."""

import numpy as np
import pytest

from fssgd._krylov.distant_start import is_far, iterate_from_afar
from fssgd._krylov.ritz_sums import FixedStepDescent
from fssgd._krylov.space import GolubKahan, Lanczos
from fssgd._path.step_counts import StepCounts, as_float
from spectra import SPECTRA, Known


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("part", [1.0, 1.7])
@pytest.mark.parametrize("lanczos", [False, True])
@pytest.mark.parametrize("k", [1, 200, 10_000, np.inf])
def test_both_terms_are_right_to_their_own_size(name, part, lanczos, k):
    """The start is 1e9 times as far away as F(0) is from its minimum."""
    if name == "geometric, cond 1e12" and (lanczos or k == np.inf):
        pytest.skip("beyond what A'A, or a limit, has digits for")
    known = Known(SPECTRA[name](30), 0.0, part)
    along = 1e9 * np.random.default_rng(1).normal(size=(30, 1))
    columns = np.hstack([known.g, known.V @ along])
    if lanczos:
        space = Lanczos(known.gram_matvec, columns, max_dimension=30)
    else:
        space = GolubKahan(known.matvec, known.rmatvec, columns, max_dimension=30)
    descent = FixedStepDescent(known.eta, known.L, 0.0, np.inf, None)
    found = iterate_from_afar(space, descent, k)
    phi, left = known.filter.values_and_residual_factors(StepCounts(as_float(k), bool(k != np.inf and k % 2)))
    if k == np.inf:
        left = np.where(known.h == 0, 1.0, left)
    right = known.V @ (left[:, None] * along - phi[:, None] * known.gamma)
    # the rounding of the start, so far as it is left, and that of the gradient along small eigenvalues
    assert np.linalg.norm(found - right) <= 1e-9 * np.linalg.norm(right) + 1e-14 * np.abs(left).max() * 1e9


def test_a_dimension_that_does_not_suffice():
    known = Known(SPECTRA["geometric, cond 1e8"](100), 0.0, 1.0)
    space = GolubKahan(known.matvec, known.rmatvec, np.hstack([known.g, 1e9 * known.g]), max_dimension=100)
    descent = FixedStepDescent(known.eta, known.L, 0.0, np.inf, None)
    assert iterate_from_afar(space, descent, 10**5, max_dimension=12) is None


def test_what_counts_as_far():
    theta = np.ones((3, 2))
    assert not is_far(1e3 * theta, theta)
    assert is_far(np.array([1.0, 1e5]) * theta, theta)
