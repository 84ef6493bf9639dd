"""Names of backends and the classes behind them, which are imported when they are first used."""

from __future__ import annotations

from fssgd._support.optional import how_to_get
from fssgd._support.registry import Entry, Registry
from fssgd.backends._base import Backend

_registry = Registry(
    "module:Class",
    "A backend named {!r} exists already: choose another name, or pass overwrite=True to replace it.",
    {
        "spectral": Entry("fssgd.backends.spectral:Spectral"),
        "numpy": Entry("fssgd.backends.numpy:NumPy"),
        "krylov": Entry("fssgd.backends.krylov:Krylov"),
        "tf-graph": Entry("fssgd.backends.tensorflow:TensorFlowGraph", "fssgd[tensorflow]"),
        "tf-session": Entry("fssgd.backends.tensorflow:TensorFlowSession", "fssgd[tensorflow]"),
    },
)


def register_backend(name: str, path: str, extra: str | None = None, overwrite: bool = False) -> None:
    """Register a backend under a name.

    Parameters
    ----------
    name : str
        What users pass as ``backend=``.
    path : str
        ``"module:Class"``, imported when the backend is first used. The class must be a
        :class:`Backend` that needs no arguments.
    extra : str, default=None
        The pip requirement to name when the import fails, such as ``"fssgd[tensorflow]"``.
    overwrite : bool, default=False
        Replace an existing backend of this name.

    Raises
    ------
    ValueError
        If the name is taken, is "auto", or ``path`` is not of the form "module:Class".
    """
    if name == "auto":
        raise ValueError("'auto' is reserved for the choice between backends: register yours under another name.")
    _registry.register(name, path, extra, overwrite)


def available_backends() -> tuple[str, ...]:
    """Return the names of the backends that can run here.

    Returns
    -------
    tuple of str
        In the order of their registration.
    """
    names = []
    for name in _registry:
        try:
            get_backend(name)
        except (ImportError, TypeError):  # not installed, or registered by mistake
            continue
        names.append(name)
    return tuple(names)


def get_backend(name: str) -> Backend:
    """Return the backend of this name with its default settings.

    Parameters
    ----------
    name : str

    Returns
    -------
    Backend

    Raises
    ------
    ValueError
        If no backend has this name.
    ImportError
        If what it needs is not installed; the message is the pip command to run.
    TypeError
        If what was registered under this name is no backend.
    """
    if name not in _registry:
        raise ValueError(
            f"There is no backend {name!r}: use 'auto', {', '.join(map(repr, _registry))}, or a Backend instance."
        )
    path, extra = _registry[name]
    try:
        backend = _registry.load(name, f"backend {name!r}")
    except AttributeError as error:
        raise TypeError(f"{path!r}, registered as backend {name!r}, does not exist ({error}).") from error
    if not (isinstance(backend, type) and issubclass(backend, Backend)):
        raise TypeError(f"{path!r}, registered as backend {name!r}, is not a subclass of fssgd.Backend.")
    if not backend.is_available():
        raise ImportError(f"The backend {name!r} needs a package that is not installed: {how_to_get(path, extra)}.")
    return backend()
