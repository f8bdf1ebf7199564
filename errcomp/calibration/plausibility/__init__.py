"""Rules that say whether the measurement of a run can be trusted.

They look at the kernels of a run alone; one rule also compares its measured phases with each other.
A flagged run may be right. Perhaps a model of kernels cannot predict it, or its kernels were
measured under other conditions than the run. No rule compares the time of a run with that of its
kernels, so a run is not flagged because a model is wrong about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from errcomp.calibration.design import Design, Floats, Names, Task
from errcomp.calibration.features import (
    FEATURE_NAMES,
    RUNS_TO_JUDGE,
    SLOW_FROM,
    Parts,
    design,
    fit_features,
    slowness_beyond,
)
from errcomp.calibration.features.state import FeatureState
from errcomp.calibration.plausibility.phases import MEASURED, PHASE, phases_of
from errcomp.calibration.preparing import timed_runs
from errcomp.codec import Count, Document
from errcomp.report.shown import Shown
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["FlaggedRun", "NotChecked", "Plausibility", "check_runs"]

#: µs that a host needs to launch a kernel, usually: the prior of the estimator ``physics``.
HOST_US = 5.0
#: Keys that may differ between runs of the same work.
_NOT_WORK = (
    *("run", "kernel", "kernel_class", "shape", "start", "stream"),
    *("device", "vendor", "repeat"),
)
#: Fewest other runs of the same work, and the share by which their numbers of kernels may differ.
_OTHERS, _SHARE = 2, 0.01

#: Runs, or phases, that are slower by less (ln) are never flagged: bands cover as much anyway.
_LEAST = float(np.log(1.1))
#: Fewest runs of a device that show that it is slow as a whole.
_OF_DEVICE = 3


class Seen(NamedTuple):
    """What the rules look at."""

    kernels: Kernels
    state: FeatureState
    parts: Parts
    design: Design

    def feature(self, name: str) -> Floats:
        """Return a feature of each run."""
        return np.asarray(self.design.x[:, FEATURE_NAMES.index(name)])


class _NotPossibleError(Exception):
    """A rule cannot be checked with this table, and why."""


class Hit(NamedTuple):
    """A run that a rule flags.

    Attributes
    ----------
    run : int
        Its position.
    evidence : str
    doubt : float
        By how much (ln) the time of its kernels may be wrong, if the rule is right.
    """

    run: int
    evidence: str
    doubt: float = 0.0


Found = Iterator[Hit]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes
    ----------
    name, meaning : str
    firm : bool
        Whether the evidence is firm: fits and adaptations leave out such runs, and an evaluation
        also shows its figures without them. Many runs that need more memory, or wait for their
        host, are predicted well.
    find : callable
        Yields the flagged runs.
    kernels_only : bool
        Whether it looks at nothing that only a measured run has.

    Examples
    --------
    >>> [rule.name for rule in RULES if rule.firm]
    ['slow-matmul', 'clocks', 'missing-kernels', 'phases']
    """

    name: str
    meaning: str
    firm: bool
    find: Callable[[Seen], Found]
    kernels_only: bool = True


def _slow_matmul(seen: Seen) -> Found:
    state = seen.state
    if state.task != "composition":
        raise _NotPossibleError("the task is prediction, which does not look at measured kernels")
    if state.slow_center is None or not state.slow_scale:
        raise _NotPossibleError(
            f"fewer than {RUNS_TO_JUDGE} runs have measured and predicted matrix products"
        )
    beyond = slowness_beyond(seen.parts, seen.kernels, state)
    device = seen.design.device
    for name in set(device.tolist()):
        here = device == name
        # Where most runs of a device are slow, the prediction is wrong for the device.
        if here.sum() >= _OF_DEVICE and 2 * (beyond[here] > 0).sum() > here.sum():
            beyond[here] = 0.0
    doubt, limit = np.abs(seen.feature("slow_kernels")), _limit(state.slow_scale)
    for run in np.flatnonzero(beyond > limit):
        evidence = _slower("its matrix products", "the other runs", beyond[run], limit)
        yield Hit(int(run), evidence, float(doubt[run]))


def _limit(scale: float) -> float:
    """Return the slowness (ln) from which something is flagged, by its robust scale."""
    return max(SLOW_FROM * scale, _LEAST)


def _slower(what: str, others: str, slowness: float, limit: float) -> str:
    return (
        f"{what} took {np.exp(slowness):.2f} times as long as those of {others}, compared with the "
        f"prediction (limit: {np.exp(limit):.2f} times)"
    )


def _memory(seen: Seen) -> Found:
    share = seen.feature("memory_share")
    if not np.isfinite(share).any():
        raise _NotPossibleError(
            "the shapes of the kernels or the memory of the devices are unknown"
        )
    for run in np.flatnonzero(np.nan_to_num(share) > 1):
        yield Hit(
            int(run),
            f"the outputs that training keeps take up to {share[run]:.2f} times the memory of "
            f"{seen.design.device[run]}",
        )


