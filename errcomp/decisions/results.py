"""The result of an evaluation of choices: how often right, how sure, what a miss cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from errcomp.codec import (
    Count,
    Coverage,
    Document,
    Endless,
    GroupKeys,
    Positive,
    Share,
    Size,
    Undefined,
)
from errcomp.decisions.intervals import LEVEL
from errcomp.report.shown import Shown
from errcomp.results import Dropped, Estimate, FlatEstimate

if TYPE_CHECKING:
    from errcomp.report.model import Report

__all__ = ["Assumption", "ByRatio", "Calibration", "Decision", "Decisions", "Duel", "TopK", "Way"]


@dataclass(frozen=True, slots=True)
class Calibration(Document):
    """Comparisons with similar probabilities: the stated one and the share that was right.

    Attributes
    ----------
    stated : float
        Mean probability of the alternative that is called faster.
    found : Estimate
        Share of comparisons in which it was.
    n : int
    """

    KEYS: ClassVar = ("stated", FlatEstimate("found", "found", LEVEL), "n")

    stated: Share
    found: Estimate
    n: Count


@dataclass(frozen=True, slots=True)
class ByRatio(Document):
    """Comparisons whose predicted ratio (larger over smaller) lies in a range.

    Attributes
    ----------
    above, below : float
        The range; infinite without an upper end.
    right : Estimate
        Share in which the predicted faster one was the faster.
    n : int
    """

    KEYS: ClassVar = ("above", "below", FlatEstimate("right", "right", LEVEL), "n")

    above: Positive
    below: Annotated[float, Endless]
    right: Estimate
    n: Count


@dataclass(frozen=True, slots=True)
class Way(Document):
    """Another way to choose, on the same comparisons.

    Attributes
    ----------
    way : str
        E.g. another tool, or the data sheet.
    n, choices : int
        Comparisons and choices that both can make.
    right, regret_mean, regret_max : float
    own_right, own_regret_mean : float
        Of the predictions themselves there.
    """

    way: str
    n: Count
    choices: Count
    right: Annotated[float, Undefined]
    regret_mean: Annotated[float, Undefined]
    regret_max: Annotated[float, Undefined]
    own_right: Annotated[float, Undefined]
    own_regret_mean: Annotated[float, Undefined]


@dataclass(frozen=True, slots=True)
class Assumption(Document):
    """What an assumption about the errors of two alternatives makes of the same comparisons.

    Attributes
    ----------
    errors : str
        ``learned``, ``independent`` or ``comonotonic``.
    gap : float
        Mean difference of stated and found share over the fifths of comparisons.
    called : float
        Share of comparisons with a probability of at least the level.
    wrong_when_sure : float
        Share wrong among those that are 95 % sure; NaN without such.
    """

    errors: str
    gap: Size
    called: Share
    wrong_when_sure: Annotated[float, Undefined]


@dataclass(frozen=True, slots=True)
class TopK(Document):
    """Choices of which the k predicted fastest alternatives are measured, and the best is taken.

    Attributes
    ----------
    k : int
    choices : int
        Choices with more than k alternatives.
    holds_best : float
        Share of them in which the best alternative is among the k.
    regret_mean, regret_max : float
    """

    k: Count
    choices: Count
    holds_best: Share
    regret_mean: Size
    regret_max: Size


@dataclass(frozen=True, slots=True)
class Duel(Document):
    """All comparisons of two alternatives.

    Attributes
    ----------
    first, second : str
    n, right : int
        Comparisons, and those that were right.
    """

    first: str
    second: str
    n: Count
    right: Count


@dataclass(frozen=True, slots=True)
class Decision(Document):
    """One choice: the alternatives under one condition.

    Attributes
    ----------
    condition : mapping
    n : int
        Alternatives that were measured.
    chosen, best : str
        Alternative with the least predicted, and with the least measured time.
    regret : float
        Measured time of the chosen one over that of the best, minus 1.
    """

    KEYS: ClassVar = (GroupKeys("condition", "within"), "n", "chosen", "best", "regret")

    condition: Mapping[str, Any]
    n: Count
    chosen: str
    best: str
    regret: Size


@dataclass(frozen=True, slots=True)
class Decisions(Shown, Document):
    """How often choices by predictions were right, how sure they could be, and what misses cost.

    Attributes
    ----------
    source, tool : str
    between, within : tuple of str
        Keys of the alternatives and of the conditions.
    per, price : str
        Columns that times are divided by, and multiplied by; empty: none.
    higher : bool
        Whether more is better.
    cluster : str
        Condition whose values are taken to be independent in intervals; empty: each condition.
    alternatives : int
    n, choices : int
        Comparisons of two alternatives, and choices of one of all.
    ties : int
        Comparisons without a faster one; they are not counted.
    right : Estimate
        Share of comparisons in which the predicted faster one was the faster.
    needed, needed_low, needed_high : float
        Predicted difference (larger over smaller, minus 1) that is right 9 times in 10, and its
        95 % interval; infinite where none is.
    level : float
        A comparison with at least this probability is called.
    left_out : str
        What the error model of a comparison did not see: ``alternatives`` or ``conditions``; empty
        where there are too few of both.
    share_called, wrong_when_sure : float
        Share of comparisons that are called, and share wrong among those that are 95 % sure.
    sure : int
        Comparisons that are 95 % sure.
    calibration : tuple of Calibration
        Fifths of the comparisons, by probability.
    by_ratio : tuple of ByRatio
    best : Estimate
        Share of choices that took the best alternative.
    regret : Estimate
        Mean regret of the choices.
    regret_max : float
    top : tuple of TopK
    duels : tuple of Duel
        By two alternatives, the least right first; empty for more than 60 alternatives.
    assumptions : tuple of Assumption
    ways : tuple of Way
    rows : tuple of Decision
    repeated : int
        Rows that repeat an alternative under its condition, averaged.
    dropped : tuple of Dropped
    seed : int
    """

    SCHEMA: ClassVar = "errcomp.decisions/1"
    COMMAND: ClassVar = "compare --evaluate"
    KEYS: ClassVar = (
        *("source", "tool", "between", "within", "per", "price", "higher", "cluster"),
        *(
            "alternatives",
            "n",
            "choices",
            "ties",
            FlatEstimate("right", "right_share", LEVEL, "right_method"),
        ),
        *("needed", "needed_low", "needed_high", "level", "left_out", "share_called", "sure"),
        *("wrong_when_sure", "calibration", "by_ratio"),
        FlatEstimate("best", "best_share", LEVEL, "best_method", "choices"),
        FlatEstimate("regret", "regret_mean", LEVEL, "regret_method", "choices"),
        *(
            "regret_max",
            "top",
            "duels",
            "assumptions",
            "ways",
            "repeated",
            "dropped",
            "seed",
            "rows",
        ),
    )

    source: str
    tool: str
    between: tuple[str, ...]
    within: tuple[str, ...]
    per: str
    price: str
    higher: bool
    cluster: str
    alternatives: Count
    n: Count
    choices: Count
    ties: Count
    right: Estimate
    needed: Annotated[float, Endless]
    needed_low: Annotated[float, Endless]
    needed_high: Annotated[float, Endless]
    level: Coverage
    left_out: str
    share_called: Annotated[float, Undefined]
    sure: Count
    wrong_when_sure: Annotated[float, Undefined]
    calibration: tuple[Calibration, ...]
    by_ratio: tuple[ByRatio, ...]
    best: Estimate
    regret: Estimate
    regret_max: Size
    top: tuple[TopK, ...]
    duels: tuple[Duel, ...]
    assumptions: tuple[Assumption, ...]
    ways: tuple[Way, ...]
    repeated: Count
    dropped: tuple[Dropped, ...]
    seed: int
    rows: tuple[Decision, ...]

    def table(self) -> Any:
        """Return the choices as a Polars dataframe; the same as `to_frame`.

        Examples
        --------
        >>> import errcomp as ec
        >>> ec.compare("neusight", between="device", evaluate=True).table().columns[-2:]
        ['best', 'regret']
        """
        return self.to_frame()

    def view(self) -> Report:
        """Return the report: the answer, calibration, other ways to choose, the worst choices.

        Examples
        --------
        >>> import errcomp as ec
        >>> found = ec.compare("neusight", between="device", evaluate=True)
        >>> found.view().title
        'Choosing the device by neusight'
        """
        from errcomp.decisions.view.evaluation import decisions_view

        return decisions_view(self)
