"""The container of a model file: a ZIP archive whose entries determine every byte.

ZIP also stores dates, comments, gaps, and two headers for each entry. Here all of these are fixed,
so the same entries give the same bytes, and a file with any other byte was changed. Entries are
stored, never compressed, so unpacking a file never takes more space than the file. Any ZIP program
lists and unpacks it.
"""

from __future__ import annotations

import math
import re
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError

Bytes = bytes | memoryview

#: Largest size in bytes of a file, and of its entries together.
LARGEST = 256 * 2**20
MOST_ENTRIES = 4096

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_LOCAL_MARK, _CENTRAL_MARK, _END_MARK = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
#: Version 2.0, made on Unix; no flag, stored; midnight of 1 January 1980, the first date of ZIP.
_MADE_BY, _HOW = (3 << 8) | 20, (20, 0, 0, 0, (1 << 5) | 1)
_MODE = stat.S_IFREG | 0o644
_NAME = re.compile(r"[A-Za-z0-9_]+(?:[./][A-Za-z0-9_]+)*")
_AGAIN = "Copy the file again, or write the model again."


def pack(entries: Mapping[str, Bytes]) -> bytes:
    """Return the archive of these entries, in any order.

    Examples
    --------
    >>> pack({"b": b"2", "a": b"1"}) == pack({"a": b"1", "b": b"2"})
    True
    """
    return b"".join(_pieces(entries))


def unpack(data: Bytes) -> dict[str, memoryview]:
    """Return the entries of an archive; `check_bytes` finds changes between them.

    Raises
    ------
    InputError
        Not an archive, or a truncated one; an entry lies outside the file, is duplicated,
        compressed, encrypted or not a regular file, or its name is not a plain relative path; or
        entries are too many or too large.

    Examples
    --------
    >>> bytes(unpack(pack({"a": b"1"}))["a"])
    b'1'
    """
    view = memoryview(data)
    if bytes(view[:4]) != _LOCAL_MARK:
        raise InputError(
            f"is not a model file: it begins with {bytes(view[:4])!r}, unlike a ZIP archive. "
            "Name a file that errcomp wrote."
        )
    start = len(view) - _END.size
    if start < 0 or bytes(view[start : start + 4]) != _END_MARK:
        raise InputError(f"is truncated, or has bytes appended. {_AGAIN}")
    _, _, _, _, count, size, offset, _ = _END.unpack(view[start:])
    if count > MOST_ENTRIES:
        raise InputError(f"has {count:,} entries; a model has at most {MOST_ENTRIES:,}. {_AGAIN}")
    if offset + size != start:
        raise InputError(f"its table of contents is not where it should be. {_AGAIN}")
    entries: dict[str, memoryview] = {}
    at, total = offset, 0
    for _ in range(count):
        name, first, length, at = _entry(view[:start], at)
        if name in entries:
            raise InputError(f"entry {name!r} is duplicated. {_AGAIN}")
        total += length
        if total > LARGEST:
            raise InputError(
                f"its entries state a total size above {LARGEST >> 20} MiB, the limit of a model "
                "file. Do not unpack the file."
            )
        if first + length > offset:
            raise InputError(f"entry {name!r} lies outside the file. {_AGAIN}")
        entries[name] = view[first : first + length]
    return entries


def check_bytes(data: Bytes, entries: Mapping[str, Bytes]) -> None:
    """Raise unless the data are exactly the archive of these entries.

    Raises
    ------
    InputError
        A byte differs; the message gives its place.
    """
    view, at = memoryview(data), 0
    for piece in _pieces(entries):
        if view[at : at + len(piece)].tobytes() != bytes(piece):  # views compare slowly
            raise InputError(
                f"has changed bytes between its entries ({at:,} to {at + len(piece):,}), or was "
                f"packed by another program. {_AGAIN}"
            )
        at += len(piece)
    if at != len(view):
        raise InputError(f"has {len(view) - at:,} bytes that belong to no entry. {_AGAIN}")


