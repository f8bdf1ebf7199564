"""How often does the forensics of printed figures err, and how often does it find an altered one?

Prints figures of simulated sets of errors as papers round them. Honest tables must never be called
impossible; then one cell of each table is altered. Stored in docs/results/forensics.json;
`python docs/sources.py` puts the tables into docs/forensics.md.

    python benchmarks/forensics_table.py --honest 1000000 --altered 1000 --jobs 2
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from multiprocessing import Pool
from typing import Any

import numpy as np
import stored

from errcomp.claims.forensics import forensics

Rng = np.random.Generator
LAWS: dict[str, Callable[[Rng, int], Any]] = {
    "normal": lambda rng, n: rng.normal(0.02, 0.1, n),
    "Student t, 1.5 degrees of freedom": lambda rng, n: 0.05 * rng.standard_t(1.5, n),
    "log-normal": lambda rng, n: np.expm1(rng.normal(0, 0.3, n)),
    "mixture": lambda rng, n: np.where(
        rng.random(n) < 0.8, rng.normal(0, 0.02, n), rng.normal(0.3, 0.2, n)
    ),
    "ties and zeros": lambda rng, n: np.round(rng.normal(0, 0.1, n), 2),
    "one-sided": lambda rng, n: rng.exponential(0.1, n) - 0.01,
    "equal": lambda rng, n: np.full(n, rng.normal(0, 0.1)),
}
QUANTILES = ("linear", "inverted_cdf", "weibull", "hazen", "median_unbiased", "nearest")
SIZES = (1, 2, 3, 5, 8, 12, 20, 45, 146, 500)
#: Kinds of figures, each with the kinds that are printed beside it in a short table.
KINDS = ("mean", "median", "max", "min", "share", "quantile", "bias", "rms", "sd", "geomean")
SHORT = ("mean", "median", "max", "share")
FACTORS, POINTS = (0.3, 0.5, 2.0, 3.0), (-20.0, -7.0, 7.0, 20.0)


def figures_of(rng: Rng, errors: Any) -> dict[str, tuple[str, float]]:
    """Return the name and the value of each kind of figure of these errors."""
    a, n = np.abs(errors), len(errors)
    limit, level = rng.choice([5, 10, 20, 50]), rng.choice([10, 25, 75, 90, 95, 99])
    ddof = int(n > 1 and rng.random() < 0.5)
    found = {
        "mean": ("mean", a.mean()),
        "median": ("median", np.median(a)),
        "max": ("max", a.max()),
        "min": ("min", a.min()),
        "share": (f"share within {limit}%", (a <= limit / 100).mean()),
        "quantile": (
            f"p{level}",
            np.quantile(a, level / 100, method=str(rng.choice(QUANTILES))),
        ),
        "bias": ("bias", errors.mean()),
        "rms": ("rms", math.sqrt((a**2).mean())),
        "sd": ("sd", (errors if rng.random() < 0.5 else a).std(ddof=ddof)),
    }
    if (a > 0).all():
        found["geomean"] = ("geomean", math.exp(np.log(a).mean()))
    return found


def table_of(cells: dict[str, tuple[str, float]], n: int, decimals: int) -> dict[str, list[Any]]:
    """Print figures as a table."""
    return {
        "quantity": [name for name, _ in cells.values()],
        "value": [f"{100 * value:.{decimals}f}%" for _, value in cells.values()],
        "n": [n] * len(cells),
    }


def draw(rng: Rng, law: str, sizes: tuple[int, ...] = SIZES) -> Any:
    """Return errors; none is below -100 %."""
    return np.maximum(LAWS[law](rng, int(rng.choice(sizes))), -1.0)


def honest(job: tuple[str, int, int]) -> tuple[int, int]:
    """Return how many honest tables were made, and how many were not called possible."""
    law, many, seed = job
    rng = np.random.default_rng([seed, [*LAWS].index(law)])
    wrong = 0
    for _ in range(many):
        errors = draw(rng, law)
        cells = figures_of(rng, errors)
        kept = {name: cell for name, cell in cells.items() if rng.random() < 0.6}
        table = table_of(kept or {"mean": cells["mean"]}, len(errors), int(rng.integers(0, 3)))
        wrong += any(row.verdict != "possible" for row in forensics(table).rows)
    return many, wrong


def altered(job: tuple[str, bool, int, int]) -> tuple[tuple[str, bool], float]:
    """Return how often an altered figure of a kind is found, in a full or a short table."""
    kind, full, many, seed = job
    rng = np.random.default_rng([seed, KINDS.index(kind), int(full)])
    laws = [law for law in LAWS if law != "equal"]
    hits: list[bool] = []
    while len(hits) < many:
        errors = draw(rng, str(rng.choice(laws)), SIZES[2:])
        cells = figures_of(rng, errors)
        if kind not in cells:
            continue
        if not full:
            cells = {name: cell for name, cell in cells.items() if name in {*SHORT, kind}}
        name, value = cells[kind]
        if kind == "share":
            changed = min(max(value + float(rng.choice(POINTS)) / 100, 0.0), 1.0)
        else:
            changed = value * float(rng.choice(FACTORS))
        before, after = (
            table_of({**cells, kind: (name, one)}, len(errors), 1) for one in (value, changed)
        )
        if before != after:
            hits.append(any(row.verdict != "possible" for row in forensics(after).rows))
    return (kind, full), float(np.mean(hits))


def _parts(rng: Rng) -> list[tuple[str, str, float, int]]:
    """Print the mean of three parts and of the whole: part, quantity, value, n."""
    parts = [np.abs(draw(rng, "mixture", SIZES[2:])) for _ in range(3)]
    rows = [(name, "mean", part.mean(), len(part)) for name, part in zip("ABC", parts, strict=True)]
    whole = np.concatenate(parts)
    return [("all", "mean", whole.mean(), len(whole)), *rows]


def _cases(rng: Rng) -> list[tuple[str, str, float, str]]:
    """Print times and errors of five cases, and the mean error: part, quantity, value, no n."""
    measured = np.exp(rng.normal(3, 1, 5))
    predicted = measured * np.exp(rng.normal(0, 0.2, 5))
    errors = np.abs(predicted / measured - 1)
    rows = [("all", "mean", float(errors.mean()), "")]
    for i in range(5):
        rows += [
            (f"case {i}", "error", float(errors[i]), ""),
            (f"case {i}", "predicted", float(predicted[i]) / 100, ""),
            (f"case {i}", "measured", float(measured[i]) / 100, ""),
        ]
    return rows


#: Kinds of tables with parts or cases, and the row that is altered.
BESIDE: dict[str, tuple[Callable[[Rng], list[Any]], int]] = {
    "mean of all, beside three parts": (_parts, 0),
    "mean of a part, beside the others and all": (_parts, 1),
    "mean of five cases, beside their errors and times": (_cases, 0),
    "error of a case, beside its times and the mean": (_cases, 1),
    "time of a case, beside its error and the mean": (_cases, 2),
}


def beside(job: tuple[str, int, int]) -> tuple[str, float]:
    """Return how often an altered figure of a table with parts or cases is found."""
    kind, many, seed = job
    make, at = BESIDE[kind]
    rng = np.random.default_rng([seed, 100, [*BESIDE].index(kind)])
    hits = []
    while len(hits) < many:
        part, quantity, value, n = zip(*make(rng), strict=True)
        changed = [*value]
        changed[at] *= float(rng.choice(FACTORS))
        texts = [
            [f"{100 * one:.1f}" + ("%" if name in ("mean", "error") else "")
             for one, name in zip(values, quantity, strict=True)]
            for values in (value, changed)
        ]  # fmt: skip
        if texts[0] == texts[1]:
            continue
        table = {"part": part, "quantity": quantity, "value": texts[1], "n": n}
        hits.append(any(row.verdict != "possible" for row in forensics(table).rows))
    return kind, float(np.mean(hits))


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--honest", type=int, default=1_000_000, help="honest tables, of all laws")
    parser.add_argument("--altered", type=int, default=1_000, help="altered tables of each kind")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    share = -(-args.honest // len(LAWS))
    with stored.printed("forensics", seed=args.seed, samples=args.altered) as facts:
        with Pool(args.jobs) as pool:
            made = pool.map(honest, [(law, share, args.seed) for law in LAWS], chunksize=1)
            jobs = [(kind, full, args.altered, args.seed) for kind in KINDS for full in (1, 0)]
            found = dict(pool.map(altered, jobs, chunksize=1))
            others = dict(pool.map(beside, [(k, args.altered, args.seed) for k in BESIDE]))
        facts["honest"] = sum(many for many, _ in made)
        facts["called_wrong"] = sum(wrong for _, wrong in made)
        print("| altered figure | among 9 others | among mean, median, max and share |")
        print("|---|---:|---:|")
        for kind in KINDS:
            cells = [f"{100 * found[kind, full]:.0f}" for full in (True, False)]
            print(f"| {kind} | {' | '.join(cells)} |")
        print("\n| altered figure of a table with parts or cases | found |\n|---|---:|")
        for kind, rate in others.items():
            print(f"| {kind} | {100 * rate:.0f} |")


if __name__ == "__main__":
    main()
