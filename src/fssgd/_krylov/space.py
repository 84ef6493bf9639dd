"""Krylov spaces of A'A from products alone: Golub-Kahan bidiagonalisation and Lanczos.

m steps from v_1 = g / |g| give an orthonormal basis V of span(g, A'A g, ..., (A'A)^(m-1) g) and a small matrix,

    A V = U R,  A'U = V R' + s_m v_{m+1} e_m'       (Golub-Kahan: R is upper bidiagonal),
    A'A V = V T + t_m v_{m+1} e_m'                  (Lanczos: T = R'R is tridiagonal),

so that ``f(A'A) g ~ |g| V f(T) e_1``. A step costs a product with A and one with A'. Several columns g are taken in
lockstep, each with a space of its own, so that one product serves all.

References
----------
Golub, G. H. and Kahan, W. (1965). Calculating the singular values and pseudo-inverse of a matrix. Journal of the
Society for Industrial and Applied Mathematics, Series B: Numerical Analysis 2(2), 205-224. :doi:`10.1137/0702016`

Simon, H. D. and Zha, H. (2000). Low-rank matrix approximation using the Lanczos bidiagonalization process with
applications. SIAM Journal on Scientific Computing 21(6), 2257-2274. :doi:`10.1137/S1064827597327309`
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fssgd._krylov.quadrature import Bidiagonal, SmallMatrix, Tridiagonal

Array = npt.NDArray[np.float64]
Product = Callable[[Array], npt.ArrayLike]
EPS = float(np.finfo(np.float64).eps)
MEMORY = 1_000_000_000  # bytes
BLOCK = 1 << 24  # bytes of basis vectors allocated together
MAX_PASSES = 4


class KrylovSpace(abc.ABC):
    """Krylov spaces of A'A, one for each column of ``start``.

    Parameters
    ----------
    start : ndarray of shape (n_parameters, n_outputs)
        g; a column of zeros has a space of dimension 0.
    max_dimension : int
        Bound of the rank of A, beyond which there is nothing but rounding.
    memory : int
        Bytes that the bases may take. Beyond them basis vectors are neither kept nor made orthogonal to those before,
        and :meth:`combine` runs the recurrence a second time; eigenvalues then show up several times, and it takes more
        steps to find the small ones.
    """

    def __init__(self, start: Array, *, max_dimension: int, memory: int) -> None:
        start = np.asarray(start, dtype=np.float64)
        unit = np.abs(start).max(axis=0, initial=0.0)  # so that no square leaves the range of float64
        scaled = np.divide(start, unit, out=np.zeros_like(start), where=unit > 0)
        lengths = np.linalg.norm(scaled, axis=0)
        self.norms: Array = unit * lengths
        self.n_parameters = len(start)
        self.dimension = 0
        self.max_dimension = max_dimension
        self._basis = _Basis(start.shape, memory)
        self._vector: Array = np.divide(scaled, lengths, out=scaled, where=lengths > 0)
        self._carried: Array | float = 0.0  # what the recurrence takes off the next product
        self._resume: tuple[Array, Array | float] | None = None  # the recurrence where the basis ends
        self._diagonal: list[Array] = []
        self._beside: list[Array] = []
        self._ended = self.norms == 0

    @property
    def is_exhausted(self) -> bool:
        """Whether every space is invariant: there are no more directions to add."""
        return bool(self._ended.all())

    @property
    def is_orthogonal(self) -> bool:
        """Whether all basis vectors are in memory, and orthogonal to working precision."""
        return self._resume is None

    def extend(self, dimension: int) -> None:
        """Take steps until the spaces are of this dimension, or invariant.

        Parameters
        ----------
        dimension : int
        """
        while self.dimension < dimension and not self.is_exhausted:
            self._step()

    def combine(self, coefficients: Array) -> Array:
        """Return V c for each output.

        Parameters
        ----------
        coefficients : ndarray of shape (dimension, n_outputs)

        Returns
        -------
        ndarray of shape (n_parameters, n_outputs)
        """
        total = self._basis.combine(coefficients)
        if self._resume is None or len(coefficients) <= len(self._basis):
            return total
        vector, carried = self._resume
        for i in range(len(self._basis), len(coefficients)):
            total += coefficients[i] * vector
            if i + 1 < len(coefficients):
                _, rest, previous = self._expand(vector, carried, self._diagonal[i])
                vector, carried = _divided(rest, self._beside[i]), self._beside[i] * previous
        return total

    def vectors(self, output: int) -> Array:
        """Return the basis of one output, of shape (n_parameters, dimension); all of it must be in memory."""
        return self._basis.vectors(output)[:, : len(self._entries(output)[0])]

    @abc.abstractmethod
    def matrix(self, output: int, *, accurate: bool = False) -> SmallMatrix:
        """Return the small matrix of one output, which must not have started from 0.

        Parameters
        ----------
        output : int
        accurate : bool, default=False
            Whether small eigenvalues are to be found as accurately as the space knows them.

        Returns
        -------
        SmallMatrix
            Of the dimension of its space, which is less than :attr:`dimension` if that is invariant.
        """

    @abc.abstractmethod
    def _expand(
        self, vector: Array, carried: Array | float, diagonal: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Apply the recurrence, with the diagonal entries of a first pass if there was one.

        Returns the diagonal entries, the next basis vectors before they are scaled, and what is to be carried over into
        the next step, times the off-diagonal entries.
        """

    def _step(self) -> None:
        if self._resume is None and not self._basis.append(self._vector):
            self._resume = self._vector, self._carried
        diagonal, rest, previous = self._expand(self._vector, self._carried)
        length = self._basis.orthogonalise(rest) if self.is_orthogonal else np.linalg.norm(rest, axis=0)
        scale = np.max([*self._diagonal, diagonal], axis=0)
        self.dimension += 1
        self._ended = self._ended | (diagonal == 0) | (length <= 16 * EPS * scale)
        if self.is_orthogonal and self.dimension >= self.max_dimension:
            self._ended[:] = True
        length = np.where(self._ended, 0.0, length)
        self._vector, self._carried = _divided(rest, length), length * previous
        self._diagonal.append(diagonal)
        self._beside.append(length)

    def _entries(self, output: int) -> tuple[Array, Array]:
        """Diagonal and off-diagonal entries of one output, up to where its space is invariant."""
        diagonal = np.array([entry[output] for entry in self._diagonal])
        beside = np.array([entry[output] for entry in self._beside])
        ends = np.flatnonzero(beside == 0)
        size = int(ends[0]) + 1 if len(ends) else len(beside)
        return diagonal[:size], beside[:size]


