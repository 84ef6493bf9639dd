"""Diagnoses: eigenvalues by brute force, steps by stepping, and words whose promises are kept."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fssgd
from fssgd import Diagnosis, LinearRegressorGD, Moments, diagnose

pd = pytest.importorskip("pandas")


def hessian(X, weight, standardize, fit_intercept, alpha):
    """Write out H = 2 Z'DZ / S + 2 alpha I, b unpenalised."""
    weight = weight / weight.sum()
    if standardize:
        mean = weight @ X
        X = (X - mean * fit_intercept) / np.sqrt(weight @ (X - mean) ** 2)
    penalty = np.full(X.shape[1] + fit_intercept, 2 * alpha)
    if fit_intercept:
        X, penalty[-1] = np.column_stack([X, np.ones(len(X))]), 0.0
    return 2 * (X.T * weight) @ X + np.diag(penalty)


def frame(**columns):
    return pd.DataFrame(columns)


@pytest.fixture
def homes():
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=400) for name in ("rooms", "area", "noise")}
    data["area"] = 100 * data["area"] + 1200
    data["noise"] = 1e-3 * data["noise"]
    data["metres"] = 0.3 * data["area"] + 0.03 * rng.normal(size=400)
    return pd.DataFrame(data), data["rooms"] + 0.01 * data["area"] + rng.normal(size=400)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_eigenvalues_are_those_of_the_hessian(weighted, fit_intercept, alpha):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 4)) * [1, 5, 0.1, 2] + [0, 3, 1, -1], rng.normal(size=50)
    weight = rng.random(50) if weighted else np.ones(50)
    found = diagnose(X, y, weight, fit_intercept=fit_intercept, alpha=alpha)
    for one, standardize in ((found, False), (found.standardized, True)):
        h = np.linalg.eigvalsh(hessian(X, weight, standardize, fit_intercept, alpha))
        assert one.eigenvalue_range == pytest.approx((h[0], h[-1]), rel=1e-9)
        assert one.condition_number == pytest.approx(h[-1] / h[0], rel=1e-9)
        assert one.max_learning_rate == pytest.approx(2 / h[-1], rel=1e-12)
        assert one.best_learning_rate == pytest.approx(2 / (h[0] + h[-1]), rel=1e-12)
        assert one.learning_rate == pytest.approx(1 / h[-1], rel=1e-12)
        assert one.standardize is standardize
        assert (one.fit_intercept, one.alpha, one.null_directions) == (fit_intercept, alpha, 0)
    assert found.standardized == diagnose(X, y, weight, standardize=True, fit_intercept=fit_intercept, alpha=alpha)


def test_condition_and_steps_of_the_question_data(question):
    found = diagnose(*question, learning_rate=1e-4, tol=1e-6)
    assert found.condition_number == pytest.approx(13299, rel=1e-4)
    assert found.steps == 174_690
    assert (found.standardized.steps, found.standardized.condition_number) == (1, pytest.approx(1))
    assert found.standardized.standardized is None
    variance = 833.3325  # of 0, 0.1, ..., 99.9
    factors = {"offset": (1 + 49.95**2 / variance) ** 2, "scale": variance, "collinearity": 1.0}
    assert found.condition_factors == pytest.approx(factors, rel=1e-3)
    assert [(one.columns, one.reason) for one in found.blame] == [(("x0",), "scale"), (("x0",), "offset")]
    assert found.advice[0] == (
        "standardize=True brings the condition number from 1.33e+04 to 1 and the steps to tol=1e-06 from 174,690 to 1."
    )


def test_the_largest_stable_step_of_a_hundred_points():
    x = np.arange(100.0)[:, None]
    assert diagnose(x, 0.1 * x[:, 0] + 0.3).max_learning_rate == pytest.approx(3.04484e-4, rel=1e-6)


def test_eigenvalues_of_a_correlation_matrix():
    x = np.arange(10.0)
    found = diagnose(np.column_stack([x, x**2]), x, standardize=True)
    assert found.eigenvalue_range == pytest.approx((2 * 0.0373092629, 2 * 1.9626907371), rel=1e-8)
    assert found.standardized is None
    assert found.condition_factors == pytest.approx(
        {"offset": 1, "scale": 1, "collinearity": 1.9626907371 / 0.0373092629}
    )


