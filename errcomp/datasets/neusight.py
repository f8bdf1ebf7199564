"""The NeuSight artifact as a table of pairs and a table of kernels."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.datasets._spec import Column, DatasetSpec
from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.readers.learned.neusight import NeusightArtifact

SOURCE = "https://github.com/sitar-lab/NeuSight"
COMMIT = "6945927d9afcca2b9daf021f8395e53edc5b4eef"
LICENCE = "MIT, Copyright (c) 2025 Georgia Institute of Technology and Microsoft Corporation"
REFERENCE = (
    "Lee, Phanishayee and Mahajan (2025), Forecasting GPU Performance for Deep Learning "
    "Training and Inference, ASPLOS 2025, doi:10.1145/3669940.3707265"
)


def read_artifact(source: Path, predictors: Sequence[str] | None = None) -> NeusightArtifact:
    """Read the artifact, for all or some predictors; raise if a check fails.

    Raises
    ------
    InputError
        The artifact cannot be read, or a check of ``errcomp.readers.learned.neusight`` failed.
    """
    from errcomp.readers.learned import neusight

    artifact = neusight.read(source, predictors=predictors)
    failed = artifact.report.failed_checks
    if failed:
        shown = "; ".join(f"{f.where}: {f.check} ({f.detail})" for f in failed[:3])
        raise InputError(
            f"{source}: {len(failed)} check{'s' * (len(failed) > 1)} failed, so no table is built: "
            f"{shown}. "
            "See `errcomp ingest neusight` for all checks."
        )
    return artifact


def csv_file(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a CSV file: LF, missing values empty, numbers with all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _field(value: Any) -> str:
    if value is None:
        return ""
    # str of a float gives the shortest digits that read back as the same number.
    return str(value).lower() if isinstance(value, bool) else str(value)


# One row per configuration and predictor.

_PAIRS_FILE = "neusight.csv"
_PAIRS_COLUMNS = {
    "tool": Column("text", "predictor: neusight, habitat, micro (Li et al.) or roofline"),
    "level": Column("text", "always model: one forward pass, or one training step"),
    "device": Column("text", "short name of the device"),
    "vendor": Column("text", "NVIDIA or AMD"),
    "model": Column("text", "network, as the artifact names it"),
    "mode": Column("text", "inference or training"),
    "seq_len": Column("integer", "sequence length", "tokens"),
    "batch": Column("integer", "batch size, over all devices", "sequences"),
    "variant": Column(
        "text",
        "base; fusion (fused operators); or distributed: dp4 (data parallel), tp4 (tensor "
        "parallel), pp4_1 (pipeline parallel)",
    ),
    "devices": Column("integer", "number of devices"),
    "layers": Column("integer", "number of transformer layers"),
    "in_training": Column(
        "boolean", "whether NeuSight was trained on this device (only in rows of NeuSight)"
    ),
    "in_distribution": Column(
        "boolean", "whether the authors count both device and network as in distribution"
    ),
    "measured_ms": Column("number", "measured end-to-end latency", "ms"),
    "predicted_ms": Column("number", "predicted end-to-end latency", "ms"),
    "operators": Column("integer", "number of compute operators in a run, over all layers"),
    "operator_rows": Column("integer", "number of compute operators that the trace lists"),
    "measured_operator_sum_ms": Column("number", "sum of the operators' measured latencies", "ms"),
    "predicted_operator_sum_ms": Column(
        "number", "sum of the operators' predicted latencies", "ms"
    ),
    "predicted_communication_ms": Column(
        "number", "predicted_ms minus predicted_operator_sum_ms", "ms"
    ),
    "sum_rule": Column("text", "how predicted_ms is computed from operators and communication"),
    "device_name": Column("text", "folder of the device in the artifact"),
}
_NAMES = {
    "measured": "measured_ms",
    "predicted": "predicted_ms",
    "measured_operator_sum": "measured_operator_sum_ms",
    "predicted_operator_sum": "predicted_operator_sum_ms",
    "predicted_communication": "predicted_communication_ms",
}


def build_pairs(source: Path) -> Mapping[str, bytes]:
    """Derive the table from the artifact.

    Parameters
    ----------
    source : Path
        Root of the artifact, or its ``scripts/asplos``.

    Returns
    -------
    mapping of str to bytes
        The CSV file: rows ordered by tool and configuration, numbers with all their digits.

    Raises
    ------
    InputError
        The artifact cannot be read, or does not check out (see
        ``errcomp.readers.learned.neusight``).
    """
    files = {new: old for old, new in _NAMES.items()}
    frame = read_artifact(source).pairs.native
    rows = frame.select([files.get(name, name) for name in _PAIRS_COLUMNS]).iter_rows()
    return {_PAIRS_FILE: csv_file(_PAIRS_COLUMNS, rows)}


# One row per operator of a run, predicted and measured.

_KERNELS_FILE = "neusight-kernels.csv"
_KERNELS_COLUMNS = {
    "run": Column("text", "device/model/mode/seq_len/batch"),
    "device": Column("text", "short name of the device"),
    "model": Column("text", "network, as the artifact names it"),
    "mode": Column("text", "inference or training"),
    "seq_len": Column("integer", "sequence length", "tokens"),
    "batch": Column("integer", "batch size", "sequences"),
    "kernel": Column(
        "text", "operator; of several merged into a row, the one that takes the most time"
    ),
    "kernel_class": Column("text", "class of the operator, as the predictor names it"),
    "shape": Column("text", "shape of the operator's output"),
    "phase": Column("text", "part of the run: forward or backward"),
    "phase_measured": Column(
        "number", "measured latency of this phase; missing where a run is one phase", "ms"
    ),
    "count": Column(
        "integer", "executions in the run, of all layers and all operators merged into the row"
    ),
    "predicted": Column("number", "predicted latency of one execution in this phase", "ms"),
    "measured": Column(
        "number", "measured latency of one execution in this phase, mean over all executions", "ms"
    ),
    "run_measured": Column("number", "measured end-to-end latency of the run", "ms"),
}
_RUN = ("device", "model", "mode", "seq_len", "batch")
#: Input and output of the predictor: operators of a phase that agree in them are merged.
_SAME = (*_RUN, "kernel_class", "shape", "phase", "predicted")
#: Decimals of measured times in ms: 0.1 ns, finer than timers resolve.
_DECIMALS = 7


def build_kernels(source: Path) -> Mapping[str, bytes]:
    r"""Derive the table from the artifact.

    Operators of a phase of a run that look the same to the predictor (equal class, output shape
    and predicted latency) are merged into one row, with

    .. math:: c = \sum_i c_i, \qquad m = \sum_i c_i m_i / c

    for counts c and measured latencies m. Operators predicted 0 and measured 0 are left out.

    Parameters
    ----------
    source : Path
        Root of the artifact, or its ``scripts/asplos``.

    Returns
    -------
    mapping of str to bytes
        The CSV file: runs in the order of the artifact, operators in the order of the trace.

    Raises
    ------
    InputError
        The artifact cannot be read, does not check out (see ``errcomp.readers.learned.neusight``),
        or holds no measured operators.
    """
    import polars as pl

    kernels = read_artifact(source, ["neusight"]).kernels_of("neusight").native
    # A run has all operators measured or none; fused and spread runs have other operators.
    kernels = kernels.filter((pl.col("variant") == "base") & pl.col("measured").is_not_null())
    if kernels.is_empty():
        raise InputError(
            f"{source}: no operators were measured. Give the artifact with the CSV files in label/."
        )
    count, measured = pl.col("count"), pl.col("measured")
    table = (
        kernels.filter((pl.col("predicted") > 0) | (measured > 0))
        .group_by(_SAME, maintain_order=True)
        .agg(
            # The row is named after the operator with most of its time.
            pl.col("kernel")
            .sort_by(count * measured, descending=True, maintain_order=True)
            .first(),
            pl.col("run_measured", "phase_measured").first(),
            count=count.sum(),
            measured=((count * measured).sum() / count.sum()).round(_DECIMALS),
        )
        .with_columns(
            run=pl.concat_str(*_RUN, separator="/"),
            # (2, 2048) as 2x2048: avoids quotes in the file.
            shape=pl.col("shape").str.extract_all(r"\d+").list.join("x"),
        )
    )
    return {_KERNELS_FILE: csv_file(_KERNELS_COLUMNS, table.select(*_KERNELS_COLUMNS).iter_rows())}


#: The datasets by name.
SPECS = {
    "neusight": DatasetSpec(
        title="Predicted and measured latencies of the NeuSight artifact (ASPLOS'25)",
        source=SOURCE,
        commit=COMMIT,
        licence=LICENCE,
        reference=REFERENCE,
        tables={_PAIRS_FILE: _PAIRS_COLUMNS},
        build=build_pairs,
        holds="pairs",
        columns=_NAMES,
        unit="ms",
        subject="neusight",
    ),
    "neusight-kernels": DatasetSpec(
        title="Kernels of 87 runs of the NeuSight artifact (ASPLOS'25), predicted and measured",
        source=SOURCE,
        commit=COMMIT,
        licence=LICENCE,
        reference=REFERENCE,
        tables={_KERNELS_FILE: _KERNELS_COLUMNS},
        build=build_kernels,
        holds="kernels",
        unit="ms",
    ),
}
