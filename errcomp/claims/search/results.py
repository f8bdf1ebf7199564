"""What a search returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errcomp._showing import Shown
from errcomp.claims.printed import Printed
from errcomp.results import format_fraction, format_number

__all__ = ["Match", "SearchResult"]

#: Expected matches of an unrelated figure below which a coincidence no longer explains a match.
RARE = 0.05


@dataclass(frozen=True, slots=True)
class Match:
    """A subset of the rows and a rule that reproduce the published figures.

    Attributes
    ----------
    where : dict of str to list
        The subset: key to the values that it has.
    aggregation, denominator, reading : str
        The rule, as in ``errcomp.claims.search.rules``.
    n : int
        Configurations in the subset.
    values : dict of str to float
        The recomputed figure of each tool, a fraction.
    description : str
        Subset and rule in words.
    complexity : float
        Length of the description in bits, see ``search_claim``.
    expected_by_chance : float
        How many matches as simple as this unrelated figures would have on average, if they were
        as near to those of the whole table. It is an upper bound of the probability that they have
        any.
    standard_error : float
        Of ``expected_by_chance``, from sampling; 0 where everything was counted.
    found : int
        How many matches as simple as this (subsets and rules) there are.
    equivalents : int
        Other descriptions that select the same rows.
    also : tuple of str
        Other rules under which the same rows reproduce the figures, as far as they are among the
        simplest matches, which are kept.
    """

    where: dict[str, list[Any]]
    aggregation: str
    denominator: str
    reading: str
    n: int
    values: dict[str, float]
    description: str
    complexity: float
    expected_by_chance: float
    standard_error: float
    found: int
    equivalents: int
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        figures = ", ".join(
            f"{name} {format_fraction(value)}".strip() for name, value in self.values.items()
        )
        return f"{figures}: {self.description}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; fractions, not percent."""
        return {
            "where": {key: list(values) for key, values in self.where.items()},
            "aggregation": self.aggregation,
            "denominator": self.denominator,
            "reading": self.reading,
            "n": self.n,
            "values": dict(self.values),
            "description": self.description,
            "complexity": self.complexity,
            "expected_by_chance": self.expected_by_chance,
            "standard_error": self.standard_error,
            "found": self.found,
            "equivalents": self.equivalents,
            "also": list(self.also),
        }


@dataclass(frozen=True, slots=True)
class SearchResult(Shown):
    """What reproduces the published figures, simplest first, and what was searched.

    Attributes
    ----------
    figures : dict of str to Printed
        The published figures as they were read.
    matches : tuple of Match
        Different subsets, simplest first; among equally simple ones the largest first.
    searched : dict
        ``configurations`` and ``left_out`` (rows of a tool without counterpart), ``dropped`` (rows
        left out when the table was read); ``keys`` with their numbers of values, ``derived`` (key
        to the key that it is a function of) and ``unused`` (column to the reason); distinct
        ``subsets``, the ``descriptions`` of them, ``rules``, ``rules_left_out`` and
        ``combinations`` of subset and rule; whether the search was ``complete``, else ``bounds``
        (key to the most values listed or left out, 0 where it was given up); ``by_complexity``
        (matches found and expected up to whole bits), and the ``null`` behind it with its ``seed``.
    """

    figures: Mapping[str, Printed]
    matches: tuple[Match, ...]
    searched: Mapping[str, Any]

    @property
    def conclusion(self) -> str:
        """One or two sentences: what was found, and whether a coincidence would explain it."""
        scope = f"{self.searched['subsets']:,} subsets under {self.searched['rules']} rules"
        if not self.searched["complete"]:
            scope += " (bounded, not all that could be named)"
        if not self.matches:
            total = self.searched["by_complexity"][-1]["expected"]
            return (
                f"None of {scope} reproduces the figure; an unrelated figure of this size and "
                f"precision would have {format_number(total, 2)} matches on average."
            )
        best = self.matches[0]
        verdict = "a coincidence is a sufficient explanation"
        if best.expected_by_chance < RARE:
            verdict = "a coincidence is not a sufficient explanation"
        elif best.expected_by_chance < 1:
            verdict = "a coincidence cannot be ruled out"
        return (
            f"Searched {scope}. Simplest match: {best}. As simple as that: {best.found} "
            f"{'match' if best.found == 1 else 'matches'}, where "
            f"{format_number(best.expected_by_chance, 2)} are expected by chance: {verdict}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: ``figures``, ``matches`` (best first), ``searched``."""
        return {
            "figures": {
                name: {"text": f.text, "value": f.value, "low": f.low, "high": _finite(f.high)}
                for name, f in self.figures.items()
            },
            "matches": [match.to_dict() for match in self.matches],
            "searched": dict(self.searched),
            "conclusion": self.conclusion,
        }


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
