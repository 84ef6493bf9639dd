"""However rows are cut and put together, the moments and the fits are those of all rows at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given
from hypothesis import strategies as st
from test_moments import exact_moments, found_moments

from exact import EPS
from fssgd import LinearRegressorGD, Moments
from fssgd._descent.coordinates import Coordinates
from strategies import CI, problems

FINITE = st.floats(-1e6, 1e6)


@st.composite
def cuts(draw, data):
    """A random partition of the rows into parts that hold some weight, in random order."""
    n = len(data.Y)
    order = np.array(draw(st.permutations(range(n))))
    where = sorted(draw(st.lists(st.integers(1, n - 1), max_size=4, unique=True)))
    parts = np.split(order, where)
    assume(all(data.weight is None or data.weight[part].any() for part in parts))
    return parts


def sums(data, rows, *, accurate):
    weight = None if data.weight is None else data.weight[rows]
    return Moments.from_arrays(data.X[rows], data.Y[rows], weight, accurate=accurate)


@given(st.data(), problems(), st.booleans())
@CI
def test_merging_in_any_tree_gives_the_moments_of_all_rows(draws, data, accurate):
    """To n eps of the product of norms, plus eps |mean| times a norm for every difference of means."""
    parts = [sums(data, part, accurate=accurate) for part in draws.draw(cuts(data))]
    whole = sums(data, slice(None), accurate=accurate)
    while len(parts) > 1:
        i = draws.draw(st.integers(0, len(parts) - 2))
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    mean, scatter = exact_moments(data.X, data.Y, data.weight)
    size, spread = np.abs(np.column_stack([data.X, data.Y])).max(axis=0), np.sqrt(np.diag(scatter))
    noise = len(data.Y) * EPS * size
    weight = whole.weight_sum
    for moments in (whole, parts[0]):
        means, scatters = found_moments(moments)
        assert (np.abs(means - mean) <= 4 * noise).all()
        allowed = 100 * len(data.Y) * EPS * np.outer(spread, spread) + weight * np.outer(noise, noise)
        allowed += 4 * np.sqrt(weight) * (np.outer(noise, spread) + np.outer(spread, noise))
        assert (np.abs(scatters - scatter) <= allowed).all()
        assert moments.weight_sum == weight
        assert moments.n_samples == (len(data.Y) if data.weight is None else (data.weight > 0).sum())
        constant = np.diag(scatter) == 0
        assert (np.diag(scatters)[constant] == 0).all()
        assert (means[constant] == mean[constant]).all()
        assert (np.diag(scatters)[~constant] > 0).all()


@given(st.data(), problems(max_rows=8), st.integers(0, 60))
@CI
@pytest.mark.slow
def test_partial_fit_in_any_order_is_fit(draws, data, k):
    """Both descend on moments that differ by rounding, which moves theta_k as rounding in every step would."""
    parts = draws.draw(cuts(data))
    assume(data.L > 0)
    settings = {"max_iter": k, "tol": None, **data.options}
    whole = LinearRegressorGD(**settings).fit(data.X, data.Y, sample_weight=data.weight)
    batches = LinearRegressorGD(**settings)
    for part in parts:
        batches.partial_fit(data.X[part], data.Y[part], None if data.weight is None else data.weight[part])
    distance, _ = data.bounds(1 / data.L, k)
    gap = np.linalg.norm(batches.scaled_coef_ - whole.scaled_coef_)
    gap = np.hypot(gap, np.linalg.norm(batches.scaled_intercept_ - whole.scaled_intercept_))
    offset = len(data.Y) * EPS * np.abs(data.Y).max() * (1 if data.options["fit_intercept"] else 0)
    far = 1 + np.abs(data.X).max() / data.scaling[1].min()  # moments of raw columns lose eps |mean| too
    assert gap <= 4 * far * distance[k] + 4 * np.sqrt(data.Y.shape[1]) * offset
    assert batches.n_iter_ == whole.n_iter_ == k


@given(
    st.floats(-1e100, 1e100).filter(lambda value: value == 0 or abs(value) > 1e-100),
    st.lists(st.just(0.0) | st.floats(1e-3, 1e3), min_size=2, max_size=60).filter(any),
    st.booleans(),
    st.sampled_from([np.asarray, sp.csr_array]),
)
@CI
def test_the_mean_of_a_constant_is_the_constant(value, weight, accurate, form):
    """Whatever the weights; a mean that is off by its last bit would make a column of rounding errors."""
    column, y = form(np.full((len(weight), 1), value)), np.arange(float(len(weight)))
    for given_weight in (np.array(weight), None):
        moments = Moments.from_arrays(column, y, given_weight, accurate=accurate)
        assert moments.mean_x[0] == value
        assert moments.variance_x[0] == 0.0
        assert not moments.scatter_xy.any()


@given(problems(), st.integers(0, 7))
@CI
@pytest.mark.slow
def test_the_order_of_the_rows_and_their_blocks_do_not_matter(data, shift):
    once, turned = (sums(data, rows, accurate=False) for rows in (slice(None), np.roll(np.arange(len(data.Y)), shift)))
    size = len(data.Y) * EPS * np.abs(np.column_stack([data.X, data.Y])).max(axis=0)
    np.testing.assert_array_less(np.abs(found_moments(once)[0] - found_moments(turned)[0]), 4 * size + 1e-300)
    np.testing.assert_array_equal(once.variance_x == 0, turned.variance_x == 0)


@given(st.lists(st.tuples(FINITE, st.floats(1e-6, 1e6), FINITE), min_size=1, max_size=6), FINITE)
@CI
@example([(3.0, 0.25, 2.2250738585e-313)], 1.0)
def test_unscaling_undoes_rescaling(columns, intercept):
    """A product and a quotient round once each; the intercept is off by the rounding of the sum of mean times coef."""
    mean, scale, coef = np.array(columns).T
    coordinates, coef = Coordinates(mean, scale, np.zeros(1), True), coef[:, None]
    back, height = coordinates.to_user(coordinates.from_user(coef, np.array([intercept])))
    subnormal = np.finfo(float).smallest_subnormal * (1 + 1 / scale)  # what a product and a quotient that small lose
    assert (np.abs(back - coef) <= 2 * EPS * np.abs(coef) + subnormal[:, None]).all()
    size = np.abs(mean) @ (np.abs(coef) + subnormal[:, None] / EPS) + abs(intercept)
    assert np.abs(height - intercept) <= 4 * (len(mean) + 2) * EPS * size
