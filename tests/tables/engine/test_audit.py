"""Audits of pairs that stay in an engine: those of the same pairs in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.caveats import CHECKS
from errcomp.claims.auditing import Audit, AuditRow, audit
from errcomp.claims.registry import user_claim
from errcomp.documents import read
from errcomp.errors import InputError
from errcomp.results import Caveat
from errcomp.tables import Pairs
from errcomp.tables.engine.pairs import PairRows, PairTotals
from errcomp.tables.sums import BUCKET
from tests.tables.engine.test_engines import ENGINES, pytestmark  # noqa: F401

Make = Callable[[str, pl.DataFrame], Any]

#: Evidence that single pairs are needed for, or that is read off a histogram.
_APPROXIMATE = ("median", "fits", "factor", "mape_after", "share_of_worst", "p_value")
_NEED_PAIRS = {one.code for one in CHECKS if one.needs_pairs and one.scope != "tools"}


@pytest.fixture(scope="module")
def tools() -> pl.DataFrame:
    """Pairs of two tools: models of one that err alike, sides that cancel, and a heavy tail."""
    rng = np.random.default_rng(1)
    n = 4000
    measured = np.exp(rng.standard_normal(n))
    model, device = rng.integers(0, 9, n), rng.integers(0, 2, n)
    of_model = rng.normal(0.0, 0.15, 9)
    error = 0.1 * rng.standard_normal(n) + of_model[model] + 0.1 * (2 * device - 1)
    error[rng.integers(0, n, 8)] += 2.0
    return pl.DataFrame(
        {
            "predicted": measured * np.exp(error),
            "measured": measured,
            "tool": np.where(rng.random(n) < 0.7, "neusight", "habitat"),
            "device": np.where(device == 1, "H100", "L4"),
            "mode": np.where(rng.random(n) < 0.5, "inference", "training"),
            "model": [f"net{k}" for k in model.tolist()],
            "in_training": rng.random(n) < 0.5,
            "level": "model",
        }
    )


def same_row(found: AuditRow, expected: AuditRow) -> None:
    """Require the same figures, verdict and caveats, but for what takes single pairs."""
    where = (found.tool, found.key)
    assert where == (expected.tool, expected.key)
    assert (found.n, found.cluster) == (expected.n, expected.cluster), where
    assert found.verdict.word == expected.verdict.word, where
    for name, figure in found.figures.items():
        match = expected.figures[name]
        if name == "median_ape":
            assert figure.value == pytest.approx(match.value, rel=0.00501)
            assert (figure.low is None) == (match.low is None), where
            if figure.low is not None:
                # To the outer edges of buckets.
                assert match.low / math.exp(BUCKET) <= figure.low <= match.low, where
                assert match.high <= figure.high <= match.high * math.exp(BUCKET), where
            continue
        for end in ("value", "low", "high"):
            a, b = getattr(figure, end), getattr(match, end)
            assert (a is None) == (b is None), (where, name, end)
            assert a is None or math.isclose(a, b, rel_tol=1e-9), (where, name, end)
    here = {one.code: one for one in found.caveats}
    there = {one.code: one for one in expected.caveats if one.code not in _NEED_PAIRS}
    # More tests are made in memory, and corrected together: what is hardly significant may differ.
    assert sure(found.caveats) <= set(there), where
    assert sure(there.values()) <= set(here), where
    for code in here.keys() & there.keys():
        same_evidence(here[code], there[code])


def sure(caveats: Iterable[Caveat]) -> set[str]:
    return {one.code for one in caveats if one.evidence.get("p_value", 0.0) < 0.005}


def same_evidence(found: Caveat, expected: Caveat) -> None:
    for name, value in found.evidence.items():
        if name in (*_APPROXIMATE, "share_of_clusters_below_max") or not isinstance(value, float):
            continue
        assert value == pytest.approx(expected.evidence[name], rel=1e-6), (found.code, name)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_an_audit_is_that_of_pairs_in_memory(
    engine: str, tools: pl.DataFrame, to_engine: Make
) -> None:
    expected = audit(Pairs(tools), method="log-t")
    found = audit(
        to_engine(engine, tools)
        if engine in ("Polars", "DuckDB", "Dask", "Spark")
        else PairRows(to_engine(engine, tools)),
        method="log-t",
    )
    assert found.engine == engine
    assert set(found.not_looked_for) == {one.code for one in CHECKS if one.needs_pairs}
    assert (found.by, found.joint_level) == (expected.by, expected.joint_level)
    for one, other in zip(
        [*found.rows, *found.by_tool], [*expected.rows, *expected.by_tool], strict=True
    ):
        same_row(one, other)
    for verdict, match in zip(found.claims, expected.claims, strict=True):
        assert (verdict.word, verdict.jointly) == (match.word, match.jointly)
    codes = {one.code for row in (*found.rows, *found.by_tool) for one in row.caveats}
    assert codes >= {"clustered", "tail", "cancelling-errors"}


def small(n: int, seed: int) -> pl.DataFrame:
    """Few enough pairs for permutations; predictions that are mostly too high, some exact."""
    rng = np.random.default_rng(seed)
    model = rng.integers(0, 6, n)
    measured = np.exp(2 * rng.standard_normal(n))
    size = np.abs(0.05 * rng.standard_normal(n)) * (1 + 3 * (model == 0))
    size[:2] = 0.0
    return pl.DataFrame(
        {
            "predicted": measured * (1 + np.where(rng.random(n) < 0.9, size, -size)),
            "measured": measured,
            "model": [f"net{k}" for k in model.tolist()],
            "kernel_class": np.where(rng.random(n) < 0.9, "gemm", "softmax"),
        }
    )


@pytest.mark.parametrize("n", [8, 40, 150, 499])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_samples_are_tested_by_the_same_permutations(n: int, seed: int) -> None:
    table = small(n, seed)
    claims = [user_claim("2.3%", aggregation="mean")]
    options: dict[str, Any] = {"by": [], "method": "log-t", "claims": claims}
    found, expected = audit(table.lazy(), **options), audit(Pairs(table), **options)
    here = {one.code for one in found.overall.caveats}
    there = {one.code: one for one in expected.overall.caveats if one.code not in _NEED_PAIRS}
    # How far the averages are apart is tested more carefully where the weights are not known.
    assert here | {"aggregation-matters"} == set(there) | {"aggregation-matters"}
    for one in found.overall.caveats:
        same_evidence(one, there[one.code])
        assert one.evidence.get("p_value", 0.0) == pytest.approx(
            there[one.code].evidence.get("p_value", 0.0), abs=0.01
        )


def test_selection_tool_and_claims_are_those_of_pairs_in_memory(tools: pl.DataFrame) -> None:
    options: dict[str, Any] = {
        "by": ["model"],
        "tool": "NEUSIGHT",
        "method": "log-t",
        "claims": [user_claim("12%", aggregation="mean"), user_claim("9%")],
        "cluster": "device",
        "resamples": 499,
    }
    found = audit(PairRows(tools.lazy()).where({"mode": "training"}), **options)
    expected = audit(Pairs(tools).where({"mode": "training"}), **options)
    assert found.others == expected.others == ("habitat",)
    assert [v.word for v in found.claims] == [v.word for v in expected.claims]
    for one, other in zip(found.rows, expected.rows, strict=True):
        same_row(one, other)


def test_what_failed_is_told(tools: pl.DataFrame) -> None:
    table = tools.filter(pl.col("tool") == "habitat").with_columns(
        status=pl.when(pl.int_range(pl.len()) < 90).then(pl.lit("failed")).otherwise(pl.lit("ok"))
    )
    found = audit(table.lazy(), by=[])
    assert [(d.n, d.reason) for d in found.dropped] == [(90, "the prediction failed (status)")]
    assert found.overall.caveats[0].code == "failures"


def test_claims_of_another_level_are_not_verifiable(tools: pl.DataFrame) -> None:
    mixed = tools.with_columns(
        level=pl.when(pl.col("mode") == "training").then(pl.lit("kernel")).otherwise("level")
    )
    found = audit(mixed.lazy(), by=[], tool="neusight").overall
    caveat = next(one for one in found.caveats if one.code == "level-mismatch")
    counts = tools.filter(pl.col("tool") == "neusight")["mode"].value_counts()
    assert sorted(caveat.evidence["levels"].values()) == sorted(counts["count"].to_list())


@pytest.mark.parametrize(
    ("reference", "word"),
    [("simulator", "not verifiable"), ("hardware", "overstated"), ("unknown", "overstated")],
)
def test_claims_against_another_reference_are_not_verifiable(
    tools: pl.DataFrame, reference: str, word: str
) -> None:
    table = tools.with_columns(reference=pl.lit(reference))
    claim = replace(user_claim("2%", aggregation="mean"), reference="hardware")
    found, expected = (
        audit(pairs, by=["mode"], tool="neusight", claims=[claim], cluster="none")
        for pairs in (table.lazy(), Pairs(table))
    )
    for one, other in zip(found.rows, expected.rows, strict=True):
        assert one.verdict.word == other.verdict.word == word
        assert ("these pairs is simulator" in one.verdict.reason) == (word == "not verifiable")
        told = [caveat.code == "reference-mismatch" for caveat in one.caveats]
        assert any(told) == (reference != "hardware")


def test_a_claim_that_sums_cannot_answer_says_so(tools: pl.DataFrame) -> None:
    claim = replace(user_claim("0.98", metric="correlation"), metric="Pearson correlation")
    found = audit(tools.lazy(), by=[], tool="neusight", claims=[claim]).overall
    assert found.verdict.word == "not verifiable"
    caveat = next(one for one in found.caveats if one.code == "metric-mismatch")
    assert caveat.evidence["value"] is None


def test_an_audit_is_read_back_from_its_document(tools: pl.DataFrame, tmp_path: Path) -> None:
    import json

    found = audit(tools.lazy(), tool="neusight")
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({"schema": "errcomp.audit/1", **found.to_dict()}))
    _, _, again = read(path)
    assert isinstance(again, Audit)
    assert again.to_dict() == found.to_dict()
    assert again.rows[0].figures["median_ape"].figure == "median_ape_approx"


def test_one_bad_row_is_named(tools: pl.DataFrame) -> None:
    spoilt = pl.when(pl.int_range(pl.len()) == 7).then(float("nan")).otherwise(pl.col("measured"))
    bad = tools.with_columns(measured=spoilt)
    with pytest.raises(InputError, match=r"measured must be finite, got nan in 1 row: tool="):
        audit(bad.lazy())
    with pytest.raises(InputError, match="no column 'devise'"):
        audit(tools.lazy(), by=["devise"])
    with pytest.raises(InputError, match=r"single pairs, but these pairs stay in Polars\."):
        audit(tools.lazy(), method="bootstrap-t")


def test_sums_of_a_part_are_those_of_its_pairs(tools: pl.DataFrame) -> None:
    from errcomp.tables.sums import Sum

    error = Sum(("ape",))
    totals = PairTotals(PairRows(tools.lazy()), by=["tool"], within=["model"], sums=[error])
    part = totals.of_tool("habitat").where({"model": ["net1", "net2"]})
    pairs = Pairs(tools).of_tool("habitat").where({"model": ["net1", "net2"]})
    assert (part.n, len(part)) == (pairs.n, 2)
    ape = np.abs(pairs.predicted - pairs.measured) / pairs.measured
    assert part.sums(error).sum() == pytest.approx(ape.sum(), rel=1e-12)
    assert part.selection == pairs.selection
