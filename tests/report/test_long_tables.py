"""Long tables look as short ones do: most of their rows are not drawn by Rich."""

from __future__ import annotations

import random
from typing import Any

import pytest

from errcomp.report import text
from errcomp.report.model import Cell, Column, Form, Table

TEXT = Form(lambda value: Cell(value, value))
NUMBER = Form(lambda value: Cell(value, value), right=True)
NAMES = ("conv", "a long name of a kernel", "all pairs", "matmul\nfused", "", "行列", "x" * 40)


def table(n: int, seed: int, *, texts: int = 2, numbers: int = 3, head: str = "Kernel") -> Table:
    rng = random.Random(seed)
    rows = [
        [rng.choice(NAMES[: rng.choice([1, 2, 7])]) for _ in range(texts)]
        + [f"{rng.lognormvariate(0, 3):.2f} %" for _ in range(numbers)]
        for _ in range(n)
    ]

    def column(i: int) -> Column:
        is_text = i < texts
        name = head if is_text else "Median error of all"
        form = TEXT if is_text else NUMBER
        return Column(f"{name} {i}" if head else "", lambda row: row[i], form, key=i == 0)

    return Table("Errors", [column(i) for i in range(texts + numbers)], rows, ["A note."])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("texts", [1, 2, 4])
def test_long_tables_are_those_that_rich_draws(
    seed: int, texts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    for many in (10, 10_000):
        monkeypatch.setattr(text, "_MANY", many)
        drawn.append(text.render(table(60, seed, texts=texts, numbers=seed % 5)))
    assert drawn[0].splitlines() == drawn[1].splitlines()


def test_columns_without_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_MANY", 10)
    shown = text.render(table(40, 0, head=""))
    assert "─" not in shown.splitlines()[2]


def test_rich_draws_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes most of a millisecond for each."""
    grids: list[int] = []
    real = text._grid

    def counted(columns: Any, cells: Any, *rest: Any) -> Any:
        grids.append(len(cells.rows))
        return real(columns, cells, *rest)

    monkeypatch.setattr(text, "_grid", counted)
    rows = [(f"c{i}" if i != 700 else "a name with words " * 5, f"{i / 7:.2f}") for i in range(999)]
    columns = [
        Column("Case", lambda row: row[0], TEXT),
        *[Column("MAPE", lambda row: row[1], NUMBER) for _ in range(3)],
    ]
    shown = text.render(Table("Errors", columns, rows))
    assert grids == [1, 1]  # the head, and the row that needs two lines
    assert len(shown.splitlines()) == 1004
