"""Which rows of a table are alternatives of one choice, and under which conditions they are equal.

A choice has one condition, e.g. a model, a mode and a batch size, and at least two alternatives,
e.g. devices, that were predicted under it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import (
    GuessedWarning,
    InputError,
    describe_names,
    describe_rows,
    warn_caller,
)
from errcomp.results import Dropped
from errcomp.tables.columns import dropped_rows, role_of, with_roles
from errcomp.tables.configurations import RUN_KEYS
from errcomp.tables.frames import is_missing
from errcomp.tables.table import check_keys

if TYPE_CHECKING:
    from errcomp.tables.memory.pairs import Pairs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Columns that repeat a row, or say who predicted it: never a condition.
_NOT_CONDITIONS = ("tool", "repeat", "date")
#: Further columns that say under which conditions something ran.
_CONDITIONS = tuple(dict.fromkeys((*RUN_KEYS, "level", "version")))
#: Conditions whose runs are likely to share errors, the most likely first.
_GROUPS = ("model", "kernel_class", "mode", "batch", "seq_len")
#: Columns of results, which a condition cannot have.
_RESULT = (
    *("n", "chosen", "best", "regret", "p_best", "expected_regret", "measure", "saves", "changes"),
    *("first", "second", "predicted_ratio", "measured_ratio", "p_faster", "word"),
)
ALONE = "no other alternative under the same conditions"
NOT_POSITIVE = "predicted is not positive"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Predictions, and measurements where they exist; arrays of shape (n,).

    Attributes
    ----------
    x, y : ndarray
        Logarithms of the predicted and the measured time; y is NaN where nothing was measured. Of
        a value of which more is better, their negatives.
    price : ndarray
        Logarithm of the price of a unit of time; 0 without prices.
    alternative, condition, group : ndarray of int
        Codes from 0; `group` is a group of conditions.
    """

    x: Floats
    y: Floats
    price: Floats
    alternative: Ints
    condition: Ints
    group: Ints

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: NDArray[Any]) -> Rows:
        """Return some rows; the codes stay."""
        return Rows(*(getattr(self, name)[index] for name in self.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Alternatives under equal conditions; rows are sorted by condition.

    Attributes
    ----------
    between, within : tuple of str
        Keys of the alternatives, and of the conditions.
    cluster : str
        Condition whose values are taken to be independent; empty: each condition.
    per, price : str
        Columns that times are divided by, and multiplied by; empty: none.
    higher : bool
        Whether more is better, as of a throughput.
    alternatives : tuple of str
        Their names, by code.
    conditions : tuple of dict
        Values of the keys, by code.
    rows : Rows
    start : ndarray of int, shape (conditions + 1,)
        First row of each condition, and the end.
    repeated : int
        Rows of the table that repeat an alternative under its condition; they were averaged.
    dropped : tuple of Dropped
    """

    between: tuple[str, ...]
    within: tuple[str, ...]
    cluster: str
    per: str
    price: str
    higher: bool
    alternatives: tuple[str, ...]
    conditions: tuple[Mapping[str, Any], ...]
    rows: Rows
    start: Ints
    repeated: int
    dropped: tuple[Dropped, ...]

    def priced(self) -> Choices:
        """Return the choices with costs in the place of times, for what needs no error model."""
        rows = self.rows
        return replace(self, rows=replace(rows, x=rows.x + rows.price, y=rows.y + rows.price))

    def each(self) -> Iterator[slice]:
        """Yield the rows of each choice."""
        for first, end in pairwise(self.start.tolist()):
            yield slice(first, end)

    def pairs(self, used: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return the positions of both rows of every comparison among the rows in use."""
        first, second = [], []
        for rows in self.each():
            at = np.flatnonzero(used[rows]) + rows.start
            i, j = np.triu_indices(len(at), 1)
            first.append(at[i])
            second.append(at[j])
        empty = [np.empty(0, dtype=np.int64)]
        return np.concatenate(first or empty), np.concatenate(second or empty)


def choices_of(
    pairs: Pairs,
    *,
    between: str | Sequence[str],
    within: Sequence[str] | None = None,
    cluster: str | None = None,
    per: str | None = None,
    price: str | None = None,
    higher: bool = False,
) -> Choices:
    """Sort the rows of a table into choices.

    Parameters
    ----------
    pairs : Pairs
        Of one tool; rows without a measurement are allowed.
    between : str or sequence of str
        Key whose values are the alternatives, or keys that name them together.
    within : sequence of str, optional
        Keys that must be equal. By default those that say what was run (model, mode, batch, …).
        Others are added where they distinguish rows of one alternative. Keys that the alternative
        determines, e.g. the vendor of a device, are left out.
    cluster : str, optional
        Condition whose values are independent; ``"none"``: each condition. By default the model,
        the kernel class, the mode or another condition with at least two values.
    per : str, optional
        Column of positive numbers that times are divided by, e.g. the batch size.
    price : str, optional
        Column of positive numbers that times are multiplied by, e.g. the price of an hour: choices
        are then about costs. It may lack where a row was measured.
    higher : bool
        More is better, e.g. of a throughput.

    Raises
    ------
    InputError
        A key is unknown, there is one alternative only, or no two alternatives were predicted
        under equal conditions.

    Warns
    -----
    GuessedWarning
        Keys were added to those named.
    """
    names = _keys(pairs, (between,) if isinstance(between, str) else tuple(between))
    if "tool" in names:
        raise InputError(
            f"{pairs.prefix}the column 'tool' says which tool made a prediction, so its values "
            "cannot be the alternatives. Name another key, e.g. device. To compare tools, use "
            "errcomp audit."
        )
    label = _labels(pairs, names)
    known = sorted(set(label.tolist()))
    if len(known) < 2:
        raise InputError(
            f"{pairs.prefix}{' and '.join(names)} has only one value, {known[0]!r}: there is "
            "nothing to choose between. Name a key with several values: --between KEY."
        )
    given = None if within is None else _keys(pairs, tuple(within))
    if both := [name for name in given or () if name in names]:
        raise InputError(f"key {both[0]!r} is given in 'between' and in 'within'. Give it once.")
    equal = _within(pairs, names, label, given, price)
    check_keys(equal, _RESULT)
    fine = pairs.predicted > 0
    at = np.flatnonzero(fine)
    condition = pairs.codes(*equal) if equal else np.zeros(pairs.n, dtype=np.int64)
    alternative = np.searchsorted(known, label.tolist())
    place, rows, repeated = _averaged(
        pairs, alternative, condition, at, positive_numbers(pairs, "per", per)
    )
    logarithm = np.log(
        positive_numbers(pairs, "price", price, optional=np.isfinite(pairs.measured))
    )
    rows = replace(rows, price=logarithm[place])
    if higher:
        rows = replace(rows, x=-rows.x, y=-rows.y)
    alone = np.bincount(rows.condition)[rows.condition] < 2
    if alone.all():
        raise _never_equal(pairs, names, equal, label)
    kept = np.flatnonzero(~alone)
    kept = kept[np.argsort(rows.condition[kept], kind="stable")]
    chosen = rows.take(kept)
    old, first, codes = np.unique(chosen.condition, return_index=True, return_inverse=True)
    values = {name: pairs.column(name)[place[kept[first]]].tolist() for name in equal}
    conditions = tuple({name: values[name][i] for name in equal} for i in range(len(old)))
    grouped_by = _cluster(conditions, equal, cluster)
    groups = [str(c[grouped_by]) if grouped_by else i for i, c in enumerate(conditions)]
    group = np.unique(groups, return_inverse=True)[1]
    used, alternatives = np.unique(chosen.alternative, return_inverse=True)
    return Choices(
        names,
        equal,
        grouped_by,
        per or "",
        price or "",
        higher,
        tuple(known[i] for i in used),
        conditions,
        Rows(chosen.x, chosen.y, chosen.price, alternatives, codes, group[codes]),
        np.append(first, len(kept)),
        repeated,
        (
            *pairs.dropped,
            *dropped_rows(NOT_POSITIVE, pairs.rows[~fine]),
            *dropped_rows(ALONE, pairs.rows[place[alone]]),
        ),
    )


def _keys(pairs: Pairs, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of these keys: by name, or by what the name stands for (gpu: device)."""
    found = [
        name if name in pairs.keys else role_of(name, pairs.keys) or name
        for name in dict.fromkeys(names)
    ]
    pairs.check_columns(found)
    return tuple(found)


def positive_numbers(
    pairs: Pairs, role: str, name: str | None, *, optional: NDArray[np.bool_] | None = None
) -> Floats:
    """Return what the time of each row is divided or multiplied by; NaN where none is needed."""
    if name is None:
        return np.ones(pairs.n)
    (name,) = _keys(pairs, (name,))
    column = pairs.column(name)
    missing = np.array([is_missing(value) for value in column.tolist()])
    numbers = np.array([_number(value) for value in column.tolist()])
    bad = ~((numbers > 0) & np.isfinite(numbers))
    if optional is not None:
        bad &= ~(missing & optional)
    if bad.any():
        raise InputError(
            f"{pairs.prefix}'{role}' needs a column of positive numbers, but column {name!r} has "
            f"{column[bad].tolist()[0]!r} in {describe_rows(pairs.rows[bad].tolist())}. Name "
            "another column."
        )
    return numbers


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _labels(pairs: Pairs, names: Sequence[str]) -> NDArray[np.str_]:
    columns = [pairs.column(name).tolist() for name in names]
    return np.array([", ".join(map(str, row)) for row in zip(*columns, strict=True)])


def _within(
    pairs: Pairs,
    between: Sequence[str],
    label: NDArray[np.str_],
    named: Sequence[str] | None,
    price: str | None,
) -> tuple[str, ...]:
    """Return the keys that must be equal: those named, or those that say what was run.

    As long as an alternative has several rows under a condition, further keys that distinguish
    them are added.
    """
    others = [key for key in pairs.keys if key not in (*between, *_NOT_CONDITIONS, price)]
    own = [key for key in others if _belongs(pairs.codes(key), label)]
    usual = [
        key
        for key in with_roles(_CONDITIONS, [*between, *others])
        if key in others and key not in own and len(set(pairs.codes(key).tolist())) > 1
    ]
    chosen = list(usual if named is None else named)
    for key in dict.fromkeys([*usual, *others]):
        codes = [label, *(pairs.codes(name) for name in chosen)]
        unique = len(set(zip(*(code.tolist() for code in codes), strict=True)))
        if unique == pairs.n:
            break
        if key in chosen or key in own or not (key in usual or _shared(pairs, key, label)):
            continue
        more = len(set(zip(*(c.tolist() for c in (*codes, pairs.codes(key))), strict=True)))
        if more > unique:
            chosen.append(key)
    if named is not None and (added := chosen[len(named) :]):
        warn_caller(
            f"{pairs.prefix}{' and '.join(between)} has several rows with equal "
            f"{', '.join(named) or 'conditions'}: also compared at equal {', '.join(added)}",
            GuessedWarning,
        )
    return tuple(chosen)


def _belongs(codes: Ints, label: NDArray[np.str_]) -> bool:
    """Say whether each alternative has one value, and not all have the same."""
    both = set(zip(label.tolist(), codes.tolist(), strict=True))
    return len(both) == len(set(label.tolist())) and len(set(codes.tolist())) > 1


def _shared(pairs: Pairs, key: str, label: NDArray[np.str_]) -> bool:
    """Say whether a column can be a condition: two alternatives have a value in common."""
    column = pairs.column(key)
    if column.dtype.kind == "f" and not np.all(column == np.round(column)):
        return False
    codes = pairs.codes(key)
    both = set(zip(codes.tolist(), label.tolist(), strict=True))
    return len(both) > len(set(codes.tolist()))


def _averaged(
    pairs: Pairs, alternative: Ints, condition: Ints, at: Ints, divisor: Floats
) -> tuple[Ints, Rows, int]:
    """Average the logarithms of rows that repeat an alternative under a condition.

    Returns the position of the first row of each, the rows, and how many repeat one.
    """
    name = condition[at] * (int(alternative.max()) + 1) + alternative[at]
    _, first, which = np.unique(name, return_index=True, return_inverse=True)
    count = np.bincount(which)
    x = np.bincount(which, np.log(pairs.predicted[at] / divisor[at])) / count
    known = np.isfinite(pairs.measured[at])
    log = np.zeros(len(at))
    log[known] = np.log((pairs.measured[at] / divisor[at])[known])
    seen = np.bincount(which, known)
    y = np.where(seen > 0, np.bincount(which, log) / np.maximum(seen, 1), np.nan)
    place = at[first]
    none = np.zeros(len(x), dtype=np.int64)
    rows = Rows(x, y, np.zeros(len(x)), alternative[place], condition[place], none)
    return place, rows, len(at) - len(first)


def _cluster(
    conditions: Sequence[Mapping[str, Any]], within: Sequence[str], named: str | None
) -> str:
    """Return the condition whose values are taken to be independent; empty: each condition."""
    if named == "none":
        return ""
    if named is not None:
        found = named if named in within else role_of(named, within)
        if found is None:
            raise InputError(
                f"cluster {named!r} is not one of the conditions: {', '.join(within) or 'none'}. "
                'Name one of them, or "none" if all conditions are independent.'
            )
        return found
    for name in [*with_roles(_GROUPS, within), *within]:
        count = len({str(condition[name]) for condition in conditions})
        if 2 <= count < len(conditions):
            return name
    return ""


def _never_equal(
    pairs: Pairs, between: Sequence[str], within: Sequence[str], label: NDArray[np.str_]
) -> InputError:
    """Say which conditions differ, so that nothing can be compared."""
    words, blocking = " and ".join(between), []
    for key in within:
        others = [pairs.codes(name) for name in within if name != key]
        rows = zip(*(code.tolist() for code in others), strict=True) if others else [()] * pairs.n
        together = set(zip(rows, label.tolist(), strict=True))
        if len(together) > len({condition for condition, _ in together}):
            blocking.append(key)
    conditions = ", ".join(within) or "no condition"
    advice = (
        f"Rows agree without {describe_names(blocking)}: leave it out with --within if it "
        "makes no difference."
        if blocking
        else "Predict the alternatives under the same conditions."
    )
    return InputError(
        f"{pairs.prefix}no two values of {words} were predicted under equal conditions "
        f"({conditions}). {advice}"
    )
