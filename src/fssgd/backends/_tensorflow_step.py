"""The gradient step in TensorFlow, written once for eager tensors, traced functions and v1 graphs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fssgd.backends._problem import Problem

BLOCK_ROWS = 4096


class StepTensors(NamedTuple):
    """The numbers of a problem as a step takes them.

    Parameters
    ----------
    matrix : ndarray of shape (n_parameters, n_samples), or CSR of shape (n_samples, n_parameters)
        The design, transposed if dense so that rows of the product lie together. Long float32 data comes in blocks,
        of shape (n_blocks, n_parameters, n_rows), because a sum of many float32 in one go loses digits.
    targets : ndarray of shape (n_samples, n_outputs) or (n_blocks, n_rows, n_outputs)
    offset : ndarray of shape (n_parameters, 1)
        What a sparse design still has to be centred by; zeros for a dense one.
    penalty : ndarray of shape (n_parameters, 1)
        alpha for the weights, 0 for the intercept.
    """

    matrix: Any
    targets: Any
    offset: Any
    penalty: Any

    @classmethod
    def of(cls, problem: Problem) -> StepTensors:
        """Lay out the rows of the problem."""
        data, dtype, n_parameters = problem.rows_in_memory(), problem.dtype, len(problem.start)
        offset, penalty = np.zeros((n_parameters, 1), dtype), problem.penalties
        if data.offset is not None:
            offset[:-1, 0] = data.offset
        if sp.issparse(data.matrix):
            return cls(data.matrix, data.targets, offset, penalty)
        matrix, targets = data.matrix.T, data.targets
        if dtype == np.float32 and len(targets) > BLOCK_ROWS:
            missing = -len(targets) % BLOCK_ROWS
            matrix, targets = np.pad(matrix, ((0, 0), (0, missing))), np.pad(targets, ((0, missing), (0, 0)))
            matrix = np.ascontiguousarray(matrix.reshape(n_parameters, -1, BLOCK_ROWS).transpose(1, 0, 2))
            targets = targets.reshape(len(matrix), BLOCK_ROWS, -1)
        return cls(matrix, targets, offset, penalty)


def loss_and_gradient(tf: Any, arrays: StepTensors, theta: Any, penalised: bool = True) -> tuple[Any, Any]:
    """Return F and grad F at theta, of shape (n_parameters, n_outputs), for arrays given as tensors."""
    matrix, targets, offset, penalty = arrays
    if isinstance(matrix, tf.SparseTensor):
        shifted = tf.concat([theta[:-1], theta[-1:] - tf.reduce_sum(offset * theta, axis=0, keepdims=True)], axis=0)
        residual = tf.sparse.sparse_dense_matmul(matrix, shifted) - targets
        product = tf.sparse.sparse_dense_matmul(matrix, residual, adjoint_a=True)
        product -= offset * product[-1:]
    else:
        residual = tf.matmul(matrix, theta, transpose_a=True) - targets
        product = tf.matmul(matrix, residual)
    if len(residual.shape) == 3:  # float32 in blocks: partial sums of 4096 rows, then a sum of these
        product, squares = tf.reduce_sum(product, axis=0), tf.reduce_sum(tf.reduce_sum(residual * residual, axis=1))
    else:
        column = tf.reshape(residual, [-1, 1])
        squares = tf.matmul(column, column, transpose_a=True)[0, 0]  # XLA vectorises a product, and not a sum
    if not penalised:
        return squares, 2.0 * product
    pull = penalty * theta
    return squares + tf.reduce_sum(theta * pull), 2.0 * (product + pull)


def sparse_parts(matrix: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Indices, values and shape of a CSR matrix as TensorFlow wants them, in row order."""
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return np.stack([rows, matrix.indices.astype(np.int64)], axis=1), matrix.data, matrix.shape
