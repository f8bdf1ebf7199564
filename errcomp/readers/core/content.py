"""The bytes of a table that people wrote: loaded, decoded, and its format recognised."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from shlex import quote
from typing import Literal, get_args

from errcomp.errors import (
    InputError,
    LargeFileWarning,
    LeftOutWarning,
    describe_names,
    warn_caller,
)
from errcomp.readers.core.source import (
    BOM,
    JSON_LINES,
    LINE_ENDS,
    PACKED,
    UNPACKED_TIMES,
    UTF16,
    Source,
    files_readable,
    refuse_special,
    unended,
)
from errcomp.system.limits import current
from errcomp.system.strict_json import loads

Format = Literal["csv", "excel", "parquet", "jsonl", "json"]
FILE_FORMATS: tuple[str, ...] = get_args(Format)
_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
#: Bytes from which reading a text into memory deserves a word, and how many times its size a table
#: of numbers takes at its peak (measured).
_LARGE, _TIMES_CSV, _TIMES_JSON = 256 << 20, 14, 7
#: A header may also begin with a bracket: "[ms] predicted,measured".
_LIST, _OBJECT = re.compile(rb"\[\s*([\[{\]]|$)"), re.compile(rb"\{\s*([\"}]|$)")
_WEB_PAGE = re.compile(rb"<(!doctype|html)", re.IGNORECASE)


def load_bytes(path: Path) -> bytes:
    """Read a file, decompressed, and in UTF-8 if it is UTF-16."""
    try:
        refuse_special(path)
        _check_size(path)
        content = path.read_bytes()
    except InputError:  # a ValueError, too
        raise
    except IsADirectoryError as error:
        raise InputError(
            f"{path}: is a folder, not a file of pairs. Name one of its files."
        ) from error
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file. Check the path.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:  # a zero byte in the name
        raise InputError(f"{str(path)!r}: no such file ({error}).") from error
    if content.startswith(PACKED):
        with Source(path).open() as file:
            content = file.read()
    if content.startswith(UTF16):
        try:
            content = content.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: not valid UTF-16 text ({error.reason}). Copy the file again."
            ) from None
    if not content.strip():
        raise InputError(f"{path}: the file is empty. It needs a header and at least one row.")
    return content


def _check_size(path: Path) -> None:
    """Refuse a text that does not fit into memory as a table; warn if it takes a large part of it.

    Raises
    ------
    InputError
        It would need more memory than is available.
    """
    size = path.stat().st_size
    if size < _LARGE:
        return
    from errcomp.system.memory import available

    with path.open("rb") as file:
        start = file.read(max(map(len, PACKED)))
    if start.startswith((_PARQUET, _ZIP)):
        return
    is_json = start.lstrip()[:1] in (b"{", b"[")
    unpacked = size * (UNPACKED_TIMES if start.startswith(PACKED) else 1)
    needed = unpacked * (_TIMES_JSON if is_json else _TIMES_CSV)
    scan = f"scan_{'ndjson' if is_json else 'csv'}"
    to = path.with_name(path.name.split(".")[0] + ".parquet")
    code = f"import polars; polars.{scan}({dumps(str(path))}).sink_parquet({dumps(str(to))})"
    advice = (
        f"Convert it to Parquet, which takes little memory: `python -c {quote(code)}`. Then give "
        f"{to}, which errcomp audit and errcomp metrics read in parts."
    )
    free = current().memory or available()
    about = f"{path}: {size / 1e9:.1f} GB of text need about {needed / 1e9:.0f} GB of memory"
    if free is not None and needed > free:
        raise InputError(
            f"{about}, and {free / 1000000000.0:.1f} GB are free. {advice} To read it anyway: "
            f"--limit memory={math.ceil(needed / 1000000000.0)}GB (in Python: errcomp.limits)."
        )
    warn_caller(f"{about}. {advice}", LargeFileWarning)


def fits(path: Path, times: int) -> bool:
    """Say whether a text fits into memory as a table that takes this many times its size."""
    size = path.stat().st_size
    if size < _LARGE:
        return True
    from errcomp.system.memory import available

    free = current().memory or available()
    return free is None or times * size <= free


def notes_on(path: Path) -> tuple[str, ...]:
    """Return a note if a table may have been cut off within its last line.

    Compressed files and Parquet cannot be: reading them would fail.
    """
    with files_readable(), path.open("rb") as file:
        start = file.read(max(map(len, PACKED)))
        if not start or start.startswith((*PACKED, _ZIP, _PARQUET, *UTF16)):
            return ()
        file.seek(-1, os.SEEK_END)
        # Of JSON, what is cut off is refused; of JSON lines, whole lines may be gone.
        is_json = start.lstrip()[:1] in (b"{", b"[") and path.suffix not in JSON_LINES
        whole = is_json or file.read(1).decode("latin-1") in LINE_ENDS
        return () if whole else (unended(path.name),)


def detect(path: Path, content: bytes) -> Format:
    """Recognise the format by content; the name decides if the content fits two."""
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if content.startswith(_PARQUET):
        return "parquet"
    if suffixes & {".parquet", ".pq"}:
        raise InputError(
            f"{path}: not Parquet: it does not begin with PAR1. Rename it, or export it again."
        )
    if content.startswith(_ZIP):
        return "excel"
    if suffixes & {".xls", ".ods"}:
        raise InputError(
            f"{path}: a spreadsheet that errcomp does not read. Save it as .xlsx or as CSV."
        )
    start = content.removeprefix(BOM).lstrip()
    if _WEB_PAGE.match(start):
        raise InputError(f"{path}: a web page, not a table. Download the file itself.")
    if _LIST.match(start):
        return "json"
    if _OBJECT.match(start):
        lines = start.splitlines()
        alone = len(lines) == 1 and not suffixes & {".jsonl", ".ndjson"}
        return "jsonl" if _is_record(lines[0], with_rows=not alone) else "json"
    if suffixes & {".jsonl", ".ndjson"}:
        return "jsonl"
    return "json" if ".json" in suffixes else "csv"


def decode(path: Path, content: bytes) -> str:
    """Decode UTF-8 text, without a byte-order mark and without trailing blank lines."""
    if b"\x00" in content:
        line = content[: content.index(b"\x00")].count(b"\n") + 1
        raise InputError(
            f"{path}: line {line}: a zero byte, so this is not a text file. Give a CSV, Parquet, "
            "JSON or JSON lines file."
        )
    content = content.removeprefix(BOM)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}: line {line}: byte 0x{content[error.start]:02x} is not UTF-8. Save the file "
            "as UTF-8."
        ) from error
    # Tabs at the end of the last row are empty fields.
    end = len(text.rstrip("\r\n \t"))
    ends = [at for sign in "\r\n" if (at := text.find(sign, end)) >= 0]
    return text[: min(ends, default=None)] + "\n"


def _is_record(line: bytes, *, with_rows: bool) -> bool:
    """Is this line a complete object; with ``rows`` it may be a whole JSON file."""
    try:
        record = loads(line)
    except ValueError:
        return False
    return isinstance(record, dict) and (with_rows or "rows" not in record)


def tell_left_out(path: Path, names: Sequence[str]) -> None:
    """Warn of columns that are left out, because they have no single value per row."""
    if names:
        warn_caller(
            f"{path}: left out, because each value is a list or an object: {describe_names(names)}",
            LeftOutWarning,
        )
