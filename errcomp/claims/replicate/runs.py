"""Table 7 (ASTRA-sim), Table 8 (VIDUR) and the Timeloop figures, from the tools' output."""

from __future__ import annotations

from collections.abc import Iterator

from errcomp.claims.replicate.judging import Candidate, Cell, PrintedCell, Source, judge, no_data
from errcomp.readers.learned.survey import QUANTILE_RULES

_PRINTED = (
    "This was computed from other printed figures; it checks whether the printed figures agree, "
    "not whether they are true."
)
_ALL_REDUCE = "All-Reduce, 8 NPUs 1 MB"
_RING_STEPS = "2(N-1)/N"


def table7(source: Source) -> Iterator[Cell]:
    """Recompute cycles from logs if available, and every ratio."""
    for cell in source.cells["table7_astrasim"]:
        if cell.column == "cycles":
            yield _cycles(source, cell)
        elif cell.row.startswith("ResNet-50"):
            yield _overhead(source, cell)
        else:
            yield judge(cell, [_ratio(source, cell)], _PRINTED)


def _log(row: str) -> str:
    """Return the name of the log of a row; empty if the survey's repository does not have it."""
    if row == _ALL_REDUCE:
        return "microbench_all_reduce_8npus_1MB"
    gpus = row.rpartition(", ")[2].removesuffix(" GPUs")
    return f"resnet50_hgx_h100_{gpus}gpu_{gpus}npus" if row.startswith("ResNet-50") else ""


def _cycles(source: Source, cell: PrintedCell) -> Cell:
    log = _log(cell.row)
    value = source.run("ASTRA-sim", log, "exposed communication")
    if value is None:
        return no_data(cell, "The survey's repository holds no log of this run.")
    spread = source.need("ASTRA-sim", log, "exposed communication", "standard deviation")
    npus = source.need("ASTRA-sim", log, "NPUs finished", "count")
    rule = f"exposed communication in the log, mean of {npus:g} NPUs"
    return judge(
        cell,
        [Candidate(rule, value, stated=True)],
        f"Standard deviation across NPUs {spread:g}. Simulated, not measured.",
    )


def _overhead(source: Source, cell: PrintedCell) -> Cell:
    exposed = source.run("ASTRA-sim", _log(cell.row), "exposed communication")
    if exposed is not None:
        wall = source.need("ASTRA-sim", _log(cell.row), "wall time")
        rule = "exposed communication divided by wall time, both from the log"
        return judge(cell, [Candidate(rule, exposed / wall, stated=True)])
    compute = source.need("ASTRA-sim", _log("ResNet-50, 8 GPUs"), "compute time")
    printed = source.number("table7_astrasim", cell.row, "cycles")
    rule = (
        "printed cycles, divided by the sum of printed cycles and the compute time in the "
        "logs of 4 and 8 GPUs"
    )
    return judge(
        cell,
        [Candidate(rule, printed / (printed + compute))],
        "There is no log of this run, so the compute time is that of the other two runs, whose "
        "logs agree. The cycles are a printed figure.",
    )


def _ratio(source: Source, cell: PrintedCell) -> Candidate:
    def cycles(row: str) -> float:
        return source.number("table7_astrasim", row, "cycles")

    if cell.row.startswith("ring formula"):
        # A ring all-reduce of one message over N devices sends 2(N - 1)/N of it per device.
        return Candidate(
            f"{_RING_STEPS} for N = 8, divided by {_RING_STEPS} for N = 4",
            (14 / 8) / (6 / 4),
            stated=True,
        )
    if cell.row.startswith("communication scaling"):
        eight, four = (cycles(f"ResNet-50 data parallel, {n} GPUs") for n in (8, 4))
        return Candidate("cycles at 8 GPUs divided by cycles at 4 GPUs", eight / four, stated=True)
    return Candidate(
        "cycles divided by the cycles of all-reduce",
        cycles(cell.row) / cycles(_ALL_REDUCE),
        stated=True,
    )


_MEANS = {"Avg E2E latency": "E2E latency", "Avg TTFT": "TTFT", "Avg TPOT": "TPOT"}
_PREEMPTED = "requests with preemption time above 0"


