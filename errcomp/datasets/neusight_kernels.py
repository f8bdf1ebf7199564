"""The operators of the NeuSight artifact, predicted and measured, as a table of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from errcomp.datasets._artifact import COMMIT, LICENCE, REFERENCE, SOURCE, csv_file, read_artifact
from errcomp.datasets._spec import Column, DatasetSpec
from errcomp.errors import InputError

__all__ = ["SPEC", "build"]

_FILE = "neusight-kernels.csv"
_COLUMNS = {
    "run": Column("text", "device/model/mode/seq_len/batch"),
    "device": Column("text", "short name of the device"),
    "model": Column("text", "network, as the artifact names it"),
    "mode": Column("text", "inference or training"),
    "seq_len": Column("integer", "sequence length", "tokens"),
    "batch": Column("integer", "batch size", "sequences"),
    "kernel": Column("text", "operator; of those that are one row the one that takes most time"),
    "kernel_class": Column("text", "class of the operator, as the predictor names it"),
    "shape": Column("text", "shape of its output"),
    "count": Column("integer", "how often it runs: operators that are one row, layers repeated"),
    "predicted": Column("number", "predicted latency of one instance", "ms"),
    "measured": Column("number", "measured latency of one instance, mean over the row", "ms"),
    "run_measured": Column("number", "measured end-to-end latency of the run", "ms"),
}
_RUN = ("device", "model", "mode", "seq_len", "batch")
#: What the predictor knows of an operator, and what it says: rows that agree are one row.
_SAME = (*_RUN, "kernel_class", "shape", "predicted")
#: Decimals of measured times in ms: 0.1 ns, finer than timers tick.
_DECIMALS = 7


def build(source: Path) -> Mapping[str, bytes]:
    r"""Derive the table from the artifact.

    Operators of a run that the predictor cannot tell apart (class, shape of the output and
    predicted latency agree) are one row, with

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
    # Where operators were measured, all of them were; fused and spread runs have other ones.
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
            # Named for the operator that takes most of the row's time.
            pl.col("kernel")
            .sort_by(count * measured, descending=True, maintain_order=True)
            .first(),
            pl.col("run_measured").first(),
            count=count.sum(),
            measured=((count * measured).sum() / count.sum()).round(_DECIMALS),
        )
        .with_columns(
            run=pl.concat_str(*_RUN, separator="/"),
            # (2, 2048) as 2x2048: no quotes in the file.
            shape=pl.col("shape").str.extract_all(r"\d+").list.join("x"),
        )
    )
    return {_FILE: csv_file(_COLUMNS, table.select(*_COLUMNS).iter_rows())}


SPEC = DatasetSpec(
    title="Kernels of 87 runs of the NeuSight artifact (ASPLOS'25), predicted and measured",
    source=SOURCE,
    commit=COMMIT,
    licence=LICENCE,
    reference=REFERENCE,
    tables={_FILE: _COLUMNS},
    build=build,
    holds="kernels",
    unit="ms",
)
