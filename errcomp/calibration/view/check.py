"""`errcomp calibrate evaluate` as test cases and as a summary: is the model worth using?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errcomp.calibration.design import LEVELS
from errcomp.calibration.estimators import BASELINES
from errcomp.calibration.evaluation.held_out import HeldOut, clusters_of, mean_in_clusters
from errcomp.calibration.evaluation.judging import covered
from errcomp.errors import InputError
from errcomp.report.junit import Case, CheckReport
from errcomp.report.markdown import head, items, line, paragraph, table
from errcomp.results import Estimate, format_fraction

if TYPE_CHECKING:
    from errcomp.calibration.evaluation import Evaluation, EvaluationRow

#: Conditions on which a check may fail.
CONDITIONS = ("worse", "narrow")
_SUM = "sum"
_BAND = 0.9
#: Probability of any false alarm, over all tests together; two-sided, as intervals are.
_ALPHA = 0.05
#: Cases that are named in the verdict.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Judged:
    """One estimator in one split; untestable parts are None."""

    split: str
    estimator: str
    row: EvaluationRow | None
    difference: Estimate | None
    coverage: tuple[float, float, float] | None
    reason: str

    @property
    def name(self) -> str:
        return f"{self.split}, {self.estimator}"

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the conditions on which it fails."""
        worse = self.difference is not None and (self.difference.low or 0.0) > 0
        narrow = self.coverage is not None and self.coverage[2] < _BAND
        return tuple(word for word, is_so in zip(CONDITIONS, (worse, narrow), strict=True) if is_so)


def report_evaluation(
    result: Evaluation,
    *,
    estimators: Sequence[str] | None = None,
    fail_on: Sequence[str] = CONDITIONS,
    name: str = "errcomp.evaluation",
    title: str = "",
) -> CheckReport:
    r"""Report a held-out evaluation as a check: is any estimator worse than no model at all?

    One test case for each split and estimator. It fails where

    * "worse": the mean error is larger than that of the plain sum of kernels on the same runs: the
      whole interval of the paired difference lies above 0;
    * "narrow": the 90 % band contains too few runs: the whole interval of its coverage lies below
      90 %. A band that contains more does not fail.

    It is skipped if neither can be tested: "worse" needs five groups, "narrow" bands and two
    groups, and both need predictions and a split that these runs allow. With :math:`m` possible
    tests the intervals have the level :math:`1 - 0.05/m` (Bonferroni), so the probability of any
    false alarm is at most 5 %. Nominally it is half of that, because an interval has two ends
    (tests/statistical/test_checks.py). An estimator may pass without beating the sum.

    Parameters
    ----------
    result : Evaluation
    estimators : sequence of str, optional
        The estimators to check. By default all but the baselines; if there are only baselines, all
        but the sum.
    fail_on : sequence of str
        "worse", "narrow" or both; the other is neither tested nor counted in :math:`m`.
    name : str
        Name of the suite, and class of its test cases.
    title : str
        Title of the summary.

    Returns
    -------
    CheckReport

    Raises
    ------
    InputError
        `fail_on` has an unknown condition, or there is no estimator to check.

    Examples
    --------
    >>> from errcomp.calibration.evaluation import Evaluation
    >>> nothing = Evaluation("composition", "ms", rows=(), held_out={}, flattery=(), transfer=(),
    ...                      refused=(), not_judged=(), seed=0,
    ...                      not_done={"leave-device-out": "there is one device"})
    >>> [case] = report_evaluation(nothing, estimators=["linear"]).cases
    >>> case.name, case.outcome, case.message
    ('leave-device-out, linear', 'skipped', 'there is one device')
    """
    unknown = [word for word in fail_on if word not in CONDITIONS]
    if unknown or not fail_on:
        raise InputError(
            f"fail_on must be {' or '.join(CONDITIONS)}, or both, got {unknown or 'nothing'}"
        )
    wanted = _estimators(result, estimators)
    splits = list(dict.fromkeys([*(row.split for row in result.rows), *result.not_done]))
    places = [(split, estimator) for split in splits for estimator in wanted]
    testable = {place: _testable(result, place, fail_on) for place in places}
    tests = sum(map(len, testable.values()))
    level = 1 - _ALPHA / max(tests, 1)
    judged = [_judge(result, *place, words, level) for place, words in testable.items()]
    verdict = _sentence(judged, tests)
    lines = [
        *head(title or f"Held-out evaluation: {result.task}", verdict),
        *_table(judged),
        *_advice(result, judged),
        *_footer(tests),
    ]
    words = Counter(word for case in judged for word in case.faults)
    return CheckReport(
        name,
        tuple(map(_case, judged)),
        {
            "task": result.task,
            "fail.on": ", ".join(fail_on),
            "alpha": f"{_ALPHA:g}",
            "tests": str(tests),
            "level.joint": f"{level:.6g}",
            "seed": str(result.seed),
            **{f"cases.{word}": str(words[word]) for word in fail_on},
        },
        verdict,
        "\n".join(lines) + "\n",
    )


