"""What the pictures show: labels, scales, series, and that their values are those of the descent."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from exact import seed
from fssgd import (
    CoefficientPathDisplay,
    DescentPathDisplay,
    GradientPath,
    LearningRateDisplay,
    LinearRegressorGD,
    LossCurveDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DISPLAYS = (CoefficientPathDisplay, DescentPathDisplay, LearningRateDisplay, LossCurveDisplay)
RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(60, 4)) @ np.diag([1.0, 2.0, 0.5, 3.0]) + [0.0, 1.0, 2.0, -1.0]
TARGET = WIDE @ [1.0, -2.0, 3.0, 0.5] + RNG.normal(size=60)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def raw(question):
    return GradientPath.from_arrays(*question, learning_rate=1e-4, standardize=False)


@pytest.fixture
def standardised(question):
    return GradientPath.from_arrays(*question, learning_rate=0.1)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def value_at(display, k, values):
    return np.asarray(values)[np.flatnonzero(display.steps == k)[0]]


# what all of them have in common


@pytest.mark.parametrize("display", DISPLAYS)
def test_an_estimator_must_be_fitted(display):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        display.from_estimator(LinearRegressorGD())


@pytest.mark.parametrize("display", [CoefficientPathDisplay, DescentPathDisplay, LearningRateDisplay])
def test_a_stepping_fit_has_no_path_to_draw(display, question):
    model = LinearRegressorGD(backend="numpy").fit(*question)
    with pytest.raises(ValueError, match=rf"{display.__name__} draws .* keeps none: fit it with backend='spectral'"):
        display.from_estimator(model)


@pytest.mark.parametrize("display", DISPLAYS)
def test_axes_that_are_given_are_used(display, question):
    model = LinearRegressorGD(learning_rate=0.1).fit(*question)
    figure, (left, right) = plt.subplots(1, 2)
    drawn = display.from_estimator(model, ax=right)
    assert drawn.ax_ is right
    assert drawn.figure_ is figure
    assert right.lines
    assert not left.lines
    again = drawn.plot()
    assert again is drawn
    assert drawn.figure_ is not figure


@pytest.mark.parametrize("display", DISPLAYS)
def test_the_data_are_those_given_at_construction(display, question):
    """As scikit-learn has it: a display can be made from its own attributes."""
    drawn = display.from_estimator(LinearRegressorGD(learning_rate=0.1).fit(*question))
    given_ones = {name: value for name, value in vars(drawn).items() if not name.endswith("_")}
    copy = display(**given_ones)
    assert vars(copy) == given_ones
    line = "lines_" if display is CoefficientPathDisplay else "line_"
    first, second = (np.ravel(getattr(d, line))[0].get_xydata() for d in (drawn, copy.plot()))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_missing_matplotlib_is_named(display, question, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    model = LinearRegressorGD().fit(*question)
    with pytest.raises(ImportError, match=rf"{display.__name__} needs matplotlib .*pip install 'fssgd\[cli\]'"):
        display.from_estimator(model)


@pytest.mark.parametrize("display", [CoefficientPathDisplay, DescentPathDisplay])
def test_several_outputs_are_refused(display):
    path = GradientPath.from_arrays(WIDE[:, :1], np.c_[TARGET, -TARGET])
    with pytest.raises(ValueError, match="draws one output, and this descent has 2: fit y one column at a time"):
        display.from_path(path)


@pytest.mark.parametrize("display", [CoefficientPathDisplay, DescentPathDisplay, LossCurveDisplay])
@pytest.mark.parametrize("max_iter", [0, -1, 2.5, True, "many", 10**16])
def test_the_last_step_is_a_number_of_steps(display, max_iter, standardised):
    with pytest.raises(ValueError, match="max_iter must be an integer from 1 to 1e"):
        display.from_path(standardised, max_iter=max_iter)


def test_a_divergent_descent_needs_max_iter(question):
    path = GradientPath.from_arrays(*question, learning_rate=1.5)
    with pytest.raises(ValueError, match="does not settle: pass the last step to draw"):
        LossCurveDisplay.from_path(path)
    assert LossCurveDisplay.from_path(path, max_iter=5).steps[-1] == 5


# LossCurveDisplay


def test_losses_are_those_of_exact_arithmetic(raw):
    display = LossCurveDisplay.from_path(raw, max_iter=100_000, name="raw")
    x, y = display.line_.get_data()
    long, short = seed("question_1e5_steps"), seed("question_1e3_steps")
    for k, loss in ((0, long["initial_loss"]), (1_000, short["loss"]), (100_000, long["loss"])):
        assert y[x == k] == pytest.approx(loss, rel=1e-12)
    ax = display.ax_
    assert ax.get_xlabel() == "step k (count)"
    assert ax.get_ylabel() == "mean squared error (squared units of y)"
    assert (ax.get_xscale(), ax.get_yscale()) == ("symlog", "log")
    assert legend_of(ax) == ["raw"]


def test_the_excess_loss_is_what_is_above_the_minimum(raw, standardised):
    display = LossCurveDisplay.from_path(raw, max_iter=100_000, excess=True, name="raw")
    least = seed("answer2_standardized_1e2_steps")["loss"]
    x, y = display.line_.get_data()
    assert y[x == 1_000] == pytest.approx(seed("question_1e3_steps")["loss"] - least, rel=1e-10)
    assert y[-1] == pytest.approx(seed("question_1e5_steps")["loss"] - least, rel=1e-7)
    assert display.ax_.get_ylabel() == "mean squared error\nabove its minimum (squared units of y)"
    second = LossCurveDisplay.from_path(standardised, max_iter=200, excess=True, name="scaled", ax=display.ax_)
    assert legend_of(display.ax_) == ["raw", "scaled"]
    assert second.line_.get_color() != display.line_.get_color()
    # 0.64 a step, down to eps of what it was, and no lower
    y = second.line_.get_ydata()
    assert_allclose(y[:50], y[0] * 0.64 ** np.arange(50), rtol=1e-10)
    assert y[-1] == pytest.approx(y[0] * np.finfo(float).eps)
    assert second.excess_loss[-1] < 1e-30 * y[0]
    assert display.ax_.get_ylim()[0] < y[-1]


def test_a_stepping_fit_shows_what_it_recorded(question):
    model = LinearRegressorGD(learning_rate=0.1, max_iter=700, tol=None, backend="numpy").fit(*question)
    display = LossCurveDisplay.from_estimator(model, max_iter=600)
    assert (display.steps[0], display.steps[-1]) == (0, 600)
    np.testing.assert_array_equal(display.line_.get_ydata(), model.loss_curve_[display.steps])
    assert legend_of(display.ax_) == ["numpy"]
    with pytest.raises(ValueError, match="max_iter=701 is not among the 700 steps that backend 'numpy' took"):
        LossCurveDisplay.from_estimator(model, max_iter=701)
    with pytest.raises(ValueError, match=r"max_iter=2\.5 is not among the 700 steps"):
        LossCurveDisplay.from_estimator(model, max_iter=2.5)
    with pytest.raises(ValueError, match="known after a closed-form fit only: use backend='spectral'"):
        LossCurveDisplay.from_estimator(model, excess=True)


def test_a_closed_form_fit_shows_any_step(question):
    model = LinearRegressorGD(alpha=0.5, learning_rate=0.1).fit(*question)
    display = LossCurveDisplay.from_estimator(model, max_iter=10**12, name="ridge")
    assert display.steps[-1] == 10**12
    with pytest.raises(ValueError, match="max_iter must be an integer from 1"):
        LossCurveDisplay.from_estimator(model, max_iter=0)
    assert display.line_.get_ydata()[-1] == pytest.approx(model.path_.loss(np.inf))
    assert display.ax_.get_ylabel() == "mean squared error + penalty (squared units of y)"
    assert legend_of(display.ax_) == ["ridge"]
    assert LossCurveDisplay.from_estimator(model).steps[-1] == model.n_iter_


def test_a_loaded_model_has_no_losses(question, tmp_path):
    LinearRegressorGD().fit(*question).save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="found no losses in this LinearRegressorGD, as one loaded from a file"):
        LossCurveDisplay.from_estimator(LinearRegressorGD.load(tmp_path / "model.json"))


@pytest.mark.parametrize("backend", ["spectral", "numpy"])
def test_a_fit_of_no_steps_and_one_without_end(backend, question):
    none = LinearRegressorGD(max_iter=0, tol=None, backend=backend).fit(*question)
    assert LossCurveDisplay.from_estimator(none).loss[0] == pytest.approx(5668.106069722324)
    endless = LinearRegressorGD(max_iter=np.inf, tol=None, learning_rate=0.1).fit(*question)
    assert LossCurveDisplay.from_estimator(endless).steps[-1] == endless.path_.steps_to(1e-8)


def test_an_exact_fit_can_be_drawn():
    """Its loss is exactly 0 from the first step on, which a logarithm does not have."""
    display = LossCurveDisplay.from_path(GradientPath.from_arrays([[1.0], [2.0]], [0.0, 0.0]), max_iter=3)
    display.figure_.canvas.draw()
    assert display.ax_.get_yscale() == "linear"


# DescentPathDisplay


def test_iterates_are_those_of_exact_arithmetic(raw, standardised):
    display = DescentPathDisplay.from_path(raw, max_iter=100_000)
    assert_allclose(value_at(display, 0, display.iterates), [0.0, 0.0], atol=1e-14)
    for name, k in (("question_1e3_steps", 1_000), ("question_1e5_steps", 100_000)):
        right = seed(name)
        assert_allclose(value_at(display, k, display.iterates), [right["coef"], right["intercept"]], rtol=1e-11)
    limit = seed("least_squares_limit")
    assert_allclose(display.minimum, [limit["coef"], limit["intercept"]], rtol=1e-11)
    scaled, right = DescentPathDisplay.from_path(standardised, max_iter=100), seed("answer2_standardized_1e2_steps")
    assert_allclose(scaled.iterates[-1], [right["scaled_coef"], right["scaled_intercept"]], rtol=1e-11)
    np.testing.assert_array_equal(scaled.line_.get_xydata(), scaled.iterates)
    powers = [value_at(scaled, k, scaled.iterates) for k in (0, 1, 10, 100)]
    np.testing.assert_array_equal(scaled.points_.get_xydata(), powers)


def test_contours_are_those_of_the_mean_squared_error(question, raw):
    X, y = question
    display = DescentPathDisplay.from_path(raw, max_iter=1_000)
    least = seed("answer2_standardized_1e2_steps")["loss"]
    for i, j in ((0, 0), (17, 200), (240, 100), (120, 120)):
        loss = ((X[:, 0] * display.first[j] + display.second[i] - y) ** 2).mean()
        assert display.excess_loss[i, j] == pytest.approx(loss - least, rel=1e-9, abs=1e-8)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.3]))
def test_the_plane_goes_through_the_minimum(number, standardize, alpha):
    """By brute force: the other coordinates of theta are at the minimum, the loss is what the data say."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(20, 3)) * rng.uniform(0.3, 3.0, 3) + rng.normal(size=3)
    y = rng.normal(size=20) + 5.0
    path = GradientPath.from_arrays(X, y, standardize=standardize, alpha=alpha)
    display = DescentPathDisplay.from_path(path, max_iter=50, coordinates=("x2", "intercept"), colorbar=False)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    A = np.c_[Z, np.ones(20)]
    penalty = alpha * np.diag([1.0, 1.0, 1.0, 0.0])
    theta = np.linalg.solve(A.T @ A / 20 + penalty, A.T @ y / 20)
    assert_allclose(display.minimum, theta[[2, 3]], rtol=1e-9)

    def loss(theta):
        return ((A @ theta - y) ** 2).mean() + theta @ penalty @ theta

    moved = theta.copy()
    moved[[2, 3]] = display.first[30], display.second[200]
    assert display.excess_loss[200, 30] == pytest.approx(loss(moved) - loss(theta), rel=1e-8)
    plt.close("all")


