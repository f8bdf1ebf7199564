"""Does the gate keep its promise, and how soon does it find a step?

Gates of 20 series are replayed over 1,000 looks without a change, under several laws of noise; then
over histories with a step, at several times of its onset. The delay is compared with that of a
CUSUM which knows the noise, the mean, the step and its direction, with a threshold for the same
rate of false alarms. Makes the tables of docs/gate.md, stored in docs/results/gate.json.

    python benchmarks/gate_table.py --gates 100 --jobs 2
"""

from __future__ import annotations

import argparse
from functools import partial
from multiprocessing import Pool

import numpy as np
import stored

from errcomp.halflife.gate.replay import replayed
from errcomp.halflife.panel import Panel

SERIES, LOOKS, ALPHA, NOISE = 20, 1000, 0.05, 0.02
LAWS = {
    "normal": "normal",
    "student": "Student t, 4 degrees of freedom",
    "outliers": "5 % of values off by 6 sd",
    "wide": "5 % of values with 6 times the sd",
    "slow": "5 % of values slower by 6 sd",
    "levels": "two levels, 1 in 5 on the second",
    "0.3": "autocorrelation 0.3",
    "0.5": "autocorrelation 0.5",
    "0.7": "autocorrelation 0.7",
}
ONSETS, STEPS, AFTER = (20, 50, 100, 200, 500), (0.05, 0.10), 30
OTHER = ("student", "outliers", "0.3")


def noise(law: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Draw noise whose central part has a standard deviation of 1."""
    z = rng.standard_normal(shape)
    bad = rng.random(shape) < 0.05
    if law == "student":
        return rng.standard_t(4, shape) / np.sqrt(2)
    if law == "outliers":
        return np.where(bad, z + 6 * np.sign(rng.standard_normal(shape)), z)
    if law == "wide":
        return np.where(bad, 6 * z, z)
    if law == "slow":
        return np.where(bad, z + 6, z)
    if law == "levels":
        return np.where(rng.random(shape) < 0.2, z / 2 + 2, z / 2)
    if law[0] == "0":
        ar = float(law)
        for k in range(1, shape[1]):
            z[:, k] = ar * z[:, k - 1] + np.sqrt(1 - ar**2) * z[:, k]
    return z


def panel(error: np.ndarray) -> Panel:
    """Make a panel without repeats."""
    s, n = error.shape
    return Panel(
        versions=tuple(map(str, range(n))),
        months=np.full(n, np.nan),
        names=tuple(map(str, range(s))),
        clusters=np.arange(s),
        starts=np.arange(s + 1) * n,
        version=np.tile(np.arange(n), s),
        error=error.ravel(),
        sd=np.full(s * n, np.nan),
        noise_df=np.zeros(s),
        frozen_at_first=False,
    )


def quiet(seed: int, law: str) -> tuple[int, float]:
    """Return the alarms of a gate without a change, and its requests for a repeat per look."""
    rng = np.random.default_rng([seed, 1])
    found = replayed(panel(NOISE * noise(law, (SERIES, LOOKS), rng)), alpha=ALPHA)
    return len(found.version), found.repeats / found.looks


def delay(seed: int, law: str, step: float, onset: int) -> float:
    """Return after how many looks a step in one series is found."""
    rng = np.random.default_rng([seed, onset])
    error = NOISE * noise(law, (SERIES, onset + AFTER), rng)
    error[0, onset:] += step
    found = replayed(panel(error), alpha=ALPHA)
    late = found.version[(found.series == 0) & (found.version >= onset)]
    return float(late[0] - onset + 1) if len(late) else float("inf")


def oracle(step: float, runs: int = 5000) -> float:
    """Return the mean delay of a CUSUM made for a step, with Siegmund's threshold for the rate."""
    k, rng = step / NOISE / 2, np.random.default_rng(2)
    h = np.log(2 * k**2 * SERIES * LOOKS / ALPHA) / (2 * k) - 1.166
    taken = []
    for _ in range(runs):
        total, n = 0.0, 0
        while total < h:
            total, n = max(total + rng.standard_normal() + k, 0.0), n + 1
        taken.append(n)
    return float(np.mean(taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    with stored.printed("gate"), Pool(args.jobs) as pool:
        print("| noise | gates with a false alarm | repeats asked for, per 100 looks |")
        print("|---|---:|---:|")
        for law, name in LAWS.items():
            found = pool.map(partial(quiet, law=law), range(args.gates))
            false = 100 * np.mean([n > 0 for n, _ in found])
            print(f"| {name} | {false:.0f} % | {100 * np.mean([r for _, r in found]):.1f} |")
        print()
        print("| step, onset | within 3 looks | within 5 | within 20 | mean delay | CUSUM's |")
        print("|---|---:|---:|---:|---:|---:|")
        cases = [("normal", step, onset) for step in STEPS for onset in ONSETS]
        cases += [(law, step, 200) for law in OTHER for step in STEPS]
        for law, step, onset in cases:
            job = partial(delay, law=law, step=step, onset=onset)
            taken = np.array(pool.map(job, range(args.gates)))
            within = " | ".join(f"{100 * np.mean(taken <= n):.0f} %" for n in (3, 5, 20))
            name = f"{100 * step:.0f} %, look {onset}"
            name += "" if law == "normal" else f", {LAWS[law]}"
            mean = np.minimum(taken, AFTER).mean()
            print(f"| {name} | {within} | {mean:.1f} | {oracle(step):.1f} |")


if __name__ == "__main__":
    main()
