"""The survey's tables, recomputed cell by cell from their data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from errcomp.claims.replicate.judging import STATUSES, Cell, Replication, Status

if TYPE_CHECKING:
    import polars as pl

    from errcomp.claims.replicate.judging import Source
    from errcomp.tables import Pairs

__all__ = ["STATUSES", "TITLES", "Cell", "Replication", "Status", "replicate_survey"]


#: Title of each table of the dataset.
TITLES: Mapping[str, str] = {
    "tools": "Table 2: accuracies that tools claim",
    "table3_suite": "Table 3: the suite of scenarios",
    "table4_accuracy": "Table 4: published accuracy and the survey's result",
    "table6_neusight": "Table 6: NeuSight by device and mode",
    "table7_astrasim": "Table 7: ASTRA-sim",
    "table8_vidur": "Table 8: VIDUR",
    "table9_coverage": "Table 9: scenarios that each tool covers",
    "table9_totals": "Table 9: totals",
    "table10_cross_tool": "Table 10: tools side by side",
    "table11_12_deployment": "Tables 11 and 12: deployment",
    "error_by_level": "Error by level (sections 4, 7.9 and 8)",
    "text_neusight": "NeuSight in the text",
    "timeloop_resnet50_conv1": "Timeloop (section 7.4)",
    "table1_taxonomy": "Table 1: tools by type and platform",
    "statements": "Statements in the text",
}


def replicate_survey(
    *, printed: Mapping[str, pl.DataFrame] | None = None, pairs: Pairs | None = None
) -> Replication:
    """Recompute every cell of the survey's tables if possible, and give each a status.

    Definition: a cell is *reproduced* if the rule that the survey states, or that the words of the
    cell imply, gives a figure that would be printed like it. It is *reproduced under another rule*
    if only another rule does. That rule is named; the rules are tried in a fixed order, the same
    for all cells of a kind. A cell is *not reproduced* if no rule gives it, and has *no data* if
    there is no data to recompute it from. No cell is left out.

    Rules for an error of NeuSight: mean of the absolute percentage errors, then of errors rounded
    before averaging, then median and geometric mean. Each is tried on single-device unfused
    configurations first, then on all variants pooled. If the words name no subset, single key
    values and single configurations are tried as well. Misleads where many rules are tried on a
    coarse figure: an agreement of two digits is weak evidence for the rule.

    Parameters
    ----------
    printed : mapping of str to DataFrame, optional
        Tables like those of the ``survey`` dataset, which is the default.
    pairs : Pairs, optional
        Pairs like those of the ``neusight`` dataset, which is the default.

    Returns
    -------
    Replication

    Raises
    ------
    InputError
        A cell names a group that the pairs do not have, or a table lacks a cell.

    Examples
    --------
    >>> cell = replicate_survey().cell("table6_neusight", "L4, inference", "survey")
    >>> cell.printed, cell.status
    ('14.08%', 'reproduced under another rule')
    >>> cell.rule
    'mean of APEs, each first rounded to 0.01 %, fused and unfused configurations pooled (11)'
    """
    from errcomp import datasets

    if printed is None and pairs is None:
        return _packaged()
    return _replication(
        datasets.tables("survey") if printed is None else printed,
        datasets.load("neusight") if pairs is None else pairs,
    )


@cache
def _packaged() -> Replication:
    """Recompute the packaged tables: a second and a half, and always with the same outcome."""
    from errcomp import datasets

    return _replication(datasets.tables("survey"), datasets.load("neusight"))


def _replication(printed: Mapping[str, pl.DataFrame], pairs: Pairs) -> Replication:
    from errcomp.claims.replicate.judging import Source

    source, parts = Source(printed, pairs), _parts()
    return Replication(tuple(cell for name in source.cells for cell in parts[name](source)))


def _parts() -> Mapping[str, Callable[[Source], Iterator[Cell]]]:
    """Return the function that recomputes each table of the dataset."""
    from errcomp.claims.replicate import judgements, neusight, runs, statements

    return {
        "tools": judgements.tools,
        "table3_suite": judgements.table3,
        "table4_accuracy": judgements.table4,
        "table6_neusight": neusight.table6,
        "table7_astrasim": runs.table7,
        "table8_vidur": runs.table8,
        "table9_coverage": judgements.table9_coverage,
        "table9_totals": judgements.table9_totals,
        "table10_cross_tool": judgements.table10,
        "table11_12_deployment": judgements.table11_12,
        "error_by_level": neusight.error_by_level,
        "text_neusight": neusight.text,
        "timeloop_resnet50_conv1": runs.timeloop,
        "table1_taxonomy": statements.table1,
        "statements": statements.statements,
    }
