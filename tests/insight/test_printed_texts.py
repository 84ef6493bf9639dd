"""Summary and Diagnosis as they are printed, compared with texts in tests/data/golden.

After a change that is meant, run this file as a script: it writes the texts anew, and ``git diff`` shows the change.
The data are small integers, and no printed digit depends on rounding: changed by 1e-13 of themselves, they print the
same texts.
"""

from pathlib import Path

import numpy as np
import pytest

from fssgd import LinearRegressorGD, diagnose

GOLDEN = Path(__file__).parents[1] / "data" / "golden"

# orthogonal columns of mean 0 and variance 1: every eigenvalue of the Hessian is 2
BALANCED = np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)])
RESPONSES = np.array([[3.0, 1, 4, 9, 2, 6, 5, 8], [2.0, 7, 1, 8, 2, 8, 1, 3]]).T
COUNT = np.arange(12.0)
TREND = np.column_stack([2001 + COUNT, COUNT**2])  # far from 0, and nearly collinear once centred
# a count and nearly its double, a column of another scale, and a constant
MIXED = np.column_stack([COUNT, 2 * COUNT + (COUNT == 3), 30 * (COUNT % 3), np.full(12, 7.0)])
SALES = np.array([12.0, 15, 11, 18, 22, 20, 25, 24, 30, 28, 33, 37])


def changed(X, change):
    """X with every other column larger, and the others smaller, by this part of themselves."""
    return X * (1 + change * (-1.0) ** np.arange(X.shape[1]))


def summary_of_one_output(change):
    model = LinearRegressorGD(max_iter=np.inf, tol=None)
    return model.fit(changed(BALANCED, change), RESPONSES[:, 0] * (1 + change)).summary()


def summary_of_two_outputs_stopped_early(change):
    model = LinearRegressorGD(learning_rate=0.2, max_iter=3, tol=None, alpha=0.5)
    return model.fit(changed(BALANCED, change), RESPONSES * (1 + change)).summary(level=0.9)


def summary_of_an_ill_conditioned_raw_descent(change):
    model = LinearRegressorGD(max_iter=1000, tol=None, standardize=False)
    return model.fit(changed(TREND, change), SALES * (1 + change)).summary()


def summary_without_an_intercept(change):
    model = LinearRegressorGD(fit_intercept=False, max_iter=np.inf, tol=None)
    return model.fit(changed(BALANCED, change), RESPONSES[:, 0] * (1 + change)).summary()


def diagnosis_of_a_well_conditioned_problem(change):
    return diagnose(changed(BALANCED, change), RESPONSES[:, 0] * (1 + change))


def diagnosis_of_collinear_and_badly_scaled_columns(change):
    return diagnose(changed(MIXED, change), SALES * (1 + change))


def diagnosis_of_a_divergent_step(change):
    return diagnose(changed(TREND[:, :1], change), SALES * (1 + change), learning_rate=0.01, tol=1e-6)


PRINTED = {
    function.__name__: function
    for function in (
        summary_of_one_output,
        summary_of_two_outputs_stopped_early,
        summary_of_an_ill_conditioned_raw_descent,
        summary_without_an_intercept,
        diagnosis_of_a_well_conditioned_problem,
        diagnosis_of_collinear_and_badly_scaled_columns,
        diagnosis_of_a_divergent_step,
    )
}


def text_of(name, change=0.0):
    return f"{PRINTED[name](change)}\n"


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_text(name):
    assert text_of(name) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("change", [-1e-13, 1e-13])
@pytest.mark.parametrize("name", PRINTED)
def test_no_printed_digit_depends_on_rounding(name, change):
    assert text_of(name, change) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_text_is_compared():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(PRINTED)


if __name__ == "__main__":
    for name in PRINTED:
        (GOLDEN / f"{name}.txt").write_text(text_of(name), encoding="utf-8", newline="\n")
