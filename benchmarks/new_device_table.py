"""Do bands under `estimated` hold on a new device, and how wide are they?

Makes the table of docs/propagation.md, stored in docs/results/new_device.json; `python
docs/sources.py` puts it into the page. Log errors are sums of nested effects of device, class on
it, run, class in it and kernel; the total is that of a run on a device that was not in the fit.

    python benchmarks/new_device_table.py --reps 200 --jobs 2
"""

from __future__ import annotations

import argparse
import math
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np
import stored
from scipy import stats

from errcomp import Kernels
from errcomp.propagation import correlation, fit_errors
from errcomp.propagation.distribution import FromMoments
from errcomp.propagation.errors.tails import Tails
from errcomp.propagation.sums import total_moments

#: Standard deviation of the effect of a device, a class on it, a run, a class in it, and a kernel.
CAUSES = {"class": (0.02, 0.08, 0.0, 0.06, 0.10), "device": (0.10, 0.03, 0.0, 0.03, 0.05)}
#: Share of the time that the classes of kernels take.
SHARES = np.array([0.6, 0.15, 0.1, 0.1, 0.05])
#: By how much one device in six is off, in logarithms: a factor of two.
OFF = 0.7
LEVEL = 0.9


class Case(NamedTuple):
    """Main cause of the errors, their law, and how often a device is far off."""

    cause: str
    law: str
    df: float = math.inf
    off: bool = False


CASES = (
    Case("class", "normal"),
    Case("class", "t(4)", 4),
    Case("class", "1 in 6 off", off=True),
    Case("device", "normal"),
    Case("device", "t(3)", 3),
    Case("device", "1 in 6 off", off=True),
)
DEVICES = (4, 8, 12)


def kernels_of(rng: np.random.Generator, case: Case, devices: int, runs: int) -> Kernels:
    """Draw the kernels of some runs on each device."""
    shape = (devices, runs, len(SHARES), 4)
    d, r, c, _ = (i.ravel() for i in np.indices(shape))
    n, sds = len(d), CAUSES[case.cause]
    # Kernels are distinguished by all digits of their prediction.
    time = SHARES[c] * rng.gamma(2.0, size=n) * (1 + 1e-9 * np.arange(n))
    predicted = time * 10 ** rng.uniform(1, 3, (devices, runs))[d, r]
    error = (
        _effects(rng, case, (devices,), sds[0])[d]
        + _effects(rng, case, (devices, len(SHARES)), sds[1])[d, c]
        + _effects(rng, case, (devices, runs), sds[2])[d, r]
        + _effects(rng, case, (devices, runs, len(SHARES)), sds[3])[d, r, c]
        + _effects(rng, case, (n,), sds[4])
    )
    if case.off:
        side = rng.choice([-OFF, OFF], devices)
        error += np.where(rng.random(devices) < 1 / 6, side, 0.0)[d]
    return Kernels(
        {
            "run": np.char.add(np.char.add(d.astype(str), "/"), r.astype(str)),
            "device": d.astype(str),
            "kernel": np.arange(n).astype(str),
            "kernel_class": c.astype(str),
            "count": np.full(n, 24),
            "predicted": predicted,
            "measured": predicted * np.exp(error + 0.05 * c),
        }
    )


def _effects(rng: np.random.Generator, case: Case, shape: tuple[int, ...], sd: float) -> np.ndarray:
    if math.isinf(case.df):
        return sd * rng.standard_normal(shape)
    scale = sd * math.sqrt((case.df - 2) / case.df)
    return scale * stats.t.rvs(case.df, size=shape, random_state=rng)


def outcome(job: tuple[Case, int, int, int]) -> tuple[Case, int, list[float]]:
    """Return how often the band holds and its median width, with a Student t alone and as it is."""
    case, devices, reps, seed = job
    rng = np.random.default_rng([seed, devices, CASES.index(case)])
    held, width = [], []
    for _ in range(reps):
        kernels = kernels_of(rng, case, devices + 1, 4)
        new = kernels.device == str(devices)
        model = fit_errors(kernels.take(~new), level=None)
        part = kernels.take(kernels.run == kernels.take(new).runs[0])
        moments = total_moments(model.terms(part, correlation("estimated")))
        total = float(part.totals().measured[0])
        alone = Tails(model.tails.df, model.tails.variance_df)
        laws = [FromMoments(moments, tails) for tails in (alone, model.tails)]
        held.append([abs(2 * law.cdf(total) - 1) <= LEVEL for law in laws])
        ends = [[law.quantile(q) for q in (0.5 - LEVEL / 2, 0.5, 0.5 + LEVEL / 2)] for law in laws]
        width.append([(high - low) / middle for low, middle, high in ends])
    shares, widths = np.mean(held, axis=0), np.median(width, axis=0)
    return case, devices, [shares[0], widths[0], shares[1], widths[1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    jobs = [(case, devices, args.reps, args.seed) for case in CASES for devices in DEVICES]
    with stored.printed("new_device", seed=args.seed, samples=args.reps):
        with Pool(args.jobs) as pool:
            found = pool.map(outcome, jobs, chunksize=1)
        print("| main cause, law | devices | t: holds | t: width | holds | width |")
        print("|---|---:|---:|---:|---:|---:|")
        for case, devices, figures in found:
            cells = [f"{100 * value:.0f} %" for value in figures]
            print("| " + " | ".join([f"{case.cause}, {case.law}", str(devices), *cells]) + " |")


if __name__ == "__main__":
    main()
