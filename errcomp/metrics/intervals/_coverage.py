"""How often intervals covered in simulations, and what follows: which are offered, which warned of.

All numbers are the lowest simulated coverage of nominal 95 % intervals under the log-normal laws of
docs/intervals.md; ``benchmarks/coverage_table.py`` prints its tables and these constants.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from errcomp.results import Caveat

__all__ = ["COVERAGE", "IN_CLUSTERS", "WILSON", "Sample", "is_offered", "small_sample"]

#: Sample sizes of `COVERAGE`; the longer rows end at 1,000.
SIZES = (3, 5, 8, 10, 15, 20, 50, 100, 200, 1000)
CLUSTER_SIZES = (5, 6, 8, 10, 20, 40)

#: A nominal 95 % interval is as good as its word from 93 % on, and not offered below 90 %, each
#: less two standard errors of a simulated coverage.
NOMINAL, OFFERED = 0.93, 0.90
_NOISE = 0.01

COVERAGE: dict[str, dict[str, tuple[float, ...]]] = {
    "default": {
        "mape": (0.943, 0.929, 0.933, 0.926, 0.926, 0.918, 0.943, 0.952, 0.943),
        "smape": (0.953, 0.955, 0.948, 0.962, 0.965, 0.960, 0.957, 0.952, 0.953),
        "bias": (0.943, 0.934, 0.935, 0.948, 0.940, 0.949, 0.948, 0.953, 0.950),
        "wape": (0.971, 0.953, 0.941, 0.938, 0.934, 0.924, 0.926, 0.928, 0.930),
        "total_error": (0.972, 0.949, 0.933, 0.934, 0.935, 0.927, 0.938, 0.931, 0.936),
        "rmse": (0.792, 0.630, 0.614, 0.722, 0.740, 0.744, 0.762, 0.778, 0.811, 0.853),
        "rmspe": (0.898, 0.800, 0.755, 0.775, 0.816, 0.777, 0.831, 0.882, 0.920, 0.949),
        "rmsle": (0.953, 0.938, 0.929, 0.938, 0.947, 0.945, 0.944, 0.951, 0.948),
        "gmape": (0.914, 0.913, 0.905, 0.935, 0.938, 0.950, 0.951, 0.949, 0.951),
        "gm_ratio": (0.951, 0.943, 0.949, 0.958, 0.956, 0.952, 0.947, 0.953, 0.950),
    },
    "log-t": {
        "mape": (0.943, 0.929, 0.933, 0.919, 0.917, 0.913, 0.934, 0.943, 0.935),
        "smape": (0.953, 0.955, 0.948, 0.945, 0.957, 0.946, 0.948, 0.947, 0.948),
        "bias": (0.943, 0.934, 0.935, 0.930, 0.931, 0.939, 0.940, 0.949, 0.944),
        "wape": (0.971, 0.953, 0.941, 0.927, 0.925, 0.911, 0.920, 0.922, 0.929),
        "total_error": (0.972, 0.949, 0.933, 0.919, 0.926, 0.915, 0.922, 0.922, 0.930),
        "rmse": (0.792, 0.630, 0.614, 0.598, 0.602, 0.626, 0.666, 0.692, 0.722, 0.791),
        "rmspe": (0.898, 0.800, 0.755, 0.741, 0.793, 0.769, 0.806, 0.843, 0.883, 0.929),
        "rmsle": (0.953, 0.938, 0.929, 0.929, 0.940, 0.934, 0.940, 0.947, 0.945),
        "gmape": (0.914, 0.913, 0.905, 0.908, 0.917, 0.926, 0.940, 0.936, 0.939),
        "gm_ratio": (0.951, 0.943, 0.949, 0.939, 0.945, 0.944, 0.943, 0.948, 0.948),
    },
    "bootstrap-t": {
        "mape": (0.998, 0.902, 0.884, 0.866, 0.896, 0.901, 0.922, 0.941, 0.938),
        "smape": (0.999, 0.939, 0.949, 0.945, 0.950, 0.951, 0.952, 0.947, 0.944),
        "bias": (0.996, 0.928, 0.927, 0.932, 0.933, 0.932, 0.939, 0.947, 0.946),
        "wape": (0.996, 0.876, 0.875, 0.877, 0.879, 0.889, 0.910, 0.911, 0.911),
        "total_error": (0.996, 0.894, 0.904, 0.897, 0.907, 0.904, 0.924, 0.921, 0.920),
        "rmse": (0.996, 0.743, 0.715, 0.712, 0.735, 0.741, 0.759, 0.776, 0.808, 0.850),
        "rmspe": (0.997, 0.763, 0.760, 0.758, 0.747, 0.731, 0.824, 0.876, 0.915, 0.940),
        "rmsle": (0.998, 0.906, 0.911, 0.914, 0.932, 0.929, 0.938, 0.946, 0.936),
        "gmape": (0.996, 0.931, 0.916, 0.918, 0.924, 0.931, 0.940, 0.941, 0.941),
        "gm_ratio": (0.997, 0.951, 0.948, 0.945, 0.943, 0.945, 0.942, 0.948, 0.944),
    },
    "bca": {
        "mape": (0.616, 0.723, 0.799, 0.790, 0.849, 0.866, 0.906, 0.929, 0.930),
        "smape": (0.681, 0.826, 0.881, 0.899, 0.922, 0.919, 0.937, 0.941, 0.939),
        "bias": (0.648, 0.790, 0.854, 0.855, 0.883, 0.895, 0.920, 0.939, 0.938),
        "wape": (0.605, 0.677, 0.745, 0.753, 0.795, 0.823, 0.868, 0.881, 0.886),
        "total_error": (0.620, 0.743, 0.802, 0.809, 0.831, 0.838, 0.873, 0.892, 0.901),
        "rmse": (0.230, 0.317, 0.398, 0.395, 0.491, 0.526, 0.614, 0.673, 0.724, 0.802),
        "rmspe": (0.405, 0.501, 0.621, 0.647, 0.671, 0.684, 0.796, 0.844, 0.887, 0.913),
        "rmsle": (0.593, 0.750, 0.817, 0.839, 0.885, 0.884, 0.920, 0.933, 0.926),
        "gmape": (0.658, 0.808, 0.835, 0.857, 0.886, 0.902, 0.927, 0.933, 0.935),
        "gm_ratio": (0.692, 0.828, 0.882, 0.885, 0.897, 0.921, 0.929, 0.940, 0.939),
    },
    "percentile": {
        "mape": (0.655, 0.713, 0.798, 0.790, 0.841, 0.859, 0.909, 0.927, 0.927),
        "smape": (0.722, 0.814, 0.873, 0.885, 0.913, 0.910, 0.933, 0.937, 0.938),
        "bias": (0.701, 0.779, 0.846, 0.852, 0.882, 0.897, 0.922, 0.937, 0.935),
        "wape": (0.655, 0.697, 0.767, 0.774, 0.816, 0.836, 0.883, 0.895, 0.909),
        "total_error": (0.699, 0.757, 0.821, 0.830, 0.854, 0.867, 0.900, 0.907, 0.916),
        "rmse": (0.242, 0.281, 0.351, 0.342, 0.412, 0.444, 0.512, 0.581, 0.634, 0.736),
        "rmspe": (0.426, 0.479, 0.574, 0.592, 0.639, 0.653, 0.759, 0.814, 0.859, 0.922),
        "rmsle": (0.639, 0.723, 0.795, 0.817, 0.866, 0.869, 0.908, 0.929, 0.929),
        "gmape": (0.706, 0.810, 0.839, 0.852, 0.889, 0.908, 0.927, 0.932, 0.936),
        "gm_ratio": (0.739, 0.834, 0.884, 0.887, 0.905, 0.922, 0.932, 0.939, 0.941),
    },
}
IN_CLUSTERS: dict[str, tuple[float, ...]] = {
    "mape": (0.906, 0.904, 0.899, 0.904, 0.916, 0.943),
    "smape": (0.948, 0.950, 0.952, 0.939, 0.945, 0.947),
    "bias": (0.960, 0.952, 0.945, 0.947, 0.953, 0.946),
    "wape": (0.928, 0.919, 0.901, 0.901, 0.915, 0.933),
    "total_error": (0.956, 0.950, 0.947, 0.945, 0.947, 0.946),
    "rmse": (0.845, 0.816, 0.794, 0.800, 0.822, 0.841),
    "rmspe": (0.850, 0.846, 0.828, 0.860, 0.888, 0.911),
    "rmsle": (0.934, 0.933, 0.928, 0.925, 0.936, 0.945),
    "gmape": (0.956, 0.940, 0.951, 0.950, 0.948, 0.953),
    "gm_ratio": (0.961, 0.951, 0.951, 0.950, 0.953, 0.951),
    "share": (0.952, 0.955, 0.932, 0.924, 0.905, 0.918),
    "median_ape": (0.959, 0.959, 0.936, 0.951, 0.951, 0.951),
    "p90_ape": (0.598, 0.670, 0.765, 0.842, 0.904, 0.927),
}
#: Shares: lowest exact coverage for true shares from 5 to 95 %.
WILSON = (0.828, 0.892, 0.894, 0.894, 0.914, 0.917, 0.931, 0.927, 0.935)


class Sample(NamedTuple):
    """What an interval was made from: outermost clusters, or pairs."""

    units: int
    clustered: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sample sizes that were simulated."""
        return CLUSTER_SIZES if self.clustered else SIZES

    @property
    def word(self) -> str:
        """Return what is counted."""
        return "clusters" if self.clustered else "pairs"


