"""Report of how many pairs support a figure."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from errcomp.report import forms
from errcomp.report.model import Column, Figure, Report, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.planning.claim import ClaimPlan


def claim_view(result: ClaimPlan) -> Report:
    """Return a row for each true error."""
    limit = f"{100 * result.limit:g} %"
    columns = [
        Column("True MAPE", lambda row: row.error, forms.percent, key=True),
        *(
            [Column(f"{result.cluster.capitalize()}s", lambda row: row.clusters, _COUNT)]
            if result.cluster
            else []
        ),
        Column("Pairs", lambda row: row.pairs, _COUNT),
        Column("Power", lambda row: row.power, forms.percent),
    ]
    basis = (
        f"the spread of the errors in {result.pilot_pairs:,} pairs of the pilot"
        + (f", drawn by whole {result.cluster}s" if result.cluster else "")
        if result.pilot_pairs
        else "independent pairs with gamma-distributed errors"
    )
    notes = [
        f"Number needed for the {100 * result.level:g} % interval of the MAPE to lie below "
        f"{limit} with a probability (power) of {100 * result.power:g} %. Simulated with {basis} "
        f"(standard deviation over mean: {result.spread:.2f}).",
        "–: more than 100,000 are needed. Errors with heavier tails than these need more.",
    ]
    found = [row for row in result.rows if row.pairs]
    line = [f"< {limit}", f"{100 * result.power:g} % power"]
    if found:
        line.append(f"{found[-1].pairs:,} pairs at {100 * found[-1].error:.3g} %")
    title = f"Pairs that support an error below {limit}"
    draw = partial(needed, result)
    return Report(
        title=title,
        line=line,
        tables=[Table(title, columns, result.rows, notes)],
        figures=[Figure("figure", "Pairs that are needed, by the true error.", draw)],
        draw=draw,
    )


def needed(result: ClaimPlan, ax: Axes | None = None) -> Axes:
    """Draw the number of pairs that each true error needs."""
    from errcomp.report.drawing.forest import Row, forest

    rows = [
        Row(
            f"{100 * row.error:.3g} %",
            math.nan if row.pairs is None else float(row.pairs),
            None,
            None,
            "more than 100,000" if row.pairs is None else f"{row.pairs:,}",
        )
        for row in result.rows
    ]
    return forest(
        ax,
        rows,
        title=f"Pairs that support an error below {100 * result.limit:g} %",
        notes=[
            f"by true MAPE; power {100 * result.power:g} %, interval at {100 * result.level:g} %"
        ],
        x="pairs",
        beside="pairs",
        log=any(row.pairs for row in result.rows),
    )


_COUNT = forms.count
