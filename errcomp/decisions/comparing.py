"""Choices that nobody has measured yet: which alternative is faster, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from errcomp.codec import (
    Count,
    Coverage,
    Derived,
    Document,
    Field,
    GroupKeys,
    Names,
    Part,
    Share,
    Undefined,
    plain,
    plain_keys,
    shape_of,
)
from errcomp.decisions import probabilities
from errcomp.decisions.alternatives import (
    CLOSE,
    Alternative,
    Asked,
    Choice,
    choose,
    word_of,
)
from errcomp.decisions.probabilities import Learned
from errcomp.errors import InputError
from errcomp.report.shown import Shown
from errcomp.results import Dropped
from errcomp.tables.choices import Choices, Floats, Ints

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["Comparison"]

#: Fewest comparisons of measured rows that an error model is learned from.
_FEWEST = 3
#: Comparisons from which on draws are counted, and most that are listed: of more, only those with
#: the chosen alternatives are.
_MANY, _LISTED = 20_000, 2_000_000
_COLUMNS = ("condition", "first", "second", "predicted_ratio", "measured_ratio", "p_faster")
_CONDITION = GroupKeys("condition", "within")
_TEXT, _NUMBER, _SHARE = shape_of(str), shape_of(Annotated[float, Undefined]), shape_of(Share)


class _RowKeys(Part):
    """One row per comparison: the condition, both alternatives, ratios, probability and word."""

    def write(self, found: Comparison) -> Mapping[str, Any]:
        numbers = (found.predicted_ratio, found.measured_ratio, found.p_faster)
        columns = zip(
            found.condition.tolist(),
            found.first.tolist(),
            found.second.tolist(),
            *(plain(list(values)) for values in numbers),
            found.words,
            strict=True,
        )
        names = (*_COLUMNS[1:], "word")
        conditions = [dict(plain(condition)) for condition in found.conditions]
        return {
            "rows": [
                plain_keys({**conditions[at], **dict(zip(names, row, strict=True))})
                for at, *row in columns
            ]
        }

    def read(self, field: Field) -> Mapping[str, Any]:
        keys = field.document["within"]
        known: dict[tuple[Any, ...], int] = {}
        columns: dict[str, list[Any]] = {}
        for row in field.at("rows").items():
            read = _CONDITION.read(row)["condition"]
            where = tuple(read[key] if key in read else row.at(key).value for key in keys)
            values = {
                "condition": known.setdefault(where, len(known)),
                "first": _TEXT.read(row.at("first")),
                "second": _TEXT.read(row.at("second")),
                "predicted_ratio": _NUMBER.read(row.at("predicted_ratio")),
                "measured_ratio": _NUMBER.read(row.at("measured_ratio")),
                "p_faster": _SHARE.read(row.at("p_faster")),
            }
            _TEXT.read(row.at("word"))
            for name, value in values.items():
                columns.setdefault(name, []).append(value)
        conditions = tuple(dict(zip(keys, where, strict=True)) for where in known)
        texts = dict.fromkeys(("first", "second"), object)
        arrays = {name: np.array(columns.get(name, []), dtype=texts.get(name)) for name in _COLUMNS}
        return {"conditions": conditions, **arrays}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        own = {"first": _TEXT, "second": _TEXT, "predicted_ratio": _NUMBER}
        own |= {"measured_ratio": _NUMBER, "p_faster": _SHARE, "word": _TEXT}
        row = {
            "type": "object",
            "properties": {name: shape.schema(names) for name, shape in own.items()},
            "required": list(own),
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        }
        return {"rows": {"type": "array", "items": row}}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Shown, Document):
    """Comparisons of every two alternatives, with the probability that the first is the faster.

    Arrays have shape (n,). The first alternative is the more probable one.

    Attributes
    ----------
    source, tool : str
    between, within : tuple of str
        Keys of the alternatives and of the conditions.
    per, price : str
        Columns that times are divided by, and multiplied by; empty: none.
    higher : bool
        Whether more is better.
    limit : float
        What an alternative may take at most (at least, if more is better); NaN without a limit.
    unit : str or None
    level : float
        A comparison below it is too close to call.
    taught : int
        Measured rows that the error model was learned from.
    left_out : str
        What the error model of a comparison did not see, where all rows are measured:
        ``alternatives`` or ``conditions``; empty otherwise.
    conditions : tuple of mapping
    condition : ndarray of int
        Position in `conditions`.
    first, second : ndarray of str
    predicted_ratio, measured_ratio : ndarray
        Time or cost of the second over that of the first (the inverse, if more is better); NaN
        where not both were measured.
    p_faster : ndarray
        Probability that the first is faster than the second: cheaper with prices, better if more
        is.
    choices : tuple of Choice
        Choices with alternatives that were not measured.
    alternatives : tuple of Alternative
        Those of these choices.
    every : bool
        Whether every comparison is listed: of more than 2 million, only those with a chosen
        alternative are.
    repeated : int
        Rows that repeat an alternative under its condition, averaged.
    dropped : tuple of Dropped
    seed : int
    """

    SCHEMA: ClassVar = "errcomp.comparison/1"
    COMMAND: ClassVar = "compare"
    KEYS: ClassVar = (
        *("source", "tool", "between", "within", "per", "price", "higher", "limit", "unit"),
        *("level", "taught", "left_out"),
        Derived("share_called", float, lambda found: found.share_called),
        *("choices", "alternatives", "every", "repeated", "dropped", "seed", _RowKeys()),
    )

    source: str
    tool: str
    between: tuple[str, ...]
    within: tuple[str, ...]
    per: str
    price: str
    higher: bool
    limit: Annotated[float, Undefined]
    unit: str | None
    level: Coverage
    taught: Count
    left_out: str
    conditions: tuple[Mapping[str, Any], ...]
    condition: Ints
    first: NDArray[Any]
    second: NDArray[Any]
    predicted_ratio: Floats
    measured_ratio: Floats
    p_faster: Floats
    choices: tuple[Choice, ...]
    alternatives: tuple[Alternative, ...]
    every: bool
    repeated: Count
    dropped: tuple[Dropped, ...]
    seed: int

    def __len__(self) -> int:
        return len(self.first)

    @property
    def called(self) -> NDArray[np.bool_]:
        """Whether the probability of each comparison is at least the level."""
        return self.p_faster >= self.level

    @property
    def share_called(self) -> float:
        """Share of the comparisons that are called."""
        return float(self.called.mean()) if len(self) else 0.0

    @property
    def word(self) -> str:
        """What the first of two alternatives is: ``faster``, ``cheaper`` or ``better``."""
        return word_of(self.price, self.higher, self.unit)

    @property
    def words(self) -> list[str]:
        """``faster`` (``cheaper``, ``better``) or ``too close to call``."""
        return [self.word if called else CLOSE for called in self.called.tolist()]

    def table(self) -> Any:
        """Return the comparisons as a Polars dataframe; the same as `to_frame`.

        Examples
        --------
        >>> import errcomp as ec
        >>> found = ec.decisions.compare_draws({"tp2": [104.0, 106.0], "tp4": [99.0, 101.0]})
        >>> found.table().columns[-3:]
        ['measured_ratio', 'p_faster', 'word']
        """
        return self.to_frame()

    def view(self) -> Report:
        """Return the report: choices and comparisons.

        Examples
        --------
        >>> import errcomp as ec
        >>> found = ec.decisions.compare_draws({"tp2": [104.0, 106.0], "tp4": [99.0, 101.0]})
        >>> found.view().title
        'Comparisons of the alternative'
        """
        from errcomp.decisions.view.comparison import comparison_view

        return comparison_view(self)


def predict(
    choices: Choices,
    *,
    source: str,
    tool: str,
    unit: str | None,
    limit: float | None,
    level: float,
    seed: int,
) -> Comparison:
    """Compare alternatives by predictions, with an error model of the measured rows.

    Raises
    ------
    InputError
        Fewer than three comparisons are of measured rows, none can be left out of the model, every
        row is measured and there is a limit, an alternative to choose has no price, or too few
        conditions were measured to say what one takes.
    """
    known = np.isfinite(choices.rows.y)
    first, second = choices.pairs(known)
    if len(first) < _FEWEST:
        raise no_error_model(choices, source, len(first))
    at = probabilities.taught(choices, known, seed)
    whole = bool(known.all())
    best: tuple[Choice, ...] = ()
    each: tuple[Alternative, ...] = ()
    what, every = "", True
    if whole:
        if limit is not None:
            raise InputError(
                f"{source + ': ' if source else ''}a limit (at_most, at_least) applies only to "
                "rows without a measurement, but every row is measured. Leave the column "
                "'measured' empty in the rows to choose from."
            )
        chance, what = probabilities.left_out(choices, first, second, seed)
        if np.isnan(chance).any():
            raise InputError(
                f"{source + ': ' if source else ''}every row is measured, and all rows have the "
                "same condition, so no row is left to learn the errors from. Add rows under other "
                "conditions, or rows without a measurement to choose from."
            )
    else:
        model = probabilities.learned(choices, known, seed)
        asked = Asked(level, unit, choices.price, choices.higher, limit)
        best, each = _choices(choices, model, known, asked)
        every = _count(choices) <= _LISTED
        first, second, chance = _asked(choices, model, known, best)
    rows = choices.priced().rows
    x, y = rows.x, rows.y
    swap = (chance < 0.5) | ((chance == 0.5) & (x[second] < x[first]))
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    names = np.array(choices.alternatives, dtype=object)
    return Comparison(
        source=source,
        tool=tool,
        between=choices.between,
        within=choices.within,
        per=choices.per,
        price=choices.price,
        higher=choices.higher,
        limit=np.nan if limit is None else limit,
        unit=unit,
        level=level,
        taught=len(at),
        left_out=what,
        conditions=choices.conditions,
        condition=rows.condition[first],
        first=names[rows.alternative[first]],
        second=names[rows.alternative[second]],
        predicted_ratio=np.exp(x[second] - x[first]),
        measured_ratio=np.exp(y[second] - y[first]),
        p_faster=np.where(swap, 1 - chance, chance),
        choices=best,
        alternatives=each,
        every=every,
        repeated=choices.repeated,
        dropped=choices.dropped,
        seed=seed,
    )


def _count(choices: Choices) -> int:
    """Return the number of comparisons of any two alternatives."""
    sizes = np.diff(choices.start)
    return int((sizes * (sizes - 1) // 2).sum())


def _asked(
    choices: Choices, model: Learned, known: NDArray[np.bool_], best: Sequence[Choice]
) -> tuple[Ints, Ints, Floats]:
    """Return the comparisons with a row that was not measured, and P(first is faster)."""
    count = _count(choices)
    if count > _LISTED:
        first, second = _with_the_chosen(choices, known, best)
        return first, second, model.chance(first, second)
    first, second = choices.pairs(np.ones(len(known), dtype=bool))
    asked = ~(known[first] & known[second])
    if count <= _MANY:
        first, second = first[asked], second[asked]
        return first, second, model.chance(first, second)
    each = [part for rows in choices.each() for part in model.every_chance(rows)]
    return first[asked], second[asked], np.concatenate(each)[asked]


def _with_the_chosen(
    choices: Choices, known: NDArray[np.bool_], best: Sequence[Choice]
) -> tuple[Ints, Ints]:
    """Return the comparisons of the chosen alternatives with all others."""
    chosen = {id(choice.condition): choice.chosen for choice in best}
    first, second = [], []
    for condition, rows in zip(choices.conditions, choices.each(), strict=True):
        if id(condition) not in chosen:
            continue
        at = np.arange(rows.start, rows.stop)
        names = [choices.alternatives[i] for i in choices.rows.alternative[rows]]
        one = int(at[names.index(chosen[id(condition)])])
        others = at[(at != one) & ~(known[at] & known[one])]
        first.append(np.full(len(others), one))
        second.append(others)
    return np.concatenate(first), np.concatenate(second)


def no_error_model(choices: Choices, source: str, found: int) -> InputError:
    """Say what is missing to learn how wrong the predictions are, and how to get it."""
    keys = ", ".join(choices.within) or "none"
    between = " and ".join(choices.between)
    return InputError(
        f"{source + ': ' if source else ''}no error model: {found} comparisons of two measured "
        f"rows with equal conditions ({keys}) and different {between}; at least {_FEWEST} are "
        "needed. Fill in the column measured in some rows, or name pairs of the same predictor "
        "that were measured: --errors FILE (errors=...)."
    )


def _choices(
    choices: Choices, model: Learned, known: NDArray[np.bool_], asked: Asked
) -> tuple[tuple[Choice, ...], tuple[Alternative, ...]]:
    """Return the choice under each condition with a row that was not measured."""
    found: list[Choice] = []
    each: list[Alternative] = []
    for condition, at in zip(choices.conditions, choices.each(), strict=True):
        if known[at].all():
            continue
        where = ", ".join(f"{key}={value}" for key, value in condition.items())
        where = f" under {where}" if where else ""
        absolute = bool(model.absolute[at].all())
        if asked.limit is not None and not absolute:
            raise InputError(
                "the limit cannot be checked, because the error of the predictions is unknown. "
                f"Measure rows under at least 4 conditions, or measure one alternative{where}. Or "
                "add measured pairs of the same predictor with --errors FILE (errors=...), or "
                "leave out the limit."
            )
        rows = choices.rows.take(np.arange(at.start, at.stop))
        if np.isnan(rows.price).any():
            raise InputError(
                f"an alternative{where} has no price ({asked.price}). Fill in column "
                f"{asked.price} in each of these rows."
            )
        names = [choices.alternatives[i] for i in rows.alternative]
        draws = model.times(np.arange(at.start, at.stop)) - rows.price
        choice, alternatives = choose(condition, names, rows, draws, asked, absolute=absolute)
        found.append(choice)
        each += alternatives
    return tuple(found), tuple(each)
