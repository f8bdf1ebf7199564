"""What moves NeuSight's error: figures worked out from the published pairs."""

from __future__ import annotations

import math

import pytest

from errcomp.drivers import error_drivers

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def result():
    from errcomp.datasets import load

    return error_drivers(load("neusight"))


def contrast(result, name):
    return next(c for c in result.contrasts if c.name == name)


def test_the_subject_is_explained_and_amd_twins_count_as_one_device(result):
    assert (result.tool, result.n) == ("neusight", 146)
    caveats = {c.code: c for c in result.caveats}
    assert caveats["same-predictions"].evidence == {"devices": ["MI210", "MI250"]}


def test_fused_pairs_agree_with_a_calculation_by_hand(result):
    # APE in percent, unfused and fused, as the artifact's own table prints them.
    printed = {
        "A100": [(5.4, 17.2), (4.5, 13.4), (7.5, 12.6), (8.7, 16.8)],
        "H100": [(23.4, 24.6), (13.2, 14.0), (3.06, 9.1), (6.8, 19.4)],
        "L4": [(14.6, 14.5), (20.4, 20.9), (11.0, 7.4), (10.3, 9.5)],
    }
    means = [sum(math.log(b / a) for a, b in rows) / 4 for rows in printed.values()]
    fused = contrast(result, "variant: fusion vs base")
    assert (fused.n_pairs, fused.clusters) == (12, 3)
    assert fused.effect.value == pytest.approx(math.exp(sum(means) / 3), rel=0.01)
    assert fused.effect.low < 1 < fused.effect.high
    # Fusion moves every prediction up against its measurement: that much is certain.
    assert fused.effect_signed.low > 0


def test_doubling_the_batch_lowers_the_error(result):
    doubled = contrast(result, "batch ×2")
    assert (doubled.n_pairs, doubled.clusters) == (32, 10)
    assert doubled.effect.high < 1
    assert doubled.ape_b < doubled.ape_a


def test_vendor_has_two_independent_amd_devices_and_no_interval(result):
    vendor = contrast(result, "vendor: AMD vs NVIDIA")
    assert (vendor.design, vendor.clusters, vendor.effect.low) == ("between", 2, None)


def test_verdicts_on_the_survey(result):
    words = {s.statement.name: s.verdict for s in result.statements}
    assert words == {
        "batch-doubling": "contradicted",
        "fusion": "undecided",
        "amd-training": "undecided",
    }
    batch = result.statements[0]
    assert batch.evidence["n_doubled"] == 3
    assert batch.estimate.n == 32
    # Clopper-Pearson for 3 of 32 as if pairs were independent: narrower than the one reported.
    plain = [batch.evidence[f"share_{end}_if_pairs_were_independent"] for end in ("low", "high")]
    assert plain == pytest.approx([0.0198, 0.2502], abs=5e-4)
    assert batch.estimate.low < plain[0] < plain[1] < batch.estimate.high < 0.5
    amd = result.statements[2]
    naive = amd.evidence["naive_mean_ape_b"] - amd.evidence["naive_mean_ape_a"]
    matched = amd.evidence["matched_mean_ape_b"] - amd.evidence["matched_mean_ape_a"]
    # Half of the difference that the averages show is that of models and batches.
    assert naive == pytest.approx(0.069, abs=0.001)
    assert matched == pytest.approx(0.035, abs=0.001)


@pytest.mark.extras
def test_regression_names_what_cannot_be_told_apart(result):
    pytest.importorskip("statsmodels")
    absolute, signed = result.regressions
    aliased = [a.term for a in absolute.aliased]
    assert aliased == ["log2(seq_len)", "devices[4]"]
    assert absolute.clusters == 11
    assert signed.method == "mixed model"
