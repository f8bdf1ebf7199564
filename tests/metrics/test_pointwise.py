from __future__ import annotations

import math

import numpy as np

from errcomp import metrics

P, M = [11.0, 75.0, -1.0, 7.0], [10.0, 100.0, 2.0, 7.0]


def test_each_pair_has_its_error() -> None:
    np.testing.assert_array_equal(metrics.ape(predicted=P, measured=M), [0.1, 0.25, 1.5, 0.0])
    np.testing.assert_array_equal(
        metrics.signed_percentage_error(predicted=P, measured=M), [0.1, -0.25, -1.5, 0.0]
    )
    np.testing.assert_array_equal(
        metrics.absolute_error(predicted=P, measured=M), [1.0, 25.0, 3.0, 0.0]
    )


def test_log_accuracy_ratio_near_and_far() -> None:
    ratios = [1.0, 1 + 2**-52, 1 - 2**-53, 1.5, 0.5, 4.0, 2.0**-1000]
    got = metrics.log_accuracy_ratio(predicted=ratios, measured=[1.0] * len(ratios))
    expected = [
        0.0,
        2**-52,
        -(2**-53),
        math.log(1.5),
        -math.log(2),
        math.log(4),
        -1000 * math.log(2),
    ]
    np.testing.assert_allclose(got, expected, rtol=4e-16)


def test_log_accuracy_ratio_of_what_is_no_float() -> None:
    got = metrics.log_accuracy_ratio(predicted=[1e300, 1e-300], measured=[1e-300, 1e300])
    np.testing.assert_allclose(got, [600 * math.log(10), -600 * math.log(10)], rtol=1e-15)
