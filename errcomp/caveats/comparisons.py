"""Checks that compare parts of the pairs: variants, distributions, groups of unequal size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from errcomp.caveats._case import MATERIAL, NOTHING, Finding, percent, plural, signed
from errcomp.caveats._registry import caveat
from errcomp.caveats._statistics import Moments, Right, order_of_devices, simulated_p
from errcomp.results import Caveat, format_fraction
from errcomp.stats.significance import holm, rank_sum_p, signed_rank_p, student_ppf, student_sf
from errcomp.tables.columns import role_of, with_roles
from errcomp.tables.configurations import VARIANT_KEYS
from errcomp.tables.units import kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.caveats._case import Case, Floats, Ints

#: A key with more values than this does not name variants.
MOST_VARIANTS = 12
#: With fewer pairs on either side, the coverage of Welch's interval is untested.
LEAST_PER_SIDE = 5
#: At least this share of the groups' errors must cancel.
CANCELLED = 0.5
#: Fewest pairs to test the total of a group.
LEAST_PER_GROUP = 5
#: A smaller error of a total is rounding.
_ROUNDING = 1e-12
#: Times on several devices are alternatives, not terms of a sum.
NOT_ADDED = ("device",)
GROUP_KEYS = ("device", "model", "mode", "kernel_class")
#: Fewest comparisons of two devices, and most pairs: of more, they would take longer than an audit.
FEWEST_COMPARED, MOST_COMPARED = 20, 20_000
#: An order holds from this share of right comparisons, with a MAPE of at least; it fails up to this
#: share, with a MAPE of at most.
HOLDS, LARGE, FAILS, SMALL = 0.95, 0.05, 0.8, 0.1
_ORDER = (
    "Compares every two devices that ran the same configuration (at least 20 comparisons): was the "
    "one with the shorter predicted time the faster? "
)


@caveat(
    "pooled-variants",
    "Variants with different errors are pooled",
    scope="pairs",
    order=90,
    why="Compares each variant (fused, distributed, training, another precision, …) with the most "
    "frequent variant. If the two share at least six configurations that are otherwise identical "
    "(fewer cannot reach p < 0.05), the test is Wilcoxon's signed-rank test, otherwise the "
    "Mann–Whitney U test. P-values are corrected by Holm. Fires when a difference is significant "
    "and one MAPE is at least 1.25 times the other.",
    remedy="Quote each variant separately. Variants that ran on different configurations may also "
    "differ in model or device.",
    needs_pairs=True,
)
def pooled_variants(case: Case) -> Finding | None:
    """Find variants (fused, distributed, another precision, …) with different errors."""
    tried: list[tuple[str, Any, Any, Contrast]] = []
    rows: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = []
    for key in case.varying(VARIANT_KEYS):
        for value, usual, first, second in _against_the_usual(case, key):
            # dp4 and tp4 against base are part of "distributed against single-device".
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
    p, (key, value, usual, surest) = min(material, key=lambda item: item[0])
    same = surest.matched_figures
    if surest.matched >= MATCHED:
        figures = (
            f"{value} has a MAPE of {percent(same[0])} and {usual} {percent(same[1])} on "
            f"the same {surest.matched} configurations"
        )
    else:
        figures = (
            f"{value} ({plural(surest.sizes[0], 'pair')}) has a MAPE of "
            f"{percent(surest.figures[0])}, {usual} ({plural(surest.sizes[1], 'pair')}) "
            f"{percent(surest.figures[1])}"
        )
        if surest.matched:
            figures += (
                f" (on {plural(surest.matched, 'common case')}: {percent(same[0])} and "
                f"{percent(same[1])})"
            )
    message = f"Pooled {key}: {figures}. The pooled {percent(case.mape)} describes neither."
    evidence = {
        "key": key,
        "variant": value,
        "usual": usual,
        "mape_variant": surest.figures[0],
        "mape_usual": surest.figures[1],
        "n_variant": surest.sizes[0],
        "n_usual": surest.sizes[1],
        "matched": surest.matched,
        "mape_variant_matched": same[0] if surest.matched else None,
        "mape_usual_matched": same[1] if surest.matched else None,
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


#: Fewer matched cells cannot reach p < 0.05: 2 / 2**5 = 0.0625.
MATCHED = 6


class Contrast(NamedTuple):
    """Two groups of rows compared: MAPE on all their rows and on matched configurations."""

    figures: tuple[float, float]
    sizes: tuple[int, int]
    matched: int
    matched_figures: tuple[float, float]
    p: float

    @property
    def material(self) -> bool:
        """Whether one MAPE is MATERIAL times the other, on matched configurations if enough."""
        all_rows, same = (_signed_ratio(*f) for f in (self.figures, self.matched_figures))
        if self.matched >= MATCHED:
            return abs(same) >= MATERIAL
        # A few matched configurations prove nothing, but they must not contradict the rest.
        return abs(all_rows) >= MATERIAL and (
            not self.matched or (same / all_rows > 0 and abs(same) >= MATERIAL)
        )


def _signed_ratio(first: float, second: float) -> float:
    """Ratio of the larger to the smaller value, negative if the second is larger."""
    low, high = sorted((first, second))
    ratio = high / low if low > 0 else float("inf") if high > 0 else 1.0
    return ratio if first >= second else -ratio


def contrast(case: Case, first: NDArray[np.bool_], second: NDArray[np.bool_], key: str) -> Contrast:
    """Compare the errors of two groups of rows, on matched configurations if there are enough.

    Configurations match if they agree in every key but the tested one, and but those that always
    differ between the groups, as the number of devices does between variants. With at least six
    matched configurations: Wilcoxon's signed-rank test on them; else Mann and Whitney's test on all
    rows of both groups.
    """
    x, y = case.ape[first], case.ape[second]
    a, b = _matched(case, first, second, key)
    if len(a) < MATCHED:
        p = rank_sum_p(x, y)
    else:
        p = 1.0 if np.array_equal(a, b) else signed_rank_p(a, b)
    means = (float(a.mean()), float(b.mean())) if len(a) else (float("nan"), float("nan"))
    figures = (float(x.mean()), float(y.mean()))
    return Contrast(figures, (len(x), len(y)), len(a), means, p)


def _matched(
    case: Case, first: NDArray[np.bool_], second: NDArray[np.bool_], key: str
) -> tuple[Floats, Floats]:
    keys = [
        name
        for name in case.configuration_keys
        if name != key and not _tells_apart(case.codes(name)[0], first, second)
    ]
    cell = case.cells(keys)
    size = int(cell.max()) + 1
    counts = [np.bincount(cell[rows], minlength=size) for rows in (first, second)]
    sums = [np.bincount(cell[r], weights=case.ape[r], minlength=size) for r in (first, second)]
    shared = (counts[0] > 0) & (counts[1] > 0)
    return sums[0][shared] / counts[0][shared], sums[1][shared] / counts[1][shared]


def _tells_apart(code: Ints, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> bool:
    """Say whether a key is constant in each group, with different values."""
    a, b = np.unique(code[first]), np.unique(code[second])
    return len(a) == len(b) == 1 and a[0] != b[0]


@caveat(
    "in-vs-out-of-distribution",
    "Configurations that the predictor was trained on are mixed with others",
    scope="pairs",
    order=100,
    why="Needs a column `in_training`, and at least five pairs inside and five outside the "
    "training set. Fires when Welch's interval for the difference of the two MAPEs excludes zero "
    "and one MAPE is at least 1.25 times the other.",
    remedy="Quote the error outside the training set: it applies to new cases.",
)
def in_vs_out_of_distribution(case: Case) -> Finding | None:
    """Find a MAPE that mixes configurations of the training set with others."""
    if "in_training" not in case.pairs.keys:
        return None
    codes, values = case.codes("in_training")
    moments = case.moments(np.asarray([_truth(v) for v in values])[codes])
    # The third may be missing.
    n_out, n_in, n_unknown = np.pad(moments.sizes, (0, 2))[:3].tolist()
    if min(n_out, n_in) < LEAST_PER_SIDE:
        return None
    if not moments.squares[:2].any():  # without variance, Welch's test is undefined
        return None
    a, b = (case.largest * moments.means[:2]).tolist()
    p, low, high = _welch(moments, case)
    if max(a, b) < MATERIAL * min(a, b):
        return NOTHING
    message = (
        f"Outside the training set the MAPE is {percent(a)} ({plural(n_out, 'pair')}), inside it "
        f"{percent(b)} ({plural(n_in, 'pair')}): a difference of {100 * (a - b):+.1f} points "
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
    df = moments.sizes[:2] - 1
    variances = moments.squares[:2] / df / moments.sizes[:2]
    deviation = float(np.sqrt(variances.sum()))
    freedom = float(variances.sum() ** 2 / (variances**2 / df).sum())
    difference = float(moments.means[0] - moments.means[1])
    reach = student_ppf(0.5 + case.level / 2, freedom) * deviation
    low, high = (case.largest * (difference + side * reach) for side in (-1, 1))
    return 2 * float(student_sf(abs(difference) / deviation, freedom)), low, high


def _truth(value: Any) -> int:
    """Return 0 for no, 1 for yes, and 2 for anything else."""
    text = str(value).strip().lower()
    return 1 if text in ("true", "1", "1.0", "yes") else 0 if text in _FALSE else 2


_FALSE = ("false", "0", "0.0", "no")


@caveat(
    "unbalanced-groups",
    "The pooled MAPE depends on the sizes of the groups",
    scope="pairs",
    order=110,
    why="Fires when the pooled MAPE and the mean over groups differ by a factor of 1.25 or more, "
    "and by more than random group labels would cause (permutation test, corrected for the number "
    "of keys by Holm's method).",
    remedy="Quote the mean over groups as well, or the MAPE of each group.",
)
def unbalanced_groups(case: Case) -> Finding | None:
    """Find groups whose unequal sizes, not their errors, determine the pooled MAPE."""
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
        f"The pooled MAPE is {percent(case.mape)}, the mean over the {len(sizes)} groups by "
        f"{' × '.join(keys)} is {percent(float(means.mean()))}: {name} alone has "
        f"{sizes[largest]:,} of {case.n:,} pairs, with a MAPE of {percent(float(means[largest]))}."
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
    """Return the user's grouping; inside one of its groups, each usual key on its own."""
    if case.varying(case.by):
        return [case.by]
    return [(key,) for key in case.varying(GROUP_KEYS)]


