"""``errcomp.half-lives/1``: how long a calibrated model stays true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast, get_args

import numpy as np

from errcomp.documents._common import Absent, dropped, ends, keys_of
from errcomp.documents._fields import (
    Field,
    above,
    anything,
    choice,
    count,
    coverage,
    log,
    many,
    mapping,
    maybe,
    number,
    or_nan,
    share,
    text,
)
from errcomp.halflife.drift.trajectory import Trajectory
from errcomp.halflife.drift.variogram import Variogram
from errcomp.halflife.estimators.expiry import Expiry
from errcomp.halflife.noise import NoiseFloor, Source
from errcomp.halflife.panel import Clock, HalfLife, Panel
from errcomp.halflife.results import GroupHalfLife, HalfLives, ReleaseStep
from errcomp.halflife.steps.environment import Attribution
from errcomp.halflife.steps.environment import Verdict as PutDownTo
from errcomp.halflife.steps.summary import Step, Steps
from errcomp.halflife.threshold import Threshold

__all__ = ["read_half_lives"]

_REMEDY = "Draw it from the history itself: errcomp halflife fit HISTORY --figure NAME=FILE."
#: Beyond it a number is a mistake, and would fill the memory.
_MOST_SERIES = 10_000_000
_clock = choice(get_args(Clock))


@dataclass(frozen=True)
class _Panel(Absent):
    """How many series there were; their errors are not in a document."""

    n_series: int = 0


@dataclass(frozen=True)
class _Expiry(Absent):
    """When series had surely expired; of those that had not only the number is known."""

    n: int = 0
    right: Any = None


@dataclass(frozen=True)
class _Searched(Absent):
    """Whether a series could be searched for steps."""

    refused: str = ""


_panel = partial(_Panel, "the errors of single series", _REMEDY)
_expiry = partial(_Expiry, "when single series expired", _REMEDY)
_searched = partial(_Searched, "the steps of single series", _REMEDY)


def read_half_lives(field: Field) -> HalfLives:
    """Make half-lives of their document; what single series did is not in it."""
    by = field("by", many(text))
    groups = field("groups", many(lambda one: _group(one, by), fewest=1))
    rows = field("rows", many(lambda row: _row(row, by)))
    return HalfLives(
        source=field("source", text),
        groups=tuple(_with_rows(field, group, rows) for group in groups),
        by=by,
        clocks=field("clocks", many(_clock, fewest=1)),
        versions=field("versions", many(text, fewest=1)),
        order_by=field("order_by", text),
        noise=field("noise", _noise),
        environment=field("environment", many(_attribution)),
        dropped=field("dropped", many(dropped)),
        notes=field("notes", many(text)),
        level=field("confidence", coverage),
        alpha=field("alpha", share),
        seed=field("seed", count),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    key: dict[str, Any]
    estimate: HalfLife
    steps: tuple[ReleaseStep, ...]


def _row(field: Field, by: tuple[str, ...]) -> _Row:
    low, high = ends(field, "low", "high")
    endless = field("beyond_observed", anything) is True
    return _Row(
        keys_of(field, by),
        HalfLife(
            method=field("method", text),
            half_life=math.inf if endless else field("half_life", maybe(number)),
            low=low,
            high=high,
            level=field("confidence", coverage),
            unit=field("unit", _clock),
            n_series=field("n_units", count),
            censored_share=field("censored_share", or_nan(share)),
            refused=field("refused", maybe(text)) or "",
            assumptions=field("assumptions", many(text)),
            details=field("details", _details),
        ),
        field("steps", many(_release_step)),
    )


def _details(field: Field) -> dict[str, Any]:
    if field.has("held_out_score"):
        field("held_out_score", maybe(number))
    return mapping(anything)(field)


def _release_step(field: Field) -> ReleaseStep:
    change = above(-1.0)
    return field.make(
        ReleaseStep,
        version=text,
        n_series=count,
        n_looked_at=count,
        change=change,
        largest=text,
        largest_change=change,
        false_alarms=number,
    )


def _group(field: Field, by: tuple[str, ...]) -> GroupHalfLife:
    n = field("n_series", count)
    if not 0 < n <= _MOST_SERIES:
        field.at("n_series").refuse(f"from 1 to {_MOST_SERIES:,}")
    refused = field("not_searched", mapping(count))
    if sum(refused.values()) > n:
        field.at("not_searched").refuse(f"of at most the {n} series")
    # Of a series only whether it was refused, and why, is known: one stands for all alike.
    searched = [_searched("")] * (n - sum(refused.values()))
    unsearched = [one for why, times in refused.items() for one in [_searched(why)] * times]
    return GroupHalfLife(
        key=keys_of(field.at("key"), by),
        panel=cast(Panel, _panel(n)),
        threshold=field("threshold", _threshold),
        estimates=(),
        steps=(),
        series_steps=cast("tuple[Steps, ...]", (*unsearched, *searched)),
        expiry={
            _clock(Field(clock, f"{field.path}.expired")): cast(Expiry, _expiry(len_of, right))
            for clock, (len_of, right) in field("expired", mapping(_expired)).items()
        },
        trajectory=cast(Trajectory, Absent("errors by release", _REMEDY)),
        variogram=cast(Variogram, Absent("how far errors drift", _REMEDY)),
        notes=field("notes", many(text)),
    )


def _expired(field: Field) -> tuple[int, Any]:
    n, surely = field("n", count), field("surely", many(number))
    if len(surely) > n:
        field.at("surely").refuse(f"at most the {n} series")
    return n, np.array([*surely, *[math.inf] * min(n - len(surely), 1)])


def _with_rows(field: Field, group: GroupHalfLife, rows: Sequence[_Row]) -> GroupHalfLife:
    mine = [row for row in rows if row.key == group.key]
    if not mine:
        field.at("rows").refuse(f"rows of every group, {group.key} among them")
    return replace(group, estimates=tuple(row.estimate for row in mine), steps=mine[0].steps)


def _threshold(field: Field) -> Threshold:
    return field.make(
        Threshold,
        error=or_nan(log),
        low=maybe(number),
        high=maybe(number),
        level=coverage,
        value=maybe(log),
        factor=number,
        source=choice(("given", "measured", "assumed")),
        n_series=count,
        refused=text,
        notes=many(text),
    )


def _noise(field: Field) -> NoiseFloor:
    nan = or_nan(number)
    return field.make(
        partial(NoiseFloor, series_sd=np.empty(0), series_df=np.empty(0)),
        sd=nan,
        df=nan,
        source=choice(get_args(Source)),
        n_repeats=count,
        prior_df=nan,
        date_share=nan,
        notes=many(text),
    )


def _attribution(field: Field) -> Attribution:
    return field.make(
        Attribution,
        series=text,
        verdict=choice(get_args(PutDownTo)),
        reason=text,
        step=_step,
        since=text,
        until=text,
        versions=_two,
        moved=maybe(number),
        moved_low=maybe(number),
        moved_high=maybe(number),
        n_versions=count,
        n_elsewhere=count,
        n_elsewhere_moved=count,
    )


def _step(field: Field) -> Step:
    places = dict.fromkeys(("at", "at_low", "at_high"), count)
    sizes = dict.fromkeys(("size", "size_low", "size_high", "before", "after"), log)
    return field.make(Step, versions=_two, earliest=text, latest=text, p=number, **places, **sizes)


def _two(field: Field) -> Any:
    found = many(text)(field)
    if len(found) != 2:
        field.refuse("two versions")
    return found
