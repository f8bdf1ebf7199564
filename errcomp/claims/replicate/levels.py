"""Error ranges by level: what they are ranges of.

A range has two printed ends, which one rule must print together. Rules are tried in order: what the
words say, then other selections of the same figures, then their ends rounded away from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from errcomp.claims.printed import parse_printed
from errcomp.claims.registry import Claim, claims
from errcomp.claims.replicate.judging import (
    Candidate,
    PrintedCell,
    Source,
    judge_range,
    no_data,
)
from errcomp.claims.replicate.results import Cell
from errcomp.claims.replicate.rules import AGGREGATIONS
from errcomp.tables import Pairs

__all__ = ["NEUSIGHT_RANGES", "error_by_level", "judge_ranges"]

_MEAN = AGGREGATIONS["mean APE"]
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
    """Return the mean APE behind each row of Table 6 (variants pooled, as the survey has them)."""
    rows = [c.row for c in source.cells["table6_neusight"] if c.column == "survey"]
    found = source.neusight.groups(["device", "mode"])
    means = {
        f"{group.key['device']}, {group.key['mode']}": _MEAN(source.neusight.take(group.index))
        for group in found
    }
    return {row: means[row] for row in rows if row in means}


def _of(values: Mapping[str, float], devices: Sequence[str]) -> list[float]:
    return [value for row, value in values.items() if row.partition(", ")[0] in devices]


def _both_ways(rule: str, ends: tuple[float, float]) -> Iterator[Candidate]:
    yield Candidate(rule, ends)
    yield Candidate(f"{rule}; ends rounded outwards", ends, outwards=True)


def _kernel(source: Source) -> Iterator[Candidate]:
    part = _with_operators(source.neusight)
    errors = []
    for device, group in _groups(part):
        if device in _MAIN:
            predicted = group.column("predicted_operator_sum").astype(np.float64)
            measured = group.column("measured_operator_sum").astype(np.float64)
            errors.append(float(np.mean(np.abs(predicted - measured) / measured)))
    yield Candidate(
        "mean error of the sum of operators, by device and mode, V100, A100 and H100 "
        f"({len(errors)} groups)",
        _ends(errors),
        stated=True,
    )
    main = _of(_table6_errors(source), _MAIN)
    yield from _both_ways(
        f"end-to-end (not kernel) errors in Table 6 of V100, A100 and H100 ({len(main)} rows)",
        _ends(main),
    )


def _model(source: Source) -> Iterator[Candidate]:
    table = _table6_errors(source)
    every = [_MEAN(group) for _, group in _groups(source.neusight)]
    yield Candidate(
        f"mean APE end to end, by device and mode ({len(every)} groups)", _ends(every), stated=True
    )
    yield from _both_ways("all rows of Table 6", _ends(list(table.values())))
    others = [value for row, value in table.items() if row.partition(", ")[0] not in _MAIN]
    yield from _both_ways("rows of Table 6 other than V100, A100 and H100", _ends(others))


def _composition(source: Source) -> Iterator[Candidate]:
    part = _with_operators(source.neusight)
    gaps = {}
    for device, group in _groups(part):
        total = group.column("measured_operator_sum").astype(np.float64)
        gaps[device, str(group.column("mode")[0])] = 1 - total / group.measured
    means = [float(gap.mean()) for gap in gaps.values()]
    yield Candidate(
        "measured end-to-end time minus the measured operators, as a share of it, mean by device "
        f"and mode ({len(means)} groups)",
        _ends(means),
        stated=True,
    )
    sizes = [float(np.abs(gap).mean()) for gap in gaps.values()]
    yield from _both_ways("the same, mean of its size without sign", _ends(sizes))
    kernel = [source.number("error_by_level", "kernel, NeuSight", end) for end in ("low", "high")]
    model = [
        source.number("error_by_level", "model, NeuSight, extrapolated", end)
        for end in ("low", "high")
    ]
    yield Candidate(
        "printed model-level range minus printed kernel-level range, end by end",
        (model[0] - kernel[0], model[1] - kernel[1]),
    )


#: Ranges about NeuSight: rows of the text with their two ends, the rules, and a remark.
NEUSIGHT_RANGES: Mapping[tuple[str, str], tuple[_Rules, str]] = {
    (
        "kernel error range on datacentre GPUs, low",
        "kernel error range on datacentre GPUs, high",
    ): (
        _kernel,
        "The embedded table holds sums of operators, not single operators: an error of sums is "
        "smaller than that of their terms where signs differ.",
    ),
    ("model-level error range, low", "model-level error range, high"): (
        _model,
        "This range and the kernel-level one are two parts of the same end-to-end column; neither "
        "is a measurement at kernel level, so their difference is not a composition error.",
    ),
    ("composition error, low", "composition error, high"): (
        _composition,
        "A negative gap means that the operators, timed one by one, take longer than the whole.",
    ),
}


def judge_ranges(
    source: Source, table: str, ranges: Mapping[tuple[str, str], tuple[_Rules, str]]
) -> dict[str, Cell]:
    """Judge the ranges whose ends are rows of their own; returns the cells by row."""
    by_row = {cell.row: cell for cell in source.cells[table]}
    found = {}
    for (low, high), (rules, note) in ranges.items():
        for cell in judge_range(by_row[low], by_row[high], rules(source), note):
            found[cell.row] = cell
    return found


def _claims_at(level: str) -> list[tuple[Claim, tuple[float, float]]]:
    """Return the error that each surveyed tool of a level claims of itself, with its two ends."""
    found = []
    for claim in claims():
        surveyed = not claim.edition.startswith("not in the survey")
        by_authors = claim.claimed_by == "the tool's authors"
        if claim.level == level and claim.kind == "error" and surveyed and by_authors:
            low, high = claim.interval or (np.nan, np.nan)
            if parse_printed(claim.printed).kind == "value":
                low = high = (low + high) / 2
            found.append((claim, (low, high)))
    return found


def _claimed(level: str) -> tuple[list[Candidate], str]:
    """Return what the tools of a level claim, all together, then each printed range alone."""
    known = _claims_at(level)
    everything = (min(low for _, (low, _) in known), max(high for _, (_, high) in known))
    candidates = [
        Candidate(
            f"lowest to highest error that the surveyed tools of this level claim ({len(known)})",
            everything,
            stated=True,
        ),
        *(
            Candidate(f"the range claimed by one tool alone, {claim.tool}", ends)
            for claim, ends in known
            if ends[0] < ends[1]
        ),
    ]
    return candidates, "The survey calls the range representative of the papers and names none."


_NEUSIGHT_ROWS: Mapping[str, _Rules] = {
    "kernel, NeuSight": _kernel,
    "model, NeuSight, extrapolated": _model,
}


def error_by_level(source: Source) -> Iterator[Cell]:
    """Judge the ranges of error by level of abstraction."""
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
            note += f" Claims within it: {', '.join(inside) or 'none'}."
            yield from judge_range(low, high, candidates, note)


def _launch(source: Source, cells: Sequence[PrintedCell]) -> Iterator[Cell]:
    part = _with_operators(source.neusight)
    rest = part.measured - part.column("measured_operator_sum").astype(np.float64)
    per_operator = 1000 * rest / part.column("operators").astype(np.float64)
    low, high = np.quantile(per_operator, [0.25, 0.75])
    for cell in cells:
        yield no_data(
            cell,
            "Needs a trace with launch times. The artifact times operators one by one; what they "
            f"leave of the end-to-end time is {low:.1f} to {high:.1f} us per operator (middle half "
            f"of {part.n} configurations).",
        )
