"""Cases 11-20 of the field: scaling and unscaling."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from cases import column, fitted_values
from fssgd import LinearRegressorGD

CONVERGED = {"tol": 1e-12}  # on data of a condition number below 1e4: right to 1e-8, relative to W and b


# case 11: b = ybar - mean @ W, in the user's units
@pytest.mark.parametrize("offset", [0, 100, -1e6])
@pytest.mark.parametrize("unit", [1, 1e-3, 1e6])
def test_case_11_the_intercept_is_unscaled(model, offset, unit):
    x = unit * (np.arange(1.0, 6) + offset)
    fitted = model(**CONVERGED).fit(x[:, None], [12, 14, 19, 21, 29])
    assert fitted.coef_[0] == pytest.approx(4.1 / unit, rel=1e-9)
    assert fitted.intercept_ == pytest.approx(6.7 - 4.1 * offset, rel=1e-9)
    assert fitted.mean_[0] == pytest.approx(unit * (3 + offset), rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(unit * np.sqrt(2), rel=1e-9)


@pytest.mark.parametrize("standardize", [True, False])
def test_case_11_scaled_and_unscaled_values_say_the_same(model, standardize):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)) * [1, 2, 4] + [3, 0, -5], rng.normal(size=30)
    fitted = model(standardize=standardize, max_iter=7, tol=None).fit(X, y)
    scaled = (X - fitted.mean_) / fitted.scale_
    assert_allclose(fitted.predict(X), scaled @ fitted.scaled_coef_ + fitted.scaled_intercept_, rtol=1e-12)
    if not standardize:
        assert_allclose(fitted.mean_, np.zeros(3), atol=0)
        assert_allclose(fitted.scale_, np.ones(3), atol=0)


# case 12: the computed standard deviation of a constant column need not be 0
@pytest.mark.parametrize("constant", [14.62, 0.1, 1 / 3, -1e9 - 0.1, 1e-12, 0.0])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, np.float32])
@pytest.mark.parametrize("n_samples", [50, 4099])
def test_case_12_a_constant_column_has_scale_1(model, constant, container, n_samples):
    x = np.arange(float(n_samples))
    X = container(np.column_stack([np.full(n_samples, constant), x]))
    fitted = model(**CONVERGED).fit(X, 2 * x + 1)
    assert fitted.scale_[0] == 1
    assert fitted.mean_[0] == X[[0], :][0, 0]
    assert fitted.coef_[0] == 0
    digits = 1e-5 if X.dtype == np.float32 else 1e-9
    assert fitted.coef_[1] == pytest.approx(2, rel=digits)
    assert fitted.intercept_ == pytest.approx(1, abs=digits * n_samples)


# case 13
@pytest.mark.parametrize("unit", [1e-9, 1e-30, 1e-140, 1e140])
def test_case_13_small_is_not_constant(model, unit):
    fitted = model(**CONVERGED).fit(column(1, 2, 3, 4) * unit, [2, 4, 6, 8])
    assert fitted.coef_[0] == pytest.approx(2 / unit, rel=1e-9)
    assert fitted.intercept_ == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gap", [1e-9, 1e-12, 1e-15])
def test_case_13_nearly_equal_is_not_constant(model, gap, container):
    X = 1 + column(1, 2, 3, 4) * gap  # rounded, by as much as its own spread for the smallest gap
    y = 2 + 3 * (X[:, 0] - 1) / gap
    fitted = model(**CONVERGED).fit(container(X), y)
    assert fitted.scale_[0] == pytest.approx(X.std(), rel=np.finfo(float).eps / gap + 1e-12)
    assert_allclose(fitted.predict(X), y, atol=20 * np.finfo(float).eps / gap)


# case 14
@pytest.mark.parametrize("constant", [5, 0, 14.62])
def test_case_14_predicting_off_the_constant(model, constant):
    fitted = model(**CONVERGED).fit([[constant, 0], [constant, 1], [constant, 2]], [1, 3, 5])
    assert fitted.predict([[7, 1]])[0] == pytest.approx(3, rel=1e-9)


# case 15
@pytest.mark.parametrize("constants", [[1, 2], [0, 0], [0.1, -7e5, 3]])
@pytest.mark.parametrize("sparse", [False, True])
def test_case_15_several_constant_columns(model, constants, sparse):
    x = np.arange(6.0)
    X = np.column_stack([*(np.full(6, c) for c in constants), x])
    fitted = model(**CONVERGED).fit(sp.csr_array(X) if sparse else X, 2 * x + 1)
    assert_allclose(fitted.coef_, [0] * len(constants) + [2], rtol=1e-9)
    assert fitted.intercept_ == pytest.approx(1, rel=1e-9)


# case 16: raw from zeros, c W + b = 10 is split as the minimum norm has it
@pytest.mark.parametrize("constant", [1.0, 2.0, -0.5])
def test_case_16_a_constant_column_beside_the_intercept(model, constant):
    x = np.array([-1.0, 0, 1, 2])
    X, y = np.column_stack([np.full(4, constant), x]), 10 + 7 * x
    fitted = model(**CONVERGED).fit(X, y)
    assert_allclose(fitted_values(fitted), [0, 7, 10], rtol=1e-9, atol=1e-12)
    raw = model(standardize=False, **CONVERGED).fit(X, y)
    share = 10 / (1 + constant**2)
    assert_allclose(fitted_values(raw), [constant * share, 7, share], rtol=1e-9)


# case 17: the population standard deviation, ddof = 0
def test_case_17_ten_steps(model):
    fitted = model(learning_rate=0.1, max_iter=10, tol=None).fit(column(1, 2, 3, 4), [3, 5, 7, 9])
    assert_allclose(fitted_values(fitted), [1.7852516, 0.8926258], atol=5e-8)  # eight digits given
    assert fitted.scale_[0] == pytest.approx(np.sqrt(1.25), rel=1e-15)
    # each of W and b closes a fifth of its gap a step
    assert_allclose(fitted_values(fitted), np.array([2, 1]) * (1 - 0.8**10), rtol=1e-14)


# case 18
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_case_18_mean_and_scale_are_weighted(model, container):
    x, weight = np.arange(4.0), np.array([1, 1, 1, 3])
    y = np.array([1.0, 0, 2, 5])
    fitted = model(max_iter=5, tol=None).fit(container(x[:, None]), y, sample_weight=weight)
    assert fitted.mean_[0] == pytest.approx(2, rel=1e-15)
    assert fitted.scale_[0] == pytest.approx(1.1547005384, rel=1e-10)
    repeated = model(max_iter=5, tol=None).fit(container(np.repeat(x, weight)[:, None]), np.repeat(y, weight))
    assert_allclose(fitted.coef_, repeated.coef_, rtol=1e-13)
    assert fitted.intercept_ == pytest.approx(repeated.intercept_, rel=1e-13)
    assert fitted.loss_ == pytest.approx(repeated.loss_, rel=1e-13)


def far_batches():
    x = np.r_[np.arange(10.0), np.arange(1000.0, 1010)]
    return [(part[:, None], 2 * part + 1) for part in np.split(x, 2)]


# case 19: partial_fit has no rows to step over, so that every backend uses the closed form
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.filterwarnings("ignore:Rounding of the second moments")  # the second batch alone, raw: cond(H) is 1e11
@pytest.mark.parametrize("standardize", [True, False])
def test_case_19_batches_far_apart(model, reverse, standardize):
    fitted = model(standardize=standardize, max_iter=np.inf, tol=None)
    for X, y in reversed(far_batches()) if reverse else far_batches():
        fitted.partial_fit(X, y)
    assert_allclose(fitted_values(fitted), [2, 1], rtol=1e-8)  # raw, cond(H) is 1e6
    assert fitted.backend_ == "spectral"


@pytest.mark.parametrize("k", [0, 1, 3, 50])
def test_case_19_weights_of_two_scalings_are_never_mixed(model, k):
    batches, settings = far_batches(), {"learning_rate": 0.1, "max_iter": k, "tol": None}
    incremental = model(**settings)
    for batch in batches:
        incremental.partial_fit(*batch)
    at_once = model(**settings).fit(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))
    assert_allclose(incremental.coef_, at_once.coef_, rtol=1e-12)
    assert incremental.intercept_ == pytest.approx(at_once.intercept_, rel=1e-12)
    # moments know F to rounding of the variance of y, here 1e6
    assert incremental.loss_ == pytest.approx(at_once.loss_, rel=1e-12, abs=1e-8)


# case 20
@pytest.mark.parametrize("standardize", [True, False])
def test_case_20_warm_twice_equals_once(model, standardize):
    x = np.arange(10.0)
    X, y = np.column_stack([np.full(10, 5.0), x]), 2 * x + 1
    once = model(standardize=standardize).fit(X, y)
    twice = model(standardize=standardize, warm_start=True).fit(X, y).fit(X, y)
    assert twice.n_iter_ == 0
    assert_allclose(twice.coef_, once.coef_, rtol=1e-14)
    assert twice.intercept_ == pytest.approx(once.intercept_, rel=1e-14)


@pytest.mark.parametrize("n_outputs", [None, 2])
@pytest.mark.parametrize("standardize", [True, False])
def test_case_20_a_warm_start_is_re_expressed_in_the_new_scale(model, standardize, n_outputs):
    rng = np.random.default_rng(0)
    shape = 20 if n_outputs is None else (20, n_outputs)
    X, y = rng.normal(size=(20, 2)) * [1, 10] + [0, 50], rng.normal(size=shape) + 7
    other_X, other_y = 3 * X - 40, y - 1e3
    fitted = model(max_iter=25, tol=None, warm_start=True, standardize=standardize).fit(X, y)
    expected = fitted.predict(other_X)
    fitted.set_params(max_iter=0).fit(other_X, other_y)
    assert_allclose(fitted.predict(other_X), expected, rtol=1e-11)
    errors = (fitted.predict(other_X) - other_y) ** 2
    assert fitted.loss_ == pytest.approx(errors.mean(axis=0).sum(), rel=1e-11)


def test_case_20_a_column_that_stops_being_constant(model):
    x = np.arange(10.0)
    fitted = model(warm_start=True).fit(np.column_stack([np.full(10, 5.0), x]), 2 * x + 1)
    X = np.column_stack([x % 3, x])
    fitted.set_params(**CONVERGED).fit(X, 2 * x + 1 - 4 * X[:, 0])
    assert_allclose(fitted_values(fitted), [-4, 2, 1], rtol=1e-8)


def test_case_20_another_number_of_columns_is_refused(model):
    fitted = model(warm_start=True).fit(column(1, 2, 3), [1, 2, 4])
    with pytest.raises(ValueError, match=r"warm_start cannot continue from 1 features .* 2 .*warm_start=False"):
        fitted.fit([[1, 2], [2, 1], [3, 3]], [1, 2, 4])


def test_settings_are_read_at_fit_and_left_alone(backend):
    settings = {"learning_rate": "auto", "max_iter": 5, "tol": None, "backend": backend}
    fitted = LinearRegressorGD(**settings).fit(column(1, 2, 3), [1, 2, 4])
    assert {name: getattr(fitted, name) for name in settings} == settings
