"""Quadrature rules of the small matrix that a Krylov space leaves: Gauss, Gauss-Radau and Gauss-Lobatto.

With g of norm |g|, ``g' f(A'A) g`` is the integral of f over a measure: mass gamma_j^2 at each eigenvalue of A'A, where
gamma_j is the coordinate of g along its eigenvector. m steps from g leave a matrix T with

    g' f(A'A) g ~ |g|^2 e_1' f(T) e_1,

the Gauss rule: its nodes are the eigenvalues of T, its weights the squares of the first components of the eigenvectors
times |g|^2. One more row puts a node at 0 (Gauss-Radau), or nodes at 0 and at a bound of the spectrum (Gauss-Lobatto).
Where the even derivatives of f are positive, Gauss is a lower bound and Gauss-Lobatto an upper one; where also the odd
ones are negative, so is Gauss-Radau.

References
----------
Golub, G. H. and Meurant, G. (2010). Matrices, Moments and Quadrature with Applications. Princeton University Press.
:doi:`10.1515/9781400833887`

Golub, G. H. and Kahan, W. (1965). Calculating the singular values and pseudo-inverse of a matrix. Journal of the
Society for Industrial and Applied Mathematics, Series B: Numerical Analysis 2(2), 205-224. :doi:`10.1137/0702016`
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.linalg

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 4.0 * EPS  # of eigenvalues, relative to the largest


@dataclass(frozen=True, eq=False)
class Measure:
    """A quadrature rule, and the eigenvectors it comes from.

    Parameters
    ----------
    nodes : ndarray of shape (n_nodes,)
        Eigenvalues >= 0; a node may come twice, the weights of both counting.
    components : ndarray of shape (n_nodes,)
        Coordinates of the start along the eigenvectors; their squares are the weights.
    vectors : ndarray of shape (dimension, n_nodes)
        Eigenvectors in the basis of the Krylov space.
    uncertainty : ndarray of shape (n_nodes,)
        Rounding of the nodes.
    is_null : ndarray of shape (n_nodes,) of bool
        Whether the node or its component is 0 within rounding: where A has more columns than rows, the last vectors of
        a space drift into the null space, where a component of 1e-16 over a node of 1e-13 is no small part of a limit.
    """

    nodes: Array
    components: Array
    vectors: Array
    uncertainty: Array
    is_null: npt.NDArray[np.bool_]

    @property
    def weights(self) -> Array:
        """Weights of the nodes, which add up to the square of the norm of the start."""
        return np.asarray(self.components**2)

    def shifted(self, factor: float, shift: float) -> Measure:
        """Return the measure of ``factor A'A + shift I``."""
        is_null = self.is_null & (shift == 0)
        return Measure(factor * self.nodes + shift, self.components, self.vectors, factor * self.uncertainty, is_null)

    def function(self, values: Array) -> Array:
        """Coordinates of f(T) times the start in the basis of the Krylov space, from the values of f at the nodes."""
        return np.asarray(self.vectors @ (values * self.components))

    @classmethod
    def empty(cls) -> Measure:
        """Return the measure of a start that is 0."""
        nothing = np.empty(0)
        return cls(nothing, nothing, np.empty((0, 0)), nothing, nothing.astype(bool))

    @classmethod
    def of(cls, nodes: Array, vectors: Array, rows: slice, norm: float, uncertainty: Array) -> Measure:
        """Return the rule of a matrix with these eigenvectors, of which some rows are basis vectors of the space."""
        is_null = (nodes <= len(nodes) * uncertainty) | (np.abs(vectors[0]) <= 16.0 * EPS)
        return cls(nodes, norm * vectors[0], vectors[rows], uncertainty, is_null)


class SmallMatrix(abc.ABC):
    """What a Krylov space leaves of A'A, and the quadrature rules of its start."""

    norm: float

    @cached_property
    @abc.abstractmethod
    def gauss(self) -> Measure:
        """Gauss rule."""

    @property
    @abc.abstractmethod
    def outward(self) -> float:
        """Entry of T that leads out of the space; 0 if the space is invariant, and every rule is the Gauss rule."""

    @abc.abstractmethod
    def radau(self) -> Measure:
        """Gauss-Radau rule with a node at 0."""

    @abc.abstractmethod
    def lobatto(self, upper: float) -> Measure:
        """Gauss-Lobatto rule with nodes at 0 and at ``upper``, which must be above the spectrum."""

    def largest(self) -> float:
        """Largest eigenvalue that the start has a part in, from above, once the space has found it.

        It is at most the norm of the residual away from the largest node.
        """
        vector, largest = self.gauss.vectors[:, -1], float(self.gauss.nodes[-1])
        return largest + self.outward * float(np.abs(vector[-1]) / np.linalg.norm(vector))

    def _last_pivot(self, distances: Array) -> float:
        """Last pivot of T less a bound of the spectrum, from the distances of the nodes from it.

        A sum of positive terms: elimination would divide by the rounding of pivots wherever a node is at the bound.
        """
        smallest = EPS * float(self.gauss.nodes.max())
        return 1.0 / float(np.sum(self.gauss.vectors[-1] ** 2 / np.maximum(distances, smallest)))


