"""Time ONNX models operator by operator and as a whole, in one process on one pinned thread.

Run by `collect_ort`: python benchmarks/ort_timing.py JOB, a JSON file. Needs numpy and onnxruntime
only, so that any release can be timed in an environment of its own.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

LEVELS = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "disable": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
#: Runs of the slices that warm a session up.
WARM_UP = (3, 10)

#: A run that had the core for less of its time than this was disturbed and does not count.
LEAST_SHARE = 0.98
#: Nor does a slice in which fewer runs than this were left alone.
LEAST_RUNS = 5

#: Operator type, shapes of its inputs and shape of its output: names change with fusion.
Key = tuple[str, str, str]
#: Times of the operators of a run, and model_run, in µs.
Profile = tuple[dict[Key, list[int]], int]


class Session:
    """A model in ONNX Runtime on one thread, profiled or not.

    Attributes
    ----------
    slices : list of ndarray of float, shape (runs,)
        Time of each run in µs, NaN where it was disturbed; the first slices warmed up.
    """

    def __init__(self, model: Path, variant: str, *, profiled: bool) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = LEVELS[variant]
        options.log_severity_level = 3
        options.enable_profiling = profiled
        options.profile_file_prefix = f"{model.with_suffix('')}_{variant}"
        self.session = ort.InferenceSession(str(model), options, ["CPUExecutionProvider"])
        self.feeds = dict(np.load(model.with_suffix(".npz")))
        self.slices: list[np.ndarray] = []
        for runs in WARM_UP:
            self.slice(runs)

    def slice(self, runs: int) -> None:
        """Run once to fill the caches, and then this often by the clock."""
        run, feeds, clocks = self.session.run, self.feeds, []
        run(None, feeds)
        for _ in range(runs):
            cpu, begun = time.thread_time_ns(), time.perf_counter_ns()
            run(None, feeds)
            clocks.append((time.perf_counter_ns() - begun, time.thread_time_ns() - cpu))
        wall, busy = np.array(clocks, float).T / 1000
        # One thread that never waits: where the clock ran on without it, others had the core.
        self.slices.append(np.where(busy >= LEAST_SHARE * wall, wall, np.nan))

    def profile(self) -> list[list[Profile]]:
        """End a profiled session; return its runs, those of the warm-up too, by slice."""
        file = Path(self.session.end_profiling())
        runs = list(profiled_runs(file))
        file.unlink()
        if len(runs) != sum(1 + len(times) for times in self.slices):
            raise RuntimeError(f"{file}: {len(runs)} runs in the profile are not those made")
        found = []
        for times in self.slices:
            found.append(runs[1 : 1 + len(times)])
            runs = runs[1 + len(times) :]
        return found


def profiled_runs(file: Path) -> Iterator[Profile]:
    """Yield for each run the times of its operators and of the run itself, in µs."""
    nodes: dict[Key, list[int]] = {}
    for event in json.loads(file.read_text()):
        # Old releases also time the fences before and after an operator.
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            args = event["args"]
            inputs = "+".join(map(shape_of, args["input_type_shape"]))
            key = (args["op_name"], inputs, shape_of(args["output_type_shape"][0]))
            nodes.setdefault(key, []).append(int(event["dur"]))
        elif event["name"] == "model_run":
            # Written when the run ends, after its operators.
            yield nodes, int(event["dur"])
            nodes = {}


def shape_of(typed: Mapping[str, Sequence[int]]) -> str:
    """Write {"float": [1, 64]} as 1x64; a scalar is one element."""
    (dimensions,) = typed.values()
    return "x".join(map(str, dimensions)) or "1"


def middle(values: Any) -> np.ndarray:
    """Return the mean of the middle half over the first axis."""
    values = np.sort(np.asarray(values, float), axis=0)
    cut = len(values) // 4
    return values[cut : len(values) - cut].mean(axis=0)


def kernels_of(slices: Sequence[Sequence[dict[Key, list[int]]]]) -> list[dict[str, Any]]:
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


def result_of(plain: Session, profiled: Session) -> dict[str, Any]:
    """Put together what was measured of one model; times in µs.

    Slices come in pairs, and a pair counts if both were left alone.
    """
    events = profiled.profile()
    pairs = [
        (alone, with_profile, [run for run, t in zip(runs, with_profile, strict=True) if t == t])
        for alone, with_profile, runs in zip(
            *(s[len(WARM_UP) :] for s in (plain.slices, profiled.slices, events)), strict=True
        )
        if min(np.isfinite(alone).sum(), np.isfinite(with_profile).sum()) >= LEAST_RUNS
    ]
    found: dict[str, Any] = {"slices": len(pairs), "passes": len(events) - len(WARM_UP)}
    if not pairs:
        return found
    alone, with_profile, runs = zip(*pairs, strict=True)
    return {
        **found,
        "runs": len(alone[-1]),
        "profiled_runs": len(with_profile[-1]),
        "run": float(np.median([np.nanmedian(times) for times in alone])),
        "profiled_run": float(np.median([np.nanmedian(times) for times in with_profile])),
        "profiled_model_run": float(
            np.median([np.median([whole for _, whole in part]) for part in runs])
        ),
        "kernels": kernels_of([[nodes for nodes, _ in part] for part in runs]),
    }


def measure(job: Mapping[str, Any]) -> dict[str, Any]:
    """Measure every model in every variant, pass by pass, until the time is up."""
    begun = time.monotonic()
    cells = {}
    for model in map(Path, job["models"]):
        for variant in LEVELS:
            pair = [Session(model, variant, profiled=profiled) for profiled in (False, True)]
            # The fastest is known even if most were disturbed.
            runs = 1000 * job["slice_ms"] / np.nanmin([*pair[0].slices[-1], 1e6])
            often = [
                int(np.clip(runs, job["least_runs"], job[most]))
                for most in ("most_runs", "most_profiled_runs")
            ]
            cells[model.stem, variant] = list(zip(pair, often, strict=True))
    order, rng, passes = list(cells.values()), np.random.default_rng(job["seed"]), 0
    gc.collect()
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    while passes < job["least_passes"] or time.monotonic() - begun < job["seconds"]:
        for i in rng.permutation(len(order)):
            # A B, then B A: neither is always the second.
            for session, runs in order[i][:: -1 if passes % 2 else 1]:
                session.slice(runs)
        passes += 1
    # It never waits for anything but the core.
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)
    gc.enable()
    results = [
        {"name": name, "variant": variant, **result_of(plain, profiled)}
        for (name, variant), ((plain, _), (profiled, _)) in cells.items()
    ]
    return {"core_share": round(share, 4), "results": results}


def main(path: Path) -> None:
    job = json.loads(path.read_text())
    os.sched_setaffinity(0, {job["core"]})
    Path(job["out"]).write_text(json.dumps(measure(job)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
