"""Cases 33-39 and 46-48 of the field: warm starts, penalty, conditioning, memory, and values of the path."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from cases import column, fitted_values, peak_memory
from exact import EPS
from fssgd import DivergenceError, GradientPath, LinearRegressorGD, Moments


# case 33
@pytest.mark.parametrize("pieces", [(20,), (10, 10), (1, 19), (7, 7, 6), (0, 20)])
def test_case_33_a_warm_start_goes_on(model, pieces):
    X, y = column(-1, 0, 1, 2), np.array([0.0, 1, 4, 5])
    fitted = model(standardize=False, learning_rate=0.1, tol=None, warm_start=True)
    for k in pieces:
        fitted.set_params(max_iter=k).fit(X, y)
    assert_allclose(fitted_values(fitted), [1.8108814260, 1.5818265871], atol=5e-11)  # ten decimals given
    assert fitted.n_iter_ == pieces[-1]


@pytest.mark.parametrize("standardize", [True, False])
def test_case_33_given_starts_are_in_the_units_of_the_user(model, standardize):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)) * [1, 2, 0.5] + 4, rng.normal(size=(20, 2)) - 9
    settings = {"standardize": standardize, "learning_rate": 0.01, "tol": None, "alpha": 0.1}
    ten, twenty = (model(max_iter=k, **settings).fit(X, Y) for k in (10, 20))
    fitted = model(max_iter=10, **settings)
    fitted.fit(X, Y, coef_init=ten.coef_, intercept_init=ten.intercept_)
    assert_allclose(fitted_values(fitted), fitted_values(twenty), rtol=1e-12)
    assert_allclose(fitted.loss_curve_, twenty.loss_curve_[10:], rtol=1e-12)


# case 34: only W is penalised, in the coordinates of the descent; a penalised intercept gives W=4.8933, b=2.16
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("standardize", "expected"), [(False, [2.7333333, 10.8]), (True, [2.05, 12.85])])
def test_case_34_the_intercept_is_not_penalised(model, standardize, expected, offset):
    X, y = column(1, 2, 3, 4, 5), np.add([12, 14, 19, 21, 29], offset)
    fitted = model(alpha=1.0, standardize=standardize, tol=1e-12).fit(X, y)
    assert fitted.converged_
    assert_allclose([fitted.coef_[0], fitted.intercept_ - offset], expected, rtol=2e-8 + 1e-14 * offset)  # eight digits
    penalised = ((fitted.predict(X) - y) ** 2).mean() + fitted.scaled_coef_ @ fitted.scaled_coef_
    assert fitted.loss_ == pytest.approx(penalised, rel=1e-9)


# case 35
def test_case_35_the_loss_curve_begins_at_the_start(model):
    fitted = model(standardize=False, learning_rate=0.1, max_iter=3, tol=None).fit(column(-1, 1), [1.0, 5])
    assert_allclose(fitted.loss_curve_, [13, 8.32, 5.3248, 3.407872], rtol=1e-14)
    assert_allclose(fitted_values(fitted), [0.976, 1.464], rtol=1e-14)
    assert fitted.loss_ == pytest.approx(fitted.loss_curve_[-1], rel=1e-14)
    assert fitted.n_iter_ == 3


@pytest.mark.parametrize("k", [0, 1, 2, 5, 101])
@pytest.mark.parametrize("start", [None, [2.0]])
def test_case_35_entry_i_is_the_loss_at_iterate_i(model, k, start):
    X, y = column(-1, 1, 4), np.array([1.0, 5, 5])
    curve = model(learning_rate=0.1, max_iter=k, tol=None).fit(X, y, coef_init=start).loss_curve_
    assert len(curve) == k + 1
    for i in {0, 1, k // 2, k}:
        if i <= k:
            fitted = model(learning_rate=0.1, max_iter=i, tol=None).fit(X, y, coef_init=start)
            assert curve[i] == pytest.approx(((fitted.predict(X) - y) ** 2).mean(), rel=1e-12)


def test_case_35_a_run_that_converges_ends_its_curve_there(model):
    fitted = model(learning_rate=0.1, tol=1e-6).fit(column(-1, 1, 4), [1.0, 5, 5])
    assert fitted.converged_
    assert len(fitted.loss_curve_) == fitted.n_iter_ + 1
    earlier = {"learning_rate": 0.1, "tol": 1e-6, "max_iter": fitted.n_iter_ - 1}
    with pytest.warns(ConvergenceWarning, match="At this step 1 more are needed"):
        model(**earlier).fit(column(-1, 1, 4), [1.0, 5, 5])


def cars():
    year = np.arange(1990.0, 2021)
    mileage = 200_000 - 6000 * (year - 1990) + 1000 * np.sin(year)
    return np.column_stack([year, mileage]), 1000 + 500 * (year - 1990) - 0.02 * mileage


# case 36
@pytest.mark.parametrize("standardize", [True, False])
def test_case_36_the_limit(standardize):
    X, y = cars()
    path = GradientPath.from_arrays(X, y, standardize=standardize)
    assert_allclose([*path.coef(np.inf), path.intercept(np.inf)], [500, -0.02, -994_000], rtol=1e-8)
    fitted = LinearRegressorGD(max_iter=np.inf, tol=None, standardize=standardize).fit(X, y)
    assert_allclose(fitted_values(fitted), [500, -0.02, -994_000], rtol=1e-8)
    assert fitted.n_iter_ == np.inf


@pytest.mark.steps(100_000)
def test_case_36_a_hundred_thousand_steps_are_not_enough(model):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=100000 .* condition number is 23265\.7\b"):
        fitted = model().fit(*cars())
    assert_allclose(fitted.coef_, [497.416, -0.020431], rtol=2e-5)  # six and five digits given
    assert not fitted.converged_
    assert fitted.n_iter_ == 100_000


# case 37: cond(A) is 1.4e8; a Gram matrix in float64 is singular
@pytest.mark.parametrize("e", [1e-8, 1e-9, 1e-5])
def test_case_37_the_gram_matrix_is_singular(e):
    X, y = np.array([[1, 1], [e, 0], [0, e]]), np.array([2, 2 * e, 0])
    settings = {"standardize": False, "fit_intercept": False}
    digits = 10 * np.finfo(float).eps * np.sqrt(2) / e  # of a QR factorisation
    assert_allclose(GradientPath.from_arrays(X, y, **settings).coef(np.inf), [2, 0], atol=digits)
    assert_allclose(LinearRegressorGD(max_iter=np.inf, tol=None, **settings).fit(X, y).coef_, [2, 0], atol=digits)
    moments = Moments.from_arrays(X[:1], y[:1], accurate=True) + Moments.from_arrays(X[1:], y[1:], accurate=True)
    assert_allclose(GradientPath.from_moments(moments, **settings).coef(np.inf), [2, 0], atol=10 * digits)


# case 38: the minimum norm in the coordinates of the descent
@pytest.mark.parametrize(
    ("factors", "standardize", "expected"),
    [
        ([1, 1], True, [0.5, 0.5]),
        ([1, 10], True, [0.5, 0.05]),
        ([1, -1, 1, 1], True, [0.25, -0.25, 0.25, 0.25]),
        ([1, 1], False, [0.5, 0.5]),
        ([1, 3], False, [0.1, 0.3]),
    ],
)
@pytest.mark.parametrize("shift", [0.0, 2.5])
def test_case_38_collinear_columns(model, factors, standardize, expected, shift):
    x = np.arange(6.0) - shift
    X = x[:, None] * factors
    fitted = model(standardize=standardize, tol=1e-12).fit(X, x)
    assert fitted.converged_
    assert_allclose(fitted.coef_, expected, rtol=1e-8)
    assert_allclose(fitted.predict(X), x, atol=1e-8)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("factor", [1.0, 10.0, 1 / 3])
def test_case_38_collinear_columns_in_the_limit(standardize, factor):
    x = np.arange(6.0)
    path = GradientPath.from_arrays(np.column_stack([x, factor * x]), x, standardize=standardize)
    expected = [0.5, 0.5 / factor] if standardize else np.array([1, factor]) / (1 + factor**2)
    assert_allclose(path.coef(np.inf), expected, rtol=1e-12)
    assert path.intercept(np.inf) == pytest.approx(0, abs=1e-12)


# case 39
@pytest.mark.parametrize("standardize", [True, False])
def test_case_39_memory_is_linear_in_the_number_of_rows(model, standardize):
    n_samples = 1_000_000
    x = np.linspace(-1, 1, n_samples)
    y = 2 * x + 1
    fitted = model(standardize=standardize, learning_rate=0.1, max_iter=5, tol=None)
    peak = peak_memory(lambda: fitted.fit(x[:, None], y))
    assert peak < 12 * 8 * n_samples  # a dozen columns of doubles; n x n would be 8e12
    assert fitted.intercept_ == pytest.approx(1 - 0.8**5, rel=1e-9)


# case 46
X46 = np.column_stack([np.arange(10.0), np.arange(10.0) ** 2])
Y46 = 3 + 2 * X46[:, 0] - 0.1 * X46[:, 1] + [0.5, -0.3, 0.2, -0.1, 0.4, -0.6, 0.1, 0.3, -0.2, -0.3]


@pytest.fixture(params=["from_arrays", "from_moments"])
def path46(request):
    if request.param == "from_arrays":
        return GradientPath.from_arrays(X46, Y46, learning_rate=0.1)
    return GradientPath.from_moments(Moments.from_arrays(X46, Y46), learning_rate=0.1)


def test_case_46_eigenvalues(path46):
    correlation = np.sort(path46.eigenvalues / 2)  # H = 2 C; the intercept adds an eigenvalue of 1
    assert_allclose(correlation, [0.0373092629, 1, 1.9626907371], atol=5e-11)


def test_case_46_iterates(path46):
    assert_allclose(path46.coef(100), [1.2676784037, -0.0257450623], atol=5e-11)
    assert_allclose(path46.coef(np.inf), [1.9441666667, -0.0981060606], atol=5e-11)
    assert path46.loss(np.inf) == pytest.approx(0.1013984848, abs=5e-11)
    assert_allclose(path46.coef([0, 100, np.inf])[1:], [path46.coef(100), path46.coef(np.inf)], rtol=1e-14)


def test_case_46_degrees_of_freedom(path46):
    assert_allclose(path46.degrees_of_freedom([1, 10, 100]), [0.6, 1.9579458777, 2.5271528751], atol=5e-11)
    assert_allclose(path46.degrees_of_freedom([0, np.inf]), [0, 3], atol=1e-12)


def test_case_46_gcv(path46):
    assert_allclose(path46.gcv([1, 10, 100]), [65.7266795743, 3.3270977136, 0.6860621482], atol=5e-11)
    scores = path46.gcv(np.arange(5000))
    assert np.argmin(scores) == 596
    assert scores[596] == pytest.approx(0.2065963887, abs=5e-11)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_case_46_degrees_of_freedom_of_a_penalised_limit(accurate, standardize):
    moments = Moments.from_arrays(X46, Y46, accurate=accurate)
    path = GradientPath.from_moments(moments, alpha=1.0, standardize=standardize)
    freedom = path.degrees_of_freedom(10**6)
    assert freedom == pytest.approx(np.trace(hat_matrix(X46, standardize, alpha=1.0)), rel=1e-9)
    if standardize:  # the filter factors alone would give 3
        assert freedom == pytest.approx(1.698, abs=5e-4)


def hat_matrix(X, standardize, alpha):
    """What takes y to the fitted values of the limit, from the normal equations."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    A = np.hstack([Z, np.ones((len(X), 1))])
    penalty = alpha * np.diag([1.0] * X.shape[1] + [0.0])
    return A @ np.linalg.solve(A.T @ A / len(X) + penalty, A.T / len(X))


