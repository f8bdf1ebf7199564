from __future__ import annotations

import io
from typing import Any

import pytest

from errcomp.report.forms import count
from errcomp.report.model import Cell, Column, Form, Note, Table, item, listing
from errcomp.report.text import WIDTH, briefly, render

FIGURES = Form(Cell, right=True)


def wide() -> Table:
    figures = [
        Column(f"Figure {i}", lambda r, i=i: f"{i}.0 % [1.0, {i}00.0]", form=FIGURES)
        for i in range(10)
    ]
    keys = [Column("Key", lambda r: r["key"], key=True)]
    return Table("Wide", [*keys, *figures], [{"key": "a"}, {"key": "b"}])


def test_figures_are_never_broken_but_continue_below() -> None:
    text = render(wide())
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"{i}.0 % [1.0, {i}00.0]" in text for i in range(10))
    assert text.count("\nKey ") > 1


def test_a_name_is_not_broken_where_others_have_room() -> None:
    name = "A100-40G/bert_large/inference/512/16"
    columns = [
        Column("Run", lambda r: name, key=True),
        Column("Measured", lambda r: "12.5 " * 6, form=FIGURES),
        Column("Known of it", lambda r: "kernels are slower than in other runs"),
    ]
    text = render(Table("Worst", columns, [{}]))
    assert name in text
    assert max(map(len, text.splitlines())) <= 100
    # Where two names have no room beside each other both are broken, and all of them is there.
    columns[2] = Column("Known of it", lambda r: "x" * 90)
    text = render(Table("Worst", columns, [{}]))
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("x") == 90


def test_notes_wrap_and_keep_a_figure_with_its_percent_sign() -> None:
    note = item("word " * 17 + "and then 12.34 % of it")
    columns: list[Any] = [Column("Name", lambda r: r["name"])]
    lines = render(Table("A title", columns, [], (note,))).splitlines()
    assert max(map(len, lines)) <= 100
    assert any("12.34 %" in line for line in lines)
    assert lines[-1].startswith("   ")


def test_code_to_paste_stays_on_one_line() -> None:
    code = "`python -c 'import polars as pl; pl.read_csv(\"runs-of-may.csv\")'`"
    note = item("word " * 15 + f"and then: {code} and more")
    lines = render(Table("A title", [Column("N", lambda r: "")], [], (note,))).splitlines()
    assert any(code in line for line in lines)


def test_a_narrow_terminal_gets_narrow_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    figures = [
        Column(f"Figure {i}", lambda r: "12.34 % [1.0, 2.0]", form=FIGURES) for i in range(4)
    ]
    wide = Table("T", [Column("Key", lambda r: "a", key=True), *figures], [{}], ["word " * 40])
    for columns, widest in (("80", 80), ("400", 100), ("10", 60)):
        monkeypatch.setenv("COLUMNS", columns)
        text = render(wide)
        assert max(map(len, text.splitlines())) <= widest
        assert text.count("12.34 % [1.0, 2.0]") == 4
        assert "\x1b" not in text
    monkeypatch.setenv("NO_COLOR", "")  # set and empty means nothing
    assert "\x1b" in render(wide)


def test_a_list_below_a_table_has_one_blank_line_before_it() -> None:
    notes = listing("Before using these numbers:", ["n is small."])
    shown = render(Table("Errors", [Column("n", lambda row: row, count)], [1], notes))
    assert shown.splitlines()[-4:] == ["1", "", "Before using these numbers:", " · n is small."]


def test_a_lead_stands_between_title_and_table() -> None:
    shown = render(Table("Errors", [Column("n", lambda row: row, count)], [1], lead="It holds."))
    assert shown.splitlines() == ["Errors", "", "It holds.", "", "n", "─", "1"]


def test_at_most_two_long_notes_are_shown() -> None:
    long = "x" * (WIDTH + 1)
    line = "y" * WIDTH
    notes = [long, line, Note(long, "·"), Note(long, apart=True), Note("z", below=True)]
    assert briefly(Table("T", [], [], notes)).remarks() == Table("T", [], [], notes).remarks()
    more = briefly(Table("T", [], [], [*notes, long, line, long, long])).remarks()
    assert more == [
        *Table("T", [], [], [*notes, long, line]).remarks(),
        Note("2 more notes: add --explain."),
    ]
    one = briefly(Table("T", [], [], [long, long, long])).remarks()
    assert one[-1].text == "1 more note: add --explain."
    assert briefly(Table("T", [], [])).remarks() == []


def test_explain_shows_all_notes(run: Any) -> None:
    argv = ("propagate", "--run", "H100/gpt3_27/inference/2048/2", "--where", "device=H100,V100")
    brief, full = run(*argv).out, run(*argv, "--explain").out
    assert "1 more note: add --explain." in brief
    assert "degrees of freedom" not in brief
    assert "degrees of freedom" in full
    assert "more note" not in full


def test_a_note_with_a_number_has_its_mark_before_it_and_an_indent_of_its_width() -> None:
    words = " ".join(["word"] * 30)
    table = Table(
        "T", [Column("Key", str, key=True)], ["a"], [Note(words, "[1]"), Note(words, "†")]
    )
    lines = render(table).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("[1] word"))
    assert lines[first + 1].startswith("    word")
    second = next(i for i, line in enumerate(lines) if line.startswith(" †  word"))
    assert lines[second + 1].startswith("    word")
    assert all(len(line) <= WIDTH for line in lines)
