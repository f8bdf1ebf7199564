"""Dependence between pairs: this module alone decides which units are independent.

Pairs of one model, or on one device, share part of their error, so the independent units are models
and devices. Every key that could carry such a dependence counts. No test decides it: with few
models a test finds nothing, and an interval of single pairs is then far too narrow
(docs/intervals.md). Two crossing keys both count; of two nested keys the coarser counts; exact
copies of a pair count once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_rows
from errcomp.tables.columns import with_roles
from errcomp.tables.frames import all_differ, refined
from errcomp.tables.table import sort_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

#: Keys whose values may have correlated errors, unless the user names others.
CLUSTER_KEYS = ("model", "device")
#: The value of ``cluster`` for independent pairs.
NO_CLUSTERS = "none"
#: Fewest clusters for an interval: Student's t with one degree of freedom is 12.7.
FEWEST_CLUSTERS = 3
#: Columns that may differ between copies of one measurement.
_NOT_THE_PAIR = ("repeat", "date")


@dataclass(frozen=True, slots=True)
class Dependence:
    """The independent units of a sample.

    Attributes
    ----------
    names : tuple of str
        The keys whose values count as the sample: none, one, or two that cross.
    codes : tuple of ndarray of int, shape (pairs,)
        For each of them the number of each pair's cluster, from 0.
    copies : ndarray of int, shape (pairs,), or None
        The number of each different pair; None where no pair is a copy of another.
    reason : str
        Why no interval is valid; empty otherwise.
    """

    names: tuple[str, ...] = ()
    codes: tuple[Ints, ...] = ()
    copies: Ints | None = None
    reason: str = ""

    @property
    def units(self) -> int | None:
        """Smallest number of clusters of a key, else of different pairs; None if all differ."""
        drawn = self.drawn
        return min(int(code.max()) + 1 for code in drawn) if drawn else None

    @property
    def drawn(self) -> tuple[Ints, ...]:
        """The clusterings: by key, else by copies, else empty."""
        return self.codes or (() if self.copies is None else (self.copies,))

    @property
    def words(self) -> str:
        """The units, in words for the method of an interval.

        Examples
        --------
        >>> import numpy as np
        >>> dependence({"model": ["a", "a", "b", "b", "c", "c"]}).words
        '3 models'
        """
        if self.names:
            counts = (int(code.max()) + 1 for code in self.codes)
            return " x ".join(map(_several, counts, self.names))
        return "" if self.copies is None else f"{int(self.copies.max()) + 1} different pairs"


def cluster_keys(cluster: str | Sequence[str] | None, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the cluster keys: the named ones, else a table's keys of a model and a device.

    Raises
    ------
    InputError
        A key is named twice, or three keys are named.

    Examples
    --------
    >>> cluster_keys(None, ["device", "batch"]), cluster_keys("none", ["device"])
    (('device',), ())
    >>> cluster_keys(None, ["app", "gpu"])
    ('app', 'gpu')
    """
    if cluster is None:
        return tuple(with_roles(CLUSTER_KEYS, keys))
    named = (cluster,) if isinstance(cluster, str) else tuple(cluster)
    if named == (NO_CLUSTERS,):
        return ()
    twice = [key for key in dict.fromkeys(named) if named.count(key) > 1]
    if twice:
        raise InputError(f"key {twice[0]!r} is given twice as a cluster. Give each key once.")
    if len(named) > 2:
        raise InputError(
            f"cluster takes at most two keys, got {', '.join(named)}. Name the two most important."
        )
    return named


