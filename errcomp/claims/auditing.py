"""Audit of claims: the recomputed metric, the verdict, and what the metric hides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from errcomp.caveats import CHECKS, check, check_table, not_looked_for
from errcomp.caveats.comparisons import GROUP_KEYS
from errcomp.claims.registry import Claim, Given, claims_about, claims_of
from errcomp.claims.verdict import Verdict, figures_for, judge
from errcomp.codec import (
    Count,
    Coverage,
    Derived,
    Document,
    Field,
    GroupKeys,
    Inline,
    Meta,
    Names,
    NullAs,
    Part,
    if_known,
    key,
    plain_keys,
    shape_of,
)
from errcomp.datasets.inputs import pairs_from
from errcomp.errors import InputError, describe_names, warn_caller
from errcomp.measurements.audited import measured_side
from errcomp.measurements.results import MeasuredSide
from errcomp.metrics import figure
from errcomp.metrics.intervals import check_options, fewest_resamples
from errcomp.metrics.intervals.dependence import cluster_keys, dependence
from errcomp.report.shown import Shown
from errcomp.results import VALUE, Caveat, Dropped, Estimate
from errcomp.summary import summarize
from errcomp.tables import Pairs, Table, check_keys
from errcomp.tables.columns import with_roles

if TYPE_CHECKING:
    from errcomp.report.model import Report
    from errcomp.tables import Missing, Zeros
    from errcomp.tables.engine.pairs import PairRows, PairTotals

    AuditPairs = Pairs | PairTotals

__all__ = ["AUDIT_FIGURES", "Audit", "AuditRow", "audit"]

#: Recomputed for every group, whichever of them the claim names.
AUDIT_FIGURES = (
    *("mape", "median_ape", "gmape", "wape"),
    *("total_error", "bias", "within_10", "max_ape"),
)
#: Metrics that have another name where pairs stay in an engine.
AT_SCALE = {"median_ape": "median_ape_approx"}
#: Keys that an audit groups by if none are named and the table has them.
USUAL_KEYS = ("device", "mode")
#: Keys that verdicts and caveats need, whatever the user groups by.
_ASKED = ("level", "reference", "in_training", *GROUP_KEYS)


def grouped(
    pairs: AuditPairs | PairRows,
    keys: Sequence[str],
    claims: Sequence[Claim] | None,
    clusters: Sequence[str],
) -> AuditPairs:
    """Return the pairs; where they stay in an engine, sums by every key that an audit needs.

    Parameters
    ----------
    pairs : Pairs, PairRows or PairTotals
    keys : sequence of str
        Those that the user groups by.
    claims : sequence of Claim, optional
        Claims to check: the keys of their subsets are needed, and their metrics.
    clusters : sequence of str
        Keys whose values are the sample.

    Raises
    ------
    InputError
        A key does not exist, or a row cannot be used.
    """
    if isinstance(pairs, Table):
        return pairs
    from errcomp.caveats._case import SUMS
    from errcomp.metrics.sums import sums_for

    if claims is None:
        claims = [claim for name in pairs.tools or ("",) for claim in claims_of(name)]
    also = [name for claim in claims for name in figures_for(claim)]
    pairs.check_columns((*keys, *clusters))
    of_claims = (key for claim in claims for key in claim.subset)
    there = [key for key in dict.fromkeys((*keys, "tool", *of_claims)) if key in pairs.keys]
    return pairs.grouped(
        there,
        sums=list(dict.fromkeys((*sums_for(_names(pairs, also), intervals=True), *SUMS))),
        cluster=clusters,
        within=[key for key in (*with_roles(_ASKED, pairs.keys), *clusters) if key not in there],
    )


def figures_of(
    pairs: AuditPairs, *, also: Sequence[str] = (), **options: Any
) -> dict[str, Estimate]:
    """Compute the metrics of an audit, and further ones that a claim needs, as far as possible.

    They have the names that they have for pairs in memory.
    """
    names = _names(pairs, also)
    estimates = summarize(pairs, figures=tuple(names), **options).figures
    return {names[name]: estimate for name, estimate in estimates.items()}


def _names(pairs: AuditPairs | PairRows, also: Sequence[str]) -> dict[str, str]:
    """Return the name of each metric of an audit in this table: in an engine, that from sums."""
    if not pairs.engine:
        return {name: name for name in (*AUDIT_FIGURES, *also)}
    from errcomp.metrics.sums import TERMS

    able = (name for name in also if name in TERMS)
    return {AT_SCALE.get(name, name): name for name in (*AUDIT_FIGURES, *able)}


def drawn_whole(pairs: AuditPairs, cluster: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the keys whose values are the sample of the intervals of these pairs."""
    labels = {name: pairs.column(name) for name in cluster_keys(cluster, pairs.keys)}
    return dependence(labels, given=cluster is not None, counts=pairs.counts).names


