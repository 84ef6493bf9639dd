"""Axes, colours, the path to draw from and the axis of steps: what the displays share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from fssgd._path.gradient_path import GradientPath
from fssgd._support.words import column_names

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

# Okabe and Ito's, but for the yellow: distinct under every kind of colour blindness, and on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LOSS_LABEL = "mean squared error (squared units of y)"
PENALISED_LABEL = "mean squared error + penalty (squared units of y)"
MAX_STEPS = 10**15
SETTLED_TOL = 1e-8  # tolerance at which a descent without a last step counts as settled
N_POINTS = 400


def axes_for(caller: str, ax: Any) -> Any:
    """Return ``ax``, or axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib ({error}): pip install 'fssgd[cli]'.") from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    return ax


def path_of(caller: str, estimator: Any) -> GradientPath:
    """Return the closed form of a fitted estimator."""
    check_is_fitted(estimator)
    path = getattr(estimator, "path_", None)
    if not isinstance(path, GradientPath):
        raise ValueError(
            f"{caller} draws from every iterate of a descent, and this {type(estimator).__name__} keeps none: fit it "
            "with backend='spectral', or call from_path with GradientPath.from_arrays(X, y)."
        )
    return path


def stop_of(estimator: Any, max_iter: Any) -> Any:
    """Return ``max_iter``, or by default the step a fit stopped at, but at least 1."""
    return max_iter if max_iter is not None else (estimator.n_iter_ or 1)


def last_step(path: GradientPath, max_iter: Any) -> int:
    """Check the last step to draw; None or inf is where the descent has settled."""
    if max_iter is None or max_iter == np.inf:
        max_iter = path.steps_to(SETTLED_TOL)
        if max_iter == np.inf:
            raise ValueError("This descent does not settle: pass the last step to draw as max_iter.")
        max_iter = max(1, max_iter)
    if isinstance(max_iter, bool) or not (isinstance(max_iter, int | np.integer) and 1 <= max_iter <= MAX_STEPS):
        raise ValueError(
            f"max_iter must be an integer from 1 to {MAX_STEPS:.0e}, the last step drawn; got {max_iter!r}."
        )
    return int(max_iter)


def spread_steps(last: int) -> Steps:
    """Return 0, 1, ..., last, thinned to even distances on a logarithmic axis; powers of ten are kept."""
    if last <= N_POINTS:
        return np.arange(last + 1)
    spread = np.geomspace(1, last, N_POINTS).round().astype(np.int64)
    spread[-1] = last
    powers = [10**i for i in range(len(str(last)))]
    return np.unique(np.concatenate([[0], powers, spread]))


def require_single_output(caller: str, path: GradientPath) -> None:
    """Raise a ValueError for a path of several outputs."""
    if path.moments.n_outputs != 1:
        raise ValueError(
            f"{caller} draws one output, and this descent has {path.moments.n_outputs}: fit y one column at a time."
        )


def feature_names(path: GradientPath) -> list[str]:
    """Names of the columns, or x0, x1, ..."""
    return column_names(path.moments.feature_names, path.moments.n_features)


def set_step_axis(ax: Any) -> None:
    """Number the steps along x, logarithmically from 1 on, with 0 in its place."""
    ax.set_xscale("symlog", linthresh=1.0, linscale=0.5)
    ax.set_xlim(left=0.0)
    ax.set_xlabel("step k (count)")
