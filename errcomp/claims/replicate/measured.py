"""What the survey's sentences state about NeuSight's pairs and ASTRA-sim's runs, recomputed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from errcomp.claims.printed import parse_printed
from errcomp.claims.replicate.judging import Candidate, Cell, PrintedCell, Rule, Source, judge, said
from errcomp.claims.replicate.neusight import select
from errcomp.metrics import mape
from errcomp.tables import Pairs

_TABLE6 = "table6_neusight"
_FROM_PRINTED = "This was computed from other printed figures."


# NeuSight's pairs and Table 6.


def _error(pairs: Pairs) -> float:
    return mape(predicted=pairs.predicted, measured=pairs.measured)


def _gpus(vendor: str) -> Rule:
    def rule(source: Source, cell: PrintedCell) -> Cell:
        devices = set(source.neusight.where({"vendor": vendor}).column("device"))
        listed = {c.row.partition(", ")[0] for c in source.cells[_TABLE6]} & devices
        return judge(
            cell,
            [
                Candidate(f"devices of {vendor} among all configurations", len(devices), True),
                Candidate(f"devices of {vendor} in Table 6", len(listed)),
            ],
        )

    return rule


def _lowest_error(source: Source, cell: PrintedCell) -> Cell:
    groups = source.neusight.groups(["device", "mode"])
    errors = {
        (str(group.key["device"]), str(group.key["mode"])): _error(
            source.neusight.take(group.index)
        )
        for group in groups
    }
    device, mode = min(errors, key=lambda key: errors[key])
    by_device = source.neusight.groups(["device"])
    means = {str(g.key["device"]): _error(source.neusight.take(g.index)) for g in by_device}
    best = min(means, key=lambda name: means[name])
    return said(
        cell, device == cell.printed, errors[device, mode], "fraction",
        f"lowest mean APE of a device and mode ({len(errors)} groups): {device}, {mode}",
        f"Over both modes together, the device with the lowest is {best} "
        f"({100 * means[best]:.1f} %).",
    )  # fmt: skip


def _matched(pairs: Pairs, key: str, other: Callable[[object], object]) -> list[tuple[int, int]]:
    """Return rows that differ in one key alone: the index at a value, and at its counterpart."""
    names = ["device", "model", "mode", "seq_len", "batch", "variant"]
    columns = {name: pairs.column(name).tolist() for name in names}
    rows = [tuple(columns[name][i] for name in names) for i in range(pairs.n)]
    at = {row: i for i, row in enumerate(rows)}
    place = names.index(key)
    found = []
    for row, i in at.items():
        counterpart = (*row[:place], other(row[place]), *row[place + 1 :])
        if counterpart in at:
            found.append((i, at[counterpart]))
    return found


def _ratios(pairs: Pairs, matched: list[tuple[int, int]]) -> list[float]:
    errors = np.abs(pairs.predicted - pairs.measured) / pairs.measured
    return [float(errors[j] / errors[i]) for i, j in matched]


def _doubling(source: Source, cell: PrintedCell) -> Cell:
    pairs = source.neusight
    ratios = _ratios(pairs, _matched(pairs, "batch", lambda batch: 2 * float(str(batch))))
    share = sum(ratio >= 2 for ratio in ratios) / len(ratios)
    smaller = sum(ratio < 1 for ratio in ratios)
    return said(
        cell, share > 0.5, share, "fraction",
        f"of the {len(ratios)} cases in which only the batch size doubles, the share in which the "
        "APE at least doubles",
        f"“Often” is taken to mean more than half. In {smaller} cases the APE becomes smaller.",
    )  # fmt: skip


def _fusion(source: Source, cell: PrintedCell) -> Cell:
    pairs = source.neusight
    swap = {"base": "fusion"}
    ratios = _ratios(pairs, _matched(pairs, "variant", lambda variant: swap.get(str(variant))))
    share = sum(ratio > 1 for ratio in ratios) / len(ratios)
    return said(
        cell, share > 0.5, share, "fraction",
        f"share of {len(ratios)} configurations, measured with and without fusion, whose APE is "
        "larger with fusion",
        "The example of the text (H100, GPT-2-Large) is of one configuration, at batch 8.",
    )  # fmt: skip


def _by_mode(pairs: Pairs) -> dict[str, tuple[float, float]]:
    """Return the mean APE of inference and training for each device that has both."""
    errors = {}
    for group in pairs.groups(["device"]):
        part = pairs.take(group.index)
        modes = [select(part, {"mode": mode}) for mode in ("inference", "training")]
        if modes[0] is not None and modes[1] is not None:
            errors[str(group.key["device"])] = (_error(modes[0]), _error(modes[1]))
    return errors


def _training(source: Source, cell: PrintedCell) -> Cell:
    errors = _by_mode(source.neusight.where({"vendor": "AMD"}))
    n = sum(training > inference for inference, training in errors.values())
    rule = f"AMD devices, of {len(errors)}, with a larger mean APE in training than in inference"
    note = "MI210 and MI250 have the same predictions, so they hardly count as two devices."
    return said(cell, n == len(errors), float(n), "count", rule, note)


def _inference(source: Source, cell: PrintedCell) -> Cell:
    errors = _by_mode(source.neusight)
    against = [name for name, (inference, training) in errors.items() if inference >= training]
    printed = {c.row: c.value for c in source.cells[_TABLE6] if c.column == "survey" and c.value}
    both = [name for name in errors if {f"{name}, inference", f"{name}, training"} <= {*printed}]
    figures = ", ".join(
        f"{name} inference {100 * (printed[f'{name}, inference'] or 0):.2f} %, training "
        f"{100 * (printed[f'{name}, training'] or 0):.2f} %"
        for name in both
        if name in against
    )
    rule = (
        f"devices, of {len(errors)} with both modes, whose mean APE is smaller in inference than "
        "in training"
    )
    note = f"Table 6 itself prints the opposite: {figures}." if figures else ""
    return said(cell, not against, float(len(errors) - len(against)), "count", rule, note)


def _moe(source: Source, cell: PrintedCell) -> Cell:
    pairs = source.neusight.where({"variant": "base"})
    logs = np.log(pairs.predicted / pairs.measured)
    moe = np.asarray([model == "switchxl4" for model in pairs.column("model")], dtype=bool)
    ratio = float(np.std(logs[moe], ddof=1) / np.std(logs[~moe], ddof=1))
    models = {
        str(group.key["model"]): float(np.std(logs[group.index], ddof=1))
        for group in pairs.groups(["model"])
    }
    spread = ", ".join(f"{name} {sd:.3f}" for name, sd in models.items())
    return said(
        cell, ratio > 1, ratio, "ratio",
        "standard deviation of ln(predicted / measured) of the mixture-of-experts model, divided "
        "by that of all others",
        f"One model, with {int(moe.sum())} configurations, stands for all mixture-of-experts "
        f"models. Standard deviation by model: {spread}.",
    )  # fmt: skip


def _worst_gap(source: Source, cell: PrintedCell) -> Cell:
    claimed = {c.row: c.value for c in source.cells[_TABLE6] if c.column == "claimed" and c.value}
    ratios = {row: source.number(_TABLE6, row, "survey") / claimed[row] for row in claimed}
    every = "; ".join(f"{row} {ratio:.1f}" for row, ratio in ratios.items() if ratio > 2)
    stated = ratios["T4, inference"]
    return judge(
        cell,
        [
            Candidate("error of T4 divided by its claim (Table 6; P4 has no claim)", stated, True),
            Candidate("largest error divided by its claim in Table 6", max(ratios.values())),
        ],
        f"{_FROM_PRINTED} Rows with a ratio above 2: {every}.",
    )


def _outside(source: Source, cell: PrintedCell) -> Cell:
    survey = {c.row: c.value or 0.0 for c in source.cells[_TABLE6] if c.column == "survey"}
    base = survey["V100, inference"]
    ends = sorted(survey[f"{name}, inference"] / base for name in ("T4", "P4"))
    ratios = [
        survey[c.row] / c.value
        for c in source.cells[_TABLE6]
        if c.column == "claimed" and c.value and survey[c.row] / c.value > 2
    ]
    low, high = (parse_printed(end) for end in cell.printed.split("–"))
    tried = [
        Candidate(
            "inference errors of T4 and P4 in Table 6, each divided by the inference error of V100",
            (ends[0], ends[1]),
            True,
        ),
        Candidate("error over claim in the rows called a mismatch", (min(ratios), max(ratios))),
    ]
    fits = [
        low.contains(rule.value[0]) and high.contains(rule.value[1])
        for rule in tried
        if isinstance(rule.value, tuple)
    ]
    first = tried[0]
    other = (
        "Error divided by claim, in the rows that the survey calls a mismatch: "
        f"{min(ratios):.1f} to {max(ratios):.1f}."
    )
    return said(cell, fits[0], first.value, "ratio", first.rule, f"{_FROM_PRINTED} {other}")


def _composition(source: Source, cell: PrintedCell) -> Cell:
    def ends(row: str) -> tuple[float, float]:
        low, high = (source.number("text_neusight", f"{row}, {end}", "value") for end in _ENDS)
        return low, high

    composed, kernel = ends("composition error"), ends("kernel error range on datacentre GPUs")
    apart = composed[0] > kernel[1]
    return said(
        cell, apart, composed[0] - kernel[1], "fraction",
        "lower end of the printed composition error minus upper end of the printed kernel error",
        f"The ranges overlap ({100 * composed[0]:g} to {100 * composed[1]:g} % and "
        f"{100 * kernel[0]:g} to {100 * kernel[1]:g} %), and neither is reproduced.",
    )  # fmt: skip


_ENDS = ("low", "high")


def _kernel_first(source: Source, cell: PrintedCell) -> Cell:
    levels = [
        source.number("error_by_level", row, end) for row in ("kernel", "kernel, NeuSight")
        for end in _ENDS
    ]  # fmt: skip
    value = (min(levels), max(levels))
    note = f"{_FROM_PRINTED} The range with the higher values is of end-to-end errors."
    figures = [parse_printed(f"{end.strip('%')}%") for end in cell.printed.split("–")]
    holds = all(figure.contains(end) for figure, end in zip(figures, value, strict=True))
    return said(
        cell,
        holds,
        value,
        "fraction",
        "from the lower to the upper end of the two kernel ranges in the text",
        note,
    )


def _growth(source: Source, cell: PrintedCell) -> Cell:
    n = 100
    absolute, relative = math.sqrt(n), math.sqrt(n) / n
    return said(
        cell, math.isclose(relative, absolute), relative, "ratio",
        f"relative error of the sum of {n} equal kernels with independent errors, divided by the "
        f"relative error of one kernel: √{n} / {n}",
        "The absolute error of the sum grows as σ √N, but the sum grows as N, so the relative "
        "error shrinks as 1 / √N. With fully correlated errors, it equals the relative error of "
        "one kernel.",
    )  # fmt: skip


# ASTRA-sim's runs.


def _spread(source: Source, cell: PrintedCell) -> Cell:
    run = "microbench_all_reduce_8npus_1MB"
    value = source.need("ASTRA-sim", run, "exposed communication", "standard deviation")
    return judge(cell, [Candidate(f"standard deviation that the log {run} prints", value, True)])


def _scaling(source: Source, cell: PrintedCell) -> Cell:
    scaled = source.number("table7_astrasim", "communication scaling 4 to 8 GPUs", "ratio")
    ring = source.number("table7_astrasim", "ring formula 2(N-1)/N, 4 to 8", "ratio")
    return said(
        cell,
        math.isclose(scaled, ring, rel_tol=0.05),
        scaled / ring,
        "ratio",
        f"printed growth of the communication ({scaled:g}), divided by the growth by the ring "
        f"formula ({ring:g})",
        "The same section says both that the communication scales as expected and that it exceeds "
        "the formula.",
    )


def _overheads(source: Source) -> dict[int, float]:
    column = "communication overhead, % of wall time"
    return {
        n: source.number("table7_astrasim", f"ResNet-50 data parallel, {n} GPUs", column)
        for n in (2, 4, 8)
    }


def _superlinear(source: Source, cell: PrintedCell) -> Cell:
    overheads = _overheads(source)
    return said(
        cell, overheads[8] / overheads[2] > 4, overheads[8] / overheads[2], "ratio",
        "printed overhead at 8 GPUs divided by that at 2 GPUs; a linear overhead would give 4",
        _FROM_PRINTED,
    )  # fmt: skip


def _below(source: Source, cell: PrintedCell) -> Cell:
    run = "resnet50_hgx_h100_8gpu_8npus"
    share = source.need("ASTRA-sim", run, "exposed communication") / source.need(
        "ASTRA-sim", run, "wall time"
    )
    limit = parse_printed(cell.printed.replace("below ", ""))
    found = said(
        cell, share < (limit.value or 0.0), share, "fraction",
        "exposed communication divided by wall time, both from the log",
        "Table 7 prints 0.30 % for it.",
    )  # fmt: skip
    return replace(found, decimals=limit.decimals)


def _sizes(source: Source, cell: PrintedCell) -> Cell:
    names = ("resnet50_hgx_h100_4gpu_4npus", "resnet50_hgx_h100_8gpu_8npus")
    n = sorted(source.need("ASTRA-sim", name, "NPUs finished", "count") for name in names)
    holds = cell.printed == f"{n[0]:g}–{n[-1]:g}"
    return said(
        cell, holds, (n[0], n[-1]), "count", "number of NPUs in the logs of finished runs",
        "There is no log of a run on 2 GPUs. The log whose name says 16 NPUs is of 8 NPUs.",
    )  # fmt: skip


#: The rule of each statement, by its name.
MEASURED: Mapping[str, Rule] = {
    "NVIDIA GPUs of NeuSight": _gpus("NVIDIA"),
    "AMD GPUs of NeuSight": _gpus("AMD"),
    "GPUs of ASTRA-sim's runs": _sizes,
    "device with the lowest error": _lowest_error,
    "error after doubling the batch size": _doubling,
    "error of fused kernels": _fusion,
    "training error on AMD devices": _training,
    "error on T4 and P4 over the claim, at most": _worst_gap,
    "error outside the training distribution, times": _outside,
    "spread of the cycles across NPUs": _spread,
    "communication from 4 to 8 GPUs": _scaling,
    "communication overhead": _superlinear,
    "communication overhead at 8 GPUs": _below,
    "inference against training": _inference,
    "prediction variance of MoE models": _moe,
    "composition error": _composition,
    "kernel-level error, first edition": _kernel_first,
    "relative error of a model": _growth,
}
