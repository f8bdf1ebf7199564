"""Steps in benchmark noise: errcomp, Apache Otava, ruptures and CUSUM at equal false alarms.

Series of 40 values, half with a step of 3 standard deviations somewhere. The threshold of each
method is the one at which 5 % of series without a step have a false one; it is set on one half of
the series and evaluated on the other. How soon each finds a step is measured on series that end two
to eight values after it, at the same threshold. Makes the table of docs/half-life.md, stored in
docs/results/step_peers.json.

    python benchmarks/step_peers.py ../shared/data/longitudinal
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import environments
import numpy as np
import stored
from gate_replays import histories
from gate_table import noise, panel

from errcomp.halflife.panel import panel_of
from errcomp.halflife.steps import find_steps_of

SERIES, LENGTH, SIZE, RATE, NEAR = 300, 40, 3.0, 0.05, 2
#: Values since a step.
AFTER = (2, 3, 5, 8)
ALPHAS = [0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005, 0.001]
#: Place of 0.001, its default, among the p-values of peers/steps.py.
OTAVA_DEFAULT = 8
LAWS = {
    "normal": "normal",
    "student": "Student t, 4 degrees of freedom",
    "outliers": "5 % of values off by 6 sd",
    "0.3": "autocorrelation 0.3",
    "0.5": "autocorrelation 0.5",
}
#: Change points of each series, by threshold in any order.
Found = list[list[list[int]]]


def of_errcomp(x: np.ndarray) -> Found:
    found = []
    for alpha in ALPHAS:
        groups = (find_steps_of(panel(part), alpha=alpha) for part in np.split(x, 4))
        found.append([[step.at for step in one.steps] for group in groups for one in group])
    return found


def of_cusum(x: np.ndarray) -> Found:
    """Return where the cumulative sum of deviations is largest, at several limits."""
    sums = np.abs(np.cumsum(x - x.mean(axis=1, keepdims=True), axis=1))[:, :-1]
    value, at = sums.max(axis=1) / (x.std(axis=1) * np.sqrt(LENGTH)), sums.argmax(axis=1) + 1
    return [
        [[int(k)] if v > limit else [] for v, k in zip(value, at, strict=True)]
        for limit in np.linspace(0.8, 2.4, 81)
    ]


def of_peers(x: np.ndarray) -> dict[str, Found]:
    python, why = environments.environment("steps")
    if why:
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder:
        series, found = Path(folder) / "series.npy", Path(folder) / "found.json"
        np.save(series, x)
        script = environments.HERE / "peers" / "steps.py"
        subprocess.run([python, str(script), str(series), str(found)], check=True)
        result = json.loads(found.read_text(encoding="utf-8"))
    return {name: [one["found"] for one in given] for name, given in result.items()}


def scores(found: list[list[int]], at: np.ndarray) -> tuple[float, float, float]:
    """Return the share of quiet series with a step, that of steps found, and F1."""
    quiet = at < 0
    false = np.array([len(one) > 0 for one in found])[quiet].mean()
    hits = np.array(
        [any(abs(k - p) <= NEAR for k in one) for one, p in zip(found, at, strict=True)]
    )
    hit = int(hits[~quiet].sum())
    reported = sum(map(len, found))
    f1 = 2 * hit / (reported + int((~quiet).sum())) if reported else 0.0
    return float(false), hit / int((~quiet).sum()), f1


def compared(
    x: np.ndarray, at: np.ndarray, late: np.ndarray
) -> list[tuple[str, tuple[float, ...]]]:
    """Tune each method on the first half of the series, and return its scores on the second.

    Then the share of false alarms at the threshold that the method comes with, and that of steps
    found where the series end so soon after them; ``late`` has these series one after the other.
    """
    half, n = len(x) // 2, len(x)
    both = np.concatenate([x, late])
    every: dict[str, Found] = {"errcomp": of_errcomp(both), **of_peers(both)}
    every["CUSUM"] = of_cusum(both)
    methods = {name: [one[:n] for one in found] for name, found in every.items()}
    place = LENGTH - np.repeat(AFTER, len(late) // len(AFTER))
    defaults = {"errcomp": ALPHAS.index(0.05), "otava": OTAVA_DEFAULT}
    rows: list[tuple[str, tuple[float, ...]]] = []
    for name, found in methods.items():
        tuned = [scores(one[:half], at[:half]) for one in found]
        # The threshold with the most false alarms that are allowed.
        allowed = [i for i, (false, _, _) in enumerate(tuned) if false <= RATE]
        best = max(allowed, key=lambda i: (tuned[i][0], tuned[i][2]), default=None)
        if best is None:
            rows.append((name, (np.nan,) * (4 + len(AFTER))))
            continue
        usual = np.nan
        if name in defaults:
            usual = scores(found[defaults[name]][half:], at[half:])[0]
        near = [
            any(abs(k - p) <= NEAR for k in one)
            for one, p in zip(every[name][best][n:], place, strict=True)
        ]
        soon = np.reshape(near, (len(AFTER), -1)).mean(axis=1)
        rows.append((name, (*scores(found[best][half:], at[half:]), usual, *soon)))
    return rows


def with_steps(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Put a step into every second series; return where, -1 in the others."""
    at = rng.integers(5, LENGTH - 5, len(z))
    at[::2] = -1
    sign = rng.choice([-1.0, 1.0], (len(z), 1))
    up = (np.arange(LENGTH) >= at[:, None]) & (at[:, None] >= 0)
    return z + SIZE * sign * up, at


