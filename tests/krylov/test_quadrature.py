"""Quadrature rules of small matrices against the integrals they stand for."""

import numpy as np
import pytest
import scipy.linalg

from fssgd._krylov import quadrature
from fssgd._krylov.quadrature import Measure
from fssgd._krylov.space import GolubKahan, Lanczos
from spectra import SPECTRA, Known


def matrices(name, m, p=40, accurate=False):
    known = Known(SPECTRA[name](p), 0.0, 1.0)
    spaces = (
        GolubKahan(known.matvec, known.rmatvec, known.g, max_dimension=p),
        Lanczos(known.gram_matvec, known.g, max_dimension=p),
    )
    for space in spaces:
        space.extend(m)
    return known, [space.matrix(0, accurate=accurate) for space in spaces]


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("m", [1, 2, 6])
def test_rules_are_exact_for_polynomials(name, m, accurate):
    """Of degree 2 m - 1 by Gauss and Gauss-Lobatto, and 2 m by Gauss-Radau."""
    known, both = matrices(name, m, accurate=accurate)
    squares = known.gamma[:, 0] ** 2
    for matrix in both:
        rules = [(2 * m - 1, matrix.gauss), (2 * m, matrix.radau()), (2 * m - 1, matrix.lobatto(1.3))]
        for degree, rule in rules:
            for power in range(degree + 1):
                right = squares @ (known.s**2) ** power
                assert rule.weights @ rule.nodes**power == pytest.approx(right, rel=1e-11)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("m", [3, 10])
def test_nodes_are_where_they_are_asked_for(name, m, accurate):
    _, both = matrices(name, m, accurate=accurate)
    for matrix in both:
        if matrix.outward == 0:
            assert matrix.radau() is matrix.gauss is matrix.lobatto(2.0)
            continue
        radau, lobatto = matrix.radau(), matrix.lobatto(1.3)
        assert radau.nodes.min() == lobatto.nodes.min() == 0.0
        assert radau.nodes.max() <= 1.0 + 1e-12
        assert lobatto.nodes.max() == pytest.approx(1.3, rel=1e-12)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("m", [2, 8, 14])
@pytest.mark.parametrize("k", [1, 30, 1000])
def test_rules_bracket_what_gradient_descent_needs(name, m, k, accurate):
    known, both = matrices(name, m, accurate=accurate)
    squares = known.gamma[:, 0] ** 2
    for matrix in both:
        for eta, upper in ((1.0, matrix.radau()), (1.7, matrix.lobatto(1.1))):
            lower = matrix.gauss
            right = squares @ (1.0 - eta * known.s**2) ** (2 * k)
            slack = 1e-11 * right + 1e-15 * squares.sum()
            assert lower.weights @ (1.0 - eta * lower.nodes) ** (2 * k) <= right + slack
            assert upper.weights @ (1.0 - eta * upper.nodes) ** (2 * k) >= right - slack


def test_singular_values_keep_the_digits_of_small_nodes():
    known, (matrix, _) = matrices("geometric, cond 1e12", 40, accurate=True)
    nodes = np.sort(matrix.gauss.nodes)
    right = np.sort(np.repeat(known.s**2, 2))
    np.testing.assert_allclose(nodes, right, rtol=1e-8)


def test_functions_of_the_matrix_come_from_nodes_and_vectors():
    known, both = matrices("power", 12)
    for matrix in both:
        gauss = matrix.gauss
        T = gauss.vectors * gauss.nodes @ gauss.vectors.T
        right = scipy.linalg.expm(T)[:, 0] * matrix.norm
        np.testing.assert_allclose(gauss.function(np.exp(gauss.nodes)), right, atol=1e-14)
    assert matrix.norm == pytest.approx(known.size)


def test_a_shift_moves_the_nodes_and_leaves_no_null_space():
    _, (matrix, _) = matrices("null space", 30, accurate=True)
    radau = matrix.radau()
    shifted = radau.shifted(2.0, 1e-3)
    np.testing.assert_array_equal(shifted.nodes, 2.0 * radau.nodes + 1e-3)
    assert not shifted.is_null.any()
    np.testing.assert_array_equal(shifted.weights, radau.weights)


@pytest.mark.parametrize("name", SPECTRA)
def test_the_largest_eigenvalue_is_found(name):
    known, both = matrices(name, 30)
    for matrix in both:
        assert matrix.largest() == pytest.approx(known.s.max() ** 2, rel=1e-6)


def test_a_start_of_zeros_has_no_nodes():
    empty = Measure.empty()
    assert empty.weights.sum() == 0.0
    assert empty.function(np.empty(0)).shape == (0,)


@pytest.mark.parametrize("failing", [(), ("stevd",), ("stevd", "stev")])
def test_one_driver_or_another_decomposes(monkeypatch, failing):
    """SciPy 1.12 knows no "stevd" and says so by a ValueError."""
    original = scipy.linalg.eigh_tridiagonal

    def eigh_tridiagonal(diagonal, beside, lapack_driver):
        if lapack_driver in failing:
            raise ValueError(lapack_driver)
        return original(diagonal, beside, lapack_driver=lapack_driver)

    monkeypatch.setattr(scipy.linalg, "eigh_tridiagonal", eigh_tridiagonal)
    diagonal, beside = np.zeros(9), np.repeat([1.0, 1e-9], 4)
    values, vectors = quadrature.eigh_tridiagonal(diagonal, beside)
    dense = np.diag(beside, 1) + np.diag(beside, -1)
    np.testing.assert_allclose(vectors * values @ vectors.T, dense, atol=1e-14)
    assert (np.diff(values) >= 0).all()
