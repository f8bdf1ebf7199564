"""Which columns of a user's table hold predictions, measurements, devices and models: by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

from errcomp.errors import GuessedWarning, InputError, warn_caller
from errcomp.tables.columns import role_of, words_of
from errcomp.tables.units import UNITS

__all__ = ["AmbiguousColumnsError", "Guess", "guess", "possible_columns", "with_guess"]

#: Words in a column's name that mark predictions and measurements; the first is errcomp's name.
SIDES: Mapping[str, tuple[str, ...]] = {
    "predicted": (
        *("predicted", "prediction", "predictions", "pred", "simulated", "simulation", "sim"),
        *("estimated", "estimate", "estimates", "est", "modeled", "modelled", "forecast"),
    ),
    "measured": (
        *("measured", "measurement", "measurements", "meas", "actual", "real", "truth", "true"),
        *("observed", "hw", "hardware", "silicon", "profiled", "wall", "gt"),
    ),
}
#: Whole names of columns that mark them, too.
WHOLE: Mapping[str, tuple[str, ...]] = {
    "predicted": ("model_time", "model_latency", "model_cycles", "model_ms", "model_us"),
    "measured": ("walltime", "ground_truth"),
}
#: Columns with these words are made from both sides, or say how certain one is.
_DERIVED = frozenset(
    (
        *("error", "errors", "err", "ape", "mape", "diff", "difference", "delta", "ratio", "rel"),
        *("speedup", "std", "stdev", "sd", "var", "cv", "ci", "low", "high", "min", "max", "rank"),
    )
)
_LOWER_UNITS = frozenset(("cycles", *(unit.lower() for unit in UNITS)))


class Guess(NamedTuple):
    """The columns that hold predictions and measurements, and by which name a user sees them."""

    columns: Mapping[str, str]
    """``predicted`` and ``measured`` → the column."""
    roles: Mapping[str, str]
    """``device``, ``model``, … → the column, where its name is another one."""

    @property
    def words(self) -> str:
        """The guess in one line.

        Examples
        --------
        >>> guess({"sim_cycles": True, "hw_cycles": True, "gpu": False}).words
        'read as predicted: sim_cycles, measured: hw_cycles, device: gpu'
        """
        named = {**self.columns, **self.roles}
        return f"read as {', '.join(f'{name}: {column}' for name, column in named.items())}"


def guess(numeric: Mapping[str, bool], given: Mapping[str, str] | None = None) -> Guess:
    """Find the columns of predictions and measurements that nobody named.

    Parameters
    ----------
    numeric : mapping of str to bool
        Every column of the table, and whether it holds numbers.
    given : mapping of str to str, optional
        ``predicted`` or ``measured`` → its column, where the user named one.

    Returns
    -------
    Guess
        Without a side that no column fits.

    Raises
    ------
    AmbiguousColumnsError
        Several columns fit; its ``choices`` are the pairs of columns that may be meant.

    Examples
    --------
    >>> guess({"sim_cycles": True, "hw_cycles": True, "sim_error": True}).columns
    {'predicted': 'sim_cycles', 'measured': 'hw_cycles'}
    """
    given = dict(given or {})
    fits = {side: _fitting(side, numeric, given) for side in SIDES}
    if not fits["measured"] and fits["predicted"]:
        fits["measured"] = _remainders("predicted", fits["predicted"], numeric)
    if not fits["predicted"] and fits["measured"]:
        fits["predicted"] = _remainders("measured", fits["measured"], numeric)
    sides = product(fits["predicted"], fits["measured"])
    pairs = [(p, m) for p, m in sides if p != m]
    if len(pairs) > 1:
        # "sim_cycles" belongs to "hw_cycles", not to "hw_power".
        alike = [
            pair for pair in pairs if _rest("predicted", pair[0]) == _rest("measured", pair[1])
        ]
        if len(alike) != 1:
            raise AmbiguousColumnsError(alike or pairs)
        pairs = alike
    if pairs:
        columns = dict(zip(SIDES, pairs[0], strict=True))
    else:
        one_side = {side: names for side, names in fits.items() if len(names) == 1}
        columns = {side: names[0] for side, names in list(one_side.items())[:1]}
    others = [name for name in numeric if name not in columns.values()]
    roles = {role: found for role in ("device", "model") if (found := role_of(role, others))}
    return Guess(columns, {role: found for role, found in roles.items() if found != role})


class AmbiguousColumnsError(InputError):
    """Several columns may hold the predictions or the measurements.

    Attributes
    ----------
    choices : tuple of (str, str)
        The columns that may be meant: of predictions, of measurements.
    """

    def __init__(self, choices: Sequence[tuple[str, str]], prefix: str = "") -> None:
        self.choices = tuple(choices)
        calls = [f"predicted={p!r}, measured={m!r}" for p, m in self.choices[:3]]
        if len(self.choices) > 3:
            calls.append(f"… ({len(self.choices) - 3} more)")
        super().__init__(
            f"{prefix}several columns may hold the predictions and the measurements: "
            f"{'; '.join(calls)}. Name those that you mean."
        )


def with_guess(
    columns: Mapping[str, str], numeric: Mapping[str, bool], source: str
) -> dict[str, str]:
    """Return errcomp's name → column, with the columns of both sides that their names show.

    Parameters
    ----------
    columns : mapping of str to str
        What the user named.
    numeric : mapping of str to bool
        Every column of the table, and whether it holds numbers.
    source : str
        Name of the table in messages.

    Warns
    -----
    GuessedWarning
        A column was guessed.

    Raises
    ------
    AmbiguousColumnsError
        Several columns fit.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     with_guess({}, {"sim_us": True, "measured": True}, "t.csv")
    {'predicted': 'sim_us'}
    """
    prefix = f"{source}: " if source else ""
    given = {side: columns.get(side, side) for side in SIDES if side in {*columns, *numeric}}
    free = {name: kind for name, kind in numeric.items() if name not in ("status", "unit")}
    try:
        found = guess(free, given)
    except AmbiguousColumnsError as error:
        raise AmbiguousColumnsError(error.choices, prefix) from None
    if set(found.columns) != set(SIDES):
        return dict(columns)
    words = (
        f"{prefix}{found.words}. Guessed from the names: to choose other columns, use "
        "--predicted and --measured (predicted= and measured= in Python)."
    )
    warn_caller(words, GuessedWarning)
    return {**columns, **{s: name for s, name in found.columns.items() if s != name}}


def possible_columns(
    numeric: Mapping[str, bool], given: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return pairs of columns that may be meant, where no pair of names shows it, in their order.

    A name that shows its side is only offered for that side.

    Parameters
    ----------
    numeric : mapping of str to bool
        Every column of the table, and whether it holds numbers.
    given : mapping of str to str
        ``predicted`` or ``measured`` → its column, where the user named one.

    Returns
    -------
    tuple of (str, str)
        At most two; none if more pairs are possible.

    Examples
    --------
    >>> possible_columns({"app": False, "a": True, "b": True}, {})
    (('a', 'b'), ('b', 'a'))
    >>> possible_columns({"a": True, "b": True}, {"measured": "a"})
    (('b', 'a'),)
    >>> possible_columns({"latency": True, "estimate": True}, {})
    (('estimate', 'latency'),)
    """
    numbers = [name for name, holds in numeric.items() if holds]
    given = {side: name for side, name in given.items() if name in numeric}
    with suppress(AmbiguousColumnsError):
        given = guess(numeric, given).columns or given
    sides = {side: [given[side]] if side in given else numbers for side in SIDES}
    pairs = [(p, m) for p, m in product(*sides.values()) if p != m]
    return tuple(pairs) if len(pairs) <= 2 else ()