def _estimators(result: Evaluation, wanted: Sequence[str] | None) -> list[str]:
    known = list(dict.fromkeys(row.estimator for row in result.rows))
    if wanted is None:
        fitted = [name for name in known if name not in BASELINES]
        wanted = fitted or [name for name in known if name != _SUM]
    if not wanted:
        raise InputError(
            f"no estimator to check. Evaluated estimators: {', '.join(known) or 'none'}. Name at "
            "least one of them."
        )
    return list(dict.fromkeys(wanted))


def _testable(result: Evaluation, place: tuple[str, str], fail_on: Sequence[str]) -> list[str]:
    """Return the possible tests, which depend on the runs and their groups, not on errors."""
    held = result.held_out.get(place)
    if held is None:
        return []
    faults = []
    if place[1] != _SUM and _difference(place[0], held, 1 - _ALPHA).low is not None:
        faults.append("worse")
    covered = _coverage(place[0], held, 1 - _ALPHA)
    if covered is not None and covered[1:] != (0.0, 1.0):
        faults.append("narrow")
    return [word for word in faults if word in fail_on]


def _judge(
    result: Evaluation, split: str, estimator: str, testable: Sequence[str], level: float
) -> _Judged:
    place = (split, estimator)
    row = next((r for r in result.rows if (r.split, r.estimator) == place), None)
    reason = ""
    if row is None:
        refused = (
            refusal.reason
            for refusal in result.refused
            if refusal.split == split and refusal.estimator in ("", estimator)
        )
        reason = result.not_done.get(split) or next(refused, "not evaluated")
    elif not testable:
        reason = "too few groups for an interval, or no bands"
    held = result.held_out.get(place)
    return _Judged(
        split,
        estimator,
        row,
        _difference(split, held, level) if held is not None and "worse" in testable else None,
        _coverage(split, held, level) if held is not None and "narrow" in testable else None,
        reason,
    )


def _difference(split: str, held: HeldOut, level: float) -> Estimate:
    """Return the mean error minus that of the sum of kernels, paired by run."""
    values = held.ape - held.naive().ape
    clusters = clusters_of(split, held)
    return mean_in_clusters(values, clusters, figure="mean_ape_difference", level=level)


def _coverage(split: str, held: HeldOut, level: float) -> tuple[float, float, float] | None:
    """Return the share inside the 90 % band with its widest interval; None without bands."""
    share = covered(held, LEVELS.index(_BAND), clusters_of(split, held), level)
    return None if math.isnan(share[0]) else share


def _case(case: _Judged) -> Case:
    if case.faults:
        lines = [_SAYS[word](case) for word in case.faults]
        return Case(
            case.name, "failure", "; ".join(lines), ", ".join(case.faults), "\n".join(lines)
        )
    if case.reason:
        return Case(case.name, "skipped", case.reason)
    return Case(case.name)


def _worse(case: _Judged) -> str:
    assert case.row is not None  # "worse" has a row
    mean = format_fraction(case.row.figures["mean_ape"].value)
    return f"worse than the sum of kernels: mean error {mean}, {_points(case.difference)} higher"