def _macro_p(case: Case, codes: Ints, moments: Moments) -> float:
    """P-value of the gap between pooled and macro MAPE under random group labels."""
    sizes, groups = moments.sizes, len(moments.sizes)
    gap = abs(float(moments.means.mean()) - moments.mean)
    if case.simulates:
        return simulated_p(gap, np.abs(case.shuffled_means(codes).mean(axis=1) - moments.mean))
    # The gap is a contrast sum(c_i APE_i), sum(c_i) = 0; its permutation variance is exact.
    weights = 1 / (groups * sizes) - 1 / case.n
    variance = (moments.within + moments.between) / (case.n - 1)
    deviation = float(np.sqrt(variance * (sizes * weights**2).sum()))
    return math.erfc(gap / deviation / math.sqrt(2)) if deviation > 0 else 1.0


class _Groups(NamedTuple):
    """Errors of the totals of groups, with standard errors, and of the total of all.

    Attributes
    ----------
    off, deviation, share : ndarray, shape (groups,)
        Error of each total, its standard error (of a ratio of sums), and its share of all.
    size : ndarray of int, shape (groups,)
        Pairs in each.
    together : float
        Error of the total of all.
    """

    keys: tuple[str, ...]
    codes: Ints
    size: Ints
    off: Floats
    deviation: Floats
    share: Floats
    together: float

    @property
    def gross(self) -> float:
        """Mean over groups of the size of the error of their total, weighted by their size."""
        return float((np.abs(self.off) * self.share).sum())