def _pieces(entries: Mapping[str, Bytes]) -> Iterator[Bytes]:
    """Yield header and bytes of every entry, by name, and the table of contents."""
    directory, at = [], 0
    for name in sorted(entries):
        payload, raw = entries[name], name.encode("ascii")
        common = (*_HOW, zlib.crc32(payload), len(payload), len(payload), len(raw), 0)
        yield _LOCAL.pack(_LOCAL_MARK, *common) + raw
        yield payload
        rest = (0, 0, 0, _MODE << 16, at)
        directory.append(_CENTRAL.pack(_CENTRAL_MARK, _MADE_BY, *common, *rest) + raw)
        at += _LOCAL.size + len(raw) + len(payload)
    contents, count = b"".join(directory), len(directory)
    yield contents + _END.pack(_END_MARK, 0, 0, count, count, len(contents), at, 0)


def _entry(view: memoryview, at: int) -> tuple[str, int, int, int]:
    """Return name, first byte and length of an entry, and the place of the next listing."""
    after = at + _CENTRAL.size
    if after > len(view) or bytes(view[at : at + 4]) != _CENTRAL_MARK:
        raise InputError(f"its table of contents is damaged. {_AGAIN}")
    fields = _CENTRAL.unpack(view[at:after])
    flags, method, packed, length, named = fields[3], fields[4], fields[8], fields[9], fields[10]
    mode, local = fields[15] >> 16, fields[16]
    name = _checked_name(bytes(view[after : after + named]))
    if flags & 1:
        raise InputError(
            f"entry {name!r} is encrypted, but a model file has no encrypted entries. {_AGAIN}"
        )
    if method != 0 or packed != length:
        raise InputError(
            f"entry {name!r} is compressed, but a model file has no compressed entries. Do not "
            "repack the file: use it as errcomp wrote it. If a newer errcomp wrote it, upgrade "
            "errcomp."
        )
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        kind = "a link" if stat.S_ISLNK(mode) else "not a regular file"
        raise InputError(
            f"entry {name!r} is {kind}, but a model file has only regular files. {_AGAIN}"
        )
    # Extra fields and comments are never written; check_bytes refuses them.
    return name, local + _LOCAL.size + named, length, after + named + fields[11] + fields[12]


def _checked_name(raw: bytes) -> str:
    """Return the name if it is a plain path within the folder of unpacking."""
    name = raw.decode("ascii", "backslashreplace")
    reason = ""
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        reason = "an absolute path, or on another drive"
    elif "\\" in name:
        reason = "invalid (it has a backslash, or bytes that are not ASCII)"
    elif ".." in name.split("/"):
        reason = "a path outside its folder"
    elif not _NAME.fullmatch(name):
        reason = "invalid (only letters, digits and _, with . and / between them, are allowed)"
    if reason:
        raise InputError(
            f"the name of an entry, {name[:80]!r}, is {reason}. The file is damaged, or errcomp "
            "did not write it. Do not unpack the file."
        )
    return name


# Arrays as files in NumPy's own format, version 1.0, without objects.

_TYPES = {
    "<f8": "float64",
    "<f4": "float32",
    "<i8": "int64",
    "<i4": "int32",
    "|i1": "int8",
    "|b1": "bool",
}
_LONGEST_TEXT = 256
_TEXT = re.compile("<U([1-9][0-9]{0,2})")
_MOST_DIMENSIONS = 8
_MAGIC = b"\x93NUMPY\x01\x00"