def table8(source: Source) -> Iterator[Cell]:
    """Recompute the serving metrics from the requests of the two simulated runs."""
    for cell in source.cells["table8_vidur"]:
        run = cell.column
        if cell.row.startswith("E2E lower"):
            yield judge(cell, _difference(source), same_load(source))
        elif cell.row == "P99 E2E latency":
            yield judge(cell, _quantiles(source, run), _quantile_note(source, run))
        elif cell.row == "P99/mean":
            mean = source.need("VIDUR", run, "E2E latency")
            yield judge(cell, _quantiles(source, run, over=mean))
        else:
            yield judge(cell, [_serving(source, cell)], _serving_note(source, cell))


def _serving(source: Source, cell: PrintedCell) -> Candidate:
    run = cell.column
    if cell.row in _MEANS:
        name = _MEANS[cell.row]
        return Candidate(f"mean {name} of the requests", source.need("VIDUR", run, name), True)
    if cell.row == "Requests":
        return Candidate("requests", source.need("VIDUR", run, "requests", "count"), True)
    count = source.need("VIDUR", run, _PREEMPTED, "count")
    if cell.row == "Preempted requests":
        return Candidate(_PREEMPTED, count, True)
    share = count / source.need("VIDUR", run, "requests", "count")
    return Candidate(f"{_PREEMPTED}, as a share of all", share, True)


def _serving_note(source: Source, cell: PrintedCell) -> str:
    if cell.row == "Requests" and cell.column == "sarathi":
        return same_load(source)
    if not cell.row.startswith("Preempted"):
        return "Simulated, not measured."
    restarted = source.need("VIDUR", cell.column, "requests restarted", "count")
    return f"Requests that were restarted: {restarted:g}. Simulated, not measured."


def _quantiles(source: Source, run: str, *, over: float = 1.0) -> list[Candidate]:
    """Return the P99 under every rule of numpy.quantile; its default is the implied rule."""
    name = (
        "P99 latency of the requests"
        if over == 1
        else ("P99 latency divided by the mean latency of the requests")
    )
    return [
        Candidate(
            f"{name}, quantile rule {rule!r}",
            source.need("VIDUR", run, "P99 E2E latency", rule) / over,
            stated=rule == QUANTILE_RULES[0],
        )
        for rule in QUANTILE_RULES
    ]


def _quantile_note(source: Source, run: str) -> str:
    values = [source.need("VIDUR", run, "P99 E2E latency", rule) for rule in QUANTILE_RULES]
    n = source.need("VIDUR", run, "requests", "count")
    return (
        f"Only the few slowest of {n:g} requests determine the P99: the {len(values)} methods of "
        f"numpy.quantile give {min(values):.3f} to {max(values):.3f} s."
    )


def _difference(source: Source) -> list[Candidate]:
    def printed(run: str) -> float:
        return source.number("table8_vidur", "Avg E2E latency", run)

    below = {
        run: source.need("VIDUR", "sarathi below vllm", "E2E latency", f"share of {run}")
        for run in ("vllm", "sarathi")
    }
    vllm, sarathi = printed("vllm"), printed("sarathi")
    return [
        Candidate(
            "difference of the mean latencies, divided by the mean latency of vLLM",
            below["vllm"],
            stated=True,
        ),
        Candidate(
            "difference of the mean latencies as printed (rounded), divided by the mean latency of "
            "vLLM",
            1 - sarathi / vllm,
        ),
        Candidate(
            "difference of the mean latencies, divided by the mean latency of Sarathi",
            below["sarathi"],
        ),
        Candidate(
            "difference of the mean latencies as printed (rounded), divided by the mean "
            "latency of Sarathi",
            vllm / sarathi - 1,
        ),
    ]


def same_load(source: Source) -> str:
    """Compare Sarathi and vLLM on the requests that both runs served."""
    shared = source.need("VIDUR", "sarathi", "requests", "count")
    first = f"vllm, its first {shared:g} requests"
    vllm = source.need("VIDUR", first, "E2E latency")
    sarathi = source.need("VIDUR", "sarathi", "E2E latency")
    same = source.need("VIDUR", first, "requests as long as those of sarathi", "count")
    return (
        "The runs of VIDUR with the schedulers Sarathi and vLLM differ in load. Sarathi served "
        f"only the first {shared:g} requests of vLLM's run, which have fewer tokens than the "
        f"average request; {same:g} of these {shared:g} have the same number of tokens in both "
        f"runs. On these {shared:g} requests, Sarathi's mean latency is "
        f"{100 * (1 - sarathi / vllm):.1f} % lower than vLLM's."
    )


# The Timeloop figures: those that follow from others, and those of the tool's own example.