WEIGHT46 = np.array([1, 2, 0, 1, 1, 3, 1, 0.5, 1, 2])


# the trace of the matrix that takes y to the fitted values, column by column: y = unit vectors, as so many outputs
@pytest.mark.parametrize("k", [0, 1, 2, 10, 100])
@pytest.mark.parametrize("weight", [None, WEIGHT46])
@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.1},
        {"learning_rate": 0.1, "alpha": 1.0},
        {"learning_rate": 0.1, "fit_intercept": False, "alpha": 0.1},
        {"standardize": False, "learning_rate": 1e-4},
        {"standardize": False, "alpha": 1.0},
        {"learning_rate": 0.5, "alpha": 0.01},
    ],
)
def test_case_46_degrees_of_freedom_and_gcv_by_brute_force(model, k, weight, settings):
    smoother = model(max_iter=k, tol=None, **settings).fit(X46, np.eye(10), sample_weight=weight).predict(X46)
    shares = np.ones(10) if weight is None else weight
    error = np.average((Y46 - smoother @ Y46) ** 2, weights=shares)
    freedom = np.trace(smoother)
    for path in (
        GradientPath.from_arrays(X46, Y46, weight, **settings),
        GradientPath.from_moments(Moments.from_arrays(X46, Y46, weight), **settings),
    ):
        assert path.degrees_of_freedom(k) == pytest.approx(freedom, rel=1e-10, abs=1e-12)
        score = error / (1 - freedom / np.count_nonzero(shares)) ** 2
        assert path.gcv(k) == pytest.approx(score, rel=1e-8)


