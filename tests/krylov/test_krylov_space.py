"""Bases and small matrices of Krylov spaces against dense matrices."""

import numpy as np
import pytest

from fssgd._krylov.space import GolubKahan, Lanczos
from spectra import SPECTRA, Known

EPS = float(np.finfo(np.float64).eps)


def spaces(known, **settings):
    settings = {"max_dimension": min(known.A.shape)} | settings
    return (
        GolubKahan(known.matvec, known.rmatvec, known.g, **settings),
        Lanczos(known.gram_matvec, known.g, **settings),
    )


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", [0, 1])
def test_basis_is_orthonormal_and_projects_the_gram_matrix(name, outputs, kind):
    known = Known(SPECTRA[name](40), 0.0, 1.0, outputs)
    space = spaces(known)[kind]
    space.extend(25)
    gram = known.gram_matvec(np.eye(40))
    for j in range(outputs):
        if outputs > 1 and j == 1:
            assert space.norms[j] == 0
            continue
        V, matrix = space.vectors(j), space.matrix(j)
        m = V.shape[1]
        np.testing.assert_allclose(V.T @ V, np.eye(m), atol=50 * EPS)
        np.testing.assert_allclose(V[:, 0] * space.norms[j], known.g[:, j], atol=4 * EPS * space.norms[j])
        if kind == 0:
            R = np.diag(matrix.diagonal) + np.diag(matrix.beside[:-1], 1)
            T = R.T @ R
        else:
            T = np.diag(matrix.diagonal) + np.diag(matrix.beside[:-1], 1) + np.diag(matrix.beside[:-1], -1)
        np.testing.assert_allclose(V.T @ gram @ V, T, atol=50 * EPS)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_space_ends_where_the_start_has_no_more_parts(kind):
    known = Known(np.ones(24), 0.0, 1.0)
    space = spaces(known)[kind]
    space.extend(20)
    assert space.dimension == 1
    assert space.is_exhausted
    assert space.matrix(0).outward == 0
    assert space.matrix(0).gauss.nodes == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [0, 1])
def test_outputs_end_one_by_one(kind):
    known = Known(SPECTRA["geometric, cond 1e4"](20), 0.0, 1.0, 2)
    known.g[:, 1] = known.V[:, :2] @ [1.0, 2.0]
    space = spaces(known)[kind]
    space.extend(10)
    assert not space.is_exhausted
    assert [len(space.matrix(j).beside) for j in range(2)] == [10, 2]
    coefficients = np.zeros((10, 2))
    coefficients[1] = 1.0
    np.testing.assert_allclose(space.combine(coefficients)[:, 1], space.vectors(1)[:, 1], rtol=1e-15)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("wide", [False, True])
def test_a_space_is_never_larger_than_the_rank_allows(kind, wide):
    """Past it there is rounding, which lies in the basis and would add Ritz values without bound."""
    known = Known(np.append(SPECTRA["geometric, cond 1e8"](30), np.zeros(20 * wide)), 0.0, 1.0, wide=wide)
    space = spaces(known)[kind]
    space.extend(200)
    assert space.dimension <= 30
    assert space.is_exhausted
    nodes = space.matrix(0, accurate=True).gauss.nodes
    assert nodes.max() == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("vectors", [0, 1, 9])
def test_a_basis_that_has_no_room_is_run_through_again(kind, vectors):
    """Until orthogonality is lost, both give the same combination."""
    known = Known(SPECTRA["uniform"](50), 0.0, 1.0, 3)
    whole, small = spaces(known)[kind], spaces(known, memory=vectors * 8 * 50 * 3)[kind]
    whole.extend(16)
    small.extend(16)
    assert whole.is_orthogonal
    assert not small.is_orthogonal
    coefficients = np.random.default_rng(0).normal(size=(16, 3))
    coefficients[:, 1] = 0.0
    np.testing.assert_allclose(small.combine(coefficients), whole.combine(coefficients), atol=1e-11)
    few = coefficients[:5]
    np.testing.assert_allclose(small.combine(few), whole.combine(few), atol=1e-12)


def test_products_are_taken_in_lockstep():
    """One product with all the outputs a step and side, as many as explicit steps take."""
    known, counts = Known(SPECTRA["power"](30), 0.0, 1.0, 3), []

    def matvec(vectors):
        counts.append(vectors.shape)
        return known.matvec(vectors)

    GolubKahan(matvec, known.rmatvec, known.g, max_dimension=30).extend(12)
    assert counts == [(30, 3)] * 12


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_size_of_the_start_does_not_matter(scale):
    known = Known(SPECTRA["power"](30), 0.0, 1.0)
    one, other = (GolubKahan(known.matvec, known.rmatvec, g, max_dimension=30) for g in (known.g, known.g * scale))
    one.extend(8)
    other.extend(8)
    assert other.norms[0] == pytest.approx(one.norms[0] * scale, rel=1e-14)
    np.testing.assert_allclose(other.matrix(0).diagonal, one.matrix(0).diagonal, rtol=1e-10)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_start_of_zeros_has_no_space(kind):
    known = Known(SPECTRA["power"](10), 0.0, 1.0)
    known.g = 0.0 * known.g
    space = spaces(known)[kind]
    space.extend(5)
    assert space.dimension == 0
    assert space.is_exhausted
    np.testing.assert_array_equal(space.combine(np.zeros((0, 1))), np.zeros((10, 1)))
