from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from errcomp.report.forms import as_written
from errcomp.report.model import Column, Note, Table, clean
from errcomp.report.page import Advice, Cell, Grid, Head, Section, Verdict, fragment, grid_of, page

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


def evil_section() -> Section:
    cells = [[Cell(EVIL, more=[Advice(EVIL, EVIL, EVIL)], about=EVIL), Cell(EVIL, 1.5, "bad")]]
    return Section(
        title=EVIL,
        verdicts=[Verdict(EVIL, EVIL, "bad")],
        advice=[Advice(EVIL, EVIL, EVIL)],
        grids=[Grid(EVIL, [Head(EVIL, about=EVIL), Head(EVIL, right=True)], cells, [Note(EVIL)])],
        method=[(EVIL, EVIL)],
        notes=[EVIL],
    )


def plain_section(title: str = "A result") -> Section:
    heads = [Head("Device", choice=True), Head("MAPE", right=True)]
    rows = [[Cell("H100"), Cell("8.74 %", 0.0874)], [Cell("L4"), Cell("—")]]
    return Section(title, [Verdict("Overstated", "— 2.3 %", "bad")], grids=[Grid("G", heads, rows)])


def test_text_never_becomes_markup() -> None:
    clean = Reader(page([plain_section(), plain_section()], title="x", made_by="y"))
    evil = Reader(page([evil_section(), evil_section()], title=EVIL, made_by=EVIL))
    assert evil.tags.count("script") == clean.tags.count("script") == 1
    # What is not printable is shown as its escape.
    assert any(
        "<script>alert(1)</script>" in word and "\\x00\\x1b[31m" in word for word in evil.words
    )
    assert not {name for name, _ in evil.attributes if name.startswith("on")}


def test_the_policy_allows_the_script_of_the_page_and_nothing_else() -> None:
    import base64
    import hashlib

    text = page([plain_section()], title="x", made_by="y")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy"?\s+content="([^"]*)"', text)
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", text.replace("http-equiv", ""))


def test_one_section_is_titled_by_the_page_and_several_have_their_own() -> None:
    alone = Reader(page([plain_section("A result")], title="A result", made_by="y"))
    assert (alone.tags.count("h1"), alone.tags.count("h2"), alone.tags.count("h3")) == (1, 1, 0)
    assert "nav" not in alone.tags
    both = Reader(page([plain_section("One"), plain_section("Two")], title="All", made_by="y"))
    assert (both.tags.count("h1"), both.tags.count("h2"), both.tags.count("h3")) == (1, 2, 2)
    assert [v for n, v in both.attributes if n == "href"] == ["#main", "#result-1", "#result-2"]


def test_ids_are_unique_and_labels_lead_somewhere() -> None:
    read = Reader(page([plain_section(), plain_section()], title="All", made_by="y"))
    ids = [value for name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    labels = {v for n, v in read.attributes if n == "aria-labelledby"}
    assert labels <= set(ids)


def test_the_same_sections_give_the_same_text() -> None:
    assert page([plain_section()], title="x", made_by="y") == page(
        [plain_section()], title="x", made_by="y"
    )


def test_a_tone_has_a_sign_beside_its_colour() -> None:
    text = page([plain_section()], title="x", made_by="y")
    assert re.search(r'class="verdict bad"><span class="sign" aria-hidden="true">✗</span>', text)


def test_a_cell_carries_what_it_is_sorted_by() -> None:
    text = page([plain_section()], title="x", made_by="y")
    assert 'data-value="0.0874"' in text
    assert text.count("data-value=") == 1  # a cell without a number has none


def test_a_figure_and_its_interval_are_two_parts_of_one_text() -> None:
    heads = [Head("Device"), Head("MAPE", right=True)]
    grid = Grid("G", heads, [[Cell("H100 [a b]"), Cell("8.74 % [3.3, 52.0]‡", 0.0874)]])
    text = page([Section("A", grids=[grid])], title="A", made_by="y")
    whole = '<span class="whole">'
    assert f"{whole}8.74 %</span> {whole}[3.3, 52.0]‡</span>" in text
    assert text.count(whole) == 2  # words may break anywhere between them


@pytest.mark.parametrize(("n", "broad"), [(4, False), (12, True)])
def test_tables_of_many_figures_are_printed_across(n: int, broad: bool) -> None:
    heads = [Head("Device"), *(Head(f"x{i}", right=True) for i in range(n))]
    row = [Cell("a_very_long_name_of_a_device"), *[Cell("8.74 % [3.3, 52.0]")] * n]
    text = page([Section("A", grids=[Grid("G", heads, [row])])], title="A", made_by="y")
    characters = 16 + 2 + n * (len("[3.3, 52.0]") + 2)
    assert (f'class="table broad" style="--characters: {characters}"' in text) == broad
    assert ('<div class="table">' in text) != broad
    assert 'class="long"' in text


def test_a_fragment_has_its_style_and_no_script() -> None:
    read = Reader(fragment(evil_section()))
    assert "style" in read.tags
    assert "script" not in read.tags


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8.74 % [5.6, 12.1]", 8.74),
        ("−3.5 %", -3.5),
        ("218,432", 218432.0),
        ("–", None),
        ("", None),
    ],
)
def test_tables_of_the_terminal_sort_by_their_first_number(text: str, value: float | None) -> None:
    table = Table("T", [Column("x", lambda r: r["x"], form=as_written)], [{"x": text}], ["note"])
    grid = grid_of(table)
    assert (grid.rows[0][0].text, grid.rows[0][0].value) == (text, value)
    assert grid.notes == [Note("note")]


@pytest.mark.extras
def test_a_figure_keeps_its_ids_apart_and_its_points_in_a_data_block() -> None:
    pytest.importorskip("matplotlib")
    from errcomp.report import _hover, _style
    from errcomp.report.page._svg import picture

    def drawn(name: str) -> Any:
        ax = _style.canvas(None, 2.0)
        ax.plot([0, 1], [0, 1], "o", clip_on=True)
        ax.set_xlim(0, 2)
        ax.set_ylim(0, 2)
        _hover.tell(ax, [0.0, 1.0], [0.0, 1.0], ["first </script>", EVIL])
        _style.heading(ax, "A title", ["a note, p=0.00123"])
        _style.name_axes(ax, x="time (ms)")
        return picture(ax, name, "How to read it")

    one = drawn("dots")
    assert one.alt == "A title. a note, p=0.00123. Axes: time (ms)."
    assert [spot[2] for spot in one.spots] == ["first </script>", clean(EVIL)]
    (x0, y0, _), (x1, y1, _) = one.spots
    assert x1 > x0
    assert y1 < y0  # an SVG counts downwards
    text = page(
        [Section("A", pictures=[one]), Section("B", pictures=[one])], title="x", made_by="y"
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
    text = page([Section("A", notes=["12.3 % of `x` %"])], title="A", made_by="y")
    assert "<p>12.3\xa0% of <code>x</code>\xa0%</p>" in text
    assert "\\xa0" not in text


@pytest.mark.extras
def test_a_name_in_any_script_draws_without_a_warning() -> None:
    pytest.importorskip("matplotlib")
    from errcomp.report import _style
    from errcomp.report.page._svg import picture

    ax = _style.canvas(None, 2.0)
    _style.heading(ax, "\u6a21\u578b \U0001f600 $x_1$")
    drawn = picture(ax, "name", "caption")
    assert drawn.alt == "\u6a21\u578b \U0001f600 $x_1$."
