"""The rules that are tried on the pairs of NeuSight, in the order in which they are tried.

There are four aggregations and, where a group mixes variants, two selections: at most eight rules.
A figure is printed to 0.01 points, so of the 200 figures within one point of the mean at most eight
would be called reproduced: a wrong figure passes with a chance of a few percent at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from errcomp.claims.replicate.judging import Candidate
from errcomp.metrics import ape, gmape, mape, median_ape
from errcomp.tables import Pairs

__all__ = ["AGGREGATIONS", "composition", "group_rules", "narrowed_rules", "select", "selections"]

_NARROWING_KEYS = ("device", "model", "mode", "seq_len", "batch")
_FUSED, _SINGLE = "fusion", "base"


def _mean_of_rounded(pairs: Pairs) -> float:
    errors = ape(predicted=pairs.predicted, measured=pairs.measured)
    return float(np.round(100 * errors, 2).mean() / 100)


#: Name and function of each aggregation, the most common first.
AGGREGATIONS: Mapping[str, Callable[[Pairs], float]] = {
    "mean APE": lambda pairs: mape(predicted=pairs.predicted, measured=pairs.measured),
    "mean of APEs, each rounded to two decimals of a percent before averaging": _mean_of_rounded,
    "median APE": lambda pairs: median_ape(predicted=pairs.predicted, measured=pairs.measured),
    "geometric mean of APE": lambda pairs: gmape(
        predicted=pairs.predicted, measured=pairs.measured
    ),
}


def select(pairs: Pairs, conditions: Mapping[str, object]) -> Pairs | None:
    """Return the pairs with these key values, or None where there is none."""
    mask = np.ones(pairs.n, dtype=bool)
    for key, wanted in conditions.items():
        mask &= np.asarray([value == wanted for value in pairs.column(key)], dtype=bool)
    return pairs.take(np.flatnonzero(mask)) if mask.any() else None


def selections(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """Return like with like first (one device, not fused), then everything pooled."""
    variants = set(pairs.column("variant"))
    single = select(pairs, {"variant": _SINGLE})
    if len(variants) > 1 and single is not None:
        yield f"the {single.n} single-device unfused configurations", single
        others = variants - {_SINGLE}
        mixed = "fused with unfused" if others == {_FUSED} else "distributed with single-device"
        if _FUSED in others and len(others) > 1:
            mixed = "fused and distributed with single-device"
        yield f"{mixed} configurations pooled ({pairs.n})", pairs
    else:
        yield f"all {pairs.n} configurations", pairs


def group_rules(pairs: Pairs) -> Iterator[Candidate]:
    """Return every rule for the error of one group; the first is the one that is implied."""
    stated = True
    for name, figure in AGGREGATIONS.items():
        for which, part in selections(pairs):
            yield Candidate(f"{name}, {which}", figure(part), stated=stated)
            stated = False


def narrowed_rules(pairs: Pairs) -> Iterator[Candidate]:
    """Return the mean APE of the pairs, of those with one key value, and of each alone."""
    mean = AGGREGATIONS["mean APE"]
    yield Candidate(f"mean APE, all {pairs.n} configurations", mean(pairs), stated=True)
    for key in _NARROWING_KEYS:
        groups = pairs.groups([key])
        if len(groups) < 2:
            continue
        for group in groups:
            part = pairs.take(group.index)
            size = "one configuration" if part.n == 1 else f"{part.n} configurations"
            name = f"mean APE, {key} {group.key[key]} alone ({size} of {pairs.n})"
            yield Candidate(name, mean(part))
    for i in range(pairs.n):
        part = pairs.take(np.asarray([i]))
        name = ", ".join(f"{key} {part.column(key)[0]}" for key in _NARROWING_KEYS)
        yield Candidate(f"APE of one configuration of {pairs.n}: {name}", mean(part))


def composition(pairs: Pairs) -> str:
    """Say of which variants a mixed group consists and what each of them gives; else nothing."""
    groups = pairs.groups(["variant"])
    if len(groups) < 2:
        return ""
    parts = [(group.key["variant"], pairs.take(group.index)) for group in groups]
    mean = AGGREGATIONS["mean APE"]
    shown = ", ".join(f"{part.n} {name} {100 * mean(part):.2f} %" for name, part in parts)
    return f"By variant: {shown}."
