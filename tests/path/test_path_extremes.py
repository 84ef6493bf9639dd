"""Data at the edge: directions without data, far offsets, units from 1e-140 to 1e140."""

import numpy as np
import pytest
from test_path import check, of

from exact import EPS, Descent, error, question_data
from fssgd import LinearRegressorGD


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("k", [1, 50, 2**80])
def test_null_directions_and_constant_columns_do_not_drift(accurate, k):
    """Columns x, 10 x and a constant: the minimum-norm split in the coordinates of the descent, however many steps."""
    x = np.arange(12.0)
    X, y = np.column_stack([x, 10 * x, np.full(12, 0.1)]), np.sin(x) + x
    path = of(X, y, accurate=accurate)
    check(path, Descent(X, y), k, 100 * EPS)
    assert path.coef(k)[2] == 0.0
    np.testing.assert_allclose(path.coef(np.inf)[0], 10 * path.coef(np.inf)[1], rtol=20 * EPS)


@pytest.mark.parametrize("max_iter", [10**30, 10**400, np.inf], ids=["1e30", "1e400", "inf"])
@pytest.mark.parametrize("tol", [None, 1e-8])
def test_no_number_of_steps_moves_null_directions(max_iter, tol):
    x = np.arange(6.0)
    model = LinearRegressorGD(max_iter=max_iter, tol=tol).fit(np.column_stack([x, x]), np.sin(x))
    slope, level = np.polyfit(x, np.sin(x), 1)
    np.testing.assert_allclose(model.coef_, [slope / 2, slope / 2], rtol=1e-12)
    assert model.loss_ == pytest.approx(((np.sin(x) - slope * x - level) ** 2).mean(), rel=1e-12)
    assert model.path_.loss(max_iter) == pytest.approx(model.loss_, rel=1e-12)
    assert model.path_.gradient_norm(max_iter) == 0.0


@pytest.mark.parametrize("k", [1, 100, 10**6])
@pytest.mark.parametrize("accurate", [False, True])
def test_offsets_of_x_and_y_cost_no_digits(k, accurate):
    """Both far from the origin by numbers that are exact in float64; slopes and F are as without."""
    x = np.arange(0, 40, 0.25)
    X, y = np.column_stack([x, np.round(64 * np.cos(x)) / 64]), np.round(64 * np.sin(x) + 32 * x) / 64
    near, far = (
        of(X, y, accurate=accurate, learning_rate=0.3),
        of(X + 2.0**30, y - 2.0**30, accurate=accurate, learning_rate=0.3),
    )
    # 160 eps of the largest, for sums of as many products; the coefficient of the cosine is a five hundredth of it
    assert error(far.position(k)[:-1], near.position(k)[:-1]) <= len(x) * EPS
    assert far.spectrum.minimum == pytest.approx(near.spectrum.minimum, rel=1e-12)
    right = Descent(X + 2.0**30, y - 2.0**30)
    coef, intercept = right.unscale(right.theta(k, 0.3))
    assert error(far.coef(k), coef[:, 0]) <= 1e-13
    # b is a difference of numbers of size 2^30 |coef|
    assert far.intercept(k) == pytest.approx(intercept[0], abs=20 * EPS * 2.0**30 * (1 + np.abs(coef).sum()))


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_columns_that_are_nearly_equal_do_not_spoil_the_loss(accurate, standardize):
    """F_0 is the mean square of y, though the direction that would explain y is barely in the data."""
    y = np.array([0.0, 1.0, -1.0, 0.0, -1.0, 1.0])
    for gap in np.geomspace(1e-9, 1e-6, 40):
        X = np.array([[1.0, 1.0], [1.0, 1.0 + gap], [1.0, 1.0 - gap]])
        path = of(np.vstack([X, -X]), y, accurate=accurate, standardize=standardize)
        np.testing.assert_allclose(path.loss([0, 1, 50]), 2 / 3, rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("accurate", [False, True])
def test_features_of_mean_zero_and_targets_of_another(fit_intercept, standardize, accurate):
    """Without an intercept nothing explains the mean of y, and F keeps its square."""
    X, y = np.array([[-1.0], [1.0], [-2.0], [2.0]]), np.array([3.0, 4.0, 5.0, 2.0])
    settings = {"fit_intercept": fit_intercept, "standardize": standardize}
    path, right = of(X, y, accurate=accurate, **settings), Descent(X, y, **settings)
    for k in (0, 1, 10):
        check(path, right, k, 1e-14)
        assert path.gcv(k) == pytest.approx(path.loss(k) / (1 - path.degrees_of_freedom(k) / 4) ** 2, rel=1e-12)


@pytest.mark.parametrize("power", [-140, -8, 8, 140])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_scales_of_x(power, standardize, backend):
    X, y = question_data()
    X, y = X[::10] * 10.0**power, y[::10]
    right = Descent(X, y, standardize=standardize)
    for k in (1, 20):
        model = LinearRegressorGD(max_iter=k, tol=None, standardize=standardize, backend=backend).fit(X, y)
        theta = right.theta(k, model.learning_rate_)
        coef, intercept = right.unscale(theta)
        scaled = 1e-12 * float(np.abs(theta).max())  # in the coordinates of the descent theta is right as a whole
        assert abs(model.scaled_coef_[0] - float(theta[0, 0])) <= scaled
        assert abs(model.scaled_intercept_ - float(theta[1, 0])) <= scaled + 4 * EPS * y.mean()
        if standardize:
            assert error(model.coef_, coef[:, 0]) <= 1e-12
            assert error(model.intercept_, intercept[0]) <= 1e-12
        assert model.loss_ == pytest.approx(right.loss(theta), rel=1e-11)


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
@pytest.mark.parametrize(("power_x", "power_y"), [(140, 140), (-140, -140), (140, -140), (-140, 140)])
def test_units_whose_products_leave_float64_are_refused_or_right(power_x, power_y, backend):
    """Raw, the gradient and L F have the units x y and (x y)^2; a descent must not stop for that at step 0."""
    X, y = question_data()
    X, y = X[1::10] - 50.0, y[1::10]
    model, message = LinearRegressorGD(standardize=False, fit_intercept=False, backend=backend), ""
    try:
        model.fit(X * 10.0**power_x, y * 10.0**power_y)
    except ValueError as refused:
        message = str(refused)
    right = X[:, 0] @ y / (X[:, 0] @ X[:, 0])
    assert "float64" in message or model.coef_[0] / 10.0 ** (power_y - power_x) == pytest.approx(right, rel=1e-7)
