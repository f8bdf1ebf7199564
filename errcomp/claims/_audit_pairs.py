"""What an audit asks of pairs: the same of those at hand and of those that stay in an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from errcomp.caveats import check
from errcomp.claims.registry import Claim, claims_of
from errcomp.claims.verdict import figures_for
from errcomp.metrics.intervals.dependence import Dependence, cluster_keys, dependence
from errcomp.results import Caveat, Estimate
from errcomp.scale._caveats import check_totals, not_looked_for
from errcomp.scale._clusters import drawn_of
from errcomp.scale._forms import FORMS
from errcomp.scale.auditing import totals_for_audit
from errcomp.scale.pair_totals import PairTotals
from errcomp.scale.pairs import PairRows
from errcomp.summary import summarize
from errcomp.tables import Pairs
from errcomp.tables.frames import in_engine

__all__ = [
    "AT_SCALE",
    "AUDIT_FIGURES",
    "AuditPairs",
    "added_up",
    "caveats_of",
    "drawn_from",
    "engine_of",
    "figures_of_audit",
    "table_of",
]

#: Recomputed for every group, whatever the claim says of its own definition.
AUDIT_FIGURES = (
    *("mape", "median_ape", "gmape", "wape"),
    *("total_error", "bias", "within_10", "max_ape"),
)

#: Figures that go by another name where pairs stay in an engine.
AT_SCALE = {"median_ape": "median_ape_approx"}

AuditPairs = Pairs | PairTotals


def table_of(pairs: Any) -> Pairs | PairRows:
    """Take pairs as they are, or where they are."""
    if isinstance(pairs, Pairs | PairRows):
        return pairs
    return PairRows(pairs) if in_engine(pairs) else Pairs(pairs)


def added_up(
    rows: PairRows, keys: Sequence[str], claims: Sequence[Claim] | None, clusters: Sequence[str]
) -> PairTotals:
    """Fetch what an audit needs of pairs that stay in an engine."""
    if claims is None:
        claims = [claim for name in rows.tools or ("",) for claim in claims_of(name)]
    also = [name for claim in claims for name in _from_sums(figures_for(claim))]
    figures = tuple(AT_SCALE.get(name, name) for name in dict.fromkeys((*AUDIT_FIGURES, *also)))
    return totals_for_audit(rows, by=keys, claims=claims, clusters=clusters, figures=figures)


def figures_of_audit(
    pairs: AuditPairs, *, also: Sequence[str] = (), **options: Any
) -> dict[str, Estimate]:
    """Compute the figures of an audit, under the names that they have in memory.

    ``also`` are those that a claim needs besides; without single pairs, only what sums give.
    """
    if isinstance(pairs, Pairs):
        return dict(summarize(pairs, figures=(*AUDIT_FIGURES, *also), **options).pooled.figures)
    wanted = (*AUDIT_FIGURES, *_from_sums(also))
    names = {AT_SCALE.get(name, name): name for name in wanted}
    found = summarize(pairs, figures=tuple(names), **options).pooled.figures
    return {names[name]: estimate for name, estimate in found.items()}


def drawn_from(pairs: AuditPairs, cluster: str | Sequence[str] | None) -> Dependence:
    """Return what the intervals of these pairs draw as a unit."""
    names, given = cluster_keys(cluster, pairs.keys), cluster is not None
    if isinstance(pairs, Pairs):
        return dependence({name: pairs.column(name) for name in names}, given=given)
    return drawn_of(pairs.totals(names), names, given=given)


def _from_sums(figures: Sequence[str]) -> list[str]:
    """Return those of the figures that sums over pairs give."""
    return [name for name in figures if name in FORMS]


def caveats_of(pairs: AuditPairs, **options: Any) -> tuple[Caveat, ...]:
    """Find what the figures hide, as far as these pairs tell."""
    if isinstance(pairs, Pairs):
        return check(pairs, **options)
    return check_totals(pairs, **options)


def engine_of(table: AuditPairs, *, several_tools: bool) -> dict[str, Any]:
    """Return what an audit says of where the pairs stayed, as fields of its result."""
    if isinstance(table, Pairs):
        return {}
    missing = not_looked_for(several_tools=several_tools)
    return {"engine": table.engine, "not_looked_for": missing}
