"""nn-Meter: predicted latencies of networks, and its data set of measured ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike
from typing import Any

from errcomp.readers.core.keys import has, other_keys
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, Gives, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.core.wide import Value, rows_of
from errcomp.system.strict_json import number

__all__ = ["FORMATS", "read"]

_TABLE = ("model_name", "model_type", "predictor", "predictor_version", "latency")
_PAIRS = ("model_group_file", "index", "predicted_ms", "real_ms")
#: Devices are named processor_framework: cortexA76cpu_tflite21, myriadvpu_openvino2019r2.
_DEVICE = re.compile(r"\w*(?:cpu|gpu|vpu|npu|dsp)\w*_\w+", re.IGNORECASE)
_RESULT = re.compile(
    r"\[Result\]\s*(\S+?)\[(\d+)\]:\s*predict:\s*([^,\s]+)\s*,\s*real:\s*([^,\s]+)"
)
_TOOL = "nn-Meter"


def read(path: str | PathLike[str]) -> Output:
    r"""Read predictions of nn-Meter, and its data set of measured latencies.

    Parameters
    ----------
    path : path
        A table of predictions, lines of ``[Result]`` or a table of pairs, a file of the data set
        (JSON lines with ``graph``), or a folder or archive of them.

    Returns
    -------
    Output
        ``time`` of each ``model`` in ms on each ``device`` (the predictor): predicted in tables
        of predictions, measured in the data set, both in pairs.

    Raises
    ------
    InputError
        A value is no number, or a line is no JSON.

    Notes
    -----
    In the data set a device may have an error in place of a latency: a row with a status.

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


def _is_table(source: Source) -> bool:
    return has(source.header, *_TABLE)


def _read_table(source: Source) -> Output:
    sheet = source.sheet(_TABLE)
    keys = {"model": "model_name", "framework": "model_type", "device": "predictor"}
    used = {*keys.values(), "latency"}
    rows = rows_of(
        sheet,
        _TOOL,
        "model",
        [Value("time", "ms", predicted="latency")],
        {**keys, **other_keys(sheet, used)},
    )
    return output(source.name, "nn-meter-predictions", rows)


def _is_pairs(source: Source) -> bool:
    return has(source.header, *_PAIRS)


def _read_pairs(source: Source) -> Output:
    import polars as pl

    sheet = source.sheet(_PAIRS)
    both = Value("time", "ms", "predicted_ms", "real_ms")
    rest = other_keys(sheet, _PAIRS)
    keys = {"family": "model_group_file", "index": "index", **rest}
    rows = rows_of(sheet, _TOOL, "model", [both], keys)
    stem = pl.col("family").cast(pl.String).str.replace(r"\.jsonl$", "")
    place = pl.concat_str([stem, pl.lit("["), pl.col("index").cast(pl.String), pl.lit("]")])
    return output(source.name, "nn-meter-pairs", rows.with_columns(model=place).drop("index"))


def _is_results(source: Source) -> bool:
    return any(_RESULT.search(line) for line in source.head_lines)


def _read_results(source: Source) -> Output:
    rows = []
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
                    "tool": _TOOL,
                    "level": "model",
                    "quantity": "time",
                    "unit": "ms",
                    "predicted": predicted,
                    "measured": real,
                    "model": f"{family.removesuffix('.jsonl')}[{index}]",
                    "family": family,
                }
            )
    return output(source.name, "nn-meter-results", rows)


def _is_data_set(source: Source) -> bool:
    names = source.json_names
    return has(names, "id", "graph") and any(_DEVICE.fullmatch(name) for name in names)


def _read_data_set(source: Source) -> Output:
    import msgspec

    # Graphs are nearly all of the file: they are not decoded.
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    rows: list[dict[str, Any]] = []
    for line, text in enumerate(source.lines(), start=1):
        if not text.strip():
            continue
        try:
            found = decoder.decode(text)
            name = msgspec.json.decode(found.get("id", b"null"))
            values = {
                device: msgspec.json.decode(raw)
                for device, raw in found.items()
                if _DEVICE.fullmatch(device)
            }
        except (msgspec.DecodeError, RecursionError) as error:
            raise source.error(
                f"not an object of the data set ({error}). The file may be cut off: copy it again.",
                line=line,
            ) from None
        model = f"line {line}" if name is None else str(name)
        rows += [_measured(model, device, value) for device, value in values.items()]
    return output(source.name, "nn-meter-dataset", rows)


def _measured(model: str, device: str, value: Any) -> dict[str, Any]:
    row = {
        "tool": "nn-Meter data set",
        "level": "model",
        "quantity": "time",
        "unit": "ms",
        "model": model,
        "device": device,
        "measured": None,
        "status": None,
    }
    try:
        return {**row, "measured": number(str(value))}
    except ValueError:
        said = "no latency" if value in (None, "") else str(value)[:80]
        return {**row, "status": f"failed: {said}"}


def _format(
    name: str,
    files: str,
    gives: Gives,
    sample: str,
    recognise: Callable[[Source], bool],
    call: Callable[[Source], Output],
) -> Format:
    return Format(
        name=name,
        tool=_TOOL,
        files=files,
        levels=("model",),
        quantities=("time",),
        units=("ms",),
        gives=gives,
        reference="hardware",
        sample=sample,
        recognise=recognise,
        read=call,
    )


FORMATS = (
    _format(
        "nn-meter-predictions",
        "table of predictions",
        "predictions",
        "nn-Meter cd8dab4, integration tests",
        _is_table,
        _read_table,
    ),
    _format(
        "nn-meter-pairs",
        "table of predicted_ms and real_ms",
        "both",
        "nn-Meter cd8dab4, extracted from the notebook",
        _is_pairs,
        _read_pairs,
    ),
    _format("nn-meter-results", "lines of [Result]", "both", "", _is_results, _read_results),
    _format(
        "nn-meter-dataset",
        "data set of measured latencies (<family>.jsonl)",
        "measurements",
        "",
        _is_data_set,
        _read_data_set,
    ),
)
