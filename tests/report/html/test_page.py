from __future__ import annotations

import builtins
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from operator import itemgetter
from typing import Any

import pytest

from errcomp.errors import InputError
from errcomp.report.html import fragment, page, prose
from errcomp.report.html.svg import pictures
from errcomp.report.model import (
    Advice,
    Cell,
    Column,
    Figure,
    Form,
    Note,
    Report,
    Table,
    Verdict,
    clean,
)

EVIL = "<script>alert(1)</script> \"'&amp; ]]> \x00\x1b[31m \u202e"


class Reader(HTMLParser):
    """Collects tags, attributes and text as a browser would."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def table_of(title: str, columns: list[Column], rows: list[list[Cell]], *notes: Note) -> Table:
    """Make a table of cells that are made by hand."""
    placed = [replace(column, value=itemgetter(i)) for i, column in enumerate(columns)]
    return Table(title, placed, rows, notes)


def head(text: str, *, right: bool = False, **more: Any) -> Column:
    """Make a column of cells that are made by hand."""
    return Column(text, lambda row: row, Form(lambda cell: cell, right=right), **more)


def evil_report() -> Report:
    cells = [[Cell(EVIL, more=[Advice(EVIL, EVIL, EVIL)], about=EVIL), Cell(EVIL, 1.5, tone="bad")]]
    columns = [head(EVIL, about=EVIL), head(EVIL, right=True)]
    return Report(
        title=EVIL,
        verdicts=[Verdict(EVIL, EVIL, "bad")],
        advice=[Advice(EVIL, EVIL, EVIL)],
        tables=[table_of(EVIL, columns, cells, Note(EVIL))],
        method=[(EVIL, EVIL)],
        notes=[EVIL],
    )


def plain_report(title: str = "A result") -> Report:
    columns = [head("Device", key=True), head("MAPE", right=True)]
    rows = [[Cell("H100"), Cell("8.74 %", 0.0874)], [Cell("L4"), Cell("—")]]
    verdict = Verdict("Overstated", "— 2.3 %", "bad")
    return Report(title, verdicts=[verdict], tables=[table_of("G", columns, rows)])


def test_text_never_becomes_markup() -> None:
    clean = Reader(page([plain_report(), plain_report()], title="x", made_by="y"))
    evil = Reader(page([evil_report(), evil_report()], title=EVIL, made_by=EVIL))
    assert evil.tags.count("script") == clean.tags.count("script") == 1
    # What is not printable is shown as its escape.
    assert any(
        "<script>alert(1)</script>" in word and "\\x00\\x1b[31m" in word for word in evil.words
    )
    assert not {name for name, _ in evil.attributes if name.startswith("on")}


def test_the_policy_allows_the_script_of_the_page_and_nothing_else() -> None:
    import base64
    import hashlib

    text = page([plain_report()], title="x", made_by="y")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy"?\s+content="([^"]*)"', text)
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", text.replace("http-equiv", ""))


def test_one_section_is_titled_by_the_page_and_several_have_their_own() -> None:
    alone = Reader(page([plain_report("A result")], title="A result", made_by="y"))
    assert (alone.tags.count("h1"), alone.tags.count("h2"), alone.tags.count("h3")) == (1, 2, 0)
    hrefs = [v for n, v in alone.attributes if n == "href"]
    assert hrefs == ["#main", "#result-1", "#result-1-table-1", "#result-1-terms"]
    both = Reader(page([plain_report("One"), plain_report("Two")], title="All", made_by="y"))
    assert (both.tags.count("h1"), both.tags.count("h2"), both.tags.count("h3")) == (1, 2, 4)
    parts = [f"#result-{i}{part}" for i in (1, 2) for part in ("", "-table-1", "-terms")]
    assert [v for n, v in both.attributes if n == "href"] == ["#main", *parts]
    many = Reader(page([plain_report(str(i)) for i in range(5)], title="All", made_by="y"))
    hrefs = [v for n, v in many.attributes if n == "href"]
    assert hrefs == ["#main", *(f"#result-{i}" for i in range(1, 6))]


def test_ids_are_unique_and_labels_lead_somewhere() -> None:
    read = Reader(page([plain_report(), plain_report()], title="All", made_by="y"))
    ids = [value for name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    labels = {v for n, v in read.attributes if n == "aria-labelledby"}
    assert labels <= set(ids)


@pytest.mark.extras
def test_the_answer_is_the_line_the_first_verdicts_and_the_main_picture() -> None:
    from matplotlib.figure import Figure as Canvas

    def draw(title: str) -> Any:
        ax = Canvas().subplots()
        ax.set_title(title, loc="left")
        return ax

    verdicts = [Verdict(f"Verdict {i}", "") for i in range(5)]
    figures = [Figure(name, name, lambda name=name: draw(name)) for name in ("main", "other")]
    made = Report("A", ["MAPE 5 % [1, 9]", "n=3"], verdicts=verdicts, figures=figures)
    text = page([made], title="A", made_by="y")
    answer = text[text.index('class="answer"') : text.index('id="result-1-pictures"')]
    assert [answer.count(f"Verdict {i}") for i in range(5)] == [1] * 5
    assert "2 more verdicts" in answer
    assert 'class="headline"' in answer
    assert 'aria-label="main."' in answer
    assert 'aria-label="other."' not in answer
    few = page([Report("A", verdicts=verdicts[:4])], title="A", made_by="y")
    assert "more verdict" not in few
    assert (
        "answer"
        not in page([Report("A")], title="A", made_by="y")
        .partition("<body>")[2]
        .partition("<script>")[0]
    )


@pytest.mark.extras
def test_series_have_names_and_marks_in_the_picture() -> None:
    from matplotlib.figure import Figure as Canvas

    def draw(*, legend: bool = True) -> Any:
        ax = Canvas().subplots()
        ax.plot([1, 2], [1, 2], label="first\nn=2")
        ax.plot([1, 2], [2, 2], label="not in the legend")
        ax.axhline(1)
        ax.plot([1, 2], [2, 1], label="second")
        if legend:
            ax.legend(handles=[ax.get_lines()[0], ax.get_lines()[-1]])
        return ax

    text = page([Report("A", figures=[Figure("f", "F", draw)])], title="A", made_by="y")
    assert 'data-series="[&quot;first&quot;, &quot;second&quot;]"' in text
    assert re.findall(r'<g[^>]* data-series="(\d)"', text) == ["0", "1"]
    bare = Figure("f", "F", lambda: draw(legend=False))
    assert (
        "data-series"
        not in page([Report("A", figures=[bare])], title="A", made_by="y").partition("<script>")[0]
    )


def test_the_same_sections_give_the_same_text() -> None:
    assert page([plain_report()], title="x", made_by="y") == page(
        [plain_report()], title="x", made_by="y"
    )


def test_a_tone_has_a_sign_beside_its_colour() -> None:
    text = page([plain_report()], title="x", made_by="y")
    assert re.search(r'class="verdict bad"><span class="sign" aria-hidden="true">✗</span>', text)


def test_a_cell_carries_what_it_is_sorted_by() -> None:
    text = page([plain_report()], title="x", made_by="y")
    assert 'data-value="0.0874"' in text
    assert text.count("data-value=") == 1  # a cell without a number has none


def test_what_has_no_end_is_sorted_too_and_what_is_no_number_is_not() -> None:
    rows = [[Cell("x", value)] for value in (math.inf, -math.inf, math.nan, 1e-07)]
    text = fragment(Report("T", tables=[table_of("T", [head("x", right=True)], rows)]))
    assert re.findall('data-value="(.*?)"', text) == ["Infinity", "-Infinity", "1e-07"]


def test_a_figure_and_its_interval_are_two_parts_of_one_text() -> None:
    columns = [head("Device"), head("MAPE", right=True)]
    table = table_of("G", columns, [[Cell("H100 [a b]"), Cell("8.74 % [3.3, 52.0]‡", 0.0874)]])
    text = page([Report("A", tables=[table])], title="A", made_by="y")
    whole = '<span class="whole">'
    assert f"{whole}8.74 %</span> {whole}[3.3, 52.0]‡</span>" in text
    assert text.count(whole) == 2  # words may break anywhere between them


@pytest.mark.parametrize(("n", "broad"), [(4, False), (12, True)])
def test_tables_of_many_figures_are_printed_across(n: int, broad: bool) -> None:
    columns = [head("Device"), *(head(f"x{i}", right=True) for i in range(n))]
    row = [Cell("a_very_long_name_of_a_device"), *[Cell("8.74 % [3.3, 52.0]")] * n]
    text = page([Report("A", tables=[table_of("G", columns, [row])])], title="A", made_by="y")
    characters = 16 + 2 + n * (len("[3.3, 52.0]") + 2)
    assert (f'class="table broad" style="--characters: {characters}"' in text) == broad
    assert ('<div class="table">' in text) != broad
    assert 'class="long"' in text


def test_a_fragment_has_its_style_and_no_script() -> None:
    read = Reader(fragment(evil_report()))
    assert "style" in read.tags
    assert "script" not in read.tags


@pytest.mark.extras
def test_a_figure_keeps_its_ids_apart_and_its_points_in_a_data_block() -> None:
    pytest.importorskip("matplotlib")
    from errcomp.report.drawing import hover as _hover
    from errcomp.report.drawing import style as _style
    from errcomp.report.html.svg import picture

    def drawn() -> Any:
        ax = _style.canvas(None, 2.0)
        ax.plot([0, 1], [0, 1], "o", clip_on=True)
        ax.set_xlim(0, 2)
        ax.set_ylim(0, 2)
        _hover.tell(ax, [0.0, 1.0], [0.0, 1.0], ["first </script>", EVIL])
        _style.heading(ax, "A title", ["a note, p=0.00123"])
        _style.name_axes(ax, x="time (ms)")
        return ax

    one = picture(drawn(), "dots", "How to read it")
    assert one.alt == "A title. a note, p=0.00123. Axes: time (ms)."
    assert [spot[2] for spot in one.spots] == ["first </script>", clean(EVIL)]
    (x0, y0, _), (x1, y1, _) = one.spots
    assert x1 > x0
    assert y1 < y0  # an SVG counts downwards
    figures = [Figure("dots", "How to read it", drawn)]
    text = page(
        [Report("A", figures=figures), Report("B", figures=figures)], title="x", made_by="y"
    )
    read = Reader(text)
    ids = [value for name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert used <= set(ids)
    blocks = re.findall(r'<script type="application/json" class="spots">(.*?)</script>', text)
    assert [json.loads(block)[0][2] for block in blocks] == ["first </script>"] * 2
    assert "p=0.00123" in text.split("<svg")[1]  # places are rounded, numbers are not
    assert "#ffffff" not in text.split("<svg")[1].split("</svg>")[0][:400]


def test_a_figure_and_its_sign_stay_together() -> None:
    text = page([Report("A", notes=["12.3 % of `x` %"])], title="A", made_by="y")
    assert "<p>12.3\xa0% of <code>x</code>\xa0%</p>" in text
    assert "\\xa0" not in text


@pytest.mark.extras
def test_a_name_in_any_script_draws_without_a_warning() -> None:
    pytest.importorskip("matplotlib")
    from errcomp.report.drawing import style as _style
    from errcomp.report.html.svg import picture

    ax = _style.canvas(None, 2.0)
    _style.heading(ax, "\u6a21\u578b \U0001f600 $x_1$")
    drawn = picture(ax, "name", "caption")
    assert drawn.alt == "\u6a21\u578b \U0001f600 $x_1$."


def test_ctrl_c_while_a_page_is_made_stays_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element that takes a generator would make a TypeError of it."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("errcomp.report.html._section", interrupt)
    with pytest.raises(KeyboardInterrupt):
        page([plain_report()], title="A", made_by="y")


def test_text_between_backticks_is_code_and_a_lone_backtick_is_text() -> None:
    def parts(text: str) -> list[Any]:
        return [one if isinstance(one, str) else (one.tag, one.text) for one in prose(text)]

    assert parts("run `a b` on `c`.") == ["run ", ("code", "a b"), " on ", ("code", "c"), "."]
    assert parts("a ` b") == ["a ` b"]
    assert parts("`a` b ` c") == ["`a` b ` c"]
    assert parts("8 % of `x %`") == ["8\u00a0% of ", ("code", "x\u00a0%"), ""]


@pytest.mark.extras
def test_a_figure_that_cannot_be_drawn_is_a_note() -> None:
    pytest.importorskip("matplotlib")

    def nothing() -> Any:
        raise InputError("no pairs to draw")

    figures = [Figure("size", "A caption.", nothing)]
    assert pictures([]) == ([], [])
    assert pictures(figures) == ([], ["Not drawn (size): no pairs to draw"])
    text = page([Report("t", figures=figures)], title="x", made_by="y")
    assert "Not drawn (size): no pairs to draw" in text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModuleNotFoundError, "Figures are left out, because Matplotlib is not installed. Install "
         "it with: pip install 'errcomp[figures]'"),
        (ImportError, "Figures are left out: Matplotlib cannot be imported (no libfoo)."),
    ],
)  # fmt: skip
def test_without_matplotlib_a_page_has_no_figures(
    monkeypatch: pytest.MonkeyPatch, error: type[ImportError], told: str
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise error("no libfoo")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert pictures([Figure("size", "A caption.", lambda: None)]) == ([], [told])