def _narrow(case: _Judged) -> str:
    return f"too narrow: the 90 % band contains {_share(case.coverage)} of the runs"


_SAYS = {"worse": _worse, "narrow": _narrow}


def _points(difference: Estimate | None) -> str:
    """Write a difference of errors, and its interval, in points of per cent."""
    if difference is None or difference.low is None or difference.high is None:
        return "not tested"
    low, high = 100 * difference.low, 100 * difference.high
    return f"{100 * difference.value:.2f} [{low:.2f}, {high:.2f}] points"


def _share(coverage: tuple[float, float, float] | None) -> str:
    if coverage is None:
        return "not tested"
    share, low, high = (100 * value for value in coverage)
    return f"{share:.0f} % [{low:.0f}, {high:.0f}]"


def _sentence(judged: Sequence[_Judged], tests: int) -> str:
    n = f"{len(judged)} combination{'' if len(judged) == 1 else 's'} of split and estimator"
    parts = []
    for word, says in (("worse", "worse than the sum of kernels"), ("narrow", "bands too narrow")):
        names = [case.name for case in judged if word in case.faults]
        if names:
            listed = "; ".join(names[:_NAMED]) + ("; …" if len(names) > _NAMED else "")
            parts.append(f"{says} in {len(names)} of {n}: {listed}")
    if parts:
        text = ". ".join(part[0].upper() + part[1:] for part in parts)
        return f"{text}."
    if not tests:
        return f"Nothing could be tested in {n}."
    return f"Pass: no failure in {tests} test{'' if tests == 1 else 's'} of {n}."


def _table(judged: Sequence[_Judged]) -> list[str]:
    rows = []
    for case in judged:
        row = case.row
        rows.append(
            (
                case.split,
                case.estimator,
                "" if row is None else str(row.n),
                "" if row is None else format_fraction(row.figures["mean_ape"].value),
                _points(case.difference),
                _share(case.coverage),
                ", ".join(case.faults) or (f"skipped: {case.reason}" if case.reason else "passed"),
            )
        )
    names = ("split", "estimator", "runs", "mean error", "minus sum", "in 90 % band", "result")
    return table(names, rows, right=(2, 3, 4, 5))


def _advice(result: Evaluation, judged: Sequence[_Judged]) -> list[str]:
    faults = {word for case in judged for word in case.faults}
    lines = []
    if "worse" in faults:
        worst = next(case for case in judged if "worse" in case.faults)
        assert worst.row is not None  # "worse" has a row
        runs = ", ".join(run.run for run in worst.row.worst[:_NAMED])
        lines.append(
            "Worse: do not use these estimators; add the kernels up instead. Check how the runs "
            f"with the largest errors differ from the others ({worst.name}: {runs})."
        )
    if "narrow" in faults:
        lines.append(
            "Narrow: do not rely on the bands for new groups (models, devices, …). To calibrate "
            "the bands better, measure more groups, and more runs of the groups that they miss."
        )
    refused = sum(case.row.refused for case in judged if case.row is not None)
    if refused:
        were = "prediction was" if refused == 1 else "predictions were"
        lines.append(f"{refused} {were} refused and not evaluated: {_reasons(result)}.")
    return items("What to do:", lines) if lines else paragraph("What to do: nothing.")


def _reasons(result: Evaluation) -> str:
    reasons = list(dict.fromkeys(refusal.reason for refusal in result.refused))
    return reasons[0].rstrip(".") + (", …" if len(reasons) > 1 else "") if reasons else "no reason"


def _footer(tests: int) -> list[str]:
    if not tests:
        return []
    level = f"{100 * (1 - _ALPHA / tests):.4g} %"
    together = f" each, 95 % for all {tests} tests together" if tests > 1 else ""
    return [
        line(
            f"Confidence of the intervals: {level}{together}. Models that are as good as the "
            "sum of kernels and have valid bands fail in at most 5 % of checks. Minus sum: mean "
            "error minus the mean error of the sum of kernels on the same runs, in percentage "
            "points."
        )
    ]
