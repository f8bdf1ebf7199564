"""Checks that compare parts of the pairs: variants, distributions, groups of unequal size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.caveats._case import (
    MATERIAL,
    NOTHING,
    VARIANT_KEYS,
    Finding,
    percent,
    plural,
)
from errcomp.caveats._statistics import (
    MATCHED,
    Contrast,
    contrast,
    simulated_p,
)
from errcomp.results import Caveat
from errcomp.stats.multiple import holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.caveats._case import Case, Ints
    from errcomp.caveats._sums import Moments

__all__ = ["groupings", "in_vs_out_of_distribution", "pooled_variants", "unbalanced_groups"]

#: A key with more values than this does not name variants.
MOST_VARIANTS = 12
#: Fewer pairs on either side give Welch's interval no tested coverage.
LEAST_PER_SIDE = 5
GROUP_KEYS = ("device", "model", "mode", "kernel_class")


def pooled_variants(case: Case) -> Finding | None:
    """Find variants (fused, distributed, another precision, …) that err differently."""
    tried: list[tuple[str, Any, Any, Contrast]] = []
    rows: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = []
    for key in case.varying(VARIANT_KEYS):
        for value, usual, first, second in _against_the_usual(case, key):
            # dp4 and tp4 against base are part of distributed against single-device.
            if any(np.all(a[first]) and np.all(b[second]) for a, b in rows):
                continue
            rows.append((first, second))
            tried.append((key, value, usual, contrast(case, first, second, key)))
    if not tried:
        return None
    adjusted = holm([c.p for *_, c in tried])
    material = [(p, t) for p, t in zip(adjusted, tried, strict=True) if t[3].material]
    if not material:
        return NOTHING
    p, (key, value, usual, found) = min(material, key=lambda item: item[0])
    same = found.matched_figures
    if found.matched >= MATCHED:
        what = (
            f"{value} errs {percent(same[0])} and {usual} {percent(same[1])} on the same "
            f"{found.matched} configurations"
        )
    else:
        what = (
            f"{value} ({plural(found.sizes[0], 'pair')}) errs {percent(found.figures[0])}, "
            f"{usual} ({found.sizes[1]:,}) {percent(found.figures[1])}"
        )
        if found.matched:
            what += f" (on the same {found.matched}: {percent(same[0])}, {percent(same[1])})"
    message = f"Pooled {key}: {what}; {percent(case.mape)} describes neither."
    evidence = {
        "key": key,
        "variant": value,
        "usual": usual,
        "mape_variant": found.figures[0],
        "mape_usual": found.figures[1],
        "n_variant": found.sizes[0],
        "n_usual": found.sizes[1],
        "matched": found.matched,
        "mape_variant_matched": same[0] if found.matched else None,
        "mape_usual_matched": same[1] if found.matched else None,
        "mape_pooled": case.mape,
        "contrasts": len(tried),
    }
    return Finding(Caveat("pooled-variants", message, evidence), p)


def _against_the_usual(
    case: Case, key: str
) -> Iterator[tuple[Any, Any, NDArray[np.bool_], NDArray[np.bool_]]]:
    codes, values = case.codes(key)
    if key == "devices":
        codes, values = _single_or_distributed(codes, values)
    if not 1 < len(values) <= MOST_VARIANTS:
        return
    usual = int(np.bincount(codes).argmax())
    for code, value in enumerate(values):
        if code != usual and value is not None:
            yield value, values[usual], codes == code, codes == usual


def _single_or_distributed(codes: Ints, values: list[Any]) -> tuple[Ints, list[Any]]:
    try:
        distributed = np.asarray([v is not None and float(v) > 1 for v in values])[codes]
    except (TypeError, ValueError):  # "two", "1x8": names of variants like any other
        return codes, values
    if distributed.all() or not distributed.any():
        return np.zeros_like(codes), ["one kind"]
    return distributed.astype(np.int64), ["single-device", "distributed"]


def in_vs_out_of_distribution(case: Case) -> Finding | None:
    """Find a figure that mixes what the predictor was trained on with what it was not."""
    if "in_training" not in case.pairs.keys:
        return None
    codes, values = case.codes("in_training")
    moments = case.moments(np.asarray([_truth(v) for v in values])[codes])
    # The last of the three may be missing.
    n_out, n_in, n_unknown = np.pad(moments.sizes, (0, 2))[:3].tolist()
    if min(n_out, n_in) < LEAST_PER_SIDE:
        return None
    if not moments.squares[:2].any():  # nothing varies: Welch's test is undefined
        return None
    a, b = (case.largest * moments.means[:2]).tolist()
    p, low, high = _welch(moments, case)
    if max(a, b) < MATERIAL * min(a, b):
        return NOTHING
    message = (
        f"Outside the training set the MAPE is {percent(a)} ({plural(n_out, 'pair')}), "
        f"inside {percent(b)} ({n_in:,}): {100 * (a - b):+.1f} points "
        f"[{100 * low:.1f}, {100 * high:.1f}]."
    )
    evidence = {
        "mape_out": a,
        "mape_in": b,
        "n_out": n_out,
        "n_in": n_in,
        "n_unknown": n_unknown,
        "difference": a - b,
        "difference_low": low,
        "difference_high": high,
        "level": case.level,
    }
    return Finding(Caveat("in-vs-out-of-distribution", message, evidence), p)


def _welch(moments: Moments, case: Case) -> tuple[float, float, float]:
    """Welch's t-test of the first two groups: p-value, and interval of the difference.

    Welch (1947), "The generalization of 'Student's' problem when several different population
    variances are involved", Biometrika 34, 28-35.
    """
    from scipy.stats import t

    df = moments.sizes[:2] - 1
    variances = moments.squares[:2] / df / moments.sizes[:2]
    deviation = float(np.sqrt(variances.sum()))
    freedom = float(variances.sum() ** 2 / (variances**2 / df).sum())
    difference = float(moments.means[0] - moments.means[1])
    reach = float(t.ppf(0.5 + case.level / 2, freedom)) * deviation
    low, high = (case.largest * (difference + side * reach) for side in (-1, 1))
    return 2 * float(t.sf(abs(difference) / deviation, freedom)), low, high


def _truth(value: Any) -> int:
    """Return 0 for no, 1 for yes, and 2 for anything else."""
    text = str(value).strip().lower()
    return 1 if text in ("true", "1", "1.0", "yes") else 0 if text in _FALSE else 2


_FALSE = ("false", "0", "0.0", "no")


def unbalanced_groups(case: Case) -> Finding | None:
    """Find groups whose unequal sizes, not their errors, set the pooled figure."""
    tried = []
    for keys in groupings(case):
        codes = case.cells(keys)
        moments = case.moments(codes)
        if moments.sizes.min() < moments.sizes.max() and case.mape > 0:
            tried.append((keys, codes, moments, _macro_p(case, codes, moments)))
    if not tried:
        return None
    adjusted = holm([p for *_, p in tried])
    best = None
    for p, (keys, codes, moments, _) in zip(adjusted, tried, strict=True):
        means = case.largest * moments.means
        ratio = max(means.mean(), case.mape) / min(means.mean(), case.mape)
        if ratio >= MATERIAL and (best is None or p < best[0]):
            best = p, keys, codes, means, moments.sizes
    if best is None:
        return NOTHING
    p, keys, codes, means, sizes = best
    largest = int(sizes.argmax())
    row = int(np.flatnonzero(codes == largest)[0])
    name = " ".join(str(case.pairs.column(k)[row]) for k in keys)
    message = (
        f"Pooled {percent(case.mape)}, mean over the {len(sizes)} groups of {' × '.join(keys)} "
        f"{percent(float(means.mean()))}: {name} alone is {sizes[largest]:,} of {case.n:,} pairs "
        f"({percent(float(means[largest]))})."
    )
    evidence = {
        "keys": list(keys),
        "pooled": case.mape,
        "macro": float(means.mean()),
        "groups": len(sizes),
        "largest": name,
        "n_largest": int(sizes[largest]),
        "mape_largest": float(means[largest]),
        "n": case.n,
    }
    return Finding(Caveat("unbalanced-groups", message, evidence), p)


def groupings(case: Case) -> list[tuple[str, ...]]:
    """Return the reader's own grouping; inside one of its groups, each usual key on its own."""
    if case.varying(case.by):
        return [case.by]
    return [(key,) for key in case.varying(GROUP_KEYS)]


def _macro_p(case: Case, codes: Ints, moments: Moments) -> float:
    """P-value of the gap between pooled and macro figure if group labels meant nothing."""
    sizes, groups = moments.sizes, len(moments.sizes)
    gap = abs(float(moments.means.mean()) - moments.mean)
    if case.simulates:
        return simulated_p(gap, np.abs(case.shuffled_means(codes).mean(axis=1) - moments.mean))
    # The gap is a contrast sum(c_i APE_i), sum(c_i) = 0; its permutation variance is exact.
    weights = 1 / (groups * sizes) - 1 / case.n
    variance = (moments.within + moments.between) / (case.n - 1)
    deviation = float(np.sqrt(variance * (sizes * weights**2).sum()))
    return math.erfc(gap / deviation / math.sqrt(2)) if deviation > 0 else 1.0
