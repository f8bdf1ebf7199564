"""The search against an enumeration that shares nothing with it but the definitions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import errcomp.claims.search as module
from errcomp.claims.printed import Printed, parse_printed
from errcomp.claims.search import Match, search_claim
from errcomp.claims.search.chance import Chance, _subsets_by_cost, expected_matches
from errcomp.claims.search.scan import Table
from errcomp.metrics import r2
from errcomp.tables import Pairs

Row = dict[str, Any]
Rules = dict[frozenset[int], list[tuple[float, str, str, str]]]
DENOMINATORS = {
    "measured": lambda p, m: m,
    "predicted": lambda p, m: p,
    "smaller": min,
    "larger": max,
    "mean of both": lambda p, m: (p + m) / 2,
}
BITS = {
    "mean": 0,
    "median": 2,
    "geometric mean": 2,
    "weighted": 2,
    "root mean square": 3,
    "ratio of totals": 3,
    "mean of rounded (1 decimal)": 3,
    "mean of rounded (0 decimals)": 4,
    "mean of rounded (2 decimals)": 4,
    "share within 5 %": 3,
    "share within 10 %": 3,
}


def errors_of(denominator: str, pairs: list[tuple[float, float]]) -> list[float]:
    over = DENOMINATORS[denominator]
    return [abs(p - m) / over(p, m) for p, m in pairs]


def aggregate(
    name: str, denominator: str, pairs: list[tuple[float, float]], errors: list[float]
) -> float:
    over, n = DENOMINATORS[denominator], len(pairs)
    if name == "median":
        return statistics.median(errors)
    if name == "geometric mean":
        return 0.0 if min(errors) == 0 else math.exp(math.fsum(map(math.log, errors)) / n)
    if name == "weighted":
        return math.fsum(abs(p - m) for p, m in pairs) / math.fsum(over(p, m) for p, m in pairs)
    if name == "root mean square":
        return math.sqrt(math.fsum(e * e for e in errors) / n)
    if name == "ratio of totals":
        p, m = math.fsum(p for p, _ in pairs), math.fsum(m for _, m in pairs)
        return abs(p - m) / over(p, m)
    if name.startswith("share"):
        return sum(e <= float(name.split()[2]) / 100 for e in errors) / n
    if name.startswith("mean of rounded"):
        decimals = int(name.split("(")[1][0])
        return math.fsum(round(100 * e, decimals) / 100 for e in errors) / n
    return math.fsum(errors) / n


AGREEMENTS = {"correlation": 2, "R²": 2, "squared correlation": 3}


def varies(values: list[float]) -> float:
    """Variance over mean square."""
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values) / math.fsum(v * v for v in values)


def agreement(name: str, pairs: list[tuple[float, float]]) -> tuple[float, bool] | None:
    """Value, and whether the numbers hardly differ: such a value may be left out of a search."""
    p, m = [p for p, _ in pairs], [m for _, m in pairs]
    least = varies(m) if name == "R²" else min(varies(p), varies(m))
    if len(pairs) < 3 or least < 1e-12:
        return None
    if name == "R²":
        value = r2(predicted=p, measured=m)
    else:
        value = statistics.correlation(p, m) ** (2 if name == "squared correlation" else 1)
    return value, least < 2e-6


def agreements(
    pairs_of_tools: list[list[tuple[float, float]]], figures: list[Printed]
) -> Iterator[tuple[str, float, list[float], bool]]:
    """Rule, bits, values and whether it may be left out, where all tools have a value."""
    more = 0 if all(figure.low >= 0.5 for figure in figures) else 6
    for name, bits in AGREEMENTS.items():
        found = [agreement(name, pairs) for pairs in pairs_of_tools]
        defined = [both for both in found if both is not None]
        if len(defined) == len(found):
            unsure = any(unsure for _, unsure in defined)
            yield name, bits + more, [value for value, _ in defined], unsure


def subsets_with_bits(rows: list[Row], keys: tuple[str, ...]) -> dict[frozenset[int], float]:
    """Each distinct non-empty set of rows with the bits of its shortest description."""
    found: dict[frozenset[int], float] = {}
    choices = []
    for key in keys:
        values = sorted({row[key] for row in rows})
        own = []
        for size in range(1, len(values) + 1):
            k = min(size, len(values) - size)
            bits = 0.0 if not k else round(10 * (2 + k + math.log2(math.comb(len(values), k)))) / 10
            own += [(set(chosen), bits) for chosen in itertools.combinations(values, size)]
        choices.append(own)
    for chosen in itertools.product(*choices):
        inside = frozenset(
            i
            for i, row in enumerate(rows)
            if all(row[key] in values for key, (values, _) in zip(keys, chosen, strict=True))
        )
        total = round(sum(bits for _, bits in chosen), 1)
        if inside and total < found.get(inside, math.inf):
            found[inside] = total
    return found


def far(figures: list[Printed], values: list[float]) -> bool:
    """Whether a value is so far from its figure that its last bits do not matter."""
    for figure, value in zip(figures, values, strict=True):
        if value < figure.low - 1e-6 or value > figure.high + 1e-6:
            return True
    return False


def brute_force(
    rows: list[Row], subsets: dict[frozenset[int], float], tools: int, figures: list[Printed]
) -> tuple[Rules, Rules]:
    """Matches by set of rows: (bits, aggregation, denominator, reading), those on an edge apart.

    On which side of an edge a value falls is a matter of its last bit: such a match is allowed,
    not demanded.
    """
    certain: Rules = {}
    edge: Rules = {}
    for inside, bits in subsets.items():
        own = [[rows[i]["pairs"][t] for i in sorted(inside)] for t in range(tools)]
        errors = {name: [errors_of(name, pairs) for pairs in own] for name in DENOMINATORS}
        for aggregation, denominator in itertools.product(BITS, DENOMINATORS):
            cost = bits + BITS[aggregation] + 3 * (denominator != "measured")
            values = [
                aggregate(aggregation, denominator, pairs, of_pairs)
                for pairs, of_pairs in zip(own, errors[denominator], strict=True)
            ]
            readings = [("share", values, 0.0)]
            if not aggregation.startswith("share"):
                readings = [("error", values, 0.0), ("100 - error", [1 - v for v in values], 3.0)]
            for reading, read, more in readings:
                if far(figures, read):
                    continue
                match = (round(cost + more, 1), aggregation, denominator, reading)
                pairs = list(zip(figures, read, strict=True))
                on_edge = [min(abs(v - f.low), abs(v - f.high)) <= 1e-9 for f, v in pairs]
                if all(near or f.contains(v) for (f, v), near in zip(pairs, on_edge, strict=True)):
                    (edge if any(on_edge) else certain).setdefault(inside, []).append(match)
        for name, cost, values, unsure in agreements(own, figures):
            if far(figures, values):
                continue
            pairs = list(zip(figures, values, strict=True))
            on_edge = [min(abs(v - f.low), abs(v - f.high)) <= 1e-9 for f, v in pairs]
            if all(near or f.contains(v) for (f, v), near in zip(pairs, on_edge, strict=True)):
                side = edge if unsure or any(on_edge) else certain
                side.setdefault(inside, []).append((round(bits + cost, 1), name, "", "agreement"))
    return certain, edge


def rows_of(match: Match, rows: list[Row]) -> frozenset[int]:
    return frozenset(
        i
        for i, row in enumerate(rows)
        if all(row[key] in values for key, values in match.where.items())
    )


KEYS = ("device", "model", "mode", "vendor")
TIMES = st.floats(1.0, 50.0).map(lambda x: round(x, 2))


@st.composite
def tables(draw: st.DrawFn, tools: int) -> list[Row]:
    cells = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)),
            min_size=1,
            max_size=9,
            unique=tools > 1,
        )
    )
    return [
        {
            "device": f"d{d}",
            "model": f"m{m}",
            "mode": ("inference", "training")[o],
            "vendor": "AB"[d % 2],
            "pairs": [(draw(TIMES), draw(TIMES)) for _ in range(tools)],
        }
        for d, m, o in cells
    ]


def as_pairs(rows: list[Row], tools: int) -> Pairs:
    columns: dict[str, list[Any]] = {key: [] for key in (*KEYS, "tool", "predicted", "measured")}
    for t in range(tools):
        for row in rows:
            for key in KEYS:
                columns[key].append(row[key])
            columns["tool"].append(f"t{t}")
            columns["predicted"].append(row["pairs"][t][0])
            columns["measured"].append(row["pairs"][t][1])
    return Pairs(columns)


def no_chance(table: Table, *_: Any) -> Chance:
    """Count the subsets as `expected_matches` does, without what is expected by chance."""
    counts = _subsets_by_cost(table)
    none = np.zeros(len(counts) + max(rule.cost for rule in table.rules))
    return Chance(counts, none, none)


def check_against_brute_force(
    rows: list[Row], texts: list[str], expected: Callable[..., Chance] = no_chance
) -> None:
    tools = len(texts)
    subsets = subsets_with_bits(rows, KEYS)
    certain, edge = brute_force(rows, subsets, tools, [parse_printed(text) for text in texts])
    figures = {f"t{t}": text for t, text in enumerate(texts)}
    with mock.patch.object(module, "expected_matches", expected):
        result = search_claim(as_pairs(rows, tools), figures, top=100_000)
    found = {rows_of(match, rows): match for match in result.matches}
    assert len(found) == len(result.matches)
    assert set(certain) <= set(found) <= set(certain) | set(edge)
    assert result.searched["subsets"] == len(subsets)
    assert result.searched["complete"]
    total = result.searched["by_complexity"][-1]["found"]
    demanded, allowed = (sum(len(rules) for rules in some.values()) for some in (certain, edge))
    assert demanded <= total <= demanded + allowed
    for inside, match in found.items():
        sure, near = certain.get(inside, []), edge.get(inside, [])
        assert match.complexity >= min(bits for bits, *_ in sure + near) - 1e-9
        assert match.complexity <= min((bits for bits, *_ in sure), default=math.inf) + 1e-9
        assert (
            match.complexity,
            match.aggregation,
            match.denominator,
            match.reading,
        ) in sure + near
        assert match.n == len(inside)
        assert len(sure) <= len(match.also) + 1 <= len(sure) + len(near)
    complexities = [match.complexity for match in result.matches]
    assert complexities == sorted(complexities)


#: Each example takes 30 ms.
SOME = settings(max_examples=settings.default.max_examples * 3 // 5)
PERCENT = st.floats(0.5, 250).map(lambda x: f"{x:.0f}%")


@given(rows=tables(tools=1), text=PERCENT)
@SOME
def test_one_tool(rows: list[Row], text: str) -> None:
    check_against_brute_force(rows, [text], expected_matches)


@given(rows=tables(tools=1), text=st.sampled_from(["<30%", "≥20%", "30–60%", "0.5", "98.1%", "0%"]))
@SOME
def test_bounds_and_ranges(rows: list[Row], text: str) -> None:
    check_against_brute_force(rows, [text])


@given(rows=tables(tools=1), text=st.floats(0.01, 1).map(lambda x: f"{x:.1f}"))
@SOME
def test_agreement(rows: list[Row], text: str) -> None:
    check_against_brute_force(rows, [text])


@given(rows=tables(tools=2), texts=st.tuples(PERCENT, st.sampled_from(["<60%", "20–90%"])))
@SOME
def test_two_tools_must_agree_on_subset_and_rule(rows: list[Row], texts: tuple[str, str]) -> None:
    check_against_brute_force(rows, list(texts))
