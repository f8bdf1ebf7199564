"""Time models operator by operator and as a whole, in one process on one pinned core.

What the scripts share that measure a piece (see `collecting`). A piece goes over its models in
passes: each configuration gets a slice of un-profiled runs and, beside it, a slice of profiled
runs, so that what drifts meets both alike. A slice has ten runs or more, after one that does not
count; runs from which others took the core do not count either. Reported are medians: over the
runs of a slice, then over the slices of a process. Profilers may count whole µs, so an operator's
time in a slice is the mean over its instances and over the middle half of the runs instead.

Needs numpy only, so that any release can be timed in an environment of its own.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Runs of the slices that warm a session up.
WARM_UP = (3, 10)
#: A run that had the core for less of its time than this was disturbed and does not count.
LEAST_SHARE = 0.98
#: Nor does a slice in which fewer runs than this were left alone.
LEAST_RUNS = 5
#: Passes are repeated for the sake of disturbed slices up to this many times those wanted.
_PATIENCE = 3
RULES = {
    "least_share_of_core": LEAST_SHARE,
    "least_undisturbed_runs": LEAST_RUNS,
    "most_passes_for_disturbed": _PATIENCE,
}


class Key(NamedTuple):
    """What the kernels of a row have in common: not their names, which change with fusion.

    Attributes
    ----------
    name : str
        Type of an operator, or the function that ran on a device.
    inputs, output : str
        Shapes of the inputs and of the output.
    operator : str
        What started it, where that is not what `name` says.
    phase : str
        Part of the run: forward, backward or optimizer; "" where a run has no parts.
    """

    name: str
    inputs: str = ""
    output: str = ""
    operator: str = ""
    phase: str = ""


#: Times of the operators of a run in µs, and that of the run as the profiler sees it.
Profile = tuple[dict[Key, list[float]], float]


class Session(ABC):
    """A model ready to run, profiled or not.

    Attributes
    ----------
    slices : list of ndarray of float, shape (runs,)
        Time of each run in µs, NaN where it was disturbed; the first slices warmed up.
    phase_times : list of list of mapping
        What `phases` returned after each run.
    waits : bool
        Whether a run waits for another device; disturbed runs cannot be recognised then.
    """

    waits = False
    #: Runs of the slices that warm it up.
    warm_up = WARM_UP

    def __init__(self) -> None:
        self.slices: list[np.ndarray] = []
        self.phase_times: list[list[Mapping[str, float]]] = []
        for runs in self.warm_up:
            self.slice(runs)

    @abstractmethod
    def run(self) -> None:
        """Run once, to the end."""

    @abstractmethod
    def profiles(self) -> list[Profile]:
        """End a profiled session; return its runs, with those that do not count."""

    def phases(self) -> Mapping[str, float]:
        """Return the times of the phases of the last run in µs, where a run has phases."""
        return {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Around a slice: where a profiler is switched on and off."""
        yield

    def slice(self, runs: int) -> None:
        """Run once to fill the caches, and then this often by the clock."""
        clocks, phases = [], []
        with self.recording():
            self.run()
            for _ in range(runs):
                cpu, begun = time.thread_time_ns(), time.perf_counter_ns()
                self.run()
                clocks.append((time.perf_counter_ns() - begun, time.thread_time_ns() - cpu))
                phases.append(self.phases())
        wall, busy = np.array(clocks, float).T / 1000
        # One thread that never waits: where the clock ran on without it, others had the core.
        alone = np.full(runs, self.waits) | (busy >= LEAST_SHARE * wall)
        self.slices.append(np.where(alone, wall, np.nan))
        self.phase_times.append(phases)

    def profile(self) -> list[list[Profile]]:
        """Return the runs of a profiled session by slice, those of the warm-up too."""
        runs, found = self.profiles(), []
        if len(runs) != sum(1 + len(times) for times in self.slices):
            raise RuntimeError(f"{len(runs)} runs in the profile are not those made")
        for times in self.slices:
            found.append(runs[1 : 1 + len(times)])
            runs = runs[1 + len(times) :]
        return found


def middle(values: Any) -> np.ndarray:
    """Return the mean of the middle half over the first axis."""
    values = np.sort(np.asarray(values, float), axis=0)
    cut = len(values) // 4
    return values[cut : len(values) - cut].mean(axis=0)


