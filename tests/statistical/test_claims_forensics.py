"""No honest table is called impossible, whatever its law; altered cells are found.

Feasibility is also compared with a linear program over the ordered errors, which nobody here wrote.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from errcomp.claims.forensics import forensics
from errcomp.claims.forensics.reading import tables_of
from errcomp.claims.forensics.rules import conflicts

Rng = np.random.Generator
LAWS = {
    "normal": lambda rng, n: rng.normal(0.02, 0.1, n),
    "heavy tails": lambda rng, n: 0.05 * rng.standard_t(1.5, n),
    "mixture": lambda rng, n: np.where(
        rng.random(n) < 0.8, rng.normal(0, 0.02, n), rng.normal(0.3, 0.2, n)
    ),
    "ties and zeros": lambda rng, n: np.round(rng.normal(0, 0.1, n), 2),
    "one-sided": lambda rng, n: rng.exponential(0.1, n) - 0.01,
    "equal": lambda rng, n: np.full(n, rng.normal(0, 0.1)),
}
QUANTILES = ("linear", "inverted_cdf", "weibull", "hazen", "median_unbiased", "nearest")
SIZES = (1, 2, 3, 5, 8, 12, 20, 45, 146, 500)


def printed(rng: Rng, errors: Any, decimals: int) -> dict[str, list[Any]]:
    """Print some figures of errors as papers do: rounded, with any definition of a quantile."""
    a, n = np.abs(errors), len(errors)
    limit, level = rng.choice([5, 10, 20, 50]), rng.choice([10, 25, 75, 90, 95, 99])
    figures = {
        "mean": a.mean(),
        "median": np.median(a),
        "max": a.max(),
        "min": a.min(),
        "bias": errors.mean(),
        "rms": math.sqrt((a**2).mean()),
        f"share within {limit}%": (a <= limit / 100).mean(),
        f"p{level}": np.quantile(a, level / 100, method=str(rng.choice(QUANTILES))),
        "sd": (errors if rng.random() < 0.5 else a).std(ddof=int(n > 1 and rng.random() < 0.5)),
    }
    if (a > 0).all():
        figures["geomean"] = math.exp(np.log(a).mean())
    kept = [name for name in figures if rng.random() < 0.6] or ["mean"]
    values = [f"{100 * figures[name]:.{decimals}f}%" for name in kept]
    return {"quantity": kept, "value": values, "n": [n] * len(kept)}


def draw(rng: Rng, law: str) -> Any:
    return np.maximum(LAWS[law](rng, int(rng.choice(SIZES))), -1.0)


@pytest.mark.parametrize("law", LAWS)
def test_honest_figures_are_possible(law: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(150):
        table = printed(rng, draw(rng, law), int(rng.integers(0, 3)))
        assert {row.verdict for row in forensics(table).rows} == {"possible"}, table


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_no_honest_table_of_many_is_impossible(law: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(15_000):
        table = printed(rng, draw(rng, law), int(rng.integers(0, 3)))
        assert {row.verdict for row in forensics(table).rows} == {"possible"}, table


@pytest.mark.parametrize("law", LAWS)
def test_honest_figures_are_possible_where_n_is_not_stated(law: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        errors = draw(rng, law)
        table = printed(rng, errors, int(rng.integers(0, 3)))
        for row in forensics({**table, "n": [""] * len(table["n"])}).rows:
            assert row.verdict != "impossible", table
            if row.verdict == "possible only if":
                assert int(row.condition.rpartition(" ")[2]) <= len(errors), table


@pytest.mark.parametrize("law", LAWS)
def test_honest_parts_and_their_whole_are_possible(law: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        parts = [draw(rng, law) for _ in range(rng.integers(2, 5))]
        rows = []
        for name, errors in (("all", np.concatenate(parts)), *zip("ABCD", parts, strict=False)):
            a = np.abs(errors)
            figures = {"mean": a.mean(), "max": a.max(), "median": np.median(a),
                       "bias": errors.mean(), "within 10%": (a <= 0.1).mean()}  # fmt: skip
            rows += [(name, k, f"{100 * v:.1f}%", len(a)) for k, v in figures.items()]
        columns = zip(*rows, strict=True)
        table = dict(zip(("part", "quantity", "value", "n"), columns, strict=True))
        assert {row.verdict for row in forensics(table).rows} == {"possible"}, table


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_honest_times_errors_and_means_are_possible(decimals: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        measured = np.exp(rng.normal(2, 1, rng.integers(2, 12)))
        predicted = measured * np.exp(rng.normal(0, 0.2, len(measured)))
        errors = np.abs(predicted / measured - 1)
        rows = [("mean", f"{100 * errors.mean():.{decimals}f}%", "all")]
        for i, times in enumerate(zip(predicted, measured, errors, strict=True)):
            p, m, error = times
            rows += [
                ("predicted", f"{p:.2f}", f"case {i}"),
                ("measured", f"{m:.2f}", f"case {i}"),
                ("error", f"{100 * error:.{decimals}f}%", f"case {i}"),
            ]
        columns = dict(zip(("quantity", "value", "part"), zip(*rows, strict=True), strict=True))
        assert {row.verdict for row in forensics(columns).rows} == {"possible"}, columns


#: Kinds of altered cell and the least share found, for a table with most other figures beside it.
POWER = {"mean": 0.7, "share": 0.7, "rms": 0.7, "sd": 0.4, "max": 0.6, "p": 0.4, "median": 0.35}


@pytest.mark.slow
def test_altered_cells_are_found() -> None:
    """One cell of a table with about six figures is multiplied; a share is moved by some points."""
    rng = np.random.default_rng(6)
    found: dict[str, list[bool]] = {kind: [] for kind in POWER}
    while min(map(len, found.values())) < 300:
        law = str(rng.choice([name for name in LAWS if name != "equal"]))
        table = printed(rng, draw(rng, law), 1)
        at = int(rng.integers(len(table["value"])))
        kind = next((k for k in POWER if table["quantity"][at].startswith(k)), "")
        value = float(table["value"][at].rstrip("%"))
        if not kind or len(found[kind]) >= 300:
            continue
        if kind == "share":
            value = min(max(value + float(rng.choice([-20, -7, 7, 20])), 0), 100)
        else:
            value *= float(rng.choice([0.3, 0.5, 2, 3]))
        values = list(table["value"])
        values[at] = f"{value:.1f}%"
        if values != table["value"]:
            rows = forensics({**table, "value": values}).rows
            found[kind].append(any(row.verdict != "possible" for row in rows))
    shares = {kind: np.mean(hits) for kind, hits in found.items()}
    assert all(shares[kind] >= least for kind, least in POWER.items()), shares


def feasible(table: dict[str, list[Any]]) -> bool:
    """Say whether ordered errors exist: a linear program for each count of the shares."""
    figures, n = tables_of(table)[0].whole.figures, int(table["n"][0])
    shares = [f for f in figures if f.quantity == "share"]
    counts = [[k for k in range(n + 1) if f.low - 1e-12 <= k / n <= f.high + 1e-12] for f in shares]
    for chosen in itertools.product(*counts):
        rows, limits = [], []

        def most(weights: Any, limit: float, rows: list[Any] = rows,
                 limits: list[float] = limits) -> None:  # fmt: skip
            rows.append(weights)
            limits.append(limit)

        unit = np.eye(n)
        for i in range(n - 1):
            most(unit[i] - unit[i + 1], 0.0)
        for figure in figures:
            weights = {
                "mean": np.full(n, 1 / n),
                "max": unit[n - 1],
                "min": unit[0],
                "median": (unit[(n - 1) // 2] + unit[n // 2]) / 2,
            }.get(figure.quantity)
            if weights is not None:
                most(weights, figure.high)
                most(-weights, -figure.low)
        for figure, k in zip(shares, chosen, strict=True):
            if k:
                most(unit[k - 1], figure.at)
            if k < n:
                most(-unit[k], -figure.at)
        if linprog(np.zeros(n), np.array(rows), limits, bounds=(0, None)).status == 0:
            return True
    return False


@pytest.mark.parametrize("tables", [220, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_linear_program_finds_the_same_tables_possible(tables: int) -> None:
    rng = np.random.default_rng(7)
    agreed = {True: 0, False: 0}
    for _ in range(tables):
        n = int(rng.choice([1, 3, 5, 7, 9]))  # of an even number, the median is two errors
        names = ["mean", "median", "max", "min", "share within 10%", "share within 20%"]
        kept = [name for name in names if rng.random() < 0.6] or names[:2]
        values = [
            f"{100 * rng.integers(0, n + 1) / n:.0f}%" if "share" in name
            else f"{rng.exponential(12) * (2.5 if name == 'max' else 1):.0f}%"
            for name in kept
        ]  # fmt: skip
        table = {"quantity": kept, "value": values, "n": [n] * len(kept)}
        possible = not conflicts(tables_of(table)[0].whole.figures, n)
        assert possible == feasible(table), table
        agreed[possible] += 1
    assert min(agreed.values()) > 40, agreed
