"""States of passes over parts of a table: merged in any order they are the state of one pass over all of it."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fssgd.tables import TablePass, TableSpec
from fssgd.tables._pass_state import PassState, merge_states, moments_of_state, raise_faults
from fssgd.tables.spark import SparkPart, merge_parts
from strategies import CI

GOOD, BAD = st.integers(-8, 8).map(float), st.sampled_from([np.nan, np.inf, -np.inf])


def state_of(rows, spec):
    with TablePass(spec, "the table", progress=False) as one:
        for start in range(0, len(rows), 3):
            one.add(list(rows[start : start + 3].T))
        return one.finish()


def outcome(state, spec):
    """The moments, or the words they are refused in, with the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = moments_of_state(state, spec, "the table", "the table")
        except ValueError as error:
            result = str(error)
    return result, [str(one.message) for one in caught]


@CI
@given(st.data())
@pytest.mark.slow
def test_any_partitioning_and_any_order(data):
    element = data.draw(st.sampled_from([GOOD, GOOD, st.one_of(GOOD, GOOD, GOOD, BAD)]))
    rows = data.draw(st.lists(st.tuples(element, element, element, st.integers(-1, 3).map(float)), max_size=20))
    table = np.array(rows, dtype=float).reshape(-1, 4)
    table[:, 3] = np.abs(table[:, 3]) if data.draw(st.booleans()) else table[:, 3]
    spec = TableSpec.of("y", ["a", "b"], "w", data.draw(st.booleans()), data.draw(st.sampled_from(["raise", "drop"])))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=5)))
    parts = [SparkPart(state_of(part, spec), np.zeros((2, 0), dtype=int)) for part in np.split(table, cuts)]
    parts = [SparkPart.from_bytes(part.to_bytes()) for part in data.draw(st.permutations(parts))]
    total = parts[0]
    for part in parts[1:]:
        total = merge_parts(total, part)
    found, said = outcome(total.state, spec)
    expected, also = outcome(state_of(table, spec), spec)
    assert said == also
    if isinstance(expected, str):
        assert found == expected
        return
    assert (found.n_samples, found.weight_sum) == (expected.n_samples, expected.weight_sum)
    np.testing.assert_allclose(found.scatter_xx, expected.scatter_xx, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(found.scatter_xy, expected.scatter_xy, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(found.mean_x, expected.mean_x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.variance_y, expected.variance_y, rtol=1e-12, atol=1e-11)


def test_a_long_list_of_columns_is_cut():
    spec = TableSpec.of("y", [f"x{j}" for j in range(30)], None, False, "raise")
    state = merge_states(PassState.start(31), PassState.start(31))
    state.faults[0, :25] = 2
    with pytest.raises(ValueError, match=r"column 'x19' \(2 rows\) and 5 more: correct these values\.$"):
        raise_faults(state, spec, "the table")
