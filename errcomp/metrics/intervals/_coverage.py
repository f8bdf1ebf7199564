"""Simulated coverage of intervals: which are offered, and which get a caveat.

All numbers are the lowest simulated coverage of nominal 95 % intervals under the log-normal laws of
docs/intervals.md; ``benchmarks/coverage_table.py`` prints its tables and these constants.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from errcomp.results import Caveat

#: Sample sizes of `COVERAGE`; the longer rows end at 1,000.
SIZES = (3, 4, 5, 8, 10, 15, 20, 50, 100, 200, 1000)
CLUSTER_SIZES = (3, 4, 5, 6, 8, 10, 20, 40)

#: A nominal 95 % interval is valid if it covers 93 % or more, and not offered below 90 %, each less
#: two standard errors of a simulated coverage.
NOMINAL, OFFERED = 0.93, 0.90
_NOISE = 0.01

COVERAGE: dict[str, dict[str, tuple[float, ...]]] = {
    "log-t": {
        "mape": (0.911, 0.930, 0.921, 0.942, 0.945, 0.952, 0.949, 0.967, 0.972, 0.972),
        "smape": (0.923, 0.946, 0.949, 0.958, 0.957, 0.959, 0.960, 0.965, 0.958, 0.964),
        "bias": (0.932, 0.941, 0.932, 0.940, 0.949, 0.950, 0.948, 0.940, 0.955, 0.953),
        "wape": (0.000, 0.924, 0.926, 0.934, 0.927, 0.934, 0.924, 0.945, 0.962, 0.970),
        "total_error": (0.000, 0.929, 0.923, 0.923, 0.927, 0.924, 0.931, 0.929, 0.943, 0.945),
        "mae": (0.729, 0.854, 0.845, 0.890, 0.894, 0.923, 0.926, 0.950, 0.975, 0.973, 0.969),
        "rmse": (0.594, 0.667, 0.662, 0.670, 0.692, 0.697, 0.690, 0.763, 0.796, 0.818, 0.895),
        "rmspe": (0.867, 0.855, 0.815, 0.789, 0.811, 0.868, 0.877, 0.909, 0.921, 0.951, 0.972),
        "rmsle": (0.933, 0.942, 0.938, 0.945, 0.945, 0.961, 0.964, 0.969, 0.970, 0.971),
        "gmape": (0.872, 0.901, 0.915, 0.914, 0.915, 0.913, 0.926, 0.931, 0.934, 0.934),
        "gm_ratio": (0.941, 0.948, 0.943, 0.941, 0.943, 0.941, 0.943, 0.932, 0.941, 0.938),
    },
    "bootstrap-t": {
        "mape": (0.954, 0.893, 0.887, 0.876, 0.889, 0.910, 0.910, 0.927, 0.918, 0.940),
        "smape": (0.964, 0.930, 0.940, 0.936, 0.949, 0.956, 0.940, 0.940, 0.946, 0.944),
        "bias": (0.970, 0.932, 0.917, 0.933, 0.924, 0.931, 0.935, 0.937, 0.938, 0.936),
        "wape": (0.000, 0.881, 0.870, 0.876, 0.885, 0.885, 0.883, 0.901, 0.926, 0.922),
        "total_error": (0.000, 0.923, 0.889, 0.894, 0.906, 0.905, 0.904, 0.914, 0.926, 0.923),
        "mae": (0.920, 0.833, 0.811, 0.852, 0.871, 0.887, 0.891, 0.901, 0.926, 0.927, 0.933),
        "rmse": (0.953, 0.807, 0.740, 0.710, 0.736, 0.737, 0.733, 0.770, 0.775, 0.798, 0.845),
        "rmspe": (0.964, 0.826, 0.767, 0.757, 0.797, 0.766, 0.727, 0.835, 0.877, 0.918, 0.937),
        "rmsle": (0.972, 0.922, 0.918, 0.910, 0.920, 0.930, 0.937, 0.936, 0.931, 0.935),
        "gmape": (0.956, 0.917, 0.927, 0.920, 0.924, 0.914, 0.921, 0.933, 0.949, 0.940),
        "gm_ratio": (0.973, 0.949, 0.940, 0.944, 0.943, 0.943, 0.933, 0.934, 0.945, 0.943),
    },
    "bca": {
        "mape": (0.402, 0.654, 0.686, 0.778, 0.802, 0.859, 0.871, 0.900, 0.903, 0.912),
        "smape": (0.572, 0.780, 0.822, 0.881, 0.889, 0.899, 0.916, 0.924, 0.932, 0.927),
        "bias": (0.607, 0.748, 0.765, 0.835, 0.857, 0.888, 0.892, 0.913, 0.921, 0.922),
        "wape": (0.000, 0.589, 0.642, 0.736, 0.762, 0.803, 0.803, 0.859, 0.878, 0.879),
        "total_error": (0.000, 0.687, 0.701, 0.788, 0.819, 0.822, 0.828, 0.860, 0.878, 0.890),
        "mae": (0.224, 0.456, 0.551, 0.687, 0.743, 0.778, 0.805, 0.845, 0.885, 0.893, 0.915),
        "rmse": (0.087, 0.210, 0.285, 0.374, 0.421, 0.460, 0.465, 0.575, 0.657, 0.666, 0.791),
        "rmspe": (0.295, 0.488, 0.501, 0.618, 0.640, 0.662, 0.675, 0.792, 0.832, 0.867, 0.911),
        "rmsle": (0.556, 0.700, 0.744, 0.818, 0.834, 0.861, 0.888, 0.907, 0.918, 0.910),
        "gmape": (0.516, 0.727, 0.791, 0.842, 0.857, 0.875, 0.887, 0.919, 0.926, 0.918),
        "gm_ratio": (0.686, 0.778, 0.812, 0.866, 0.883, 0.902, 0.899, 0.925, 0.930, 0.924),
    },
    "percentile": {
        "mape": (0.424, 0.655, 0.681, 0.762, 0.795, 0.846, 0.867, 0.903, 0.913, 0.924),
        "smape": (0.584, 0.773, 0.805, 0.876, 0.878, 0.888, 0.912, 0.925, 0.927, 0.924),
        "bias": (0.628, 0.745, 0.758, 0.826, 0.855, 0.886, 0.885, 0.915, 0.926, 0.922),
        "wape": (0.000, 0.614, 0.646, 0.751, 0.779, 0.831, 0.829, 0.872, 0.897, 0.909),
        "total_error": (0.000, 0.692, 0.708, 0.808, 0.836, 0.854, 0.860, 0.884, 0.905, 0.911),
        "mae": (0.227, 0.448, 0.533, 0.653, 0.710, 0.745, 0.762, 0.829, 0.884, 0.890, 0.916),
        "rmse": (0.099, 0.202, 0.269, 0.322, 0.356, 0.402, 0.412, 0.522, 0.582, 0.605, 0.740),
        "rmspe": (0.299, 0.471, 0.474, 0.588, 0.609, 0.640, 0.647, 0.764, 0.804, 0.846, 0.905),
        "rmsle": (0.577, 0.693, 0.728, 0.793, 0.796, 0.844, 0.865, 0.898, 0.915, 0.916),
        "gmape": (0.537, 0.723, 0.795, 0.840, 0.861, 0.878, 0.893, 0.913, 0.920, 0.921),
        "gm_ratio": (0.719, 0.787, 0.820, 0.871, 0.890, 0.905, 0.906, 0.922, 0.925, 0.927),
    },
}
IN_CLUSTERS: dict[str, tuple[float, ...]] = {
    "mape": (0.904, 0.917, 0.935, 0.932, 0.944, 0.929, 0.942, 0.957),
    "smape": (0.960, 0.966, 0.948, 0.965, 0.965, 0.954, 0.962, 0.966),
    "bias": (0.958, 0.960, 0.954, 0.956, 0.960, 0.958, 0.965, 0.955),
    "wape": (0.909, 0.951, 0.950, 0.953, 0.960, 0.953, 0.963, 0.965),
    "total_error": (0.956, 0.968, 0.967, 0.972, 0.968, 0.970, 0.973, 0.971),
    "mae": (0.927, 0.942, 0.957, 0.959, 0.956, 0.947, 0.956, 0.973),
    "rmse": (0.827, 0.828, 0.828, 0.821, 0.816, 0.808, 0.827, 0.851),
    "rmspe": (0.827, 0.828, 0.832, 0.823, 0.847, 0.860, 0.906, 0.924),
    "rmsle": (0.946, 0.960, 0.941, 0.956, 0.958, 0.948, 0.966, 0.973),
    "gmape": (0.933, 0.951, 0.932, 0.940, 0.936, 0.935, 0.927, 0.935),
    "gm_ratio": (0.942, 0.928, 0.921, 0.924, 0.930, 0.934, 0.937, 0.939),
    "share": (0.995, 0.986, 0.955, 0.952, 0.932, 0.932, 0.902, 0.912),
    "median_ape": (0.983, 0.991, 0.962, 0.952, 0.935, 0.947, 0.944, 0.954),
    "p90_ape": (0.000, 0.250, 0.586, 0.627, 0.768, 0.848, 0.898, 0.921),
}
#: Coverage of log-t under laws of rare or very heavy errors, which few pairs seldom show.
RARE: dict[str, tuple[float, ...]] = {
    "MAPE": (0.000, 0.714, 0.783, 0.828, 0.849, 0.915, 0.924, 0.923, 0.906, 0.941),
}
#: Shares: lowest exact coverage for true shares from 5 to 95 %.
WILSON = (0.828, 0.875, 0.892, 0.894, 0.894, 0.914, 0.917, 0.931, 0.927, 0.935)


class Sample(NamedTuple):
    """The units of an interval: outermost clusters, or pairs."""

    units: int
    clustered: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the simulated sample sizes."""
        return CLUSTER_SIZES if self.clustered else SIZES

    @property
    def word(self) -> str:
        """Return the word for the units."""
        return "clusters" if self.clustered else "pairs"


