"""The settings that say which descent is meant, bundled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Settings:
    """Step and objective of a descent; see :class:`~fssgd.LinearRegressorGD` for their meaning."""

    learning_rate: float | Literal["auto"] = "auto"
    standardize: bool = True
    fit_intercept: bool = True
    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a step or a penalty that describes no descent."""
        if self.learning_rate != "auto" and not 0 < self.learning_rate < np.inf:
            raise ValueError(f"learning_rate must be a positive number or 'auto', got {self.learning_rate!r}.")
        if not 0 <= self.alpha < np.inf:
            raise ValueError(f"alpha must be a non-negative number, got {self.alpha!r}.")

    def step(self, largest: float) -> float:
        """Return the step: as given, or 1 / L, or 1 where F is constant."""
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        return 1.0 / largest if largest > 0 else 1.0
