"""What holds for every problem: backends agree, F falls, units and repetition do not matter."""

import warnings
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import fssgd._estimators.fitting
from exact import EPS
from fssgd import DivergenceError, GradientPath, LinearRegressorGD
from fssgd._descent.curvature_bound import curvature_bound
from strategies import CI, Data, problems, stable_ratios

TOLERANCES = st.sampled_from([1e-2, 1e-5, 1e-8])


def fit(data, backend, **settings):
    """Fit without the warning that not all of these short descents converge."""
    model = LinearRegressorGD(backend=backend, **{**data.options, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data.X, data.Y, sample_weight=data.weight)


def theta(model, data):
    """In the coordinates of the descent, the intercept last, counted from 0."""
    weights = model.scaled_coef_.reshape(-1, data.X.shape[1]).T
    return np.vstack([weights, model.scaled_intercept_]) if data.options["fit_intercept"] else weights


def loss_bound(data, losses, distance):
    """F is ||A theta - T||^2: a residual moves by sqrt(L / 2) D and by rounding; a closed form adds eps of its sums."""
    root, count = np.sqrt(data.L / 2), 2 * sum(data.X.shape)
    size = root * data.norms[: len(losses)] + data.rms
    moved = root * distance[: len(losses)] + count * EPS * size
    return 2 * np.sqrt(np.maximum(losses, 0)) * moved + moved**2 + count * EPS * size**2


@given(problems(), stable_ratios, st.integers(0, 150))
@CI
def test_backends_return_the_same_iterate_and_losses(data, ratio, k):
    assume(data.L > 0)
    eta = ratio / data.L
    distance, _ = data.bounds(eta, k)
    spectral, numpy = (fit(data, name, learning_rate=eta, max_iter=k, tol=None) for name in ("spectral", "numpy"))
    gap = np.linalg.norm(theta(spectral, data) - theta(numpy, data))
    offset = EPS * np.linalg.norm(data.share @ data.Y)  # b is reported from 0, and was counted from the mean of y
    assert gap <= 2 * distance[k] + 4 * offset
    losses = spectral.loss_curve_
    assert len(losses) == len(numpy.loss_curve_) == k + 1
    assert (np.abs(losses - numpy.loss_curve_) <= 2 * loss_bound(data, losses, distance)).all()
    by_definition = np.linalg.norm(theta(numpy, data) - data.iterates(eta, k)[k])
    assert by_definition <= 2 * distance[k] + 4 * (k + 1) * offset  # which pays for the offset of y at every step


@given(problems(), stable_ratios, TOLERANCES)
@CI
def test_backends_stop_at_the_same_step(data, ratio, tol):
    """Or, where the gradient passes the threshold within what rounding does to it, at a neighbouring one."""
    assume(data.L > 0)
    eta, most = ratio / data.L, 200
    distance, u = data.bounds(eta, most)
    spectral, numpy = (fit(data, name, learning_rate=eta, max_iter=most, tol=tol) for name in ("spectral", "numpy"))
    if spectral.n_iter_ == numpy.n_iter_:
        assert spectral.converged_ == numpy.converged_ or spectral.n_iter_ == most
        return
    path = spectral.path_
    threshold = path.reference.threshold(tol, path.spectrum.largest)
    for k in (spectral.n_iter_, numpy.n_iter_):
        unsure = 2 * (data.L * distance[k] + u[k])
        assert k == most or path.gradient_norm(k) <= threshold + unsure
        assert k == 0 or path.gradient_norm(k - 1) > threshold - unsure


@given(problems(), st.floats(2.02, 3.5), st.integers(1, 12))
@CI
def test_short_unstable_runs_are_the_same_descent(data, ratio, k):
    assume(data.L > 1e-3)
    eta = ratio / data.L
    distance, _ = data.bounds(eta, k)
    path = GradientPath.from_arrays(data.X, data.Y, data.weight, learning_rate=eta, **data.options)
    found = path.position(k)
    if data.options["fit_intercept"]:
        found[-1] += path.coordinates.target_mean
    offset = np.linalg.norm(data.share @ data.Y) * (ratio - 1) ** k  # what the definition pays for counting from 0
    assert np.linalg.norm(found - data.iterates(eta, k)[k]) <= 2 * distance[k] + 20 * (k + 1) * EPS * offset


@given(problems(), st.floats(2.05, 3.5))
@CI
def test_backends_notice_a_divergence_at_the_same_step(data, ratio):
    """The steep mode, however small at first, overtakes what else falls; unless it is absent but for rounding."""
    assume(data.L > 1e-3)
    eta, ends = ratio / data.L, {}
    for name in ("spectral", "numpy"):
        try:
            model = fit(data, name, learning_rate=eta, max_iter=400)
            ends[name] = model.converged_, model.n_iter_
            assert np.isfinite(theta(model, data)).all()
        except DivergenceError as error:
            ends[name] = "diverged", error.n_iter
    path = GradientPath.from_arrays(data.X, data.Y, data.weight, learning_rate=eta, **data.options)
    steep = path.spectrum.gradient[path.eigenvalues * eta > 2.0]
    if np.linalg.norm(steep) > 1e-10 * (np.sqrt(2 * data.L) * (data.rms + 1e-300)):
        assert ends["spectral"][0] == ends["numpy"][0]
        assert abs(ends["spectral"][1] - ends["numpy"][1]) <= 2


@given(problems(), stable_ratios)
@CI
@pytest.mark.slow
def test_a_stable_step_never_raises_the_loss(data, ratio):
    """By more than d = 8 eps (rms + sqrt(L / 2) ||theta||) explains; the closed form not by more than its last bit."""
    assume(data.L > 0)
    eta, k = ratio / data.L, 100
    data.bounds(eta, k)
    d = 8 * EPS * (data.rms + np.sqrt(data.L / 2) * data.norms.max())
    for name in ("spectral", "numpy"):
        losses = fit(data, name, learning_rate=eta, max_iter=k, tol=None).loss_curve_
        lowest = np.minimum.accumulate(losses)
        allowed = 8 * EPS * lowest if name == "spectral" else 4 * d * np.sqrt(lowest) + d * d
        assert (losses <= lowest + allowed).all()


@given(problems(), TOLERANCES, st.integers(-300, 300), st.sampled_from(["spectral", "numpy"]))
@CI
def test_the_unit_of_y_does_not_matter(data, tol, power, backend):
    """A power of two changes no mantissa, so nothing at all changes."""
    plain = fit(data, backend, tol=tol, max_iter=300)
    unit = 2.0**power
    data.Y = data.Y * unit
    scaled = fit(data, backend, tol=tol, max_iter=300)
    assert scaled.n_iter_ == plain.n_iter_
    assert scaled.converged_ == plain.converged_
    np.testing.assert_array_equal(scaled.coef_, plain.coef_ * unit)
    np.testing.assert_array_equal(scaled.intercept_, plain.intercept_ * unit)


@given(problems(), stable_ratios, st.sampled_from(["spectral", "numpy"]), st.floats(1e-3, 1e3))
@CI
@pytest.mark.slow
def test_integer_weights_are_repetition_and_only_ratios_count(data, ratio, backend, factor):
    assume(data.L > 0 and data.weight is not None)
    eta, k = ratio / data.L, 60
    distance, _ = data.bounds(eta, k)
    settings = {"learning_rate": eta, "max_iter": k, "tol": None}
    weighted = theta(fit(data, backend, **settings), data)
    offset = EPS * np.linalg.norm(data.share @ data.Y)
    repeated = Data(
        np.repeat(data.X, data.weight.astype(int), axis=0),
        np.repeat(data.Y, data.weight.astype(int), axis=0),
        None,
        data.options,
    )
    scaled = Data(data.X, data.Y, data.weight * factor, data.options)
    for other in (repeated, scaled):
        rounding = 1 + len(other.X) / len(data.X)
        gap = np.linalg.norm(theta(fit(other, backend, **settings), data) - weighted)
        assert gap <= 2 * rounding * distance[k] + 4 * offset


@given(problems(), stable_ratios, st.sampled_from(["spectral", "numpy"]), st.booleans())
@CI
@pytest.mark.slow
def test_sparse_data_is_the_same_data(data, ratio, backend, over_rows):
    assume(data.L > 0)
    eta, k = ratio / data.L, 60
    distance, _ = data.bounds(eta, k)
    settings = {"learning_rate": eta, "max_iter": k, "tol": None}
    dense = theta(fit(data, backend, **settings), data)
    stored = Data(sp.csr_array(data.X), data.Y, data.weight, data.options)
    with mock.patch.object(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", 0 if over_rows else 4096):
        sparse = theta(fit(stored, backend, **settings), data)
    assert np.linalg.norm(sparse - dense) <= distance[k] + EPS * np.linalg.norm(data.share @ data.Y)


@given(problems(max_rows=8, max_columns=6))
@CI
@pytest.mark.slow
def test_the_automatic_step_over_rows_is_at_most_the_reciprocal_curvature(data):
    with mock.patch.object(fssgd._estimators.fitting, "MAX_DECOMPOSITION_SIZE", 0):
        model = fit(data, "numpy", max_iter=1, tol=None)
    if data.L == 0:
        assert model.learning_rate_ == 1.0
    else:
        lost = 1 + (np.abs(data.X) / data.scaling[1]).max() if data.options["standardize"] else 1.0
        assert 0.5 <= model.learning_rate_ * data.L <= 1 + 100 * EPS * lost


@given(
    st.integers(1, 80),
    st.lists(st.sampled_from([0.0, 1e-9, 0.5, 0.999, 1.0]), min_size=1, max_size=80),
    st.integers(0, 9),
)
@CI
@pytest.mark.slow
def test_the_bound_on_the_curvature(size, values, seed):
    """Spectra of clusters: repeated, nearly repeated, far apart, null."""
    values = np.resize(np.array(values), size)
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    bound, _ = curvature_bound(lambda vector: basis @ (values * (basis.T @ vector)), size)
    assert values.max() * (1 - 100 * EPS) <= bound <= values.max() / 0.9 * (1 + 100 * EPS)