#: Means of squares, which rare errors dominate: if a few are ten times the others, or of Student t
#: with two degrees of freedom, intervals of RMSPE cover 43 to 57 % at 50 pairs, 55 to 79 % at 200.
NEVER = ("rmse", "rmspe")


def is_offered(name: str, row: tuple[float, ...], sample: Sample) -> bool:
    """Whether the interval covered at least 90 % at this size and at all larger ones."""
    if name in NEVER:
        return False
    start = _size_reaching(row, sample.sizes, OFFERED)
    return start is not None and sample.units >= start


def small_sample(label: str, row: tuple[float, ...], sample: Sample) -> tuple[Caveat, ...]:
    """Return the caveat of an interval from too few units for its nominal level.

    Parameters
    ----------
    label : str
        Name of the metric in tables.
    row : tuple of float
        Coverage of its interval at the simulated sizes; empty if it is exact.
    sample : Sample

    Returns
    -------
    tuple of Caveat
        Empty, or one with the code ``"few-configurations"`` or ``"few-clusters"``.
    """
    if not row:
        return ()
    evidence = _below_nominal(label, row, sample)
    by_log_t = not sample.clustered and row in COVERAGE["log-t"].values()
    rare = RARE.get(label, ()) if by_log_t else ()
    start = _size_reaching(rare, SIZES, OFFERED)
    if rare and (start is None or sample.units < start):
        at, share = _lowest_from(rare, sample)
        evidence["rare_coverage"] = share
        rest = "" if start is None else f" With {start} pairs or more, in about 90 % of samples."
        evidence["message"] += (
            " If one run in five fails, or a few errors are ten times as large as the others, "
            f"intervals of {label} contain the true value in as few as {100 * share:.0f} % of "
            f"samples of {at} pairs or more, because small samples often miss these errors.{rest}"
        )
    if not evidence["message"]:
        return ()
    message = f"The interval is from {sample.units:,} {sample.word}.{evidence.pop('message')}"
    code = "few-clusters" if sample.clustered else "few-configurations"
    return (Caveat(code, message, evidence),)


