"""What a driver analysis returns: contrasts, regressions and verdicts, all frozen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from errcomp.codec import Count, Coverage, Derived, Document, Share, Undefined, key
from errcomp.report.shown import Shown
from errcomp.results import Caveat, Dropped, Estimate

if TYPE_CHECKING:
    from errcomp.report.model import Report


Design = Literal["paired", "between"]
VerdictWord = Literal["supported", "undecided", "contradicted", "not decidable"]


@dataclass(frozen=True, slots=True, eq=False)
class Contrast(Document):
    """Two levels of one factor compared on configurations that agree in everything matched on.

    Attributes
    ----------
    name : str
        E.g. ``"variant: fusion vs base"``.
    factor, level_a, level_b : str
        Effects are those of going from a to b.
    where : mapping
        The subset of the table, empty for all of it.
    design : {"paired", "between"}
        Paired: each cluster holds both levels. Between: each cluster (device) has one level only.
    n_pairs : int
        Matched configurations that occur at both levels.
    clusters : int
        Independent units behind the interval (the smaller side's count, when between).
    cluster_key : str
        What a cluster is: device, model, or pair.
    matched_on, not_matched_on : tuple of str
        Keys equal on both sides; keys that could not be, or were not, held equal.
    ape_a, ape_b : float
        Mean APE of the matched configurations at each level, as fractions.
    naive_a, naive_b : float or None
        Mean APE of all rows at each level, matched or not: what a table of averages would show.
        None for multiples of a number, which have no rows of their own.
    effect : Estimate
        Geometric mean of the ratio of APEs, b over a; unit ``"ratio"``.
    effect_points : Estimate
        Mean difference of APEs, b minus a; a fraction (0.05 is 5 percentage points).
    effect_signed : Estimate
        Mean difference of ln(predicted / measured), b minus a; unit ``"log"``.
    p_value, p_check, p_holm, p_bh : float or None
        Of ``effect`` being 1: primary test, robustness check, and the primary test corrected for
        the family of all contrasts and both questions.
    p_signed, p_signed_check, p_signed_holm, p_signed_bh : float or None
        The same of ``effect_signed`` being 0.
    note : str
        What a reader must know; empty when nothing.
    """

    name: str
    factor: str
    level_a: str
    level_b: str
    where: Mapping[str, str]
    design: Design
    n_pairs: Count
    clusters: Count
    cluster_key: str
    matched_on: tuple[str, ...]
    not_matched_on: tuple[str, ...]
    ape_a: Annotated[float, Undefined]
    ape_b: Annotated[float, Undefined]
    naive_a: float | None
    naive_b: float | None
    effect: Estimate
    effect_points: Estimate
    effect_signed: Estimate
    p_value: Share | None = None
    p_check: Share | None = None
    p_holm: Share | None = None
    p_bh: Share | None = None
    p_signed: Share | None = None
    p_signed_check: Share | None = None
    p_signed_holm: Share | None = None
    p_signed_bh: Share | None = None
    note: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per question: ratio of APE, points of APE, signed log error."""
        tests = (
            (self.effect, self.p_value, self.p_holm, self.p_bh),
            (self.effect_points, None, None, None),
            (self.effect_signed, self.p_signed, self.p_signed_holm, self.p_signed_bh),
        )
        return [
            _row("contrast", self, self.level_a, self.level_b, effect, self.clusters, p, self.note)
            for effect, *p in tests
        ]


def _row(
    kind: str,
    of: Contrast | RegressionTerm,
    level_a: str,
    level_b: str,
    effect: Estimate,
    clusters: int,
    p_values: Sequence[float | None],
    note: str,
) -> dict[str, Any]:
    p_value, p_holm, p_bh = p_values
    return {
        "kind": kind,
        "name": of.name,
        "factor": of.factor,
        "level_a": level_a,
        "level_b": level_b,
        "figure": effect.figure,
        "value": None if math.isnan(effect.value) else effect.value,
        "low": effect.low,
        "high": effect.high,
        "n": effect.n,
        "clusters": clusters,
        "p_value": p_value,
        "p_holm": p_holm,
        "p_bh": p_bh,
        "note": note,
    }


@dataclass(frozen=True, slots=True, eq=False)
class RegressionTerm(Document):
    """One factor level, or one doubling of a number, in a regression with all factors at once.

    Attributes
    ----------
    name : str
        E.g. ``"mode[training]"`` or ``"log2(batch)"``.
    factor : str
    level, reference : str
        ``"per doubling"`` and empty for a number.
    effect : Estimate
        For the absolute error a ratio of APE, for the signed error a difference of logs.
    p_value, p_holm, p_bh : float or None
        Plain, and corrected for all terms of both regressions.
    """

    name: str
    factor: str
    level: str
    reference: str
    effect: Estimate
    p_value: Share | None = None
    p_holm: Share | None = None
    p_bh: Share | None = None


@dataclass(frozen=True, slots=True)
class Aliased(Document):
    """A term that could not be told apart from others, and from which.

    Attributes
    ----------
    term : str
    with_terms : tuple of str
        Terms that together say the same; empty where the term never varies.
    """

    KEYS: ClassVar = ("term", key("with", "with_terms"))

    term: str
    with_terms: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.term} cannot be told apart from {' + '.join(self.with_terms) or 'a constant'}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Regression(Document):
    """All factors at once.

    Attributes
    ----------
    outcome : {"absolute", "signed"}
        ln APE (effects are ratios of APE), or ln(predicted / measured) (effects are differences).
    method : str
        ``"mixed model"`` or ``"least squares, cluster-robust"`` or ``"least squares, HC3"``.
    n, clusters : int
        Rows, and independent units.
    df : int
        Degrees of freedom of the t intervals.
    cluster_key : str
        What has the random intercept, or what the standard errors are clustered by.
    adjusted_for : tuple of str
        Keys that are in the model but are not factors of interest.
    terms : tuple of RegressionTerm
    aliased : tuple of Aliased
        Terms left out because others say the same.
    caveats : tuple of Caveat
        Named notes: fall-backs and few clusters.
    """

    outcome: Literal["absolute", "signed"]
    method: str
    n: Count
    clusters: Count
    df: int | float
    cluster_key: str
    adjusted_for: tuple[str, ...]
    terms: tuple[RegressionTerm, ...]
    aliased: tuple[Aliased, ...] = ()
    caveats: tuple[Caveat, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per term, with the columns of :meth:`Contrast.rows`."""
        return [
            _row(
                f"regression, {self.outcome}",
                term,
                term.reference,
                term.level,
                term.effect,
                self.clusters,
                (term.p_value, term.p_holm, term.p_bh),
                self.method,
            )
            for term in self.terms
        ]


@dataclass(frozen=True, slots=True)
class Statement(Document):
    """Something that was said about what moves the error, in a form that data can answer.

    Attributes
    ----------
    name : str
    text : str
        What was said.
    source : str
        Who said it.
    factor, level_a, level_b : str
        The contrast that answers it. For ``quantity="share_doubled"`` the levels are empty and the
        factor is a number that doubles.
    quantity : {"ape_ratio", "share_doubled"}
        The ratio of APEs b over a, or the share of pairs whose APE at least doubled.
    stated : float
        The value that the statement says is exceeded.
    reading : str
        How its words were turned into that value.
    where : mapping
        The subset it is about.
    """

    name: str
    text: str
    source: str
    factor: str
    quantity: Literal["ape_ratio", "share_doubled"]
    stated: float
    reading: str
    level_a: str = ""
    level_b: str = ""
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class StatementVerdict(Document):
    """What the data say to a statement.

    Attributes
    ----------
    statement : Statement
    verdict : {"supported", "undecided", "contradicted", "not decidable"}
    why : str
        The verdict in one sentence with its numbers.
    rule : str
        How the verdict follows from the interval.
    estimate : Estimate or None
        The figure that decided.
    contrast : Contrast or None
        The comparison behind it.
    evidence : mapping
        Further numbers; fractions, not percent.
    """

    statement: Statement
    verdict: VerdictWord
    why: str
    rule: str
    estimate: Estimate | None = None
    contrast: Contrast | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class DriversResult(Shown, Document):
    """Which factors move the error, by how much, and what becomes of statements about it.

    Attributes
    ----------
    tool : str or None
    n : int
        Pairs of that tool.
    level : float
        Nominal coverage of every interval.
    seed : int
    factors : tuple of str
        Factors looked at.
    contrasts : tuple of Contrast
    regressions : tuple of Regression
        Of the absolute and of the signed error; empty without the extra ``drivers``.
    statements : tuple of StatementVerdict
    dropped : tuple of Dropped
        Rows left out, with reasons.
    caveats : tuple of Caveat
    source : str
        The table.
    """

    SCHEMA: ClassVar = "errcomp.drivers/1"
    COMMAND: ClassVar = "metrics drivers"
    KEYS: ClassVar = (
        *("source", "tool", "n", "level", "seed", "factors", "contrasts", "regressions"),
        *("statements", "dropped", "caveats"),
        Derived("rows", tuple[Any, ...], lambda result: result.rows()),
    )

    tool: str | None
    n: Count
    level: Coverage
    seed: Count
    factors: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    regressions: tuple[Regression, ...]
    statements: tuple[StatementVerdict, ...]
    dropped: tuple[Dropped, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    source: str = ""

    def view(self) -> Report:
        """Return what people see of it."""
        from errcomp.drivers.view import drivers_view

        return drivers_view(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per contrast and question and per regression term."""
        rows = [row for contrast in self.contrasts for row in contrast.rows()]
        return rows + [row for regression in self.regressions for row in regression.rows()]
