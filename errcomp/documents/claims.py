"""``errcomp.search/1`` and ``errcomp.replication/1``: published figures found again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errcomp.claims.printed import Printed, parse_printed
from errcomp.claims.replicate.judging import STATUSES, Cell, Replication, Status, Value
from errcomp.claims.search import Match, SearchResult
from errcomp.documents._fields import (
    Field,
    anything,
    choice,
    count,
    flag,
    many,
    mapping,
    number,
    scalar,
    text,
)
from errcomp.errors import InputError

__all__ = ["read_replication", "read_search"]

#: More digits a number has not.
_MOST_DECIMALS = 20


def read_search(field: Field) -> SearchResult:
    """Make what a search found of its document."""
    field("source", text)
    figures = field("figures", mapping(_printed))
    return SearchResult(
        figures=figures,
        matches=field("matches", many(lambda one: _match(one, tuple(figures)))),
        searched=field("searched", _searched),
    )


def _printed(field: Field) -> Printed:
    try:
        return parse_printed(field("text", text))
    except InputError as error:
        raise InputError(f"{field.at('text').path}: {error}") from error


def _match(field: Field, tools: tuple[str, ...]) -> Match:
    names = ("aggregation", "denominator", "reading", "description")
    numbers = ("complexity", "expected_by_chance", "standard_error")
    found = field.make(
        Match,
        where=mapping(lambda one: list(many(scalar)(one))),
        n=count,
        values=mapping(number),
        found=count,
        equivalents=count,
        also=many(text),
        **dict.fromkeys(names, text),
        **dict.fromkeys(numbers, number),
    )
    for tool in tools:
        field.at("values").at(tool)
    return found


def _searched(field: Field) -> dict[str, Any]:
    for name in ("subsets", "rules", "configurations"):
        field(name, count)
    field("complete", flag)
    field("left_out", mapping(count))
    field("by_complexity", many(lambda one: one("expected", number), fewest=1))
    return mapping(anything)(field)


@dataclass(frozen=True, slots=True)
class _Replication(Replication):
    """Cells of some tables, and how many there are of each status in all of them."""

    counted: Mapping[str, Mapping[Status, int]] = field(default_factory=dict)

    def counts(self) -> Mapping[str, Mapping[Status, int]]:
        """Return how many cells have each status, by table and under ``"all"``."""
        return self.counted


def read_replication(field: Field) -> Replication:
    """Make recomputed tables of their document, which may hold the cells of one table only."""
    return _Replication(
        cells=field("rows", many(_cell, fewest=1)), counted=field("counts", mapping(_counts))
    )


def _counts(field: Field) -> Mapping[Status, int]:
    return {status: field(status, count) for status in STATUSES}


def _cell(field: Field) -> Cell:
    words = ("table", "where", "edition", "row", "column", "printed", "unit", "rule", "note")
    return field.make(
        Cell,
        recomputed=_value,
        status=choice(STATUSES),
        decimals=_decimals,
        **dict.fromkeys(words, text),
    )


def _decimals(field: Field) -> int:
    found = count(field)
    if found > _MOST_DECIMALS:
        field.refuse(f"at most {_MOST_DECIMALS}")
    return found


def _value(field: Field) -> Value | None:
    if field.value is None:
        return None
    if not isinstance(field.value, list | tuple):
        return number(field)
    found = many(number)(field)
    if len(found) != 2:
        field.refuse("a number, or two")
    return found[0], found[1]