def _below_nominal(label: str, row: tuple[float, ...], sample: Sample) -> dict[str, Any]:
    """Give the coverage of the interval under log-normal laws, if it is less than nominal."""
    start = _size_reaching(row, sample.sizes, NOMINAL)
    at, share = _lowest_from(row, sample)
    evidence: dict[str, Any] = {"message": "", "n": sample.units, "simulated_n": at}
    evidence |= {"coverage": share, "nominal_from": start}
    if start is not None and sample.units >= start:
        return evidence
    rest = (
        f"no tested number of {sample.word}, up to {sample.sizes[: len(row)][-1]:,}, reaches "
        f"{100 * NOMINAL:.0f} % coverage"
        if start is None
        else f"with {start} {sample.word} or more, in about {100 * NOMINAL:.0f} %"
    )
    evidence["message"] = (
        f" In simulations, nominal 95 % intervals of {label} contain the true value in as few as "
        f"{100 * share:.0f} % of samples of {at} {sample.word} or more; {rest}."
    )
    return evidence


def _lowest_from(row: tuple[float, ...], sample: Sample) -> tuple[int, float]:
    """Return the largest simulated size up to this one, and the lowest coverage from there."""
    sizes = sample.sizes[: len(row)]
    at = max(bisect_right(sizes, sample.units) - 1, 0)
    return sizes[at], min(row[at:])


def _size_reaching(row: tuple[float, ...], sizes: tuple[int, ...], target: float) -> int | None:
    """Return the smallest size from which the coverage stays at the target, if any."""
    start = None
    for size, coverage in zip(sizes, row, strict=False):
        if coverage < target - _NOISE:
            start = None
        elif start is None:
            start = size
    return start
