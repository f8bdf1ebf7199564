"""Matching and contrasts on tables small enough to work out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.drivers import STATEMENTS, Statement, _table_of, correct, error_drivers, judge
from errcomp.stats.significance import holm
from errcomp.tables import Pairs


def pairs_of(rows, **more):
    """Rows of (device, model, mode, batch, variant, signed relative error)."""
    names = ("device", "model", "mode", "batch", "variant")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    # Devices differ in speed, so that none has the predictions of another.
    measured = [100.0 + ord(row[0]) for row in rows]
    predicted = [m * (1 + row[-1]) for m, row in zip(measured, rows, strict=True)]
    return Pairs({**columns, "predicted": predicted, "measured": measured, **more})


def contrast_of(pairs, name, **options):
    found = {c.name: c for c in error_drivers(pairs, **options).contrasts}
    return found[name]


@pytest.mark.core
def test_ratio_is_the_geometric_mean_over_devices_not_over_pairs():
    rows = []
    # Device A has two pairs with ratio 2, B one with ratio 4, C one with ratio 8.
    for device, model, ratio in (("A", "m", 2), ("A", "n", 2), ("B", "m", 4), ("C", "m", 8)):
        rows.append((device, model, "inference", 1, "base", 0.05))
        rows.append((device, model, "inference", 1, "fusion", 0.05 * ratio))
    contrast = contrast_of(pairs_of(rows), "variant: fusion vs base")
    assert contrast.effect.value == pytest.approx(4.0)
    assert (contrast.n_pairs, contrast.clusters, contrast.cluster_key) == (4, 3, "device")
    assert contrast.matched_on == ("device", "model")
    half = 4.302652729911275 * math.log(2) / math.sqrt(3)
    assert math.log(contrast.effect.high) == pytest.approx(math.log(4) + half)
    # Points: 0.05, 0.15 and 0.35 per device.
    assert contrast.effect_points.value == pytest.approx(0.55 / 3)
    signed = [math.log(1.1 / 1.05), math.log(1.2 / 1.05), math.log(1.4 / 1.05)]
    assert contrast.effect_signed.value == pytest.approx(np.mean(signed))
    assert contrast.ape_a == pytest.approx(0.05)
    assert contrast.ape_b == pytest.approx((0.1 + 0.1 + 0.2 + 0.4) / 4)
    assert contrast.p_check == 0.25


@pytest.mark.core
def test_rows_without_a_partner_count_in_the_naive_means_only():
    rows = []
    for device, ratio in (("A", 2), ("B", 3), ("C", 4)):
        rows.append((device, "m", "inference", 1, "base", 0.05))
        rows.append((device, "m", "inference", 1, "fusion", 0.05 * ratio))
    rows += [("D", "m", "inference", 1, "base", 0.65), ("A", "n", "inference", 1, "base", 0.1)]
    contrast = contrast_of(pairs_of(rows), "variant: fusion vs base")
    assert contrast.n_pairs == 3
    assert contrast.ape_a == pytest.approx(0.05)
    assert contrast.naive_a == pytest.approx((0.15 + 0.65 + 0.1) / 5)
    assert contrast.naive_b == pytest.approx(0.15)


@pytest.mark.core
def test_repeats_of_a_configuration_are_one_pair():
    rows = []
    for device in "ABC":
        rows += [(device, "m", "inference", 1, "base", error) for error in (0.1, 0.2)]
        rows.append((device, "m", "inference", 1, "fusion", 0.3 + 0.1 * "ABC".index(device)))
    contrast = contrast_of(pairs_of(rows, repeat=[0, 1, 0] * 3), "variant: fusion vs base")
    assert contrast.n_pairs == 3
    assert contrast.ape_a == pytest.approx(0.15)


@pytest.mark.core
def test_a_batch_is_compared_with_its_double_and_fourfold_neighbour_only():
    rows = []
    for i, device in enumerate("ABC"):
        for batch, error in ((1, 0.05), (2, 0.1), (8, 0.2 + 0.01 * i), (24, 0.4)):
            rows.append((device, "m", "inference", batch, "base", error))
    found = {c.name: c for c in error_drivers(pairs_of(rows)).contrasts}
    assert sorted(found) == ["batch ×2", "batch ×4"]
    assert found["batch ×2"].n_pairs == 3
    assert found["batch ×2"].effect.value == pytest.approx(2.0)
    assert found["batch ×2"].naive_a is None
    assert found["batch ×2"].effect.low is None
    assert found["batch ×2"].note == "no interval: no spread between clusters"
    assert found["batch ×4"].effect.value == pytest.approx((2.0 * 2.1 * 2.2) ** (1 / 3))
    assert (found["batch ×4"].level_a, found["batch ×4"].level_b) == ("×1", "×4")


@pytest.mark.core
def test_batch_is_averaged_where_equal_batches_are_too_few_and_this_is_said():
    rows = []
    for i, device in enumerate("ABCD"):
        rows.append((device, "m", "inference", 8, "base", 0.1))
        rows.append((device, "m", "inference", 16, "base", 0.4))
        rows.append((device, "m", "training", 2, "base", 0.3 + 0.01 * i))
    rows.append(("A", "m", "training", 8, "base", 0.2))
    contrast = contrast_of(pairs_of(rows), "mode: training vs inference")
    assert contrast.n_pairs == 4
    assert contrast.matched_on == ("device",)
    assert contrast.not_matched_on == ("batch",)
    inference = math.sqrt(0.1 * 0.4)
    training = [math.sqrt(0.3 * 0.2), 0.31, 0.32, 0.33]
    expected = math.exp(np.mean([math.log(t / inference) for t in training]))
    assert contrast.effect.value == pytest.approx(expected)
    assert contrast.note == (
        "batch sizes may differ within a pair (with equal batch sizes the ratio is 2, but 1 pair "
        "in 1 independent cluster is too few for an interval)"
    )


@pytest.mark.core
def test_batch_is_averaged_where_no_batch_is_shared():
    rows = []
    for i, device in enumerate("ABC"):
        rows.append((device, "m", "inference", 8, "base", 0.1))
        rows.append((device, "m", "inference", 4, "base", 0.1))
        rows.append((device, "m", "training", 2, "base", 0.2 + 0.01 * i))
    contrast = contrast_of(pairs_of(rows), "mode: training vs inference")
    # Batch alone says which mode it is, so it was never possible to match on it.
    assert contrast.not_matched_on == ("batch",)
    assert contrast.note == "batch sizes may differ within a pair"


@pytest.mark.core
def test_models_are_the_clusters_where_devices_are_too_few():
    rows = []
    for device in "AB":
        for i, model in enumerate("mnop"):
            rows.append((device, model, "inference", 1, "base", 0.1))
            rows.append((device, model, "inference", 1, "fusion", 0.2 + 0.01 * i))
    contrast = contrast_of(pairs_of(rows), "variant: fusion vs base")
    assert (contrast.clusters, contrast.cluster_key) == (4, "model")
    assert contrast.note == (
        "pairs are clustered by model, so the interval applies only to these devices"
    )


@pytest.mark.core
def test_two_devices_and_two_models_are_too_few_for_an_interval():
    rows = []
    for device in "AB":
        for i, model in enumerate("mn"):
            rows.append((device, model, "inference", 1, "base", 0.1))
            rows.append((device, model, "inference", 1, "fusion", 0.2 + 0.01 * i))
    contrast = contrast_of(pairs_of(rows), "variant: fusion vs base")
    assert contrast.effect.low is None
    assert contrast.effect.level is None
    assert contrast.p_value is None
    assert contrast.p_holm is None
    assert contrast.note == "no interval: 2 independent clusters, 3 needed"


@pytest.mark.core
def test_without_device_and_model_every_pair_stands_for_itself():
    n = 8
    errors = [0.1, 0.2, 0.1, 0.25, 0.1, 0.3, 0.1, 0.22]
    pairs = Pairs(
        {
            "predicted": [100 * (1 + e) for e in errors],
            "measured": [100.0] * n,
            "variant": ["base", "fusion"] * 4,
            "case": ["a", "a", "b", "b", "c", "c", "d", "d"],
        }
    )
    contrast = contrast_of(pairs, "variant: fusion vs base", factors=["variant"])
    assert (contrast.n_pairs, contrast.clusters, contrast.cluster_key) == (4, 4, "pair")
    assert contrast.matched_on == ("case",)
    assert "pairs count as independent" in contrast.note


def between_rows(errors):
    """Devices A to F; D to F are of the other vendor; two models each."""
    rows = []
    for device, shift in zip("ABCDEF", errors, strict=True):
        for model, base in (("m", 0.05), ("n", 0.2)):
            rows.append((device, model, "inference", 1, "base", base * shift))
    return rows


@pytest.mark.core
def test_vendor_is_compared_between_devices():
    rows = between_rows([1.0, 1.1, 0.9, 2.0, 2.2, 1.8])
    pairs = pairs_of(rows, vendor=["x"] * 6 + ["y"] * 6)
    contrast = contrast_of(pairs, "vendor: y vs x")
    assert contrast.design == "between"
    assert (contrast.n_pairs, contrast.clusters, contrast.cluster_key) == (2, 3, "device")
    assert contrast.effect.value == pytest.approx(2.0)
    assert contrast.not_matched_on == ("device",)
    assert contrast.effect.low < 2.0 < contrast.effect.high
    assert contrast.p_check == pytest.approx(0.1)
    assert "bias-reduced" in contrast.effect.method


@pytest.mark.core
def test_two_devices_on_a_side_are_too_few():
    rows = [row for row in between_rows([1.0, 1.1, 0.9, 2.0, 2.2, 1.8]) if row[0] != "F"]
    pairs = pairs_of(rows, vendor=["x"] * 6 + ["y"] * 4)
    contrast = contrast_of(pairs, "vendor: y vs x")
    assert contrast.clusters == 2
    assert contrast.note == "no interval: 2 independent clusters, 3 needed on each side"


@pytest.mark.core
def test_levels_that_device_and_model_fix_together_are_compared_between_devices():
    rows = between_rows([1.0, 1.1, 0.9, 2.0, 2.2, 1.8])
    # Model n is new to every device, model m to D, E and F only.
    seen = [row[1] == "m" and row[0] in "ABC" for row in rows]
    contrast = contrast_of(pairs_of(rows, in_distribution=seen), "in_distribution: false vs true")
    assert contrast.design == "between"
    assert contrast.n_pairs == 1
    assert contrast.not_matched_on == ("device",)
    assert contrast.effect.value == pytest.approx((2.0 * 2.2 * 1.8 / (1.1 * 0.9)) ** (1 / 3))


@pytest.mark.core
def test_devices_with_the_same_predictions_are_one_cluster_and_named():
    rows, predicted, measured = [], [], []
    scales = {"A": 1.0, "B": 1.0, "C": 1.3, "D": 1.1}
    for device, scale in scales.items():
        for k, model in enumerate("mn"):
            for variant, error in (("base", 0.1), ("fusion", 0.25 * scale)):
                rows.append((device, model, "inference", 1, variant, 0.0))
                # A and B share predictions but not measurements.
                p = {"A": 100.0, "B": 100.0, "C": 90.0, "D": 80.0}[device] + k
                predicted.append(p)
                measured.append(p / (1 + error * (1.02 if device == "B" else 1.0)))
    pairs = pairs_of(rows)
    pairs.predicted, pairs.measured = np.array(predicted), np.array(measured)
    contrast = contrast_of(pairs, "variant: fusion vs base")
    assert contrast.clusters == 3
    assert contrast.note == "A and B count as one device, because their predictions are equal"


@pytest.mark.core
def test_a_question_that_nothing_answers_becomes_a_caveat():
    rows = [("A", "m", "inference", 1, "base", 0.1), ("B", "n", "training", 1, "base", 0.2)] * 2
    result = error_drivers(pairs_of(rows, seq_len=[1, 2, 1, 2]))
    assert [c.name for c in result.contrasts] == []
    factors = [c.evidence["factor"] for c in result.caveats if c.code.startswith("no-matched")]
    assert factors == ["mode", "seq_len"]


@pytest.mark.core
def test_averaging_batches_within_a_device_comes_before_comparing_devices():
    rows = [
        (device, "m", mode, 1, "base", 0.1 * (1 + i))
        for i, (device, mode) in enumerate(
            zip("ABCDEF", ["inference", "training"] * 3, strict=True)
        )
    ]
    rows += [("A", "n", "inference", 1, "base", 0.1), ("A", "n", "training", 2, "base", 0.1)]
    contrast = contrast_of(pairs_of(rows), "mode: training vs inference")
    # Device A has both modes, so device does not fix the mode, but only model n, batch unmatched.
    assert contrast.design == "paired"
    assert contrast.not_matched_on == ("batch",)
    assert contrast.n_pairs == 1


@pytest.mark.core
def test_family_holds_both_questions_of_every_contrast_with_a_test():
    rng = np.random.default_rng(0)
    rows = [
        (device, "m", mode, 1, variant, 0.1 * rng.lognormal())
        for device in "ABCD"
        for mode in ("inference", "training")
        for variant in ("base", "fusion")
    ]
    contrasts = error_drivers(pairs_of(rows)).contrasts
    raw = sorted(p for c in contrasts for p in (c.p_value, c.p_signed))
    adjusted = sorted(p for c in contrasts for p in (c.p_holm, c.p_signed_holm))
    assert len(raw) == 4
    assert adjusted[0] == pytest.approx(min(1.0, 4 * raw[0]))
    by_bh = [p for c in contrasts for p in (c.p_bh, c.p_signed_bh)]
    assert max(by_bh) == pytest.approx(raw[-1])
    family = [p for c in contrasts for p in (c.p_value, c.p_signed)]
    assert [p for c in contrasts for p in (c.p_holm, c.p_signed_holm)] == pytest.approx(
        holm(family)
    )


def test_no_contrast_is_no_family():
    assert correct([]) == ()


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
        (table("batch", (4, 12), [2.0] * 3), BATCH, "No two configurations differ"),
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
    assert "mean APE differs by +5.1" in got.why
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


@pytest.mark.core
@pytest.mark.parametrize("tool", ["neusight", "NeuSight"])
def test_statements_about_a_tool_need_its_pairs(tool):
    ratios = [2.0, 2.2, 1.8, 2.1]
    result = error_drivers(table("variant", ("base", "fusion"), ratios, tool=tool))
    words = {s.statement.name: s.verdict for s in result.statements}
    assert words == {
        "batch-doubling": "not decidable",
        "fusion": "supported",
        "amd-training": "not decidable",
    }
    assert [*words] == [statement.name for statement in STATEMENTS]
    assert result.view().tables[0].title == "Published statements about this error"


@pytest.mark.core
@pytest.mark.parametrize("more", [{}, {"tool": "habitat"}])
def test_the_errors_of_other_tools_are_not_compared_with_statements(more):
    result = error_drivers(table("variant", ("base", "fusion"), [2.0, 2.2, 1.8, 2.1], **more))
    assert result.statements == ()
    title = f"Drivers of the error of {more.get('tool', 'the tool')} (8 pairs)"
    assert [result.view().title, result.view().tables[0].title] == [title] * 2
