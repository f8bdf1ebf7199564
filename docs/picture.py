"""Draw the picture of the README: claimed accuracy against recomputed, from the embedded table.

Run: python docs/picture.py            writes docs/audit.svg
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

import errcomp as ec
from errcomp.claims.printed import parse_printed

# Okabe and Ito (2008): distinguishable with any colour vision, and by lightness in print.
INTERVAL, CLAIM = "#0072B2", "#D55E00"


def main(target: Path) -> None:
    """Draw one line per device and mode, the largest error at the top."""
    result = ec.audit(ec.datasets.load("neusight"), by=["device", "mode"])
    rows = sorted(result.rows, key=lambda row: row.figures["mape"].value)
    mpl.rcParams.update({"svg.hashsalt": "errcomp", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(8, 5.4), layout="constrained")
    for y, row in enumerate(rows):
        mape = row.figures["mape"]
        if mape.low is not None and mape.high is not None:
            axes.plot([100 * mape.low, 100 * mape.high], [y, y], color=INTERVAL, lw=2, alpha=0.6)
        axes.plot(100 * mape.value, y, "o", color=INTERVAL, ms=5)
        axes.plot(100 * row.figures["max_ape"].value, y, "|", color="0.45", ms=8)
        if row.verdict.claim is not None:
            claimed = 100 * (parse_printed(row.verdict.claim.printed).value or 0.0)
            axes.plot(claimed, y, "D", color=CLAIM, ms=5, mfc="white", mew=1.5)
    axes.set_yticks(
        range(len(rows)), [f"{r.key['device']} {r.key['mode']} (n={r.n})" for r in rows]
    )
    axes.set_xlim(0, 70)
    axes.set_xlabel("absolute percentage error (%)")
    axes.set_title("NeuSight: claimed and recomputed error", loc="left")
    axes.grid(axis="x", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    legend = [
        plt.Line2D([], [], color=CLAIM, marker="D", ls="", mfc="white", mew=1.5, label="claimed"),
        plt.Line2D([], [], color=INTERVAL, marker="o", label="mean (MAPE) and its 95 % interval"),
        plt.Line2D([], [], color="0.45", marker="|", ls="", ms=8, label="worst configuration"),
    ]
    axes.legend(handles=legend, loc="lower right", frameon=False)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(__file__).parent / "audit.svg")