_CODES = tuple(dict.fromkeys(check.code for check in CHECKS))
_OF_ROWS = tuple(dict.fromkeys(check.code for check in CHECKS if check.scope != "tools"))
#: Metrics that may be negative, and those that are shares.
_SIGNED, _SHARES = ("total_error", "bias"), ("within_10",)
_TEXT, _COUNT = shape_of(str), shape_of(Count)

#: Columns of a row other than its keys: a key of the same name would be lost.
_COLUMNS = (
    "n",
    *(f"{name}{end}" for name in AUDIT_FIGURES for end in ("", "_low", "_high")),
    "methods",
    *Verdict("no claim", "").to_dict(),
    "cluster",
    "caveats",
)


class _Tool(Part):
    """The tool of a row."""

    def write(self, row: AuditRow) -> Mapping[str, Any]:
        return {"tool": row.tool}

    def read(self, field: Field) -> Mapping[str, Any]:
        return {"tool": _TEXT.read(field.at("tool"))}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return {"tool": {"description": "The predictor.", "type": ["string", "null"]}}


class _Figures(Part):
    """Every metric of an audit, with its interval if it can have one, and the method."""

    def write(self, row: AuditRow) -> Mapping[str, Any]:
        columns: dict[str, Any] = {}
        for name, estimate in row.figures.items():
            columns |= {name: estimate.value} if name == "max_ape" else estimate.to_row(name)
        methods = {name: estimate.method for name, estimate in row.figures.items()}
        return plain_keys({**columns, "methods": methods})

    def read(self, field: Field) -> Mapping[str, Any]:
        return {"figures": {name: self._estimate(field, name) for name in AUDIT_FIGURES}}

    def _estimate(self, field: Field, name: str) -> Estimate:
        document = field.document
        spec = figure(AT_SCALE.get(name, name) if document.get("engine") else name)
        known = {
            "figure": spec.name, "unit": spec.unit, "definition": spec.definition,
            "method": _TEXT.read(field.at("methods").at(name)), "n": _COUNT.read(field.at("n")),
        }  # fmt: skip
        if name == "max_ape":
            estimate = Estimate(value=VALUE.read(field.at(name)), **known)
        else:
            level, seed = document["level"], document["seed"]
            estimate = Estimate.from_row(field, name, level=level, seed=seed, **known)
        lowest = -math.inf if name in _SIGNED else 0.0
        highest = 1.0 if name in _SHARES else math.inf
        if estimate.value < lowest or estimate.value > highest:
            field.at(name).refuse(f"from {lowest:g} to {highest:g}")
        return estimate

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        number: dict[str, Any] = {"type": ["number", "null"]}
        keys: dict[str, Any] = {}
        for name in AUDIT_FIGURES:
            ends = () if name == "max_ape" else ("_low", "_high")
            keys |= {name: {"description": figure(name).definition, **number}}
            keys |= {f"{name}{end}": number for end in ends}
        return {**keys, "methods": shape_of(Mapping[str, str]).schema(names)}


