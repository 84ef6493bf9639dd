"""Ways to compute the same iterate, and what somebody else needs to add one.

- ``_problem``: the contract, a Problem in and a Solution out; start reading here.
- ``_base``: the class to derive from. ``_registry``: names of backends. ``_solution_check``: faults of a solution.
- ``_host_loop``: gradient descent as a Python loop, for backends that take one step a call.
- ``numpy``, ``tensorflow`` (with ``_tensorflow_step``): backends that take steps.
- ``spectral``: the closed form, with ``_refinement`` for its limit.
- ``krylov``: the same iterate from products with the rows, where a decomposition is out of reach.
"""

from fssgd.backends._base import Backend
from fssgd.backends._host_loop import Evaluate, descend
from fssgd.backends._problem import Monitor, Problem, Solution, Status
from fssgd.backends._registry import available_backends, get_backend, register_backend

__all__ = [
    "Backend",
    "Evaluate",
    "Monitor",
    "Problem",
    "Solution",
    "Status",
    "available_backends",
    "descend",
    "get_backend",
    "register_backend",
]
