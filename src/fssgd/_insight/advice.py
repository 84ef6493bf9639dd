"""The advice of a diagnosis: what to change, with the numbers before and after."""

from __future__ import annotations

import numpy as np

from fssgd._insight.blame import named
from fssgd._insight.diagnosis import Diagnosis, counted, plural, step_text, steps_text

TARGET_CONDITION_NUMBER = 100.0  # that a suggested penalty brings about
FEW_STEPS, MANY_STEPS = 100, 1000


def advice_for(d: Diagnosis) -> tuple[str, ...]:
    """Return what to do, in sentences; the standardised descent has to be described already."""
    advice = [*_on_divergence(d), *_on_scaling(d), *_on_the_step(d), *_on_columns(d)]
    # collinear columns without advice: tol is met early, and a smaller one would not be
    if not advice and any(blame.reason == "collinearity" for blame in d.blame):
        return (f"The descent meets tol={d.tol:g} before it has moved along the flattest directions: leave it.",)
    return tuple(advice) or ("Nothing slows this descent down: leave it as it is.",)


def _on_divergence(d: Diagnosis) -> list[str]:
    if d.steps < np.inf or not d.steps_known:
        return []
    if d.learning_rate > d.max_learning_rate * (1.0 + 1e-12):
        why = f"is above {step_text(d.max_learning_rate)}, the largest stable step: the descent diverges"
    else:
        why = f"never reaches tol={d.tol:g}: it is all but the largest stable step, {step_text(d.max_learning_rate)}"
    return [f"learning_rate={d.learning_rate:.6g} {why}. Use learning_rate='auto'."]


def _on_scaling(d: Diagnosis) -> list[str]:
    after = d.standardized
    if after is None:
        return []
    condition = f"the condition number from {d.condition_number:.4g} to {after.condition_number:.4g}"
    steps = f"the steps to tol={d.tol:g} from {steps_text(d, d.steps)} to {steps_text(after, after.steps)}"
    if after.steps < 0.5 * d.steps or (after.steps <= d.steps and after.condition_number < 0.5 * d.condition_number):
        return [f"standardize=True brings {condition} and {steps}."]
    if after.condition_number < 0.5 * d.condition_number:
        early = "as it is, the descent meets tol before it has moved along the flattest directions"
        return [f"standardize=True brings {condition}, though {steps}: {early}."]
    if after.condition_number > 2.0 * d.condition_number and after.steps > d.steps:
        return [f"Leave the columns as they are: standardize=True would bring {condition} and {steps}."]
    return []


def _on_the_step(d: Diagnosis) -> list[str]:
    advice = []
    if d.best_steps < 0.75 * d.steps and FEW_STEPS < d.steps < np.inf:
        advice.append(
            f"learning_rate={step_text(d.best_learning_rate)}, the fixed step with the best worst case, takes "
            f"{counted(d.best_steps)} steps to tol={d.tol:g} instead of {counted(d.steps)}."
        )
    if not d.steps_known:
        advice.append(
            f"How many steps tol={d.tol:g} takes cannot be told from second moments: their rounding hides directions "
            "along which the descent still has to move. Moments taken with accurate=True see further."
        )
    elif d.condition_number == np.inf and d.accurate:
        advice.append(
            "The smallest eigenvalue is too small for float64 to tell from 0: along its direction the descent never "
            "moves, and tol is met without it."
        )
    elif d.condition_number == np.inf:
        advice.append(
            "The smallest eigenvalue is too small for second moments to tell from 0: moments taken with accurate=True "
            "see further."
        )
    return advice


def _on_columns(d: Diagnosis) -> list[str]:
    advice, standardized = [], d.standardized or d
    constant = [one.columns[0] for one in d.blame if one.reason == "constant"]
    if constant:
        advice.append(f"Leave out {named(constant)}: a constant column says no more than the intercept.")
    if d.n_features + d.fit_intercept > d.n_samples and not d.alpha:
        advice.append(
            f"With {plural(d.n_features, 'column')} for {plural(d.n_samples, 'row')} many coefficients fit equally "
            "well, and the descent ends at the smallest of them: a penalty (alpha > 0), or a stop before the limit, "
            "chooses others."
        )
    if not d.fit_intercept and any(one.reason == "offset" for one in standardized.blame):
        advice.append("Columns are centred with an intercept only: fit_intercept=True takes their offsets away.")
    collinear = [one for one in d.blame if one.reason == "collinearity"]
    exact = [one for one in collinear if one.value == np.inf]
    if exact:
        known = "exactly" if d.accurate else "to the rounding of second moments (accurate=True sees further)"
        advice.append(
            f"Leave out one column of each group that is dependent {known}, such as {named(exact[0].columns)}: how "
            "they share what they say is settled by their scales alone."
        )
    if len(collinear) > len(exact) and standardized.steps > MANY_STEPS:
        near = next(one for one in collinear if one.value < np.inf)
        alpha = standardized.alpha + 0.5 * standardized.eigenvalue_range[1] / TARGET_CONDITION_NUMBER
        advice.append(
            f"{named(near.columns)} all but determine each other, which standardising does not change. Leave one out, "
            f"or take a penalty: with standardize=True, alpha={float(f'{alpha:.1g}'):g} brings the condition number to "
            f"about {TARGET_CONDITION_NUMBER:g}, and shrinks the coefficients."
        )
    if standardized.steps > MANY_STEPS:
        advice.append(
            "For the limit alone no steps are needed: backend='spectral' with max_iter=float('inf') and tol=None "
            "computes it."
        )
    return advice
