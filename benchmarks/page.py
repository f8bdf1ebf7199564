"""Write docs/benchmarks.md from the results; the page must not be edited by hand.

Run: python benchmarks/page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.md"

#: Questions in the order of the page, and the script that answers each.
QUESTIONS = {
    "grouped": "bench_grouped",
    "grouped_disk": "bench_grouped_disk",
    "bootstrap": "bench_intervals",
    "clusters": "bench_clusters",
    "sums": "bench_propagation_sum",
    "dag": "bench_propagation_dag",
    "conformal": "bench_conformal",
    "traces": "bench_kineto",
    "startup": "bench_startup",
    "commands": "bench_commands",
    "search": "bench_search",
    "hierarchical": "bench_hierarchical",
    "history": "bench_history",
}

_HEAD = """# Benchmarks

How long errcomp takes, compared with another tool (the *peer*) for the same task. Each question has
a script in `benchmarks/`. `benchmarks/page.py` makes this page from the stored results,
`benchmarks/results/*.json`.
To repeat the benchmarks:

    make benchmarks                              # all but the files larger than memory
    make benchmarks-disk                         # only these files
    python benchmarks/bench_grouped.py --quick   # one question, on smaller cases

* Runs are interleaved (ours, peer, ours, peer, …), so that background load affects both sides
  equally. **Ratio** is errcomp's time divided by the peer's, the median over neighbouring runs.
  Below 1, errcomp is faster. The brackets are a 95 % interval of that median, or, with fewer than
  six runs, the smallest and the largest ratio.
* A peer that needs another environment (`benchmarks/peers/`) runs in a process that is started
  before the timing. Imports and the preparation of data are not timed. The numerics use one thread
  on both sides. Polars, pandas and DuckDB choose their own number of threads.
* **Difference** is the largest relative difference between the results of both sides, where they
  should agree. Results of simulation and resampling differ by random noise.
* **Growth** shows the time at increasing sizes. A slope of 1 is linear growth, 0 is a constant
  time. The slope is fitted to the logarithms of all sizes. A fixed cost per call makes the slope
  smaller.

`make watch` checks whether a change made errcomp slower. It times small cases, each beside
hand-written code for the same work. It uses ratios of CPU times, so that results of different
machines are comparable. `errcomp halflife check` compares the ratios with errcomp's own history
(`benchmarks/history.csv`).
"""


def seconds(value: float) -> str:
    """Write a time with three digits.

    >>> seconds(0.01234), seconds(2.0), seconds(3.4e-05)
    ('12.3 ms', '2 s', '34 µs')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def number(value: float) -> str:
    """Write a number with three digits, without a power of ten.

    >>> number(123456.0), number(0.00012), number(1.666)
    ('123,456', '0.00012', '1.67')
    """
    if value >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.10f}".rstrip("0") if "e" in text else text


def table(head: list[str], rows: list[list[str]], left: int = 2) -> str:
    """Return a table; the first columns are left-aligned."""
    marks = ["---" if i < left else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, marks, *rows))


def compared(cases: list[dict[str, Any]]) -> str:
    head = ["What", "Peer", "n", "errcomp", "Peer takes", "Ratio", "Difference"]
    rows = [
        [
            case["case"],
            case["peer"],
            f"{case['n']:,} {case['unit']}",
            seconds(case["ours_seconds"]),
            seconds(case["peer_seconds"]),
            f"{number(case['ratio'])} [{number(case['ratio_low'])}, {number(case['ratio_high'])}]",
            "–" if case["difference"] is None else f"{case['difference']:.1g}",
        ]
        for case in cases
    ]
    return table(head, rows)


def grown(one: dict[str, Any]) -> str:
    """Return a line with the times of a case at increasing sizes."""
    sizes = zip(one["sizes"], one["seconds"], strict=True)
    text = "; ".join(f"{seconds(s)} for {n:,}" for n, s in sizes)
    fit = one["fit"]
    end = ""
    if fit is not None:
        end = f". Slope {fit['slope']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}]"
    return f"* {one['case']}, by number of {one['unit']}: {text}{end}."


def held(targets: list[dict[str, Any]]) -> str:
    rows = [
        [
            one["what"],
            f"{number(one['found'])} {one['unit']}",
            f"{number(one['limit'])} {one['unit']}",
            "yes" if one["met"] else "**no**",
        ]
        for one in targets
    ]
    return table(["Target", "Measured", "At most", "Met"], rows, left=1)


def section(found: dict[str, Any]) -> str:
    """Return the section for one question."""
    machine, script = found["machine"], QUESTIONS[found["question"]]
    parts = [f"## {found['title']}", found["asked"], compared(found["cases"])]
    if found["growth"]:
        parts.append("\n".join(["Growth:", "", *map(grown, found["growth"])]))
    if found["targets"]:
        parts.append(held(found["targets"]))
    if found["notes"]:
        notes = [f"{one['what']}: {number(one['found'])} {one['unit']}" for one in found["notes"]]
        parts.append("Also measured: " + "; ".join(notes) + ".")
    if found["missing"]:
        said = [f"* {one['case']}: {one['peer']}: {one['reason']}" for one in found["missing"]]
        parts.append("\n".join(["Not compared:", "", *said]))
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    small = " Small cases (`--quick`)." if found["quick"] else ""
    parts.append(
        f"`benchmarks/{script}.py`, {found['date']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['system']}, "
        f"system load {machine['load_before']} before the run; {versions}.{small}"
    )
    return "\n\n".join(parts)


def text(folder: Path = RESULTS) -> str:
    """Return the page."""
    paths = [folder / f"{name}.json" for name in QUESTIONS]
    found = [json.loads(p.read_text(encoding="utf-8")) for p in paths if p.exists()]
    return "\n\n".join([_HEAD.rstrip(), *map(section, found)]) + "\n"


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
