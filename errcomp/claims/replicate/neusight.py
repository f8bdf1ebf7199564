"""Table 6, the figures about NeuSight in the survey's text, and error ranges by level.

The rules for an error are tried in a fixed order, the one that the words imply first. A range has
two printed ends, which a rule must give together. The rule of the words is tried first, then other
selections of the same figures, then ends rounded away from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from errcomp.claims.printed import parse_printed
from errcomp.claims.registry import Claim, claims
from errcomp.claims.replicate.judging import (
    Candidate,
    Cell,
    PrintedCell,
    Source,
    judge,
    judge_range,
    no_data,
)
from errcomp.errors import InputError
from errcomp.metrics import ape, gmape, mape, max_ape, median_ape
from errcomp.tables import Pairs

if TYPE_CHECKING:
    from errcomp.claims.search import Match

_NARROWING_KEYS = ("device", "model", "mode", "seq_len", "batch")
_FUSED, _SINGLE = "fusion", "base"


def _mean_of_rounded(pairs: Pairs) -> float:
    errors = ape(predicted=pairs.predicted, measured=pairs.measured)
    return float(np.round(100 * errors, 2).mean() / 100)


#: Name and function of each aggregation, the most common first.
AGGREGATIONS: Mapping[str, Callable[[Pairs], float]] = {
    "mean APE": lambda pairs: mape(predicted=pairs.predicted, measured=pairs.measured),
    "mean of APEs, each first rounded to 0.01 %": _mean_of_rounded,
    "median APE": lambda pairs: median_ape(predicted=pairs.predicted, measured=pairs.measured),
    "geometric mean of APE": lambda pairs: gmape(
        predicted=pairs.predicted, measured=pairs.measured
    ),
}


def select(pairs: Pairs, conditions: Mapping[str, object]) -> Pairs | None:
    """Return the pairs with these key values, or None without such pairs."""
    mask = np.ones(pairs.n, dtype=bool)
    for key, wanted in conditions.items():
        mask &= np.asarray([value == wanted for value in pairs.column(key)], dtype=bool)
    return pairs.take(np.flatnonzero(mask)) if mask.any() else None


def selections(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """Return comparable pairs first (one device, not fused), then all pooled."""
    variants = set(pairs.column("variant"))
    single = select(pairs, {"variant": _SINGLE})
    if len(variants) > 1 and single is not None:
        yield f"the {single.n} single-device unfused configurations", single
        others = variants - {_SINGLE}
        mixed = "fused and unfused" if others == {_FUSED} else "distributed and single-device"
        if _FUSED in others and len(others) > 1:
            mixed = "fused, distributed and single-device"
        yield f"{mixed} configurations pooled ({pairs.n})", pairs
    else:
        yield f"all {pairs.n} configurations", pairs


def group_rules(pairs: Pairs) -> Iterator[Candidate]:
    """Return every rule for the error of one group, the implied rule first."""
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
        yield Candidate(f"APE of one of {pairs.n} configurations: {name}", mean(part))


def composition(pairs: Pairs) -> str:
    """Say which variants a mixed group holds and what each of them gives; else nothing."""
    groups = pairs.groups(["variant"])
    if len(groups) < 2:
        return ""
    parts = [(group.key["variant"], pairs.take(group.index)) for group in groups]
    mean = AGGREGATIONS["mean APE"]
    shown = ", ".join(f"{part.n} {name} {100 * mean(part):.2f} %" for name, part in parts)
    return f"By variant: {shown}."


# The figures that the NeuSight authors published, and the search for their subset.


BY_NEUSIGHT = "published by the NeuSight authors"

#: Predictor in the artifact, and the line with its figure; all three are about the same subset.
_ABSTRACTS: Mapping[str, str] = {
    "neusight": f"{BY_NEUSIGHT}: NeuSight, abstract",
    "habitat": f"{BY_NEUSIGHT}: Habitat, abstract",
    "micro": f"{BY_NEUSIGHT}: Li et al., abstract",
}


def published_rules(source: Source, cell: PrintedCell) -> tuple[list[Candidate], str]:
    """Return all configurations first, then the subset that gives all three figures at once.

    The second value is a remark on the search.
    """
    tool = next((name for name, line in _ABSTRACTS.items() if line == cell.row), "neusight")
    part = source.pairs.where({"tool": tool})
    every = Candidate(
        f"mean APE, all {part.n} configurations of {tool}",
        AGGREGATIONS["mean APE"](part),
        stated=True,
    )
    found = source.once("published", lambda: _search(source))
    if found is None:
        return [every], "No single subset gives all three published figures."
    match, combinations = found
    searched = (combinations, match.expected_by_chance)
    return [every, Candidate(match.description, match.values[tool], searched=searched)], (
        "This subset was found by a search for rows that give the published figures of neusight, "
        f"habitat and micro at once; {match.expected_by_chance:.2g} such matches are expected by "
        "chance."
    )


def _search(source: Source) -> tuple[Match, int] | None:
    """Return the simplest subset with all three figures, and how many were searched."""
    from errcomp.claims.search import search_claim

    printed = {cell.row: cell.printed for cell in source.cells["text_neusight"]}
    figures = {tool: printed[line] for tool, line in _ABSTRACTS.items()}
    found = search_claim(source.pairs, figures)
    return (found.matches[0], found.searched["combinations"]) if found.matches else None


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
                "This is a claim, which was not recomputed. The survey does not say where NeuSight "
                "publishes it; `errcomp audit neusight --by device,mode` checks it.",
            )
        else:
            yield _verdict(cell, source)


def _verdict(cell: PrintedCell, source: Source) -> Cell:
    """Check the one verdict that has a rule: a mismatch is more than twice the claim."""
    survey = source.number(_TABLE6, cell.row, "survey")
    ratio = survey / source.number(_TABLE6, cell.row, "claimed")
    note = f"The printed error divided by the printed claim is {ratio:.2f}."
    if (ratio > 2) != (cell.printed == "Mismatch"):
        raised = Candidate("an error of more than twice the claim is a mismatch", ratio)
        return judge(
            cell, [raised], f"{note} By the rule in the caption, the verdict would be different."
        )
    if cell.printed != "Mismatch":
        return no_data(
            cell,
            f"{note} By the caption, an error is a mismatch only if it is more than twice the "
            "claim. The survey states no rule that separates Match from Close.",
        )
    return replace(
        no_data(cell, f"{note} This ratio comes from the printed figures, not from the pairs."),
        recomputed=ratio,
        unit="ratio",
        status="reproduced",
        rule="an error of more than twice the claim is a mismatch",
        decimals=1,
    )


def _group(pairs: Pairs, conditions: Mapping[str, object]) -> Pairs:
    part = select(pairs, conditions)
    if part is None:
        wanted = ", ".join(f"{key} {value}" for key, value in conditions.items())
        raise InputError(
            f"{pairs.source}: no configuration with {wanted}. The replication needs the built-in "
            "neusight dataset, or a complete rebuild of that dataset."
        )
    return part


def group_extremes(pairs: Pairs, extreme: Callable[..., float]) -> list[Candidate]:
    """Return the lowest or highest mean APE over the groups of device and mode."""
    groups = [dict(selections(pairs.take(g.index))) for g in pairs.groups(["device", "mode"])]
    word = "lowest" if extreme is min else "highest"
    first = extreme(_MEAN(next(iter(group.values()))) for group in groups)
    last = extreme(_MEAN(list(group.values())[-1]) for group in groups)
    name = f"{word} mean APE of a group by device and mode ({len(groups)} groups)"
    return [
        Candidate(
            f"{name}; in groups with single-device unfused configurations, only these count",
            first,
            True,
        ),
        Candidate(f"{name}; all variants pooled", last),
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
        Candidate("device types, without counting SXM versions separately", len(chips)),
        Candidate(
            f"device types listed in Table 6, which leaves out {' and '.join(left_out)}; the 146 "
            f"configurations include {missing} on these",
            len(listed),
        ),
    ]


def _amd_extreme(extreme: Callable[..., float]) -> Callable[[Source], list[Candidate]]:
    def candidates(source: Source) -> list[Candidate]:
        part = _group(source.neusight, {"vendor": "AMD", "mode": "training"})
        groups = part.groups(["device"])
        values = [_MEAN(part.take(group.index)) for group in groups]
        word = "lowest" if extreme is min else "highest"
        rule = f"{word} mean APE of training on an AMD device ({len(groups)} devices)"
        return [Candidate(rule, extreme(values), True)]

    return candidates


def _max_on_p4(source: Source) -> list[Candidate]:
    part = _group(source.neusight, {"device": "P4"})
    errors = np.abs(part.predicted - part.measured) / part.measured
    worst = part.take(np.asarray([int(errors.argmax())]))
    case = ", ".join(str(worst.column(key)[0]) for key in ("model", "mode"))
    rule = f"largest APE on P4 ({case}, batch {worst.column('batch')[0]:g})"
    return [Candidate(rule, max_ape(predicted=part.predicted, measured=part.measured), True)]


def _gap(source: Source) -> list[Candidate]:
    claim = source.number(_TABLE6, "H100, inference", "claimed")
    part = _group(source.neusight, {"device": "H100", "mode": "inference"})
    return [
        Candidate(f"mean APE of {which}, divided by the claim", _MEAN(chosen) / claim, stated=not i)
        for i, (which, chosen) in enumerate(selections(part))
    ]


def _sample_size(extreme: Callable[..., int]) -> Callable[[Source], list[Candidate]]:
    def candidates(source: Source) -> list[Candidate]:
        pairs = source.neusight
        single = _group(pairs, {"variant": "base"})
        word = "smallest" if extreme is min else "largest"
        return [
            Candidate(
                f"number of pairs in the {word} group by device and mode, {which}",
                extreme(len(group.index) for group in part.groups(["device", "mode"])),
                stated=part is single,
            )
            for which, part in (
                ("single-device unfused configurations", single),
                ("variants pooled", pairs),
            )
        ]

    return candidates


def _narrowed_rules(conditions: Mapping[str, object]) -> Callable[[Source], list[Candidate]]:
    return lambda source: list(narrowed_rules(_group(source.neusight, conditions)))


def _like_table6(device: str, mode: str) -> Callable[[Source], list[Candidate]]:
    conditions = {"device": device, "mode": mode}
    return lambda source: list(group_rules(_group(source.neusight, conditions)))


def _vendor(vendor: str) -> Callable[[Source], list[Candidate]]:
    return lambda source: list(group_rules(_group(source.neusight, {"vendor": vendor})))


_H100_GPT2: Mapping[str, object] = {"device": "H100", "model": "gpt2_large", "mode": "inference"}

#: The selection that the words of each line name.
_LINES: Mapping[str, Callable[[Source], list[Candidate]]] = {
    "configurations": _count,
    "GPU types, first edition": _gpu_types,
    "GPU types, second edition": _gpu_types,
    "lowest per-device MAPE": lambda source: group_extremes(source.neusight, min),
    "highest per-device MAPE": lambda source: group_extremes(source.neusight, max),
    "max APE on P4 (GPT-2-Large inference, batch 4)": _max_on_p4,
    "H100 GPT-2-Large fused": _narrowed_rules({**_H100_GPT2, "variant": "fusion"}),
    "H100 GPT-2-Large unfused": _narrowed_rules({**_H100_GPT2, "variant": "base"}),
    "AMD training error, lowest device": _amd_extreme(min),
    "AMD training error, highest device": _amd_extreme(max),
    "MI100 training": _like_table6("MI100", "training"),
    "MI100 inference": _like_table6("MI100", "inference"),
    "DP4 APE": _narrowed_rules({"variant": "dp4"}),
    "TP4 APE": _narrowed_rules({"variant": "tp4"}),
    "PP4 APE": _narrowed_rules({"variant": "pp4_1"}),
    "H100 gap to claim": _gap,
    "per-device sample size, smallest": _sample_size(min),
    "per-device sample size, largest": _sample_size(max),
    f"{BY_NEUSIGHT}: overall NVIDIA": _vendor("NVIDIA"),
}


def text(source: Source) -> Iterator[Cell]:
    """Recompute the figures in the running text."""
    ranges = judge_ranges(source, "text_neusight", NEUSIGHT_RANGES)
    for cell in source.cells["text_neusight"]:
        if cell.row in ranges:
            yield ranges[cell.row]
        elif cell.row in _LINES:
            yield judge(cell, _LINES[cell.row](source))
        else:
            candidates, note = published_rules(source, cell)
            yield judge(cell, candidates, note)


# Error ranges by level ----------------------------------------------------------------------------

_MAIN = ("V100", "A100-40G", "A100-80G", "H100")
_Rules = Callable[[Source], Iterator[Candidate]]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _groups(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    for group in pairs.groups(["device", "mode"]):
        yield str(group.key["device"]), pairs.take(group.index)


def _with_operators(pairs: Pairs) -> Pairs:
    known = np.isfinite(pairs.column("measured_operator_sum").astype(np.float64))
    return pairs.take(np.flatnonzero(known))


def _table6_errors(source: Source) -> dict[str, float]:
    """Return the mean APE of each row of Table 6 (variants pooled, as in the survey)."""
    rows = [c.row for c in source.cells["table6_neusight"] if c.column == "survey"]
    groups = source.neusight.groups(["device", "mode"])
    means = {
        f"{group.key['device']}, {group.key['mode']}": _MEAN(source.neusight.take(group.index))
        for group in groups
    }
    return {row: means[row] for row in rows if row in means}


def _both_ways(rule: str, ends: tuple[float, float]) -> Iterator[Candidate]:
    yield Candidate(rule, ends)
    yield Candidate(f"{rule}; both ends rounded outwards", ends, outwards=True)


def _kernel(source: Source) -> Iterator[Candidate]:
    part = _with_operators(source.neusight)
    errors = []
    for device, group in _groups(part):
        if device in _MAIN:
            predicted = group.column("predicted_operator_sum").astype(np.float64)
            measured = group.column("measured_operator_sum").astype(np.float64)
            errors.append(float(np.mean(np.abs(predicted - measured) / measured)))
    yield Candidate(
        "mean APE of the sum of operator times, for each device and mode of V100, A100 and H100 "
        f"({len(errors)} groups)",
        _ends(errors),
        stated=True,
    )


def _model(source: Source) -> Iterator[Candidate]:
    table = _table6_errors(source)
    every = [_MEAN(group) for _, group in _groups(source.neusight)]
    yield Candidate(
        f"mean APE of end-to-end times, for each device and mode ({len(every)} groups)",
        _ends(every),
        stated=True,
    )
    yield from _both_ways("all rows of Table 6", _ends(list(table.values())))
    others = [value for row, value in table.items() if row.partition(", ")[0] not in _MAIN]
    yield from _both_ways(
        "rows of Table 6 for devices other than V100, A100 and H100", _ends(others)
    )


def _composition(source: Source) -> Iterator[Candidate]:
    part = _with_operators(source.neusight)
    gaps = {}
    for device, group in _groups(part):
        total = group.column("measured_operator_sum").astype(np.float64)
        gaps[device, str(group.column("mode")[0])] = 1 - total / group.measured
    means = [float(gap.mean()) for gap in gaps.values()]
    yield Candidate(
        "measured end-to-end time minus the sum of the measured operators, as a share of the "
        f"end-to-end time, mean for each device and mode ({len(means)} groups)",
        _ends(means),
        stated=True,
    )
    sizes = [float(np.abs(gap).mean()) for gap in gaps.values()]
    yield from _both_ways(
        "absolute difference between measured end-to-end time and sum of the "
        "measured operators, as a share of the end-to-end time, mean for each device and "
        "mode",
        _ends(sizes),
    )
    kernel = [source.number("error_by_level", "kernel, NeuSight", end) for end in ("low", "high")]
    model = [
        source.number("error_by_level", "model, NeuSight, extrapolated", end)
        for end in ("low", "high")
    ]
    yield Candidate(
        "each end of the printed model-level range minus the same end of the printed "
        "kernel-level range",
        (model[0] - kernel[0], model[1] - kernel[1]),
    )


#: Ranges about NeuSight: rows of the text with their two ends, the rules, and a remark.
NEUSIGHT_RANGES: Mapping[tuple[str, str], tuple[_Rules, str]] = {
    (
        "kernel error range on datacentre GPUs, low",
        "kernel error range on datacentre GPUs, high",
    ): (
        _kernel,
        "The built-in table holds the sums of operator times, not the times of single operators. "
        "If the errors of the operators differ in sign, the relative error of the sum is smaller "
        "than the errors of the operators. The errors of V100, A100 and H100 in Table 6, rounded "
        "outwards, are the printed range, but they are errors of end-to-end times.",
    ),
    ("model-level error range, low", "model-level error range, high"): (
        _model,
        "This range and the kernel-level range come from two parts of the same column of "
        "end-to-end errors; neither is a measurement at kernel level, so their difference is not a "
        "composition error.",
    ),
    ("composition error, low", "composition error, high"): (
        _composition,
        "A negative value means that the operators, timed one by one, take longer than the whole "
        "run.",
    ),
}


def judge_ranges(
    source: Source, table: str, ranges: Mapping[tuple[str, str], tuple[_Rules, str]]
) -> dict[str, Cell]:
    """Recompute the ranges whose ends are separate rows; return the cells by row."""
    by_row = {cell.row: cell for cell in source.cells[table]}
    judged = {}
    for (low, high), (rules, note) in ranges.items():
        for cell in judge_range(by_row[low], by_row[high], rules(source), note):
            judged[cell.row] = cell
    return judged


def _claims_at(level: str) -> list[tuple[Claim, tuple[float, float]]]:
    """Return the error that each surveyed tool of a level claims, as its two ends."""
    claimed = []
    for claim in claims():
        surveyed = not claim.edition.startswith("not in the survey")
        by_authors = claim.claimed_by == "the tool's authors"
        if claim.level == level and claim.kind == "error" and surveyed and by_authors:
            low, high = claim.interval or (np.nan, np.nan)
            form = parse_printed(claim.printed).kind
            if form == "value":
                low = high = (low + high) / 2
            elif form == "bound":
                # What "< 1 %" states is 1 %: no tool claims an error of 0.
                low = high
            claimed.append((claim, (low, high)))
    return claimed


def _claimed(level: str) -> tuple[list[Candidate], str]:
    """Return the claims of the tools of a level, all together, then each printed range alone."""
    known = _claims_at(level)
    everything = (min(low for _, (low, _) in known), max(high for _, (_, high) in known))
    candidates = [
        Candidate(
            f"lowest and highest error claimed by the surveyed tools of this level ({len(known)} "
            "claims)",
            everything,
            stated=True,
        ),
        *(
            Candidate(f"the range that {claim.tool} claims", ends)
            for claim, ends in known
            if ends[0] < ends[1]
        ),
    ]
    return (
        candidates,
        "The survey calls the range representative of the papers, but names no paper.",
    )


_NEUSIGHT_ROWS: Mapping[str, _Rules] = {
    "kernel, NeuSight": _kernel,
    "model, NeuSight, extrapolated": _model,
}


def error_by_level(source: Source) -> Iterator[Cell]:
    """Recompute the ranges of error by level of abstraction."""
    cells = source.cells["error_by_level"]
    notes = dict(NEUSIGHT_RANGES.values())
    for low, high in zip(cells[::2], cells[1::2], strict=True):
        if low.row in _NEUSIGHT_ROWS:
            rules = _NEUSIGHT_ROWS[low.row]
            yield from judge_range(low, high, rules(source), notes[rules])
        elif low.unit == "us":
            yield from _launch(source, (low, high))
        else:
            candidates, note = _claimed(low.row)
            inside = [
                claim.tool
                for claim, (start, end) in _claims_at(low.row)
                if (low.value or 0) <= start and end <= (high.value or 0)
            ]
            note += f" Tools whose claims lie within the range: {', '.join(inside) or 'none'}."
            yield from judge_range(low, high, candidates, note)


def _launch(source: Source, cells: Sequence[PrintedCell]) -> Iterator[Cell]:
    part = _with_operators(source.neusight)
    rest = part.measured - part.column("measured_operator_sum").astype(np.float64)
    per_operator = 1000 * rest / part.column("operators").astype(np.float64)
    low, high = np.quantile(per_operator, [0.25, 0.75])
    for cell in cells:
        yield no_data(
            cell,
            "To recompute it, a trace with launch times is needed. The artifact times operators "
            "one by one; the rest of the end-to-end time, divided by the number of operators, is "
            f"{low:.1f} to {high:.1f} us (middle half of {part.n} configurations).",
        )
