"""A held-out evaluation as a check: what is tested, at what level, what is skipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.evaluation import Evaluation
from errcomp.calibration.evaluation.held_out import HeldOut, Refused
from errcomp.calibration.evaluation.judging import judge
from errcomp.calibration.view.check import report_evaluation
from errcomp.errors import InputError

TAILS = stats.norm.ppf((1 + np.array(LEVELS)) / 2)
SPLIT = "leave-device-out"


def held(*, sd=0.05, band=1.0, devices=8, per=4, bands=True, seed=0):
    """Predictions with errors of this spread beside sums of kernels that are 10 % off."""
    rng = np.random.default_rng(seed)
    n = devices * per
    device = np.repeat(np.arange(devices), per).astype(str).astype(object)
    predicted = np.exp(sd * rng.standard_normal(n))
    width = np.exp(band * sd * TAILS) if bands else np.full(len(LEVELS), np.nan)
    return HeldOut(
        run=np.array([f"r{i}" for i in range(n)], dtype=object),
        group=device,
        device=device,
        model=device,
        measured=np.ones(n),
        total=np.exp(0.1 * rng.standard_normal(n)),
        predicted=predicted,
        low=predicted[:, None] / width,
        high=predicted[:, None] * width,
        quantiles=np.full((n, len(QUANTILES)), np.nan),
        calibrated=np.ones(n, dtype=bool),
    )


def evaluation(predictions, **options):
    rows = tuple(
        judge(one, split=split, estimator=estimator, others={}, refused=0, seed=0)
        for (split, estimator), one in predictions.items()
    )
    given = {"refused": (), "not_done": {}, **options}
    return Evaluation(
        "composition", "ms", rows, predictions, (), (), not_judged=(), seed=0, **given
    )


def by_estimator(**predictions):
    return evaluation({(SPLIT, name): one for name, one in predictions.items()})


def outcomes(report):
    return {case.name: (case.outcome, case.kind) for case in report.cases}


def test_what_is_better_than_the_sum_passes(schema):
    report = report_evaluation(by_estimator(boosted=held()))
    assert outcomes(report) == {f"{SPLIT}, boosted": ("passed", "")}
    assert not report.failed
    assert report.properties["tests"] == "2"
    assert report.properties["level.joint"] == "0.975"
    assert "**Pass: no failure in 2 tests of 1 combination of split and estimator.**" in (
        report.markdown
    )
    schema(report.junit())


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        (held(sd=0.6), "worse", "worse than the sum of kernels: mean error "),
        (held(band=0.3), "narrow", "too narrow: the 90 % band contains "),
        (held(sd=0.6, band=0.3), "worse, narrow", "worse than the sum of kernels"),
    ],
    ids=["worse", "narrow", "both"],
)
def test_what_fails(given, kind, says, schema):
    report = report_evaluation(by_estimator(boosted=given))
    assert outcomes(report) == {f"{SPLIT}, boosted": ("failure", kind)}
    root = schema(report.junit())
    assert root.find(".//failure").get("message").startswith(says)
    assert len(root.find(".//failure").text.splitlines()) == len(kind.split(", "))
    assert report.properties[f"cases.{kind[:5] if 'worse' in kind else 'narrow'}"] == "1"


@pytest.mark.parametrize(
    ("fail_on", "failed", "tests"), [(["worse"], False, "1"), (["narrow"], True, "1")]
)
def test_what_is_not_asked_for_is_neither_tested_nor_counted(fail_on, failed, tests):
    report = report_evaluation(by_estimator(boosted=held(band=0.3)), fail_on=fail_on)
    assert (report.failed, report.properties["tests"]) == (failed, tests)
    assert "not tested" in report.markdown


@pytest.mark.parametrize("fail_on", [[], ["bad"]])
def test_what_can_be_failed_on_is_listed(fail_on):
    with pytest.raises(InputError, match="fail_on must be worse or narrow, or both, got"):
        report_evaluation(by_estimator(boosted=held()), fail_on=fail_on)


def test_baselines_are_judged_where_asked_for_or_alone():
    both = by_estimator(sum=held(), device=held(sd=0.6), boosted=held())
    assert list(outcomes(report_evaluation(both))) == [f"{SPLIT}, boosted"]
    asked = report_evaluation(both, estimators=["device", "sum"])
    # The sum is not compared with itself: it has one test only.
    assert asked.properties["tests"] == "3"
    assert outcomes(asked)[f"{SPLIT}, device"] == ("failure", "worse")
    alone = report_evaluation(by_estimator(sum=held(), device=held()))
    assert list(outcomes(alone)) == [f"{SPLIT}, device"]
    with pytest.raises(InputError, match="no estimator to check. Evaluated estimators: sum"):
        report_evaluation(by_estimator(sum=held()))


def test_intervals_are_wider_the_more_tests_there_are():
    """Just worse: alone it fails, beside nine others that are fine it does not."""
    only = {"bands": False}
    found = next(
        sd
        for sd in np.arange(0.1, 0.3, 0.002)
        if report_evaluation(by_estimator(boosted=held(sd=sd, **only))).failed
    )
    fine = {(SPLIT, f"m{i}"): held(seed=i, **only) for i in range(9)}
    many = evaluation({(SPLIT, "boosted"): held(sd=found, **only), **fine})
    assert report_evaluation(many).properties["tests"] == "10"
    assert not report_evaluation(many).failed


def test_few_groups_and_no_bands_are_skipped(schema):
    report = report_evaluation(by_estimator(boosted=held(devices=4, bands=False)))
    assert outcomes(report) == {f"{SPLIT}, boosted": ("skipped", "")}
    assert report.cases[0].message == "too few groups for an interval, or no bands"
    assert "**Nothing could be tested in 1 combination of split and estimator.**" in report.markdown
    schema(report.junit())
    # Four groups give no interval of a difference, but one of the coverage.
    assert report_evaluation(by_estimator(boosted=held(devices=4))).properties["tests"] == "1"


def test_what_was_not_answered_is_skipped_with_the_reason():
    refused = (Refused(SPLIT, "boosted", "A", 3, "not sure."),)
    result = evaluation(
        {(SPLIT, "stack"): held()},
        refused=refused,
        not_done={"leave-vendor-out": "no column vendor"},
    )
    report = report_evaluation(result, estimators=["stack", "boosted"])
    assert {case.name: case.message for case in report.cases if case.outcome == "skipped"} == {
        f"{SPLIT}, boosted": "not sure.",
        "leave-vendor-out, stack": "no column vendor",
        "leave-vendor-out, boosted": "no column vendor",
    }
    some = evaluation({(SPLIT, "stack"): held()}, refused=refused)
    some = replace(some, rows=(replace(some.rows[0], refused=3),))
    assert "3 predictions were refused and not evaluated: not sure." in (
        report_evaluation(some).markdown
    )


def test_summary_says_what_to_do():
    text = report_evaluation(by_estimator(boosted=held(sd=0.6, band=0.3))).markdown
    assert text.startswith("## Held-out evaluation: composition\n\n**Worse than the sum of kernels")
    assert ". Bands too narrow in 1 of 1 combination of split and estimator: " in text
    worst = held(sd=0.6, band=0.3)
    run = worst.run[int(np.argmax(worst.ape))]
    assert f"({SPLIT}, boosted: {run}, " in text
    assert "- Narrow: do not rely on the bands for new groups (models, devices, …)." in text
    assert "Confidence of the intervals: 97.5 % each, 95 % for all 2 tests together" in text
    assert len(text.splitlines()) < 60


def test_the_split_of_devices_and_models_takes_the_wider_interval():
    one = held(sd=0.6, band=0.3)
    crossed = replace_model(one, np.tile(np.arange(4), 8))
    both = "leave-model-and-device-out"
    device = report_evaluation(evaluation({(SPLIT, "boosted"): crossed}))
    wider = report_evaluation(evaluation({(both, "boosted"): crossed}))
    # Four models give no interval of the difference at all.
    assert (device.properties["tests"], wider.properties["tests"]) == ("2", "1")


def replace_model(one, model):
    return replace(one, model=model.astype(str).astype(object))


def test_any_name_is_escaped(nasty, schema, rendered):
    refused = (Refused(SPLIT, "boosted", nasty, 3, nasty),)
    result = evaluation({(SPLIT, "stack"): held(sd=0.6)}, refused=refused)
    report = report_evaluation(result, estimators=["stack", "boosted"], title=f"t{nasty}")
    schema(report.junit())
    html = rendered(report.markdown)
    assert html.count("<td") == 2 * 7
    assert "<script" not in html
    assert report.junit() == report_evaluation(result, estimators=["stack", "boosted"]).junit()
