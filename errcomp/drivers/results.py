"""Results of a driver analysis: contrasts, regressions and verdicts, all frozen."""

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
    """Two levels of a factor, compared on configurations that agree in all matched keys.

    Attributes
    ----------
    name : str
        E.g. ``"variant: fusion vs base"``.
    factor, level_a, level_b : str
        Effects are changes from a to b.
    where : mapping
        The subset of the table; empty for the whole table.
    design : {"paired", "between"}
        Paired: each cluster has both levels. Between: each cluster (device) has only one level.
    n_pairs : int
        Matched configurations that occur at both levels.
    clusters : int
        Independent units of the interval (between devices: those of the smaller side).
    cluster_key : str
        Key of the clusters: device, model, or pair.
    matched_on, not_matched_on : tuple of str
        Keys that are equal on both sides, and keys that are not.
    ape_a, ape_b : float
        Mean APE of the matched configurations at each level, as fractions.
    naive_a, naive_b : float or None
        Mean APE of all rows at each level, matched or not, as in a table of averages. None for
        multiples of a number.
    effect : Estimate
        Geometric mean of the ratio of APEs, b over a; unit ``"ratio"``.
    effect_points : Estimate
        Mean difference of APEs, b minus a; a fraction (0.05 is 5 percentage points).
    effect_signed : Estimate
        Mean difference of ln(predicted / measured), b minus a; unit ``"log"``.
    p_value, p_check, p_holm, p_bh : float or None
        Of ``effect`` being 1: primary test, robustness check, and the primary test corrected for
        all contrasts and both questions.
    p_signed, p_signed_check, p_signed_holm, p_signed_bh : float or None
        The same for ``effect_signed`` being 0.
    note : str
        What a reader must know; may be empty.
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
        """Return one flat row per question: ratio of APE, points of APE, signed log error.

        >>> import errcomp as ec
        >>> table = {"predicted": [1.1, 1.2, 1.3, 1.1], "measured": [1.0] * 4,
        ...          "device": list("AABB"), "mode": ["eager", "graph"] * 2}
        >>> (contrast,) = ec.drivers.error_drivers(table).contrasts
        >>> [row["figure"] for row in contrast.rows()]
        ['ape_ratio', 'ape_points', 'signed_log']
        """
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
        Uncorrected, and corrected for all terms of both regressions.
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
    """A term that was left out because it is not distinguishable from others.

    Attributes
    ----------
    term : str
    with_terms : tuple of str
        Terms that together have the same information; empty if the term never varies.
    """

    KEYS: ClassVar = ("term", key("with", "with_terms"))

    term: str
    with_terms: tuple[str, ...]

    def __str__(self) -> str:
        if not self.with_terms:
            return f"{self.term} was left out: it does not vary"
        return (
            f"{self.term} was left out: its effect cannot be distinguished from the "
            f"{'combined ' if len(self.with_terms) > 1 else ''}effect of "
            f"{' + '.join(self.with_terms)}"
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
        Key with the random intercept, or key of the clusters of standard errors.
    adjusted_for : tuple of str
        Keys that are in the model but are not factors of interest.
    terms : tuple of RegressionTerm
    aliased : tuple of Aliased
        Terms left out because others have the same information.
    caveats : tuple of Caveat
        Fall-backs and few clusters.
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
        """Return one flat row per term, with the columns of :meth:`Contrast.rows`.

        >>> Regression("absolute", "least squares, HC3", 9, 3, 2, "device", (), (), (), ()).rows()
        []
        """
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
    """A published statement about a driver of the error, in a form that data can check.

    Attributes
    ----------
    name : str
    text : str
        The statement.
    source : str
        Who made it.
    factor, level_a, level_b : str
        The contrast that checks it. For ``quantity="share_doubled"`` the levels are empty and the
        factor is a number that doubles.
    quantity : {"ape_ratio", "share_doubled"}
        The ratio of APEs b over a, or the share of pairs whose APE at least doubled.
    stated : float
        The value that is exceeded according to the statement.
    reading : str
        How that value follows from the words.
    where : mapping
        The subset of the table.
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
    """The verdict of the data on a statement.

    Attributes
    ----------
    statement : Statement
    verdict : {"supported", "undecided", "contradicted", "not decidable"}
    why : str
        The verdict in one sentence with its numbers.
    rule : str
        How the verdict follows from the interval.
    estimate : Estimate or None
        The estimate that decided.
    contrast : Contrast or None
        The contrast with this estimate.
    evidence : mapping
        Further numbers; fractions, not per cent.
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
    """Which factors change the error, by how much, and verdicts on statements about it.

    Attributes
    ----------
    tool : str or None
    n : int
        Pairs of that tool.
    level : float
        Nominal coverage of every interval.
    seed : int
    factors : tuple of str
        Compared factors.
    contrasts : tuple of Contrast
    regressions : tuple of Regression
        For the absolute and the signed error; empty without the extra ``drivers``.
    statements : tuple of StatementVerdict
        Published ones about NeuSight; none for another tool.
    dropped : tuple of Dropped
        Rows that were left out, with reasons.
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
        """Return the report of the analysis.

        >>> import errcomp as ec
        >>> table = {"predicted": [1.1, 1.2, 1.3, 1.1], "measured": [1.0] * 4,
        ...          "device": list("AABB"), "mode": ["eager", "graph"] * 2}
        >>> ec.drivers.error_drivers(table).view().title
        'Drivers of the error of the tool (4 pairs)'
        """
        from errcomp.drivers.view import drivers_view

        return drivers_view(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per contrast and question and per regression term.

        >>> import errcomp as ec
        >>> table = {"predicted": [1.1, 1.2, 1.3, 1.1], "measured": [1.0] * 4,
        ...          "device": list("AABB"), "mode": ["eager", "graph"] * 2}
        >>> ec.drivers.error_drivers(table).rows()[0]["name"]
        'mode: graph vs eager'
        """
        rows = [row for contrast in self.contrasts for row in contrast.rows()]
        return rows + [row for regression in self.regressions for row in regression.rows()]