def _fitting(side: str, numeric: Mapping[str, bool], given: Mapping[str, str]) -> list[str]:
    """Return the columns that fit a side best.

    That name, a whole name, such a name with a unit (measured_ms), a word in the name.
    """
    if side in given:
        return [given[side]]
    usable = [
        name
        for name, numbers in numeric.items()
        if numbers and name not in given.values() and not _DERIVED.intersection(words_of(name))
    ]
    exact = [name for name in usable if name == side]
    whole = [name for name in usable if "_".join(words_of(name)) in (*SIDES[side], *WHOLE[side])]
    with_unit = [name for name in usable if _is_with_unit(side, words_of(name))]
    within = [name for name in usable if set(words_of(name)) & set(SIDES[side])]
    other = next(name for name in SIDES if name != side)
    within = [name for name in within if not set(words_of(name)) & set(SIDES[other])]
    return exact or whole or with_unit or within


def _is_with_unit(side: str, words: Sequence[str]) -> bool:
    return len(words) == 2 and words[0] in SIDES[side] and words[1] in _LOWER_UNITS


def _remainders(side: str, names: Sequence[str], numeric: Mapping[str, bool]) -> list[str]:
    """Return columns named like these without the word of their side: latency, of latency_pred."""
    rests = {_rest(side, name) for name in names}
    alike = [name for name in numeric if numeric[name] and tuple(words_of(name)) in rests]
    return [name for name in alike if name not in names]


def _rest(side: str, name: str) -> tuple[str, ...]:
    words = words_of(name)
    whole = "_".join(words) in WHOLE[side]  # model_time and time
    return tuple(words[1:] if whole else (word for word in words if word not in SIDES[side]))
