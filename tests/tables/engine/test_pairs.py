"""Sums of pairs in an engine, and the histograms that are fetched with them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from errcomp.tables.engine import pairs
from errcomp.tables.engine.pairs import PairRows


@pytest.mark.parametrize(("most", "fetched"), [(4, True), (3, False)])
def test_clusters_have_histograms_of_their_own_up_to_a_limit(
    most: int, fetched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "MOST_HISTOGRAMS", most)
    data = {
        "device": [*"AABBB"],
        "model": [*"xyxyy"],
        "predicted": [1.1, 1.2, 0.9, 1.4, 1.4],
        "measured": [1.0] * 5,
    }
    totals = PairRows(pl.LazyFrame(data)).grouped(["device"], cluster=["model"])
    assert totals.has_histogram(["device", "model"]) == fetched
    assert totals.has_histogram(["device"])
    assert totals.counts.tolist() == [1, 1, 1, 2]
    whole = totals.histogram(["device"])
    assert whole.n.tolist() == [2, 3]
    assert whole.pooled().values() == pytest.approx(np.array([0.1, 0.1, 0.2, 0.4, 0.4]), rel=0.006)
    if fetched:
        assert totals.histogram(["model"]).n.tolist() == [2, 3]
        assert totals.histogram(["device", "model"]).n.tolist() == [1, 1, 1, 2]
