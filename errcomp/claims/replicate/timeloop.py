"""The Timeloop figures: what follows from the others, and what the tool's own example prints."""

from __future__ import annotations

from collections.abc import Iterator

from errcomp.claims.replicate.judging import Candidate, PrintedCell, Source, judge
from errcomp.claims.replicate.results import Cell

__all__ = ["timeloop"]

_TABLE = "timeloop_resnet50_conv1"
_EXAMPLE = "eyeriss_like, reference output of the example"
_PRINTED = "Computed from printed figures: a check of consistency, not of their truth."
_SHARES = {"DRAM share": "DRAM", "weights SPAD share": "weights_spad", "MAC share": "mac"}

#: Output channels, input channels, kernel height and width, output height and width.
_CONV1 = (64, 3, 7, 7, 112, 112)

#: Clocks in Hz: of Timeloop's own summary line, and of the Eyeriss chip (Chen, Krishna, Emer and
#: Sze 2017, IEEE J. Solid-State Circuits 52(1)). The survey states none.
_CLOCKS = {"1 GHz, as in Timeloop's summary": 1e9, "200 MHz, that of the Eyeriss chip": 2e8}


def timeloop(source: Source) -> Iterator[Cell]:
    """Recompute the energy and latency figures of one layer on an Eyeriss-like accelerator."""
    for cell in source.cells[_TABLE]:
        if cell.row in _SHARES:
            note = f"No output for this layer is published. {_example(source)}"
            yield judge(cell, [_share(source, cell)], note)
        elif cell.row == "processing elements":
            value = source.need("Timeloop", _EXAMPLE, "processing elements", "total")
            rule = "processing elements of Timeloop's eyeriss_like example design"
            yield judge(cell, [Candidate(rule, value, stated=True)])
        else:
            energy = cell.row in ("total energy", "energy per MAC")
            note = f"{_PRINTED} {_example(source)}" if energy else _PRINTED
            yield judge(cell, _consistent(source, cell), note)


def _share(source: Source, cell: PrintedCell) -> Candidate:
    part = source.need("Timeloop", _EXAMPLE, "energy per MAC", _SHARES[cell.row])
    whole = source.need("Timeloop", _EXAMPLE, "energy per MAC", "Total")
    return Candidate(
        "share of the energy in the reference output that comes with the example design, of "
        "another layer",
        part / whole,
    )


def _example(source: Source) -> str:
    """Say how the example's output, of another layer, relates to the printed figures."""
    macs = source.need("Timeloop", _EXAMPLE, "MACs", "total")
    total = source.need("Timeloop", _EXAMPLE, "energy per MAC", "Total")
    conv1 = source.number(_TABLE, "MACs", "value")
    return (
        f"The example that comes with the design ({macs:,.0f} MACs, not {conv1:,.0f}) has "
        f"{total:.2f} fJ per MAC, 5500 when rounded to two digits; times the MACs of this layer "
        f"that is {1e-9 * total * conv1:.2f} uJ."
    )


def _consistent(source: Source, cell: PrintedCell) -> list[Candidate]:
    def printed(row: str) -> float:
        return source.number(_TABLE, row, "value")

    macs, per_mac, cycles = printed("MACs"), printed("energy per MAC"), printed("ideal cycles")
    if cell.row == "total energy":
        return [Candidate("energy per MAC times MACs", 1e-9 * per_mac * macs, stated=True)]
    if cell.row == "energy per MAC":
        rule = "total energy over MACs"
        return [Candidate(rule, 1e9 * printed("total energy") / macs, stated=True)]
    if cell.row == "MACs":
        product = 1.0
        for size in _CONV1:
            product *= size
        return [Candidate("64·3·7·7·112·112, the shape of the layer", product, stated=True)]
    if cell.row == "ideal cycles":
        rule = "MACs over processing elements"
        return [Candidate(rule, macs / printed("processing elements"), stated=True)]
    if cell.row == "data movement to computation":
        mac, dram = printed("MAC share"), printed("DRAM share")
        return [
            Candidate("all energy but that of the MACs, over theirs", (1 - mac) / mac, stated=True),
            Candidate("energy of DRAM alone over that of the MACs", dram / mac),
        ]
    return [
        Candidate(f"ideal cycles, {other}, clock {name}", _latency(source, cell, cycles, clock))
        for name, clock in _CLOCKS.items()
        for other in ("utilisation as printed" if cell.row == "latency" else "latency as printed",)
    ]


def _latency(source: Source, cell: PrintedCell, cycles: float, clock: float) -> float:
    """Return the latency in ms from the utilisation, or the utilisation from the latency."""
    if cell.row == "latency":
        return 1e3 * cycles / (clock * source.number(_TABLE, "utilisation", "value"))
    return cycles / (clock * 1e-3 * source.number(_TABLE, "latency", "value"))