def ending_soon(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Put a step before the end of every series, by each number of values in `AFTER`."""
    sign = rng.choice([-1.0, 1.0], (len(z), 1))
    return np.concatenate([z + SIZE * sign * (np.arange(LENGTH) >= LENGTH - k) for k in AFTER])


def real(folder: Path, rng: np.random.Generator) -> np.ndarray:
    """Return values of db-benchmark in random order, in robust standard deviations."""
    rows = []
    for name, history in histories(folder):
        if not name.startswith("db-benchmark"):
            continue
        found = panel_of(history).panel
        steps = find_steps_of(found)
        for start, end, one in zip(found.starts[:-1], found.starts[1:], steps, strict=True):
            part = found.error[start:end].copy()
            for step in one.steps:
                part[step.at :] -= step.size
            if len(part) < LENGTH:
                continue
            z = rng.permutation(part)[:LENGTH]
            sd = 1.4826 * np.median(np.abs(z - np.median(z)))
            if sd > 0:
                rows.append((z - np.median(z)) / sd)
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    with stored.printed("step_peers"):
        head = ["noise", "method", "false alarms", "steps found", "F1"]
        head += [f"{k} values after it" for k in AFTER]
        print(f"| {' | '.join(head)} | false alarms, not tuned |")
        print(f"|---|---|{'---:|' * (len(head) - 1)}")
        cases: list[tuple[str, Callable[[np.random.Generator], Any]]] = [
            (name, lambda rng, law=law: noise(law, (4 * SERIES, LENGTH), rng))
            for law, name in LAWS.items()
        ]
        cases.append(("db-benchmark, random order", lambda rng: real(args.folder, rng)))
        for name, draw in cases:
            rng = np.random.default_rng(20261128)
            z = draw(rng)
            x, at = with_steps(z[: len(z) // 8 * 8], rng)
            late = ending_soon(z[: len(x) // 4], rng)
            for method, found in compared(x, at, late):
                usual = "–" if np.isnan(found[3]) else f"{100 * found[3]:.0f} %"
                soon = " | ".join(f"{100 * share:.0f} %" for share in found[4:])
                values = f"{100 * found[0]:.1f} % | {100 * found[1]:.0f} % | {found[2]:.2f}"
                values += f" | {soon} | {usual}"
                print(f"| {name} | {method} | {values} |", flush=True)


if __name__ == "__main__":
    main()
