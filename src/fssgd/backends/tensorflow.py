"""Gradient descent in TensorFlow, both ways: the loop in the graph, and one Session.run a step.

Each ``Session.run`` costs a fixed overhead - some 0.1 to 0.5 ms, whatever it computes - so that 100 000 small steps
spend their time outside of the arithmetic. A ``tf.while_loop`` pays it once a chunk.
"""

from __future__ import annotations

import functools
import importlib.util
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from fssgd.backends._base import Backend
from fssgd.backends._host_loop import descend
from fssgd.backends._problem import Array, Monitor, Problem, Solution, Status
from fssgd.backends._tensorflow_step import StepTensors, loss_and_gradient, sparse_parts

MAX_STEPS_PER_CALL = 32_768  # the losses of a call have to be of a size that XLA compiles in
MAX_WORK_PER_CALL = 1 << 28  # multiplications, before Python hears a callback or Ctrl-C again
TRIAL_STEPS = 256  # plain steps before it is clear that the run is a long one
STEP_OVERHEAD, COMPILATION_COST = 1e5, 1e9  # of a plain step, and of a compilation, in multiplications
MAX_COMPILATIONS = 16  # kept at a time, of 2 to 3 MB each (measured)

_RUNNING, _CONVERGED, _DIVERGED = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class TensorFlowBackend(Backend):
    """What both have in common."""

    device: str | None = None

    @classmethod
    def is_available(cls) -> bool:
        """Return whether TensorFlow is installed, without importing it."""
        return importlib.util.find_spec("tensorflow") is not None


@dataclass(frozen=True, kw_only=True)
class TensorFlowGraph(TensorFlowBackend):
    """The whole descent in an in-graph ``tf.while_loop``, tests for convergence and divergence included.

    Parameters
    ----------
    device : str, default=None
        Such as ``"/GPU:0"``; None leaves the choice to TensorFlow, which takes a GPU if there is one.
    jit_compile : bool, default=None
        Compile the loop with XLA, which takes a moment once per dtype and size. None does where it pays: for long
        runs, and sizes compiled before. Sparse data always runs plain.

    Notes
    -----
    Rows are padded with zeros to the next of eight sizes an octave before compiling, so that folds that differ by a few
    rows share a compilation. The 16 compilations used last are kept, of 2 to 3 MB each.
    """

    name: ClassVar[str] = "tf-graph"
    jit_compile: bool | None = None

    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Run the loop in pieces, short enough that a callback or Ctrl-C is heard; see :meth:`Backend.solve`."""
        tf = _import_tensorflow()
        with tf.device(self.device) if self.device else nullcontext():
            return _Run(tf, problem, self.jit_compile, self.device).descend(monitor)


@dataclass(frozen=True, kw_only=True)
class TensorFlowSession(TensorFlowBackend):
    """One ``tf.compat.v1.Session.run`` a step, the data fed each time: slow, and here to show why.

    Parameters
    ----------
    device : str, default=None
        Such as ``"/GPU:0"``; None leaves the choice to TensorFlow.
    """

    name: ClassVar[str] = "tf-session"

    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Step from Python, with loss and gradient from the graph; see :meth:`Backend.solve`."""
        arrays = StepTensors.of(problem)
        kind = _kind(arrays)
        session, inputs, theta_input, outputs = _session(problem.dtype.name, kind, self.device)
        matrix = sparse_parts(arrays.matrix) if kind == "sparse" else arrays.matrix
        feed = dict(zip(inputs, arrays._replace(matrix=matrix), strict=True))

        def evaluate(theta: Array) -> tuple[Any, Array]:
            loss, gradient = session.run(outputs, {**feed, theta_input: theta})
            return loss, gradient

        return descend(problem, monitor, evaluate, problem.start.astype(problem.dtype))


class Checks(NamedTuple):
    """What a loop has to look at each step; each of them costs as much as a small product."""

    penalty: bool
    tolerance: bool
    rise: bool


