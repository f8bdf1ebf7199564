"""The NeuSight artifact as one table: a row per configuration and predictor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from errcomp.datasets._artifact import COMMIT, LICENCE, REFERENCE, SOURCE, csv_file, read_artifact
from errcomp.datasets._spec import Column, DatasetSpec

__all__ = ["SPEC", "build"]

_FILE = "neusight.csv"
_COLUMNS = {
    "tool": Column("text", "predictor: neusight, habitat, micro (Li et al.) or roofline"),
    "level": Column("text", "always model: one forward pass, or one training step"),
    "device": Column("text", "short name of the device"),
    "vendor": Column("text", "NVIDIA or AMD"),
    "model": Column("text", "network, as the artifact names it"),
    "mode": Column("text", "inference or training"),
    "seq_len": Column("integer", "sequence length", "tokens"),
    "batch": Column("integer", "batch size, over all devices", "sequences"),
    "variant": Column("text", "base, fusion (fused operators), or spread: dp4, tp4, pp4_1"),
    "devices": Column("integer", "number of devices"),
    "layers": Column("integer", "number of transformer layers"),
    "in_training": Column("boolean", "NeuSight was trained on this device (its rows only)"),
    "in_distribution": Column("boolean", "the authors count it as seen: device and network"),
    "measured_ms": Column("number", "measured end-to-end latency", "ms"),
    "predicted_ms": Column("number", "predicted end-to-end latency", "ms"),
    "operators": Column("integer", "computing operators, layers repeated"),
    "operator_rows": Column("integer", "computing operators in the trace"),
    "measured_operator_sum_ms": Column("number", "sum of their measured latencies", "ms"),
    "predicted_operator_sum_ms": Column("number", "sum of their predicted latencies", "ms"),
    "predicted_communication_ms": Column("number", "predicted latency less that sum", "ms"),
    "sum_rule": Column("text", "how operators and communication make up predicted_ms"),
    "device_name": Column("text", "folder of the device in the artifact"),
}
_PAIRS = {
    "measured": "measured_ms",
    "predicted": "predicted_ms",
    "measured_operator_sum": "measured_operator_sum_ms",
    "predicted_operator_sum": "predicted_operator_sum_ms",
    "predicted_communication": "predicted_communication_ms",
}


def build(source: Path) -> Mapping[str, bytes]:
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
    files = {new: old for old, new in _PAIRS.items()}
    frame = read_artifact(source).pairs.native
    rows = frame.select([files.get(name, name) for name in _COLUMNS]).iter_rows()
    return {_FILE: csv_file(_COLUMNS, rows)}


SPEC = DatasetSpec(
    title="Predicted and measured latencies of the NeuSight artifact (ASPLOS'25)",
    source=SOURCE,
    commit=COMMIT,
    licence=LICENCE,
    reference=REFERENCE,
    tables={_FILE: _COLUMNS},
    build=build,
    holds="pairs",
    columns=_PAIRS,
    unit="ms",
    subject="neusight",
)
