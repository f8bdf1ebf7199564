"""How much do k measured runs of a new device help, and do the bands hold after them?

Each device of `neusight-kernels` is left out in turn. A model is fitted to the others and adapted
with k runs of the device: at random, many times, or those that `errcomp plan runs` chooses. The
other runs of the device are predicted. Makes a table of docs/planning.md in two minutes, stored in
docs/results/adapt.json.

    python benchmarks/adapt_table.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import stored

from errcomp.calibration.composition import Composition
from errcomp.calibration.composition.fits import Fits
from errcomp.calibration.design import LEVELS, Design
from errcomp.calibration.fitted import CompositionModel
from errcomp.calibration.plausibility import flagged_of
from errcomp.calibration.preparing import usable_runs
from errcomp.calibration.transfer.adapting import Adapted, learnt_for, standardised
from errcomp.calibration.transfer.process import next_runs
from errcomp.datasets import load

ESTIMATORS = ("physics", "stack")
MEASURED = (0, 1, 2, 3, 5)
DRAWS = 40
NINETY = LEVELS.index(0.9)
#: APE, hits and widths of the predicted runs, and their weights.
Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def devices(estimator: str) -> Iterator[tuple[CompositionModel, Any, Design, np.ndarray]]:
    """Leave out each device with enough runs.

    Yield the model, its predictions, the runs, and which of them no rule flags once they are
    measured: an adaptation leaves out the others.
    """
    used, _ = usable_runs(load("neusight-kernels"), "composition")
    fits = Fits(used, "composition", seed=0, n_jobs=2)
    names = fits.labels("device", np.ones(used.n_runs, dtype=bool))
    for device in sorted(set(names)):
        if (names == device).sum() > max(MEASURED):
            fitted = Composition(estimators=(estimator,))
            fitted._fit(fits, names != device, None, quick=True)
            new = fits.at(names == device)
            model = fitted.model_
            design = model.preparation.prepare(new).design
            flagged, _ = flagged_of(new, "composition", model.preparation.state)
            sound = ~np.isin(design.run.astype(str), [*flagged])
            yield model, model.predict(new, estimator=estimator), design, sound


def of_one(
    estimator: str, model: CompositionModel, found: Any, design: Design, sound: np.ndarray
) -> Iterator[tuple[int, str, Found]]:
    """Yield the results for each number of runs, and each choice of them."""
    truth, middle = np.log(design.measured), np.log(found.predicted)
    quantiles, low, high = (np.log(part) for part in (found.quantiles, found.low, found.high))
    device, n = str(design.device[0]), len(design)
    z, rng = standardised(design.x, model.training), np.random.default_rng(0)
    for k in MEASURED:
        if not k:
            yield k, "–", judged(middle, low, high, truth, 1.0)
            continue
        learnt = {
            n: {estimator: learnt_for(model, device, estimator, n, seed=0)} for n in range(1, k + 1)
        }
        steps = next_runs(z, z, (high - low)[:, NINETY], learnt[k][estimator].settings, k)
        picks = [("plan runs", np.array([at for at, _ in steps]), 1.0)]
        picks += [("random", rng.permutation(n)[:k], 1 / DRAWS) for _ in range(DRAWS)]
        for how, taken, weight in picks:
            left = np.setdiff1d(np.arange(n), taken)
            taken = taken[sound[taken]]
            if not len(taken):
                same = judged(middle[left], low[left], high[left], truth[left], weight)
                yield k, how, same
                continue
            errors = {estimator: (truth - middle)[taken]}
            adapted = Adapted(
                device,
                "global",
                design.run[taken],
                design.x[taken],
                errors,
                learnt[len(taken)],
            )
            moved = adapted.move(estimator, design.x[left], model.training)
            _, below, above = moved.applied(quantiles[left], low[left], high[left])
            after = middle[left] + moved.shift
            yield k, how, judged(after, below, above, truth[left], weight)


def judged(
    middle: np.ndarray, low: np.ndarray, high: np.ndarray, truth: np.ndarray, weight: float
) -> Found:
    """Return errors, hits and widths of some predictions."""
    bottom, top = low[:, NINETY], high[:, NINETY]
    return (
        np.abs(np.expm1(middle - truth)),
        (bottom <= truth) & (truth <= top),
        (np.exp(top) - np.exp(bottom)) / np.exp(middle),
        np.full(len(truth), weight),
    )


def main() -> None:
    """Evaluate and print."""
    with stored.printed("adapt", seed=0):
        print("| estimator | measured runs | chosen by | mean / median | covers | width |")
        print("|---|---:|---|---:|---:|---:|")
        for estimator in ESTIMATORS:
            rows: dict[tuple[int, str], list[Found]] = {}
            for case in devices(estimator):
                for k, how, found in of_one(estimator, *case):
                    rows.setdefault((k, how), []).append(found)
            for (k, how), parts in sorted(rows.items()):
                ape, hit, width, weight = (np.concatenate(p) for p in zip(*parts, strict=True))
                mean, covered, wide = (np.average(v, weights=weight) for v in (ape, hit, width))
                order = np.argsort(ape)
                at = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
                errors = f"{100 * mean:.1f} / {100 * ape[order][at]:.1f} %"
                band = f"{100 * covered:.0f} % | {100 * wide:.0f} %"
                print(f"| {estimator} | {k} | {how} | {errors} | {band} |")


if __name__ == "__main__":
    main()
