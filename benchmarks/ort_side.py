"""One side of a pair: the models in one release of ONNX Runtime, run slice by slice as told.

A piece of `longitudinal_ort`, started by it. Lines on stdin say which model to run how often and
whether profiled; each is answered when it is done. First it answers with the time in µs of a run of
each model. The end of stdin ends the piece.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ort_timing import Session
from slices import LEAST_RUNS, WARM_UP, kernels_of


def medians(session: Session) -> list[float | None]:
    """Return the median run of each slice in µs, None where too few were left alone."""
    return [
        float(np.nanmedian(times)) if np.isfinite(times).sum() >= LEAST_RUNS else None
        for times in session.slices[len(WARM_UP) :]
    ]


def profile_of(session: Session) -> dict[str, Any]:
    """Return what the profiler saw in the runs that were left alone; times in µs."""
    kept = []
    for runs, times in zip(session.profile(), session.slices, strict=True):
        alone = [run for run, time in zip(runs, times, strict=True) if time == time]
        if len(alone) >= LEAST_RUNS:
            kept.append(alone)
    # The first slices warmed up, where they were left alone.
    kept = kept[-max(1, len(session.slices) - len(WARM_UP)) :]
    return {
        "profiled_run": float(np.nanmedian(np.concatenate(session.slices[len(WARM_UP) :]))),
        "profiled_model_run": float(
            np.median([np.median([whole for _, whole in runs]) for runs in kept])
        ),
        "kernels": kernels_of([[nodes for nodes, _ in runs] for runs in kept]),
    }


def main() -> None:
    """Do as the lines say."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.sched_setaffinity(0, {job["core"]})
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    folder = Path(job["folder"])
    sessions = {
        (name, profiled): Session({"folder": folder}, name, "all", profiled)
        for name in job["models"]
        for profiled in (False, True)
    }
    gc.collect()
    gc.disable()
    # The fastest is known even if most were disturbed.
    fastest = [np.nanmin([*sessions[name, False].slices[-1], 1e6]) for name in job["models"]]
    print(json.dumps(fastest), flush=True)
    for line in sys.stdin:
        name, profiled, runs = json.loads(line)
        sessions[name, profiled].slice(runs)
        print("true", flush=True)
    found = {
        name: {"slices": medians(sessions[name, False]), **profile_of(sessions[name, True])}
        for name in job["models"]
    }
    found["priority"] = os.getpriority(os.PRIO_PROCESS, 0)
    Path(job["out"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
