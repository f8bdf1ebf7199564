"""Pairs of which only sums are known: what is found is what the pairs themselves show."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.caveats import check
from errcomp.caveats._case import SUMS, Case, TotalsCase
from errcomp.claims.auditing import grouped
from errcomp.errors import InputError
from errcomp.results import Caveat
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows, PairTotals


def table() -> dict[str, Any]:
    """Too high by 10 % on one device, too low on the other; each model errs alike; some exact."""
    rng = np.random.default_rng(5)
    n = 600
    measured = np.exp(rng.normal(2, 1, n))
    device, model = np.arange(n) % 2, np.arange(n) // 50
    error = 0.1 * (1 - 2 * device) * np.exp(rng.normal(0, 0.3, 12))[model] + 0.01 * rng.normal(
        size=n
    )
    error[:3] = 0.0
    return {
        "predicted": measured * (1 + error),
        "measured": measured,
        "device": np.where(device == 0, "A", "B").tolist(),
        "model": [*(f"m{i:02}" for i in model[1:]), "single"],
        "mode": np.where(device == 0, "train", "serve").tolist(),
        "level": ["kernel"] * n,
        "reference": ["simulator"] * n,
    }


def sums(data: dict[str, Any]) -> Any:
    keys = [name for name in ("device", "model", "mode") if name in data]
    return grouped(PairRows(pl.LazyFrame(data)), keys, (), ())


@pytest.fixture(scope="module")
def both() -> tuple[Case, TotalsCase]:
    data = table()
    return Case(Pairs(data)), TotalsCase(sums(data), None, (), 0.95, 0)


def test_sums_give_what_the_pairs_give(both: tuple[Case, TotalsCase]) -> None:
    pairs, totals = both
    assert (totals.n, totals.not_positive) == (600, 0)
    error = pairs.predicted - pairs.measured
    assert totals.largest == pytest.approx(float(pairs.ape.max()))
    assert totals.total_error == pytest.approx(float(error.sum() / pairs.measured.sum()))
    assert totals.weights_spread == pytest.approx(pairs.weights_spread)
    assert totals.value("wape") == pytest.approx(float(np.abs(error).sum() / pairs.measured.sum()))
    # One needs single pairs, of the other the sums were not asked for.
    assert math.isnan(totals.value("pearson"))
    assert math.isnan(totals.value("smape"))
    for name, value in pairs.averages.items():
        close = 0.005 if name == "median" else 1e-9
        assert totals.averages[name] == pytest.approx(value, rel=close), name
    assert totals.share_of_worst(6) == pytest.approx(
        float(np.sort(pairs.ape)[-6:].sum() / pairs.ape.sum()), rel=0.005
    )
    log = np.log(pairs.predicted / pairs.measured)
    assert totals.ratio.middle == pytest.approx(float(log.mean()))
    # 90 % of normal values are within 1.645 standard deviations.
    assert totals.ratio.reach == pytest.approx(1.645 * float(log.std()))


@pytest.mark.parametrize("key", ["device", "model"])
def test_sums_of_groups_give_their_moments_and_totals(
    both: tuple[Case, TotalsCase], key: str
) -> None:
    pairs, totals = both
    (codes, names), (own, same) = pairs.codes(key), totals.codes(key)
    assert same == names
    assert totals.sizes(own).tolist() == np.bincount(codes).tolist()
    for wanted, found in (
        (pairs.moments(codes), totals.moments(own)),
        (pairs.log_moments(codes), totals.log_moments(own)),
    ):
        assert found.means == pytest.approx(wanted.means, rel=1e-6)
        assert found.squares == pytest.approx(wanted.squares, rel=1e-6)
        assert found.sizes.tolist() == wanted.sizes.tolist()
    logs = totals.log_moments(own)
    some = pairs.ape > 0
    assert logs.sizes.sum() == some.sum() == 597
    assert logs.mean == pytest.approx(float(np.log(pairs.ape[some]).mean()))
    groups = totals.totals(own)
    for i in range(len(names)):
        m, e = (one[codes == i] for one in (pairs.measured, pairs.predicted - pairs.measured))
        off = e.sum() / m.sum()
        assert groups.measured[i] == pytest.approx(m.sum())
        assert groups.off[i] == pytest.approx(off)
        assert groups.scatter[i] == pytest.approx(math.sqrt(float(((e - off * m) ** 2).sum())))


def test_the_caveats_of_sums_are_those_of_the_pairs() -> None:
    data = table()
    claim: Any = SimpleNamespace(
        printed="5%", metric="MAE", kind="measured", reference="hardware", level="kernel"
    )
    of_pairs, of_sums = (
        {one.code: one for one in check(given, by=["mode"], claim=claim)}
        for given in (Pairs(data), sums(data))
    )
    shared = [code for code in of_pairs if code in of_sums]
    assert {"clustered", "cancelling-errors", "reference-mismatch"} <= set(shared)
    for code in shared:
        for name, value in of_pairs[code].evidence.items():
            found = of_sums[code].evidence[name]
            if isinstance(value, float) and isinstance(found, float):
                assert found == pytest.approx(value, rel=0.02), (code, name)
            else:
                assert found == value, (code, name)


def test_a_correlation_cannot_be_computed_from_sums() -> None:
    def of(given: Pairs | PairTotals) -> Caveat:
        claim = SimpleNamespace(printed="0.9", metric="correlation", kind="correlation")
        return next(one for one in check(given, claim=claim) if one.code == "metric-mismatch")

    data = table()
    told = of(sums(data))
    assert told.evidence["value"] is None
    assert "From these pairs: Pearson correlation needs single pairs, MAPE " in told.message
    r = float(np.corrcoef(data["predicted"], data["measured"])[0, 1])
    assert of(Pairs(data)).evidence["value"] == pytest.approx(r)


def test_sums_beyond_the_largest_number_are_refused() -> None:
    rows = PairRows(pl.LazyFrame({"predicted": [1e200, 1.0], "measured": [1e-200, 1.0]}))
    with pytest.raises(InputError) as raised:
        TotalsCase(rows.grouped(sums=SUMS), None, (), 0.95, 0)
    assert str(raised.value).endswith(
        "(predicted - measured) / measured is beyond the largest number a float64 can hold "
        "(1.8e308). Check that predicted and measured have the same unit."
    )


def test_errors_that_are_all_alike_have_no_scatter_beyond_rounding() -> None:
    """Each prediction is 10 % too high: sums of squares differ from 0 by rounding only."""
    measured = np.exp(np.random.default_rng(1).normal(3, 2, 400))
    off = np.where(np.arange(400) < 200, 1.1, 0.7)
    data = {"predicted": measured * off, "measured": measured, "mode": ["a"] * 200 + ["b"] * 200}
    totals = TotalsCase(sums(data), None, (), 0.95, 0)
    groups = totals.totals(totals.codes("mode")[0])
    assert groups.off == pytest.approx([0.1, -0.3])
    assert groups.scatter.tolist() == [0.0, 0.0]
    assert totals.moments(totals.codes("mode")[0]).squares.tolist() == [0.0, 0.0]