class GolubKahan(KrylovSpace):
    """Krylov spaces from products with A and with A': small eigenvalues are known to ``eps sqrt(h L)``.

    Parameters
    ----------
    matvec : callable
        Takes an array of shape (n_parameters, n_outputs) to A times it.
    rmatvec : callable
        Takes an array of shape (n_samples, n_outputs) to A' times it.
    start : ndarray of shape (n_parameters, n_outputs)
    max_dimension : int
    memory : int, default=1_000_000_000
        Bytes.
    """

    def __init__(
        self, matvec: Product, rmatvec: Product, start: Array, *, max_dimension: int, memory: int = MEMORY
    ) -> None:
        super().__init__(start, max_dimension=max_dimension, memory=memory)
        self._matvec, self._rmatvec = matvec, rmatvec

    def matrix(self, output: int, *, accurate: bool = False) -> Bidiagonal:
        """Return R of one output; see :meth:`KrylovSpace.matrix`."""
        return Bidiagonal(*self._entries(output), float(self.norms[output]), accurate)

    def _expand(
        self, vector: Array, carried: Array | float, diagonal: Array | None = None
    ) -> tuple[Array, Array, Array]:
        left = np.asarray(self._matvec(vector), dtype=np.float64) - carried
        if diagonal is None:
            diagonal = np.linalg.norm(left, axis=0)
            scale = np.max([*self._diagonal, diagonal], axis=0)
            diagonal = np.where(diagonal <= 4 * EPS * scale, 0.0, diagonal)
        left = _divided(left, diagonal)
        return diagonal, np.asarray(self._rmatvec(left), dtype=np.float64) - diagonal * vector, left


