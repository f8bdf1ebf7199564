"""Published analyses of a paired trial and a proportion, reproduced."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.drivers import benjamini_hochberg, holm
from errcomp.drivers.inference import mean_test, share_interval, signed_rank_p

#: Darwin's maize: heights of crossed minus self-fertilised plants in eighths of an inch, as in
#: Fisher (1935), The Design of Experiments, section 17.
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], dtype=float)


def test_darwins_maize_gives_fishers_t():
    test = mean_test(DARWIN, level=0.95, rng=np.random.default_rng(0))
    assert test.value == pytest.approx(20.933, abs=5e-4)
    # Fisher: t = 2.148, just beyond the 5 % point 2.145.
    assert test.p_value == pytest.approx(0.0497, abs=1e-4)
    assert test.low == pytest.approx(0.03, abs=0.01)


def test_darwins_maize_gives_the_exact_wilcoxon_p_value():
    # The negative differences have ranks 10 and 14: T = 24 with n = 15.
    assert signed_rank_p(DARWIN, rng=np.random.default_rng(0)) == pytest.approx(0.04126, abs=1e-5)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Exact 95 % limits; "rule of three" in its exact form for none of n: 1 - 0.025 ** (1 / n).
    [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (81, 263, 0.2527, 0.3676)],
)
def test_clopper_pearson_limits_as_tabulated(k, n, low, high):
    # 81 of 263: Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 5.
    _, got_low, got_high = share_interval(np.arange(n) < k, range(n), level=0.95)
    assert (got_low, got_high) == pytest.approx((low, high), abs=5e-5)


#: The fifteen p values of the worked example in Benjamini and Hochberg (1995), section 3.2.
P_1995 = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]


def test_the_example_of_1995_rejects_three_for_any_false_alarm_and_four_by_their_share():
    assert sum(p <= 0.05 for p in holm(P_1995)) == 3
    assert sum(p <= 0.05 for p in benjamini_hochberg(P_1995)) == 4