def test_raw_contours_are_elongated_and_standardised_ones_are_round(raw, standardised):
    """On axes of one scale, over windows of one shape; the same levels make them comparable."""
    figure, axes = plt.subplots(1, 2)
    levels = 10.0 ** np.arange(-1, 7)
    panels = [
        DescentPathDisplay.from_path(path, max_iter=last, ax=ax, levels=levels, colorbar=False)
        for path, last, ax in zip((raw, standardised), (100_000, 100), axes, strict=True)
    ]
    assert len(figure.axes) == 2
    for display in panels:
        ax = display.ax_
        assert ax.get_aspect() == 1.0
        assert np.ptp(ax.get_xlim()) == pytest.approx(np.ptp(ax.get_ylim()))
        np.testing.assert_array_equal(display.contour_.levels, levels)
        middle = display.excess_loss[120, :], display.excess_loss[:, 120]
        ratio = middle[0][[0, -1]] / middle[1][[0, -1]]
        assert_allclose(ratio, 3328.5842 if display is panels[0] else 1.0, rtol=1e-4)  # mean of x^2, and of z^2
    assert panels[0].ax_.get_xlabel() == "W (units of y per unit of x)"
    assert panels[1].ax_.get_xlabel() == "W (units of y per standard deviation of x)"
    assert panels[0].ax_.get_ylabel() == panels[1].ax_.get_ylabel() == "b (units of y)"