@caveat(
    "cancelling-errors",
    "Errors of opposite sign cancel in the sum",
    scope="pairs",
    order=190,
    why="Checks the groups of --by; without --by, the groups by model, by mode and by "
    "kernel_class. Never checks groups by device, because times on different devices are not added "
    "up. Fires when the predicted total of one group is too low and that of another group is too "
    "high (t-tests of ratios of sums in groups of at least 5 pairs, corrected for the numbers of "
    "groups (Bonferroni) and of keys (Holm)). Two more conditions must hold. The error of the "
    "overall total is less than half the mean absolute error of the group totals, and this mean is "
    "at least 1.25 times the value expected if every group had the error of the overall total.",
    remedy="Quote the error of each group. The error of the total depends on how the groups are "
    "mixed; errcomp propagate computes the error of a total from the errors of its parts.",
)
def groups_that_cancel(case: Case) -> Finding | None:
    """Find groups with totals too low and too high, so that the total of all looks right."""
    tried = []
    for grouping in groupings(case):
        not_added = with_roles(NOT_ADDED, case.pairs.keys)
        keys = tuple(key for key in grouping if key not in not_added)
        if not case.varying(keys):
            continue
        groups = _groups(case, keys)
        if np.count_nonzero(groups.size >= LEAST_PER_GROUP) > 1:
            tried.append((groups, _both_sides(groups)))
    if not tried:
        return None
    corrected = holm([p for _, p in tried])
    cancelling = [
        (p, groups)
        for p, (groups, _) in zip(corrected, tried, strict=True)
        if max(abs(groups.together), _ROUNDING) < CANCELLED * groups.gross
        and groups.gross >= MATERIAL * _by_chance(groups)
    ]
    if not cancelling:
        return NOTHING
    p, groups = min(cancelling, key=lambda item: item[0])
    lowest, highest = groups.off.argmin(), groups.off.argmax()
    names = [_name(case, groups, group) for group in (lowest, highest)]
    ends = [float(groups.off[group]) for group in (lowest, highest)]
    evidence = {
        "keys": list(groups.keys),
        "groups": len(groups.off),
        "total_error": groups.together,
        "mean_group_total_error": groups.gross,
        "lowest": names[0],
        "lowest_total_error": ends[0],
        "highest": names[1],
        "highest_total_error": ends[1],
    }
    message = (
        f"Errors cancel between groups by {' × '.join(groups.keys)}: the total of all pairs is off "
        f"by {signed(groups.together)}. The totals of the {len(groups.off)} groups are off by "
        f"{percent(groups.gross)} on average (weighted by size), from {signed(ends[0])} "
        f"({names[0]}) to {signed(ends[1])} ({names[1]})."
    )
    return Finding(Caveat("cancelling-errors", message, evidence), p)