# case 47: b has further to travel, and everything else stays
@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.01, "tol": 1e-6}])
def test_case_47_the_offset_of_y(model, question, offset, settings):
    X, y = question
    base, moved = model(**settings).fit(X, y), model(**settings).fit(X, y + offset)
    assert moved.converged_
    assert moved.loss_ == pytest.approx(base.loss_, rel=1e-6)
    assert moved.coef_[0] == pytest.approx(base.coef_[0], rel=1e-6)
    # tol G / h, G = 56 and h = 2, is what either may be away from the limit
    assert moved.intercept_ - offset == pytest.approx(base.intercept_, abs=1e-6 + 56 * moved.tol)


@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_case_47_the_offset_of_y_in_raw_coordinates(question, offset):
    X, y = question
    base, moved = (LinearRegressorGD(standardize=False, max_iter=np.inf, tol=None).fit(X, t) for t in (y, y + offset))
    assert moved.loss_ == pytest.approx(base.loss_, rel=1e-6)
    assert moved.coef_[0] == pytest.approx(base.coef_[0], rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 5.0, 1e6])
@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.1}, {"standardize": False, "learning_rate": 0.1}])
def test_case_47_y_orthogonal_to_every_column(model, offset, settings):
    X, y = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1.0]]), np.array([1, -1, -1, 1.0])
    fitted = model(**settings).fit(X, y + offset)
    assert fitted.converged_
    assert fitted.n_iter_ < 1000
    assert_allclose([*fitted.coef_, fitted.intercept_ - offset], [0, 0, 0], atol=1e-12 + 1e-15 * offset)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("standardize", [True, False])
