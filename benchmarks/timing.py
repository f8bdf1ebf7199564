"""Pairs of timed runs, ratios with intervals, and how cost grows: what every benchmark shares.

Both sides run in turn (ours, peer, ours, peer, …), so that what else the machine does slows both;
what counts is the median of the ratios of neighbours. A peer of another environment is a live
process that waits while it is not its turn. Imports and the making of data are not timed.
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

Work = Callable[[], object]
#: Runs work once and returns the seconds and what came out.
Timed = Callable[[], tuple[float, Any]]


def machine() -> dict[str, Any]:
    """Return what of this machine a time depends on; nothing that names it."""
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
        "load_before": round(os.getloadavg()[0], 1),
    }


def timed(work: Work, clock: Callable[[], float] = time.perf_counter) -> Timed:
    """Time work of this process; what is short is done several times over."""
    return repeated(work, clock)


def in_turn(sides: Sequence[Timed], runs: int, budget: float) -> tuple[np.ndarray, list[Any]]:
    """Run all sides in turn; return seconds, shape (runs, sides), and what each returned first.

    After one round that is not counted, unless it took longer than the budget (seconds), there are
    three at least; no more of them begin once the budget is spent.
    """
    begun = time.perf_counter()
    first = [side() for side in sides]
    rounds: list[list[float]] = []
    # What takes that long is no quicker when it is warm.
    if time.perf_counter() - begun > budget:
        rounds.append([seconds for seconds, _ in first])
    begun = time.perf_counter()
    gc.collect()
    while len(rounds) < 3 or (len(rounds) < runs and time.perf_counter() - begun < budget):
        rounds.append([side()[0] for side in sides])
    return np.array(rounds), [value for _, value in first]


def middle(values: np.ndarray) -> tuple[float, float, float]:
    """Return the median, and the values that hold it between them in 95 % of cases or more.

    Of fewer than six values no two do: then the least and the largest.
    """
    ordered = np.sort(values)
    place = int(max(stats.binom.ppf(0.025, len(ordered), 0.5) - 1, 0))
    return float(np.median(ordered)), float(ordered[place]), float(ordered[-1 - place])


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> dict[str, float] | None:
    """Fit log seconds to log size, 1 being linear, with a 95 % interval; from three sizes on."""
    if len(sizes) < 3:
        return None
    found = stats.linregress(np.log(sizes), np.log(seconds))
    half = float(stats.t.ppf(0.975, len(sizes) - 2) * found.stderr)
    return {"slope": found.slope, "low": found.slope - half, "high": found.slope + half}


def rounded(value: Any, digits: int = 4) -> Any:
    """Round all floats of a document to so many digits."""
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