def dependence(
    labels: Mapping[str, Sequence[Any] | NDArray[Any]],
    *,
    copies: Ints | None = None,
    given: bool = False,
    counts: Ints | None = None,
) -> Dependence:
    """Decide which units are independent.

    Parameters
    ----------
    labels : mapping of str to sequence, shape (rows,)
        For each key that may carry a dependence, its value in each row.
    copies : ndarray of int, shape (rows,), optional
        See `copies_of`.
    given : bool
        Whether the user named the keys: a key without effect is then an error, not ignored.
    counts : ndarray of int, shape (rows,), optional
        Number of pairs that each row stands for; by default one.

    Returns
    -------
    Dependence

    Examples
    --------
    >>> dependence({"model": ["a", "a", "b", "b"], "device": ["x", "y", "x", "y"]}).reason
    'no interval: 2 models are too few to represent others; at least 3 are needed \
(for results about only these 2, use --cluster device)'
    """
    codes: dict[str, Ints] = {}
    for name, values in labels.items():
        code, missing = _numbered(values)
        if missing:
            rows = (
                f"{describe_rows([i + 1 for i in missing])} of these pairs"
                if counts is None
                else f"{int(counts[missing].sum()):,} rows"
            )
            return Dependence(
                reason=f"no interval: the key {name} is missing in {rows}. Fill it in, or name "
                "another key as cluster"
            )
        total = len(code) if counts is None else int(counts.sum())
        largest = int(np.bincount(code, weights=counts).max()) if len(code) else 0
        if int(code.max(initial=0)) == 0 and total > 1:
            if given:
                return Dependence(
                    reason=f"no interval: all {total:,} pairs are of one {name}, so they say "
                    f"nothing about other {name}s"
                )
        elif largest > 1:
            codes[name] = code
    codes = _coarsest(codes)
    for name, code in codes.items():
        k = int(code.max()) + 1
        if k < FEWEST_CLUSTERS:
            rest = ",".join(other for other in codes if other != name) or NO_CLUSTERS
            fixed = "" if given else f" (for results about only these {k}, use --cluster {rest})"
            return Dependence(
                reason=f"no interval: {_several(k, name)} are too few to represent others; at "
                f"least {FEWEST_CLUSTERS} are needed{fixed}"
            )
    return Dependence(tuple(codes), tuple(codes.values()), copies)


def copies_of(
    values: Sequence[NDArray[np.float64]],
    names: Sequence[str],
    column: Callable[[str], NDArray[Any]],
) -> Ints | None:
    """Return a number for each different pair (by value or key); None if all differ.

    Parameters
    ----------
    values : sequence of ndarray, shape (pairs,)
        Predictions and measurements.
    names : sequence of str
        The keys. A repetition and a date may differ between copies.
    column : callable
        Returns the values of a key; called only as long as pairs are equal so far.

    Examples
    --------
    >>> import numpy as np
    >>> copies_of([np.array([1.0, 1.0, 2.0])], ["device"], lambda key: np.array(["A"] * 3)).tolist()
    [0, 0, 1]
    """
    if all_differ(*values):
        return None
    cell = reduce(refined, (np.unique(v, return_inverse=True)[1] for v in values))
    for name in names:
        if int(cell.max(initial=-1)) + 1 == len(cell):
            return None
        if name not in _NOT_THE_PAIR:
            cell = refined(cell, _numbered(column(name))[0])
    return None if int(cell.max(initial=-1)) + 1 == len(cell) else cell


def _numbered(values: Sequence[Any] | NDArray[Any]) -> tuple[Ints, list[int]]:
    """Return numbers of the labels in their own order, not that of the rows; and missing rows."""
    plain: list[Hashable] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    missing: list[int] = []
    different = dict.fromkeys(plain)
    if any(v is None or v != v for v in different):
        missing = [i for i, v in enumerate(plain) if v is None or v != v]
        plain = [None if v != v else v for v in plain]
        different = dict.fromkeys(plain)
    rank = {v: i for i, v in enumerate(sorted(different, key=sort_key))}
    return np.fromiter(map(rank.__getitem__, plain), np.int64, len(plain)), missing


def _coarsest(codes: Mapping[str, Ints]) -> dict[str, Ints]:
    """Leave out a key whose clusters are nested in those of another, or the same."""
    coarsest = dict(codes)
    for name, code in codes.items():
        for other, coarser in coarsest.items():
            if other != name and name in coarsest and _lies_in(code, coarser):
                del coarsest[name]
                break
    return coarsest


def _lies_in(fine: Ints, coarse: Ints) -> bool:
    cells = refined(fine, coarse)
    return int(cells.max()) == int(fine.max())


def _several(count: int, name: str) -> str:
    word = f"{name}s" if name.isalpha() else f"values of {name}"
    return f"{count:,} {word}"
