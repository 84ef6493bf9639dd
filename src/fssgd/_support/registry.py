"""Registry of named classes and functions that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fssgd._support.optional import load


class Entry(NamedTuple):
    """Import path of a registered object, and the pip requirement to name when the import fails."""

    path: str
    extra: str | None = None


class Registry(Mapping[str, Entry]):
    """Read-only mapping of names to entries, in the order of registration; :meth:`register` adds to it.

    Parameters
    ----------
    form : str
        What a path looks like, for the error message, such as ``"module:Class"``.
    taken : str
        Error message for a name that is registered already, with ``{!r}`` in place of the name.
    entries : dict of str to Entry
        Objects that are registered from the beginning.
    """

    def __init__(self, form: str, taken: str, entries: dict[str, Entry]) -> None:
        self._form, self._taken, self._entries = form, taken, dict(entries)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def copy(self) -> Registry:
        """Return a registry with the same entries; registering there leaves this one as it is."""
        return Registry(self._form, self._taken, self._entries)

    def check_path(self, path: str, argument: str = "path") -> None:
        """Raise a ValueError unless ``path`` has a module and an attribute; ``argument`` names it in the message."""
        if not all(path.partition(":")):
            raise ValueError(f"{argument} must look like {self._form!r}, got {path!r}.")

    def register(self, name: str, path: str, extra: str | None = None, overwrite: bool = False) -> None:
        """Add an object under a name, without importing it.

        Raises
        ------
        ValueError
            If the name is registered already and ``overwrite`` is False, or the path is malformed.
        """
        if name in self._entries and not overwrite:
            raise ValueError(self._taken.format(name))
        self.check_path(path)
        self._entries[name] = Entry(path, extra)

    def discard(self, name: str) -> None:
        """Remove the entry of a name, if there is one."""
        self._entries.pop(name, None)

    def load(self, name: str, description: str) -> Any:
        """Import the object of a name; an ImportError describes it and names the pip command."""
        return load(*self._entries[name], description)
