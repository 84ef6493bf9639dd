"""Functions that several test files use."""

import tracemalloc

import numpy as np


def column(*values):
    """X of one feature."""
    return np.array(values, dtype=float)[:, None]


def fitted_values(fitted):
    """Coefficients, then intercepts, in one row."""
    return np.concatenate([np.ravel(fitted.coef_), np.ravel(fitted.intercept_)])


def peak_memory(function):
    """Most bytes that NumPy held at a time while the function ran."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
