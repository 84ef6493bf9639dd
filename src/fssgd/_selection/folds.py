"""Cross-validation errors of every iterate from one pass over the rows and one decomposition a fold.

Moments add up, and what can be added can be taken out again: the training rows of a fold have the moments of all
rows less those of the fold, where that is accurate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._descent.settings import Settings
from fssgd._moments.moments import Moments
from fssgd._path.closed_form import ACCURACY
from fssgd._path.error_curve import ErrorCurve
from fssgd._path.gradient_path import GradientPath
from fssgd._selection.scores import MeanError

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer[Any]]
Split = tuple[Indices, Indices]  # training and validation rows


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Validated rows, and the moments of parts of them.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,) or None
    names : ndarray of shape (n_features,) or None
    """

    X: Any
    y: Array
    weight: Array | None
    names: Any = None

    def moments(self, rows: Indices | slice = slice(None), *, accurate: bool = False) -> Moments:
        """Return the moments of some rows; neighbouring ones are not copied."""
        if isinstance(rows, np.ndarray) and len(rows) and (np.diff(rows) == 1).all():
            rows = slice(int(rows[0]), int(rows[-1]) + 1)
        weight = None if self.weight is None else self.weight[rows]
        return Moments.of_rows(self.X[rows], self.y[rows], weight, accurate=accurate, feature_names=self.names)

    def fold_moments(self, splits: Sequence[Split]) -> tuple[Moments, list[Moments]]:
        """Return the moments of all rows, and those of the validation rows of each split."""
        n_samples, parts = len(self.y), []
        for i, (train, test) in enumerate(splits):
            for rows, kind in ((train, "training"), (test, "validation")):
                if not len(rows) or (self.weight is not None and not (self.weight[rows] > 0).any()):
                    raise ValueError(
                        f"Fold {i} of {len(splits)} has no {kind} row of positive weight: use fewer folds, or a "
                        "splitter that spreads these rows over all of them."
                    )
            parts.append(self.moments(test))
        seen = np.zeros(n_samples, dtype=np.int64)
        for _, test in splits:
            np.add.at(seen, test, 1)
        if splits and (seen == 1).all():
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            return total, parts
        return self.moments(), parts

    def training_moments(self, total: Moments, part: Moments, split: Split) -> Moments:
        """Return the moments of the training rows, by subtraction where they are all the others and it is accurate."""
        if np.array_equal(np.sort(np.concatenate(split)), np.arange(len(self.y))):
            try:
                return total - part
            except ValueError:  # too little would be left
                pass
        return self.moments(split[0])


def fold_errors(
    rows: FoldRows, splits: Sequence[Split], total: Moments, parts: Sequence[Moments], settings: Settings, max_iter: int
) -> MeanError:
    """Return the errors of every iterate on the rows that its fold left out.

    Parameters
    ----------
    rows : FoldRows
    splits : sequence of (train, test)
        Indices of training and validation rows.
    total, parts : Moments, sequence of Moments
        From :meth:`FoldRows.fold_moments`.
    settings : Settings
        With a step that the folds share.
    max_iter : int
        The largest k of interest.
    """
    curves = []
    for split, part in zip(splits, parts, strict=True):
        path = GradientPath.of(rows.training_moments(total, part, split), settings)
        if path.rounding_at(max_iter) > ACCURACY:
            train, part = (rows.moments(chosen, accurate=True) for chosen in split)
            path = GradientPath.of(train, settings)
        curves.append(ErrorCurve.of(path, part, max_iter))
    return MeanError(curves)
