"""``errcomp.calibration/1``: what a way of fitting is worth on what it never saw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import LEVELS, QUANTILES, TASKS, Floats
from errcomp.calibration.evaluation import Evaluation
from errcomp.calibration.evaluation.held_out import Difference, HeldOut, Refused, VendorTransfer
from errcomp.calibration.evaluation.judging import BandRow, EvaluationRow, GroupRow, RunError
from errcomp.calibration.evaluation.scoring import Abstention
from errcomp.calibration.evaluation.splits import SPLITS
from errcomp.documents._common import ends
from errcomp.documents._fields import (
    Field,
    above,
    choice,
    count,
    flag,
    many,
    mapping,
    maybe,
    null_as,
    number,
    or_nan,
    share,
    text,
)
from errcomp.metrics import figure
from errcomp.results import Estimate

__all__ = ["read_evaluation"]

#: Figures of a row, and their names in `errcomp.metrics`.
_FIGURES = {
    "mean_ape": "mape",
    "median_ape": "median_ape",
    "p90_ape": "p90_ape",
    "max_ape": "max_ape",
    "bias": "bias",
}
_LEVEL = 0.95
_PERCENT = {level: f"{100 * level:g}" for level in LEVELS}
_split = choice(SPLITS)


def read_evaluation(field: Field) -> Evaluation:
    """Make an evaluation of its document.

    Of the predictions of single runs it holds those of the estimator with the lowest error.
    """
    field("source", text)
    against = field("against_baselines", many(_difference))
    return Evaluation(
        task=field("task", choice(TASKS)),
        unit=field("unit", maybe(text)),
        rows=field("rows", many(lambda row: _row(row, against), fewest=1)),
        held_out=dict(field("held_out", many(_held_out))),
        flattery=field("flattery", many(_difference)),
        transfer=field("vendor_transfer", many(_transfer)),
        refused=field("refused", many(_refused)),
        not_judged=field("not_judged", many(text)),
        not_done=field("not_done", mapping(text)),
        seed=field("seed", count),
    )


def _row(field: Field, against: tuple[Difference, ...]) -> EvaluationRow:
    split, estimator = field("split", _split), field("estimator", text)
    n = field("n", count)
    if n == 0:
        field.at("n").refuse("at least 1")
    return EvaluationRow(
        split=split,
        estimator=estimator,
        n=n,
        refused=field("refused", count),
        uncalibrated=field("uncalibrated", count),
        figures={row: _figure(field, row, name, n) for row, name in _FIGURES.items()},
        bands=tuple(_band(field, level) for level in LEVELS),
        crps=field("crps", or_nan(number)),
        pit=np.array(field("pit", many(or_nan(share)))),
        groups=field("by_group", many(_group)),
        against=tuple(d for d in against if (d.split, d.estimator) == (split, estimator)),
        verdict=field("verdict", text),
        abstention=_abstention(field),
        answered=_answered(field, n),
        worst=field("worst", many(_worst)),
    )


def _figure(field: Field, row: str, name: str, n: int) -> Estimate:
    low, high = ends(field, f"{row}_low", f"{row}_high")
    spec = figure(name)
    return Estimate(
        name,
        field(row, or_nan(number)),
        low,
        high,
        level=None if low is None else _LEVEL,
        method=field(f"{row}_method", text),
        n=n,
        unit=spec.unit,
        definition=spec.definition,
    )


def _band(field: Field, level: float) -> BandRow:
    percent = _PERCENT[level]
    unbounded = field(f"unbounded_{percent}", count)
    # Of bands without an end the mean has none either; without bands there is no mean.
    missing = math.inf if unbounded else math.nan
    return BandRow(
        level,
        field(f"bands_{percent}", count),
        unbounded,
        coverage=field(f"coverage_{percent}", or_nan(share)),
        coverage_low=field(f"coverage_{percent}_low", or_nan(share)),
        coverage_high=field(f"coverage_{percent}_high", or_nan(share)),
        mean_width=field(f"mean_width_{percent}", null_as(number, missing)),
        interval_score=field(f"interval_score_{percent}", null_as(number, missing)),
    )


def _group(field: Field) -> GroupRow:
    covered = {level: f"coverage_{percent}" for level, percent in _PERCENT.items()}
    part = or_nan(share)
    return GroupRow(
        field("group", text),
        field("n", count),
        field("mean_ape", number),
        coverage={level: field(name, part) for level, name in covered.items()},
        interval={
            level: (field(f"{name}_low", part), field(f"{name}_high", part))
            for level, name in covered.items()
        },
    )


def _abstention(field: Field) -> Abstention | None:
    errors = np.array(field("abstention_curve", many(number)))
    if not len(errors):
        return None
    return Abstention(
        np.arange(1, len(errors) + 1) / len(errors), errors, field("abstention_area", number)
    )


def _answered(field: Field, n: int) -> Estimate:
    low, high = ends(field, "answered_mean_ape_low", "answered_mean_ape_high")
    return Estimate(
        "mape",
        field("answered_mean_ape", or_nan(number)),
        low,
        high,
        level=None if low is None else _LEVEL,
        n=round(field("answered_share", share) * n),
    )


def _worst(field: Field) -> RunError:
    return field.make(
        RunError, run=text, group=text, measured=above(0.0), predicted=number, ape=number
    )


def _difference(field: Field) -> Difference:
    n = field("n", count)
    return Difference(
        split=field("split", _split),
        estimator=field("estimator", text),
        against=field("against", text),
        n=n,
        mean_ape=field("mean_ape", number),
        mean_ape_against=field("mean_ape_against", number),
        difference=_of_difference(field, "", n, field("method", text)),
    )


def _of_difference(field: Field, prefix: str, n: int, method: str) -> Estimate:
    name = "mean_ape_difference"
    low, high = ends(field, f"{prefix}{name}_low", f"{prefix}{name}_high")
    level = None if low is None else _LEVEL
    value = field(f"{prefix}{name}", number)
    return Estimate(name, value, low, high, level=level, method=method, n=n)


def _transfer(field: Field) -> VendorTransfer:
    n, unseen = field("n_unseen", count), field("unseen", number)
    cost = _of_difference(field, "cost_", n, "")
    return VendorTransfer(
        estimator=field("estimator", text),
        vendor=field("vendor", text),
        n_unseen=n,
        n_seen=field("n_seen", count),
        unseen=unseen,
        seen=field("seen", number),
        gap=field("gap", number),
        cost=Difference(
            split="leave-vendor-out",
            estimator=field("estimator", text),
            against="leave-device-out",
            n=n,
            mean_ape=unseen,
            mean_ape_against=unseen - cost.value,
            difference=cost,
        ),
    )


def _refused(field: Field) -> Refused:
    return field.make(Refused, split=_split, estimator=text, held_out=text, n=count, reason=text)


def _held_out(field: Field) -> tuple[tuple[str, str], HeldOut]:
    runs = field("runs", many(_run, fewest=1))
    names = {name: [run[name] for run in runs] for name in ("run", "group", "device", "model")}
    times = {name: [run[name] for run in runs] for name in ("measured", "total", "predicted")}
    found = HeldOut(
        **{name: np.array(values, dtype=object) for name, values in names.items()},
        **{name: np.array(values) for name, values in times.items()},
        low=_ends(runs, "low"),
        high=_ends(runs, "high"),
        quantiles=np.full((len(runs), len(QUANTILES)), np.nan),
        calibrated=np.array([run["calibrated"] for run in runs]),
    )
    return (field("split", _split), field("estimator", text)), found


def _ends(runs: tuple[dict[str, Any], ...], end: str) -> Floats:
    found: NDArray[np.float64] = np.array(
        [[run[f"{end}_{percent}"] for percent in _PERCENT.values()] for run in runs]
    )
    return found


def _run(field: Field) -> dict[str, Any]:
    positive = above(0.0)
    found: dict[str, Any] = {
        name: field(name, text) for name in ("run", "group", "device", "model")
    }
    found |= {name: field(name, positive) for name in ("measured", "total", "predicted")}
    found["calibrated"] = field("calibrated", flag)
    for percent in _PERCENT.values():
        low = field(f"low_{percent}", maybe(number))
        # A band that was refused has no ends; one that is not has at least the lower one.
        found[f"low_{percent}"] = math.nan if low is None else low
        missing = math.nan if low is None else math.inf
        found[f"high_{percent}"] = field(f"high_{percent}", null_as(number, missing))
    return found