def _missing_kernels(seen: Seen) -> Found:
    keys = [name for name in seen.kernels.keys if name not in _NOT_WORK]
    if "model" not in keys:
        raise _NotPossibleError("the table does not name the model")
    counts = seen.parts.instances
    by_work: dict[tuple[str, ...], list[int]] = {}
    for run, labels in enumerate(zip(*map(seen.kernels.per_run, keys), strict=True)):
        by_work.setdefault(tuple(map(str, labels)), []).append(run)
    if max(map(len, by_work.values())) <= _OTHERS:
        raise _NotPossibleError(f"no workload has more than {_OTHERS} runs")
    for runs in by_work.values():
        usual, times = Counter(counts[runs].tolist()).most_common(1)[0]
        if times < _OTHERS or 2 * times <= len(runs):
            continue
        for run in runs:
            if abs(counts[run] - usual) > _SHARE * usual:
                yield Hit(
                    run,
                    f"it has {counts[run]:,.0f} kernel executions, {times} other runs of the same "
                    f"work have {usual:,.0f}",
                    float(abs(np.log(usual / counts[run]))),
                )


def _clocks(seen: Seen) -> Found:
    slow = -seen.feature("disagreement")
    checked = False
    for device in sorted(set(seen.design.device.tolist()) - {""}):
        here = np.flatnonzero((seen.design.device == device) & np.isfinite(slow))
        if len(here) < RUNS_TO_JUDGE:
            continue
        beyond = slow[here] - np.median(slow[here])
        scale = 1.4826 * float(np.median(np.abs(beyond)))
        if scale == 0:
            continue
        checked, limit = True, _limit(scale)
        for run in np.flatnonzero(beyond > limit):
            others = f"the other runs on {device}"
            evidence = _slower("its kernels", others, beyond[run], limit)
            yield Hit(int(here[run]), evidence, float(beyond[run]))
    if not checked:
        raise _NotPossibleError(
            f"no device has {RUNS_TO_JUDGE} runs with measured and predicted kernels"
        )


def _host(seen: Seen) -> Found:
    needs = HOST_US * (seen.feature("host_inference") + seen.feature("host_training"))
    for run in np.flatnonzero(needs > 1):
        yield Hit(
            int(run),
            f"a host that needs {HOST_US:g} µs to launch a kernel needs {needs[run]:.1f} times as "
            "long as the kernels take",
        )


def _phases(seen: Seen) -> Found:
    phases = phases_of(seen.kernels, seen.parts)
    if phases is None:
        raise _NotPossibleError(f"the table has no columns {PHASE} and {MEASURED}")
    excess = phases.excess()
    checked = False
    for j, phase in enumerate(phases.names):
        runs = np.flatnonzero(np.isfinite(excess[:, j]))
        if len(runs) < RUNS_TO_JUDGE:
            continue
        beyond = excess[runs, j] - np.median(excess[runs, j])
        scale = 1.4826 * float(np.median(np.abs(beyond)))
        if scale == 0:
            continue
        checked, limit = True, _limit(scale)
        for run in np.flatnonzero(beyond > limit):
            yield Hit(
                int(runs[run]),
                f"its {phase} phase took {np.exp(beyond[run]):.2f} times as long as in the other "
                "runs, compared with its kernels and with its other phases (limit: "
                f"{np.exp(limit):.2f} times)",
            )
    if not checked:
        raise _NotPossibleError(f"fewer than {RUNS_TO_JUDGE} runs have two measured phases")


RULES = (
    Rule("slow-matmul", "matrix products far slower than in other runs", True, _slow_matmul),
    Rule("clocks", "all kernels far slower than in other runs of the device", True, _clocks),
    Rule("missing-kernels", "runs of the same work have more or fewer", True, _missing_kernels),
    Rule("phases", "one phase far slower than the others", True, _phases, kernels_only=False),
    Rule("memory", "training keeps more than the device's memory holds", False, _memory),
    Rule("host-bound", "launching takes longer than the kernels", False, _host),
)


@dataclass(frozen=True, slots=True)
class FlaggedRun(Document):
    """A run, the rule that flags it, and the evidence in words."""

    run: str
    rule: str
    evidence: str


