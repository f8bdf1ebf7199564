"""Sets of small numbers as bits: many sets at once, in 64-bit words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

__all__ = ["as_matrix", "distinct", "pack", "unpack"]


def as_matrix(masks: Sequence[int], size: int) -> NDArray[np.bool_]:
    """Turn bit masks, as long as they may be, into a boolean matrix with ``size`` columns.

    Examples
    --------
    >>> as_matrix([0b01, 0b10], 2).astype(int).tolist()
    [[1, 0], [0, 1]]
    """
    width = -(-size // 8)
    raw = b"".join(mask.to_bytes(width, "little") for mask in masks)
    octets = np.frombuffer(raw, dtype=np.uint8).reshape(len(masks), width)
    return np.unpackbits(octets, axis=1, count=size, bitorder="little").astype(bool)


def pack(sets: NDArray[np.bool_]) -> Words:
    """Pack the rows of a boolean matrix into words, shape (rows, words)."""
    octets = np.packbits(sets, axis=1)
    wide = np.zeros((len(sets), -(-octets.shape[1] // 8) * 8), dtype=np.uint8)
    wide[:, : octets.shape[1]] = octets
    return wide.view(np.uint64)


def unpack(words: Words, size: int) -> NDArray[np.bool_]:
    """Undo ``pack``."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=size).astype(bool)


def distinct(words: Words, costs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the cheapest of each group of equal rows, and the group that each row is in.

    Examples
    --------
    >>> words = np.array([[7], [5], [7]], dtype=np.uint64)
    >>> [part.tolist() for part in distinct(words, np.array([3, 1, 2]))]
    [[1, 2], [1, 0, 1]]
    """
    order = np.lexsort((costs, *words.T))
    ordered = words[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return order[new], group