def test_case_47_y_orthogonal_to_rounding(model, offset, standardize):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    span = np.linalg.qr(np.column_stack([np.ones(200), X]))[0]
    fitted = model(standardize=standardize).fit(X, y - span @ (span.T @ y) + offset)
    assert fitted.converged_
    assert fitted.n_iter_ < 2000
    # without a scale the descent starts ``offset`` away, and the six eigenvectors that lead it back are orthogonal to
    # 6 eps each
    assert_allclose(fitted.coef_, np.zeros(5), atol=1e-12 + 36 * EPS * offset)


EXACT = {
    "line": (np.arange(100.0)[:, None], 0.1 * np.arange(100.0) + 0.3),
    "lonely": (column(1, 2, 3, 4, 35), np.array([0.0, -1, -2, -3, -34])),
    "plane": (np.array([[0, 2e3], [1, 1e3], [2, 3e3], [3, 5e3]]), np.array([4.002, 5.001, 6.003, 7.005]) + 1e6),
    "collinear": (np.outer(np.arange(6.0), [1, 1, 3]), np.arange(6.0)),
    "cars": cars(),
    "zero": (column(1, 2, 5), np.zeros(3)),
}


# case 48: the computed loss wobbles around 1e-30, and may rise by a large part of itself
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("share", [1.0, 1.9, 1.999])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_case_48_no_false_divergence(model, step_budget, name, share, standardize, dtype):
    X, y = EXACT[name]
    X = X.astype(dtype)
    largest = GradientPath.from_moments(Moments.from_arrays(X, y), standardize=standardize).eigenvalues.max()
    steps = int(min(20_000, step_budget / 20))
    fitted = model(learning_rate=share / largest, standardize=standardize, max_iter=steps, tol=None).fit(X, y)
    assert np.isfinite(fitted_values(fitted)).all()
    assert fitted.loss_ <= fitted.loss_curve_[0]


