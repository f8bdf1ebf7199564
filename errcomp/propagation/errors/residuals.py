"""Kernels prepared for the error model: ratios of measured to predicted, weights and groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError, describe_names
from errcomp.propagation.terms import Floats, Integers, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.tables import Kernels

#: Label of kernels that the predictor does not model: predicted as 0, or too short to measure.
NOT_MODELLED = "(not modelled)"
#: Levels of kernels in a run, from coarse to fine: the run, the class, the same kernel, the row.
LEVELS = ("run", "class", "kernel", "row")
#: The smallest kernels below the floor are unmodelled, up to this share of the run.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rows of a table of kernels; unmodelled ones get a share of their run.

    ``value`` of an unmodelled kernel is the run's modelled time, divided by the number of
    unmodelled instances. So the error model can express "they take 3 % of it".
    """

    below: NDArray[np.bool_]
    labels: NDArray[np.str_]
    value: Floats
    run: Integers
    modelled: Floats


@dataclass(frozen=True, slots=True)
class Residuals:
    """Observed errors that add up to the error of each run's total.

    Attributes
    ----------
    y : ndarray, shape (n,)
        measured / predicted (measured − predicted for absolute errors).
    weight : ndarray, shape (n,)
        Share of the run's predicted time (of its instances for absolute errors).
    label, cluster, run, kernel, name : ndarray of int, shape (n,)
        Class, independent unit (device, or run if there is one device), run, number of the kernel
        (equal if the predictor cannot distinguish them), and name of the kernel.
    size : ndarray, shape (n,)
        Predicted time of one instance; NaN for unmodelled kernels.
    labels, clusters : ndarray of str
        Names of the classes and of the clusters.
    """

    y: Floats
    weight: Floats
    label: Integers
    cluster: Integers
    run: Integers
    kernel: Integers
    name: Integers
    size: Floats
    labels: NDArray[np.str_]
    clusters: NDArray[np.str_]

    def groups(self) -> list[Integers]:
        """Return the groups of each row at the `LEVELS`, each within the one before.

        Rows with the same name and the same prediction are one row: a kernel that is listed twice
        has the same error as one with twice the count.
        """
        by_run = combine(self.run, self.cluster)
        by_class = combine(by_run, self.label)
        by_kernel = combine(by_class, self.kernel)
        return [by_run, by_class, by_kernel, combine(by_kernel, self.name)]

    def take(self, mask: NDArray[np.bool_]) -> Residuals:
        """Return the rows under the mask, with new numbers."""

        def renumbered(codes: Integers) -> tuple[Integers, Integers]:
            old, new = np.unique(codes[mask], return_inverse=True)
            return old, new.astype(np.int64)

        labels, label = renumbered(self.label)
        clusters, cluster = renumbered(self.cluster)
        return Residuals(
            y=self.y[mask],
            weight=self.weight[mask],
            label=label,
            cluster=cluster,
            **{key: renumbered(getattr(self, key))[1] for key in ("run", "kernel", "name")},
            size=self.size[mask],
            labels=self.labels[labels],
            clusters=self.clusters[clusters],
        )


def combine(*columns: NDArray[np.generic]) -> Integers:
    """Return numbers from 0 for the combinations of the columns' values, shape (n,)."""
    out = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = np.unique(column, return_inverse=True)[1]
        out = out * (int(codes.max(initial=0)) + 1) + codes
        out = np.unique(out, return_inverse=True)[1].astype(np.int64)
    return out


def by_run(kernels: Kernels) -> Iterator[Kernels]:
    """Yield the kernels of each run, in the order of the runs."""
    run = kernels.codes("run")
    ends = np.cumsum(np.bincount(run))[:-1]
    for rows in np.split(np.argsort(run, kind="stable"), ends):
        yield kernels.take(rows)


def same_kernel(kernels: Kernels) -> Integers:
    """Return a number per kernel, equal if a deterministic predictor cannot distinguish them.

    Same class, same shape where the table has one, and the same prediction to the last digit.
    """
    columns: list[NDArray[np.generic]] = [kernels.kernel_class, kernels.predicted]
    if "shape" in kernels.keys:
        columns.append(np.asarray(kernels.column("shape"), dtype=str))
    return combine(*columns)


def prepare(kernels: Kernels, floor: float) -> Prepared:
    """Find unmodelled kernels: predicted as 0, or below the floor and negligible.

    Raises
    ------
    InputError
        A prediction is missing, no kernel of a run is predicted above 0, or a class has the
        reserved name of unmodelled kernels.
    """
    all_predicted(kernels)
    if (kernels.kernel_class == NOT_MODELLED).any():
        raise InputError(
            f"{kernels.prefix}a kernel class is named {NOT_MODELLED!r}, which is reserved for "
            "kernels that are predicted to take no time. Rename it."
        )
    names, run = np.unique(kernels.run, return_inverse=True)
    time = kernels.count * kernels.predicted
    total = np.bincount(run, time)
    if (total <= 0).any():
        empty = [str(name) for name in names[total <= 0]]
        raise InputError(
            f"{kernels.prefix}all kernels are predicted to take no time in "
            f"{'run' if len(empty) == 1 else 'runs'} {describe_names(empty)}, so there is no time "
            "to scale errors by. Drop these runs."
        )
    below = (kernels.predicted < floor) & (
        _rising_share(kernels, run, time / total[run]) <= _NEGLIGIBLE
    )
    below |= kernels.predicted <= 0
    modelled: Floats = np.bincount(run, time * ~below).astype(float)
    instances = np.bincount(run, kernels.count * below)
    even = modelled / np.maximum(instances, 1)
    return Prepared(
        below=below,
        labels=np.where(below, NOT_MODELLED, kernels.kernel_class).astype(np.str_),
        value=np.where(below, even[run], kernels.predicted),
        run=run.astype(np.int64),
        modelled=modelled,
    )