class _Run:
    """One descent: its tensors, and which of the two loops takes the next piece."""

    def __init__(self, tf: Any, problem: Problem, jit_compile: bool | None, device: str | None) -> None:
        self.tf, self.device, self.jit_compile = tf, device, jit_compile
        self.problem, self.arrays, self.dtype = problem, StepTensors.of(problem), problem.dtype
        self.is_sparse = sp.issparse(self.arrays.matrix)
        self.kind = _kind(self.arrays)
        self.checks = Checks(bool(problem.alpha), problem.threshold is not None, not problem.is_stable)
        self.rows_axis = 0 if self.kind == "blocks" else 1
        self.work = max(1, problem.start.shape[1] * self.arrays.matrix.size)
        self.inputs: dict[bool, StepTensors] = {}

    def descend(self, monitor: Monitor) -> Solution:
        """Take pieces until one of the reasons to stop holds."""
        longest = min(MAX_STEPS_PER_CALL, max(1, MAX_WORK_PER_CALL // self.work))
        theta = self.problem.start.astype(self.dtype)
        lowest, k, stopped = float(np.finfo(self.dtype).max), 0, False  # 0 times inf would be NaN
        curve: list[Any] = []
        for end in [*self.problem.chunk_ends()] or [0]:
            code = _RUNNING
            # at least one call, which evaluates the losses at the start where max_iter is 0
            while code == _RUNNING and (k < end or not curve):
                steps = min(longest if self.is_compiled(k) else TRIAL_STEPS, longest, end - k)
                taken, theta, lowest, code, norm, loss, losses = self.take(theta, lowest, k, steps)
                k += taken
                curve.append(losses)
            if code != _RUNNING or (stopped := end > 0 and monitor(k, theta)):
                break
        status = {_CONVERGED: Status.CONVERGED, _DIVERGED: Status.DIVERGED}.get(code, Status.MAX_ITER)
        every = np.concatenate([*curve, [loss]]).astype(np.float64)
        return Solution(theta, k, Status.STOPPED if stopped else status, loss, norm, every)

    def is_compiled(self, k: int) -> bool:
        """Decide whether XLA takes the piece that begins at step k."""
        if self.is_sparse or self.jit_compile is not None:
            return bool(self.jit_compile) and not self.is_sparse
        # a fit that tol ends after ten steps must not pay a second of compilation, and one of 1e5 steps should
        left = self.problem.max_iter - k
        is_long = k >= TRIAL_STEPS or self.problem.threshold is None
        return self.shape in _compiled or (is_long and left * (STEP_OVERHEAD + self.work) > COMPILATION_COST)

    @property
    def shape(self) -> tuple[Any, ...]:
        """What a compilation is for."""
        *others, n_samples = np.moveaxis(self.arrays.matrix, self.rows_axis, -1).shape
        return self.dtype.name, self.device, self.checks, *others, _padded(n_samples), self.arrays.targets.shape[-1]

    def take(self, theta: Array, lowest: float, k: int, steps: int) -> tuple[Any, ...]:
        """Take up to so many steps from iterate k, and look at the iterate they lead to."""
        compiled, problem = self.is_compiled(k), self.problem
        settings = self.dtype.name, self.kind, self.device, self.checks
        loop = _compiled_loop(self.shape, *settings) if compiled else _plain_loop(*settings)
        if compiled not in self.inputs:
            self.inputs[compiled] = self.padded() if compiled else self.as_tensors()
        threshold = -1.0 if problem.threshold is None else problem.threshold
        root = np.sqrt(problem.curvature / 2.0)
        numbers = problem.learning_rate, threshold, problem.target_size, root, lowest
        results = loop(*self.inputs[compiled], theta, np.array(numbers, self.dtype), np.int32(steps))
        taken, ahead, least, code, norm, loss, losses = (np.asarray(result) for result in results)
        return int(taken), ahead, float(least), int(code), float(norm), float(loss), losses[: int(taken)]

    def as_tensors(self) -> StepTensors:
        """Move the arrays to TensorFlow."""
        matrix, *others = self.arrays
        convert = self.tf.convert_to_tensor
        design = self.tf.SparseTensor(*sparse_parts(matrix)) if self.is_sparse else convert(matrix)
        return StepTensors(design, *map(convert, others))

    def padded(self) -> StepTensors:
        """Add rows of zeros up to a size shared by others."""
        matrix, targets, *others = self.arrays
        n_samples = matrix.shape[self.rows_axis]
        more = [(0, _padded(n_samples) - n_samples)]
        matrix = np.pad(matrix, [(0, 0)] * self.rows_axis + more + [(0, 0)] * (matrix.ndim - 1 - self.rows_axis))
        return StepTensors(matrix, np.pad(targets, more + [(0, 0)] * (targets.ndim - 1)), *others)


_compiled: dict[tuple[Any, ...], Any] = {}  # the loops for each shape, that used last at the end


def _compiled_loop(shape: tuple[Any, ...], dtype: str, kind: str, device: str | None, checks: Checks) -> Any:
    """Return the loop that XLA compiles for this shape, in a session of its own.

    What XLA compiles for a function that is called eagerly stays until the process ends, also if the function does
    not (measured); what it compiles in a session goes with that.
    """
    loop = _compiled.pop(shape, None)
    if loop is None:
        graph, inputs, outputs = _graph_of_loop(dtype, kind, device, checks)
        loop = _new_session(graph).make_callable(outputs, inputs)
        while len(_compiled) >= MAX_COMPILATIONS:
            _compiled.pop(next(iter(_compiled)), None)
    _compiled[shape] = loop
    return loop


@functools.cache
def _graph_of_loop(dtype: str, kind: str, device: str | None, checks: Checks) -> tuple[Any, Any, Any]:
    """Return a graph with the loop to be compiled, its inputs and outputs; sessions of any shape share it."""
    tf = _import_tensorflow()
    graph = tf.Graph()
    with graph.as_default(), graph.device(device):
        inputs = [tf.compat.v1.placeholder(spec.dtype, spec.shape) for spec in _signature(dtype, kind)]
        return graph, inputs, _loop(dtype, kind, checks, jit_compile=True)(*inputs)


@functools.cache
def _plain_loop(dtype: str, kind: str, device: str | None, checks: Checks) -> Any:
    """Return the loop as TensorFlow runs it, for any shape."""
    return _loop(dtype, kind, checks, jit_compile=False)


def _signature(dtype: str, kind: str) -> list[Any]:
    tf = _import_tensorflow()
    spec = functools.partial(tf.TensorSpec, dtype=dtype)
    rows = [None] * (3 if kind == "blocks" else 2)
    design = tf.SparseTensorSpec(rows, dtype) if kind == "sparse" else spec(rows)
    column = spec([None, 1])
    return [design, spec(rows), column, column, spec([None, None]), spec([5]), tf.TensorSpec([], tf.int32)]


def _loop(dtype: str, kind: str, checks: Checks, jit_compile: bool) -> Any:
    """Return the loop as a function of TensorFlow."""
    tf = _import_tensorflow()
    eps = float(np.finfo(dtype).eps)

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=_signature(dtype, kind), jit_compile=jit_compile, autograph=False
    )
    def loop(
        matrix: Any, targets: Any, offset: Any, penalty: Any, theta: Any, numbers: Any, steps: Any
    ) -> tuple[Any, ...]:
        rate, threshold, target_size, root, lowest = tf.unstack(numbers)
        arrays = StepTensors(matrix, targets, offset, penalty)

        def runs(code: Any) -> Any:
            return tf.equal(code, _RUNNING)  # in a graph, == would compare the objects

        def norm_of(gradient: Any) -> Any:
            return tf.sqrt(tf.reduce_sum(gradient * gradient))

        def look(theta: Any, lowest: Any) -> tuple[Any, ...]:
            """Evaluate F and its gradient, and such reasons to stop as there can be."""
            loss, gradient = loss_and_gradient(tf, arrays, theta, checks.penalty)
            code = tf.constant(_RUNNING)
            if checks.rise:  # an unstable step only, as a stable one cannot rise; see Problem.highest_loss
                d = 8.0 * eps * (target_size + root * tf.sqrt(tf.reduce_sum(theta * theta)))
                code = tf.where(loss <= lowest + 4.0 * d * tf.sqrt(lowest) + d * d, _RUNNING, _DIVERGED)
                lowest = tf.minimum(lowest, loss)
            if checks.tolerance:
                code = tf.where(norm_of(gradient) <= threshold, _CONVERGED, code)
            return lowest, code, gradient, loss

        def body(k: Any, theta: Any, lowest: Any, code: Any, losses: Any) -> tuple[Any, ...]:
            # the gradient stays out of the state: XLA would copy it each step
            lowest, code, gradient, loss = look(theta, lowest)
            ahead = theta - rate * gradient
            if checks.rise or checks.tolerance:
                ahead = tf.where(runs(code), ahead, theta)
            return k + 1, ahead, lowest, code, losses.write(k, loss)

        state = 0, theta, lowest, tf.constant(_RUNNING), tf.TensorArray(dtype, MAX_STEPS_PER_CALL)
        scalar = tf.TensorShape([])
        k, theta, lowest, code, losses = tf.while_loop(
            lambda k, theta, lowest, code, losses: (k < steps) & runs(code),
            body,
            state,
            (scalar, tf.TensorShape([None, None]), scalar, scalar, tf.TensorShape(None)),
        )
        taken = k - tf.cast(~runs(code), tf.int32)
        lowest, last, gradient, loss = look(theta, lowest)
        code = tf.where(runs(code), last, code)
        return taken, theta, lowest, code, norm_of(gradient), loss, losses.stack()

    return loop


@functools.cache
def _session(dtype: str, kind: str, device: str | None) -> tuple[Any, StepTensors, Any, Any]:
    """Return a session over a graph of its own, its inputs, and loss and gradient."""
    tf = _import_tensorflow()
    v1, graph = tf.compat.v1, tf.Graph()
    with graph.as_default(), graph.device(device):
        rows = [None] * (3 if kind == "blocks" else 2)
        matrix = (v1.sparse_placeholder if kind == "sparse" else v1.placeholder)(dtype, rows)
        targets, theta = v1.placeholder(dtype, rows), v1.placeholder(dtype, [None, None])
        inputs = StepTensors(matrix, targets, v1.placeholder(dtype, [None, 1]), v1.placeholder(dtype, [None, 1]))
        outputs = loss_and_gradient(tf, inputs, theta)
    return _new_session(graph), inputs, theta, outputs


def _new_session(graph: Any) -> Any:
    # memory as it is needed: the default takes all of a GPU for a session of ten numbers
    v1 = _import_tensorflow().compat.v1
    return v1.Session(graph=graph, config=v1.ConfigProto(gpu_options=v1.GPUOptions(allow_growth=True)))


@functools.cache
def _import_tensorflow() -> Any:
    try:
        import tensorflow as tf
    except ImportError as error:
        raise ImportError(f"TensorFlow could not be imported ({error}): pip install 'fssgd[tensorflow]'.") from error
    # TensorFlow would take all memory of every GPU, from PyTorch or JAX in the same notebook too
    for gpu in tf.config.list_physical_devices("GPU"):
        try:
            tf.config.experimental.set_memory_growth(gpu, True)
        except (RuntimeError, ValueError):  # already in use: its owner's settings stand
            break
    return tf


def _kind(arrays: StepTensors) -> str:
    """Return which of its layouts the design has."""
    return "sparse" if sp.issparse(arrays.matrix) else "blocks" if arrays.matrix.ndim == 3 else "matrix"


def _padded(n_samples: int) -> int:
    """Round up to one of eight sizes an octave."""
    # one size for each number of rows would compile anew for every fold of a cross-validation
    step = 1 << max(0, n_samples.bit_length() - 4)
    return -(-n_samples // step) * step