def first_risen(backend, X, y, **settings):
    with pytest.raises(DivergenceError, match="by step") as caught:
        LinearRegressorGD(backend=backend, max_iter=100_000, **settings).fit(X, y)
    return caught.value.n_iter


@pytest.mark.parametrize("name", ["line", "lonely", "plane", "collinear", "cars"])
@pytest.mark.parametrize("share", [2.001, 2.1])
@pytest.mark.parametrize("standardize", [True, False])
def test_case_48_every_backend_stops_an_unstable_step_alike(backend, name, share, standardize):
    X, y = EXACT[name]
    largest = GradientPath.from_arrays(X, y, standardize=standardize).eigenvalues.max()
    settings = {"learning_rate": share / largest, "standardize": standardize}
    stopped = first_risen(backend, X, y, **settings)
    assert abs(stopped - first_risen("spectral", X, y, **settings)) <= 3


HUGE = pytest.param(10**400, id="1e400")  # no float holds it


@pytest.mark.parametrize("k", [10**3, 10**6, 10**6 + 1, 10**20, HUGE])
@pytest.mark.parametrize("quantity", ["coef", "intercept", "loss", "gradient_norm", "degrees_of_freedom"])
def test_case_48_an_unstable_step_grows_without_nan(k, quantity):
    path = GradientPath.from_arrays(X46, Y46, learning_rate=1.2)
    assert np.all(np.abs(getattr(path, quantity)(k)) > 1e100)


@pytest.mark.parametrize("k", [2**63, 10**30, HUGE])
def test_max_iter_may_be_as_large_as_one_likes(model, k):
    fitted = model(max_iter=k, learning_rate=0.1, tol=1e-6).fit(X46, Y46)
    assert fitted.converged_
    assert_allclose(fitted.coef_, [1.9441666667, -0.0981060606], rtol=1e-4)  # tol G / h_min


@pytest.mark.parametrize("k", [2**63, 10**30, HUGE])
@pytest.mark.parametrize("standardize", [True, False])
def test_exactly_as_many_steps_as_one_likes(k, standardize):
    fitted = LinearRegressorGD(max_iter=k, tol=None, standardize=standardize).fit(X46, Y46)
    assert fitted.n_iter_ == k
    assert_allclose(fitted.coef_, [1.9441666667, -0.0981060606], atol=5e-10)