@dataclass(frozen=True, eq=False)
class Tridiagonal(SmallMatrix):
    """T = V'A'A V, as Lanczos leaves it.

    Parameters
    ----------
    diagonal, beside : ndarray of shape (dimension,)
        The last entry of ``beside`` leads out of the space.
    norm : float
        Of the start.
    """

    diagonal: Array
    beside: Array
    norm: float

    @cached_property
    def gauss(self) -> Measure:
        """Gauss rule."""
        return _measure(self.diagonal, self.beside[:-1], self.norm)

    @property
    def outward(self) -> float:
        """Last entry of ``beside``."""
        return float(self.beside[-1])

    def radau(self) -> Measure:
        """Gauss-Radau rule with a node at 0."""
        if self.outward == 0:
            return self.gauss
        last = self.outward**2 / self._last_pivot(self.gauss.nodes)
        return _measure(np.append(self.diagonal, last), self.beside, self.norm, singular=True)

    def lobatto(self, upper: float) -> Measure:
        """Gauss-Lobatto rule with nodes at 0 and at ``upper``, which must be above the spectrum."""
        if self.outward == 0:
            return self.gauss
        above, below = self._last_pivot(self.gauss.nodes), self._last_pivot(upper - self.gauss.nodes)
        square = upper / (1.0 / above + 1.0 / below)
        beside = np.append(self.beside[:-1], np.sqrt(square))
        return _measure(np.append(self.diagonal, square / above), beside, self.norm, singular=True)


@dataclass(frozen=True, eq=False)
class Bidiagonal(SmallMatrix):
    """R with A V = U R, as Golub-Kahan bidiagonalisation leaves it; T is R'R.

    Parameters
    ----------
    diagonal, beside : ndarray of shape (dimension,)
        Diagonal and superdiagonal; the last entry of ``beside`` leads out of the space.
    norm : float
        Of the start.
    accurate : bool, default=False
        Whether nodes h come from singular values of R, known to ``eps sqrt(h L)``, and not from eigenvalues of R'R,
        known to ``eps L``; four times the work.
    """

    diagonal: Array
    beside: Array
    norm: float
    accurate: bool = False

    @cached_property
    def gauss(self) -> Measure:
        """Gauss rule."""
        if self.accurate:
            return _measure_of_singular_values(self.diagonal, self.beside[:-1], self.norm)
        diagonal = self.diagonal**2
        diagonal[1:] += self.beside[:-1] ** 2
        return _measure(diagonal, (self.diagonal * self.beside)[:-1], self.norm)

    @property
    def outward(self) -> float:
        """Last off-diagonal entry of R'R."""
        return float(self.diagonal[-1] * self.beside[-1])

    def radau(self) -> Measure:
        """Gauss-Radau rule with a node at 0: R with one more column, so that R'R is singular."""
        return self.gauss if self.outward == 0 else self._widened(self.beside)

    def lobatto(self, upper: float) -> Measure:
        """Gauss-Lobatto rule with nodes at 0 and at ``upper``, which must be above the spectrum.

        R has one more column, as for a node at 0, of the length that takes the largest eigenvalue of R'R to ``upper``.
        """
        if self.outward == 0:
            return self.gauss
        below = self._last_pivot(upper - self.gauss.nodes)
        length = np.sqrt(upper * below / (below + self.diagonal[-1] ** 2))
        return self._widened(np.append(self.beside[:-1], length))

    def _widened(self, beside: Array) -> Measure:
        """Rule of a matrix with one column more than rows."""
        if self.accurate:
            return _measure_of_singular_values(self.diagonal, beside, self.norm)
        diagonal = np.append(self.diagonal**2, 0.0)
        diagonal[1:] += beside**2
        return _measure(diagonal, self.diagonal * beside, self.norm, singular=True)


def _measure(diagonal: Array, beside: Array, norm: float, *, singular: bool = False) -> Measure:
    """Rule of a positive semidefinite tridiagonal matrix."""
    nodes, vectors = eigh_tridiagonal(diagonal, beside)
    nodes = np.maximum(nodes, 0.0)
    if singular:
        nodes[0] = 0.0
    return Measure.of(nodes, vectors, slice(None), norm, np.full(len(nodes), ROUNDING * nodes[-1]))


def _measure_of_singular_values(diagonal: Array, beside: Array, norm: float) -> Measure:
    """Rule of R'R from the matrix with zero diagonal whose eigenvalues are plus and minus the singular values of R.

    Both signs are kept: where a singular value is 0 within rounding, the eigenvectors of the pair are mixed, and only
    the sum over both is right.
    """
    between = np.empty(len(diagonal) + len(beside))
    between[0::2], between[1::2] = diagonal, beside
    values, vectors = eigh_tridiagonal(np.zeros(len(between) + 1), between)
    if len(beside) == len(diagonal):  # one column more than rows: the singular value in the middle is 0
        values[len(diagonal)] = 0.0
    rounding = ROUNDING * values[-1]
    return Measure.of(values**2, vectors, slice(0, None, 2), norm, rounding * (2.0 * np.abs(values) + rounding))


def eigh_tridiagonal(diagonal: Array, beside: Array) -> tuple[Array, Array]:
    """Eigenvalues in increasing order and eigenvectors of a symmetric tridiagonal matrix.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
    beside : ndarray of shape (n - 1,)

    Returns
    -------
    eigenvalues : ndarray of shape (n,)
    eigenvectors : ndarray of shape (n, n)
    """
    if len(diagonal) == 1:
        return diagonal.copy(), np.ones((1, 1))
    # "stemr", SciPy's choice, fails on zero diagonals with clustered eigenvalues; older SciPy does not know "stevd"
    for driver in ("stevd", "stev"):
        try:
            values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside, lapack_driver=driver)
        except (ValueError, np.linalg.LinAlgError):
            continue
        return values, vectors
    return scipy.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))  # type: ignore[no-any-return]
