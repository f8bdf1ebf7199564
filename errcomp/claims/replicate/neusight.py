"""Table 6 and the figures about NeuSight in the survey's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from errcomp.claims.replicate.judging import Candidate, PrintedCell, Source, judge, no_data
from errcomp.claims.replicate.levels import NEUSIGHT_RANGES, judge_ranges
from errcomp.claims.replicate.published import BY_NEUSIGHT, published_rules
from errcomp.claims.replicate.results import Cell
from errcomp.claims.replicate.rules import (
    AGGREGATIONS,
    composition,
    group_rules,
    narrowed_rules,
    select,
    selections,
)
from errcomp.errors import InputError
from errcomp.metrics import max_ape
from errcomp.tables import Pairs

__all__ = ["group_extremes", "table6", "text"]

_TABLE6 = "table6_neusight"
_MEAN = AGGREGATIONS["mean APE"]


def table6(source: Source) -> Iterator[Cell]:
    """Recompute the error of each device and mode; the claims in it are inputs."""
    for cell in source.cells[_TABLE6]:
        device, _, mode = cell.row.partition(", ")
        group = _group(source.neusight, {"device": device, "mode": mode})
        if cell.column == "survey":
            yield judge(cell, group_rules(group), composition(group))
        elif cell.column == "claimed":
            yield no_data(
                cell,
                "A claim, taken as printed. The survey does not say where NeuSight publishes it; "
                "its registry entry is judged by the audit.",
            )
        else:
            yield _verdict(cell, source)


def _verdict(cell: PrintedCell, source: Source) -> Cell:
    """Check the one verdict that has a rule: a mismatch is more than twice the claim."""
    survey = source.number(_TABLE6, cell.row, "survey")
    ratio = survey / source.number(_TABLE6, cell.row, "claimed")
    note = f"Printed error over printed claim: {ratio:.2f}."
    if (ratio > 2) != (cell.printed == "Mismatch"):
        raised = Candidate("more than twice the claim is a mismatch", ratio)
        return judge(cell, [raised], f"{note} The caption's rule gives the other word.")
    if cell.printed != "Mismatch":
        return no_data(
            cell,
            f"{note} That is not a mismatch (more than twice the claim, says the caption); no rule "
            "is stated that separates Match from Close.",
        )
    return Cell(
        cell.table,
        cell.where,
        cell.edition,
        cell.row,
        cell.column,
        cell.printed,
        ratio,
        "ratio",
        "reproduced",
        "more than twice the claim is a mismatch",
        f"{note} Recomputed from the printed figures.",
        1,
    )


def _group(pairs: Pairs, conditions: Mapping[str, object]) -> Pairs:
    found = select(pairs, conditions)
    if found is None:
        wanted = ", ".join(f"{key} {value}" for key, value in conditions.items())
        raise InputError(
            f"{pairs.source}: no configuration with {wanted}. The replication needs the embedded "
            "neusight dataset, or all of it rebuilt."
        )
    return found


def group_extremes(pairs: Pairs, extreme: Callable[..., float]) -> list[Candidate]:
    """Return the lowest or highest mean APE over the groups of device and mode."""
    groups = [dict(selections(pairs.take(g.index))) for g in pairs.groups(["device", "mode"])]
    word = "lowest" if extreme is min else "highest"
    first = extreme(_MEAN(next(iter(group.values()))) for group in groups)
    last = extreme(_MEAN(list(group.values())[-1]) for group in groups)
    name = f"{word} mean APE of a device and mode ({len(groups)} groups)"
    return [
        Candidate(f"{name}, single-device unfused configurations where there are any", first, True),
        Candidate(f"{name}, variants pooled", last),
    ]


def _count(source: Source) -> list[Candidate]:
    return [
        Candidate("configurations with a prediction and a measurement", source.neusight.n, True)
    ]


def _gpu_types(source: Source) -> list[Candidate]:
    types = set(source.neusight.column("device"))
    chips = {device.removesuffix("-SXM") for device in types}
    listed = {cell.row.partition(", ")[0] for cell in source.cells[_TABLE6]}
    left_out = sorted(types - listed)
    missing = sum(device in left_out for device in source.neusight.column("device"))
    return [
        Candidate("device types among all configurations", len(types), True),
        Candidate("device types, forms of one chip counted once", len(chips)),
        Candidate(
            f"device types listed in Table 6; without {' and '.join(left_out)}, whose {missing} "
            "configurations are among the 146",
            len(listed),
        ),
    ]


def _amd_extreme(extreme: Callable[..., float]) -> Callable[[Source], list[Candidate]]:
    def candidates(source: Source) -> list[Candidate]:
        part = _group(source.neusight, {"vendor": "AMD", "mode": "training"})
        groups = part.groups(["device"])
        values = [_MEAN(part.take(group.index)) for group in groups]
        word = "lowest" if extreme is min else "highest"
        rule = f"{word} mean APE of an AMD device in training ({len(groups)} devices)"
        return [Candidate(rule, extreme(values), True)]

    return candidates


def _max_on_p4(source: Source) -> list[Candidate]:
    part = _group(source.neusight, {"device": "P4"})
    errors = np.abs(part.predicted - part.measured) / part.measured
    worst = part.take(np.asarray([int(errors.argmax())]))
    what = ", ".join(str(worst.column(key)[0]) for key in ("model", "mode"))
    rule = f"largest APE on P4 ({what}, batch {worst.column('batch')[0]:g})"
    return [Candidate(rule, max_ape(predicted=part.predicted, measured=part.measured), True)]


def _gap(source: Source) -> list[Candidate]:
    claim = source.number(_TABLE6, "H100, inference", "claimed")
    part = _group(source.neusight, {"device": "H100", "mode": "inference"})
    return [
        Candidate(f"mean APE over the claim, {which}", _MEAN(chosen) / claim, stated=not i)
        for i, (which, chosen) in enumerate(selections(part))
    ]


def _sample_size(extreme: Callable[..., int]) -> Callable[[Source], list[Candidate]]:
    def candidates(source: Source) -> list[Candidate]:
        pairs = source.neusight
        single = _group(pairs, {"variant": "base"})
        word = "smallest" if extreme is min else "largest"
        return [
            Candidate(
                f"{word} group of device and mode, {which}",
                extreme(len(group.index) for group in part.groups(["device", "mode"])),
                stated=part is single,
            )
            for which, part in (
                ("single-device unfused configurations", single),
                ("variants pooled", pairs),
            )
        ]

    return candidates


def _narrowed(conditions: Mapping[str, object]) -> Callable[[Source], list[Candidate]]:
    return lambda source: list(narrowed_rules(_group(source.neusight, conditions)))


def _like_table6(device: str, mode: str) -> Callable[[Source], list[Candidate]]:
    conditions = {"device": device, "mode": mode}
    return lambda source: list(group_rules(_group(source.neusight, conditions)))


def _vendor(vendor: str) -> Callable[[Source], list[Candidate]]:
    return lambda source: list(group_rules(_group(source.neusight, {"vendor": vendor})))


_H100_GPT2: Mapping[str, object] = {"device": "H100", "model": "gpt2_large", "mode": "inference"}

#: What each line of the text is about: the selection that its own words name, nothing more.
_LINES: Mapping[str, Callable[[Source], list[Candidate]]] = {
    "configurations": _count,
    "GPU types, first edition": _gpu_types,
    "GPU types, second edition": _gpu_types,
    "lowest per-device MAPE": lambda source: group_extremes(source.neusight, min),
    "highest per-device MAPE": lambda source: group_extremes(source.neusight, max),
    "max APE on P4 (GPT-2-Large inference, batch 4)": _max_on_p4,
    "H100 GPT-2-Large fused": _narrowed({**_H100_GPT2, "variant": "fusion"}),
    "H100 GPT-2-Large unfused": _narrowed({**_H100_GPT2, "variant": "base"}),
    "AMD training error, lowest device": _amd_extreme(min),
    "AMD training error, highest device": _amd_extreme(max),
    "MI100 training": _like_table6("MI100", "training"),
    "MI100 inference": _like_table6("MI100", "inference"),
    "DP4 APE": _narrowed({"variant": "dp4"}),
    "TP4 APE": _narrowed({"variant": "tp4"}),
    "PP4 APE": _narrowed({"variant": "pp4_1"}),
    "H100 gap to claim": _gap,
    "per-device sample size, smallest": _sample_size(min),
    "per-device sample size, largest": _sample_size(max),
    f"{BY_NEUSIGHT}: overall NVIDIA": _vendor("NVIDIA"),
}


def text(source: Source) -> Iterator[Cell]:
    """Recompute the figures that stand in the running text."""
    ranges = judge_ranges(source, "text_neusight", NEUSIGHT_RANGES)
    for cell in source.cells["text_neusight"]:
        if cell.row in ranges:
            yield ranges[cell.row]
        elif cell.row in _LINES:
            yield judge(cell, _LINES[cell.row](source))
        else:
            candidates, note = published_rules(source, cell)
            yield judge(cell, candidates, note)
