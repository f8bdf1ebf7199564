"""What checks of measurements find, and what they invent. Makes the tables of docs/measurements.md.

Rows are planted into tables whose noise is known, and into the built-in ones. Stored in
docs/results/measurements.json; `python docs/sources.py` puts the tables into the page.

    python benchmarks/measurements_table.py --jobs 2
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import stored

from errcomp import datasets
from errcomp.measurements import budget, check
from errcomp.measurements.floor import floor_of_repeats, law_of_noise
from errcomp.measurements.noise import repeats_of
from errcomp.measurements.without_noise import remaining

# The laws are those of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.measurements.laws import (
    ERRORS,
    LAWS,
    clean,
    errors,
    hidden,
    planted,
    repeats,
    single_cause,
)

TABLES, CLEAN, HIDDEN, REMAINING, SINGLE = 240, 30, 12, 100, 60
CAUSES = ("noise", "hidden", "load", "kernels", "composition", "factor", "rest")
SIZES = {"2": (2,), "2 to 5": (2, 3, 4, 5)}


def floor_row(law: str, sizes: str) -> list[str]:
    """Coverage and width of the interval of the floor, for 20, 60 and 200 configurations."""
    rng = np.random.default_rng(1)
    cells = []
    for groups in (20, 60, 200):
        inside, widths = [], []
        for i in range(TABLES):
            sd, spread = (0.005, 0.03, 0.1, 0.2)[i % 4], i // 4 % 2 / 2
            group, x, true = repeats(law, SIZES[sizes], groups, sd, spread, rng)
            found = floor_of_repeats(repeats_of(group, x, group >= 0))
            inside.append(found.low <= true <= found.high)
            widths.append(found.high / found.low)
        cells += [f"{100 * np.mean(inside):.0f} %", f"{np.median(widths):.2f}"]
    return [f"{law}, {sizes}", *cells]


def clean_row(law: str, digits: int | None) -> list[str]:
    """Share of the rows of clean tables that are flagged."""
    rng = np.random.default_rng(2)
    copies, differ, others = [], [], 0
    for i in range(CLEAN):
        found = check(clean(law, (0.005, 0.05, 0.2)[i % 3], rng, digits), measured="ms")
        copies.append(found.copies.n / found.n)
        differ.append(sum(row.n for row in found.hidden_keys) / found.n)
        others += bool(found.drift or found.explained)
    shown = "all" if digits is None else str(digits)
    shares = [f"{100 * np.mean(share):.1f} %" for share in (copies, differ)]
    return [f"{law}, {shown}", *shares, f"{others} of {CLEAN}"]


def hidden_row(law: str, size: int, effect: float) -> list[str]:
    """Share of the configurations with two settings that are found, named in a text or not."""
    cells = []
    for named in (True, False):
        rng = np.random.default_rng(3)
        right = of = wrong = rows = 0
        for _ in range(HIDDEN):
            data, affected = hidden(law, size, effect, rng, named=named)
            found = check(data, measured="ms")
            right += len({row.of["batch"] for row in found.hidden_keys} & affected)
            wrong += sum(row.n for row in found.hidden_keys if row.of["batch"] not in affected)
            of, rows = of + len(affected), rows + found.n
        cells += [f"{100 * right / of:.0f} %", f"{100 * wrong / rows:.1f} %"]
    return [f"{law}, {size}, {effect:g}", *cells]


def remaining_row(law: str, error: str) -> list[str]:
    """MAPE of a tool with and without noise: truth, estimate, coverage and width."""
    cells = []
    for groups in (30, 150):
        inside, widths, shown, estimates, truths = [], [], [], [], []
        for i in range(REMAINING):
            rng = np.random.default_rng([i, groups])
            group, x, _ = repeats(law, (2, 3), groups, (0.02, 0.08)[i % 2], 0.0, rng)
            own = errors(error, groups, rng)[group]
            known = repeats_of(group, x, group >= 0)
            found = remaining(own - x, floor_of_repeats(known), law_of_noise(known))
            true = float(np.abs(np.expm1(own)).mean())
            inside.append(found.low <= true <= found.high)
            widths.append(found.high - found.low)
            shown.append(np.abs(np.expm1(own - x)).mean())
            estimates.append(found.mape)
            truths.append(true)
        means = [f"{100 * np.mean(one):.1f} %" for one in (truths, shown, estimates)]
        points = f"{100 * np.median(widths):.1f} points"
        cells += [*means, f"{100 * np.mean(inside):.0f} %", points]
    return [f"{law}, {error}", *cells[:3], *cells[3:5], *cells[8:]]


def cause_row(cause: str, law: str) -> list[str]:
    """How often a single cause is named, and how often its interval holds its share."""
    right, unclear, inside, widths, shares = [], [], [], [], []
    for i in range(SINGLE):
        data, share = single_cause(cause, law, np.random.default_rng([i, 7]))
        found = budget(data)
        part = next((one for one in found.parts if one.cause == cause), None)
        right.append(found.largest == cause)
        unclear.append(found.largest is None)
        inside.append(part is not None and part.low <= share <= part.high)
        widths.append(np.nan if part is None else part.high - part.low)
        shares.append(share)
    points = [f"{100 * value:.1f} points" for value in (np.mean(shares), np.nanmedian(widths))]
    shown = [f"{100 * np.mean(one):.0f} %" for one in (right, unclear, inside)]
    return [f"{cause}, {law}", *shown, *points]


def planted_row(name: str) -> list[str]:
    """Share of planted copies that are found in a built-in table."""
    table = datasets.tables(name)[name]
    cells = []
    for near in (0.0, 1e-3):
        with_copies, rows = planted(table, "measured", near, np.random.default_rng(4))
        found = set(check(with_copies, measured="measured").copies.rows)
        cells.append(f"{100 * len(found & rows) / len(rows):.0f} %")
    before = check(table, measured="measured")
    return [name, f"{len(table):,}", *cells, f"{100 * before.copies.n / before.n:.1f} %"]


def job(task: tuple[str, tuple[object, ...]]) -> list[str]:
    kind, arguments = task
    rows = {
        "floor": floor_row,
        "clean": clean_row,
        "hidden": hidden_row,
        "remaining": remaining_row,
        "cause": cause_row,
        "planted": planted_row,
    }
    return rows[kind](*arguments)  # type: ignore[operator]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    tasks: dict[str, list[tuple[object, ...]]] = {
        "floor": [(law, sizes) for sizes in SIZES for law in LAWS],
        "clean": [(law, digits) for law in LAWS for digits in (None, 4)],
        "hidden": [(law, n, sd) for law in ("normal", "t3") for n in (4, 8) for sd in (3.0, 6.0)],
        "remaining": [(law, error) for law in ("normal", "t3", "gamma") for error in ERRORS],
        "cause": [(cause, law) for cause in CAUSES for law in ("normal", "t3", "mixture")],
        "planted": [(name,) for name in ("ort-cpu", "torch-cpu", "torch-cuda", "ort-releases")],
    }
    heads = {
        "floor": ["noise, repeats", "20", "width", "60", "width", "200", "width"],
        "clean": ["noise, digits", "copies", "differ", "column or drift"],
        "hidden": [
            "noise, rows, effect",
            "named in a text",
            "false rows",
            "not named",
            "false rows",
        ],
        "remaining": [
            "noise, errors",
            "true",
            "with noise",
            "estimate",
            "covers, 30",
            "width",
            "covers, 150",
            "width",
        ],
        "cause": ["cause, law", "named", "undecided", "covers", "share", "width"],
        "planted": ["table", "rows", "exact", "near (1e-3)", "copies before"],
    }
    with stored.printed("measurements"), Pool(args.jobs) as pool:
        every = [(kind, task) for kind, some in tasks.items() for task in some]
        rows = iter(pool.map(job, every, chunksize=1))
        for kind, some in tasks.items():
            print(table(heads[kind], [next(rows) for _ in some]))


if __name__ == "__main__":
    main()
