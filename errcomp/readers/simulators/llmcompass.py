"""LLMCompass: the tables of its artifact, which have no headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import number_at
from errcomp.system.strict_json import is_number

#: Operators of a transformer layer, in the order in which the tool writes their times.
_OPERATORS = (
    *("Q_K_V", "Q_mul_K", "A_mul_V", "Wo_proj", "W1_proj", "W2_proj", "Softmax"),
    *("LayerNorm_MHA", "LayerNorm_FFN", "GeLU", "AllReduce_MHA", "AllReduce_FFN"),
)
_CLASSES = {"Softmax": "softmax", "GeLU": "gelu"}
#: Parts of a die, in the order of the rows; one column for each of two dies.
_PARTS = (
    *("Cores", "On-chip interconnect", "Global buffer", "Memory (PHY)", "Memory (control)"),
    *("Off-chip interconnect (PHY)", "Off-chip interconnect (control)", "Other"),
)
_DIES = ("A100", "MI210")
_NAME = re.compile(
    r"(?P<what>matmul|softmax|layernorm|gelu|transformer|transformerAR)_(?P<device>[A-Za-z0-9]+)"
    r"(?:_(?P<how>sim|roofline))?\."
)
_MATMUL = re.compile(r"\s*\d+,\s*\d+,\s*\d+,\s*[^\s,]+ms,\s*[^\s,]+Tflops\s*$")
_RATE = re.compile(r"\d+, (?:\d+, )?[0-9.e+-]+\s*$")
_DIE = re.compile(r"[0-9.]+,\t[0-9.]+\s*$")


def read(path: AnyPath) -> Output:
    r"""Read the tables of LLMCompass's figures, measured and simulated.

    Parameters
    ----------
    path : path
        ``matmul_A100.csv``, ``softmax_MI210.csv``, …, ``transformer_A100.csv``, ``die_area.csv``,
        or a folder or archive of them. Measured and simulated files look the same: files that the
        tool's own scripts call ``*_sim.csv`` and ``*_roofline.csv`` are predictions (the latter
        with ``variant`` "roofline"), all others measurements. Operator and device also come from
        such names; other names leave them open.

    Returns
    -------
    Output
        Of each ``shape``, level "kernel": ``time`` (ms) and ``throughput`` (TFLOP/s) of matrix
        products, ``throughput`` (Gelements/s) of other operators; ``time`` (s) of the twelve
        operators of a layer; ``area`` (mm^2) of dies by ``component``.

    Raises
    ------
    InputError
        A line differs in form from the lines above it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "matmul_A100_sim.csv"
    >>> _ = path.write_text("64, 512, 512, 0.0190ms, 1.7Tflops\n")
    >>> read(path).rows.select("device", "shape", "quantity", "predicted", "unit").rows()[0]
    ('A100', '64x512x512', 'time', 0.019, 'ms')
    """
    return read_as(path, FORMATS)


def _filled_lines(source: Source) -> list[str]:
    return [line for line in source.head_lines if line.strip()]


def _is_matmul(source: Source) -> bool:
    lines = _filled_lines(source)
    return bool(lines) and all(_MATMUL.match(line) for line in lines)


def _is_rate(source: Source) -> bool:
    """Is it a table of sizes (powers of two) with rates, and a space after each comma."""
    lines = _filled_lines(source)
    return len(lines) > 1 and all(
        _RATE.match(line) and all(_power(size) for size in line.split(", ")[:-1]) for line in lines
    )


def _power(size: str) -> bool:
    return size.isascii() and size.isdigit() and len(size) < 16 and int(size).bit_count() == 1


def _is_layer(source: Source) -> bool:
    """Are these twelve times, with both norms and both reductions equal."""
    lines = _filled_lines(source)
    texts = lines[0].split(",") if len(lines) == 1 else lines
    values = [text.strip() for text in texts]
    return (
        len(values) == len(_OPERATORS)
        and all(is_number(text) for text in values)
        and values[7] == values[8]
        and values[10] == values[11]
    )


def _die(source: Source) -> bool:
    lines = _filled_lines(source)
    return len(lines) == len(_PARTS) and all(_DIE.match(line) for line in lines)


def _origin(source: Source) -> tuple[dict[str, Any], str, list[str]]:
    """Return the keys in the name of the file, the side of its values, and notes."""
    match = _NAME.match(source.path.name)
    how = match["how"] if match else None
    keys: dict[str, Any] = {"level": "kernel"}
    notes = []
    if match:
        keys |= {"device": match["device"], "kernel_class": match["what"]}
    else:
        notes.append("The file name states neither the operator nor the device.")
    if how == "roofline":
        keys["variant"] = how
    side = "predicted" if how else "measured"
    if not how:
        notes.append(
            "The values are read as measured, because the name of the file does not end in _sim "
            "or _roofline."
        )
    return keys, side, notes


def _sizes(source: Source, fields: Callable[[Sequence[str]], Any]) -> Rows:
    """Read lines of sizes and values; `fields` returns the values of a line with their units."""
    common, side, notes = _origin(source)
    rows = []
    for i, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(",")]
        values = fields(parts)
        sizes = parts[: len(parts) - len(values or ())]
        if not values or not all(size.isascii() and size.isdigit() for size in sizes):
            raise source.error(
                f"{line[:60]!r} differs in form from the lines above. The file may be incomplete: "
                "copy it again.",
                line=i,
            )
        shape = "x".join(sizes)
        keys = {**common, "kernel": common.get("kernel_class", "operator"), "shape": shape}
        for quantity, unit, text in values:
            value = number_at(source, "a value", text, i)
            rows.append({**keys, "quantity": quantity, "unit": unit, side: value})
    return Rows(rows, notes=notes)


def _matmul_fields(parts: Sequence[str]) -> list[tuple[str, str, str]]:
    if len(parts) != 5 or not parts[3].endswith("ms") or not parts[4].endswith("Tflops"):
        return []
    rate = parts[4].removesuffix("Tflops")
    return [("time", "ms", parts[3].removesuffix("ms")), ("throughput", "TFLOP/s", rate)]


def _rate_fields(parts: Sequence[str]) -> list[tuple[str, str, str]]:
    return [("throughput", "Gelements/s", parts[-1])] if len(parts) in (2, 3) else []


# Only its name shows whether a file of times is measured or simulated.
_tool = ToolFormats(
    "LLMCompass",
    gives="measurements",
    reference="unknown",
    sample="measurements in its artifact (A100, MI210)",
    limits="Measured and simulated files differ only in their names, which also state operator "
    "and device.",
)

_tool.reads(
    "llmcompass-matmul",
    "matmul_*.csv",
    "kernel: time, throughput (ms, TFLOP/s)",
    _is_matmul,
)(lambda source: _sizes(source, _matmul_fields))

_tool.reads(
    "llmcompass-rates",
    "softmax_*.csv, layernorm_*.csv, gelu_*.csv",
    "kernel: throughput (Gelements/s)",
    _is_rate,
)(lambda source: _sizes(source, _rate_fields))


@_tool.reads(
    "llmcompass-layer",
    "transformer_*.csv, transformerAR_*.csv",
    "kernel, collective: time (s)",
    _is_layer,
)
def _read_layer(source: Source) -> Rows:
    common, side, notes = _origin(source)
    mode = {"transformer": "prefill", "transformerAR": "decode"}.get(common.pop("kernel_class", ""))
    lines = [(i, line) for i, line in enumerate(source.lines(), start=1) if line.strip()]
    texts = [(i, text) for i, line in lines for text in line.split(",")]
    if len(texts) != len(_OPERATORS):
        raise source.error(
            f"expected {len(_OPERATORS)} times (one per operator), got {len(texts)}. Copy the file "
            "again."
        )
    rows = []
    for name, (line, text) in zip(_OPERATORS, texts, strict=True):
        kind = _CLASSES.get(name) or ("matmul" if "_proj" in name or "mul" in name else "")
        rows.append(
            {
                **common,
                "level": "collective" if name.startswith("AllReduce") else "kernel",
                "run": "layer",
                "kernel": name,
                "kernel_class": kind or {"Q_K_V": "matmul"}.get(name) or name.split("_")[0].lower(),
                "mode": mode,
                side: number_at(source, "a value", text.strip(), line),
            }
        )
    return Rows(rows, notes=notes)


@_tool.reads(
    "llmcompass-die",
    "die_area.csv",
    "system: area (mm^2)",
    _die,
    reference="hardware",
    limits="The file names neither dies nor parts: their names come from the script that plots it.",
)
def _read_die(source: Source) -> Rows:
    lines = [(i, line) for i, line in enumerate(source.lines(), start=1) if line.strip()]
    rows = []
    for part, (i, line) in zip(_PARTS, lines, strict=False):
        values = [number_at(source, "a value", text.strip(), i) for text in line.split(",")]
        for device, value in zip(_DIES, values, strict=False):
            rows.append({"device": device, "component": part, "measured": value})
    return Rows(rows)


FORMATS = _tool.formats
