"""Right digits on the linear problems of the NIST Statistical Reference Datasets, here and elsewhere.

    python benchmarks/accuracy.py

A coefficient has ``-log10(|found - certified| / |certified|)`` right digits, at most 15; a problem has those of its
worst coefficient. Data and certified values are in tests/data/nist.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import statsmodels.api as sm
from measure import RESULTS
from sklearn.linear_model import LinearRegression

from fssgd import LinearRegressorGD

NIST = Path(__file__).resolve().parents[1] / "tests" / "data" / "nist"


def digits(found: Any, certified: Any) -> float:
    """Smallest number of right digits, between 0 and 15."""
    found, certified = np.asarray(found, np.longdouble), np.array([np.longdouble(one) for one in certified])
    error = np.abs(found - certified) / np.abs(certified)
    return float(np.clip(-np.log10(np.maximum(error, 1e-15)), 0, 15).min())


def of_model(model: Any) -> Callable[[Any, Any, bool], Any]:
    """Return a function that fits the model and hands out intercept and coefficients."""

    def fit(X: Any, y: Any, intercept: bool) -> Any:
        fitted = model.set_params(fit_intercept=intercept).fit(X, y)
        return [*([fitted.intercept_] if intercept else []), *fitted.coef_]

    return fit


def design(X: Any, intercept: bool) -> Any:
    """Return X with a column of ones where there is an intercept."""
    return np.column_stack([np.ones(len(X)), X]) if intercept else X


FITS: dict[str, Callable[[Any, Any, bool], Any]] = {
    "fssgd": of_model(LinearRegressorGD(max_iter=np.inf, tol=None)),
    "numpy.linalg.lstsq": lambda X, y, intercept: np.linalg.lstsq(design(X, intercept), y, rcond=None)[0],
    "scikit-learn LinearRegression": of_model(LinearRegression()),
    "statsmodels OLS": lambda X, y, intercept: sm.OLS(y, design(X, intercept)).fit().params,
}


def main() -> None:
    """Print the table and write it as CSV."""
    rows = []
    for name, facts in json.loads((NIST / "certified.json").read_text()).items():
        table = np.loadtxt(NIST / f"{name}.csv", delimiter=",", skiprows=1)
        X, y = table[:, :-1], table[:, -1]
        if facts["degree"]:
            X = X ** np.arange(1, facts["degree"] + 1)
        found = [digits(fit(X, y, facts["fit_intercept"]), facts["coefficients"]) for fit in FITS.values()]
        rows.append([name, *(f"{value:.1f}" for value in found)])
        print(*(f"{cell:>10}" for cell in rows[-1]))
    RESULTS.mkdir(parents=True, exist_ok=True)
    with open(RESULTS / "accuracy.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["", *FITS], *rows])


if __name__ == "__main__":
    main()
