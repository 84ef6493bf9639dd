"""Sums of powers and hat matrices by brute force."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exact import EPS
from fssgd import GradientPath, Moments
from fssgd._path.power_sums import PowerSum, log_factors
from strategies import CI, Data, problems, stable_ratios

HORIZON = 1500
STEPS = st.sampled_from([0.0, 1e-3, 0.01, 0.1, 0.5, 0.9, 1.0, 1.5, 1.95, 2.0])
MODES = st.lists(st.tuples(st.floats(0, 1), STEPS), min_size=1, max_size=5)
GROWING = st.lists(st.tuples(st.floats(1e-12, 1), st.sampled_from([2.01, 2.03, 2.1])), min_size=1, max_size=2)


def powers(modes):
    """f(0..HORIZON) by multiplying, exact to k eps."""
    c, x = np.array(modes).T
    factors = (1.0 - x)[:, None] ** np.arange(HORIZON + 1)
    return (c[:, None] * factors**2).sum(axis=0)


def power_sum(modes):
    c, x = np.array(modes).T
    return PowerSum.of(c, log_factors(x))


@given(MODES, st.floats(1e-9, 1.5))
@CI
def test_first_below_is_the_first(modes, share):
    """Where f passes the bound by less than rounding, either neighbour will do."""
    values = powers(modes)
    bound = share * values[0]
    found = power_sum(modes).first_below(bound)
    below = np.flatnonzero(values <= bound * (1 + 1e-12))
    surely = np.flatnonzero(values <= bound * (1 - 1e-12))
    if found <= HORIZON:
        assert found in below
        assert found <= (surely[0] if len(surely) else HORIZON)
        assert found == below[0] or values[below[0]] >= bound * (1 - 1e-12)
    else:
        assert not len(surely)
        still = sum(c for c, x in modes if x in (0.0, 2.0))
        assert (found == np.inf) == (still > bound * (1 + 1e-12)) or np.isclose(still, bound, rtol=1e-10)


@given(MODES, GROWING, st.floats(1e-9, 1.5))
@CI
def test_turn_and_first_below_of_a_sum_that_falls_and_rises(modes, growing, share):
    modes = modes + growing
    values, total = powers(modes), power_sum(modes)
    turn = total.turn()
    lowest = int(np.argmin(values))
    assert values[turn] <= values[lowest] * (1 + 1e-11)
    assert turn <= lowest or values[turn] == values[lowest]  # the first of equals
    assert turn == 0 or values[turn] <= values[turn - 1] * (1 + 1e-11)
    assert values[turn + 1] >= values[turn] * (1 - 1e-11)
    bound = share * values[0]
    found = total.first_below(bound)
    surely = np.flatnonzero(values <= bound * (1 - 1e-11))
    if found == np.inf:
        assert not len(surely)
    else:
        assert values[found] <= bound * (1 + 1e-11)
        assert found == 0 or values[found - 1] > bound * (1 - 1e-11)


@given(MODES, GROWING | st.just([]), st.integers(0, HORIZON))
@CI
def test_values_of_a_power_sum(modes, growing, k):
    """Relative error: 2 k times that of log|1 - x|, which is eps relative to the logarithm, and eps near x = 2."""
    modes = modes + growing
    np.testing.assert_allclose(power_sum(modes).at(k), powers(modes)[k], rtol=EPS * (20 + 10 * k), atol=1e-290)


def path_of(data, eta, accurate):
    """By either route, the root of the rows or their scatter matrix."""
    moments = Moments.from_arrays(data.X, data.Y, data.weight, accurate=accurate)
    return GradientPath.from_moments(moments, learning_rate=eta, **data.options)


@given(problems(max_rows=8, alphas=(0.0, 0.3, 2.0)), stable_ratios, st.integers(0, 60), st.booleans())
@CI
@pytest.mark.slow
def test_degrees_of_freedom_and_gcv_against_the_hat_matrix(data, ratio, k, accurate):
    """Column i of the hat matrix is what a descent on the unit vector e_i fits."""
    assume(data.L > 0)
    eta, n = ratio / data.L, len(data.Y)
    unit = Data(data.X, np.eye(n), data.weight, data.options)
    hat = unit.Z @ unit.iterates(eta, k)[k]
    kept = data.share > 0
    count, df = int(kept.sum()), float(np.trace(hat))
    path = path_of(data, eta, accurate)
    lost = 1 + (np.abs(data.X) / data.scaling[1]).max()
    noise = 1e3 * (1 + k) * EPS * lost * n
    assert abs(path.degrees_of_freedom(k) - df) <= noise
    assert not hat[kept][:, ~kept].any()  # rows of weight 0 have no say
    if count - df > 1e-3 * count:
        residual = data.Y - hat @ data.Y
        rss = float((data.share @ residual**2).sum())
        expected = rss / (1 - df / count) ** 2
        size = float((data.share @ data.Y**2).sum())
        assert abs(path.gcv(k) - expected) <= 1e4 * noise * size
        assert abs(path.gcv(k) - expected) <= 1e-6 * expected + 1e-9 * size


@given(problems(alphas=(0.0, 0.3)), stable_ratios, st.booleans())
@CI
@pytest.mark.slow
def test_degrees_of_freedom_grow_to_the_rank(data, ratio, accurate):
    """Monotonically up to eta = 1 / L, and to the ridge's sum of h / (h + 2 alpha) with a penalty."""
    assume(data.L > 0)
    path = path_of(data, ratio / data.L, accurate)
    values = path.degrees_of_freedom([0, 1, 2, 10, 100, 10**4, np.inf])
    assert values[0] == 0.0
    if ratio <= 1.0:
        assert (np.diff(values) >= -1e-12).all()
    assert values[-1] <= min(data.Z.shape[1], (data.share > 0).sum()) + 1e-9
    if data.options["alpha"]:
        data_part = data.H - np.diag(2 * data.penalty)
        if np.linalg.cond(data.H) < 1e8:
            assert abs(values[-1] - np.trace(np.linalg.solve(data.H, data_part))) <= 1e-6
    else:
        seen = data.Z * np.sqrt(data.share)[:, None]
        singular = np.linalg.svd(seen, compute_uv=False)
        unclear = (singular > 1e-16 * singular[0]) & (singular < 1e-12 * singular[0])
        if not unclear.any():
            assert abs(values[-1] - (singular >= 1e-12 * singular[0]).sum()) <= 1e-9


@given(problems(), stable_ratios, st.integers(0, 200), st.booleans())
@CI
def test_gradient_and_loss_are_those_of_the_iterate(data, ratio, k, accurate):
    """The closed forms of F_k and ||grad F_k|| against theta_k put into their definitions."""
    assume(data.L > 0)
    eta = ratio / data.L
    path = path_of(data, eta, accurate)
    theta = path.position(k)
    if data.options["fit_intercept"]:
        theta[-1] += path.coordinates.target_mean
    residual = data.Z @ theta - data.Y
    loss = float((data.share @ residual**2).sum() + (data.penalty @ theta**2).sum())
    lost = 1 + (np.abs(data.X) / data.scaling[1]).max()
    root = np.sqrt(data.L / 2) * np.linalg.norm(theta) + np.abs(data.Y).max()
    noise = 100 * EPS * lost * root
    assert abs(path.loss(k) - loss) <= 2 * np.sqrt(loss) * noise + noise**2 + 100 * EPS * data.rms**2
    assert abs(path.gradient_norm(k) - np.linalg.norm(data.gradient(theta))) <= np.sqrt(2 * data.L) * 2 * noise
