"""Pages on paper: nothing cut, nothing folded, no controls, heads again on every sheet."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import pytest

pytestmark = [pytest.mark.extras, pytest.mark.browser]

Open = Callable[..., Any]
#: Between the margins, in CSS pixels: the narrower of A4 and Letter, upright and across.
UPRIGHT, ACROSS = 703, 966
#: Which tables are wider than their sheet, by their titles.
CUT = """([upright, across]) => [...document.querySelectorAll(".table")].filter((holder) => {
    const sheet = holder.matches(".broad") ? across : upright;
    holder.style.width = `${sheet}px`;
    return holder.querySelector("table").getBoundingClientRect().width > sheet;
}).map((holder) => holder.querySelector(".below").textContent)"""


def paper(page: Any, **options: Any) -> Any:
    page.emulate_media(media="print", **options)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    return page


@pytest.mark.parametrize("which_page", ["report", "broad"])
def test_no_table_is_wider_than_its_sheet(
    opened: Open, which_page: str, request: pytest.FixtureRequest
) -> None:
    page = opened(request.getfixturevalue(which_page), viewport={"width": 703, "height": 900})
    assert page.evaluate(CUT, [UPRIGHT, ACROSS]) != []  # on a screen some scroll
    assert paper(page).evaluate(CUT, [UPRIGHT, ACROSS]) == []


def test_a_table_that_fits_is_upright_and_of_full_size(opened: Open, broad: Path) -> None:
    page = paper(opened(broad))
    holders = page.locator(".table")
    sheets = [one.evaluate("e => getComputedStyle(e).page") for one in holders.all()]
    assert sheets == ["auto", "broad", "broad", "broad"]
    sizes = page.locator("table.grid").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize) * 0.75)"
    )
    assert sizes[0] == pytest.approx(8, abs=0.01)
    assert sizes == sorted(sizes, reverse=True)
    assert 8 > sizes[1] > sizes[3] > 0


def test_no_figure_is_higher_than_its_sheet(opened: Open) -> None:
    page = paper(opened(viewport={"width": 703, "height": 900}))
    heights = page.locator("figure.picture").evaluate_all(
        "all => all.map(e => [getComputedStyle(e).breakInside, e.offsetHeight])"
    )
    assert len(heights) >= 6
    assert {how for how, _ in heights} == {"avoid"}
    assert max(height for _, height in heights) < 950  # Letter between the margins


def test_the_last_column_and_the_head_are_on_every_sheet(
    opened: Open, broad: Path, tmp_path: Path
) -> None:
    if which("pdftotext") is None:
        pytest.skip("pdftotext is not installed (Debian: apt-get install poppler-utils)")
    target = tmp_path / "page.pdf"
    opened(broad).pdf(path=target, prefer_css_page_size=True)
    made = subprocess.run(
        ["pdftotext", "-layout", target, "-"], capture_output=True, text=True, check=True
    )
    sheets = [sheet for sheet in made.stdout.split("\f") if "end-" in sheet]
    ends = set(re.findall(r"end-\d+-\d+", made.stdout))
    assert ends == {f"end-{n}-{k}" for n in (3, 9, 14, 30) for k in range(60)}
    assert len(sheets) > 5
    assert all("Configuration" in sheet for sheet in sheets)


def test_what_is_folded_is_shown_and_folded_again(opened: Open) -> None:
    page = opened()
    shown = page.locator("details[open]").count()
    paper(page)
    assert page.locator(".method dd").first.is_visible()
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == shown


def test_nothing_to_press_is_printed(opened: Open) -> None:
    page = paper(opened(color_scheme="dark"))
    for name in (".tools", ".theme", ".skip"):
        assert not page.locator(name).first.is_visible(), name
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    drawn = page.locator(".frame svg").first
    assert drawn.evaluate("e => getComputedStyle(e).filter") == "none"