def test_steps_are_labelled_and_the_colorbar_has_a_title(standardised):
    display = DescentPathDisplay.from_path(standardised, max_iter=100)
    assert {text.get_text() for text in display.ax_.texts} == {"0", "1", "10", "100"}
    bar = display.figure_.axes[1]
    assert bar.get_ylabel() == "loss above its minimum (squared units of y)"
    display.figure_.canvas.draw()


def test_two_columns_can_be_chosen():
    path = GradientPath.from_arrays(WIDE, TARGET)
    display = DescentPathDisplay.from_path(path, max_iter=20, coordinates=(1, "x3"))
    assert display.ax_.get_xlabel() == "W of x1 (units of y per standard deviation of x)"
    assert display.ax_.get_ylabel() == "W of x3 (units of y per standard deviation of x)"
    right = path.coef(20)[[1, 3]] * WIDE.std(axis=0)[[1, 3]]
    assert_allclose(display.iterates[-1], right, rtol=1e-10)


@pytest.mark.parametrize("coordinates", [("x0",), ("x0", "x0"), ("x0", "x9"), (0, 5), ("x0", "x1", "x2"), (0, -1)])
def test_coordinates_are_two_of_the_descent(coordinates):
    path = GradientPath.from_arrays(WIDE, TARGET)
    with pytest.raises(ValueError, match=r"coordinates=.* are not two different ones of 'x0', .*'intercept'"):
        DescentPathDisplay.from_path(path, coordinates=coordinates)


