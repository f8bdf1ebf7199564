"""Small tests that several checks share: corrections, two groups, null samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from errcomp.caveats._case import MATERIAL
from errcomp.stats.multiple import benjamini_hochberg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.caveats._case import Case, Floats, Ints

__all__ = [
    "Contrast",
    "contrast",
    "discoveries",
    "paired_p",
    "simulated_p",
]

#: Fewer matched cells cannot reach p < 0.05: 2 / 2**5 = 0.0625.
MATCHED = 6


def discoveries(p_values: Sequence[float], rate: float) -> list[bool]:
    """Say which p-values to report so that at most this share of those reported is false.

    Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300. When all
    are false, anything at all is reported at most at this rate.

    Examples
    --------
    >>> discoveries([0.03, 0.001, 0.6, 0.02], 0.05)
    [True, True, False, True]
    """
    return [p <= rate for p in benjamini_hochberg(p_values)]


def paired_p(first: Floats, second: Floats) -> float:
    """P-value of Student's paired t-test; 0 where all differences are the same one, 1 for none.

    Examples
    --------
    >>> paired_p(np.array([0.2, 0.3]), np.array([0.1, 0.2]))
    0.0
    """
    from scipy.stats import ttest_rel

    difference = first - second
    # Differences that are equal but for rounding have no spread to judge their mean by.
    if np.ptp(difference) <= 1e-12 * max(np.abs(first).max(), np.abs(second).max()):
        return 1.0 if np.abs(difference).max() <= 1e-12 * np.abs(first).max() else 0.0
    return float(ttest_rel(first, second).pvalue)


def simulated_p(observed: float, null: Floats) -> float:
    """Share of a null sample at least as large as what was observed, which counts as one of it."""
    # Equal values may differ in their last digits, as they were summed in another order.
    reached = null >= observed - 1e-9 * abs(observed)
    return float((1 + np.count_nonzero(reached)) / (1 + len(null)))


class Contrast(NamedTuple):
    """Two groups of rows compared: figures on all their rows and on matched configurations."""

    figures: tuple[float, float]
    sizes: tuple[int, int]
    matched: int
    matched_figures: tuple[float, float]
    p: float

    @property
    def material(self) -> bool:
        """Whether one figure is MATERIAL times the other, matched ones being the fairer ones."""
        all_rows, same = (_signed_ratio(*f) for f in (self.figures, self.matched_figures))
        if self.matched >= MATCHED:
            return abs(same) >= MATERIAL
        # A few matched configurations prove nothing, but they must not say the opposite.
        return abs(all_rows) >= MATERIAL and (
            not self.matched or (same / all_rows > 0 and abs(same) >= MATERIAL)
        )


def _signed_ratio(first: float, second: float) -> float:
    """Larger figure over the smaller, negative where the second one is larger."""
    low, high = sorted((first, second))
    ratio = high / low if low > 0 else float("inf") if high > 0 else 1.0
    return ratio if first >= second else -ratio


def contrast(case: Case, first: NDArray[np.bool_], second: NDArray[np.bool_], key: str) -> Contrast:
    """Compare the errors of two groups of rows, on matched configurations where there are enough.

    Configurations match when they agree in every key but the one tested (and those that differ
    between the groups throughout, as the number of devices does between variants). With at least
    six matched configurations: Wilcoxon's signed-rank test on them; else Mann and Whitney's test on
    all rows of both groups.
    """
    from scipy.stats import mannwhitneyu, wilcoxon

    x, y = case.ape[first], case.ape[second]
    a, b = _matched(case, first, second, key)
    if len(a) < MATCHED:
        p = float(mannwhitneyu(x, y).pvalue)
    else:
        p = 1.0 if np.array_equal(a, b) else float(wilcoxon(a, b).pvalue)
    means = (float(a.mean()), float(b.mean())) if len(a) else (float("nan"), float("nan"))
    figures = (float(x.mean()), float(y.mean()))
    return Contrast(figures, (len(x), len(y)), len(a), means, p)


def _matched(
    case: Case, first: NDArray[np.bool_], second: NDArray[np.bool_], key: str
) -> tuple[Floats, Floats]:
    keys = [
        name
        for name in case.configuration_keys
        if name != key and not _apart(case.codes(name)[0], first, second)
    ]
    cell = case.cells(keys)
    size = int(cell.max()) + 1
    counts = [np.bincount(cell[rows], minlength=size) for rows in (first, second)]
    sums = [np.bincount(cell[r], weights=case.ape[r], minlength=size) for r in (first, second)]
    shared = (counts[0] > 0) & (counts[1] > 0)
    return sums[0][shared] / counts[0][shared], sums[1][shared] / counts[1][shared]


def _apart(code: Ints, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> bool:
    """Say whether a key has one value in one group and another one in the other."""
    a, b = np.unique(code[first]), np.unique(code[second])
    return len(a) == len(b) == 1 and a[0] != b[0]
