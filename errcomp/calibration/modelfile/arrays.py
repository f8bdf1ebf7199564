"""Arrays as files in NumPy's own format, version 1.0, without objects and without guessing.

The header of such a file is text that NumPy evaluates. It is not read here: the manifest says what
type and shape an array has, and the file must begin with exactly the header that belongs to them.
``numpy.load(..., allow_pickle=False)`` reads the same files.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.modelfile.container import LARGEST
from errcomp.errors import InputError

__all__ = ["decode", "describe", "encode"]

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
    """Return what the manifest says of an array: type, shape, and whether all of it is finite.

    Raises
    ------
    InputError
        It is no array, of a type that model files do not hold, or not finite where it has to be.

    Examples
    --------
    >>> describe(np.array([1.0, np.nan]), finite=False)
    {'dtype': '<f8', 'shape': [2], 'finite': False}
    """
    if type(array) is not np.ndarray:  # a subclass (mask, units) would lose what makes it one
        raise InputError(f"must be a NumPy array, got {type(array).__name__}. Use np.asarray.")
    dtype = array.dtype.newbyteorder("<").str
    _check_type(dtype)
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"has {np.count_nonzero(~np.isfinite(array)):,} values that are NaN or infinite. "
            "Fit again, or name it in non_finite if they mean something."
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
    """Return the array in a file, given what the manifest says of it; the array can be written to.

    Raises
    ------
    InputError
        Type or shape cannot be, the file is not of this type and shape, or holds values that do
        not belong in it: NaN or infinity where the manifest says that all is finite, truth values
        other than 0 and 1, text that is not Unicode.

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
        raise InputError(f"cannot have the shape {str(shape)[:80]}: see the manifest.")
    if type(finite) is not bool:
        raise InputError(f"finite must be true or false, got {str(finite)[:80]!r}.")
    header, view = _header(dtype, tuple(shape)), memoryview(data)
    if view[: len(header)] != header or len(view) != len(header) + math.prod(shape) * kind.itemsize:
        raise InputError(f"is not the array of type {dtype} and shape {shape} in the manifest.")
    array = np.empty(shape, dtype=kind)
    if array.size:
        array[...] = np.frombuffer(view[len(header) :], dtype=kind).reshape(shape)
    _check_values(array, finite)
    return array.astype(kind.newbyteorder("="), copy=False)


def _check_type(dtype: Any) -> None:
    text = _TEXT.fullmatch(str(dtype))
    if str(dtype) not in _TYPES and not (text and int(text[1]) <= _LONGEST_TEXT):
        raise InputError(
            f"is of type {str(dtype)[:80]!r}, which model files do not hold. They hold "
            f"{', '.join(_TYPES.values())} and text of 1 to {_LONGEST_TEXT} characters: "
            "convert with .astype(...)."
        )


def _check_values(array: NDArray[Any], finite: bool) -> None:
    kind = array.dtype.kind
    if kind == "f" and finite and not np.isfinite(array).all():
        raise InputError("has NaN or infinity, though the manifest says that it is finite.")
    if kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise InputError("has truth values other than 0 and 1.")
    if kind == "U" and array.size:
        codes = array.reshape(-1).view(np.dtype("<u4"))
        if ((codes >= 0x110000) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise InputError("has characters that are not Unicode.")


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header as the format defines it, padded so that the values begin at 64 bytes."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = -(-(len(_MAGIC) + 2 + len(text) + 1) // 64) * 64 - len(_MAGIC) - 2
    return _MAGIC + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"
