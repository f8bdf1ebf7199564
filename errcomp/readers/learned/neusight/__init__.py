"""The artifact of NeuSight (ASPLOS'25): configurations and operators, measured and predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from errcomp.errors import InputError
from errcomp.readers.core import Rows, ToolFormats
from errcomp.readers.core.source import Source, files_readable
from errcomp.readers.learned.neusight.files import (
    MODES,
    Configuration,
    FailedCheck,
    Report,
    agree,
    device_of,
    find_root,
    is_artifact,
    parse_stem,
    read_total,
)
from errcomp.readers.learned.neusight.operators import PHASES, OperatorTable, by_phase
from errcomp.system.strict_json import is_number, table
from errcomp.tables import Kernels, Pairs

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "FailedCheck", "NeusightArtifact", "Report", "read"]

_Totals = dict[Configuration, dict[str, float]]
_Summary = dict[tuple[str, ...], dict[str, str]]
#: Reference of the artifact's measurements: GPUs.
_REFERENCE: Literal["hardware"] = "hardware"
_SUMMARY_KEYS = ("device", "model_name", "mode", "seqlen", "batch", "option")


@dataclass(frozen=True, slots=True)
class NeusightArtifact:
    """The artifact as tables.

    Attributes
    ----------
    pairs : Pairs
        One row per configuration and predictor, unit ms; the columns are those of the built-in
        dataset (``errcomp.datasets.info("neusight")``), and ``measured_forward``, the measured
        latency of the forward pass on one device.
    kernels : polars.DataFrame
        One row per traced operator, configuration and predictor: ``run``, ``tool``, ``device``,
        ``model``, ``mode``, ``seq_len``, ``batch``, ``variant``, ``kernel`` (name),
        ``kernel_class``, ``count`` (number of executions), ``measured`` and ``predicted`` (ms, one
        instance, forward and backward), ``measured_forward``, ``predicted_forward`` (ms) and
        ``shape`` (of the output). ``measured`` is null if operators were not measured. Most
        operators only rearrange memory (class ``misc``): predicted 0, measured about 10 µs.
    report : Report
        Files read, configurations without a match, and failed checks.
    """

    pairs: Pairs
    kernels: pl.DataFrame
    report: Report

    def kernels_of(self, tool: str = "neusight") -> Kernels:
        """Return the operators of one predictor, or of ``"all"``, as a table of kernels.

        An operator of a training step has a row for each ``phase`` (forward, backward) in which it
        works. ``run_measured`` is the measured end-to-end latency, ``phase_measured`` that of the
        phase in training on one device. Runs of the variants ``dp4``, ``tp4`` and ``pp4`` use four
        devices and communicate: data parallelism hides part of the communication, so the sum of
        the operators exceeds the prediction.

        Raises
        ------
        InputError
            There are no operators of this predictor.
        """
        import polars as pl

        keys = ("device", "model", "mode", "seq_len", "batch", "variant")
        latencies = self.pairs.native.select(
            *keys, run_measured="measured", run_forward="measured_forward"
        ).unique(keys)
        frame = self.kernels.join(latencies, on=keys, how="left", maintain_order="left")
        whole, forward = pl.col("run_measured"), pl.col("run_forward")
        trains = (pl.col("mode") == "training") & forward.is_not_null()
        first = pl.col("phase") == PHASES[0]
        phase = pl.when(trains).then(pl.when(first).then(forward).otherwise(whole - forward))
        frame = by_phase(frame).with_columns(phase_measured=phase, unit=pl.lit("ms"))
        return Kernels(frame.drop("run_forward"), source=self.pairs.source).of_tool(tool)


@files_readable()
def read(
    path: str | PathLike[str],
    *,
    predictors: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NeusightArtifact:
    r"""Read and check the NeuSight artifact: every configuration and every operator.

    A trace holds one transformer layer; its operators run ``num_layer`` times, all others once:

    .. math:: p = \sum_o c_o \, p_o + w, \qquad c_o \in \{1, L\}

    with predicted latency p, predicted times of operators :math:`p_o`, number of layers L, and the
    time w that communication adds: zero on one device; all communication for tensor parallelism;
    the part that the backward pass does not hide for data parallelism; 11 one-way transfers for
    four pipeline stages and one micro-batch. Every prediction is checked against this sum (relative
    difference ≤ 1e-9).

    Parameters
    ----------
    path : path
        Root of the artifact, or its ``scripts/asplos``.
    predictors : sequence of str, optional
        Predictors to read; by default all.
    progress : callable, optional
        Called with the number of pairs read and the total number of pairs.

    Returns
    -------
    NeusightArtifact
        ``pairs``, ``kernels`` and ``report``. The report lists configurations without a match.

    Raises
    ------
    InputError
        The folder is not the artifact, a device or predictor is unknown, or a file cannot be used.

    Notes
    -----
    Misleads if the sum of measured operators is treated as a measured latency: operators were
    timed one by one, and their sum is 0.59 to 1.54 times the latency.

    References
    ----------
    Lee, Phanishayee and Mahajan (2025), "Forecasting GPU Performance for Deep Learning Training
    and Inference", ASPLOS 2025, doi:10.1145/3669940.3707265.
    """
    root = find_root(Path(path))
    failed: list[FailedCheck] = []
    ignored: list[str] = []
    labels = _totals(root, root / "label", "", failed, ignored)
    predictions = {
        tool: _totals(root, root / "results" / "prediction", tool, failed, ignored)
        for tool in _tools(root, predictors)
    }
    todo = [(tool, c) for tool, totals in predictions.items() for c in totals if c in labels]
    if not todo:
        raise InputError(f"{root}: no configuration was both measured and predicted")
    summary, operators = _summary(root), OperatorTable(root)
    rows = []
    for done, (tool, configuration) in enumerate(todo, start=1):
        label, total = labels[configuration], predictions[tool][configuration]
        known = _check_pair(tool, configuration, label, total, summary, failed)
        row = _row(root, tool, configuration, label, total) | {"in_distribution": known}
        rows.append(row | operators.add(row, configuration))
        if progress is not None:
            progress(done, len(todo))
    report = Report(
        root=str(root),
        labels=len(labels),
        predictions={tool: len(totals) for tool, totals in predictions.items()},
        pairs={tool: len(totals.keys() & labels.keys()) for tool, totals in predictions.items()},
        without_prediction={t: _only_in(labels, totals) for t, totals in predictions.items()},
        without_label={t: _only_in(totals, labels) for t, totals in predictions.items()},
        without_operators={t: tuple(operators.missing.get(t, ())) for t in predictions},
        without_measured_operators=tuple(operators.unmeasured),
        ignored=tuple(ignored),
        failed_checks=(*failed, *operators.failed),
    )
    return NeusightArtifact(_pairs(root, rows), operators.frame(), report)


def _tools(root: Path, wanted: Sequence[str] | None) -> list[str]:
    devices = [d for d in (root / "results" / "prediction").iterdir() if d.is_dir()]
    tools = sorted({f.name for device in devices for f in device.iterdir() if f.is_dir()})
    missing = [tool for tool in wanted or () if tool not in tools]
    if missing:
        raise InputError(
            f"{root}: no predictions of {', '.join(missing)}. Predictors: {', '.join(tools)}"
        )
    return tools if wanted is None else sorted(wanted)


def _totals(
    root: Path, folder: Path, inside: str, failed: list[FailedCheck], ignored: list[str]
) -> _Totals:
    """Read the JSON file of every configuration and check that its parts add up to its total.

    The files of a device are in its folder, or in the subfolder `inside` of it.
    """
    totals: _Totals = {}
    for device in sorted(p for p in folder.iterdir() if p.is_dir()):
        device_of(root, device.name)
        # Some predictors lack some devices. (glob would silently skip unreadable folders.)
        files = (device / inside).iterdir() if (device / inside).is_dir() else ()
        for path in sorted(p for p in files if p.suffix.lower() == ".json"):
            where = path.relative_to(root).as_posix()
            configuration = parse_stem(device.name, path.stem) if path.suffix == ".json" else None
            if configuration is None:
                ignored.append(where)
                continue
            total = totals[configuration] = read_total(path)
            parts = total["fw_latency"] + total["bwall_latency"]
            # Distributed configurations have only a total; their parts are 0.
            if configuration.devices == 1 and not agree(parts, total["e2e_latency"]):
                detail = f"{parts!r} and {total['e2e_latency']!r} ms"
                failed.append(FailedCheck(where, "forward + backward = end to end", detail))
    return dict(sorted(totals.items()))


def _summary(root: Path) -> _Summary:
    """Read the authors' summary: a copy of every latency, and which are out of distribution."""
    path = root / "summary" / "summary.csv"
    summary: _Summary = {}
    try:
        for line, row in table(path, path.read_text(encoding="utf-8"), _SUMMARY_KEYS):
            device, model, mode, *numbers, option = (row[key] for key in _SUMMARY_KEYS)
            if mode not in MODES:
                raise InputError(f"line {line}: unknown mode {mode!r}")
            summary[device, model, MODES[mode], *numbers, option or "base"] = row
        if not summary:
            raise InputError("it has no rows")
    except FileNotFoundError:
        return {}
    except (UnicodeDecodeError, InputError) as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InputError(
            f"{path}: not the summary of the artifact ({reason}). Copy it again, or remove it: it "
            "is only used for checks."
        ) from error
    return summary