def _groups(case: Case, keys: tuple[str, ...]) -> _Groups:
    codes = case.cells(keys)
    size = case.sizes(codes)
    measured, off, scatter = case.totals(codes)
    # A single pair has no standard error, and is never significant.
    scatter = np.where(size > 1, np.sqrt(size / np.maximum(size - 1, 1)) * scatter, np.inf)
    return _Groups(
        keys=keys,
        codes=codes,
        size=size,
        off=off,
        deviation=scatter / measured,
        share=measured / measured.sum(),
        together=case.total_error,
    )


def _both_sides(groups: _Groups) -> float:
    """P-value that one group's total is too low and another's too high (Bonferroni)."""
    enough = groups.size >= LEAST_PER_GROUP
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(groups.off == 0, 0.0, groups.off / groups.deviation)[enough]
    df = groups.size[enough] - 1
    sides = [float(np.min(student_sf(side * statistic, df))) for side in (1, -1)]
    return min(1.0, max(sides) * len(df))


def _by_chance(groups: _Groups) -> float:
    """Mean size of the groups' errors if all had the error of the total: folded normals."""
    spread = np.where(groups.size > 1, groups.deviation, 0.0)
    mean = abs(groups.together)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread > 0, mean / spread, np.inf)
    density = np.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
    folded = 2 * spread * density + mean * (1 - 2 * special.ndtr(-ratio))
    return float((folded * groups.share).sum())


def _name(case: Case, groups: _Groups, group: np.intp) -> str:
    row = int(np.flatnonzero(groups.codes == group)[0])
    return " ".join(str(case.pairs.column(key)[row]) for key in groups.keys)


@caveat(
    "order-holds",
    "The errors are large, but the order of the devices is right",
    scope="pairs",
    order=262,
    why=_ORDER + "Fires when this is so in at least 95 % and the MAPE is at least 5 %: errors of "
    "devices that have the same sign cancel in a comparison, and devices may differ more than the "
    "errors. No significance test is involved; the interval is in brackets.",
    remedy="To choose a device, quote the share of right comparisons (errcomp compare), not the "
    "MAPE.",
    needs_pairs=True,
)
def order_holds(case: Case) -> Finding | None:
    """Find pairs whose errors are large and whose order of devices is right."""
    right = _right(case)
    if right is None or case.mape < LARGE or right.share < HOLDS:
        return None
    message = (
        f"The MAPE is {format_fraction(case.mape)}, but the predictions name the faster of two "
        f"devices in {right.words}."
    )
    return Finding(Caveat("order-holds", message, right.evidence(case)))


@caveat(
    "order-fails",
    "The errors are small, but the order of the devices is often wrong",
    scope="pairs",
    order=115,
    why=_ORDER + "Fires when this is so in at most 80 %, although the MAPE is at most 10 %: the "
    "devices differ less than the errors. No significance test is involved; the interval is in "
    "brackets.",
    remedy="Do not choose a device by these predictions unless they differ by more than errcomp "
    "compare --evaluate says is needed.",
    needs_pairs=True,
)
def order_fails(case: Case) -> Finding | None:
    """Find pairs whose errors are small and whose order of devices is often wrong."""
    right = _right(case)
    if right is None or case.mape > SMALL or right.share > FAILS:
        return None
    message = (
        f"The MAPE is {format_fraction(case.mape)}, but the predictions name the faster of two "
        f"devices in only {right.words}."
    )
    return Finding(Caveat("order-fails", message, right.evidence(case)))


def _right(case: Case) -> Right | None:
    """Compare every two devices; None where too few can be compared, or these are not times."""
    pairs = case.pairs
    key = role_of("device", pairs.keys)
    times = pairs.unit in (None, "cycles") or kind_of(pairs.unit) == "time"
    if key is None or not times or pairs.n > MOST_COMPARED:
        return None
    counts = np.sort(np.bincount(pairs.codes(key)))
    # Two devices have at most as many configurations in common as the rarer one has rows.
    if counts @ np.arange(len(counts))[::-1] < FEWEST_COMPARED:
        return None
    return order_of_devices(case, key, FEWEST_COMPARED)