_TABLE = "timeloop_resnet50_conv1"
_EXAMPLE = "eyeriss_like, reference output of the example"
_SHARES = {"DRAM share": "DRAM", "weights SPAD share": "weights_spad", "MAC share": "mac"}

#: Output channels, input channels, kernel height and width, output height and width.
_CONV1 = (64, 3, 7, 7, 112, 112)

#: Clocks in Hz: of Timeloop's own summary line, and of the Eyeriss chip (Chen, Krishna, Emer and
#: Sze 2017, IEEE J. Solid-State Circuits 52(1)). The survey does not state its clock.
_CLOCKS = {"1 GHz, as in Timeloop's summary": 1e9, "200 MHz, as in the Eyeriss chip": 2e8}


def timeloop(source: Source) -> Iterator[Cell]:
    """Recompute the energy and latency figures of one layer on an Eyeriss-like accelerator."""
    for cell in source.cells[_TABLE]:
        if cell.row in _SHARES:
            note = f"No Timeloop output for this layer is published. {_example(source)}"
            yield judge(cell, [_share(source, cell)], note)
        elif cell.row == "processing elements":
            value = source.need("Timeloop", _EXAMPLE, "processing elements", "total")
            rule = "number of processing elements in Timeloop's eyeriss_like example design"
            yield judge(cell, [Candidate(rule, value, stated=True)])
        else:
            energy = cell.row in ("total energy", "energy per MAC")
            note = f"{_PRINTED} {_example(source)}" if energy else _PRINTED
            yield judge(cell, _consistent(source, cell), note)


def _share(source: Source, cell: PrintedCell) -> Candidate:
    part = source.need("Timeloop", _EXAMPLE, "energy per MAC", _SHARES[cell.row])
    whole = source.need("Timeloop", _EXAMPLE, "energy per MAC", "Total")
    return Candidate(
        "share of the energy, from the reference output of the example design (for another layer)",
        part / whole,
    )


def _example(source: Source) -> str:
    """Compare the example's output, for another layer, with the printed figures."""
    macs = source.need("Timeloop", _EXAMPLE, "MACs", "total")
    total = source.need("Timeloop", _EXAMPLE, "energy per MAC", "Total")
    conv1 = source.number(_TABLE, "MACs", "value")
    return (
        f"Timeloop's example for this design computes another layer, with {macs:,.0f} MACs instead "
        f"of {conv1:,.0f}. The example needs {total:.2f} fJ per MAC (5500 if rounded to two "
        f"digits), which gives {1e-9 * total * conv1:.2f} uJ for the survey's layer."
    )


def _consistent(source: Source, cell: PrintedCell) -> list[Candidate]:
    def printed(row: str) -> float:
        return source.number(_TABLE, row, "value")

    macs, per_mac, cycles = printed("MACs"), printed("energy per MAC"), printed("ideal cycles")
    if cell.row == "total energy":
        return [Candidate("energy per MAC times MACs", 1e-9 * per_mac * macs, stated=True)]
    if cell.row == "energy per MAC":
        rule = "total energy divided by MACs"
        return [Candidate(rule, 1e9 * printed("total energy") / macs, stated=True)]
    if cell.row == "MACs":
        product = 1.0
        for size in _CONV1:
            product *= size
        return [Candidate("64·3·7·7·112·112, the shape of the layer", product, stated=True)]
    if cell.row == "ideal cycles":
        rule = "MACs divided by processing elements"
        return [Candidate(rule, macs / printed("processing elements"), stated=True)]
    if cell.row == "data movement to computation":
        mac, dram = printed("MAC share"), printed("DRAM share")
        return [
            Candidate(
                "energy of everything except the MACs, divided by the energy of the MACs",
                (1 - mac) / mac,
                stated=True,
            ),
            Candidate("energy of DRAM alone, divided by the energy of the MACs", dram / mac),
        ]
    return [
        Candidate(
            f"from the ideal cycles, the {other}, and a clock of {name}",
            _latency(source, cell, cycles, clock),
        )
        for name, clock in _CLOCKS.items()
        for other in ("utilisation as printed" if cell.row == "latency" else "latency as printed",)
    ]


def _latency(source: Source, cell: PrintedCell, cycles: float, clock: float) -> float:
    """Return the latency in ms from the utilisation, or the utilisation from the latency."""
    if cell.row == "latency":
        return 1e3 * cycles / (clock * source.number(_TABLE, "utilisation", "value"))
    return cycles / (clock * 1e-3 * source.number(_TABLE, "latency", "value"))