@dataclass(frozen=True, slots=True)
class AuditRow(Document):
    """One group of pairs: what was claimed for it and what its pairs show.

    Attributes
    ----------
    tool : str
        The predictor; empty where the table does not name it.
    key : mapping
        Values of the grouping keys; empty for all pairs of the tool.
    n : int
        Pairs in the group.
    figures : mapping of str to Estimate
        Every metric in `AUDIT_FIGURES`, with an interval where a tested one exists.
    verdict : Verdict
        The claim (if any) compared with the recomputed metric.
    caveats : tuple of Caveat
        What the metric hides, most important first.
    cluster : str
        Keys whose values are the sample of the intervals, with a comma between two that cross.
        Empty where single pairs are: no key divides this group into pairs with correlated
        errors.
    """

    KEYS: ClassVar = (
        _Tool(), GroupKeys(), "n", _Figures(), Inline("verdict", Verdict),
        key("cluster", "cluster", Annotated[str, NullAs("")]), "caveats",
    )  # fmt: skip

    tool: str
    key: Mapping[str, Any]
    n: Count
    figures: Mapping[str, Estimate]
    verdict: Verdict
    caveats: tuple[Caveat, ...]
    cluster: str = ""

    def __getitem__(self, at: int) -> AuditRow:
        """Answer as the tuple of rows did that `Audit.overall` was."""
        warn_caller("audit.overall is a row now: leave out [0]", DeprecationWarning)
        return (self,)[at]

    def _agree(self, field: Field) -> None:
        """Refuse caveats that are not about rows."""
        for caveat, place in zip(self.caveats, field.at("caveats").items(), strict=True):
            if caveat.code not in _OF_ROWS:
                place.at("code").refuse(f"one of {', '.join(_OF_ROWS)}")


