"""``errcomp.audit/1``: claims held against pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from errcomp.caveats import CHECKS
from errcomp.claims.auditing import AT_SCALE, AUDIT_FIGURES, Audit, AuditRow
from errcomp.claims.registry import VERIFIABLE, Claim, Kind
from errcomp.claims.verdict import AGGREGATIONS, Verdict, Word, word_of
from errcomp.documents._common import caveat, dropped, ends, estimate, keys_of
from errcomp.documents._fields import (
    Field,
    choice,
    count,
    coverage,
    many,
    mapping,
    maybe,
    number,
    or_nan,
    text,
)
from errcomp.errors import InputError
from errcomp.metrics import figure
from errcomp.results import Caveat, Estimate

__all__ = ["read_audit"]

_WORDS = get_args(Word)
#: Figures that may be negative, and those that are shares.
_SIGNED, _SHARES = ("total_error", "bias"), ("within_10",)
_CODES = tuple(dict.fromkeys(check.code for check in CHECKS))
_OF_ROWS = tuple(check.code for check in CHECKS if check.scope != "tools")


@dataclass(frozen=True, slots=True)
class _How:
    """How all figures of an audit and their intervals were made."""

    level: float
    seed: int
    engine: str


def read_audit(field: Field) -> Audit:
    """Make an audit of its document."""
    by = field("by", many(text))
    engine = field("engine", maybe(text)) if field.has("engine") else None
    how = _How(field("level", coverage), field("seed", count), engine or "")
    return Audit(
        source=field("source", text),
        unit=field("unit", maybe(text)),
        by=by,
        rows=field("rows", many(lambda row: _row(row, by, how))),
        overall=field("overall", many(lambda row: _row(row, (), how), fewest=1)),
        claims=field("claims", many(_judged_claim)),
        caveats=field("caveats", many(caveat)),
        dropped=field("dropped", many(dropped)),
        level=how.level,
        joint_level=field("joint_level", coverage),
        seed=how.seed,
        method=field("method", text),
        others=field("tools_not_audited", many(text)),
        cluster_keys=field("cluster_keys", many(text)),
        engine=how.engine,
        # Documents written before there were engines do not have it.
        not_looked_for=field("not_looked_for", many(choice(_CODES))) if how.engine else (),
    )


def _row(field: Field, by: tuple[str, ...], how: _How) -> AuditRow:
    n = field("n", count)
    return AuditRow(
        # The tools of a table that has none are not told apart, but may be grouped by.
        tool="" if "tool" in by else field("tool", text),
        key=keys_of(field, by),
        n=n,
        figures={name: _figure(field, name, n, how) for name in AUDIT_FIGURES},
        verdict=_verdict(field),
        caveats=field("caveats", many(_caveat_of_row)),
        cluster=field("cluster", maybe(text)) or "",
    )


def _figure(field: Field, name: str, n: int, how: _How) -> Estimate:
    low, high = (None, None) if name == "max_ape" else ends(field, f"{name}_low", f"{name}_high")
    spec = figure(AT_SCALE.get(name, name) if how.engine else name)
    value = field(name, or_nan(number))
    lowest = -math.inf if name in _SIGNED else 0.0
    highest = 1.0 if name in _SHARES else math.inf
    if value < lowest or value > highest:
        field.at(name).refuse(f"from {lowest:g} to {highest:g}")
    return Estimate(
        spec.name,
        value,
        low,
        high,
        level=None if low is None else how.level,
        method=field.at("methods")(name, text),
        n=n,
        unit=spec.unit,
        definition=spec.definition,
        seed=None if low is None else how.seed,
    )


def _caveat_of_row(field: Field) -> Caveat:
    field("code", choice(_OF_ROWS))
    return caveat(field)


def _verdict(field: Field) -> Verdict:
    found = Verdict(
        word=field("verdict", choice(_WORDS)),
        reason=field("reason", text),
        claim=field("claim", maybe(_claim)),
        recomputed=field("recomputed", maybe(estimate)),
        ratio=field("ratio", maybe(number)),
        aggregations=field("aggregations", mapping(or_nan(number))),
        agreeing=field("agreeing_aggregations", many(choice(AGGREGATIONS))),
        jointly=field("verdict_jointly", maybe(choice(_WORDS))),
    )
    decided = found.word in ("consistent", "overstated", "understated")
    if decided and (found.claim is None or found.recomputed is None):
        field.at("verdict").refuse("a word that needs no claim and no figure, or have both")
    if decided and found.claim is not None and found.recomputed is not None:
        follows = word_of(found.claim, found.recomputed)
        if found.word != follows:
            field.at("verdict").refuse(f"{follows!r}, which follows from the interval")
    return found


def _judged_claim(field: Field) -> Verdict:
    found = _verdict(field)
    if found.claim is None:
        field.at("claim").refuse("the claim that was judged")
    return found


def _claim(field: Field) -> Claim:
    words = (
        *("tool", "quantity", "printed", "metric", "level", "reference", "reason", "aggregation"),
        *("workloads", "scope", "source", "edition", "claimed_by", "survey_verdict", "note"),
    )
    found = field.make(
        Claim,
        kind=choice(get_args(Kind)),
        verifiable=choice(VERIFIABLE),
        subset=mapping(text),
        **dict.fromkeys(words, text),
    )
    try:
        found.interval  # noqa: B018 - read once, here, where its place is known
    except InputError as error:
        raise InputError(f"{field.at('printed').path}: {error}") from error
    return found