def is_offered(row: tuple[float, ...], sample: Sample) -> bool:
    """Whether the interval covered at least 90 % at this size and at all larger ones."""
    start = _reached(row, sample.sizes, OFFERED)
    return start is not None and sample.units >= start


def small_sample(label: str, row: tuple[float, ...], sample: Sample) -> tuple[Caveat, ...]:
    """Return the caveat of an interval from fewer units than it needs to reach its nominal level.

    Parameters
    ----------
    label : str
        Name of the figure for people.
    row : tuple of float
        Coverage of its interval at the sizes simulated; empty where it is exact.
    sample : Sample

    Returns
    -------
    tuple of Caveat
        Empty, or one with the code ``"few-configurations"`` or ``"few-clusters"``.
    """
    start = _reached(row, sample.sizes, NOMINAL)
    if not row or (start is not None and sample.units >= start):
        return ()
    sizes, n, word = sample.sizes[: len(row)], sample.units, sample.word
    at = max(bisect_right(sizes, n) - 1, 0)
    found = min(row[at:])
    rest = (
        f"no number tested, up to {sizes[-1]:,}, reaches {100 * NOMINAL:.0f} %"
        if start is None
        else f"from {start} {word} on in about {100 * NOMINAL:.0f} % or more"
    )
    message = (
        f"The interval rests on {n:,} {word}. Intervals of {label} that say 95 % cover the truth "
        f"in as few as {100 * found:.0f} % of samples of {sizes[at]:,} {word} or more; {rest}."
    )
    evidence = {"n": n, "simulated_n": sizes[at], "coverage": found, "nominal_from": start}
    return (
        Caveat("few-clusters" if sample.clustered else "few-configurations", message, evidence),
    )


def _reached(row: tuple[float, ...], sizes: tuple[int, ...], target: float) -> int | None:
    """Return the smallest size from which on the coverage stays at the target, if any."""
    start = None
    for size, coverage in zip(sizes, row, strict=False):
        if coverage < target - _NOISE:
            start = None
        elif start is None:
            start = size
    return start
