"""One verdict word for each position of the interval, and each way to have none."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.drivers import STATEMENTS, Statement, error_drivers
from errcomp.drivers.analysis import _table_of
from errcomp.drivers.statements import judge
from errcomp.tables import Pairs

FUSION = next(s for s in STATEMENTS if s.name == "fusion")
BATCH = next(s for s in STATEMENTS if s.name == "batch-doubling")
AMD = next(s for s in STATEMENTS if s.name == "amd-training")


def table(factor, levels, ratios, **more):
    """One pair per device with this ratio of errors between the levels."""
    rows = [
        (f"d{i}", level, 0.05 * (ratio if level == levels[1] else 1.0), 90.0 + i)
        for i, ratio in enumerate(ratios)
        for level in levels
    ]
    columns = {
        "device": [row[0] for row in rows],
        factor: [row[1] for row in rows],
        "measured": [row[3] for row in rows],
        "predicted": [row[3] * (1 + row[2]) for row in rows],
        **{key: [value] * len(rows) for key, value in more.items()},
    }
    return Pairs(columns)


def verdict_of(pairs, statement, factors=None):
    rng = np.random.default_rng(0)
    return judge(_table_of(pairs, None, factors), statement, level=0.95, rng=rng)


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ([2.0, 2.2, 1.8, 2.1], "supported"),
        ([0.5, 0.55, 0.45, 0.5], "contradicted"),
        ([2.0, 0.5, 1.5, 0.7], "undecided"),
        ([2.0, 2.2], "not decidable"),
    ],
)
def test_the_word_follows_from_the_interval_against_the_stated_value(ratios, word):
    got = verdict_of(table("variant", ("base", "fusion"), ratios), FUSION)
    assert got.verdict == word
    assert got.why.startswith("APE changed by a factor of ")
    assert got.estimate is got.contrast.effect
    assert got.evidence["ape_ratio"] == pytest.approx(np.exp(np.mean(np.log(ratios))))


@pytest.mark.parametrize(
    ("ratios", "word", "share"),
    [
        ([2.0, 2.5, 3.0, 2.2, 2.1, 4.0, 2.0, 2.3], "supported", 1.0),
        ([1.0, 0.9, 1.1, 1.2, 0.8, 1.3, 0.7, 1.4], "contradicted", 0.0),
        ([2.1, 0.9, 2.2, 1.2, 2.5, 1.3], "undecided", 0.5),
        ([2.1, 2.2], "not decidable", 1.0),
    ],
)
def test_often_doubles_is_a_share_with_an_exact_interval(ratios, word, share):
    got = verdict_of(table("batch", (4, 8), ratios), BATCH)
    assert got.verdict == word
    assert got.estimate.figure == "share_doubled"
    assert got.estimate.value == share
    assert got.evidence["n_doubled"] == share * len(ratios)
    if word != "not decidable":
        from scipy import stats

        k, n = int(share * len(ratios)), len(ratios)
        exact = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
        assert (got.estimate.low, got.estimate.high) == pytest.approx((exact.low, exact.high))


def test_a_statement_about_a_subset_looks_at_that_subset_only():
    amd = table("mode", ("inference", "training"), [2.0, 2.2, 1.8, 2.1], vendor="AMD")
    other = table("mode", ("inference", "training"), [0.3, 0.2, 0.25, 0.3], vendor="NVIDIA")
    columns = {key: [*amd.column(key), *other.column(key)] for key in ("device", "mode", "vendor")}
    columns["device"] = [
        f"{d}-{v}" for d, v in zip(columns["device"], columns["vendor"], strict=True)
    ]
    both = Pairs(
        {
            **columns,
            "predicted": [*amd.predicted, *other.predicted],
            "measured": [*amd.measured, *other.measured * 1.5],
        }
    )
    got = verdict_of(both, AMD)
    assert got.verdict == "supported"
    assert got.contrast.where == {"vendor": "AMD"}
    assert got.contrast.name == "mode: training vs inference (where vendor=AMD)"
    assert got.estimate.value == pytest.approx(np.exp(np.mean(np.log([2.0, 2.2, 1.8, 2.1]))))


@pytest.mark.parametrize(
    ("pairs", "statement", "why"),
    [
        (table("dtype", ("a", "b"), [1.5] * 3), FUSION, "The table has no key 'variant'."),
        (table("variant", ("base", "dp4"), [1.5] * 3), FUSION, "No row has variant=fusion."),
        (
            table("mode", ("inference", "training"), [2.0] * 3),
            AMD,
            "The table has no key 'vendor'.",
        ),
        (
            table("mode", ("inference", "training"), [2.0] * 3, vendor="NVIDIA"),
            AMD,
            "No row has vendor=AMD.",
        ),
        (table("batch", ("4", "8"), [2.0] * 3), BATCH, "'batch' does not hold a number"),
        (table("batch", (4, 12), [2.0] * 3), BATCH, "No two configurations agree"),
    ],
)
def test_what_cannot_be_answered_says_why(pairs, statement, why):
    got = verdict_of(pairs, statement)
    assert got.verdict == "not decidable"
    assert why in got.why
    assert (got.estimate, got.contrast) == (None, None)
    assert got.to_dict()["estimate"] is None


def test_levels_of_a_subset_may_be_missing_there():
    pairs = table("mode", ("inference", "training"), [2.0] * 4, vendor="NVIDIA")
    vendor = np.where(pairs.column("mode") == "training", "NVIDIA", "AMD").tolist()
    columns = {"device": pairs.column("device"), "mode": pairs.column("mode"), "vendor": vendor}
    mixed = Pairs({**columns, "predicted": pairs.predicted, "measured": pairs.measured})
    got = verdict_of(mixed, AMD)
    assert got.verdict == "not decidable"


def test_naive_and_matched_differences_stand_side_by_side():
    pairs = table("variant", ("base", "fusion"), [2.0, 2.2, 1.8, 2.1])
    got = verdict_of(pairs, FUSION)
    assert "mean APE of all rows differs by +5.1" in got.why
    assert got.evidence["naive_mean_ape_b"] == pytest.approx(0.05 * np.mean([2.0, 2.2, 1.8, 2.1]))


def test_a_statement_of_ones_own_is_judged_by_the_same_code():
    own = Statement(
        "half",
        "Fusion triples the error.",
        "me",
        factor="variant",
        level_a="base",
        level_b="fusion",
        quantity="ape_ratio",
        stated=3.0,
        reading="ratio above 3",
    )
    assert verdict_of(table("variant", ("base", "fusion"), [2.0, 2.2, 1.8, 2.1]), own).verdict == (
        "contradicted"
    )


def test_every_statement_of_the_survey_is_judged_in_any_table():
    result = error_drivers(table("variant", ("base", "fusion"), [2.0, 2.2, 1.8, 2.1]))
    assert [s.statement.name for s in result.statements] == [s.name for s in STATEMENTS]
    words = {s.statement.name: s.verdict for s in result.statements}
    assert words == {
        "batch-doubling": "not decidable",
        "fusion": "supported",
        "amd-training": "not decidable",
    }
