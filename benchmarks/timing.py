"""Pairs of timed runs, ratios with intervals, and growth of cost: common parts of all benchmarks.

Runs are interleaved (ours, peer, ours, peer, …), so that background load affects both sides
equally. The result is the median ratio of neighbouring runs. A peer of another environment is a
live process that waits for its turn. Imports and the preparation of data are not timed.
"""

from __future__ import annotations

import gc
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from peer_side import repeated
from scipy import stats

#: Of the numerics: on two cores threads of two libraries would fight each other.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

#: Fewest runs of each side.
LEAST = 5

Work = Callable[[], object]
#: Runs work once and returns the seconds and the result.
Timed = Callable[[], tuple[float, Any]]


def machine() -> dict[str, Any]:
    """Return the properties of this machine that times depend on, without its name."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        lines = cpus.read_text(encoding="utf-8").splitlines()
        model = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model n")), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory),
        "system": f"{platform.system()} {platform.machine()}",
    }


def timed(work: Work, clock: Callable[[], float] = time.perf_counter) -> Timed:
    """Time work of this process; short work is repeated several times."""
    return repeated(work, clock)


def in_turn(sides: Sequence[Timed], runs: int, budget: float) -> tuple[np.ndarray, list[Any]]:
    """Interleave runs of all sides; return seconds, shape (runs, sides), and each first result.

    The first round is a warm-up and counts only if it took longer than the budget (seconds). At
    least five rounds count, or all if fewer are asked for; no further round begins after the budget
    is spent.
    """
    begun = time.perf_counter()
    first = [side() for side in sides]
    rounds: list[list[float]] = []
    # Such long work does not become faster by a warm-up.
    if time.perf_counter() - begun > budget:
        rounds.append([seconds for seconds, _ in first])
    begun = time.perf_counter()
    gc.collect()
    least = min(LEAST, runs)
    while len(rounds) < least or (len(rounds) < runs and time.perf_counter() - begun < budget):
        rounds.append([side()[0] for side in sides])
    return np.array(rounds), [value for _, value in first]


def middle(values: np.ndarray) -> tuple[float, float, float]:
    """Return the median, and the two values that enclose it with a probability of at least 95 %.

    With fewer than six values: the smallest and the largest.
    """
    ordered = np.sort(values)
    place = int(max(stats.binom.ppf(0.025, len(ordered), 0.5) - 1, 0))
    return float(np.median(ordered)), float(ordered[place]), float(ordered[-1 - place])


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> dict[str, float] | None:
    """Fit log seconds to log size (1 is linear), with a 95 % interval; needs three sizes."""
    if len(sizes) < 3:
        return None
    found = stats.linregress(np.log(sizes), np.log(seconds))
    half = float(stats.t.ppf(0.975, len(sizes) - 2) * found.stderr)
    return {"slope": found.slope, "low": found.slope - half, "high": found.slope + half}


def rounded(value: Any, digits: int = 4) -> Any:
    """Round all floats of a document to a number of digits."""
    if isinstance(value, dict):
        return {name: rounded(one, digits) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one, digits) for one in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


def difference(ours: Any, peer: Any) -> float | None:
    """Return the largest relative difference of the numbers that both sides returned."""
    if ours is None or peer is None:
        return None
    if isinstance(ours, dict):
        ours, peer = list(ours.values()), [peer.get(name, math.nan) for name in ours]
    a, b = np.ravel(np.asarray(ours, float)), np.ravel(np.asarray(peer, float))
    apart = np.abs(a - b) / np.maximum(np.abs(b), 1e-300)
    return float(np.max(np.where(a == b, 0.0, np.where(np.isnan(b), 1.0, apart))))
