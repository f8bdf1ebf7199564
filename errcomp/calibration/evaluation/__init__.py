"""Held-out evaluation: how well a fit predicts models, devices and vendors that it has not seen.

Everything is nested. For each held-out group the whole fit is repeated without it, tuning and
calibration included. The fit then predicts the group's runs without seeing their measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as field_
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from errcomp.calibration.design import TASKS, Design, Names, Task
from errcomp.calibration.estimators import BASELINES
from errcomp.calibration.evaluation.held_out import (
    Difference,
    HeldOut,
    Make,
    Predict,
    Refused,
    VendorTransfer,
    difference,
    held_out,
    judged_runs,
    known_of,
    vendor_transfers,
)
from errcomp.calibration.evaluation.judging import (
    BandRow,
    EvaluationRow,
    GroupRow,
    JudgedRuns,
    RunError,
    judge,
)
from errcomp.calibration.evaluation.splits import Split, SplitName, check_split, split
from errcomp.calibration.plausibility import flagged_of
from errcomp.calibration.preparing import runs_at
from errcomp.codec import Count, Document, Field, Part, closed, if_known, key, shape_of
from errcomp.codec import Names as Schemas
from errcomp.errors import InputError
from errcomp.report.shown import Shown
from errcomp.system.processes import Progress, Steps
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_in_memory

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = [
    "BandRow",
    "Difference",
    "Evaluation",
    "EvaluationRow",
    "GroupRow",
    "HeldOut",
    "Make",
    "Predict",
    "Refused",
    "RunError",
    "VendorTransfer",
    "evaluate",
]

_RANDOM, _VENDOR, _DEVICE = "random", "leave-vendor-out", "leave-device-out"
_FOLDS = 10


class _Baselines(Part):
    """All comparisons with baselines in one list, from which each row takes its own."""

    def write(self, result: Evaluation) -> Mapping[str, Any]:
        differences = [one.to_dict() for row in result.rows for one in row.against]
        return {"against_baselines": differences}

    def read(self, field: Field) -> Mapping[str, Any]:
        return {}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        return {"against_baselines": shape_of(tuple[Difference, ...]).schema(names)}


class _Rows(Part):
    """The rows of all runs, then those without the flagged runs."""

    def write(self, result: Evaluation) -> Mapping[str, Any]:
        return {"rows": [row.to_dict() for row in (*result.rows, *result.not_flagged)]}

    def read(self, field: Field) -> Mapping[str, Any]:
        every = shape_of(tuple[EvaluationRow, ...]).read(field.at("rows"))
        rest = tuple(row for row in every if row.runs_judged == "not flagged")
        return {"rows": tuple(row for row in every if row not in rest), "not_flagged": rest}

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        return {"rows": shape_of(tuple[EvaluationRow, ...]).schema(names)}


class _Predictions(Part):
    """For each split, the predictions of the estimator with the lowest error."""

    def write(self, result: Evaluation) -> Mapping[str, Any]:
        best = [
            {"split": split, "estimator": name, **result.held_out[split, name].to_dict()}
            for split, name in result.best()
            if (split, name) in result.held_out
        ]
        return {"held_out": best}

    def read(self, field: Field) -> Mapping[str, Any]:
        split, name = shape_of(SplitName), shape_of(str)
        return {
            "held_out": {
                (split.read(part.at("split")), name.read(part.at("estimator"))): (
                    HeldOut.from_field(part)
                )
                for part in field.at("held_out").items()
            }
        }

    def schema(self, names: Schemas) -> dict[str, dict[str, Any]]:
        runs = HeldOut.json_schema(names)["properties"]
        split = {"split": shape_of(SplitName).schema(names), "estimator": {"type": "string"}}
        return {"held_out": {"type": "array", "items": closed({**split, **runs})}}


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation(Shown, Document):
    """Held-out results of several estimators under several splits.

    Attributes
    ----------
    task : {"composition", "prediction"}
    unit : str or None
        Unit of the times in `held_out` and in `EvaluationRow.worst`.
    rows : tuple of EvaluationRow
        One per split and estimator.
    held_out : mapping of (split, estimator) to HeldOut
        The predictions of each run, for figures. A document has only those of the estimator with
        the lowest error in each split.
    flattery : tuple of Difference
        For each split by groups: its mean error minus that of random splits, on the same runs. A
        random split would have hidden this difference. Empty unless ``random`` is a split.
    transfer : tuple of VendorTransfer
        Per vendor; empty unless ``leave-vendor-out`` and ``leave-device-out`` are splits.
    refused : tuple of Refused
        Refused predictions, with the reason.
    not_judged : tuple of str
        Runs without a measurement, or without the time of all their kernels.
    not_done : mapping of str to str
        Splits without a row, with the reason: these runs do not allow it (e.g. there is only one
        device), or no estimator predicted.
    seed : int
    source : str
        Name of the table.
    flagged : mapping of str to str or None
        By run, firm evidence against it; see `errcomp.calibration.check_runs`. None in documents of
        earlier versions.
    not_flagged : tuple of EvaluationRow
        The rows of the other runs; empty where no run is flagged.
    known : mapping of str to str
        By run, anomalies of its kernels: too slow, many launches, or outputs beyond memory.
    """

    SCHEMA: ClassVar = "errcomp.calibration/1"
    COMMAND: ClassVar = "calibrate evaluate"
    KEYS: ClassVar = (
        *("source", "known", if_known("flagged"), "task", "unit", _Rows(), _Baselines()),
        "flattery",
        *(key("vendor_transfer", "transfer"), "refused", "not_judged", "not_done", "seed"),
        _Predictions(),
    )

    task: Task
    unit: str | None
    rows: tuple[EvaluationRow, ...]
    held_out: Mapping[tuple[str, str], HeldOut]
    flattery: tuple[Difference, ...]
    transfer: tuple[VendorTransfer, ...]
    refused: tuple[Refused, ...]
    not_judged: tuple[str, ...]
    not_done: Mapping[str, str]
    seed: Count
    source: str = ""
    known: Mapping[str, str] = field_(default_factory=dict)
    flagged: Mapping[str, str] | None = None
    not_flagged: tuple[EvaluationRow, ...] = ()

    def view(self) -> Report:
        """Return the report of the evaluation.

        Examples
        --------
        >>> found = Evaluation("composition", "ms", rows=(), held_out={}, flattery=(), transfer=(),
        ...                    refused=(), not_judged=(), seed=0, not_done={})
        >>> found.view().title
        'Held-out evaluation: composition of the table'
        """
        from errcomp.calibration.view.evaluation import evaluation_view

        return evaluation_view(self)

    def row(self, split: str, estimator: str) -> EvaluationRow:
        """Return the row of a split and an estimator.

        Raises
        ------
        InputError
            There is no such row; the message lists all rows.

        Examples
        --------
        >>> found = Evaluation("composition", "ms", rows=(), held_out={}, flattery=(), transfer=(),
        ...                    refused=(), not_judged=(), seed=0, not_done={})
        >>> found.row("random", "linear")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        errcomp.errors.InputError: no row for split 'random' and estimator 'linear'. Rows: ...
        """
        for row in self.rows:
            if (row.split, row.estimator) == (split, estimator):
                return row
        listed = ", ".join(f"{row.split} {row.estimator}" for row in self.rows)
        raise InputError(f"no row for split {split!r} and estimator {estimator!r}. Rows: {listed}")

    def best(self) -> list[tuple[str, str]]:
        """Return each split with its estimator of the lowest mean error (the first of equals).

        Examples
        --------
        >>> found = Evaluation("composition", "ms", rows=(), held_out={}, flattery=(), transfer=(),
        ...                    refused=(), not_judged=(), seed=0, not_done={})
        >>> found.best()  # no split
        []
        """
        best = []
        for name in dict.fromkeys(row.split for row in self.rows):
            rows = [row for row in self.rows if row.split == name]
            best.append((name, min(rows, key=lambda r: r.figures["mean_ape"].value).estimator))
        return best


def evaluate(
    make: Make,
    kernels: Kernels | Any,
    *,
    task: Task = "composition",
    estimators: Sequence[str] | None = None,
    splits: Sequence[str] = ("leave-model-out", "leave-device-out"),
    baselines: Sequence[str] = BASELINES,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    r"""Fit without each group, predict it, and evaluate errors, bands and abstention.

    For each group g of a split, with all tuning inside the fit:

    .. math:: \hat e_r = \mathrm{make}\big(\{r' : g(r') \ne g(r)\}\big)(\text{kernels of } r)

    Intervals are for a new group of the held-out kind, whose runs are correlated: models, devices,
    or (both held out) the wider of the two. With held-out vendors, intervals are for other devices
    of these vendors; with random splits, for other combinations of these models and devices. Fewer
    than three groups give no interval of an error, and fewer than five none of a difference.

    Parameters
    ----------
    make : callable
        Called with the kernels of the runs to fit; returns a mapping of estimator to a function
        that predicts the kernels of held-out runs. Estimators that share a fit thus fit once.
        `make` gets whole tables, measurements included. The functions get neither the measured
        time of a run nor, for ``task="prediction"``, that of its kernels.
    kernels : Kernels, dataframe or mapping of columns
        Kernels of runs measured end to end; other runs are not evaluated.
    task : {"composition", "prediction"}
        Whether ``sum`` adds up measured or predicted kernels.
    estimators : sequence of str, optional
        Which to evaluate; by default all that `make` returns.
    splits : str or sequence of str
        From `errcomp.calibration.evaluation.splits.SPLITS`.
    baselines : sequence of str
        Estimators with which the others are compared. The sum of kernels always is one.
    seed : int
        Seed of the random split (10 folds) and of the bootstrap.
    n_jobs : int, optional
        Number of processes that fit and predict folds; see `errcomp.summarize`.
    progress : callable, optional
        Called with the number of finished fits and of all fits.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        No run can be evaluated, a split or an estimator does not exist, these runs allow none of
        the splits, or predictions are invalid.

    Notes
    -----
    A group that an estimator refuses (`errcomp.errors.ErrcompError`) is counted in `refused`. Its
    metrics then cover other runs than those of other estimators; differences always cover the same
    runs. Misleads where settings were chosen after a look at these results.

    References
    ----------
    Varma and Simon (2006), "Bias in error estimation when using cross-validation for model
    selection", BMC Bioinformatics 7, 91, doi:10.1186/1471-2105-7-91.
    Roberts et al. (2017), "Cross-validation strategies for data with temporal, spatial,
    hierarchical, or phylogenetic structure", Ecography 40(8), 913-929, doi:10.1111/ecog.02881.

    Examples
    --------
    A fit that learns one factor, with a band of 10 % to either side:

    >>> import numpy as np
    >>> from errcomp.calibration.design import LEVELS, QUANTILES
    >>> from errcomp.calibration.predictions import Predictions
    >>> def make(train):
    ...     t = train.totals()
    ...     factor = np.median(t.run_measured / t.measured)
    ...     def predict(new):
    ...         t = new.totals()
    ...         e = t.measured * factor
    ...         ends = np.repeat(e[:, None], len(LEVELS), axis=1)
    ...         return Predictions(run=t.run, total=t.measured, predicted=e, low=0.9 * ends,
    ...                            high=1.1 * ends, quantiles=e[:, None].repeat(len(QUANTILES), 1),
    ...                            parts={}, fallback=t.run, calibrated=np.ones(len(t), bool),
    ...                            warnings=((),) * len(t), estimator="global", unit=t.unit)
    ...     return {"global": predict}
    >>> devices = list("AABBCCDDEE")
    >>> table = Kernels({"run": [f"r{i}" for i in range(10)], "kernel": ["k"] * 10,
    ...                  "kernel_class": ["k"] * 10, "count": [1] * 10, "device": devices,
    ...                  "measured": [1.0 + i for i in range(10)],
    ...                  "run_measured": [1.1 * (1.0 + i) + 0.1 * (i % 2) for i in range(10)]},
    ...                 unit="ms")
    >>> evaluation = evaluate(make, table, splits=["leave-device-out"])
    >>> row = evaluation.row("leave-device-out", "global")
    >>> print(row.figures["mean_ape"])
    1.01 % [0.4, 4.0], n=10
    >>> row.band(0.9).coverage, row.verdict
    (1.0, 'beats sum (MAPE 9.0 percentage points lower)')
    """
    kernels = kernels_in_memory(kernels)
    if task not in TASKS:
        raise InputError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    wanted = list(dict.fromkeys([splits] if isinstance(splits, str) else splits))
    for name in wanted:
        check_split(name)
    if not wanted:
        raise InputError("splits is empty. Name at least one split.")
    used, design, not_judged = judged_runs(kernels, task)
    parts, not_done = _possible(wanted, used, design, seed)
    steps = Steps(progress, sum(map(len, parts.values())))
    predictions: dict[tuple[str, str], HeldOut] = {}
    refused: list[Refused] = []
    rows: list[EvaluationRow] = []
    not_flagged: list[EvaluationRow] = []
    flagged, _ = flagged_of(used, task)
    for name, folds in parts.items():
        by_estimator, missing = held_out(
            make,
            used,
            design,
            name,
            folds,
            estimators=estimators,
            n_jobs=n_jobs,
            progress=steps.step,
        )
        refused += missing
        if not by_estimator:
            reason = f" {missing[0].held_out}: {missing[0].reason}" if missing else ""
            not_done[name] = f"{name}: no held-out run was predicted.{reason}"
        rows += _rows(name, by_estimator, missing, baselines, seed)
        fine = _without(by_estimator, flagged)
        not_flagged += _rows(name, fine, missing, baselines, seed, "not flagged")
        predictions.update({(name, estimator): held for estimator, held in by_estimator.items()})
    if not rows:
        raise InputError(" ".join(not_done.values()))
    return Evaluation(
        task=task,
        unit=design.unit,
        rows=tuple(rows),
        held_out=predictions,
        flattery=_flattery(predictions),
        transfer=_transfer(predictions),
        refused=tuple(refused),
        not_judged=not_judged,
        not_done=not_done,
        seed=seed,
        source=kernels.source,
        known=known_of(kernels, task),
        flagged=flagged,
        not_flagged=tuple(not_flagged),
    )


def training_parts(
    kernels: Kernels, *, task: Task, splits: Sequence[str], seed: int
) -> list[Kernels]:
    """Return the kernels of each fit of `evaluate`, fold by fold."""
    used, design, _ = judged_runs(kernels, task)
    parts, _ = _possible(list(dict.fromkeys(splits)), used, design, seed)
    folds = [fold for of_split in parts.values() for fold in of_split]
    return [runs_at(used, fold.train) for fold in folds if len(fold.train)]


def _possible(
    names: Sequence[str], kernels: Kernels, design: Design, seed: int
) -> tuple[dict[str, tuple[Split, ...]], dict[str, str]]:
    """Return the folds of each split, and the reasons against the other splits."""
    vendor: Names | None = kernels.per_run("vendor") if "vendor" in kernels.keys else None
    folds = max(2, min(_FOLDS, len(design)))
    parts, reasons = {}, {}
    for name in names:
        try:
            parts[name] = split(design, name, vendor=vendor, folds=folds, seed=seed)
        except InputError as error:
            reasons[name] = str(error)
    return parts, reasons


def _rows(
    name: str,
    by_estimator: Mapping[str, HeldOut],
    refused: Sequence[Refused],
    baselines: Sequence[str],
    seed: int,
    runs_judged: JudgedRuns = "all",
) -> list[EvaluationRow]:
    rows = []
    for estimator, held in by_estimator.items():
        # A baseline is compared with the sum of kernels only.
        names = [] if estimator in baselines else [b for b in baselines if b in by_estimator]
        others = {b: by_estimator[b] for b in names}
        # Comparisons are of all runs.
        if runs_judged != "all":
            others = {}
        elif estimator != "sum":
            others = {"sum": held.naive(), **{b: o for b, o in others.items() if b != "sum"}}
        unanswered = sum(refusal.n for refusal in refused if refusal.estimator in ("", estimator))
        rows.append(
            judge(
                held,
                split=name,
                estimator=estimator,
                others=others,
                refused=unanswered,
                seed=seed,
                runs_judged=runs_judged,
            )
        )
    return rows


def _without(by_estimator: Mapping[str, HeldOut], flagged: Mapping[str, str]) -> dict[str, HeldOut]:
    """Return the predictions of the other runs; nothing where no run is flagged, or all are."""
    found = {}
    for name, held in by_estimator.items():
        fine = ~np.isin(held.run.astype(str), list(flagged))
        if fine.any() and not fine.all():
            found[name] = held.take(fine)
    return found


def _flattery(predictions: Mapping[tuple[str, str], HeldOut]) -> tuple[Difference, ...]:
    gaps = [
        difference(
            held, predictions[_RANDOM, estimator], split=name, estimator=estimator, against=_RANDOM
        )
        for (name, estimator), held in predictions.items()
        if name != _RANDOM and (_RANDOM, estimator) in predictions
    ]
    return tuple(gap for gap in gaps if gap is not None)


def _transfer(predictions: Mapping[tuple[str, str], HeldOut]) -> tuple[VendorTransfer, ...]:
    return tuple(
        transfer
        for (name, estimator), held in predictions.items()
        if name == _VENDOR and (_DEVICE, estimator) in predictions
        for transfer in vendor_transfers(estimator, held, predictions[_DEVICE, estimator])
    )