def test_a_plane_has_two_coordinates(question):
    with pytest.raises(ValueError, match=r"has 5 coordinates: choose two of 'x0', 'x1', 'x2', 'x3', 'intercept'"):
        DescentPathDisplay.from_path(GradientPath.from_arrays(WIDE, TARGET))
    with pytest.raises(ValueError, match="draws a plane, and this descent has one coordinate: fit an intercept"):
        DescentPathDisplay.from_path(GradientPath.from_arrays(*question, fit_intercept=False))


def test_a_descent_that_leaves_the_plane_is_refused(question):
    path = GradientPath.from_arrays(*question, learning_rate=1.5)
    assert DescentPathDisplay.from_path(path, max_iter=10).iterates.shape == (11, 2)
    with pytest.raises(ValueError, match="leave the range of float64: draw fewer of them"):
        DescentPathDisplay.from_path(path, max_iter=100_000)


# LearningRateDisplay


def test_steps_are_those_a_fit_takes(question):
    X, y = WIDE[:, :2], TARGET
    rates = [0.02, 0.1, 0.3]
    display = LearningRateDisplay.from_estimator(LinearRegressorGD().fit(X, y), tol=1e-5, learning_rates=rates)
    for rate, n_iter in zip(*display.line_.get_data(), strict=True):
        fitted = LinearRegressorGD(learning_rate=rate, tol=1e-5, backend="numpy").fit(X, y)
        assert n_iter == fitted.n_iter_


