"""Write docs/benchmarks.md from the results; the page must not be edited by hand.

Run: python benchmarks/page.py
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.md"
FIGURES = PAGE.parent / "benchmarks"

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
    "readers": "bench_readers",
    "engines": "bench_engines",
    "search": "bench_search",
    "hierarchical": "bench_hierarchical",
    "history": "bench_history",
}

_HEAD = """# Benchmarks

How long errcomp takes, compared with another tool (the *peer*) for the same task. Each question has
a script in `benchmarks/`. `benchmarks/page.py` makes this page from the stored results,
`benchmarks/results/*.json`.
To repeat the benchmarks:

    make benchmarks                              # all, except on files larger than memory
    make benchmarks-disk                         # only on files larger than memory
    python benchmarks/bench_grouped.py --quick   # one question, on smaller cases

* Runs are interleaved (ours, peer, ours, peer, …), at least five of each, so that background load
  affects both sides equally. For each run of errcomp and the run of the peer next to it, errcomp's
  time is divided by the peer's; **Ratio** is the median of these quotients. Below 1, errcomp is
  faster. The brackets are a 95 % interval of that median, or, with fewer than six runs, the
  smallest and the largest ratio. **Slowest** is the slowest run of errcomp, **Worst** the largest
  ratio: targets apply to these two. Where no tool does the same work, there is no peer.
* A peer that needs another environment (`benchmarks/peers/`) runs in a process that is started
  before the timing. Imports and the preparation of data are not timed. Numerics use one thread
  on both sides. Polars, pandas and DuckDB choose their own number of threads.
* **Difference** is the largest relative difference between the results of both sides; – means that
  the results were not compared. Results of simulation and resampling differ by random noise.
* **Growth** shows the time at increasing sizes. A slope of 1 is linear growth, 0 is a constant
  time. The slope is that of the logarithm of the time against the logarithm of the size, over all
  sizes. A fixed cost per call makes the slope smaller. Dotted lines show linear growth up to the
  largest size.

`make watch` checks whether a change made errcomp slower. It runs small cases in turn
with today's code and with the code of a reference commit, and divides their CPU times.
`errcomp halflife check` compares these ratios with earlier ratios of the reference code to itself
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
    """Return the table of all cases, and why both sides do the same work."""
    head = ["What", "Peer", "n", "errcomp", "Slowest", "Peer takes", "Ratio", "Worst", "Difference"]
    rows = []
    for case in cases:
        ours = [seconds(case["ours_seconds"]), seconds(case["ours_slowest"])]
        beside = ["–"] * 4
        if case["peer"] is not None:
            span = f"[{number(case['ratio_low'])}, {number(case['ratio_high'])}]"
            beside = [
                seconds(case["peer_seconds"]),
                f"{number(case['ratio'])} {span}",
                number(case["ratio_worst"]),
                "–" if case["difference"] is None else f"{case['difference']:.1g}",
            ]
        n = f"{case['n']:,} {case['unit']}"
        rows.append([case["case"], case["peer"] or "–", n, *ours, *beside])
    reasons: dict[str, list[str]] = {}
    for case in cases:
        if case.get("why"):
            named = reasons.setdefault(case["why"], [])
            if case["case"] not in named:
                named.append(case["case"])
    said = [f"* {'; '.join(named)}: {why}" for why, named in reasons.items()]
    listed = "\n".join(["Why it is the same work:", "", *said]) if said else ""
    return "\n\n".join(filter(None, [table(head, rows), listed]))


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
        name = found["question"]
        parts.append(f"![{found['title']}: seconds by size]({FIGURES.name}/{name}.svg)")
    if found["targets"]:
        parts.append(held(found["targets"]))
    if found["notes"]:
        notes = [f"* {one['what']}: {number(one['found'])} {one['unit']}" for one in found["notes"]]
        parts.append("\n".join(["Also measured:", "", *notes]))
    if found["missing"]:
        said = [f"* {one['case']}: {one['peer']}: {one['reason']}" for one in found["missing"]]
        parts.append("\n".join(["Not compared:", "", *said]))
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    small = " Small cases (`--quick`)." if found["quick"] else ""
    parts.append(
        f"`benchmarks/{script}.py`, {found['date']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['system']}, "
        f"other processes used {machine['others_before']} cores before the run; {versions}.{small}"
    )
    return "\n\n".join(parts)


def text(folder: Path = RESULTS) -> str:
    """Return the page."""
    paths = [folder / f"{name}.json" for name in QUESTIONS]
    found = [json.loads(p.read_text(encoding="utf-8")) for p in paths if p.exists()]
    return "\n\n".join([_HEAD.rstrip(), *map(section, found)]) + "\n"


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw the times of a question at increasing sizes, one panel for each case."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    growth = found["growth"]
    with mpl.rc_context({"svg.hashsalt": "errcomp", "font.size": 9}):
        columns = min(3, len(growth))
        rows = -(-len(growth) // columns)
        figure = plt.figure(figsize=(3.6 * columns, 2.9 * rows), layout="constrained")
        for place, one in enumerate(growth, start=1):
            ax = figure.add_subplot(rows, columns, place)
            ax.loglog(one["sizes"], one["seconds"], "o-", color="#1f5fa8", markersize=4)
            # From the largest size back: what linear growth would have taken.
            end, last = one["sizes"][-1], one["seconds"][-1]
            line = [last * size / end for size in one["sizes"]]
            ax.loglog(one["sizes"], line, ":", color="#888888", label="linear")
            ax.set_ylim(bottom=min(one["seconds"]) / 3)
            ax.set_title(textwrap.fill(one["case"], 34), fontsize=9)
            ax.set_xlabel(one["unit"])
            ax.set_ylabel("seconds")
            ax.legend(frameon=False, loc="upper left")
            ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    for name in QUESTIONS:
        if (path := RESULTS / f"{name}.json").exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["growth"]:
                draw(found, FIGURES / f"{name}.svg")


if __name__ == "__main__":
    write()