class Lanczos(KrylovSpace):
    """Krylov spaces from products with A'A alone: small eigenvalues are known to ``eps L``.

    Parameters
    ----------
    gram_matvec : callable
        Takes an array of shape (n_parameters, n_outputs) to A'A times it.
    start : ndarray of shape (n_parameters, n_outputs)
    max_dimension : int
    memory : int, default=1_000_000_000
        Bytes.
    """

    def __init__(self, gram_matvec: Product, start: Array, *, max_dimension: int, memory: int = MEMORY) -> None:
        super().__init__(start, max_dimension=max_dimension, memory=memory)
        self._gram_matvec = gram_matvec

    def matrix(self, output: int, *, accurate: bool = False) -> Tridiagonal:
        """Return T of one output, which knows its eigenvalues to ``eps L`` anyway; see :meth:`KrylovSpace.matrix`."""
        return Tridiagonal(*self._entries(output), float(self.norms[output]))

    def _expand(
        self, vector: Array, carried: Array | float, diagonal: Array | None = None
    ) -> tuple[Array, Array, Array]:
        rest = np.asarray(self._gram_matvec(vector), dtype=np.float64) - carried
        if diagonal is None:
            diagonal = np.einsum("ij,ij->j", rest, vector)
        return diagonal, rest - diagonal * vector, vector


class _Basis:
    """Orthonormal basis vectors of each output, in blocks, as many as there is room for."""

    def __init__(self, shape: tuple[int, ...], memory: int) -> None:
        self._n_parameters, self._n_outputs = shape
        size = 8 * max(self._n_parameters * self._n_outputs, 1)
        self._capacity = memory // size
        self._block = min(max(BLOCK // size, 8), 64)
        self._blocks: list[Array] = []  # each of shape (n_outputs, n_vectors, n_parameters)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, vector: Array) -> bool:
        """Keep a vector of each output, and return whether there was room."""
        if self._count >= self._capacity:
            return False
        place = self._count % self._block
        if place == 0:
            n_vectors = min(self._block, self._capacity - self._count)
            self._blocks.append(np.empty((self._n_outputs, n_vectors, self._n_parameters)))
        self._blocks[-1][:, place] = vector.T
        self._count += 1
        return True

    def _used(self, output: int) -> list[Array]:
        """Return the blocks of one output, each of shape (n_vectors, n_parameters)."""
        left = [self._count - i * self._block for i in range(len(self._blocks))]
        return [block[output, :n] for block, n in zip(self._blocks, left, strict=True)]

    def vectors(self, output: int) -> Array:
        """Return the basis of one output as columns."""
        return np.concatenate([*self._used(output), np.empty((0, self._n_parameters))]).T

    def orthogonalise(self, vectors: Array) -> Array:
        """Make the columns orthogonal to the basis, in place, and return their norms.

        A pass suffices where a column keeps its length. Where it does not, the space is all but exhausted and what is
        left is rounding along the basis: scaled up as it is, it would add Ritz values without bound.
        """
        norms = np.linalg.norm(vectors, axis=0)
        for j in np.flatnonzero(norms).tolist():
            column, blocks = np.ascontiguousarray(vectors[:, j]), self._used(j)
            for _ in range(MAX_PASSES):
                for block in blocks:
                    column -= (block @ column) @ block
                before, norms[j] = norms[j], np.linalg.norm(column)
                if norms[j] >= 0.7 * before:
                    break
            vectors[:, j] = column
        return np.asarray(norms)

    def combine(self, coefficients: Array) -> Array:
        """Add up the basis vectors times their coefficients, as many as there are of either."""
        total = np.zeros((self._n_parameters, self._n_outputs))
        for j in range(self._n_outputs):
            start = 0
            for block in self._used(j):
                part = coefficients[start : start + len(block), j]
                total[:, j] += part @ block[: len(part)]
                start += len(block)
        return total


def _divided(columns: Array, lengths: Array) -> Array:
    """Scale columns to norm 1; those of length 0 are set to 0."""
    return np.divide(columns, lengths, out=np.zeros_like(columns), where=lengths > 0)
