"""HELP: measured latencies of architectures on devices."""

from __future__ import annotations

import pickletools
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from errcomp.errors import InputError
from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import key
from errcomp.readers.core.values import digits

if TYPE_CHECKING:
    import polars as pl


#: Batch sizes that HELP measured; devices are named <device>_<batch>.
_BATCH = re.compile(r"(.+)_(\d+)")
_BATCHES = frozenset(("1", "16", "32", "64", "128", "256"))
#: Start of a pickled list: no other object is read.
_LIST = re.compile(rb"/data\.pkl.{0,200}?\x80[\x02-\x05](?:\x95.{8})?\]", re.DOTALL)
_NUMBERS = frozenset(("BINFLOAT", "BININT", "BININT1", "BININT2", "LONG1"))
_IGNORED = frozenset(("BINPUT", "LONG_BINPUT", "MEMOIZE", "FRAME"))
_LARGEST = 1 << 26
#: Lists of latencies have thousands of numbers; lists of positions have ten whole numbers.
_FEW = 100
_ESTIMATED = ("eyeriss", "fpga")
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)


def read(path: AnyPath) -> Output:
    r"""Read tables of HELP, and its native files (``<device>.pt``).

    Parameters
    ----------
    path : path
        A table with one column per device, a native file (a list of numbers that
        ``torch.save`` wrote), or a folder or archive of them.

    Returns
    -------
    Output
        The measured ``time`` in ms of each architecture (``model``: its index) on each ``device``,
        with ``batch`` if the name of the device has one.

    Raises
    ------
    InputError
        A value is not a number, or a native file is not a list of numbers.

    Notes
    -----
    A native file is a pickle. It is never unpickled: its operations are checked one by one, and any
    that does more than append numbers to a list is refused. The device is the name of the file, as
    the content does not state it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "latency.csv"
    >>> _ = path.write_text("arch_index,is_anchor,1080ti_1,1080ti_32\n7,0,10.5,15.25\n")
    >>> read(path).rows.select("model", "device", "batch", "unit", "measured").rows()
    [('7', '1080ti', 1, 'ms', 10.5), ('7', '1080ti', 32, 'ms', 15.25)]
    """
    return read_as(path, FORMATS)


def _is_table(source: Source) -> bool:
    return source.header[:2] == ("arch_index", "is_anchor") and len(source.header) > 2


def _device(column: str, columns: tuple[str, ...]) -> tuple[str, int | None]:
    """Split the batch size from a name, if the device has several.

    ``essential_ph_1`` is a phone, not a batch of 1.
    """
    match = _BATCH.fullmatch(column)
    if match is None or match.group(2) not in _BATCHES:
        return column, None
    stem = match.group(1)
    others = (_BATCH.fullmatch(name) for name in columns if name != column)
    if any(o is not None and o.group(1) == stem and o.group(2) in _BATCHES for o in others):
        return stem, digits(match.group(2))
    return column, None


_tool = ToolFormats(
    "HELP", gives="measurements", reference="hardware", sample="HELP 45f70eb, excerpts"
)


@_tool.reads(
    "help-latencies",
    "table of latencies, one column per device",
    "model: time (ms)",
    _is_table,
)
def _read_table(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(["arch_index", "is_anchor"])
    devices = [name for name in sheet.columns if name not in ("arch_index", "is_anchor")]
    anchor = key(sheet, "is_anchor", "anchor")
    frames = []
    whole: list[str] = []
    for column in devices:
        values = sheet.numbers(column)
        if len(values) > 20 and (values == values.round()).all():
            whole.append(column)
        device, batch = _device(column, sheet.columns)
        frame = pl.DataFrame([pl.Series("model", sheet.texts("arch_index")), anchor]).with_columns(
            pl.Series("measured", values, nan_to_null=True),
            device=pl.lit(device),
            batch=pl.lit(batch, dtype=pl.Int64),
        )
        frames.append(frame)
    rows = _rows(pl.concat(frames))
    notes = _notes(devices)
    if whole:
        notes.append(
            f"The latencies of {', '.join(whole)} are whole milliseconds, so errors below half a "
            "millisecond are not visible for these devices."
        )
    return Rows(rows, notes=notes)


def _rows(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return frame.with_columns(
        tool=pl.lit("HELP measurements"),
        reference=pl.when(_is_estimated()).then(pl.lit("estimate")),
    )


def _is_estimated() -> pl.Expr:
    import polars as pl

    return pl.any_horizontal(pl.col("device").str.starts_with(name) for name in _ESTIMATED)


def _notes(devices: list[str]) -> list[str]:
    estimated = [name for name in devices if name.startswith(_ESTIMATED)]
    if not estimated:
        return []
    return [f"Latencies of {', '.join(estimated)} were probably estimated by a tool, not measured."]


def _is_native(source: Source) -> bool:
    return source.head.startswith(b"PK\x03\x04") and _LIST.search(source.head) is not None


@_tool.reads(
    "help-native",
    "<device>.pt",
    "model: time (ms)",
    _is_native,
    sample="HELP 45f70eb, fbnet on pixel3",
    limits="The file holds only a list of numbers; the device is taken from the file name.",
)
def _read_native(source: Source) -> Rows:
    import polars as pl

    values = list(_numbers(source, _pickle(source)))
    if not values:
        raise source.error("the list is empty. Copy the file again.")
    if len(values) < _FEW and all(isinstance(value, int) for value in values):
        raise source.error(
            f"holds {len(values)} whole numbers: positions of architectures, not latencies. Give "
            "a file of latencies, <device>.pt."
        )
    device = source.path.name.partition(".")[0]
    frame = pl.DataFrame(
        {
            "model": [str(i) for i in range(len(values))],
            "measured": pl.Series(values, dtype=pl.Float64, strict=False),
            "device": [device] * len(values),
        }
    )
    notes = [f"The device name {device} comes from the file name, as the content has none."]
    rows = _rows(frame)
    return Rows(rows, notes=[*notes, *_notes([device])])


def _pickle(source: Source) -> bytes:
    try:
        with zipfile.ZipFile(source.path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            with archive.open(names[0]) as file:
                content = file.read(_LARGEST + 1)
    except (*_BROKEN, ValueError, IndexError) as error:
        raise source.error(
            f"broken zip ({error}). The file may be incomplete: copy it again."
        ) from None
    if len(content) > _LARGEST:
        raise source.error(f"holds more than {_LARGEST >> 20} MiB, more than any file of HELP.")
    return content


def _numbers(source: Source, pickled: bytes) -> Iterator[float]:
    """Yield the numbers of a pickled list from its operations, without executing any."""
    lists, stopped = 0, False
    try:
        for operation, value, at in pickletools.genops(pickled):
            name = operation.name
            if name in _NUMBERS and lists == 1 and isinstance(value, int | float):
                yield value
            elif name == "EMPTY_LIST" and lists == 0:
                lists = 1
            elif name == "STOP":
                stopped = lists == 1
            elif name in ("MARK", "APPENDS", "APPEND") and lists == 1:
                continue
            elif name not in _IGNORED and not (name == "PROTO" and at == 0):
                raise source.error(
                    f"its pickle does more than list numbers ({name} at byte {at}). Such a file "
                    "may run code when it is loaded, so it is not read. Write its numbers as CSV."
                )
    except (ValueError, IndexError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise source.error(
            f"its pickle is broken ({error}). The file may be incomplete: copy it again."
        ) from None
    if not stopped:
        raise source.error("its pickle holds no list. The file may be incomplete: copy it again.")


FORMATS = _tool.formats
