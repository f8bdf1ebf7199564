"""Claims against pairs: the figure recomputed, the verdict, and what the figure hides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from errcomp.caveats import check, check_table
from errcomp.claims.registry import Claim, claims_of
from errcomp.claims.verdict import Verdict, judge
from errcomp.results import Caveat, Dropped, Estimate
from errcomp.summary import Summary, summarize
from errcomp.tables import Pairs

__all__ = ["AUDIT_FIGURES", "Audit", "AuditRow", "audit"]

#: Recomputed for every group, whatever the claim says of its own definition.
AUDIT_FIGURES = ("mape", "median_ape", "gmape", "wape", "bias", "within_10", "max_ape")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One group of pairs: what was claimed for it and what its pairs say.

    Attributes
    ----------
    tool : str
        The predictor; empty where the table does not name it.
    key : mapping
        Values of the grouping keys; empty for all pairs of the tool.
    n : int
        Pairs in the group.
    figures : mapping of str to Estimate
        Every figure in `AUDIT_FIGURES`, with an interval where a tested one exists.
    verdict : Verdict
        The claim (if any) judged against the recomputed figure.
    caveats : tuple of Caveat
        What the figure hides, most important first.
    """

    tool: str
    key: Mapping[str, Any]
    n: int
    figures: Mapping[str, Estimate]
    verdict: Verdict
    caveats: tuple[Caveat, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return one flat row with the documented keys; fractions, not percent."""
        row: dict[str, Any] = {"tool": self.tool, **self.key, "n": self.n}
        for name, estimate in self.figures.items():
            row[name] = None if np.isnan(estimate.value) else estimate.value
            if name != "max_ape":
                row[f"{name}_low"], row[f"{name}_high"] = estimate.low, estimate.high
        row.update(self.verdict.to_dict())
        row["caveats"] = [c.to_dict() for c in self.caveats]
        return row


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of `audit`.

    Attributes
    ----------
    source : str
        The table.
    unit : str or None
        Unit of its pairs.
    by : tuple of str
        The grouping keys.
    rows : tuple of AuditRow
        One for each tool and group.
    overall : tuple of AuditRow
        One for each tool, all its pairs together.
    claims : tuple of Verdict
        Claims of the audited tools that name no subset of the grouping keys, judged against all
        pairs of the tool.
    caveats : tuple of Caveat
        About comparing the tools in the table.
    dropped : tuple of Dropped
        Rows not used, with reasons.
    level, seed, method
        How the intervals were made.
    others : tuple of str
        Tools in the table that were not audited.
    """

    source: str
    unit: str | None
    by: tuple[str, ...]
    rows: tuple[AuditRow, ...]
    overall: tuple[AuditRow, ...]
    claims: tuple[Verdict, ...]
    caveats: tuple[Caveat, ...]
    dropped: tuple[Dropped, ...]
    level: float
    seed: int
    method: str
    others: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON document."""
        return {
            "source": self.source,
            "unit": self.unit,
            "by": list(self.by),
            "level": self.level,
            "method": self.method,
            "seed": self.seed,
            "n": sum(row.n for row in self.rows),
            "rows": [row.to_dict() for row in self.rows],
            "overall": [row.to_dict() for row in self.overall],
            "claims": [v.to_dict() for v in self.claims],
            "caveats": [c.to_dict() for c in self.caveats],
            "dropped": [d.to_dict() for d in self.dropped],
            "tools_not_audited": list(self.others),
        }


def audit(
    pairs: Any,
    *,
    by: Sequence[str] | None = None,
    tool: str | None = None,
    claims: Sequence[Claim] | None = None,
    level: float = 0.95,
    method: str = "default",
    cluster: str | Sequence[str] | None = None,
    resamples: int = 9999,
    seed: int = 0,
) -> Audit:
    """Compare what tools claim of themselves with what their pairs say.

    The verdict follows from the interval of the recomputed figure, never from a ratio set by hand:
    a claim is *consistent* when some number that would be printed like it lies in the interval,
    *overstated* when the whole interval lies above it (the tool is less accurate than claimed),
    *understated* when it lies below, and *not verifiable*, with the reason, when the pairs cannot
    decide (no interval for so few pairs, another level, another reference, no error figure).

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
        Predictions and measurements. With a column ``tool``, every tool is audited on its own.
    by : sequence of str, optional
        Keys to group by; by default those of device and mode that the table has.
    tool : str, optional
        Only this tool; by default the table's subject where it has one, else all.
    claims : sequence of Claim, optional
        What to judge; by default what the registry knows of the tools in the table.
    level, method, cluster, resamples, seed
        Of the intervals, as in `errcomp.summarize`.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        A key or the tool does not exist.

    Examples
    --------
    >>> import errcomp as ec
    >>> result = ec.audit(ec.datasets.load("neusight"), by=["device", "mode"])
    >>> row = next(r for r in result.rows if r.key == {"device": "V100", "mode": "inference"})
    >>> row.n, round(row.figures["mape"].value, 4), row.verdict.word
    (10, 0.0587, 'consistent')
    """
    table = pairs if isinstance(pairs, Pairs) else Pairs(pairs)
    chosen = table.of_tool(tool)
    keys = tuple(k for k in ("device", "mode") if k in table.keys) if by is None else tuple(by)
    keys = tuple(k for k in keys if k != "tool")
    names = chosen.tools or ("",)
    figures_of = partial(
        summarize,
        figures=AUDIT_FIGURES,
        level=level,
        method=method,
        cluster=cluster,
        resamples=resamples,
        seed=seed,
    )
    rows: list[AuditRow] = []
    overall: list[AuditRow] = []
    general: list[Verdict] = []
    for name in names:
        part = chosen.of_tool(name) if name else chosen
        known = claims_of(name) if claims is None else tuple(claims)
        summary = figures_of(part, by=keys)
        for found, group in zip(summary.rows, part.groups(keys), strict=True):
            subset = part.take(group.index)
            claim = _claim_for(known, found.key)
            verdict = judge(claim, found.figures, subset)
            notes = check(subset, claim=claim, by=keys, level=level, seed=seed)
            rows.append(AuditRow(name, found.key, found.n, found.figures, verdict, notes))
        judged = {id(row.verdict.claim) for row in rows}
        rest = [c for c in known if id(c) not in judged and _applies(c, part)]
        verdicts = [_judge_subset(c, part, figures_of) for c in rest]
        general += verdicts
        whole = next((v for v in verdicts if v.claim and not v.claim.subset), None)
        best = whole or judge(None, summary.pooled.figures, part)
        notes = check(part, claim=best.claim, by=keys, level=level, seed=seed)
        overall.append(AuditRow(name, {}, part.n, summary.pooled.figures, best, notes))
    return Audit(
        source=table.source,
        unit=table.unit,
        by=keys,
        rows=tuple(rows),
        overall=tuple(overall),
        claims=tuple(general),
        caveats=check_table(chosen) if len(names) > 1 else (),
        dropped=table.dropped,
        level=level,
        seed=seed,
        method=method,
        others=tuple(t for t in table.tools if t not in names),
    )


def _claim_for(known: Sequence[Claim], key: Mapping[str, Any]) -> Claim | None:
    """Return the claim whose subset is exactly this group, if there is one."""
    group = {k: str(v) for k, v in key.items()}
    return next((c for c in known if c.subset and dict(c.subset) == group), None)


def _applies(claim: Claim, pairs: Pairs) -> bool:
    """Say whether the table has rows of the subset that is claimed about."""
    return all(
        key in pairs.keys and value in {str(v) for v in pairs.column(key)}
        for key, value in claim.subset.items()
    )


def _judge_subset(claim: Claim, pairs: Pairs, figures_of: Callable[..., Summary]) -> Verdict:
    """Judge a claim on the rows that it is about, whatever the groups of the table are."""
    part = pairs.where(claim.subset) if claim.subset else pairs
    return judge(claim, figures_of(part).pooled.figures, part)
