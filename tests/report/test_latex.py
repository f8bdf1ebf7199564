"""The structure of tables in LaTeX; an engine sets some in `test_latex_compiles`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errcomp.report.forms import figure, text
from errcomp.report.latex import OTHERS, for_paper, latex
from errcomp.report.model import Cell, Column, Form, Note, Table, item
from errcomp.results import Written

SPEC = re.compile(
    r"S\[table-format=[+-]?\d+\.\d+\]|>\{\\raggedright\\arraybackslash\}p\{0\.\d\d\\linewidth\}|[lr]"
)


PARTS = re.compile(
    r"([+\-−]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)( ?[%×]| [A-Za-zµ/]+)?"
    r"(?: \[([^,]+), ([^\]]+)\])?([†‡*]*)"
)


def parts(shown: str) -> Cell:
    """Return the cell of a figure that is told as it is shown: number, unit, interval, signs."""
    found = PARTS.fullmatch(shown)
    if found is None:
        return Cell(shown)
    number, unit, low, high, marks = (part or "" for part in found.groups())
    cell = figure(
        Written(number, unit, low, high), float(number.replace(",", "").replace("−", "-"))
    )
    return replace(cell, text=shown, marks=marks)


def table(
    *columns: tuple[str, Sequence[str]], title: str = "T", notes: Sequence[Note | str] = ()
) -> Table:
    """Make a table of columns; those whose header ends with a figure sign # are of figures."""
    made = [
        Column(
            head.rstrip("#"),
            lambda r, i=i: r[i],
            form=Form(parts, right=True) if head.endswith("#") else text,
            key=i == 0,
        )
        for i, (head, _) in enumerate(columns)
    ]
    rows = [dict(enumerate(row)) for row in zip(*(cells for _, cells in columns), strict=True)]
    return Table(title, made, rows, notes)


def without_escapes(text: str) -> str:
    return re.sub(r"\\[^a-zA-Z]", "", text)


def check(text: str) -> list[tuple[str, list[list[str]]]]:
    """Check what TeX would stumble over; return the columns and rows of each tabular."""
    lines = [line for line in text.splitlines() if not line.startswith("%") and line != OTHERS]
    body = "\n".join(lines)
    flat = without_escapes(body)
    assert body.isascii()
    assert flat.count("{") == flat.count("}")
    assert flat.count("$") % 2 == 0
    assert "%" not in flat
    assert "_" not in re.sub(r"\$[^$]*\$", "", flat)
    for begin, end in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        assert body.count(rf"\begin{{{end}}}") == body.count(rf"\end{{{end}}}"), begin
    assert flat.replace("#1", "").count("#") == 0
    found = []
    for _, spec, inside in re.findall(
        r"^\\begin\{(tabular|longtable)\}\{(.*)\}\n([\s\S]*?)^\\end\{\1\}", body, re.M
    ):
        plain = re.sub(r"@\{(?:\\,)?\}", " ", spec)
        columns = SPEC.findall(plain)
        assert SPEC.sub("", plain).strip() == ""
        rows = []
        for line in inside.splitlines():
            if not line.endswith(r" \\"):
                rules = r"\\(toprule|midrule|bottomrule|end(first)?(head|foot))|\\caption.*"
                assert re.fullmatch(rules, line)
                continue
            cells = re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))
            spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d)\}", line))
            assert len(cells) + spans == len(columns)
            assert not line.startswith(("[", "*"))  # an argument of the row before
            rows.append(cells)
        found.append((spec, rows))
    return found


def test_a_figure_its_interval_and_its_sign_stand_aligned() -> None:
    cells = ["8.74 % [5.6, 12.1]", "14.07 % [6.8, >999]‡", "—", "-1.50 % [-2.0, 1.0]"]
    ((spec, rows),) = check(latex([table(("GPU", ["A", "B", "C", "D"]), ("MAPE [95 %]#", cells))]))
    assert spec == r"l S[table-format=-2.2]@{\,}l"
    head = r"\begin{tabular}[b]{@{}r@{}}MAPE (\%)\\{[}95\,\%]\end{tabular}"
    assert rows == [
        ["GPU", rf"\multicolumn{{2}}{{c}}{{{head}}}"],
        ["A", "8.74", r"[\num{5.6}, \num{12.1}]"],
        ["B", "14.07", r"[\num{6.8}, $>$999]\ddag{}"],
        ["C", "{---}", ""],
        ["D", "-1.50", r"[\num{-2.0}, \num{1.0}]"],
    ]


