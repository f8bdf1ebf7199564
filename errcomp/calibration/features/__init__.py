r"""Features of a run, computed from its kernels alone.

The launch floor of a run is the 10 % quantile of the times of its kernels' instances, at most
20 µs. A kernel measured on its own cannot take less: the floor is the cost of launching or
profiling it. A run without small kernels shows no floor; if its device was in the fit, it gets that
of the lowest tenth of the device's runs. In a run launches hide behind the work before them, and
the run itself costs a few launches, so that

.. math:: e_r \approx \sum_k c_k \, (m_k - \kappa f_r) + s f_r

with floor f, κ near 1 and s learnt from the fit. Features have no unit or their own (µs, GB), so
they do not depend on the unit of the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Design, Floats, Names, Task
from errcomp.calibration.features.state import FLOOR_AT_MOST, FeatureState
from errcomp.datasets.devices import figures_of
from errcomp.errors import InputError, describe_names
from errcomp.results import Written
from errcomp.tables import Kernels
from errcomp.tables.units import seconds_in

_FLOOR_QUANTILE = 0.1
#: Compilers name a loop after all operators that they fuse into it.
_MATMUL = re.compile(
    r"^(?!cpp_fused|triton_(?:poi|red|per)).*(?:linear|gemm|matmul|addmm|conv|dense|(?:^|::)b?mm$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Rows of kernels with the run of each, and sums over the rows of a run."""

    run: NDArray[np.int64]
    first: NDArray[np.int64]
    count: Floats
    times: Floats
    total: Floats
    instances: Floats

    @classmethod
    def of(cls, kernels: Kernels, task: Task) -> Parts:
        """Collect the kernels of a table, in the task's columns."""
        run = kernels.codes("run")
        first = np.unique(run, return_index=True)[1]
        given = kernels.measured if task == "composition" else kernels.predicted
        _insist(kernels, given, task, run, first)
        count = kernels.count.astype(np.float64)
        total: Floats = np.bincount(run, count * given, len(first)).astype(np.float64)
        if not (total > 0).all():
            empty = kernels.run[first[total <= 0]].tolist()
            raise InputError(
                f"{kernels.prefix}all kernels of {_runs(empty)} take no time, so their sum is 0. "
                "Drop these runs, or add the times of their kernels."
            )
        instances: Floats = np.bincount(run, count, len(first)).astype(np.float64)
        return cls(run, first, count, given, total, instances)

    def sums(self, values: NDArray[Any]) -> Floats:
        """Add up over the rows of each run."""
        return np.bincount(self.run, values, len(self.first)).astype(np.float64)

    def complete(self, times: Floats) -> NDArray[np.bool_]:
        """Return the runs whose kernels all have a time."""
        return np.equal(self.sums(np.isnan(times)), 0)

    def floors(self, measured: Floats, second: float) -> Floats:
        """Return the launch floor of each run: a quantile over instances, capped."""
        order = np.lexsort((measured, self.run))
        before = np.cumsum(self.count[order])
        starts = np.concatenate([[0.0], np.cumsum(self.instances)[:-1]])
        # The first row, by time, with a tenth of the run's instances up to it.
        wanted = starts + _FLOOR_QUANTILE * self.instances
        return np.fmin(measured[order][np.searchsorted(before, wanted)], FLOOR_AT_MOST / second)

    def slowness(self, kernels: Kernels) -> Floats:
        """Log-ratio of measured to predicted time in matrix products; NaN where unknown."""
        matmul = is_matmul(kernels)
        measured = self.sums(np.where(matmul, self.count * kernels.measured, 0.0))
        predicted = self.sums(np.where(matmul, self.count * kernels.predicted, 0.0))
        known = (measured > 0) & (predicted > 0)
        return np.log(np.where(known, measured, np.nan) / np.where(known, predicted, 1.0))


def is_matmul(kernels: Kernels) -> NDArray[np.bool_]:
    """Return which kernels are bound by arithmetic: matrix products and convolutions."""
    known = {name: bool(_MATMUL.search(name)) for name in set(kernels.kernel_class.tolist())}
    return np.asarray([known[name] for name in kernels.kernel_class], dtype=bool)


