"""Search for subsets of the rows and rules that reproduce a published figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field as field_
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from errcomp.claims.printed import Printed, parse_printed
from errcomp.claims.search.chance import FACTOR, NEAREST, Chance, expected_matches
from errcomp.claims.search.keys import BITS, Configurations, Factor, choose_factors, join
from errcomp.claims.search.lattice import build_lattice
from errcomp.claims.search.rules import Rule, contains, evaluate, rules_for
from errcomp.claims.search.scan import Candidates, Table
from errcomp.claims.search.scan import scan as scan_subsets
from errcomp.codec import (
    Count,
    Derived,
    Document,
    Field,
    Names,
    Part,
    Scalar,
    closed,
    plain_keys,
    shape_of,
)
from errcomp.datasets.inputs import pairs_in_memory
from errcomp.errors import InputError, describe_rows
from errcomp.metrics.intervals import check_options
from errcomp.report.shown import Shown
from errcomp.results import format_fraction, format_number
from errcomp.tables import Pairs
from errcomp.tables.table import sort_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.report.model import Report
    from errcomp.tables import Missing, Zeros

__all__ = ["Match", "SearchResult", "search_claim"]

_COUNT, _FLAG, _NUMBER = shape_of(Count), shape_of(bool), shape_of(float)
#: If fewer matches of an unrelated figure are expected, a coincidence is unlikely.
RARE = 0.05


@dataclass(frozen=True, slots=True)
class Match(Document):
    """A subset of the rows and a rule that reproduce the published figures.

    Attributes
    ----------
    where : dict of str to list
        The subset: the values of each key.
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
        Average number of matches this simple that unrelated figures would have, if they were as
        near to those of the whole table. It is an upper bound of the probability of any match.
    standard_error : float
        Of ``expected_by_chance``, from sampling; 0 where everything was counted.
    found : int
        Number of matches (subset and rule) this simple.
    equivalents : int
        Other descriptions that select the same rows.
    also : tuple of str
        Other rules under which the same rows reproduce the figures. Only rules among the simplest
        matches, which are kept, are listed.
    """

    where: dict[str, list[Scalar]]
    aggregation: str
    denominator: str
    reading: str
    n: Count
    values: dict[str, float]
    description: str
    complexity: float
    expected_by_chance: float
    standard_error: float
    found: Count
    equivalents: Count
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        figures = ", ".join(
            f"{name} {format_fraction(value)}".strip() for name, value in self.values.items()
        )
        return f"{figures}: {self.description}"


class _Published(Part):
    """The published figures: as printed, and the numbers that would be printed like them."""

    def write(self, result: SearchResult) -> Mapping[str, Any]:
        figures = {
            name: {"text": f.text, "value": f.value, "low": f.low, "high": f.high}
            for name, f in result.figures.items()
        }
        return plain_keys({"figures": figures})

    def read(self, field: Field) -> Mapping[str, Any]:
        figures = field.at("figures")
        return {"figures": {name: self._figure(figures.at(name)) for name in figures.object()}}

    def _figure(self, field: Field) -> Printed:
        text = shape_of(str).read(field.at("text"))
        try:
            return parse_printed(text)
        except InputError as error:
            raise InputError(f"{field.at('text').path}: {error}") from error

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        number = shape_of(float | None).schema(names)
        figure = closed(
            {"text": {"type": "string"}, **dict.fromkeys(("value", "low", "high"), number)}
        )
        return {"figures": {"type": "object", "additionalProperties": figure}}


@dataclass(frozen=True, slots=True)
class SearchResult(Shown, Document):
    """Subsets and rules that reproduce the published figures, simplest first, and the search.

    Attributes
    ----------
    figures : dict of str to Printed
        The published figures as they were read.
    matches : tuple of Match
        Different subsets, simplest first; of equally simple subsets, the largest first.
    searched : dict
        ``configurations`` and ``left_out`` (rows of a tool without counterpart), ``dropped`` (rows
        left out when the table was read); ``keys`` with their numbers of values, ``derived`` (key
        to the key that it is a function of) and ``unused`` (column to the reason); distinct
        ``subsets``, their ``descriptions``, ``rules``, ``rules_left_out`` and ``combinations`` of
        subset and rule; whether the search was ``complete``, else ``bounds`` (key to the most
        values listed or left out, 0 where the key was given up); ``by_complexity`` (matches found
        and expected up to whole bits), and the ``null`` hypothesis with its ``seed``.
    source : str
        The table.
    in_first_subset : mapping of str to int
        For each tool with rows without counterpart: its rows in the simplest match.
    """

    SCHEMA: ClassVar = "errcomp.search/1"
    COMMAND: ClassVar = "claims search"
    KEYS: ClassVar = (
        *("source", _Published(), "matches", "searched"),
        Derived("conclusion", str, lambda result: result.conclusion),
        "in_first_subset",
    )

    figures: Mapping[str, Printed]
    matches: tuple[Match, ...]
    searched: Mapping[str, Any]
    source: str = ""
    in_first_subset: Mapping[str, Count] = field_(default_factory=dict)

    def _agree(self, field: Field) -> None:
        """Refuse matches without a figure, and a search that does not say what it searched."""
        for match, place in zip(self.matches, field.at("matches").items(), strict=True):
            for tool in set(self.figures) - set(match.values):
                place.at("values").at(tool)
        searched = field.at("searched")
        for name in ("subsets", "rules", "configurations"):
            _COUNT.read(searched.at(name))
        _FLAG.read(searched.at("complete"))
        shape_of(Mapping[str, Count]).read(searched.at("left_out"))
        for row in searched.at("by_complexity").items(fewest=1):
            _NUMBER.read(row.at("expected"))

    def view(self) -> Report:
        """Return the report of the search.

        >>> pairs = Pairs({"predicted": [1.1, 1.3], "measured": [1.0, 1.0]})
        >>> search_claim(pairs, {"": "20%"}).view().line
        ['mean, all configurations, n=2', 'first of 1']
        """
        from errcomp.claims.view.search import search_view

        return search_view(self)

    @property
    def conclusion(self) -> str:
        """What was found, and whether it may be a coincidence, in one or two sentences."""
        scope = f"{self.searched['subsets']:,} subsets under {self.searched['rules']} rules"
        if not self.searched["complete"]:
            scope += " (bounded: not all possible subsets)"
        if not self.matches:
            total = self.searched["by_complexity"][-1]["expected"]
            return (
                f"None of {scope} reproduces the figure; an unrelated figure of this size and "
                f"precision would have {format_number(total, 2)} matches on average."
            )
        best = self.matches[0]
        verdict = "coincidence is likely"
        if best.expected_by_chance < RARE:
            verdict = "coincidence is unlikely"
        elif best.expected_by_chance < 1:
            verdict = "coincidence cannot be ruled out"
        matches = "1 match is" if best.found == 1 else f"{best.found} matches are"
        return (
            f"Searched {scope}. The simplest match gives {best}. {matches} this simple or simpler; "
            f"by chance, {format_number(best.expected_by_chance, 2)} would be expected, so "
            f"{verdict}."
        )


_KEEP = 10_000  # candidates that pass the screen and are computed again
_EFFORT = 2_000_000  # rows to read for that
#: Beyond this factor above or below 1 the square of a relative error, or its sum, may overflow.
_LARGEST = 1e75


def search_claim(
    pairs: Any,
    figures: Mapping[str, str | float],
    *,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Missing = "raise",
    keys: str | Sequence[str] | None = None,
    tool_key: str = "tool",
    top: int = 20,
    max_values: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    r"""Find the subsets of the rows and the rules that reproduce published figures.

    A subset names values of some keys (device is H100, model is A or B). A rule is an aggregation,
    a denominator and a reading of the word (see ``errcomp.claims.search.rules``). A match gives,
    for every tool named, a number that is printed like the published figure. Several figures must
    come from the same configurations and the same rule. Each reported match was computed again from
    its definition, on the rows it names.

    .. math:: \text{complexity} = \sum_{\text{keys used}}
              \Bigl(2 + k + \log_2 \tbinom{v}{k}\Bigr) + \text{bits of the rule}

    Definition: complexity is a description length in bits, where k of the v values of a key are
    listed (or left out, if that is shorter); the plain mean of errors relative to the measurement
    costs nothing. Matches are ordered by complexity, then by the number of configurations. If
    several descriptions select the same rows, the shortest counts. ``expected_by_chance`` is the
    number of matches this simple that unrelated figures would have. These are printed with the same
    digits and are as near to those of the whole table (see ``errcomp.claims.search.chance``).

    Misleads for a single figure with few digits: it has thousands of matches, and the simplest need
    not be what its authors did. Compare ``found`` with ``expected_by_chance``.

    Parameters
    ----------
    pairs : path, dataframe, mapping of columns or Pairs
        Rows of one or several tools.
    figures : mapping of str to str or float
        Tool to its figure as printed: ``"2.3%"``, ``"<5%"``, ``"5–10%"``, ``"0.0587"``. A match has
        the same digits. Without a tool column, use any name.
    predicted, measured, unit, zeros, missing
        How to read the table: see `errcomp.datasets.inputs.pairs_from`.
    keys : str or sequence of str, optional
        Columns to search; by default all keys. A column that is a function of another (vendor of a
        device) gives that one shorter descriptions.
    tool_key : str
        The column with the tool of each row.
    top : int
        Number of matches to return.
    max_values : int, optional
        Bound on the number of values in a union (or left out of it). Without it, all unions are
        searched if that takes seconds, else a bound is set; ``searched`` says which.
    seed : int
        For the sample behind ``expected_by_chance``.
    progress : callable, optional
        Called with the number of subsets screened and their total.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        A figure cannot be read or is negative, a tool or key does not exist, the tools share no
        configuration, the seed is negative, or the square of a number overflows.

    References
    ----------
    Rissanen (1978), "Modeling by shortest data description", Automatica 14(5), for ranking
    explanations by the length of their description.

    Examples
    --------
    >>> pairs = Pairs({
    ...     "device": ["A", "A", "B", "B"],
    ...     "measured": [100.0, 100.0, 100.0, 100.0],
    ...     "predicted": [101.0, 103.0, 110.0, 125.0],
    ... })
    >>> best = search_claim(pairs, {"": "2.0%"}).matches[0]
    >>> best.where, best.aggregation, best.n, best.values
    ({'device': ['A']}, 'mean', 2, {'': 0.02})
    """
    printed = _read(figures)
    if top < 1:
        raise InputError(f"top must be at least 1, got {top}")
    check_options(seed=seed)
    table = pairs_in_memory(
        pairs, predicted=predicted, measured=measured, unit=unit, zeros=zeros, missing=missing
    )
    _check_range(table)
    configurations = join(table, list(printed), tool_key)
    wanted_keys = [keys] if isinstance(keys, str) else keys
    factors, unused = choose_factors(configurations, wanted_keys, max_values)
    lattice = build_lattice(factors, configurations.n)
    wanted = list(printed.values())
    rules = rules_for(wanted)
    sums = Table(configurations, lattice, rules)
    keep = max(20 * top, min(_KEEP, _EFFORT // configurations.n))
    # The two are independent, and much of both runs outside of Python.
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(expected_matches, sums, wanted, np.random.default_rng(seed))
        candidates = scan_subsets(sums, wanted, keep=keep, progress=progress)
        chance = pending.result()
    verified = _verify(sums, wanted, candidates)
    counts = np.bincount(candidates.complexity[verified], minlength=1).cumsum()
    matches = _matches(sums, printed, candidates, verified, counts, chance, top)
    searched = _searched(sums, factors, unused, int(chance.subsets.sum()), seed)
    searched["rules_left_out"] = sorted(map(_rule_words, set(rules) - set(sums.rules)))
    searched["dropped"] = [dropped.to_dict() for dropped in table.dropped]
    searched["by_complexity"] = _by_complexity(counts, chance, candidates.kept_up_to)
    # Rows without counterpart in another tool: how many of them are in the simplest match.
    in_first = {
        tool: table.where({tool_key: tool}).where(matches[0].where).n
        for tool, n in searched["left_out"].items()
        if n and matches
    }
    return SearchResult(printed, tuple(matches), searched, table.source, in_first)


def _check_range(pairs: Pairs) -> None:
    for name in ("predicted", "measured"):
        values = getattr(pairs, name)
        size = np.abs(values)
        bad = (size > _LARGEST) | ((size > 0) & (size < 1 / _LARGEST))
        if bad.any():
            raise InputError(
                f"{name} must be between {1 / _LARGEST:.0e} and {_LARGEST:.0e} for a search, got "
                f"{values[bad][0]:g} in {describe_rows(pairs.rows[bad].tolist())}. Check the unit, "
                "or leave such rows out."
            )


def _read(figures: Mapping[str, str | float]) -> dict[str, Printed]:
    if not isinstance(figures, Mapping):
        raise InputError(
            "figures must be a mapping from each tool to its published figure, got "
            f'{type(figures).__name__}. Write {{"neusight": "2.3%"}}, or {{"": "2.3%"}} for a '
            "table of one tool."
        )
    if not figures:
        raise InputError(
            "no figure to search for. Give the tool and its published figure, e.g. "
            '{"neusight": "2.3%"}'
        )
    for name, text in figures.items():
        if not isinstance(text, str | int | float):
            raise InputError(f'the figure of {name!r} must be text such as "2.3%", got {text!r}')
    printed = {name: parse_printed(text) for name, text in figures.items()}
    for name, figure in printed.items():
        if figure.high <= 0 or (figure.low if figure.value is None else figure.value) < 0:
            raise InputError(f"the figure of {name!r} must not be negative, got {figure.text!r}")
    return printed


def _verify(table: Table, figures: Sequence[Printed], candidates: Candidates) -> NDArray[np.int64]:
    """Positions of the candidates that match: simplest first, then largest first."""
    good = np.ones(len(candidates.rule), dtype=bool)
    for index in np.unique(candidates.rule):
        rule, at = table.rules[index], np.flatnonzero(candidates.rule == index)
        for tool, figure in enumerate(figures):
            subsets = candidates.subsets.part(at)
            values = table.evaluate(tool, subsets, [rule.family])[rule.family]
            good[at] &= contains(figure, rule.read(values))
    position = np.flatnonzero(good)
    n = table.count(candidates.subsets.part(position))
    order = np.lexsort((candidates.rule[position], -n, candidates.complexity[position]))
    return position[order]


def _matches(
    table: Table,
    figures: Mapping[str, Printed],
    candidates: Candidates,
    verified: NDArray[np.int64],
    counts: NDArray[np.int64],
    chance: Chance,
    top: int,
) -> list[Match]:
    by_rows: dict[tuple[int, int], list[int]] = {}
    for i in verified.tolist():
        subset = (int(candidates.subsets.rows[i]), int(candidates.subsets.values[i]))
        by_rows.setdefault(subset, []).append(i)
    matches: list[Match] = []
    for same in by_rows.values():
        match = _match(table, figures, candidates, same, counts, chance)
        matches += [] if match is None else [match]
        if len(matches) == top:
            break
    return matches


def _match(
    table: Table,
    figures: Mapping[str, Printed],
    candidates: Candidates,
    same: list[int],
    counts: NDArray[np.int64],
    chance: Chance,
) -> Match | None:
    """Describe a subset, and compute its figures from their definition on its rows."""
    first, lattice = same[0], table.lattice
    values = int(candidates.subsets.values[first])
    naming, descriptions = lattice.describe(int(candidates.subsets.rows[first]), values)
    rule = table.rules[candidates.rule[first]]
    c = table.configurations
    inside = np.ones(c.n, dtype=bool)
    for key, wanted in naming.where:
        inside &= np.asarray([value in wanted for value in c.columns[key]])
    computed = {
        name: evaluate(rule, predicted=c.predicted[t, inside], measured=c.measured[t, inside])
        for t, name in enumerate(c.names)
    }
    # The definition decides if sums differ from it by more than rounding.
    if not all(contains(figures[name], np.array(value)) for name, value in computed.items()):
        return None
    n, cost = int(inside.sum()), int(candidates.complexity[first])
    expected, error = chance.up_to(cost)
    return Match(
        where={key: list(wanted) for key, wanted in naming.where},
        aggregation=rule.aggregation,
        denominator=rule.denominator,
        reading=rule.reading,
        n=n,
        values=computed,
        description=f"{_rule_words(rule)}, {_where_words(c, naming.where)}, n={n}",
        complexity=cost / BITS,
        expected_by_chance=expected,
        standard_error=error,
        found=int(counts[cost]),
        equivalents=descriptions - 1,
        also=tuple(_rule_words(table.rules[candidates.rule[i]]) for i in same[1:]),
    )


def _rule_words(rule: Rule) -> str:
    words = rule.aggregation
    if rule.denominator not in ("measured", ""):
        words += (
            f", relative to {'the ' if rule.denominator != 'predicted' else ''}{rule.denominator}"
        )
    return f"100 % minus {words}" if rule.reading == "100 - error" else words


def _where_words(table: Configurations, where: Sequence[tuple[str, tuple[Any, ...]]]) -> str:
    """Name a subset in words; if fewer values are left out than listed, name those."""
    parts = []
    for key, wanted in where:
        others = sorted({v for v in table.columns[key] if v not in wanted}, key=sort_key)
        if len(others) < len(wanted):
            parts.append(f"{key} other than {' and '.join(map(str, others))}")
        else:
            parts.append(f"{key} {' or '.join(map(str, wanted))}")
    return ", ".join(parts) or "all configurations"


def _searched(
    table: Table, factors: Sequence[Factor], unused: Mapping[str, str], subsets: int, seed: int
) -> dict[str, Any]:
    lattice = table.lattice
    return {
        "configurations": table.configurations.n,
        "left_out": dict(table.configurations.left_out),
        "keys": {f.name: len(f.values) for f in factors},
        "derived": {d.name: f.name for f in factors for d in f.derived},
        "unused": dict(unused),
        "subsets": subsets,
        "descriptions": lattice.descriptions,
        "rules": len(table.rules),
        "combinations": subsets * len(table.rules),
        "complete": all(f.complete for f in factors),
        "bounds": {f.name: f.listed for f in factors if not f.complete},
        "null": "random figures with as many digits as the published figures and as close to the "
        f"figures of the whole table (within a factor of {NEAREST:g} to {FACTOR:g}), drawn for "
        "each tool independently or for all tools together, whichever gives more matches; if there "
        "are many subsets, only a sample of them is counted",
        "seed": seed,
    }


def _by_complexity(
    counts: NDArray[np.int64], chance: Chance, kept_up_to: int
) -> list[dict[str, Any]]:
    """Cumulative counts for whole bits; None where some that passed the screen were not kept."""
    rows = []
    for cost in range(0, len(chance.expected) + BITS, BITS):
        expected, error = chance.up_to(cost)
        known = cost <= kept_up_to
        rows.append(
            {
                "complexity": cost // BITS,
                "found": int(counts[min(cost, len(counts) - 1)]) if known else None,
                "expected": expected,
                "standard_error": error,
            }
        )
    return rows
