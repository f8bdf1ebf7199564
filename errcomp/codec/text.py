"""Read the text of a document: strict JSON, limited in size, only plain values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from errcomp.errors import InputError

__all__ = ["check_values", "looks_like_document", "parse", "read_text"]

#: No command writes a larger document.
_LARGEST_BYTES = 512 * 2**20
_LARGEST_DIGITS = 19
_DEEPEST = 60
_SCHEMA = re.compile(r'"schema"\s*:\s*"errcomp\.')


def looks_like_document(path: Path) -> bool:
    """Return whether a file looks like JSON that a command of errcomp wrote, even if damaged."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return False
        with path.open("rb") as file:
            start = file.read(64)
            text = start.decode(json.detect_encoding(start), "ignore").lstrip("\ufeff \t\r\n")
            if not text.startswith("{"):
                return False
            data = start + file.read()
    except OSError:
        return False
    return _SCHEMA.search(data.decode(json.detect_encoding(data), "ignore")) is not None


def read_text(path: Path) -> str:
    """Read a file or a pipe in UTF-8 (or the UTF-16 that some shells write)."""
    try:
        if path.is_dir():
            raise InputError("is a folder. Name a file that a command wrote with -o FILE.json.")
        if not path.exists():
            raise InputError("no such file. Check the path.")
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}).") from error
    if len(data) > _LARGEST_BYTES:
        raise InputError(
            f"is larger than {_LARGEST_BYTES // 2**20} MiB, the limit for a document. Write the "
            "document again with fewer rows (--where KEY=VALUE)."
        )
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not valid {error.encoding.upper()} text (byte {error.start + 1:,} is "
            f"0x{data[error.start]:02x}). Name a file that a command wrote with -o FILE.json."
        ) from error


def parse(text: str) -> Any:
    """Parse JSON; refuse an object that names a key twice."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_NoNumber,
        )
    except json.JSONDecodeError as error:
        if not text.strip():
            raise InputError("is empty. Write the document again.") from error
        end = len(text.rstrip())
        early = error.pos >= end or error.msg.startswith("Unterminated")
        cut = " The text ends too early: it may not have been written completely." if early else ""
        raise InputError(
            f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}.{cut}"
        ) from error
    except RecursionError as error:
        raise InputError("is nested too deeply to be an errcomp document.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"has the key {double!r} twice in one object. Keep one of them.")
    return found


class _NoNumber(str):
    """The text of an invalid number; kept, so that a message can name its path."""

    __slots__ = ()


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) <= _LARGEST_DIGITS else _NoNumber(digits)


def _float(digits: str) -> Any:
    found = float(digits)
    return found if math.isfinite(found) else _NoNumber(digits)


def check_values(document: Any) -> None:
    """Refuse values that JSON cannot hold, at any depth; errcomp never writes them."""
    pending: list[tuple[Any, str, int]] = [(document, "", 0)]
    while pending:
        value, path, depth = pending.pop()
        if depth > _DEEPEST:
            raise InputError(f"{path[:60]}… is nested more than {_DEEPEST} levels deep.")
        if isinstance(value, Mapping):
            for key, one in value.items():
                if not isinstance(key, str) or not _is_text(key):
                    raise InputError(
                        f"{path or 'the document'} has a key that is not text: {key!r}."
                    )
                pending.append((one, f"{path}.{key}" if path else key, depth + 1))
        elif isinstance(value, list | tuple):
            pending += [(one, f"{path}[{i}]", depth + 1) for i, one in enumerate(value)]
        elif not _is_plain(value):
            raise InputError(
                f"{path} must be a finite number, text, true, false or null (an undefined value), "
                f"got {_shown(value)}"
            )


def _shown(value: object) -> str:
    if isinstance(value, int) or (isinstance(value, _NoNumber) and value.isdecimal()):
        return "a number with too many digits"
    return f"{value:.20}" if isinstance(value, _NoNumber) else f"{value!r:.60}"


def _is_plain(value: object) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int):
        return bool(abs(value) < 10**_LARGEST_DIGITS)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, _NoNumber) and _is_text(value)


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True