def outputs_kept(kernels: Kernels) -> Floats:
    """Elements of each kernel's output, from a key ``shape`` such as 8x512x1024; NaN elsewhere.

    0 in later phases of a training step: they use up what the forward phase left behind.
    """
    if "shape" not in kernels.keys:
        return np.full(kernels.n, np.nan)
    shapes = kernels.column("shape").astype(str)
    known = {text: _product(text) for text in set(shapes.tolist())}
    kept = np.asarray([known[text] for text in shapes], dtype=np.float64)
    if "phase" in kernels.keys:
        kept[np.isin(kernels.column("phase").astype(str), _LATER)] = 0.0
    return kept


def _product(shape: str) -> float:
    """Multiply the dimensions of a shape."""
    sizes = shape.split("x")
    return float(np.prod([float(s) for s in sizes])) if all(map(str.isdecimal, sizes)) else np.nan


def _insist(
    kernels: Kernels, times: Floats, task: Task, run: NDArray[np.int64], first: NDArray[np.int64]
) -> None:
    """Refuse kernels without the time that the task adds up, and failed kernels."""
    word = "measured" if task == "composition" else "predicted"
    lacking = kernels.run[first[np.unique(run[np.isnan(times)])]].tolist()
    if lacking:
        raise InputError(
            f"{kernels.prefix}{_runs(lacking)} {'has' if len(lacking) == 1 else 'have'} kernels "
            f"that were not {word}, so the sum of kernels is unknown. Drop these runs, or choose "
            "the other task: composition adds up measured kernel times, prediction adds up "
            "predicted kernel times."
        )
    if kernels.incomplete:
        raise InputError(
            f"{kernels.prefix}the prediction of a kernel failed in "
            f"{_runs(list(kernels.incomplete))}, so the sum of kernels is too small. "
            "Drop these runs."
        )