@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.01}, {"fit_intercept": False}, {"alpha": 0.5}])
@pytest.mark.parametrize("standardize", [True, False])
def test_steps_are_those_that_stepping_takes(settings, standardize):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)) * [1, 2, 0.7] + 1, rng.normal(size=60) + 3
    settings = settings | {"standardize": standardize}
    found = diagnose(X, y, tol=1e-6, **settings)
    stepped = LinearRegressorGD(tol=1e-6, backend="numpy", **settings).fit(X, y)
    assert found.steps == stepped.n_iter_ > 1
    settings["learning_rate"] = found.best_learning_rate
    assert found.best_steps == LinearRegressorGD(tol=1e-6, backend="numpy", **settings).fit(X, y).n_iter_


def test_moments_say_the_same(homes):
    X, y = homes
    found = diagnose(X, y)
    again = diagnose(Moments.from_arrays(X, y))
    assert str(found) == str(again)
    assert "'metres'" in str(again)


def test_every_cause_is_named(homes):
    found = diagnose(*homes)
    reasons = {(one.reason, one.columns[0]) for one in found.blame}
    assert {("scale", "area"), ("offset", "area"), ("scale", "metres")} <= reasons
    assert ("scale", "noise") in reasons
    assert not any("rooms" in one.columns for one in found.blame)
    (together,) = [one for one in found.blame if one.reason == "collinearity"]
    assert set(together.columns) == {"area", "metres"}
    inflation = np.linalg.inv(np.corrcoef(homes[0].to_numpy().T)).diagonal()
    assert together.value == pytest.approx(inflation.max(), rel=1e-6)
    spread = next(one for one in found.blame if (one.reason, one.columns[0]) == ("scale", "area"))
    assert spread.value == pytest.approx(homes[0]["area"].std(ddof=0))
    offset = next(one for one in found.blame if (one.reason, one.columns[0]) == ("offset", "area"))
    assert offset.value == pytest.approx(homes[0]["area"].mean() / homes[0]["area"].std(ddof=0))
    assert np.prod(list(found.condition_factors.values())) == pytest.approx(found.condition_number, rel=1e-9)


def test_standardising_leaves_collinearity_to_blame(homes):
    found = diagnose(*homes, standardize=True)
    assert [one.reason for one in found.blame] == ["collinearity"]
    assert not any("standardize=True brings" in sentence for sentence in found.advice)


def test_the_penalty_suggested_does_what_is_said(homes):
    (sentence,) = [one for one in diagnose(*homes).advice if "penalty" in one]
    assert "'area' and 'metres' all but determine each other" in sentence or "'metres' and 'area'" in sentence
    alpha = float(re.search(r"alpha=([\d.e-]+)", sentence).group(1))
    assert 50 < diagnose(*homes, standardize=True, alpha=alpha).condition_number < 200


@pytest.mark.parametrize(
    ("columns", "together"),
    [
        ({"a": 1, "b": 2}, {"a", "b"}),  # multiples of the same
        ({"a": 1, "b": 2, "c": -3}, {"a", "b", "c"}),
    ],
)
def test_exact_multiples_are_one_group(columns, together):
    x = np.random.default_rng(3).normal(size=(30, 2))
    X = pd.DataFrame({name: factor * x[:, 0] for name, factor in columns.items()} | {"free": x[:, 1]})
    found = diagnose(X, x[:, 0])
    (one,) = found.blame
    assert (set(one.columns), one.reason, one.value) == (together, "collinearity", np.inf)
    assert found.null_directions == len(columns) - 1
    assert "'a' is an exact linear combination of 'b'" in str(found)
    assert any("Leave out one column of each group that is dependent exactly, such as 'a'" in s for s in found.advice)


