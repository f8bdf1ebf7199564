"""Datasets measured by the project: tables of the collectors in ``benchmarks``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from errcomp.datasets._spec import Column, DatasetSpec, Holds
from errcomp.errors import InputError

_PROTOCOL = "protocol.json"
COLUMNS: Mapping[str, Column] = {
    "run": Column("text", "what ran: model, shape of its input, variant"),
    "device": Column(
        "text", "GPU, or processor with family and model number if the name does not contain them"
    ),
    "model": Column("text", "network"),
    "mode": Column("text", "inference (one forward pass) or training (one step)"),
    "batch": Column("integer", "batch size"),
    "input": Column("text", "shape of the input"),
    "variant": Column("text", "how the network was optimised or run"),
    "version": Column("text", "release of the framework"),
    "kernel": Column(
        "text", "operator or GPU kernel, with the shapes of its inputs and its output"
    ),
    "kernel_class": Column("text", "operator, on a GPU the one that launched the kernel"),
    "shape": Column("text", "shape of the operator's output, where the profiler records it"),
    "count": Column(
        "integer", "executions per run, of all operators with this type and these shapes"
    ),
    "measured": Column("number", "profiled latency of one execution, mean over processes", "ms"),
    "measured_spread": Column("number", "coefficient of variation of `measured` over processes"),
    "run_measured": Column(
        "number", "end-to-end latency without profiler, mean over processes", "ms"
    ),
    "profiled_run": Column(
        "number", "end-to-end latency while profiled, by the caller's clock", "ms"
    ),
    "profiled_model_run": Column(
        "number", "end-to-end latency while profiled, by the profiler's clock", "ms"
    ),
    "run_spread": Column("number", "coefficient of variation of `run_measured` over processes"),
}

_ALL = tuple(COLUMNS.items())
_COUNT = [*COLUMNS].index("count")
#: Columns of a table whose runs have phases.
PHASED_COLUMNS: Mapping[str, Column] = {
    **dict(_ALL[:_COUNT]),
    "phase": Column("text", "part of the run: forward, backward or optimizer"),
    "phase_measured": Column(
        "number",
        "latency of this phase without profiler, mean over processes; missing where a run is one "
        "phase or one CUDA graph",
        "ms",
    ),
    **dict(_ALL[_COUNT:]),
}


#: Columns of the release histories.
HISTORY_COLUMNS: Mapping[str, Column] = {
    "level": Column(
        "text",
        "kernel: an operator; operators: all of a network; run: the network; composition or model: "
        "the network, predicted from its operators in this release or in the first",
    ),
    "series": Column("text", "network/input; for kernels, also the operator with its shapes"),
    "model": Column("text", "network"),
    "kernel_class": Column("text", "operator, on a GPU the one that launched the kernel"),
    "version": Column("text", "release of the framework"),
    "released": Column("text", "day on which the release's files were built"),
    "predicted": Column(
        "number", "latency predicted by the model frozen at the first release", "ms"
    ),
    "measured": Column(
        "number", "measured latency: latency in the first release × change since then", "ms"
    ),
    "measured_spread": Column(
        "number", "standard deviation of the log change over pairs of processes"
    ),
    "n_repeats": Column("integer", "number of pairs of processes that give the change"),
}


def _spec(
    name: str,
    title: str,
    script: str,
    software: str,
    holds: Holds = "kernels",
    columns: Mapping[str, Column] = COLUMNS,
) -> DatasetSpec:
    """Return the dataset of a software that a script of ``benchmarks`` collects."""
    file = f"{name}.csv"
    collected = f"{holds}.csv"
    return DatasetSpec(
        title=title,
        source=f"measured by errcomp, benchmarks/{script}",
        commit="see protocol.json",
        licence="MIT, Copyright (c) 2026 the errcomp developers",
        reference=f"{software}; versions, machine, dates and protocol are in protocol.json",
        tables={file: columns},
        build=_builder(file, collected, columns),
        holds=holds,
        unit="ms",
    )


def _builder(
    file: str, collected: str, columns: Mapping[str, Column]
) -> Callable[[Path], Mapping[str, bytes]]:
    def build(source: Path) -> Mapping[str, bytes]:
        """Check and return the files of a collector, or of its runs on several devices."""
        folders = sorted(path.parent for path in source.glob(f"*/{collected}"))
        if (source / collected).exists() or not folders:
            content, _, protocol = _collected(source, collected, columns)
            return {file: content.encode(), _PROTOCOL: protocol.encode()}
        tables, protocols, devices = [], {}, set[str]()
        for folder in folders:
            content, device, protocol = _collected(folder, collected, columns)
            if device in devices:
                raise InputError(
                    f"{folder}: {device} is measured in another folder of {source}, too. Keep one "
                    "folder for each device."
                )
            devices.add(device)
            tables.append(_named_by(device, content))
            protocols[f"protocol-{folder.name}.json"] = protocol.encode()
        rows = "".join(table.partition("\n")[2] for table in tables)
        header = tables[0].partition("\n")[0]
        return {file: f"{header}\n{rows}".encode(), **protocols}

    return build


def _collected(source: Path, collected: str, columns: Mapping[str, Column]) -> tuple[str, str, str]:
    """Return the table, the device and the protocol of one run of a collector."""
    content, protocol = _read(source / collected), _read(source / _PROTOCOL)
    header = content.partition("\n")[0].split(",")
    if header != [*columns]:
        raise InputError(
            f"{source / collected}: its columns are not those that the script in benchmarks/ "
            f"writes: got {', '.join(header)[:80]!r}. Rerun the script in benchmarks/."
        )
    try:
        known = json.loads(protocol)
    except ValueError as error:
        raise InputError(
            f"{source / _PROTOCOL}: not valid JSON ({error}). Rerun the script in benchmarks."
        ) from error
    if "pieces" not in known:
        raise InputError(
            f"{source / _PROTOCOL}: parts of the measurement are missing. Rerun the script in "
            "benchmarks: it measures only the missing parts."
        )
    return content, str(known.get("device", "")), protocol


def _named_by(device: str, content: str) -> str:
    """Return a table whose runs, its first column, also name their device."""
    header, *rows = csv.reader(io.StringIO(content))
    named = io.StringIO()
    writer = csv.writer(named, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{device}/{run}", *rest] for run, *rest in rows)
    return named.getvalue()


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}). Give the folder that a script in "
            "benchmarks wrote."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid UTF-8. Rerun the script in benchmarks.") from error


#: The datasets by name.
SPECS = {
    "ort-cpu": _spec(
        "ort-cpu",
        "Small networks in ONNX Runtime on one CPU core: operators and runs, measured",
        "collect_ort.py",
        "ONNX Runtime",
    ),
    "torch-cpu": _spec(
        "torch-cpu",
        "Twelve small networks in PyTorch on one CPU core: operators, phases and runs, measured",
        "collect_torch.py",
        "PyTorch",
        columns=PHASED_COLUMNS,
    ),
    "torch-cuda": _spec(
        "torch-cuda",
        "Twelve networks in PyTorch on two GPUs, eager and as CUDA graphs: kernels, phases and "
        "runs, measured",
        "collect_torch.py --device cuda",
        "PyTorch",
        columns=PHASED_COLUMNS,
    ),
    "ort-releases": _spec(
        "ort-releases",
        "Small networks in every release of ONNX Runtime, against a model frozen at the first "
        "release",
        "longitudinal_ort.py and freeze_ort.py",
        "ONNX Runtime",
        "history",
        HISTORY_COLUMNS,
    ),
}
