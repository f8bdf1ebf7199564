"""Rows of kernels with the run of each: sums, floors, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats, Task
from errcomp.errors import InputError, describe_names
from errcomp.tables import Kernels

__all__ = ["FLOOR_AT_MOST", "Parts", "elements", "is_matmul"]

#: No launch takes longer; a run without small kernels shows no floor of its own. Seconds.
FLOOR_AT_MOST = 20e-6
_FLOOR_QUANTILE = 0.1
#: Loops of compilers are named after all that they fuse.
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
                f"{_prefix(kernels)}all kernels of {_runs(empty)} take no time: there is nothing "
                "to compose. Leave the run out, or give its kernels' times."
            )
        instances: Floats = np.bincount(run, count, len(first)).astype(np.float64)
        return cls(run, first, count, given, total, instances)

    def sums(self, values: NDArray[Any]) -> Floats:
        """Add up over the rows of each run."""
        found: Floats = np.bincount(self.run, values, len(self.first)).astype(np.float64)
        return found

    def complete(self, times: Floats) -> NDArray[np.bool_]:
        """Return the runs whose kernels all have such a time."""
        return np.equal(self.sums(np.isnan(times)), 0)

    def floors(self, measured: Floats, second: float) -> Floats:
        """Return the launch floor of each run: a quantile over instances, capped."""
        order = np.lexsort((measured, self.run))
        before = np.cumsum(self.count[order])
        starts = np.concatenate([[0.0], np.cumsum(self.instances)[:-1]])
        # The first row, by time, at which the tenth of the run's instances is reached.
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
    """Tell which kernels are bound by arithmetic: matrix products and convolutions."""
    known = {name: bool(_MATMUL.search(name)) for name in set(kernels.kernel_class.tolist())}
    return np.asarray([known[name] for name in kernels.kernel_class], dtype=bool)


def elements(kernels: Kernels) -> Floats:
    """Elements of each kernel's output, from a key ``shape`` such as 8x512x1024; NaN elsewhere."""
    if "shape" not in kernels.keys:
        return np.full(kernels.n, np.nan)
    shapes = kernels.column("shape").astype(str)
    known = {text: _product(text) for text in set(shapes.tolist())}
    return np.asarray([known[text] for text in shapes], dtype=np.float64)


def _product(shape: str) -> float:
    """Multiply the dimensions of a shape."""
    sizes = shape.split("x")
    return float(np.prod([float(s) for s in sizes])) if all(map(str.isdecimal, sizes)) else np.nan


def _insist(
    kernels: Kernels,
    times: Floats,
    task: Task,
    run: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    """Refuse kernels without the time that the task adds up, and failed ones."""
    word = "measured" if task == "composition" else "predicted"
    lacking = kernels.run[first[np.unique(run[np.isnan(times)])]].tolist()
    if lacking:
        raise InputError(
            f"{_prefix(kernels)}{_runs(lacking)} {'has' if len(lacking) == 1 else 'have'} kernels "
            f"that were not {word}, so the sum of kernels is unknown. Leave them out, or choose "
            f"the other task (composition adds measured kernels, prediction predicted ones)."
        )
    if kernels.incomplete:
        raise InputError(
            f"{_prefix(kernels)}the prediction of a kernel failed in "
            f"{_runs(list(kernels.incomplete))}: their sums are too small. Leave them out."
        )


def _runs(names: list[str]) -> str:
    return f"run{'s' if len(names) > 1 else ''} {describe_names(names)}"


def _prefix(kernels: Kernels) -> str:
    return f"{kernels.source}: " if kernels.source else ""