def test_a_sum_of_columns_names_all_of_them_and_no_other():
    x = np.random.default_rng(4).normal(size=(40, 3))
    X = frame(a=x[:, 0], b=x[:, 1], free=x[:, 2], total=x[:, 0] + x[:, 1])
    (one,) = diagnose(X, x[:, 0]).blame
    assert set(one.columns) == {"a", "b", "total"}
    assert one.value == np.inf


def test_two_dependencies_are_two_groups():
    x = np.random.default_rng(5).normal(size=(200, 4))
    X = frame(a=x[:, 0], b=x[:, 1], a2=x[:, 0] + 1e-3 * x[:, 2], b2=x[:, 1] + 1e-4 * x[:, 3])
    first, second = diagnose(X, x[:, 0]).blame
    assert (set(first.columns), set(second.columns)) == ({"b", "b2"}, {"a", "a2"})
    inflation = np.linalg.inv(np.corrcoef(X.to_numpy().T)).diagonal()
    assert first.value == pytest.approx(inflation.max(), rel=1e-4)


def test_constant_columns():
    rng = np.random.default_rng(6)
    X = frame(seven=np.full(20, 7.0), x=rng.normal(size=20), one=np.ones(20))
    found = diagnose(X, rng.normal(size=20))
    assert [(one.columns, one.reason, one.value) for one in found.blame] == [
        (("seven",), "constant", 7.0),
        (("one",), "constant", 1.0),
    ]
    assert found.null_directions == found.standardized.null_directions == 2
    assert "Leave out 'seven' and 'one': a constant column says no more than the intercept." in found.advice
    without = diagnose(X[["seven", "x"]], rng.normal(size=20), fit_intercept=False)
    assert not any(one.reason == "constant" for one in without.blame)  # there it is the intercept


def test_two_constant_columns_without_an_intercept_are_multiples():
    X = frame(seven=np.full(20, 7.0), one=np.ones(20), x=np.random.default_rng(6).normal(size=20))
    (one,) = diagnose(X, X["x"], fit_intercept=False).blame
    assert (set(one.columns), one.reason, one.value) == ({"seven", "one"}, "collinearity", np.inf)


def test_only_constant_columns():
    found = diagnose([[3.0], [3.0], [3.0]], [1.0, 2.0, 4.0])
    assert (found.condition_number, found.null_directions, found.blame[0].reason) == (1.0, 1, "constant")


def test_no_curvature_at_all():
    found = diagnose([[0.0], [0.0]], [1.0, 2.0], fit_intercept=False)
    assert (found.max_learning_rate, found.eigenvalue_range, found.steps) == (np.inf, (0.0, 0.0), 0)
    assert found.to_dict()["max_learning_rate"] == "inf"
    assert "Nothing slows this descent down" in str(found)


def test_wide_data():
    X = np.random.default_rng(7).normal(size=(10, 30))
    found = diagnose(X, X[:, 0])
    assert found.null_directions == 31 - 10
    assert not any(one.reason == "collinearity" for one in found.blame)
    assert any(one.startswith("With 30 columns for 10 rows many coefficients fit equally well") for one in found.advice)
    assert not any("many coefficients" in one for one in diagnose(X, X[:, 0], alpha=1.0).advice)


def test_a_column_too_far_from_zero_to_descend_on():
    X, y = frame(time=1e9 + np.array([4.0, 7.0, 13.0, 16.0])), [1.0, 2.0, 3.0, 5.0]
    found = diagnose(X, y)
    assert found.condition_number == found.condition_factors["offset"] == np.inf
    assert found.condition_factors["scale"] == pytest.approx(22.5)
    assert found.standardized.condition_number == pytest.approx(1.0)
    offset = next(one for one in found.blame if one.reason == "offset")
    assert offset.value == pytest.approx(1000000010 / 22.5**0.5)
    assert any("too small for float64 to tell from 0" in one for one in found.advice)
    assert found.advice[0].startswith("standardize=True brings the condition number from inf to 1")


