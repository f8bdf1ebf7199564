"""A figure and the interval of its print, for every figure."""

from __future__ import annotations

import math

import hypothesis
from hypothesis import strategies as st

from errcomp.claims import parse_printed


@hypothesis.given(st.integers(0, 10**7), st.integers(0, 4))
def test_every_number_is_in_the_interval_of_its_own_print(units, decimals):
    text = f"{units / 10**decimals:.{decimals}f}%"
    p = parse_printed(text)
    assert p.contains(float(text[:-1]) / 100) or p.low <= p.value < p.high
    assert p.low < p.value < p.high
    assert math.isclose(p.high - p.low, 10.0 ** (-decimals - 2), rel_tol=1e-6)


@hypothesis.given(st.floats(0.0, 10.0, allow_nan=False), st.integers(0, 3))
def test_what_is_rounded_to_a_print_is_in_its_interval(fraction, decimals):
    p = parse_printed(f"{100 * fraction:.{decimals}f}%")
    slack = 1e-12  # a tie that was printed downwards stands on the open end
    assert p.low - slack <= fraction <= p.high + slack
