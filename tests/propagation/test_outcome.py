"""Results of propagation: looked up by run, assumption and level, and as plain values."""

from __future__ import annotations

import json
import math

import pytest

from errcomp import Kernels
from errcomp.errors import InputError
from errcomp.propagation import given_errors, propagate
from errcomp.propagation.graph import Kernel, Queue


@pytest.fixture(scope="module")
def found():
    kernels = Kernels(
        {"run": ["a", "b"], "kernel": ["k", "k"], "predicted": [1.0, 2.0], "measured": [1.1, 1.9]},
        unit="ms",
    )
    return propagate(kernels, errors=given_errors(0.1), correlation=["comonotonic", "unknown"])


def test_runs_and_assumptions_in_their_order(found):
    assert found.runs == ("a", "b")
    assert found.assumptions == ("comonotonic", "unknown")


def test_the_first_by_default(found):
    assert found.of() is found.outcomes[0]
    assert found.of("b") is found.outcomes[2]
    assert found.of(assumption="unknown") is found.outcomes[1]


@pytest.mark.parametrize(("run", "assumption"), [("c", None), (None, "estimated")])
def test_an_outcome_that_is_not_there(found, run, assumption):
    with pytest.raises(InputError, match="Runs: a, b; assumptions: comonotonic, unknown"):
        found.of(run, assumption)


def test_bands_by_level(found):
    outcome = found.of()
    assert [band.level for band in outcome.bands] == [0.5, 0.8, 0.9, 0.95]
    band = outcome.band(0.9)
    assert (band.level, band.low < 1.0 < band.high) == (0.9, True)
    with pytest.raises(InputError, match=r"no band of level 0.99. Levels: 0.5, 0.8, 0.9, 0.95"):
        outcome.band(0.99)


def test_as_plain_values(found):
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert (plain["unit"], plain["seed"], len(plain["rows"])) == ("ms", 0, 4)
    row = plain["rows"][0]
    assert (row["run"], row["assumption"], row["measured"]) == ("a", "comonotonic", 1.1)
    assert row["bands"][2].keys() == {"level", "low", "high"}
    assert row["by_class"] == [
        {"name": "k", "share_of_time": 1.0, "first_order": 1.0, "total": pytest.approx(1.0)}
    ]
    bounds = plain["rows"][1]
    assert bounds["mean"] is bounds["by_class"] is bounds["growth"] is None


def test_infinite_times_are_null():
    kernels = Kernels({"kernel": ["k"], "predicted": [1.0]})
    graph = Queue(Kernel("k"), 0.95)
    found = propagate(
        kernels, errors=given_errors(0.2), correlation="comonotonic", graph=graph, draws=512
    )
    outcome = found.of()
    assert 0.3 < outcome.saturated < 0.5
    assert math.isinf(outcome.band(0.9).high)
    plain = outcome.to_dict()
    assert plain["bands"][2]["high"] is None
    assert plain["bands"][2]["low"] > 0
    assert (plain["mean"], plain["sd"], plain["growth"]) == (None, None, None)
    json.dumps(plain, allow_nan=False)