def describe(array: NDArray[Any], *, finite: bool = True) -> dict[str, Any]:
    """Return the manifest's entry of an array: type, shape, and whether it is all finite.

    Raises
    ------
    InputError
        Not an array, a type that model files do not allow, or not finite where it must be.

    Examples
    --------
    >>> describe(np.array([1.0, np.nan]), finite=False)
    {'dtype': '<f8', 'shape': [2], 'finite': False}
    """
    if type(array) is not np.ndarray:  # a subclass would lose its mask or units
        raise InputError(f"must be a NumPy array, got {type(array).__name__}. Use np.asarray.")
    dtype = array.dtype.newbyteorder("<").str
    _check_type(dtype)
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"has NaN or infinite values ({np.count_nonzero(~np.isfinite(array)):,} of "
            f"{array.size:,}). Fit again, or name the array in non_finite if these values are "
            "intended."
        )
    return {"dtype": dtype, "shape": list(array.shape), "finite": finite}


def encode(array: NDArray[Any]) -> bytes:
    """Return the array as a file; the same on every platform.

    Examples
    --------
    >>> import io
    >>> np.load(io.BytesIO(encode(np.arange(3.0))), allow_pickle=False).tolist()
    [0.0, 1.0, 2.0]
    """
    about = describe(array, finite=False)
    body = np.ascontiguousarray(array, dtype=about["dtype"]).tobytes()
    return _header(about["dtype"], array.shape) + body


def decode(data: bytes | memoryview, about: dict[str, Any]) -> NDArray[Any]:
    """Return the array in a file, writable, checked against its entry in the manifest.

    Raises
    ------
    InputError
        Type or shape is impossible or differs from the file, or the file holds invalid values: NaN
        or infinity where the manifest says that all are finite, truth values other than 0 and 1,
        text that is not Unicode.

    Examples
    --------
    >>> decode(encode(np.arange(3)), {"dtype": "<i8", "shape": [3], "finite": True})
    array([0, 1, 2])
    """
    dtype, shape, finite = about["dtype"], about["shape"], about["finite"]
    _check_type(dtype)
    kind = np.dtype(dtype)
    if (
        type(shape) is not list
        or len(shape) > _MOST_DIMENSIONS
        or not all(type(length) is int and length >= 0 for length in shape)
        or math.prod(max(length, 1) for length in shape) * kind.itemsize > LARGEST
    ):
        raise InputError(f"has the impossible shape {str(shape)[:80]} in the manifest.")
    if type(finite) is not bool:
        raise InputError(f"has finite = {str(finite)[:80]!r} in the manifest, not true or false.")
    header, view = _header(dtype, tuple(shape)), memoryview(data)
    if view[: len(header)] != header or len(view) != len(header) + math.prod(shape) * kind.itemsize:
        raise InputError(
            f"differs from the manifest, which says: an array of type {dtype} and shape {shape}."
        )
    array = np.empty(shape, dtype=kind)
    if array.size:
        array[...] = np.frombuffer(view[len(header) :], dtype=kind).reshape(shape)
    _check_values(array, finite)
    return array.astype(kind.newbyteorder("="), copy=False)


def _check_type(dtype: Any) -> None:
    text = _TEXT.fullmatch(str(dtype))
    if str(dtype) not in _TYPES and not (text and int(text[1]) <= _LONGEST_TEXT):
        raise InputError(
            f"is of type {str(dtype)[:80]!r}, which model files do not allow. They allow "
            f"{', '.join(_TYPES.values())} and text of 1 to {_LONGEST_TEXT} characters: "
            "convert with .astype(...)."
        )


def _check_values(array: NDArray[Any], finite: bool) -> None:
    kind = array.dtype.kind
    if kind == "f" and finite and not np.isfinite(array).all():
        raise InputError("has NaN or infinity, but the manifest says that all values are finite.")
    if kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise InputError("has Boolean values other than 0 and 1.")
    if kind == "U" and array.size:
        codes = array.reshape(-1).view(np.dtype("<u4"))
        if ((codes >= 0x110000) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise InputError("has characters that are not Unicode.")


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of the format, padded so that the values begin at a multiple of 64."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = -(-(len(_MAGIC) + 2 + len(text) + 1) // 64) * 64 - len(_MAGIC) - 2
    return _MAGIC + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"