@dataclass(frozen=True, slots=True)
class Audit(Shown, Document):
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
        One row per tool and group.
    by_tool : tuple of AuditRow
        One row per tool, for all its pairs together.
    overall : AuditRow
        This row, of the only tool.
    claims : tuple of Verdict
        Claims of the audited tools that name no subset of the grouping keys, compared with all
        pairs of the tool.
    caveats : tuple of Caveat
        About comparing the tools in the table.
    dropped : tuple of Dropped
        Rows not used, with reasons.
    level, seed, method
        How the intervals were computed.
    joint_level : float
        Level at which each claim is checked a second time, so that all verdicts hold together
        (Bonferroni): claims about rows, about subsets and about all pairs.
    others : tuple of str
        Tools in the table that were not audited.
    cluster_keys : tuple of str
        Columns whose values may have correlated errors: those given as clusters, else model and
        device if the table has them. Without any, all pairs count as independent.
    engine : str
        The engine in which the pairs stayed, so that only sums were fetched; empty if the pairs
        were in memory. In an engine, medians are those of a histogram, ``median_ape_approx``.
    not_looked_for : tuple of str
        Caveats that were not checked, because they need single pairs.
    measurements : MeasuredSide or None
        What the measured side says: its noise, and the error that remains without it. None in an
        engine, and for more than 100,000 pairs.
    """

    SCHEMA: ClassVar = "errcomp.audit/1"
    COMMAND: ClassVar = "audit"
    KEYS: ClassVar = (
        *("source", "unit", "by", "level", "joint_level", "method", "seed"),
        Derived("n", Count, lambda audit: sum(row.n for row in audit.rows)),
        "rows",
        key("overall", "by_tool"),
        *("claims", "caveats", "dropped"),
        key("tools_not_audited", "others"),
        "cluster_keys",
        key("engine", "engine", Annotated[str, NullAs("")]),
        "not_looked_for",
        if_known("measurements"),
    )

    source: str
    unit: str | None
    by: tuple[str, ...]
    rows: tuple[AuditRow, ...]
    by_tool: Annotated[tuple[AuditRow, ...], Meta(min_length=1)]
    claims: tuple[Verdict, ...]
    caveats: tuple[Caveat, ...]
    dropped: tuple[Dropped, ...]
    level: Coverage
    joint_level: Coverage
    seed: Count
    method: str
    others: tuple[str, ...]
    cluster_keys: tuple[str, ...]
    engine: str = ""
    not_looked_for: tuple[str, ...] = ()
    measurements: MeasuredSide | None = None

    def _agree(self, field: Field) -> None:
        """Refuse rows without the grouping keys, and verdicts on claims without a claim."""
        for row, place in zip(self.rows, field.at("rows").items(), strict=True):
            for name in set(self.by) - set(row.key):
                place.at(name)
        for verdict, place in zip(self.claims, field.at("claims").items(), strict=True):
            if verdict.claim is None:
                place.at("claim").refuse("the claim that was checked")
        for name, place in zip(
            self.not_looked_for, field.at("not_looked_for").items(), strict=True
        ):
            if name not in _CODES:
                place.refuse(f"one of {', '.join(_CODES)}")

    @property
    def overall(self) -> AuditRow:
        """The row for all pairs of the only tool.

        Raises
        ------
        InputError
            Several tools were audited: `by_tool` has a row for each.

        Examples
        --------
        >>> import errcomp as ec
        >>> ec.audit("neusight").overall.figures["mape"]
        Estimate(mape 9.99 % [6.8, 18.4], n=146)
        """
        if len(self.by_tool) > 1:
            raise InputError(
                f"{len(self.by_tool)} tools were audited: "
                f"{describe_names([row.tool for row in self.by_tool])}. Use by_tool, which has a "
                "row for each."
            )
        return self.by_tool[0]

    @property
    def judged_together(self) -> int:
        """Number of claims that `joint_level` allows for; a group of all pairs adds none."""
        return round((1 - self.level) / (1 - self.joint_level))

    def rows_document(self) -> dict[str, Any]:
        """Return the groups and then the tools, without groups only the tools.

        >>> import errcomp as ec
        >>> rows = ec.audit(ec.datasets.load("neusight")).rows_document()["rows"]
        >>> rows[0]["device"], rows[0]["n"], rows[-1]["n"]
        ('A100-40G', 16, 146)
        """
        rows = (*(self.rows if self.by else ()), *self.by_tool)
        return {"rows": [row.to_dict() for row in rows]}

    def view(self, pairs: Pairs | None = None) -> Report:
        """Return the report of the audit; figures of single pairs need ``pairs``.

        >>> import errcomp as ec
        >>> table = {"predicted": [11.0, 7.0], "measured": [10.0, 10.0]}
        >>> ec.audit(table).view().line
        ['MAPE 20.00 %', 'n=2']
        """
        from errcomp.claims.view.audit import audit_view

        return audit_view(self, pairs)


def audit(
    pairs: Any,
    *,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Missing = "raise",
    by: str | Sequence[str] = USUAL_KEYS,
    tool: str | None = None,
    claims: Given | Sequence[Given] | None = None,
    level: float = 0.95,
    method: str = "default",
    cluster: str | Sequence[str] | None = None,
    keys: str | Sequence[str] = (),
    resamples: int = 9999,
    seed: int = 0,
) -> Audit:
    """Compare what tools claim about their accuracy with what their pairs show.

    The verdict follows from the interval of the recomputed metric, never from a ratio set by hand:
    a claim is *consistent* when some number that would be printed like it lies in the interval,
    *overstated* when the whole interval lies above it (the tool is less accurate than claimed),
    *understated* when it lies below, and *not verifiable*, with the reason, when the pairs cannot
    decide (too few pairs for an interval, another level, another reference, no error metric).

    Parameters
    ----------
    pairs : path, dataframe, mapping of columns or Pairs
        Predictions and measurements. With a column ``tool``, every tool is audited on its own.
        Rows of a Polars LazyFrame, a DuckDB relation, a Dask or a Spark dataframe, and those that
        `errcomp.scan` leaves in their files, are not fetched; only sums over them are.
    predicted, measured, unit, zeros, missing
        How to read the table: see `errcomp.datasets.inputs.pairs_from`.
    by : str or sequence of str
        Keys to group by; by default device and mode if the table has them, ``()`` for none.
    tool : str, optional
        Only this tool; by default the table's subject if it has one, else all.
    claims : str, path, Claim or sequence of them, optional
        Claims to check, e.g. ``"2.3%"`` (see `errcomp.claims.registry.user_claim`) or a file of
        claims, ``"mine.json"`` (see `errcomp.claims.entries.read_claims`); by default those of
        the registry about the tools in the table. Among several tools, a claim that names one is
        only about that one.
    level, method, cluster, resamples, seed
        Of the intervals, as in `errcomp.summarize`. Without ``cluster``, whole models and devices
        are resampled wherever the table has such keys.
    keys : str or sequence of str
        Columns that together name a configuration. They match the rows of several tools, see
        `errcomp.caveats.check_table`.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        A key or the tool does not exist.

    Notes
    -----
    Where pairs stay in an engine, medians are read off histograms and exact copies of pairs are
    not recognised. Caveats that need single pairs are not checked; ``not_looked_for`` names them.

    Examples
    --------
    >>> import errcomp as ec
    >>> result = ec.audit(ec.datasets.load("neusight"), by=["device", "mode"])
    >>> row = next(r for r in result.rows if r.key == {"device": "V100", "mode": "inference"})
    >>> row.n, round(row.figures["mape"].value, 4), row.verdict.word
    (10, 0.0587, 'consistent')
    >>> own = {"sim": [11.0, 9.0, 10.5, 9.5], "hw": [10.0] * 4, "gpu": ["A", "A", "B", "B"]}
    >>> result = ec.audit(own, predicted="sim", measured="hw", by="gpu", claims="7.5%")
    >>> [(row.key["gpu"], round(row.figures["mape"].value, 3)) for row in result.rows]
    [('A', 0.1), ('B', 0.05)]
    """
    check_options(["mape"], level=level, method=method, resamples=resamples, seed=seed)
    rows = pairs_from(
        pairs, predicted=predicted, measured=measured, unit=unit, zeros=zeros, missing=missing
    )
    asked = None
    if claims is not None:
        from errcomp.claims.entries import claims_given

        asked = claims_given(claims, unit=rows.unit)
    clusters = cluster_keys(cluster, rows.keys)
    usual = by is USUAL_KEYS
    grouping = check_keys(with_roles(USUAL_KEYS, rows.keys) if usual else by, _COLUMNS)
    matched = (keys,) if isinstance(keys, str) else tuple(keys)
    rows.check_columns(matched)
    table = grouped(rows, grouping, asked, clusters)
    chosen = table.of_tool(tool)
    grouping = tuple(k for k in grouping if k != "tool")
    names = chosen.tools or ("",)
    estimates_of = partial(
        figures_of,
        level=level,
        method=method,
        cluster=cluster,
        resamples=resamples,
        seed=seed,
    )
    note = partial(check, by=grouping, level=level, seed=seed)
    drawn_of = partial(drawn_whole, cluster=cluster)
    row_of = partial(_row, estimates_of=estimates_of, note=note, drawn_of=drawn_of)
    parts = []
    about = None if asked is None else claims_about(asked, names)
    for name in names:
        part = chosen.of_tool(name) if name in chosen.tools else chosen
        # A source that gives no figure claims nothing that pairs could test.
        published = (claim for claim in claims_of(name) if claim.kind != "none")
        known = tuple(published) if about is None else about[name]
        parts.append(_part_of(name, part, known, grouping, row_of))
    tests = {one.test for part in parts for one in part if one.row.verdict.recomputed}
    joint = 1 - (1 - level) / max(len(tests), 1)
    if len(tests) > 1:
        enough = max(resamples, fewest_resamples(joint))
        again = partial(estimates_of, level=joint, resamples=enough)
        parts = [part.with_joint_words(again) for part in parts]
    return Audit(
        source=table.source,
        unit=table.unit,
        by=grouping,
        rows=tuple(one.row for part in parts for one in part.groups),
        by_tool=tuple(part.overall for part in parts),
        claims=tuple(one.row.verdict for part in parts for one in part.others),
        caveats=check_table(chosen, keys=matched)
        if len(names) > 1 and isinstance(chosen, Pairs)
        else (),
        dropped=table.dropped,
        level=level,
        joint_level=joint,
        seed=seed,
        method=method,
        others=tuple(t for t in table.tools if t not in names),
        cluster_keys=clusters,
        engine=table.engine,
        not_looked_for=not_looked_for(several_tools=len(names) > 1) if table.engine else (),
        measurements=measured_side(chosen, seed=seed) if isinstance(chosen, Pairs) else None,
    )


class _Found(NamedTuple):
    """A row and the pairs that it is about."""

    row: AuditRow
    pairs: AuditPairs

    @property
    def test(self) -> tuple[int, bytes]:
        """The test behind the row: a group that holds all pairs adds no test to theirs."""
        return id(self.row.verdict.claim), self.pairs.rows.tobytes()

    def with_joint_word(self, estimates_of: Callable[..., Mapping[str, Estimate]]) -> _Found:
        """Compare the claim with other intervals of the same metrics, for the joint verdict."""
        row, pairs = self
        if not row.verdict.recomputed:
            return self
        claim = row.verdict.claim
        word = judge(claim, estimates_of(pairs, also=figures_for(claim)), pairs).word
        return _Found(replace(row, verdict=replace(row.verdict, jointly=word)), pairs)


@dataclass(frozen=True, slots=True)
class _Part:
    """Results for one tool: its groups, its other claims, all its pairs without a claim."""

    groups: list[_Found]
    others: list[_Found]
    unclaimed: AuditRow | None

    def __iter__(self) -> Iterator[_Found]:
        return iter((*self.groups, *self.others))

    @property
    def overall(self) -> AuditRow:
        """All pairs of the tool, with the claim about them if one exists."""
        return self.unclaimed or next(one.row for one in self.others if _is_about_all(one.row))

    def with_joint_words(self, estimates_of: Callable[..., Mapping[str, Estimate]]) -> _Part:
        """Check all claims a second time, at the level that holds for all of them together."""
        groups = [one.with_joint_word(estimates_of) for one in self.groups]
        others = [one.with_joint_word(estimates_of) for one in self.others]
        return _Part(groups, others, self.unclaimed)


def _part_of(
    name: str,
    pairs: AuditPairs,
    known: Sequence[Claim],
    keys: Sequence[str],
    row_of: Callable[..., AuditRow],
) -> _Part:
    """Audit one tool: every group, and every claim that is not about exactly one of them."""
    groups = []
    for group in pairs.groups(keys):
        part = pairs.take(group.index)
        groups.append(_Found(row_of(name, group.key, part, _claim_for(known, group.key)), part))
    judged = {id(one.row.verdict.claim) for one in groups if one.row.key}
    others = []
    for claim in known:
        if _applies(claim, pairs) and (not claim.subset or id(claim) not in judged):
            part = pairs.where(claim.subset) if claim.subset else pairs
            others.append(_Found(row_of(name, {}, part, claim), part))
    about_all = any(_is_about_all(one.row) for one in others)
    return _Part(groups, others, None if about_all else row_of(name, {}, pairs, None))


def _row(
    name: str,
    key: Mapping[str, Any],
    pairs: AuditPairs,
    claim: Claim | None,
    *,
    estimates_of: Callable[..., Mapping[str, Estimate]],
    note: Callable[..., tuple[Caveat, ...]],
    drawn_of: Callable[[AuditPairs], tuple[str, ...]],
) -> AuditRow:
    """Audit one set of pairs."""
    figures = estimates_of(pairs, also=figures_for(claim))
    verdict = judge(claim, figures, pairs)
    caveats = note(pairs, claim=claim if _is_about(verdict) else None)
    cluster = ",".join(drawn_of(pairs))
    return AuditRow(name, key, pairs.n, _shown(figures), verdict, caveats, cluster)


def _shown(figures: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the metrics of every row; a metric that only the claim uses is in its verdict."""
    return {name: figures[name] for name in AUDIT_FIGURES}


def _is_about(verdict: Verdict) -> bool:
    """Say whether the claim is about these pairs, even if they cannot decide it."""
    by_user = verdict.claim is not None and verdict.claim.claimed_by == "the user"
    return by_user or verdict.recomputed is not None


def _is_about_all(row: AuditRow) -> bool:
    claim = row.verdict.claim
    return _is_about(row.verdict) and claim is not None and not claim.subset


def _claim_for(known: Sequence[Claim], key: Mapping[str, Any]) -> Claim | None:
    """Return the claim about exactly this group, or the user's, which is about every group."""
    group = {k: str(v) for k, v in key.items()}
    exact = (c for c in known if c.subset and dict(c.subset) == group)
    return next(exact, next((c for c in known if c.claimed_by == "the user"), None))


def _applies(claim: Claim, pairs: AuditPairs) -> bool:
    """Say whether the table has rows of the claim's subset."""
    return all(
        key in pairs.keys and value in {str(v) for v in pairs.column(key)}
        for key, value in claim.subset.items()
    )
