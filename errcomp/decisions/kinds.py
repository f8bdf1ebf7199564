"""Choices of every kind that a table allows: of the device, the batch size and others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from errcomp.codec import Count, Document, Endless, Size
from errcomp.decisions.intervals import LEVEL
from errcomp.decisions.results import Decisions
from errcomp.errors import InputError
from errcomp.report.shown import Shown
from errcomp.results import Estimate, FlatEstimate
from errcomp.tables.columns import role_of

if TYPE_CHECKING:
    from errcomp.report.model import Report
    from errcomp.tables import Pairs

__all__ = ["DecisionKinds", "Kind"]

#: Keys that people choose between; of a batch size, the time of one item counts.
_KINDS = ("device", "batch", "variant", "devices", "precision", "dtype", "compiler", "backend")
_PER_ITEM = ("batch",)


@dataclass(frozen=True, slots=True)
class Kind(Document):
    """Choices between the values of one key.

    Attributes
    ----------
    between, per : str
        The key, and the column that times are divided by; empty: none.
    alternatives, n, choices : int
        Values of the key, comparisons of two, choices of one of all.
    right, best, regret : Estimate
        Share of comparisons that were right, share of choices that took the best, mean regret.
    regret_max : float
    needed, needed_low, needed_high : float
        Predicted difference that is right 9 times in 10; infinite where none is.
    """

    KEYS: ClassVar = (
        *("between", "per", "alternatives", "n", "choices"),
        FlatEstimate("right", "right_share", LEVEL, "right_method"),
        FlatEstimate("best", "best_share", LEVEL, "best_method", "choices"),
        FlatEstimate("regret", "regret_mean", LEVEL, "regret_method", "choices"),
        *("regret_max", "needed", "needed_low", "needed_high"),
    )

    between: str
    per: str
    alternatives: Count
    n: Count
    choices: Count
    right: Estimate
    best: Estimate
    regret: Estimate
    regret_max: Size
    needed: Annotated[float, Endless]
    needed_low: Annotated[float, Endless]
    needed_high: Annotated[float, Endless]

    @classmethod
    def of(cls, found: Decisions) -> Kind:
        """Return the row of an evaluation.

        Examples
        --------
        >>> import errcomp as ec
        >>> Kind.of(ec.compare("neusight", "device")).needed > 0.1
        True
        """
        (between,) = found.between
        return cls(
            between=between,
            per=found.per,
            **{
                name: getattr(found, name)
                for name in (
                    *("alternatives", "n", "choices", "right", "best", "regret", "regret_max"),
                    *("needed", "needed_low", "needed_high"),
                )
            },
        )


@dataclass(frozen=True, slots=True)
class DecisionKinds(Shown, Document):
    """Choices of every kind that a table allows.

    Attributes
    ----------
    source, tool : str
    seed : int
    rows : tuple of Kind
    """

    SCHEMA: ClassVar = "errcomp.decision-kinds/1"
    COMMAND: ClassVar = "compare --evaluate"
    KEYS: ClassVar = ("source", "tool", "seed", "rows")

    source: str
    tool: str
    seed: int
    rows: tuple[Kind, ...]

    def view(self) -> Report:
        """Return the report: a row for each kind.

        Examples
        --------
        >>> from errcomp.decisions import compare_kinds
        >>> compare_kinds("neusight").view().title
        'Choices by neusight'
        """
        from errcomp.decisions.view.kinds import kinds_view

        return kinds_view(self)


def kinds_of(pairs: Pairs) -> Iterator[tuple[str, str | None]]:
    """Yield the keys of a table that people choose between, each with what times are divided by."""
    for role in _KINDS:
        key = role_of(role, pairs.keys)
        if key is not None and len(set(pairs.codes(key).tolist())) > 1:
            yield key, key if role in _PER_ITEM else None


def no_kind(pairs: Pairs, reasons: list[str]) -> InputError:
    """Say that the table has nothing to choose between."""
    told = "; ".join(reasons) or f"none of {', '.join(_KINDS)} has several values"
    return InputError(
        f"{pairs.prefix}no choices to evaluate: {told}. Name what you choose between: --between "
        f"KEY. Keys: {', '.join(pairs.keys)}"
    )
