"""What is asked of a table, and which of its columns that means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fssgd._support.words import capital, listed, warn_user

INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")  # of pandas and Dask, in Parquet


class Column(NamedTuple):
    """A column that a table has: its name, its type in the table's own words, and whether that is numeric.

    ``is_index`` says that it was written as the index of the rows, which is no feature unless it is named; ``empty``
    that nothing is known of it but missing values, so that other files say what it is.
    """

    name: str
    type: str
    numeric: bool
    is_index: bool = False
    empty: bool = False


@dataclass(frozen=True)
class TableSpec:
    """Columns of a table, and how to read them.

    Parameters
    ----------
    target : tuple of str
        Names of the outputs.
    features : tuple of str or None
        Names of the features in order; None before :meth:`choose` has looked at the table.
    weight : str or None
        Name of the column of sample weights.
    accurate : bool
        As in :meth:`fssgd.Moments.from_arrays`.
    on_missing : {"raise", "drop"}
        What to do with rows in which a value is null or NaN.
    """

    target: tuple[str, ...]
    features: tuple[str, ...] | None = None
    weight: str | None = None
    accurate: bool = False
    on_missing: str = "raise"

    @classmethod
    def of(cls, target: Any, features: Any, weight: Any, accurate: bool, on_missing: str) -> TableSpec:
        """Check the arguments against each other, before any table is looked at.

        Parameters
        ----------
        target, features, weight, accurate, on_missing
            As for :meth:`fssgd.Moments.from_table`.

        Returns
        -------
        TableSpec

        Raises
        ------
        ValueError
            If they contradict each other.
        """
        if on_missing not in ("raise", "drop"):
            raise ValueError(f"on_missing must be 'raise' or 'drop', got {on_missing!r}.")
        targets = _names("target", target)
        chosen = None if features is None else _names("features", [features] if isinstance(features, str) else features)
        if weight is not None and not isinstance(weight, str):
            raise ValueError(f"weight must be the name of a column, got {weight!r}.")
        roles = [("target", name) for name in targets] + [("features", name) for name in chosen or ()]
        roles += [] if weight is None else [("weight", weight)]
        for name, count in Counter(name for _, name in roles).items():
            if count > 1:
                where = " and ".join(dict.fromkeys(role for role, other in roles if other == name))
                raise ValueError(f"Column {name!r} is named {count} times, in {where}: give each column one role.")
        return cls(targets, chosen, weight, bool(accurate), on_missing)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns to read: features, targets, and the weight if there is one."""
        return (*(self.features or ()), *self.target, *([] if self.weight is None else [self.weight]))

    def choose(self, columns: Iterable[Column], where: str) -> TableSpec:
        """Return the spec with features filled in, once the table is known to have every column.

        Parameters
        ----------
        columns : iterable of Column
            What the table has, in its order.
        where : str
            What to call the table in messages.

        Returns
        -------
        TableSpec

        Raises
        ------
        ValueError
            If a column is missing, there twice or not numeric, or if nothing is left to be a feature.
        """
        return self.choose_from([list(columns)], [where], where)

    def choose_from(self, tables: Sequence[Sequence[Column]], places: Sequence[str], where: str) -> TableSpec:
        """Do as :meth:`choose` for the columns of several files: in whatever order, all have a say.

        Parameters
        ----------
        tables : sequence of sequence of Column
            What each of them has.
        places : sequence of str
            What to call each in messages.
        where : str
            What to call all of them.

        Returns
        -------
        TableSpec
        """
        for columns, place in zip(tables, places, strict=True):
            odd = [column.name for column in columns if not isinstance(column.name, str)]
            if odd:
                raise ValueError(
                    f"The column names of {place} must be strings, found {odd[0]!r} of type {type(odd[0]).__name__}: "
                    "rename the columns."
                )
            self.check(columns, place)
        if self.features is not None:
            return self
        spec = replace(self, features=self._default_features(_merged(tables), where))
        every = set(spec.features or ())
        for columns, place in zip(tables, places, strict=True):
            absent = sorted(every - {column.name for column in columns})
            if absent:
                raise ValueError(
                    f"{capital(place)} has no column {listed(absent)}, which others of {where} have: name the features "
                    "that all of them have."
                )
            spec.check(columns, place)
        return spec

    def check(self, columns: Iterable[Column], where: str) -> None:
        """Raise a ValueError unless the table has every column asked for, once, of a numeric type.

        Parameters
        ----------
        columns : iterable of Column
            What the table has.
        where : str
            What to call it in messages.
        """
        columns = list(columns)
        counts, kinds = Counter(column.name for column in columns), {column.name: column for column in columns}
        absent = [name for name in self.columns if name not in kinds]
        if absent:
            raise ValueError(f"{capital(where)} has no column {listed(absent)}: its columns are {listed(kinds)}.")
        for name in self.columns:
            if counts[name] > 1:
                raise ValueError(f"{capital(where)} has {counts[name]} columns named {name!r}: rename all but one.")
        for name in self.columns:
            if not (kinds[name].numeric or kinds[name].empty):
                advice = "leave it out of features" if name in (self.features or ()) else "name another column"
                raise ValueError(
                    f"Column {name!r} of {where} is not numeric, it is of type {kinds[name].type}: convert it to "
                    f"numbers, or {advice}."
                )

    def _default_features(self, columns: Sequence[Column], where: str) -> tuple[str, ...]:
        others = [column for column in columns if column.name not in (*self.target, self.weight)]
        indices = {column.name for column in others if column.is_index or INDEX.fullmatch(column.name)}
        # the index of a table that was written as CSV, and what pandas calls it when it reads that
        nameless = {column.name for column in others if column.name == ""}
        nameless |= {column.name for column in columns[:1] if column in others and column.name == "Unnamed: 0"}
        out = [column for column in others if not column.numeric and column.name not in indices | nameless]
        features = tuple(column.name for column in others if column.numeric and column.name not in indices | nameless)
        if not features:
            left = f" not numeric: {listed(column.name for column in out)}" if out else " there are no others"
            left += f", and an index: {listed(sorted(indices | nameless))}" if indices | nameless else ""
            raise ValueError(f"{capital(where)} has no feature beside {listed(self.columns)}:{left}.")
        if nameless:
            warn_user(
                f"The nameless column {listed(sorted(nameless))} of {where} was left out of the features, as the index "
                "of a table that was written as CSV. Name the features to be rid of this warning."
            )
        if out:
            warn_user(
                f"Columns of {where} that are not numeric were left out of the features: "
                f"{listed(column.name for column in out)}. Name the features to be rid of this warning."
            )
        return features


def _merged(tables: Sequence[Sequence[Column]]) -> list[Column]:
    """Return each column once, numeric if it is in all tables that know a value of it."""
    found: dict[str, list[Column]] = {}
    for column in (column for columns in tables for column in columns):
        found.setdefault(column.name, []).append(column)
    return [
        several[0]._replace(
            numeric=all(one.numeric for one in ([one for one in several if not one.empty] or several)),
            is_index=any(one.is_index for one in several),
        )
        for several in found.values()
    ]


def _names(what: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{what} must be the name of a column or a list of such names, got {value!r}.")
    return names