def test_a_condition_number_beyond_second_moments_is_infinite():
    year = np.arange(1990, 2021.0)
    X = frame(year=year, mileage=200_000 - 6000 * (year - 1990) + 1000 * np.sin(year))
    y = 1000 + 500 * (year - 1990) - 0.02 * X["mileage"]
    found = diagnose(X, y)
    assert found.accurate
    assert found.standardized.condition_number == pytest.approx(23266, rel=1e-4)
    h = [float(x) for x in _eigenvalues_in_long_arithmetic(X.to_numpy())]
    assert found.condition_number == pytest.approx(h[-1] / h[0], rel=1e-6)
    plain = diagnose(Moments.from_arrays(X, y))
    assert not plain.accurate
    assert plain.condition_number == np.inf
    assert any(
        "too small for second moments to tell from 0: moments taken with accurate=True" in s for s in plain.advice
    )
    assert diagnose(Moments.from_arrays(X, y, accurate=True)) == found


def _eigenvalues_in_long_arithmetic(X):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        Z = mpmath.matrix(np.column_stack([X, np.ones(len(X))]).tolist())
        return sorted(mpmath.eigsy(Z.T * Z, eigvals_only=True))


def test_without_an_intercept_offsets_are_not_cured():
    X = np.random.default_rng(8).normal(size=(50, 2)) + 100
    found = diagnose(X, X[:, 0], fit_intercept=False)
    assert {one.reason for one in found.standardized.blame} >= {"offset"}
    assert any("fit_intercept=True takes their offsets away" in sentence for sentence in found.advice)
    assert not any("fit_intercept" in sentence for sentence in diagnose(X, X[:, 0]).advice)


def test_a_step_that_diverges():
    X = np.arange(100.0)[:, None]
    found = diagnose(X, X[:, 0] + np.sin(X[:, 0]), learning_rate=0.5)
    assert found.steps == np.inf
    assert found.advice[0] == (
        "learning_rate=0.5 is above 0.0003044, the largest stable step: the descent diverges. Use learning_rate='auto'."
    )
    assert "never" in str(found)


def test_a_step_at_the_limit():
    found = diagnose([[-2.0], [2.0], [-2.0], [2.0]], [-5.0, 7.0, -5.0, 7.0], learning_rate=0.25)
    assert found.max_learning_rate == 0.25
    assert found.steps == np.inf
    assert found.advice[0].startswith(
        "learning_rate=0.25 never reaches tol=1e-08: it is all but the largest stable step"
    )


def test_steps_that_are_shown_are_stable(question):
    """Four digits are rounded down where rounding up would pass the limit."""
    for factor in np.linspace(1, 2, 23):
        X = question[0] * factor
        found = diagnose(X, question[1])
        shown = float(re.search(r"Largest stable step +(\S+)", str(found)).group(1))
        assert 0.999 * found.max_learning_rate < shown <= found.max_learning_rate
    assert "Largest stable step                0.0003003             1\n" in str(diagnose(*question))


def test_a_penalty_may_make_standardising_the_worse_choice():
    """Small columns under a penalty are as good as absent; of unit spread they are collinear."""
    x = np.random.default_rng(9).normal(size=(100, 2))
    X = 1e-3 * np.column_stack([x[:, 0], x[:, 0] + 1e-2 * x[:, 1]])
    found = diagnose(X, x[:, 0], alpha=1e-2, fit_intercept=False)
    assert found.condition_number < 1.1
    assert any(s.startswith("Leave the columns as they are: standardize=True would bring") for s in found.advice)


def test_a_well_conditioned_descent_has_no_advice():
    X = np.array([[-1.0], [1.0]])
    found = diagnose(X, [0.0, 1.0])
    assert (found.advice, found.blame) == (("Nothing slows this descent down: leave it as it is.",), ())
    assert str(found).splitlines()[0] == "Gradient descent on 2 rows and 1 column, with an intercept"


def test_a_long_list_is_cut_short():
    X = 100 * np.random.default_rng(10).normal(size=(50, 12)) + 1000
    text = str(diagnose(X, X[:, 0], alpha=0.5))
    assert text.count("is of another scale") == 8
    assert "- and 16 more\n" in text
    assert ", alpha=0.5\n" in text