@pytest.mark.parametrize(
    ("cells", "spec", "made"),
    [
        (["1", "146"], "S[table-format=3.0]", ["1", "146"]),
        (["5.8 %†", "2.3 %†"], "S[table-format=1.1]@{}l", ["5.8", "2.3"]),
        (["1,234", "12,345.5"], "S[table-format=5.1]", ["1234", "12345.5"]),
        (["+5.1 %", "−9.0 %"], "S[table-format=+1.1]", ["+5.1", "-9.0"]),
        (["246 ms", "1.2 s"], "r", [r"\num{246}\,ms", r"\num{1.2}\,s"]),
        (["1.2e-05", "3E+07"], "r", [r"\num{1.2e-5}", r"\num{3e7}"]),
        (["1.77×", "n/a"], "S[table-format=1.2]", ["1.77", "{n/a}"]),
        (["2 to 3 %", "5 %", "word"], "r", [r"2 to 3\,\%", r"\num{5}\,\%", "word"]),
        (["-0.00", "1.00"], "S[table-format=1.2]", ["{$-$0.00}", "1.00"]),
        (["-2/+4 %", "-3/+4 %"], "r", [r"$-$2/+4\,\%", r"$-$3/+4\,\%"]),
        (["128 … 184.8", "3 of 5"], "r", [r"128 \dots{} 184.8", "3 of 5"]),
        (["7.0 [4, ∞]"], r"S[table-format=1.1]@{\,}l", ["7.0"]),
        (["٣", "๐"], "r", [r"\errchar{0663}", r"\errchar{0E50}"]),
        (["", "·"], "r", ["", r"$\cdot$"]),
        (["5.8 % [1.0, 2.0]", "3 ms"], "r", [r"\num{5.8}\,\%~[\num{1.0}, \num{2.0}]",
                                            r"\num{3}\,ms"]),
    ],
)  # fmt: skip
def test_figures_are_recognised_and_words_are_left_as_words(
    cells: list[str], spec: str, made: list[str]
) -> None:
    ((found, rows),) = check(latex([table(("x#", cells))]))
    assert found == spec
    assert [row[0] for row in rows[1:]] == made


def test_names_of_users_break_nothing() -> None:
    nasty = "\\&%$#_{}~^<>|\"'`[x]*--é→😀"
    made = latex([table((nasty, [nasty, "[b"]), title=nasty, notes=[nasty, Note(nasty, "a")])])
    ((_, rows),) = check(made)
    assert rows[2] == ["{[}b"]
    assert r"\label{tab:x}" in made


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(max_size=12), min_size=1, max_size=3),
    st.lists(st.one_of(st.text(max_size=12), st.from_regex(r"\A-?\d{1,3}(\.\d)? ?%?\Z")),
             min_size=1, max_size=3),
)  # fmt: skip
def test_any_text_anywhere_keeps_the_structure(words: list[str], cells: list[str]) -> None:
    n = min(len(words), len(cells))
    parts = [("Name", words[:n]), (words[0].rstrip("#") + "#", cells[:n])]
    made = check(latex([table(*parts, title=words[-1], notes=[*words, item(cells[0])])]))
    assert len(made) == 1
    assert len(made[0][1]) in (n, n + 1)


def test_a_wide_table_is_smaller_and_continues_with_its_keys() -> None:
    ten = [(f"c{i}#", ["1", "2"]) for i in range(10)]
    made = latex([table(("Key", ["a", "b"]), *ten)])
    assert len(check(made)) == 1
    assert "\n\\small\n" in made
    wide = [(f"c{i}#", ["1.23 % [10.2, 100.2]"] * 2) for i in range(10)]
    made = latex([table(("Key", ["a", "b"]), *wide)])
    grids = check(made)
    assert len(grids) == 3
    assert all(rows[1][0] == "a" for _, rows in grids)
    assert sum(len(spec.split()) - 1 for spec, _ in grids) == 10
    assert (made.count(r"\caption"), made.count(r"\par\medskip")) == (1, 2)
    assert "\n\\footnotesize\\setlength{\\tabcolsep}{4pt}\n" in made
    assert "table*" in made.splitlines()[1]


