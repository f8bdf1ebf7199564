"""The survey regenerated: every table and figure in one folder, with an index."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.claims.replicate import STATUSES, TITLES
from errcomp.errors import MissingExtraError
from errcomp.report.markdown import escaped
from errcomp.report.writing import write
from errcomp.system.files import check_free, replacing_folder, write_sums

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.claims.replicate import Replication

_HEADING = "# The tables of the survey, recomputed"
_COUNTS = "cells_by_status"
_SUFFIXES = (".csv", ".md", ".tex")
_PICTURES = (".svg", ".png")
_DATASETS = ("survey", "neusight")
_SEED = 0
_LIBRARIES = ("numpy", "scipy", "polars")
_COLUMNS = {
    "table, where, edition": "file of the transcription, place in the survey, edition of the "
    "survey",
    "row, column": "row and column of the cell",
    "printed": "the cell as the survey prints it",
    "recomputed": "the recomputed figure with all digits, in `unit`; `low; high` for a range; "
    "empty if there is no data",
    "unit": "unit of `recomputed`: `fraction` (0.0587 is 5.87 %), `ratio`, `count`, a unit of "
    "time, …",
    "status": ", ".join(STATUSES),
    "decimals": "decimals of the printed figure",
    "rule": "the rule that `recomputed` follows",
    "note": "reason for the status, and remarks",
    "tried, chance": "where the stated rule does not give the printed figure: number of rules "
    "tried, and how often one of the others would give an unrelated figure",
}


def check_folder(path: Path) -> None:
    """Refuse a folder that holds anything but unchanged files of `write_folder`.

    Raises
    ------
    InputError
        It holds other files, or files that were changed.
    """
    check_free(path, _HEADING)


def write_folder(path: Path, result: Replication) -> tuple[int, str]:
    """Write all tables and figures into a folder, whole or not at all.

    The same versions give the same bytes. An earlier folder of this function is replaced.

    Parameters
    ----------
    path : Path
        A folder that does not exist, is empty, or was written by this function.
    result : Replication
        From `errcomp.claims.replicate_survey`.

    Returns
    -------
    int, str
        Number of files, and why there are no figures; empty if there are figures.

    Raises
    ------
    InputError
        The folder holds something else, or cannot be written.
    """
    check_folder(path)
    with replacing_folder(path) as folder:
        tables, figures, without = list(_write_tables(folder, result)), [], ""
        try:
            figures = list(_write_figures(folder, result))
        except MissingExtraError as error:
            without = str(error)
        (folder / "README.md").write_text(
            "\n".join(_index(result, tables, figures, without)) + "\n",
            encoding="utf-8",
            newline="",
        )
        write_sums(folder)
        return sum(1 for _ in folder.iterdir()), without


def _write_tables(folder: Path, result: Replication) -> Iterator[tuple[str, str]]:
    """Write each table in each format; yield its name and what it is."""
    parts = result.tables()
    tables = result.view().tables
    rows: dict[str, list[dict[str, Any]]] = {
        name: [cell.to_dict() for cell in cells] for name, cells in parts.items()
    }
    rows[_COUNTS] = [
        {"table": name, **{str(status): n for status, n in count.items()}}
        for name, count in result.counts().items()
    ]
    titles = {**TITLES, _COUNTS: "Number of cells of each table by status"}
    for (name, content), table in zip(rows.items(), tables, strict=True):
        for suffix in _SUFFIXES:
            write(folder / f"{name}{suffix}", {"rows": content}, [table])
        yield name, titles[name]


def _write_figures(folder: Path, result: Replication) -> Iterator[tuple[str, str]]:
    """Write each figure in each format; yield its name and what it shows."""
    from errcomp.report.drawing.saving import save

    for name, title, axes in _figures(result):
        for suffix in _PICTURES:
            save(axes, folder / f"{name}{suffix}")
        yield name, title


def _figures(result: Replication) -> Iterator[tuple[str, str, Axes]]:
    """Draw what the survey says about accuracy, workloads and levels."""
    from errcomp import datasets
    from errcomp.claims.auditing import audit
    from errcomp.claims.view.figures import claimed, coverage_map
    from errcomp.claims.view.replication import levels

    # The cheapest first, so that a missing Matplotlib is found early.
    yield (
        "figure_levels",
        "Ranges of the error by level, as printed and as recomputed",
        levels(result),
    )
    pairs = datasets.load("neusight")
    audited = audit(pairs, tool="neusight", by=["device", "mode"], seed=_SEED)
    yield (
        "figure_claimed",
        "Claimed and recomputed errors of NeuSight, by device and mode",
        claimed(audited),
    )
    yield (
        "figure_workloads",
        "Which tool predicts which workload of the NeuSight artifact, and how well",
        coverage_map(pairs, "tool", "model"),
    )


def _index(
    result: Replication,
    tables: Sequence[tuple[str, str]],
    figures: Sequence[tuple[str, str]],
    without: str,
) -> Iterator[str]:
    """Write the README line by line."""
    counts = result.counts()["all"]
    summary = ", ".join(f"{counts[status]} {status}" for status in STATUSES)
    yield from (_HEADING, "")
    yield f"{sum(counts.values())} printed cells: {summary}."
    yield from ("", "A cell is reproduced if the rule that the survey states or implies gives the")
    yield "printed figure. The tables name the rule of every recomputed cell. No cell is left out."
    yield from ("", "## Tables", "")
    yield from _grid(["Table", "Files"], _linked(tables, _SUFFIXES))
    yield from ("", "## Figures", "")
    if without:
        yield f"None: {escaped(without)}"
    else:
        yield from _grid(["Figure", "Files"], _linked(figures, _PICTURES))
    yield from ("", "## Cells by status", "")
    lines = [
        [escaped(name), *(str(count[status]) for status in STATUSES)]
        for name, count in result.counts().items()
    ]
    yield from _grid(["Table", *map(str.capitalize, STATUSES)], lines, right=True)
    columns = [[f"`{name}`", text] for name, text in _COLUMNS.items()]
    yield from ("", "## Columns of the CSV files", "")
    yield from _grid(["Column", "Meaning"], columns)
    yield (
        f"\n`{_COUNTS}.csv` has other columns: the table, and the number of its cells with each "
        "status."
    )
    yield from ("", "## How it was made", "", *_basis(bool(without)))


def _linked(entries: Sequence[tuple[str, str]], suffixes: Sequence[str]) -> list[list[str]]:
    return [
        [escaped(text), ", ".join(f"[{escaped(name)}{s}]({name}{s})" for s in suffixes)]
        for name, text in entries
    ]


def _basis(without: bool) -> Iterator[str]:
    from errcomp import __version__, datasets

    libraries = [*_LIBRARIES, *([] if without else ["matplotlib"])]
    versions = [f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in libraries)]
    yield "- Command: `errcomp replicate survey -o FOLDER`"
    yield (
        f"- Versions: errcomp {__version__}, {', '.join(versions)}. These versions reproduce the "
        "files byte for byte."
    )
    yield (
        f"- Seed: {_SEED}, for the intervals in the figure of claims. No cell depends on the seed."
    )
    yield "- Check these files: `sha256sum -c SHA256SUMS`"
    yield from ("- Data: these built-in datasets (`errcomp datasets show NAME` describes one):", "")
    lines = [
        [f"{name}/{escaped(table.file)}", str(table.rows), f"`{table.sha256}`"]
        for name in _DATASETS
        for table in datasets.info(name).tables
    ]
    yield from _grid(["File", "Rows", "SHA-256"], lines)


def _grid(
    names: Sequence[str], lines: Sequence[Sequence[str]], *, right: bool = False
) -> Iterator[str]:
    rule = ["---", *(["---:" if right else "---"] * (len(names) - 1))]
    for line in (names, rule, *lines):
        yield f"| {' | '.join(line)} |"
