"""Iterates and stopping steps from Krylov spaces against the closed form of matrices with known singular values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact import EPS
from fssgd._krylov.descent import descend
from fssgd._krylov.ritz_sums import FixedStepDescent
from fssgd._krylov.space import GolubKahan, Lanczos
from spectra import SPECTRA, Known, relative
from strategies import CI

KINDS = ["golub-kahan", "lanczos"]


def space_of(known, kind=KINDS[0], **settings):
    settings = {"max_dimension": min(known.A.shape)} | settings
    if kind == "lanczos":
        return Lanczos(known.gram_matvec, known.g, **settings)
    return GolubKahan(known.matvec, known.rmatvec, known.g, **settings)


def question(known, max_iter, tol=None, **settings):
    settings = {"curvature": known.L, "shift": known.shift, "loss": 0.0} | settings
    threshold = None if tol is None else tol * known.size
    return FixedStepDescent(learning_rate=known.eta, max_iter=max_iter, threshold=threshold, **settings)


def check(known, space, max_iter, tol, *, accuracy=1e-9):
    """Solve, and compare all there is with the closed form."""
    brackets = []
    asked = question(known, max_iter, tol, loss=known.drop(np.inf) + 1.0 if known.part <= 1.9 else 1e6)
    found = descend(space, asked, on_check=lambda *bracket: brackets.append(bracket))
    k, reason = known.stop(max_iter, asked.threshold)
    assert (found.n_iter, found.reason) == (k, reason)
    assert found.certain
    assert found.bracket[0] <= k <= found.bracket[1]
    for _, low, high in brackets:
        assert low <= k <= high
    error = relative(found.displacement(), known.displacement(k))
    assert error <= accuracy
    assert error <= found.error + 1e-13
    if k < np.inf:
        assert found.gradient_norm == pytest.approx(np.sqrt(known.squared_gradient.at(k)), rel=1e-6, abs=1e-15)
        assert found.loss == pytest.approx(asked.loss - known.drop(k), rel=1e-8)
    return found


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("shift", [0.0, 1e-3])
@pytest.mark.parametrize("part", [1.0, 1.5, 1.9])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("max_iter", "tol"), [(1, None), (37, None), (30_001, None), (10**6, 1e-3), (10**5, 1e-6)])
def test_iterates_are_those_of_stepping(name, shift, part, kind, max_iter, tol):
    known = Known(SPECTRA[name](48), shift, part)
    check(known, space_of(known, kind), max_iter, tol)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("part", [1.0, 1.9])
def test_several_outputs_of_which_one_is_at_its_minimum(name, wide, part):
    s = SPECTRA[name](40)
    known = Known(np.append(s, np.zeros(25)) if wide else s, 0.0, part, 3, wide=wide)
    found = check(known, space_of(known), 10**6, 1e-7)
    assert not found.displacement()[:, 1].any()


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("shift", [0.0, 1e-2])
def test_tolerance_alone_ends_the_descent(name, shift):
    known = Known(SPECTRA[name](30), shift, 1.0)
    check(known, space_of(known), np.inf, 1e-4, accuracy=1e-8)


@pytest.mark.parametrize("name", [name for name in SPECTRA if name != "geometric, cond 1e12"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e-2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_has_the_least_norm(name, wide, shift, kind):
    s = SPECTRA[name](30)
    known = Known(np.append(s, np.zeros(20)) if wide else s, shift, 1.0, 2, wide=wide and not shift)
    check(known, space_of(known, kind), np.inf, None, accuracy=1e-7 if kind == "lanczos" else 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_earlier_iterate_is_known_as_well(kind):
    known = Known(SPECTRA["geometric, cond 1e4"](80), 0.0, 1.0, 2)
    found = descend(space_of(known, kind), question(known, 5000))
    for k in (0, 1, 2, 10, 77, 1000, 4999):
        assert relative(found.displacement(k), known.displacement(k)) < 1e-9
        assert found.sums.squared_gradient.at(k) == pytest.approx(known.squared_gradient.at(k), rel=1e-8)
    vectors, measure = found.ritz_vectors(0), found.sums.measures[0]
    np.testing.assert_allclose(vectors @ measure.components, known.g[:, 0], atol=1e-13)


@pytest.mark.parametrize("name", ["uniform", "power", "outlier"])
@pytest.mark.parametrize("part", [2.01, 2.5])
@pytest.mark.parametrize("k", [3, 40, 301])
def test_iterates_of_a_step_that_is_too_large(name, part, k):
    known = Known(SPECTRA[name](40), 0.0, part)
    found = descend(space_of(known), question(known, k))
    assert found.n_iter == k
    assert relative(found.displacement(), known.displacement(k)) < 1e-9


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("part", [2.01, 2.5, 4.0])
@pytest.mark.parametrize("bound", [1.0, 1.1])
def test_divergence_is_found_at_the_step_of_the_closed_form(name, part, bound):
    """The loss has risen where it is above twice its lowest value."""
    known, loss = Known(SPECTRA[name](40), 0.0, part), 100.0
    right, lowest = 0, loss
    while loss - known.drop(right) <= 2.0 * lowest:
        lowest = min(lowest, loss - known.drop(right))
        right += 1
    asked = question(
        known, 10**6, 1e-9, curvature=bound * known.L, loss=loss, highest_loss=lambda lowest, displacement: 2.0 * lowest
    )
    found = descend(space_of(known), asked)
    assert (found.n_iter, found.reason, found.certain) == (right, "diverged", True)


@pytest.mark.parametrize("part", [1e6, 1e100, 1e300])
def test_a_step_that_is_far_too_large(part):
    known = Known(SPECTRA["uniform"](100), 0.0, part)
    asked = question(known, 10**6, 1e-9, loss=100.0, highest_loss=lambda lowest, displacement: 2.0 * lowest)
    found = descend(space_of(known), asked)
    assert (found.n_iter, found.reason, found.certain) == (1, "diverged", True)


@pytest.mark.parametrize("name", SPECTRA)
def test_a_bound_of_the_curvature_above_the_limit_is_no_divergence(name):
    """The step is below 2 / L, and above 2 over the bound of L."""
    known = Known(SPECTRA[name](40), 1e-3, 1.9)
    asked = question(known, 1000, 1e-5, curvature=1.1 * known.L, highest_loss=lambda lowest, displacement: 2.0 * lowest)
    found = descend(space_of(known), asked)
    k, reason = known.stop(1000, asked.threshold)
    assert (found.n_iter, found.reason, found.certain) == (k, reason, True)
    assert relative(found.displacement(), known.displacement(k)) < 1e-9


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("part", [1.0, 1.9])
def test_a_parameter_apart_counts_as_if_it_were_in_the_space(name, part):
    """As the intercept of centred features, with curvature 2 of its own."""
    known = Known(SPECTRA[name](30), 0.0, part)
    known.h, known.gamma = np.append(known.h, 2.0), np.vstack([known.gamma, [[5.0]]])
    known.V = np.block([[known.V, np.zeros((30, 1))], [np.zeros((1, 30)), np.ones((1, 1))]])
    asked = question(known, 10**5, 1e-4, apart_eigenvalues=np.array([2.0]), apart_gradient=np.array([[5.0]]))
    found = descend(space_of(known), asked)
    k, reason = known.stop(10**5, asked.threshold)
    assert (found.n_iter, found.reason) == (k, reason)
    assert relative(found.displacement(), known.displacement(k)) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vectors", [0, 10])
@pytest.mark.parametrize(("max_iter", "tol"), [(300, None), (3000, 1e-5)])
def test_a_small_memory_gives_the_same_iterate(kind, vectors, max_iter, tol):
    known = Known(SPECTRA["power"](60), 0.0, 1.0, 2)
    space = space_of(known, kind, memory=vectors * 8 * 60 * 2)
    check(known, space, max_iter, tol)
    assert not space.is_orthogonal


def test_what_is_out_of_reach_is_left_open():
    """A dimension that does not suffice: the stopping step lies in the bracket, and is not said to be certain."""
    known = Known(SPECTRA["geometric, cond 1e8"](200), 0.0, 1.0)
    asked = question(known, np.inf, 1e-6)
    found = descend(space_of(known), asked, max_dimension=30)
    assert not found.certain
    assert found.dimension == 30
    assert found.bracket[0] < known.stop(np.inf, asked.threshold)[0] < found.bracket[1]
    assert found.error > 1e-10
    few = descend(space_of(known), question(known, 1000), max_dimension=12)
    assert few.certain
    assert few.truncation >= relative(few.displacement(), known.displacement(1000)) > 1e-10


def test_max_iter_is_proved_long_before_the_stopping_step_is_known():
    known = Known(SPECTRA["geometric, cond 1e8"](200), 0.0, 1.0)
    found = descend(space_of(known), question(known, 1000, 1e-6))
    assert (found.n_iter, found.reason, found.certain) == (1000, "max_iter", True)
    assert found.dimension < 130


@pytest.mark.parametrize("tol", [None, 1e-3])
def test_a_start_at_the_minimum_takes_no_step_that_matters(tol):
    known = Known(SPECTRA["power"](10), 0.0, 1.0)
    known.g = 0.0 * known.g
    found = descend(space_of(known), question(known, 50, tol))
    assert (found.n_iter, found.reason) == ((50, "max_iter") if tol is None else (0, "converged"))
    assert not found.displacement().any()


def test_a_threshold_that_the_start_meets():
    known = Known(SPECTRA["power"](10), 0.0, 1.0)
    found = descend(space_of(known), question(known, 50, 1.5))
    assert (found.n_iter, found.reason) == (0, "converged")
    assert not found.displacement().any()


def test_dimensions_grow_by_a_quarter():
    known, seen = Known(SPECTRA["uniform"](300), 0.0, 1.0), []
    descend(space_of(known), question(known, 20_000), on_check=lambda m, low, high: seen.append(m))
    assert seen[:6] == [8, 12, 16, 20, 25, 31]


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("max_iter", "tol"), [(500, None), (10**5, 1e-4), (np.inf, None)])
def test_a_penalised_start_with_a_part_in_the_null_space(name, kind, max_iter, tol):
    """One more dimension than A has rows."""
    known = Known(np.append(SPECTRA[name](20), np.zeros(15)), 1e-2, 1.0, 2, wide=True)
    check(known, space_of(known, kind, max_dimension=21), max_iter, tol)


@CI
@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 25),
    outputs=st.integers(1, 3),
    logs=st.lists(st.floats(-4.0, 0.0), min_size=25, max_size=25),
    shift=st.sampled_from([0.0, 1e-4, 0.1]),
    part=st.sampled_from([0.3, 1.0, 1.5, 1.9]),
    max_iter=st.integers(0, 10**5),
    tol=st.sampled_from([None, 1e-2, 1e-5]),
    kind=st.sampled_from(KINDS),
)
def test_any_spectrum(seed, p, outputs, logs, shift, part, max_iter, tol, kind):
    known = Known(10.0 ** np.array(logs[:p]), shift, part, outputs, seed=seed)
    asked = question(known, max_iter, tol)
    found = descend(space_of(known, kind), asked)
    k, reason = known.stop(max_iter, asked.threshold)
    assert found.bracket[0] <= k <= found.bracket[1]
    if found.bracket[0] == found.bracket[1]:  # else it hangs on rounding
        assert (found.n_iter, found.reason) == (k, reason)
        error = relative(found.displacement(), known.displacement(k))
        assert error <= min(found.error + 1e-13, 1e-8)
        assert found.error <= 1e-10 + 1e4 * EPS * (1 + k)
