"""Values that only the class of a result can hold against each other, and what null stands for."""

from __future__ import annotations

import copy
import math
import re
from typing import Any

import numpy as np
import pytest

from errcomp.documents import load

_BY_GROUP, _FORECAST = "half-lives by group", "half-life-forecast"


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("audit", "rows.0.device", ..., r"rows\[0\] has no key 'device'"),
        ("audit", "n", lambda n: n + 1, r"n is \d+, but the rest of the document gives \d+"),
        ("audit", "not_looked_for", ["strange"], r"not_looked_for\[0\] must be one of "),
        ("audit", "rows.0.caveats", [{"code": "x", "message": "", "evidence": {}}],
         r"rows\[0\]\.caveats\[0\]\.code must be one of "),
        ("audit of a claim", "claims.0.claim", None,
         r"claims\[0\]\.(claim must be the claim that was checked|verdict must be a verdict)"),
        ("metrics", "rows.0.device", ..., r"rows\[0\] has no key 'device'"),
        ("metrics", "macro", {"mape": 0.1}, "macro must be the means of exactly the metrics "
            "in units"),
        ("metrics", "units", {"strange": "fraction"}, "units has no figure 'strange'"),
        ("search", "matches.0.values", {}, r"matches\[0\]\.values has no key ''"),
        ("search", "searched.by_complexity.0.expected", ...,
         r"by_complexity\[0\] has no key 'expected'"),
        ("search", "searched.complete", ..., r"searched has no key 'complete'"),
        ("propagate", "rows.0", ..., "rows must be one row for each run and assumption"),
        ("validation", "pit.independent", lambda places: places[:-1],
         r"pit\.independent must be one number for each of the 12 runs"),
        ("validation", "rows.0", ..., "rows must be rows of every assumption at the same level"),
        ("half-life-check", "series.0.last_version", "9.9",
         r"series\[0\]\.last_version must be one of 1\.0, "),
        (_BY_GROUP, "groups.0.not_searched", {"noise": 99},
         r"groups\[0\].not_searched must be at most the"),
        (_BY_GROUP, "groups.0.expired.releases", {"n": 1, "surely": [1, 2]},
         r"expired\.releases\.surely must be at most the 1 series"),
        (_BY_GROUP, "groups.0.key.op", ..., r"groups\[0\]\.key has no key 'op'"),
        (_BY_GROUP, "rows.0.op", ..., r"rows\[0\] has no key 'op'"),
        (_FORECAST, "rows.0.within.1", ..., r"within must be the times ahead 1 to"),
        (_FORECAST, "groups.0.key.op", ..., r"groups\[0\]\.key has no key 'op'"),
        ("replication", "counts", {}, "counts has no key 'all'"),
        ("replication", "counts.all.no data", ..., r"counts\.all has no key 'no data'"),
        ("replication", "rows.0.decimals", 21, r"decimals must be .* at most 20, got 21"),
    ],
)  # fmt: skip
def test_contradictions_are_refused_with_their_place(
    written: Any, kind: str, path: str, value: Any, message: str, changed: Any, refusal: Any
) -> None:
    assert re.search(message, refusal(changed(written(kind).document, path, value)))


def test_a_figure_without_an_interval_has_no_level(written: Any) -> None:
    figures = load(written("metrics").document).rows[0].figures
    assert figures["max_ape"].low is figures["max_ape"].level is None
    assert figures["mape"].level == (None if figures["mape"].low is None else 0.95)


def test_a_band_without_an_upper_end_is_endless_again(written: Any) -> None:
    document = copy.deepcopy(dict(written("calibration").document))
    row = document["rows"][0]
    row["unbounded_90"], row["mean_width_90"], row["interval_score_90"] = 1, None, None
    run = document["held_out"][0]["runs"][0]
    run["high_95"] = None
    found = load(document)
    assert found.rows[0].band(0.9).mean_width == math.inf
    held = next(iter(found.held_out.values()))
    assert held.high[0, -1] == np.inf
    run["low_95"] = None
    held = next(iter(load(document).held_out.values()))
    assert np.isnan(held.high[0, -1])


def test_what_a_vendor_costs_comes_back(written: Any) -> None:
    document = copy.deepcopy(dict(written("calibration").document))
    cost = {f"cost_mean_ape_difference{end}": 0.04 for end in ("", "_low", "_high")}
    document["vendor_transfer"] = [
        {"estimator": "device", "vendor": "V0", "n_unseen": 6, "n_seen": 6}
        | {"unseen": 0.1, "seen": 0.05, "gap": 0.05}
        | cost
    ]
    (transfer,) = load(document).transfer
    assert transfer.cost.mean_ape_against == pytest.approx(0.06)
    assert (transfer.cost.n, transfer.cost.difference.value) == (6, 0.04)
    assert transfer.to_dict() == document["vendor_transfer"][0]
