"""What holds for the interval of any pairs."""

from __future__ import annotations

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from errcomp.metrics import FIGURES
from errcomp.metrics.intervals import METHODS, estimate

values = st.floats(min_value=1e-3, max_value=1e3)
tables = st.lists(st.tuples(values, values), min_size=4, max_size=40)
correlations = {"r2", "pearson", "spearman", "kendall"}
names = st.sampled_from([name for name in FIGURES if name not in correlations])


def split(rows):
    return {"predicted": [p for p, _ in rows], "measured": [m for _, m in rows]}


@hypothesis.given(rows=tables, name=names, method=st.sampled_from(METHODS), seed=st.integers(0, 5))
def test_bounds_are_finite_and_contain_the_value_or_there_are_none(rows, name, method, seed):
    e = estimate(name, **split(rows), method=method, resamples=99, seed=seed)
    if e.low is None:
        assert e.high is None
        assert e.method.startswith(("no interval", "no tested interval"))
        assert e.caveats == ()
        return
    assert math.isfinite(e.low)
    assert math.isfinite(e.high)
    # Terms that differ in the last digits only give bounds that do.
    slack = 1e-9 * abs(e.value) + 1e-12
    assert e.low - slack <= e.value <= e.high + slack
    assert e.low >= (-1.0 if name in ("bias", "total_error") else 0.0)


@hypothesis.given(rows=tables, name=names, labels=st.data())
def test_names_of_clusters_do_not_matter(rows, name, labels):
    code = labels.draw(st.lists(st.integers(0, 8), min_size=len(rows), max_size=len(rows)))
    given_rows = split(rows)
    by_number = estimate(name, **given_rows, clusters=code, resamples=99)
    by_name = estimate(name, **given_rows, clusters=[f"model {c}" for c in code], resamples=99)
    assert (by_number.low, by_number.high) == (by_name.low, by_name.high)
    assert by_number.method == by_name.method


@hypothesis.given(
    rows=tables,
    name=st.sampled_from(["mape", "wape", "gm_ratio", "bias", "total_error", "within_10"]),
)
def test_the_unit_of_the_data_does_not_matter(rows, name):
    plain, scaled = (
        estimate(name, **split([(p * f, m * f) for p, m in rows]), resamples=99) for f in (1, 1024)
    )
    assert plain.to_dict() == scaled.to_dict()


@hypothesis.given(rows=tables)
def test_swapping_predicted_and_measured_mirrors_the_geometric_mean_ratio(rows):
    given_rows = split(rows)
    there = estimate("gm_ratio", **given_rows, method="log-t")
    swapped = {"predicted": given_rows["measured"], "measured": given_rows["predicted"]}
    back = estimate("gm_ratio", **swapped, method="log-t")
    if there.low is None or back.low is None:
        assert there.method.split(":")[0] == back.method.split(":")[0]
    else:
        expected = 1 / np.asarray([back.high, back.low])
        assert (there.low, there.high) == pytest.approx(tuple(expected), rel=1e-6)
