"""nn-Meter: predicted latencies of networks, and its dataset of measured latencies."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Value, has, other_keys, rows_of
from errcomp.readers.core.values import DAMAGED, loosened
from errcomp.system.strict_json import DoubledNameError, number, refuse_doubles

_TABLE = ("model_name", "model_type", "predictor", "predictor_version", "latency")
_PAIRS = ("model_group_file", "index", "predicted_ms", "real_ms")
#: Names of devices are processor_framework: cortexA76cpu_tflite21, myriadvpu_openvino2019r2.
_DEVICE = re.compile(r"\w*(?:cpu|gpu|vpu|npu|dsp)\w*_\w+", re.IGNORECASE)
_RESULT = re.compile(
    r"\[Result\]\s*(\S+?)\[(\d+)\]:\s*predict:\s*([^,\s]+)\s*,\s*real:\s*([^,\s]+)"
)
_LOOSE = loosened(_RESULT)


def read(path: AnyPath) -> Output:
    r"""Read predictions of nn-Meter, and its dataset of measured latencies.

    Parameters
    ----------
    path : path
        A table of predictions, lines of ``[Result]`` or a table of pairs, a file of the dataset
        (JSON lines with ``graph``), or a folder or archive of them.

    Returns
    -------
    Output
        ``time`` of each ``model`` in ms on each ``device`` (the predictor): predicted in tables
        of predictions, measured in the dataset, both in pairs.

    Raises
    ------
    InputError
        A value is not a number, or a line is not JSON.

    Notes
    -----
    In the dataset, a device may have an error instead of a latency: its row has a status.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "result.txt"
    >>> _ = path.write_text(
    ...     "model_name, model_type, predictor, predictor_version, latency\n"
    ...     "alexnet, torch, cortexA76cpu_tflite21, 1.0, 96.5\n")
    >>> read(path).rows.select("model", "device", "unit", "predicted").rows()
    [('alexnet', 'cortexA76cpu_tflite21', 'ms', 96.5)]
    """
    return read_as(path, FORMATS)


_tool = ToolFormats("nn-Meter", reference="hardware")


@_tool.reads(
    "nn-meter-predictions",
    "table of predictions",
    "model: time (ms)",
    _TABLE,
    gives="predictions",
    sample="nn-Meter cd8dab4, integration tests",
)
def _read_table(source: Source) -> Rows:
    sheet = source.sheet(_TABLE)
    keys = {"model": "model_name", "framework": "model_type", "device": "predictor"}
    keys |= other_keys(sheet, {*keys.values(), "latency"})
    return Rows(rows_of(sheet, [Value("time", "ms", predicted="latency")], keys))


@_tool.reads(
    "nn-meter-pairs",
    "table of predicted_ms and real_ms",
    "model: time (ms)",
    _PAIRS,
    gives="both",
    sample="nn-Meter cd8dab4, extracted from the notebook",
)
def _read_pairs(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(_PAIRS)
    both = Value("time", "ms", "predicted_ms", "real_ms")
    rest = other_keys(sheet, _PAIRS)
    keys = {"family": "model_group_file", "index": "index", **rest}
    rows = rows_of(sheet, [both], keys)
    stem = pl.col("family").cast(pl.String).str.replace(r"\.jsonl$", "")
    place = pl.concat_str([stem, pl.lit("["), pl.col("index").cast(pl.String), pl.lit("]")])
    return Rows(rows.with_columns(model=place).drop("index"))


@_tool.reads(
    "nn-meter-results",
    "lines of [Result]",
    "model: time (ms)",
    lambda source: any(_RESULT.search(line) for line in source.head_lines),
    gives="both",
)
def _read_results(source: Source) -> Rows:
    rows, damaged = [], 0
    for line, text in enumerate(source.lines(), start=1):
        if match := _RESULT.search(text):
            family, index, *values = match.groups()
            try:
                predicted, real = map(number, values)
            except ValueError:
                raise source.error(
                    f"not two numbers: {text.strip()[:60]!r}. The file may be damaged: copy it "
                    "again.",
                    line=line,
                ) from None
            rows.append(
                {
                    "predicted": predicted,
                    "measured": real,
                    "model": f"{family.removesuffix('.jsonl')}[{index}]",
                    "family": family,
                }
            )
        else:
            damaged += _LOOSE.search(text) is not None
    return Rows(rows, dropped={DAMAGED: damaged})


def _is_data_set(source: Source) -> bool:
    names = source.json_names
    return has(names, "id", "graph") and any(_DEVICE.fullmatch(name) for name in names)


@_tool.reads(
    "nn-meter-dataset",
    "dataset of measured latencies (<family>.jsonl)",
    "model: time (ms)",
    _is_data_set,
    gives="measurements",
)
def _read_data_set(source: Source) -> Rows:
    import msgspec

    # Graphs make up most of the file and are not decoded.
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    rows: list[dict[str, Any]] = []
    for line, text in enumerate(source.lines(), start=1):
        if not text.strip():
            continue
        try:
            record = decoder.decode(text)
            name = msgspec.json.decode(record.get("id", b"null"))
            values = {
                device: msgspec.json.decode(raw)
                for device, raw in record.items()
                if _DEVICE.fullmatch(device)
            }
            refuse_doubles(text, dict.fromkeys(values, 1))
        except (DoubledNameError, msgspec.DecodeError, RecursionError) as error:
            raise source.error(
                f"not a record of the nn-Meter dataset ({error}). The file may be incomplete: "
                "copy it again.",
                line=line,
            ) from None
        model = f"line {line}" if name is None else str(name)
        rows += [_measured(model, device, value) for device, value in values.items()]
    return Rows(rows)


def _measured(model: str, device: str, value: Any) -> dict[str, Any]:
    row = {
        "tool": "nn-Meter dataset",
        "model": model,
        "device": device,
        "measured": None,
        "status": None,
    }
    try:
        return {**row, "measured": number(str(value))}
    except ValueError:
        shown = "no latency" if value in (None, "") else str(value)[:80]
        return {**row, "status": f"failed: {shown}"}


FORMATS = _tool.formats