def _runs(names: list[str]) -> str:
    return f"run{'s' if len(names) > 1 else ''} {describe_names(names)}"


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of `Design.x`: its name, its unit and what it is."""

    name: str
    unit: str
    meaning: str

    def said(self, value: float) -> str:
        """Write a value as text; a logarithm is converted back to its unit.

        Examples
        --------
        >>> Feature("total_ms", "log10 ms", "").said(3.0), Feature("training", "1", "").said(1.0)
        ('1e+03 ms', '1')
        """
        parts, _ = self.written(value)
        return parts.text

    def written(self, value: float) -> tuple[Written, float]:
        """Return the parts of the text of `said`, and its number."""
        unit = self.unit.removeprefix("log10 ")
        number = value if unit == self.unit else 10**value
        return Written(f"{number:.3g}", "" if unit == "1" else f" {unit}"), number


#: Launching kernels, as a share of the run's kernels.
KERNEL_LAUNCHES = ("launch_idle", "launch_work", "launch_work_training")
#: Costs in the physical model, with that of the run itself.
LAUNCHES = (*KERNEL_LAUNCHES, "run_start")

#: Features of a run, in the order of the columns.
FEATURES = (
    Feature(
        "launch_idle",
        "1",
        "launch floor × number of kernel executions at or near the launch floor / total",
    ),
    Feature(
        "launch_work",
        "1",
        "launch floor × number of kernel executions well above it / total; 0 in training",
    ),
    Feature(
        "launch_work_training",
        "1",
        "launch floor × number of kernel executions well above it / total; 0 in inference",
    ),
    Feature("run_start", "1", "minus launch floor / total; stands for the start of a run"),
    Feature(
        "slow_kernels",
        "ln",
        "(total with implausibly slow matrix products at their usual speed) / total; 0 if the task "
        "is prediction",
    ),
    Feature(
        "hidden_launches",
        "ln",
        "(ratio of slow_kernels) × (max(0.2, 1 − launch floor × number of kernel executions / "
        "total) + cost of starting the run / total); 0 if the task is prediction",
    ),
    Feature("training", "1", "1 in training, 0 in inference or where the mode is unknown"),
    Feature("total_ms", "log10 ms", "sum of all kernel times"),
    Feature("mean_kernel_us", "log10 µs", "total / number of kernel executions"),
    Feature("matmul_share", "1", "time in matrix products and convolutions / total"),
    Feature("largest_share", "1", "largest time of one kernel, over all its executions / total"),
    Feature(
        "idle_share",
        "1",
        "share of the kernel executions that are at or near the launch floor",
    ),
    Feature("unmodelled_share", "1", "share of the kernel executions that are predicted as 0"),
    Feature(
        "activations_gb",
        "log10 GB",
        "size of the outputs of forward kernels well above the launch floor, at 4 bytes per value",
    ),
    Feature("memory_share", "1", "activations_gb / memory of the device; 0 in inference"),
    Feature(
        "disagreement",
        "ln",
        "predicted total / measured total; unknown if the task is prediction",
    ),
    Feature("kernel_correction", "ln", "corrected total / predicted total; 0 without corrections"),
    Feature("device_bandwidth", "log10 GB/s", "memory bandwidth, from the data sheet"),
    Feature("device_peak", "log10 TFLOP/s", "peak for 32-bit floats, from the data sheet"),
    Feature(
        "launch_matmul",
        "1",
        "launch floor × number of executions of matrix products well above it / total",
    ),
    Feature(
        "host_inference",
        "1/µs",
        "number of kernel executions / total; 0 in training, and where a graph launches them",
    ),
    Feature(
        "host_training",
        "1/µs",
        "number of kernel executions / total; 0 in inference, and where a graph launches them",
    ),
    Feature("host_start", "1/µs", "1 / total; 0 where a graph launches the kernels"),
)

#: Of the columns of a design.
FEATURE_NAMES = tuple(feature.name for feature in FEATURES)
#: What a host that issues the launches needs, per µs of a launch (or of the start of a run).
HOST = ("host_inference", "host_training", "host_start")
#: Columns that only the physical model reads, and that models of earlier versions lack.
PHYSICAL = ("launch_matmul", *HOST)
USUAL = tuple(name for name in FEATURE_NAMES if name not in PHYSICAL)

#: Usual cost of a GPU launch, for kernels that were not measured. Seconds.
_FLOOR_NOMINAL = 7e-6
#: An instance shorter than this number of floors does next to no work.
_IDLE_BELOW = 1.8
#: A class is disturbed (clocks, other work) if its slowness against the prediction is this number
#: of robust standard deviations above that in other runs: the usual three-sigma rule, upwards only,
#: because nothing runs faster than the hardware.
SLOW_FROM = 3.0
RUNS_TO_JUDGE = 8
_TRAINING = ("training", "train")
#: Phases of training after the forward phase.
_LATER = ("backward", "optimizer")
#: Quantile of the floors of a device's runs: runs without small kernels have too high a floor.
_LOWEST = 0.1
#: Largest share of a run's time that launches can hide; predictions may not contain launches.
_MOST_HIDDEN = 0.8
#: Prior of the start of a run, in floors: from 0 to 0.2 ms at 10 µs each, usually a few. It matters
#: where runs are too long to show their start. Runs scatter by 3 % (ln).
_STARTS = np.linspace(0.0, 20.0, 201)
_START_SCALE = 3.0
_ERROR = 0.03


def fit_features(kernels: Kernels, *, task: Task) -> FeatureState:
    """Learn the state of the features from the runs of the fit.

    Raises
    ------
    InputError
        The task needs measured (composition) or predicted kernels (prediction) that are missing;
        or the unit is missing or not a unit of time.
    """
    second = seconds_in(kernels.unit, source=kernels.source)
    parts = Parts.of(kernels, task)
    floor = _FLOOR_NOMINAL
    floors: dict[str, float] = {}
    complete = parts.complete(kernels.measured)
    if complete.any():
        seen = parts.floors(kernels.measured, second) * second
        # Timers that are too coarse measure 0, which is not a floor.
        complete &= seen > 0
        device = names_per_run(kernels, "device")[complete]
        seen = seen[complete]
        floor = float(np.median(seen)) if len(seen) else floor
        floors = {
            name: float(np.quantile(seen[device == name], _LOWEST)) for name in sorted(set(device))
        }
    center = scale = None
    excess = parts.slowness(kernels)
    known = excess[np.isfinite(excess)]
    if len(known) >= RUNS_TO_JUDGE:
        center = float(np.median(known))
        scale = float(1.4826 * np.median(np.abs(known - center)))
        if scale == 0:
            center = scale = None
    state = FeatureState(task, floor, center, scale, floors=floors)
    if task == "composition":
        state = replace(state, start=_startup(design(kernels, task=task, state=state)))
    return state


def _startup(runs: Design) -> float:
    """Return the most likely start of a run, in floors, shrunken to 0.

    With fewer than 8 runs it is 0.
    """
    y = runs.log_ratio
    known = np.isfinite(y)
    if known.sum() < RUNS_TO_JUDGE:
        return 0.0
    slow, hidden, start = (
        runs.x[known, runs.names.index(name)]
        for name in ("slow_kernels", "hidden_launches", "run_start")
    )
    left = np.exp(hidden - slow)[:, None] - start[:, None] * _STARTS
    error = np.abs(y[known, None] - slow[:, None] - np.log(left))
    loss = error.sum(axis=0) / _ERROR + 0.5 * (_STARTS / _START_SCALE) ** 2
    return float(_STARTS[np.argmin(loss)])


def disturbed(kernels: Kernels, state: FeatureState) -> NDArray[np.bool_]:
    """Return the runs with implausibly slow measured kernels; see the feature slow_kernels.

    Returns
    -------
    ndarray of bool, shape (runs,)
        In the order of ``kernels.runs``; False where unknown.
    """
    return slowness_beyond(Parts.of(kernels, state.task), kernels, state) > 0


def slowness_beyond(parts: Parts, kernels: Kernels, state: FeatureState) -> Floats:
    """Return the slowness (ln) of implausibly slow matrix products of each run; 0 elsewhere."""
    if state.slow_center is None or not state.slow_scale:
        return np.zeros(len(parts.first))
    excess = parts.slowness(kernels) - state.slow_center
    return np.where(excess > SLOW_FROM * state.slow_scale, excess, 0.0)


def design(kernels: Kernels, *, task: Task, state: FeatureState | None = None) -> Design:
    """Compute the features of each run from its kernels.

    Parameters
    ----------
    kernels : Kernels
        With ``measured`` (task composition) or ``predicted`` (task prediction) of every kernel.
    task : {"composition", "prediction"}
    state : FeatureState, optional
        From the runs of the fit; by default from these kernels.

    Returns
    -------
    Design
        One row per run, in the order of ``kernels.runs``; columns are `FEATURES`. NaN where a
        feature is unknown: no shapes, no device figures, no second column of times.

    Raises
    ------
    InputError
        Kernels lack the time of the task, a run takes no time, or the unit is missing.

    Examples
    --------
    >>> kernels = Kernels(
    ...     {
    ...         "run": ["a", "a"],
    ...         "kernel": ["view", "matmul"],
    ...         "kernel_class": ["view", "matmul"],
    ...         "count": [50, 50],
    ...         "measured": [0.008, 0.072],
    ...         "run_measured": [3.4, 3.4],
    ...     },
    ...     unit="ms",
    ... )
    >>> runs = design(kernels, task="composition")
    >>> x = dict(zip(runs.names, runs.x[0].round(3).tolist()))
    >>> runs.total.round(6).tolist(), x["matmul_share"]
    ([4.0], 0.9)
    >>> x["launch_work"]  # 50 × 8 µs of 4 ms
    0.1
    """
    second = seconds_in(kernels.unit, source=kernels.source)
    _insist_one_model(kernels)
    state = state or fit_features(kernels, task=task)
    parts = Parts.of(kernels, task)
    n = len(parts.first)
    if task == "composition":
        device = names_per_run(kernels, "device")
        own = parts.floors(parts.times, second)
        own = np.where(own > 0, own, state.floor / second)
        of_device = np.array([state.floors.get(name, np.inf) for name in device]) / second
        floor = np.minimum(own, of_device)
        idle = parts.times < _IDLE_BELOW * floor[parts.run]
    else:
        floor = np.full(n, state.floor / second)
        idle = parts.times < (_IDLE_BELOW - 1) * floor[parts.run]
    keys = {name: names_per_run(kernels, name) for name in ("device", "model", "mode")}
    training = np.isin(keys["mode"], _TRAINING)
    columns = _columns(kernels, parts, idle, floor, training, state)
    columns |= _of_host(kernels, parts.instances, parts.total * second * 1e6, training)
    columns |= _of_device(keys["device"], columns["activations_gb"], training)
    columns["total_ms"] = np.log10(parts.total * second * 1e3)
    columns["mean_kernel_us"] = np.log10(parts.total * second * 1e6 / parts.instances)
    return Design(
        run=kernels.run[parts.first],
        total=parts.total,
        measured=kernels.run_measured[parts.first],
        x=np.column_stack([columns[name] for name in FEATURE_NAMES]).astype(np.float64),
        names=FEATURE_NAMES,
        unit=kernels.unit,
        task=task,
        **keys,
    )


def _insist_one_model(kernels: Kernels) -> None:
    """Refuse a run with several models: runs with the same name would be added up."""
    if "model" not in kernels.keys:
        return
    run, model = kernels.codes("run"), kernels.codes("model")
    first = np.unique(run, return_index=True)[1]
    mixed = kernels.run[first[np.unique(run[model != model[first][run]])]].tolist()
    if mixed:
        raise InputError(
            f"{kernels.prefix}{_runs(mixed)} {'has' if len(mixed) == 1 else 'have'} kernels of "
            "several models. Give each run its own name."
        )


def _columns(
    kernels: Kernels,
    parts: Parts,
    idle: NDArray[np.bool_],
    floor: Floats,
    training: NDArray[np.bool_],
    state: FeatureState,
) -> dict[str, Floats]:
    """Compute the features that need only the kernels."""
    weight = parts.count * parts.times
    idle_count = parts.sums(parts.count * idle)
    start = floor / parts.total
    work = floor * (parts.instances - idle_count) / parts.total
    launches = floor * parts.instances / parts.total
    matmul_share = parts.sums(weight * is_matmul(kernels)) / parts.total
    slow = hidden = np.zeros(len(floor))
    disagreement = np.full(len(floor), np.nan)
    # A prediction must not see measured kernels.
    if state.task == "composition":
        excess = slowness_beyond(parts, kernels, state)
        slow = np.log1p(matmul_share * np.expm1(-excess)) + 0.0  # no -0.0
        hidden = slow + np.log1p(state.start * start - np.minimum(launches, _MOST_HIDDEN))
        predicted = parts.sums(parts.count * kernels.predicted)
        disagreement = np.log(np.where(predicted > 0, predicted, np.nan) / parts.total)
    largest = np.zeros(len(floor))
    np.maximum.at(largest, parts.run, weight)
    outputs = parts.sums(np.where(idle, 0.0, parts.count * outputs_kept(kernels)))
    unknown = np.where(np.isnan(kernels.predicted), np.nan, 0.0)
    unmodelled = parts.sums(parts.count * np.where(kernels.predicted == 0, 1.0, unknown))
    return {
        "launch_idle": floor * idle_count / parts.total,
        "launch_work": np.where(training, 0.0, work),
        "launch_work_training": np.where(training, work, 0.0),
        "run_start": -start,
        "slow_kernels": slow,
        "hidden_launches": hidden,
        "kernel_correction": np.zeros(len(floor)),
        "training": training.astype(np.float64),
        "matmul_share": matmul_share,
        "largest_share": largest / parts.total,
        "idle_share": idle_count / parts.instances,
        "unmodelled_share": unmodelled / parts.instances,
        "launch_matmul": floor
        * parts.sums(parts.count * (is_matmul(kernels) & ~idle))
        / parts.total,
        "activations_gb": np.log10(4e-9 * np.where(outputs > 0, outputs, np.nan)),
        "disagreement": disagreement,
    }


def _of_host(
    kernels: Kernels, instances: Floats, total_us: Floats, training: NDArray[np.bool_]
) -> dict[str, Floats]:
    """Features of the host, which issues every launch unless a graph was captured before."""
    variant = names_per_run(kernels, "variant")
    issues = np.asarray(["graph" not in name.lower() for name in variant], dtype=np.float64)
    launches = issues * instances / total_us
    return {
        "host_inference": np.where(training, 0.0, launches),
        "host_training": np.where(training, launches, 0.0),
        "host_start": issues / total_us,
    }


def _of_device(
    device: NDArray[Any], activations: Floats, training: NDArray[np.bool_]
) -> dict[str, Floats]:
    """Features that need the data sheet; NaN for an unknown device."""
    sheets = {name: figures_of(name) for name in set(device.tolist())}

    def column(figure: str) -> Floats:
        # A run uses one device of its card.
        share = {
            name: np.nan if sheet is None else getattr(sheet, figure) / sheet.dies
            for name, sheet in sheets.items()
        }
        return np.asarray([share[name] for name in device], dtype=np.float64)

    return {
        # Inference frees an output right after its use.
        "memory_share": np.where(training, 10**activations / column("memory"), 0.0),
        "device_bandwidth": np.log10(column("bandwidth")),
        "device_peak": np.log10(column("peak")),
    }


def names_per_run(kernels: Kernels, name: str) -> Names:
    """Return a key of each run; "" where it is missing, or where its kernels differ."""
    names = np.full(kernels.n_runs, "", dtype=object)
    if name in kernels.keys:
        names[:] = ["" if value is None else str(value) for value in kernels.per_run(name)]
    return names