def kernels_of(slices: Sequence[Sequence[dict[Key, list[float]]]]) -> list[dict[str, Any]]:
    """Return each operator with its count in a run and the time of one instance in µs."""
    counts = {key: len(times) for key, times in slices[0][0].items()}
    for runs in slices:
        if any({key: len(times) for key, times in run.items()} != counts for run in runs):
            raise RuntimeError("the operators differ between runs of one session")
    # One row a slice, one column an operator.
    times = [middle([[np.mean(run[key]) for key in counts] for run in runs]) for runs in slices]
    medians = np.median(times, axis=0).tolist()
    return [
        {"key": key, "count": count, "time": time_}
        for (key, count), time_ in zip(counts.items(), medians, strict=True)
    ]


def phases_of(times: np.ndarray, phases: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median time of each phase over the undisturbed runs of a slice."""
    counted = [of_run for of_run, took in zip(phases, times, strict=True) if took == took]
    return {name: float(np.median([run[name] for run in counted])) for name in counted[0]}


def undisturbed(pair: Sequence[tuple[Session, int]]) -> int:
    """Count the slices of a configuration that were left alone, both of a pair."""
    slices = zip(*(session.slices[len(WARM_UP) :] for session, _ in pair), strict=True)
    return sum(all(np.isfinite(t).sum() >= LEAST_RUNS for t in times) for times in slices)


def result_of(plain: Session, profiled: Session) -> dict[str, Any]:
    """Put together what was measured of one model; times in µs.

    Slices come in pairs, and a pair counts if both were left alone.
    """
    events = profiled.profile()
    pairs = [
        (
            alone,
            with_profile,
            [run for run, t in zip(runs, with_profile, strict=True) if t == t],
            phases_of(alone, phases),
        )
        for alone, with_profile, runs, phases in zip(
            *(
                of_slices[len(WARM_UP) :]
                for of_slices in (plain.slices, profiled.slices, events, plain.phase_times)
            ),
            strict=True,
        )
        if min(np.isfinite(alone).sum(), np.isfinite(with_profile).sum()) >= LEAST_RUNS
    ]
    found: dict[str, Any] = {"slices": len(pairs), "passes": len(events) - len(WARM_UP)}
    if not pairs:
        return found
    alone, with_profile, runs, phases = zip(*pairs, strict=True)
    return {
        **found,
        "runs": len(alone[-1]),
        "profiled_runs": len(with_profile[-1]),
        "run": float(np.median([np.nanmedian(times) for times in alone])),
        "profiled_run": float(np.median([np.nanmedian(times) for times in with_profile])),
        "profiled_model_run": float(
            np.median([np.median([whole for _, whole in part]) for part in runs])
        ),
        "phases": {name: float(np.median([one[name] for one in phases])) for name in phases[0]},
        "kernels": kernels_of([[nodes for nodes, _ in part] for part in runs]),
    }


def measure(
    job: Mapping[str, Any], session: Callable[[Mapping[str, Any], str, str, bool], Session]
) -> dict[str, Any]:
    """Measure every model in every variant, pass by pass, until the time is up.

    `session` makes one of the job, the name of the model, the variant and whether to profile.
    """
    begun = time.monotonic()
    cells = {}
    for model in job["models"]:
        for variant in job["variants"]:
            pair = [session(job, model, variant, p) for p in (False, True)]
            # The fastest is known even if most were disturbed.
            runs = 1000 * job["slice_ms"] / np.nanmin([*pair[0].slices[-1], 1e6])
            often = [
                int(np.clip(runs, job["least_runs"], job[most]))
                for most in ("most_runs", "most_profiled_runs")
            ]
            cells[model, variant] = list(zip(pair, often, strict=True))
    order, rng, passes = list(cells.values()), np.random.default_rng(job["seed"]), 0
    gc.collect()
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    least = job["least_passes"]
    while time.monotonic() - begun < job["seconds"] or (
        passes < _PATIENCE * least and min(map(undisturbed, order)) < least
    ):
        for i in rng.permutation(len(order)):
            # A B, then B A: neither is always the second.
            for each, runs in order[i][:: -1 if passes % 2 else 1]:
                each.slice(runs)
        passes += 1
    # Without another device it never waits for anything but the core.
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)
    gc.enable()
    results = [
        {"name": name, "variant": variant, **result_of(plain, profiled)}
        for (name, variant), ((plain, _), (profiled, _)) in cells.items()
    ]
    return {"core_share": round(share, 4), "results": results}


def main(session: Callable[[Mapping[str, Any], str, str, bool], Session]) -> None:
    """Do the job of the file that the command line names."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.sched_setaffinity(0, {job["core"]})
    Path(job["out"]).write_text(json.dumps(measure(job, session)), encoding="utf-8")