def test_long_text_gets_a_share_of_the_width() -> None:
    made = latex([table(("Why", ["word " * 40, "x"]), ("n#", ["1", "2"]))])
    ((spec, _),) = check(made)
    assert re.fullmatch(r">\{\\raggedright\\arraybackslash\}p\{0\.9\d\\linewidth\} S\[.*\]", spec)


def test_a_long_table_continues_on_the_next_page() -> None:
    rows = [f"r{i}" for i in range(41)]
    wide = [(f"c{i}#", ["1.23 % [10.2, 100.2]"] * 41) for i in range(5)]
    made = latex([table(("Name", rows), *wide, notes=[Note("why", "a")])])
    (first, second) = check(made)
    assert [len(first[1]), len(second[1])] == [43, 42]  # its header twice: first page and others
    assert made.splitlines()[0].endswith(r"\usepackage{booktabs,siunitx,longtable}")
    assert (made.count(r"\caption"), made.count(r"\addtocounter{table}{-1}")) == (1, 1)
    assert r"\begin{table}" not in made


def test_notes_hang_beside_their_marks_and_follow_a_float_they_would_not_fit() -> None:
    made = latex(
        [table(("x#", ["1"]), notes=[Note("few", "a"), Note("rule", "[1]"), item("item"), "plain"])]
    )
    check(made)
    assert r"\errnote{a} few" in made
    assert r"\errnote{{[}1]} rule" in made
    assert r"\errnote{\textbullet{}} item" in made
    assert r"\par\noindent plain" in made
    assert made.index(r"\begin{minipage}") < made.index("plain") < made.index(r"\end{table}")
    made = latex([table(("x#", ["1"]), title="Many", notes=["word " * 30] * 40)])
    check(made)
    assert "minipage" not in made
    assert made.index(r"\end{table}") < made.index(r"Notes to Table~\ref{tab:many}:")


def test_labels_differ_and_packages_are_named_once() -> None:
    same = table(("x#", ["1"]), title="Two of: them, é")
    made = latex([same, same])
    assert made.count(r"\label{tab:two-of-them}") == 1
    assert made.count(r"\label{tab:two-of-them-2}") == 1
    assert made.count("usepackage") == 1
    assert r"\usepackage[T1]{fontenc}" in latex([table(("x", ["ą"]))])
    long = latex([table(("x#", ["1"]), title="word " * 30)])
    assert re.search(r"\\label\{tab:(word-)+word\}", long)


def test_a_table_without_rows_is_words_and_one_without_headers_has_no_rule_below_them() -> None:
    empty = latex([Table("Only words", [Column("A", str)], [], ["a note"])])
    assert check(empty) == []
    assert r"\textbf{Only words}" in empty
    assert r"\par\noindent a note" in empty
    facts = latex([table(("", ["task"]), ("", ["composition"]))])
    assert r"\midrule" not in facts
    assert check(facts)[0][1] == [["task", "composition"]]


def test_characters_of_other_scripts_are_defined_once_and_only_where_they_are() -> None:
    made = latex([table(("中", ["文", "a"])), table(("x", ["中"]))])
    check(made)
    assert made.count(OTHERS) == made.count("LuaLaTeX") == 1
    assert made.index(OTHERS) < made.index(r"\begin{table}")
    assert made.count(r"\errchar{4E2D}") == 2
    assert "errchar" not in latex([table(("é", ["α"]))])


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ("n is small.", "n is small."),
        ("no interval: 2 gpus are too few (for only these 2, use --cluster app)",
         "no interval: 2 gpus are too few"),
        ("T4: not verifiable. Name the average with --aggregation mean (or another).",
         "T4: not verifiable."),
        ("Errors are skewed (most are high). For all: errcomp audit TABLE --tool all",
         "Errors are skewed (most are high)."),
        ("The result is called errcomp as well.", "The result is called errcomp as well."),
        ("A range of 5--a is kept.", "A range of 5--a is kept."),
    ],
)  # fmt: skip
def test_a_paper_has_no_hints_about_commands(told: str, left: str) -> None:
    assert [note.text for note in for_paper([Note(told, "a")])] == [left]
    assert escapes(left) in latex([table(("A", ["1"]), notes=[Note(told)])])


def test_a_note_that_is_only_a_hint_is_left_out() -> None:
    assert for_paper([Note("To read it in full: errcomp audit TABLE --where gpu=A100")]) == []


def escapes(text: str) -> str:
    return text.replace("--", "-{}-")