def _check_pair(
    tool: str,
    c: Configuration,
    label: Mapping[str, float],
    total: Mapping[str, float],
    summary: _Summary,
    failed: list[FailedCheck],
) -> bool | None:
    """Check a pair against the authors' summary; return whether they call it in distribution."""
    where = f"{tool}: {c.run}"
    # Labels of fused, distributed and Switch configurations have 0 layers.
    if label["num_layer"] not in (0, total["num_layer"]):
        detail = f"{label['num_layer']:g} measured, {total['num_layer']:g} predicted"
        failed.append(FailedCheck(where, "same number of layers", detail))
    row = summary.get((c.device_name, c.model, c.mode, str(c.seq_len), str(c.batch), c.variant), {})
    for column, latency in (
        ("label_all_e2e_latency", label["e2e_latency"]),
        (f"{tool}_all_e2e_latency", total["e2e_latency"]),
    ):
        other = row.get(column) or "nothing"
        if summary and not (is_number(other) and agree(float(other), latency)):
            detail = f"{other} in summary.csv, {latency!r} ms here"
            failed.append(FailedCheck(where, f"same {column} as summary.csv", detail))
    return {"True": False, "False": True}.get(row.get("OOD", ""))


def _row(
    root: Path,
    tool: str,
    configuration: Configuration,
    label: Mapping[str, float],
    total: Mapping[str, float],
) -> dict[str, Any]:
    device = device_of(root, configuration.device_name)
    return {
        "tool": tool,
        "level": "model",
        "device": device.name,
        "vendor": device.vendor,
        "model": configuration.model,
        "mode": configuration.mode,
        "seq_len": configuration.seq_len,
        "batch": configuration.batch,
        "variant": configuration.variant,
        "devices": configuration.devices,
        "layers": int(total["num_layer"]),
        "in_training": device.in_training if tool == "neusight" else None,
        "measured": label["e2e_latency"],
        "predicted": total["e2e_latency"],
        # Distributed configurations have only a total.
        "measured_forward": label["fw_latency"] if configuration.devices == 1 else None,
        "device_name": configuration.device_name,
    }


