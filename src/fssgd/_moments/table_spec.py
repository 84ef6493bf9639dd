"""The columns of a table that moments are computed of: target, features and weight, checked against the table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fssgd._support.words import capitalized, join_names, warn_user

INDEX_NAME = re.compile(r"__index_level_\d+__|__null_dask_index__")  # of an index that pandas or Dask wrote to Parquet


class Column(NamedTuple):
    """Name and type of one column of a table.

    Parameters
    ----------
    name : str
        Name of the column.
    type : str
        Its type, as the table's own library calls it.
    numeric : bool
        Whether it holds numbers or booleans.
    is_index : bool, default=False
        Whether it was written as the index of the rows, which is a feature only if it is named.
    empty : bool, default=False
        Whether it has no value, so that the type in the other files counts.
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
        Names of the features in order; None until :meth:`choose` has filled in the default.
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
        feature_names = (
            None if features is None else _names("features", [features] if isinstance(features, str) else features)
        )
        if weight is not None and not isinstance(weight, str):
            raise ValueError(f"weight must be the name of a column, got {weight!r}.")
        roles = [("target", name) for name in targets] + [("features", name) for name in feature_names or ()]
        roles += [] if weight is None else [("weight", weight)]
        for name, count in Counter(name for _, name in roles).items():
            if count > 1:
                where = " and ".join(dict.fromkeys(role for role, other in roles if other == name))
                raise ValueError(f"Column {name!r} is named {count} times, in {where}: give each column one role.")
        return cls(targets, feature_names, weight, bool(accurate), on_missing)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns to read: features, targets, and the weight if there is one."""
        return (*(self.features or ()), *self.target, *([] if self.weight is None else [self.weight]))

    def choose(self, columns: Iterable[Column], where: str) -> TableSpec:
        """Return the spec with the default features filled in, after a check that the table has every column.

        Parameters
        ----------
        columns : iterable of Column
            Columns of the table, in its order.
        where : str
            What to call the table in messages.

        Returns
        -------
        TableSpec

        Raises
        ------
        ValueError
            If a column is missing, occurs twice or is not numeric, or if there is no column left for a feature.
        """
        return self.choose_from([list(columns)], [where], where)

    def choose_from(self, tables: Sequence[Sequence[Column]], places: Sequence[str], where: str) -> TableSpec:
        """Return the spec with the default features filled in for several files; their order does not matter.

        Parameters
        ----------
        tables : sequence of sequence of Column
            Columns of each file.
        places : sequence of str
            What to call each file in messages.
        where : str
            What to call all of them in messages.

        Returns
        -------
        TableSpec
        """
        for columns, place in zip(tables, places, strict=True):
            # pandas has columns named 0, 1, ...: refused here, they cannot be sorted or matched to those of a file.
            other = [column.name for column in columns if not isinstance(column.name, str)]
            if other:
                raise ValueError(
                    f"The column names of {place} must be strings, found {other[0]!r} of type "
                    f"{type(other[0]).__name__}: rename the columns."
                )
            self.check(columns, place)
        if self.features is not None:
            return self
        spec = replace(self, features=self._default_features(_merged(tables), where))
        all_features = set(spec.features or ())
        for columns, place in zip(tables, places, strict=True):
            absent = sorted(all_features - {column.name for column in columns})
            if absent:
                raise ValueError(
                    f"{capitalized(place)} has no column {join_names(absent)}, which others of {where} have: "
                    "name the features that all of them have."
                )
            spec.check(columns, place)
        return spec

    def check(self, columns: Iterable[Column], where: str) -> None:
        """Raise a ValueError unless the table has every column asked for, once, of a numeric type.

        Parameters
        ----------
        columns : iterable of Column
            Columns of the table.
        where : str
            What to call the table in messages.
        """
        columns = list(columns)
        counts, by_name = Counter(column.name for column in columns), {column.name: column for column in columns}
        absent = [name for name in self.columns if name not in by_name]
        if absent:
            raise ValueError(
                f"{capitalized(where)} has no column {join_names(absent)}: its columns are {join_names(by_name)}."
            )
        for name in self.columns:
            if counts[name] > 1:
                raise ValueError(f"{capitalized(where)} has {counts[name]} columns named {name!r}: rename all but one.")
        for name in self.columns:
            # A column without any value may be of type null or text, and is read as NaN.
            if not (by_name[name].numeric or by_name[name].empty):
                advice = "leave it out of features" if name in (self.features or ()) else "name another column"
                raise ValueError(
                    f"Column {name!r} of {where} is not numeric, it is of type {by_name[name].type}: convert it to "
                    f"numbers, or {advice}."
                )

    def _default_features(self, columns: Sequence[Column], where: str) -> tuple[str, ...]:
        others = [column for column in columns if column.name not in (*self.target, self.weight)]
        indices = {column.name for column in others if column.is_index or INDEX_NAME.fullmatch(column.name)}
        # DataFrame.to_csv writes the index as a first column without a name, which read_csv calls "Unnamed: 0". Row
        # numbers would fit a trend of the order of the rows.
        unnamed = {column.name for column in others if column.name == ""}
        unnamed |= {column.name for column in columns[:1] if column in others and column.name == "Unnamed: 0"}
        candidates = [column for column in others if column.name not in indices | unnamed]
        features = tuple(column.name for column in candidates if column.numeric)
        not_numeric = [column.name for column in candidates if not column.numeric]
        if not features:
            why = f" not numeric: {join_names(not_numeric)}" if not_numeric else " there are no others"
            why += f", and an index: {join_names(sorted(indices | unnamed))}" if indices | unnamed else ""
            raise ValueError(f"{capitalized(where)} has no feature beside {join_names(self.columns)}:{why}.")
        if unnamed:
            warn_user(
                f"The unnamed column {join_names(sorted(unnamed))} of {where} was left out of the features, because it "
                "looks like the index of a table written as CSV. Name the features to silence this warning."
            )
        if not_numeric:
            warn_user(
                f"Columns of {where} that are not numeric were left out of the features: {join_names(not_numeric)}. "
                "Name the features to silence this warning."
            )
        return features


def _merged(tables: Sequence[Sequence[Column]]) -> list[Column]:
    """Return each column once, numeric if it is numeric in all tables that have a value of it."""
    by_name: dict[str, list[Column]] = {}
    for column in (column for columns in tables for column in columns):
        by_name.setdefault(column.name, []).append(column)
    # Where a file has no value in a column, its type says nothing: pandas writes such a column as null, float or text.
    return [
        same[0]._replace(
            numeric=all(column.numeric for column in ([column for column in same if not column.empty] or same)),
            is_index=any(column.is_index for column in same),
        )
        for same in by_name.values()
    ]


def _names(argument: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument} must be the name of a column or a list of such names, got {value!r}.")
    return names
