"""From a file to its content: which format it is in, and its text or why there is none."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from errcomp.errors import InputError
from errcomp.system.strict_json import loads

__all__ = ["FILE_FORMATS", "Format", "decode", "detect", "files_readable", "load_bytes"]

Format = Literal["csv", "parquet", "jsonl", "json"]
FILE_FORMATS: tuple[str, ...] = get_args(Format)
_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
#: A header may also begin with a bracket: "[ms] predicted,measured".
_LIST, _OBJECT = re.compile(rb"\[\s*([\[{\]]|$)"), re.compile(rb"\{\s*([\"}]|$)")
_WEB_PAGE = re.compile(rb"<(!doctype|html)", re.IGNORECASE)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@contextmanager
def files_readable() -> Iterator[None]:
    """Turn what the system says about a file or folder into an ``InputError``."""
    try:
        yield
    except OSError as error:
        if error.filename is None:  # not about a file: progress is shown on a pipe that was closed
            raise
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}). Check the path and who may "
            "read it."
        ) from error


def load_bytes(path: Path) -> bytes:
    """Read a file, decompressed if it is gzip."""
    try:
        content = path.read_bytes()
    except IsADirectoryError as error:
        raise InputError(
            f"{path}: is a folder, not a file of pairs. Name one of its files."
        ) from error
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file. Check the path.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:  # a zero byte in the name
        raise InputError(f"{str(path)!r}: there is no such file ({error}).") from error
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"{path}: broken gzip ({error}). The file may be cut off: copy it again."
            ) from error
    if not content.strip():
        raise InputError(f"{path}: the file is empty. A header and one row at least are needed.")
    return content


def detect(path: Path, content: bytes) -> Format:
    """Recognise the format by content; the name decides where the content fits two."""
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if content.startswith(_PARQUET):
        return "parquet"
    if suffixes & {".parquet", ".pq"}:
        raise InputError(
            f"{path}: not Parquet: it does not begin with PAR1. Rename it, or write it again."
        )
    start = content.removeprefix(_BOM).lstrip()
    if _WEB_PAGE.match(start):
        raise InputError(f"{path}: this is a web page, not a table. Download the file itself.")
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
    """Decode UTF-8 text, without a byte-order mark and without blank lines at the end."""
    if content.startswith(_UTF16):
        raise InputError(f"{path}: the text is UTF-16, not UTF-8. Save it as UTF-8.")
    if b"\x00" in content:
        line = content[: content.index(b"\x00")].count(b"\n") + 1
        raise InputError(
            f"{path}: line {line}: a zero byte: this is not a text file. Give a CSV, Parquet, JSON "
            "or JSON lines file."
        )
    content = content.removeprefix(_BOM)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}: line {line}: byte 0x{content[error.start]:02x} is not UTF-8. Save the file "
            "as UTF-8."
        ) from error
    return text.rstrip("\r\n \t") + "\n"


def _is_record(line: bytes, *, with_rows: bool) -> bool:
    """Is this line an object of its own; one that holds ``rows`` may be a whole JSON file."""
    try:
        found = loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and (with_rows or "rows" not in found)