def _only_in(first: _Totals, second: _Totals) -> tuple[str, ...]:
    return tuple(c.run for c in first if c not in second)


def _pairs(root: Path, rows: list[dict[str, Any]]) -> Pairs:
    import polars as pl

    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Pairs(
        frame.with_columns(reference=pl.lit(_REFERENCE)),
        unit="ms",
        source=str(root),
        subject="neusight" if "neusight" in frame["tool"] else None,
    )


_tool = ToolFormats("NeuSight", gives="both", reference=_REFERENCE)


@_tool.reads(
    "neusight-artifact",
    "folder of the artifact",
    "model, kernel: time (ms)",
    lambda source: is_artifact(source.path),
    sample="ASPLOS 2025 artifact",
    folder=True,
)
def _rows_of(source: Source) -> Rows:
    """Return totals and operators of the artifact as rows."""
    import polars as pl

    artifact = read(source.path)
    names = {"quantity": pl.lit("time"), "unit": pl.lit("ms")}
    pairs = artifact.pairs.native.with_columns(level=pl.lit("model"), **names)
    kernels = artifact.kernels.with_columns(level=pl.lit("kernel"), **names)
    rows = pl.concat([pairs, kernels], how="diagonal_relaxed")
    return Rows(rows, notes=str(artifact.report).splitlines())


FORMATS = _tool.formats
