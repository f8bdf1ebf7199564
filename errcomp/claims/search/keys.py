"""Rows and keys of a search: rows that all tools have, keys that name subsets, and their cost.

It also decides which columns are keys, and which keys are functions of other keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.errors import InputError, describe_rows, offer
from errcomp.tables import RESERVED_KEYS, Pairs
from errcomp.tables.configurations import cannot_match
from errcomp.tables.table import sort_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Costs are whole numbers in units of 1/10 bit.
BITS = 10
#: For keys with more values than this, the number of values in a union is bounded.
MOST_COMPLETE = 12
_MOST_LISTED = 5  # most values in a union of such a key
#: Derived keys with more values than this are named one value at a time (or all but one).
_MOST_DERIVED = 6


def listing_cost(listed: int, values: int) -> int:
    r"""Return the cost of naming some of the values of a key, in tenths of a bit.

    .. math:: 2 + k + \log_2 \binom{v}{k}

    for k of v values: two bits for the key, k for their number, and the logarithm of the number of
    ways to choose k. The cheaper of listing and leaving out ("all but") counts. All values cost
    nothing, because the key is then not used.

    Examples
    --------
    >>> listing_cost(1, 12), listing_cost(2, 12), listing_cost(11, 12), listing_cost(12, 12)
    (66, 100, 66, 0)
    """
    if listed == values:
        return 0
    k = min(listed, values - listed)
    return round(BITS * (2 + k + log2(comb(values, k))))


@dataclass(frozen=True, slots=True)
class Naming:
    """The cheapest way to name a union of values: its cost (tenths of a bit), and the values."""

    cost: int
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()


@dataclass(slots=True)
class _Derived:
    """A key that is a function of another, such as the vendor of a device."""

    name: str
    values: list[Any]
    masks: list[int]
    listed: int


@dataclass(slots=True)
class Factor:
    """A key, the keys that are functions of it, and the unions of its values to search.

    A function of a key (vendor of device) selects the same rows as some union of the key's values,
    in fewer words. So it only makes the naming of that union cheaper.

    Attributes
    ----------
    name : str
        The key.
    values : list
        Its values, sorted.
    codes : ndarray of int, shape (n,)
        Which value each configuration has.
    listed : int
        Unions of at most this many values, or of all but at most this many, are searched. At 0 the
        key is not searched.
    derived : list
        Keys that are functions of this one.
    """

    name: str
    values: list[Any]
    codes: NDArray[np.int64]
    listed: int
    derived: list[_Derived] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every union of values is searched."""
        return self.listed >= len(self.values) // 2

    def count(self) -> int:
        """Return the number of unions that are searched, without those through derived keys."""
        v = len(self.values)
        if self.complete:
            return int(2**v - 1)
        return 1 + sum(comb(v, k) for k in range(1, self.listed + 1)) * 2

    def namings(self) -> dict[int, Naming]:
        """Return the cheapest naming of each union, as a bit mask over the values.

        Examples
        --------
        >>> factor = Factor("mode", ["inference", "training"], np.array([0, 1]), 1)
        >>> factor.namings()[0b10]
        Naming(cost=40, where=(('mode', ('training',)),))
        """
        v = len(self.values)
        full = (1 << v) - 1
        namings = {full: Naming(0)}
        singles = [1 << i for i in range(v)]
        for mask, cost in _unions(singles, self.listed):
            namings[mask] = Naming(cost, ((self.name, _pick(self.values, mask)),))
        for derived in self.derived:
            options = [
                (_join(derived.masks, union), cost, (derived.name, _pick(derived.values, union)))
                for union, cost in _unions(
                    [1 << i for i in range(len(derived.values))], derived.listed
                )
            ]
            for mask, naming in list(namings.items()):
                for option, cost, where in options:
                    both, total = mask & option, naming.cost + cost
                    if both and (both not in namings or total < namings[both].cost):
                        namings[both] = Naming(total, (where, *naming.where))
        return namings


