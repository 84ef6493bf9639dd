"""Powers of many modes: their values, where their sum turns, where it is small enough."""

import numpy as np
import pytest

from exact import EPS, mp
from fssgd._path.power_sums import PowerSum, log_factors
from fssgd._path.step_counts import as_float, first_integer, times


def test_log_factors_at_the_points_that_matter():
    x = np.array([0.0, 1e-60, 1e-17, 0.5, 1.0, 1.5, 2.0, 2.5, 1e9])
    logs = log_factors(x)
    assert logs[0] == 0.0
    assert logs[4] == -np.inf
    assert logs[6] == 0.0
    rest = [1, 2, 3, 5, 7, 8]
    right = [float(mp.log(abs(1 - mp.mpf(value)))) for value in x[rest]]
    np.testing.assert_allclose(logs[rest], right, rtol=4 * EPS)


@pytest.mark.parametrize("side", [-1, 1])
def test_log_factors_near_one_and_two(side):
    """1 - x is exact there (Sterbenz), so only the logarithm rounds."""
    for centre in (1.0, 2.0):
        x = np.array([centre + side * 2.0**-power for power in range(2, 52)])
        right = [float(mp.log(abs(1 - mp.mpf(value)))) for value in x]
        np.testing.assert_allclose(log_factors(x), right, rtol=4 * EPS)


@pytest.mark.parametrize("k", [0, 1, 7, 10**4, 10**15, 2**60 + 1])
@pytest.mark.parametrize("grows", [False, True])
def test_value_of_a_power_sum(k, grows):
    """exp(2 k log a) has the relative error of its argument, 2 k |log a| eps."""
    logs = np.array([0.0, -1e-15, -1e-3, -np.inf, 1e-17 if grows else -2.0])
    coefficients = np.array([0.5, 3.0, 1.0, 2.0, 0.25])
    right = sum(
        mp.mpf(c) * (mp.exp(2 * k * mp.mpf(log)) if np.isfinite(log) else mp.mpf(k == 0))
        for c, log in zip(coefficients, logs, strict=True)
    )
    found = PowerSum.of(coefficients, logs).at(k)
    assert found == pytest.approx(float(right), rel=EPS * (8 + 2 * k * 1.1e-15 + 2 * min(k, 350)))


def test_a_power_sum_at_infinity_is_what_neither_falls_nor_rises():
    logs = np.array([0.0, -1e-300, -np.inf])
    assert PowerSum.of(np.array([0.5, 3.0, 1.0]), logs).at(np.inf) == 0.5
    assert PowerSum.of(np.array([0.5, 3.0, 1.0]), np.array([0.0, -1.0, 1e-9])).at(np.inf) == np.inf
    assert PowerSum.of(np.array([0.5, 3.0, 0.0]), np.array([0.0, -1.0, 1e-9])).at(np.inf) == 0.5


@pytest.mark.parametrize("k", [10**5, 10**300, 10**400], ids=["1e5", "1e300", "1e400"])
def test_growth_overflows_to_infinity_and_absent_modes_do_not(k):
    assert PowerSum.of(np.array([1.0, 1.0]), np.array([1.0, -1.0])).at(k) == np.inf
    assert PowerSum.of(np.array([0.0, 1.0]), np.array([1.0, -1.0])).at(k) == 0.0
    assert PowerSum.of(np.array([0.5, 1.0]), np.array([0.0, -1.0])).at(k) == 0.5
    assert PowerSum.of(np.array([0.5, 1.0]), np.array([0.0, 1.0])).at(k) == np.inf


def test_turn_of_a_sum_that_falls_for_ever():
    assert PowerSum.of(np.array([1.0, 2.0]), np.array([-1.0, 0.0])).turn() == np.inf
    assert PowerSum.of(np.array([1.0, 0.0]), np.array([-1.0, 3.0])).turn() == np.inf


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-13])
def test_turn_of_two_modes(gap):
    """f(k+1) - f(k) = c1 (a1^2 - 1) a1^2k + c2 (a2^2 - 1) a2^2k changes sign where the two terms are equal."""
    logs, coefficients = np.array([-gap, gap]), np.array([1.0, 1e-12])
    first, second = (mp.expm1(2 * mp.mpf(log)) * mp.mpf(c) for log, c in zip(logs, coefficients, strict=True))
    crossing = mp.log(-first / second) / (2 * (mp.mpf(logs[1]) - mp.mpf(logs[0])))
    turn = PowerSum.of(coefficients, logs).turn()
    assert abs(turn - int(mp.ceil(crossing))) <= 1 + 4 * EPS * turn  # the crossing moves by a few eps of itself


@pytest.mark.parametrize("rate", [1e-2, 1e-9, 1e-16])
@pytest.mark.parametrize("bound", [0.99, 1e-3, 1e-100, 1e-300])
def test_first_below_for_one_mode(rate, bound):
    right = int(mp.ceil(mp.log(mp.mpf(bound)) / (-2 * mp.mpf(rate))))
    found = PowerSum.of(np.array([1.0]), np.array([-rate])).first_below(bound)
    assert abs(found - right) <= EPS / rate + 8 * EPS * right  # what f resolves: less than a step but for the slowest
    assert isinstance(found, int)


def test_first_below_edges():
    still = PowerSum.of(np.array([1.0, 1.0]), np.array([0.0, -1.0]))
    assert still.first_below(2.0) == 0
    assert still.first_below(0.5) == np.inf
    assert still.first_below(1.0 + 1e-10) == 12  # e^-2k <= 1e-10 from k = 11.5 on
    assert PowerSum.of(np.array([1.0]), np.array([-np.inf])).first_below(0.0) == 1
    assert PowerSum.of(np.zeros(2), np.array([-1.0, 0.0])).first_below(0.0) == 0
    assert PowerSum.of(np.empty(0), np.empty(0)).first_below(0.0) == 0
    rising = PowerSum.of(np.array([1.0, 1e-6]), np.array([-1.0, 1.0]))
    assert rising.first_below(1e-2) == 3  # e^-6 + 1e-6 e^6 = 0.0029, at k = 2 it is 0.018
    assert rising.first_below(1e-3) == np.inf


def test_first_integer_doubles_then_bisects():
    for low in (0, 5):
        for first in (low, low + 1, low + 1000, 2**70 + 3):
            asked = []

            def holds(k, first=first, asked=asked):
                asked.append(k)
                return k >= first

            assert first_integer(holds, low) == first
            assert len(asked) <= 3 + 2 * max(first - low, 1).bit_length()
    assert first_integer(lambda k: k >= 40, 0, 64) == 40
    assert first_integer(lambda k: k >= 100, 0, 64) == 100  # an upper end that does not hold is not trusted


def test_times_never_multiplies_zero_by_infinity():
    logs = np.array([0.0, -np.inf, -1.0, 1.0])
    np.testing.assert_array_equal(times(0.0, logs), np.zeros(4))
    np.testing.assert_array_equal(times(np.inf, logs), [0.0, -np.inf, -np.inf, np.inf])
    np.testing.assert_array_equal(times(2.0, logs), [0.0, -np.inf, -2.0, 2.0])
    np.testing.assert_array_equal(times(np.array([[0.0], [np.inf]]), logs[:2]), [[0.0, 0.0], [0.0, -np.inf]])


def test_as_float_of_a_number_too_large_for_one():
    assert 1e299 < as_float(10**400) < np.inf  # inf is for inf only
    assert as_float(np.inf) == np.inf
    assert as_float(2**53 + 1) == 2.0**53