def test_the_marks_are_where_the_eigenvalues_put_them(raw):
    display = LearningRateDisplay.from_path(raw, tol=1e-6)
    smallest, largest = seed("question_1e5_steps")["hessian_eigenvalues"]
    places = [line.get_xdata()[0] for line in display.lines_]
    assert_allclose(places, [1 / largest, 2 / (largest + smallest), 2 / largest], rtol=1e-10)
    assert display.learning_rates[-1] == pytest.approx(seed("question_1e5_steps")["max_stable_learning_rate"])
    assert display.n_iter[-1] == np.inf
    assert np.isnan(display.line_.get_ydata()[-1])
    best = display.learning_rates[np.argmin(display.n_iter)]
    assert best == pytest.approx(2 / (largest + smallest), rel=1e-3)
    ax = display.ax_
    assert ax.get_xlabel() == "learning rate (1 / units of the Hessian of the loss)"
    assert ax.get_ylabel() == "steps to tol = 1e-06 (count)"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert legend_of(ax) == [
        "steps to tol = 1e-06",
        "1 / L, automatic: 0.0001502",
        "2 / (L + mu), best: 0.0003004",
        "2 / L, largest stable: 0.0003004",
        "diverges",
    ]
    assert display.n_iter[np.isclose(display.learning_rates, 1e-4, rtol=0.03)].size


def test_a_step_of_1e_4_takes_174690_steps_on_the_raw_question_data(raw):
    display = LearningRateDisplay.from_path(raw, learning_rates=[1e-4])
    assert display.n_iter.tolist() == [174_690]


@pytest.mark.parametrize("rates", [[], [0.1, -1.0], [0.0], [np.inf], [np.nan]])
def test_step_sizes_are_positive(rates, standardised):
    with pytest.raises(ValueError, match="learning_rates must be positive, finite numbers; got"):
        LearningRateDisplay.from_path(standardised, learning_rates=rates)


def test_a_constant_loss_is_refused():
    path = GradientPath.from_arrays([[2.0], [2.0]], [1.0, 2.0], fit_intercept=False)
    assert path.eigenvalues.max() > 0
    flat = GradientPath.from_arrays([[0.0], [0.0]], [1.0, 2.0], fit_intercept=False)
    with pytest.raises(ValueError, match="The loss is constant"):
        LearningRateDisplay.from_path(flat)


# CoefficientPathDisplay


def test_lines_are_the_coefficients_at_each_step():
    model = LinearRegressorGD(learning_rate=0.1).fit(WIDE, TARGET)
    display = CoefficientPathDisplay.from_estimator(model)
    assert len(display.lines_) == 4
    for j, line in enumerate(display.lines_):
        k, drawn = line.get_data()
        assert_allclose(drawn, model.path_.coef(display.steps)[:, j] * WIDE[:, j].std(), rtol=1e-10, atol=1e-12)
        assert (k[0], k[-1]) == (0, model.n_iter_)
        assert line.get_label() == f"x{j}"
    ends = np.abs(model.coef_ * WIDE.std(axis=0))
    assert legend_of(display.ax_) == [f"x{j}" for j in np.argsort(-ends)]
    assert display.ax_.get_xscale() == "symlog"
    assert display.ax_.get_ylabel() == "coefficient\n(units of y per standard deviation of the feature)"
    assert display.stop_ is None


def test_coefficients_in_the_units_of_the_features_and_where_the_fit_stopped():
    model = LinearRegressorGD(learning_rate=0.1).fit(WIDE, TARGET)
    display = CoefficientPathDisplay.from_estimator(model, max_iter=10_000, scaled=False)
    assert_allclose([line.get_ydata()[-1] for line in display.lines_], model.path_.coef(np.inf), rtol=1e-10)
    assert display.ax_.get_ylabel() == "coefficient\n(units of y per unit of the feature)"
    assert display.stop_.get_xdata()[0] == model.n_iter_
    assert legend_of(display.ax_)[-1] == f"stopped, k = {model.n_iter_}"


def test_columns_have_their_own_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(WIDE, columns=["age", "bmi", "bp", "s1"])
    display = CoefficientPathDisplay.from_estimator(LinearRegressorGD().fit(frame, TARGET))
    assert [line.get_label() for line in display.lines_] == ["age", "bmi", "bp", "s1"]


def test_of_many_features_the_largest_are_named():
    X = np.random.default_rng(1).normal(size=(200, 30))
    coef = np.arange(30.0)
    display = CoefficientPathDisplay.from_path(GradientPath.from_arrays(X, X @ coef))
    assert len(display.lines_) == 30
    names = legend_of(display.ax_)
    assert len(names) == 12
    assert names[0] in ("x29", "x28", "x27")
    assert display.ax_.get_legend().get_title().get_text() == "largest 12 of 30"
    styles = {(line.get_color(), line.get_linestyle()) for line in display.lines_ if line.get_label() in names}
    assert len(styles) == 12
