"""``errcomp.half-life-forecast/1``: until when a promise holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

import numpy as np

from errcomp.documents._common import dropped, keys_of
from errcomp.documents._fields import (
    Field,
    above,
    choice,
    count,
    coverage,
    log,
    many,
    maybe,
    number,
    or_nan,
    share,
    text,
)
from errcomp.halflife.forecast import AHEAD, Answer, GroupForecast, HalfLifeForecast
from errcomp.halflife.forecast.probabilities import Drop, Forecast
from errcomp.halflife.panel import Clock

__all__ = ["read_forecast"]

_clock = choice(get_args(Clock))
_method = choice(("survival", "drift", "steps"))
_ENDS = ("time", "low", "high")


def read_forecast(field: Field) -> HalfLifeForecast:
    """Make a forecast of its document."""
    by = field("by", many(text))
    level, below = field("confidence", coverage), field("below", coverage)
    rows = field("rows", many(lambda row: _row(row, by, level, below), fewest=1))
    groups = field("groups", many(lambda one: _notes(one, by), fewest=1))
    return HalfLifeForecast(
        source=field("source", text),
        groups=tuple(_group(field, key, notes, rows) for key, notes in groups),
        by=by,
        clocks=tuple(dict.fromkeys(row.answer.unit for row in rows)),
        error=field("error", maybe(above(-1.0))),
        age=field("age", count),
        below=below,
        versions=field("versions", many(text, fewest=1)),
        dropped=field("dropped", many(dropped)),
        notes=field("notes", many(text)),
        level=level,
        seed=field("seed", count),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    key: dict[str, Any]
    common: dict[str, Any]
    answer: Answer


def _row(field: Field, by: tuple[str, ...], level: float, below: float) -> _Row:
    common = {
        "n_series": field("n_units", count),
        "promise": field("promise", maybe(log)),
        "calibrated_error": field("calibrated_error", or_nan(log)),
        "calibrated": field("calibrated", text),
        "today": field("today", text),
        "date": field("date", maybe(_day)),
    }
    return _Row(keys_of(field, by), common, _answer(field, level, below))


def _answer(field: Field, level: float, below: float) -> Answer:
    method, unit = field("method", _method), field("unit", _clock)
    if field.at("drop").value is None:
        refused = field("refused", text)
        return Answer(method, unit, None, None, (None, None, None), refused)
    within = field("within", many(_time))
    missing = set(AHEAD[unit]) - {one[0] for one in within}
    if missing:
        field.at("within").refuse(f"the times ahead {', '.join(f'{t:g}' for t in AHEAD[unit])}")
    ahead, probability, low, high = (np.array(values) for values in zip(*within, strict=True))
    drop = field.at("drop")
    endless = drop("endless", many(choice(_ENDS)))
    times = {name: math.inf if name in endless else drop(name, maybe(number)) for name in _ENDS}
    days = tuple(drop(name, maybe(_day)) for name in ("date", "date_low", "date_high"))
    return Answer(
        method,
        unit,
        Forecast(
            method, unit, ahead, probability, low, high, level, field("assumptions", many(text))
        ),
        Drop(below, **times, unit=unit, refused=drop("not_reached", maybe(text)) or ""),
        (days[0], days[1], days[2]),
        "",
    )


def _time(field: Field) -> tuple[float, float, float, float]:
    part = or_nan(share)
    return (
        field("ahead", number),
        field("probability", part),
        field("low", part),
        field("high", part),
    )


def _day(field: Field) -> date:
    try:
        return date.fromisoformat(text(field))
    except ValueError:
        field.refuse("a date such as 2026-01-31")


def _notes(field: Field, by: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    return keys_of(field.at("key"), by), field("notes", many(text))


def _group(
    field: Field, key: dict[str, Any], notes: tuple[str, ...], rows: Sequence[_Row]
) -> GroupForecast:
    mine = [row for row in rows if row.key == key]
    if not mine:
        field.at("rows").refuse(f"rows of every group, {key} among them")
    answers = tuple(row.answer for row in mine)
    return GroupForecast(key=key, **mine[0].common, answers=answers, notes=notes)
