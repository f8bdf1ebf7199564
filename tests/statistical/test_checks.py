"""How often do checks in CI fail where nothing is wrong, and do they fail where something is?

Results made by hand from known truth. At most 5 % of checks may fail where all is as promised;
tolerances are three binomial standard errors.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import errcomp as ec
from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.evaluation import Evaluation
from errcomp.calibration.evaluation.held_out import HeldOut
from errcomp.calibration.view.check import report_evaluation
from errcomp.claims.registry import user_claim
from errcomp.claims.view.audit_check import report_audit
from errcomp.metrics.bands import coverage_interval
from errcomp.propagation.validation import LEVELS_SHOWN, Validation, ValidationRow
from errcomp.propagation.view.check import report_validation

pytestmark = pytest.mark.slow

ALPHA, SD = 0.05, 0.1
TAILS = stats.norm.ppf((1 + np.array(LEVELS)) / 2)


def bound(reps, share=ALPHA):
    return share + 3 * float(np.sqrt(share * (1 - share) / reps))


def alike(rng, cluster, share):
    """Standard normal values, of which clusters have a share of the variance in common."""
    common = rng.standard_normal(cluster.max() + 1)[cluster]
    return np.sqrt(share) * common + np.sqrt(1 - share) * rng.standard_normal(len(cluster))


def validation(rng, sizes, share, *, too_narrow=1.0):
    """Totals under bands that hold, or are too narrow by a factor."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    z = too_narrow * alike(rng, cluster, share)
    rows = []
    for level in LEVELS_SHOWN:
        inside = np.abs(z) < stats.norm.ppf((1 + level) / 2)
        covered = coverage_interval(inside, cluster)
        rows.append(ValidationRow("estimated", level, *covered, len(cluster), len(sizes), 0.4, 0.5))
    return Validation(tuple(rows), {}, (), "device", "sum", ())


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize(
    "sizes", [[4] * 3, [10] * 5, [11] * 8, [20, 8, 4, 4, 2, 1, 1]], ids=["3", "5", "8", "uneven"]
)
def test_bands_that_hold_rarely_fail(sizes, share):
    rng, reps = np.random.default_rng(0), 300
    failed = sum(report_validation(validation(rng, sizes, share)).failed for _ in range(reps))
    assert failed / reps < bound(reps)


def test_bands_that_are_too_narrow_fail():
    rng = np.random.default_rng(0)
    found = [
        report_validation(validation(rng, [11] * 8, 0.3, too_narrow=2)).failed for _ in range(100)
    ]
    assert np.mean(found) > 0.9


def held_out(rng, cluster, split, share, *, worse, band):
    n = len(cluster)
    measured = np.exp(rng.standard_normal(n))
    predicted = measured * np.exp(SD * worse * alike(rng, cluster, share))
    width = np.exp(SD * band * TAILS)
    names = cluster.astype(str).astype(object)
    return HeldOut(
        run=np.arange(n).astype(str).astype(object),
        group=names,
        device=names,
        model=names,
        measured=measured,
        total=measured * np.exp(SD * alike(rng, cluster, share)),
        predicted=predicted,
        low=predicted[:, None] / width,
        high=predicted[:, None] * width,
        quantiles=np.full((n, len(QUANTILES)), np.nan),
        calibrated=np.ones(n, dtype=bool),
    )


def evaluation(rng, groups, per, share, *, worse=1.0, band=1.0):
    """Two estimators in two splits, as good as the sum of kernels or worse by a factor."""
    cluster = np.repeat(np.arange(groups), per)
    held = {
        (split, estimator): held_out(rng, cluster, split, share, worse=worse, band=band)
        for split in ("leave-model-out", "leave-device-out")
        for estimator in ("bayesian", "boosted")
    }
    rows = tuple(
        SimpleNamespace(
            split=split,
            estimator=estimator,
            n=len(one),
            refused=0,
            worst=(),
            figures={"mean_ape": SimpleNamespace(value=float(one.ape.mean()))},
        )
        for (split, estimator), one in held.items()
    )
    return Evaluation("composition", "ms", rows, held, (), (), (), (), {}, 0)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize(("groups", "per"), [(5, 10), (8, 10), (20, 3)])
def test_models_as_good_as_the_sum_rarely_fail(groups, per, share):
    rng, reps = np.random.default_rng(0), 100
    reports = [report_evaluation(evaluation(rng, groups, per, share)) for _ in range(reps)]
    assert {report.properties["tests"] for report in reports} == {"8"}
    assert np.mean([report.failed for report in reports]) < bound(reps)


@pytest.mark.parametrize(
    ("what", "options"), [("worse", {"worse": 2, "band": 4}), ("narrow", {"band": 0.4})]
)
def test_models_that_are_worse_or_have_narrow_bands_fail(what, options):
    rng = np.random.default_rng(0)
    reports = [report_evaluation(evaluation(rng, 8, 10, 0.1, **options)) for _ in range(50)]
    assert np.mean([report.properties[f"cases.{what}"] != "0" for report in reports]) > 0.9
    other = {"worse": "narrow", "narrow": "worse"}[what]
    assert np.mean([report.properties[f"cases.{other}"] != "0" for report in reports]) < 0.2


def test_true_claims_about_many_groups_rarely_fail():
    """Six groups: each by itself at 95 % would raise a false alarm in more audits than may fail."""
    rng, reps, groups, n = np.random.default_rng(0), 40, 6, 12
    # Of relative errors with a normal law.
    claim = user_claim(f"{100 * SD * np.sqrt(2 / np.pi):.6f}%", aggregation="mean")
    failed = 0
    for _ in range(reps):
        error = SD * rng.standard_normal(groups * n)
        pairs = ec.Pairs(
            {
                "predicted": 1 + error,
                "measured": np.ones(groups * n),
                "suite": np.repeat(np.arange(groups), n).astype(str),
            }
        )
        report = report_audit(ec.audit(pairs, by=["suite"], claims=[claim], resamples=1999))
        # Six groups, and the claim about all pairs.
        assert len(report.cases) == groups + 1
        failed += report.failed
    assert failed / reps < bound(reps)