def all_predicted(kernels: Kernels) -> None:
    """Refuse kernels without a prediction.

    Raises
    ------
    InputError
        A prediction is missing.
    """
    if not np.isfinite(kernels.predicted).all():
        raise InputError(
            f"{kernels.prefix}the kernels were measured but not predicted, so there are no errors "
            "to propagate. Join predictions and measurements (errcomp join PREDICTED MEASURED "
            "--on run,kernel -o kernels.csv), or predict the run from measured kernels (errcomp "
            "calibrate)."
        )


def _rising_share(kernels: Kernels, run: NDArray[np.int64], share: Floats) -> Floats:
    """Return the share of its run's time of each kernel and all that are not larger."""
    order = np.lexsort((kernels.predicted, run))
    rising = np.cumsum(share[order])
    starts = np.flatnonzero(np.diff(run[order], prepend=-1))
    before = np.concatenate([[0.0], rising])[starts]
    # Equal kernels are together, in any order and number of rows.
    size = kernels.predicted[order]
    last = np.flatnonzero(np.append((np.diff(run[order]) != 0) | (np.diff(size) != 0), True))
    end = last[np.searchsorted(last, np.arange(len(share)))]
    out = np.empty(len(share))
    out[order] = rising[end] - np.repeat(before, np.diff(np.append(starts, len(share))))
    return out


def residuals(kernels: Kernels, kind: Kind, floor: float) -> tuple[Residuals, str]:
    """Return the errors of all kernels of measured runs, and what the clusters are.

    Raises
    ------
    InputError
        No run has both a prediction and a measurement of all its kernels, or they are of several
        tools.
    """
    if len(kernels.tools) > 1:
        raise InputError(
            f"{kernels.prefix}kernels come from several tools ({describe_names(kernels.tools)}), "
            "but an error model is for one tool. Choose one with of_tool(...) (--tool)."
        )
    complete = _complete(kernels)
    if not complete.any():
        all_predicted(kernels)
        raise InputError(
            f"{kernels.prefix}no run has predictions and measurements of all its kernels: an error "
            "model cannot be fitted. Add such runs, or give the errors (--errors, --spread)."
        )
    used = kernels if complete.all() else kernels.take(complete)
    devices = np.unique(used.device)
    word = "device" if len(devices) > 1 else "run"
    clusters, cluster = np.unique(
        used.device if word == "device" else used.run, return_inverse=True
    )
    parts = prepare(used, 0.0 if kind == "absolute" else floor)
    labels = used.kernel_class.astype(np.str_) if kind == "absolute" else parts.labels
    time = used.count * used.measured
    if kind == "absolute":
        instances = np.bincount(parts.run, used.count)
        y, weight = used.measured - used.predicted, used.count / instances[parts.run]
        rows = np.arange(len(y))
    else:
        # Unmodelled kernels of a run count as one kernel: only their total is known.
        first = np.flatnonzero(parts.below)
        first = first[np.unique(parts.run[first], return_index=True)[1]]
        rows = np.sort(np.concatenate([np.flatnonzero(~parts.below), first]))
        unmodelled = np.bincount(parts.run, time * parts.below, minlength=len(parts.modelled))
        collapsed = parts.below[rows]
        y = np.where(
            collapsed,
            (unmodelled / parts.modelled)[parts.run[rows]],
            used.measured[rows] / np.where(collapsed, 1.0, used.predicted[rows]),
        )
        share = used.count * used.predicted / parts.modelled[parts.run]
        weight = np.where(collapsed, 1.0, share[rows])
    names, label = np.unique(labels[rows], return_inverse=True)
    kernel = np.where(parts.below[rows] & (kind != "absolute"), -1, same_kernel(used)[rows])
    observed = Residuals(
        y=y,
        weight=weight,
        label=label.astype(np.int64),
        cluster=cluster[rows].astype(np.int64),
        run=parts.run[rows],
        kernel=combine(kernel),
        name=combine(np.where(parts.below[rows] & (kind != "absolute"), "", used.kernel[rows])),
        size=np.where(kernel == -1, np.nan, used.predicted[rows]),
        labels=names.astype(np.str_),
        clusters=clusters.astype(np.str_),
    )
    return observed, word


def _complete(kernels: Kernels) -> NDArray[np.bool_]:
    """Return the kernels of runs whose kernels are all predicted and measured."""
    run = kernels.codes("run")
    names = kernels.runs
    failed = set(kernels.incomplete)
    lacking = np.asarray([name in failed for name in names], dtype=bool)
    lacking[run[~(np.isfinite(kernels.predicted) & np.isfinite(kernels.measured))]] = True
    return np.asarray(~lacking[run])
