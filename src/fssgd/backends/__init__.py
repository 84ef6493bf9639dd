"""Ways to compute the same iterate, and the names a third party needs to add one."""

from fssgd.backends._base import Backend
from fssgd.backends._problem import Problem, Solution, Status
from fssgd.backends._registry import available_backends, get_backend, register_backend

__all__ = ["Backend", "Problem", "Solution", "Status", "available_backends", "get_backend", "register_backend"]
