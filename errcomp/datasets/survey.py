"""The survey's tables, one row per printed cell, and figures from the underlying runs."""

from __future__ import annotations

from pathlib import Path

from errcomp.datasets._spec import Column, DatasetSpec

#: Tables of cells: those of the layouts in ``errcomp.readers.learned.survey``, and two more.
_TABLES = (
    "tools",
    "table3_suite",
    "table4_accuracy",
    "table6_neusight",
    "table7_astrasim",
    "table8_vidur",
    "table9_coverage",
    "table9_totals",
    "table10_cross_tool",
    "table11_12_deployment",
    "error_by_level",
    "text_neusight",
    "timeloop_resnet50_conv1",
    "table1_taxonomy",
    "statements",
)

_CELLS = {
    "table": Column(
        "text", "file that the table was transcribed to; its name holds the table's number"
    ),
    "where": Column("text", "where the table is printed, as numbered in the second edition"),
    "edition": Column(
        "text", "edition of the survey: second, or first if only the first has the figure"
    ),
    "row": Column("text", "row of the table; for a figure in the text, what it is about"),
    "column": Column("text", "column of the table"),
    "printed": Column("text", "as printed, without unit"),
    "value": Column("number", "the printed number; missing where words are printed", "as unit"),
    "unit": Column("text", "unit of value; empty where words are printed"),
}
_PLATFORMS = {
    "tool": Column("text", "name of the tool"),
    "platform": Column("text", "column of Table 1 that it belongs to"),
    "method": Column("text", "row of Table 1 that it belongs to"),
    "listed": Column("text", "Table 2, or text where only the text names it"),
}
_RUNS = {
    "tool": Column("text", "VIDUR, ASTRA-sim or Timeloop"),
    "run": Column("text", "name of the run or of its log"),
    "quantity": Column("text", "what was simulated"),
    "statistic": Column("text", "mean, count, rule for the quantile, or component"),
    "value": Column("number", "the figure, 12 significant digits", "as unit"),
    "unit": Column("text", "unit of value"),
}


def build(source: Path) -> dict[str, bytes]:
    """Build the tables from the transcribed tables and the output of the tools."""
    from errcomp.readers.learned import survey

    return survey.build(source)


SPECS = {
    "survey": DatasetSpec(
        title="Tables of a survey of performance models, cell by cell, and the runs behind them",
        source="A Survey of High-Level Modeling and Simulation Methods for Modern Machine Learning "
        "Workloads (anonymous, two editions); https://github.com/sarchlab/ml-perf-survey; "
        "https://github.com/Accelergy-Project/timeloop-accelergy-exercises",
        commit="sarchlab/ml-perf-survey ad7cdaacad6a2285f2032e9180fa8e4ff2749734, "
        "timeloop-accelergy-exercises 2d5510807128e9bd5f1cad0705cdf2ec4612fd4e",
        licence="survey: neither it nor its repository states a licence, so only figures are "
        "copied; timeloop-accelergy-exercises: MIT, Copyright (c) 2019 Joel Emer",
        reference="the survey has no published version; tables are numbered as in its second "
        "edition",
        tables={
            **{f"{stem}.csv": _CELLS for stem in _TABLES},
            "platforms.csv": _PLATFORMS,
            "runs.csv": _RUNS,
        },
        build=build,
    )
}