@dataclass(frozen=True, slots=True)
class NotChecked(Document):
    """A rule that could not be checked with this table, and the reason."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plausibility(Shown, Document):
    """Runs whose measurement may not be trusted.

    Attributes
    ----------
    rows : tuple of FlaggedRun
        A run that several rules flag has several rows.
    runs, flagged : int
        Runs of the table, and those that at least one rule flags.
    not_checked : tuple of NotChecked

    Examples
    --------
    >>> from errcomp.datasets import example_runs
    >>> check_runs(example_runs())
    Plausibility(0 of 8 runs flagged)
    """

    SCHEMA: ClassVar = "errcomp.plausibility/1"
    COMMAND: ClassVar = "calibrate check"
    KEYS: ClassVar = ("runs", "flagged", "rows", "not_checked")

    rows: tuple[FlaggedRun, ...]
    runs: Count
    flagged: Count
    not_checked: tuple[NotChecked, ...]

    def view(self) -> Report:
        """Return the report: a row for each run and rule.

        Examples
        --------
        >>> from errcomp.datasets import example_runs
        >>> check_runs(example_runs()).view().title
        'Runs that may not be trusted'
        """
        from errcomp.calibration.view.plausibility import plausibility_view

        meanings = {rule.name: rule.meaning for rule in RULES}
        return plausibility_view(self, meanings, [rule.name for rule in RULES if rule.firm])


def check_runs(kernels: Kernels | Any, *, task: Task = "composition") -> Plausibility:
    """Name the runs whose kernels or phases are implausible, with the evidence.

    Parameters
    ----------
    kernels : Kernels, dataframe or mapping of columns
        Kernels with the time of the task. End-to-end times are not looked at; columns ``phase`` and
        ``phase_measured`` are, where the table has them.
    task : {"composition", "prediction"}

    Returns
    -------
    Plausibility

    Raises
    ------
    InputError
        No run has the time of the task for all its kernels, or the unit is missing.

    Examples
    --------
    In the artifact of NeuSight the kernels of three runs are far slower than in the others:

    >>> import errcomp as ec
    >>> found = check_runs(ec.datasets.load("neusight-kernels"))
    >>> [row.run for row in found.rows if row.rule == "slow-matmul"][:2]
    ['A100-40G/bert_large/inference/512/8', 'A100-40G/bert_large/inference/512/16']
    """
    seen = _seen(kernels_in_memory(kernels), task, None)
    rows: list[FlaggedRun] = []
    not_checked: list[NotChecked] = []
    for rule, hit in _flags(seen, not_checked):
        rows.append(FlaggedRun(str(seen.design.run[hit.run]), rule.name, hit.evidence))
    flagged = len({row.run for row in rows})
    return Plausibility(tuple(rows), len(seen.design), flagged, tuple(not_checked))


def _seen(kernels: Kernels, task: Task, state: FeatureState | None) -> Seen:
    timed = timed_runs(kernels, task)
    known = state or fit_features(timed, task=task)
    return Seen(timed, known, Parts.of(timed, task), design(timed, task=task, state=known))


def _flags(
    seen: Seen, not_checked: list[NotChecked], rules: Sequence[Rule] = RULES
) -> Iterator[tuple[Rule, Hit]]:
    for rule in rules:
        try:
            for hit in rule.find(seen):
                yield rule, hit
        except _NotPossibleError as reason:
            not_checked.append(NotChecked(rule.name, str(reason)))


def flagged_of(
    kernels: Kernels, task: Task, state: FeatureState | None = None
) -> tuple[dict[str, str], list[FlaggedRun]]:
    """Return the runs with firm evidence against them, each with the reason, and the others.

    Parameters
    ----------
    kernels : Kernels
    task : {"composition", "prediction"}
    state : FeatureState, optional
        From the runs of a fit; by default from these runs.
    """
    seen = _seen(kernels, task, state)
    firm: dict[str, str] = {}
    named = []
    for rule, hit in _flags(seen, []):
        name = str(seen.design.run[hit.run])
        if rule.firm:
            firm.setdefault(name, f"flagged by {rule.name}: {hit.evidence}")
        else:
            named.append(FlaggedRun(name, rule.name, hit.evidence))
    return firm, [one for one in named if one.run not in firm]


def doubts_of(kernels: Kernels, state: FeatureState, runs: Design) -> tuple[Floats, Names]:
    """Return how far the kernels of each run may be wrong (ln), and the firm evidence; 0 and "".

    Only rules on kernels alone count: the run need not have been measured.

    Parameters
    ----------
    kernels : Kernels
        Of runs whose kernels all have the time of the task.
    state : FeatureState
        From the runs of the fit.
    runs : Design
        Of these kernels, with this state.
    """
    seen = Seen(kernels, state, Parts.of(kernels, state.task), runs)
    doubt, why = np.zeros(len(runs)), np.full(len(runs), "", dtype=object)
    for rule, hit in _flags(seen, [], [rule for rule in RULES if rule.firm and rule.kernels_only]):
        doubt[hit.run] = max(doubt[hit.run], hit.doubt)
        why[hit.run] = why[hit.run] or f"flagged by {rule.name}: {hit.evidence}"
    return doubt, why