def _unions(singles: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Unions of up to ``limit`` values, or of all but up to ``limit``, with their cost."""
    v, full = len(singles), sum(singles)
    costs: dict[int, int] = {}
    for size in range(1, min(limit, v - 1) + 1):
        for chosen in combinations(singles, size):
            mask = sum(chosen)
            costs.setdefault(mask, listing_cost(size, v))
            costs.setdefault(full ^ mask, listing_cost(v - size, v))
    return list(costs.items())


def _join(masks: Sequence[int], union: int) -> int:
    joined = 0
    for i, mask in enumerate(masks):
        if union >> i & 1:
            joined |= mask
    return joined


def _pick(values: Sequence[Any], mask: int) -> tuple[Any, ...]:
    return tuple(value for i, value in enumerate(values) if mask >> i & 1)


def choose_factors(
    table: Configurations, keys: Sequence[str] | None, max_values: int | None
) -> tuple[list[Factor], dict[str, str]]:
    """Choose the keys to search, and say why the others are not searched.

    Constant columns and columns that repeat another are left out. A column that is a function of
    another becomes a derived key of it.

    Parameters
    ----------
    table : Configurations
        The rows to search.
    keys : sequence of str, optional
        Columns to use; by default all keys.
    max_values : int, optional
        Largest number of values in a union, or left out of it.

    Returns
    -------
    factors : list of Factor
        Independent keys, by decreasing number of values.
    unused : dict of str to str
        Columns that are not searched, and why.

    Raises
    ------
    InputError
        A key does not exist, or ``max_values`` is not a positive number.
    """
    if max_values is not None and max_values < 1:
        raise InputError(f"max_values must be at least 1, got {max_values}")
    unused = dict(table.ignored)
    if keys is None:
        keys = [name for name in table.columns if name not in unused]
    else:
        for name in keys:
            if name not in table.columns:
                known = offer("Keys of the table", list(table.columns), wanted=name)
                raise InputError(f"no key {name!r} to search. {known}")
            unused.pop(name, None)
    # Of two columns with the same information, the one with the well-known name stays.
    ordered = sorted(dict.fromkeys(keys), key=lambda name: name not in RESERVED_KEYS)
    factors: list[Factor] = []
    for name in ordered:
        values, codes = _encode(table.columns[name])
        if len(values) == 1:
            unused[name] = f"always {values[0]}"
            continue
        twin = next((f for f in factors if _same_partition(f.codes, codes)), None)
        if twin is not None:
            unused[name] = f"same information as {twin.name}"
            continue
        listed = len(values) // 2 if len(values) <= MOST_COMPLETE else _MOST_LISTED
        factors.append(Factor(name, values, codes, min(listed, max_values or listed)))
    factors.sort(key=lambda f: -len(f.values))
    return _fold(factors), unused


def _fold(factors: list[Factor]) -> list[Factor]:
    """Make keys that are functions of another its derived keys, unless that one is bounded."""
    roots: list[Factor] = []
    for factor in factors:
        parent = next(
            (r for r in roots if len(r.values) <= MOST_COMPLETE and _is_function(r, factor)), None
        )
        if parent is None:
            roots.append(factor)
            continue
        masks = [0] * len(factor.values)
        for parent_code, code in {
            (int(a), int(b)) for a, b in zip(parent.codes, factor.codes, strict=True)
        }:
            masks[code] |= 1 << parent_code
        listed = factor.listed if len(factor.values) <= _MOST_DERIVED else 1
        parent.derived.append(_Derived(factor.name, factor.values, masks, listed))
    return roots


def _is_function(parent: Factor, factor: Factor) -> bool:
    pairs = set(zip(parent.codes.tolist(), factor.codes.tolist(), strict=True))
    return len(pairs) == len(parent.values)


def _same_partition(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def _encode(values: list[Hashable]) -> tuple[list[Any], NDArray[np.int64]]:
    distinct = sorted(set(values), key=sort_key)
    position = {value: i for i, value in enumerate(distinct)}
    return distinct, np.asarray([position[value] for value in values], dtype=np.int64)


# Rows to search: the configurations that all tools with a figure have in common.


#: A column with more distinct whole numbers than this is a quantity, not a key.
MOST_NUMBERS = 12


@dataclass(frozen=True, slots=True)
class Configurations:
    """The rows from which subsets are selected, one per configuration.

    Attributes
    ----------
    names : tuple of str
        Names of the figures: the tools, in the order of the request.
    predicted, measured : ndarray, shape (tools, n)
        The pairs of each tool.
    columns : dict of str to list
        Key values of each configuration; missing values are None.
    ignored : dict of str to str
        Columns that are not keys, and why.
    left_out : dict of str to int
        Rows of each tool without counterpart in another tool.
    """

    names: tuple[str, ...]
    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    columns: dict[str, list[Any]]
    ignored: dict[str, str]
    left_out: dict[str, int]

    @property
    def n(self) -> int:
        """Number of configurations."""
        return int(self.predicted.shape[1])


def join(pairs: Pairs, names: Sequence[str], tool_key: str) -> Configurations:
    """Select the configurations that all these tools have, matched by all common keys.

    Parameters
    ----------
    pairs : Pairs
        Rows of one or several tools.
    names : sequence of str
        Tools, as in the column ``tool_key``. Without such a column, or with one tool in it, any
        single name stands for the whole table.
    tool_key : str
        The column with the tool of each row.

    Returns
    -------
    Configurations

    Raises
    ------
    InputError
        A tool is not in the table, the tools have no common configuration, or a tool has the same
        configuration twice, so that its rows cannot be matched with those of another tool.
    """
    rows = _rows_of_tools(pairs, names, tool_key)
    columns = {
        name: [_plain(v) for v in pairs.column(name).tolist()]
        for name in pairs.keys
        if name != tool_key
    }
    ignored = quantities(columns, rows)
    for name, values in columns.items():
        if len(names) > 1 and cannot_match(name, [[values[i] for i in part] for part in rows]):
            ignored.setdefault(
                name, "constant within each tool, different between tools: not used to match rows"
            )
    left_out: dict[str, int] = {}
    if len(names) > 1:
        rows, left_out = _match(pairs, names, rows, columns, set(ignored))
    first = {name: _stating_tool(values, rows) for name, values in columns.items()}
    return Configurations(
        tuple(names),
        np.stack([pairs.predicted[index] for index in rows]),
        np.stack([pairs.measured[index] for index in rows]),
        {name: [columns[name][i] for i in index] for name, index in first.items()},
        ignored,
        left_out,
    )


def quantities(
    columns: Mapping[str, list[Any]], rows: Sequence[NDArray[np.int64]]
) -> dict[str, str]:
    """Name the columns that describe a row but are not keys: sums, counts, notes.

    A column of the reserved names is always a key. Any other column is not a key if it holds
    fractions or many different numbers, or if a tool has it for only some of its rows.
    """
    reasons = {}
    for name, values in columns.items():
        if name in RESERVED_KEYS:
            continue
        stated = [[values[i] for i in index if values[i] is not None] for index in rows]
        present = [value for part in stated for value in part]
        numbers = {v for v in present if isinstance(v, int | float) and not isinstance(v, bool)}
        if any(isinstance(v, float) for v in numbers):
            reasons[name] = "holds fractions: a quantity, not a key"
        elif len(numbers) > MOST_NUMBERS:
            reasons[name] = f"holds {len(numbers)} different numbers: a quantity, not a key"
        elif any(0 < len(part) < len(index) for part, index in zip(stated, rows, strict=True)):
            reasons[name] = "missing in some rows: searched only if you name it"
    return reasons


def _rows_of_tools(pairs: Pairs, names: Sequence[str], tool_key: str) -> list[NDArray[np.int64]]:
    everything = np.arange(pairs.n, dtype=np.int64)
    known = sorted({str(v) for v in pairs.column(tool_key)}) if tool_key in pairs.keys else []
    if len(names) == 1 and (not known or (len(known) == 1 and names[0] in ("", known[0]))):
        return [everything]
    if not known:
        raise InputError(
            f"{len(names)} figures for different tools were given, but the table has no column "
            f"{tool_key!r} with the tool of each row. Give one figure, or name the column "
            "(tool_key=...)."
        )
    texts = np.asarray([str(v) for v in pairs.column(tool_key)])
    for name in names:
        if name not in known:
            hint = offer("Tools in the table", known, wanted=name)
            raise InputError(f"no rows of tool {name!r}. {hint}")
    return [everything[texts == name] for name in names]


def _match(
    pairs: Pairs,
    names: Sequence[str],
    rows: list[NDArray[np.int64]],
    columns: Mapping[str, list[Any]],
    ignored: set[str],
) -> tuple[list[NDArray[np.int64]], dict[str, int]]:
    shared = [
        name
        for name, values in columns.items()
        if name not in ignored and all(any(values[i] is not None for i in index) for index in rows)
    ]
    if not shared:
        raise InputError(
            f"cannot match the rows of {', '.join(names)}: the table has no keys that describe a "
            "configuration. Add some (device, model, batch, …)."
        )
    tables: list[dict[tuple[Hashable, ...], int]] = []
    for name, index in zip(names, rows, strict=True):
        table: dict[tuple[Hashable, ...], int] = {}
        for i in index.tolist():
            key = tuple(columns[c][i] for c in shared)
            if key in table:
                twice = [int(pairs.rows[table[key]]), int(pairs.rows[i])]
                named = ", ".join(f"{c}={v}" for c, v in zip(shared, key, strict=True))
                raise InputError(
                    f"tool {name} has the configuration {named} twice ({describe_rows(twice)}), so "
                    "its rows cannot be matched with those of the other tools. Add a column that "
                    "distinguishes these rows, such as 'repeat'."
                )
            table[key] = i
        tables.append(table)
    common = [key for key in tables[0] if all(key in table for table in tables[1:])]
    if not common:
        raise InputError(
            f"the tools {', '.join(names)} have no configuration in common (rows are matched by "
            f"{', '.join(shared)})"
        )
    matched = [np.asarray([table[key] for key in common], dtype=np.int64) for table in tables]
    left_out = {name: len(index) - len(common) for name, index in zip(names, rows, strict=True)}
    return matched, left_out


def _stating_tool(values: list[Any], rows: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Values from the first tool with this key: a key of one tool describes the whole row."""
    for index in rows:
        if any(values[i] is not None for i in index):
            return index
    return rows[0]


def _plain(value: Any) -> Any:
    """Turn missing values into None, and whole floats into integers, as users write them."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