def test_in_a_notebook(homes):
    X, y = homes
    page = diagnose(X.rename(columns={"area": "<area>"}), y)._repr_html_()
    assert "<area>" not in page
    assert "&lt;area&gt;" in page
    assert page.count("<tr>") == 13
    for word in ("Condition number", "times by collinearity", "To blame", "Advice", "standardised"):
        assert word in page


def test_as_plain_types(homes):
    found = diagnose(*homes, learning_rate=1.0)
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["steps"] == "inf"
    assert document["condition_number"] == found.condition_number
    assert document["standardized"]["standardized"] is None
    assert document["standardized"]["steps"] == found.standardized.steps
    assert document["advice"] == list(found.advice)
    assert {"columns", "reason", "value"} == set(document["blame"][0])
    with pytest.raises(AttributeError):
        found.steps = 1


def test_several_outputs_and_sparse(homes):
    import scipy.sparse as sp

    X, y = homes
    found = diagnose(sp.csr_array(X.to_numpy()), np.column_stack([y, -2 * y]))
    assert found.condition_number == pytest.approx(diagnose(X, y).condition_number, rel=1e-6)
    assert isinstance(found, Diagnosis)


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=4),
    st.lists(st.floats(-20, 20), min_size=4, max_size=4),
    st.booleans(),
)
def test_the_factors_multiply_to_the_condition_number(exponents, means, weighted):
    rng = np.random.default_rng(11)
    p = len(exponents)
    X = rng.normal(size=(30, p)) * 10.0 ** np.array(exponents) + means[:p]
    found = diagnose(X, rng.normal(size=30), rng.random(30) if weighted else None)
    assert np.prod(list(found.condition_factors.values())) == pytest.approx(found.condition_number, rel=1e-6)
    assert found.condition_factors["offset"] >= 1 - 1e-9
    assert found.standardized.condition_number == found.condition_factors["collinearity"]
    assert found.best_learning_rate <= found.max_learning_rate
    assert found.standardized.condition_number <= p * found.condition_number / found.condition_factors["offset"] * (
        1 + 1e-9
    )


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        (([[1.0], [2.0]],), {}, TypeError, "diagnose needs y: call diagnose"),
        (([[1.0], [2.0]], [1, 2]), {"tol": None}, ValueError, "tol must be a non-negative number, got None"),
        (([[1.0], [2.0]], [1, 2]), {"tol": -1.0}, ValueError, "tol must be a non-negative number, got -1.0"),
        (([[1.0], [2.0]], [1, 2]), {"learning_rate": 0}, ValueError, "learning_rate must be a positive number"),
        (([[1.0], [2.0]], [1, 2]), {"alpha": -1}, ValueError, "alpha must be a non-negative number"),
        (([[1.0], [np.nan]], [1, 2]), {}, ValueError, "Input X contains NaN"),
        (([[1.0], [2.0]], [1, 2, 3]), {}, ValueError, "inconsistent numbers of samples"),
    ],
)
def test_invalid_arguments_are_refused(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        diagnose(*arguments, **settings)


def test_moments_have_their_own_y():
    moments = Moments.from_arrays([[1.0], [2.0], [4.0]], [1, 2, 3])
    with pytest.raises(TypeError, match="Moments have y and the weights in them"):
        diagnose(moments, [1, 2, 3])
    with pytest.raises(TypeError, match="Moments have y and the weights in them"):
        diagnose(moments, sample_weight=[1, 2, 3])


def test_diagnose_is_public():
    assert fssgd.diagnose is diagnose


@pytest.mark.parametrize("size", [1e-8, 1e-10])
def test_a_direction_that_second_moments_lose_is_looked_for_again(size):
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    found = diagnose(np.column_stack([x, x + size * rng.normal(size=200)]), x + rng.normal(size=200))
    assert found.accurate
    assert found.null_directions == 0
    assert found.condition_number > 0.1 / size**2


def test_what_blames_a_column_does_not_say_that_nothing_is_wrong():
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    found = diagnose(np.column_stack([x, x + 1e-7 * rng.normal(size=200)]), x, standardize=True)
    assert found.blame
    assert not any("Nothing slows" in sentence for sentence in found.advice)
