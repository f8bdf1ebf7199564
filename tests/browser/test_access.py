"""Pages for every reader: narrow, enlarged, without motion, in colours of the system's choice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.extras, pytest.mark.browser]

Open = Callable[..., Any]
WIDE = "document.documentElement.scrollWidth"


@pytest.mark.parametrize("which_page", ["report", "broad"])
@pytest.mark.parametrize("width", [360, 600, 1200])  # 600: 1200 at 200 %
def test_nothing_is_cut_off_at_any_width(
    opened: Open, width: int, which_page: str, request: pytest.FixtureRequest
) -> None:
    page = opened(request.getfixturevalue(which_page), viewport={"width": width, "height": 800})
    assert page.evaluate(WIDE) <= width


def test_nothing_is_cut_off_in_type_of_twice_the_size(opened: Open) -> None:
    page = opened(viewport={"width": 1200, "height": 800})
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate(WIDE) <= 1200


def test_a_figure_that_scrolls_says_so_and_scrolls_by_the_keyboard(opened: Open) -> None:
    page = opened(viewport={"width": 360, "height": 800})
    figure = page.locator("figure.picture", has=page.locator("script.spots")).nth(1)
    frame = figure.locator(".frame")
    cue = "e => getComputedStyle(e, '::before').content"
    assert "scroll sideways" in frame.evaluate(cue)
    assert frame.evaluate("e => e.scrollWidth > e.clientWidth && e.tabIndex === 0")
    spots = json.loads(figure.locator("script.spots").text_content())
    last = max(range(len(spots)), key=lambda i: spots[i][0])
    frame.focus()
    for _ in range(last + 1):
        page.keyboard.press("ArrowRight")
    ring = figure.locator(".ring").bounding_box()
    box = frame.bounding_box()
    assert box["x"] <= ring["x"] + ring["width"] / 2 <= box["x"] + box["width"]
    assert frame.evaluate("e => e.scrollLeft") > 0
    wide = opened(viewport={"width": 1200, "height": 800}).locator(".frame").first
    assert wide.evaluate(cue) == "none"
    assert wide.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_a_table_that_scrolls_says_so_only_where_it_does(opened: Open, broad: Path) -> None:
    page = opened(broad, viewport={"width": 1200, "height": 800})
    cue = "e => getComputedStyle(e, '::before').content"

    def holder(n: int) -> Any:
        return page.locator(".wide", has=page.get_by_role("table", name=f"With {n} figures"))

    assert (holder(3).evaluate(cue), "scroll" in holder(30).evaluate(cue)) == ("none", True)
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("document.querySelectorAll('.scrolls').length === 4")
    assert "scroll sideways" in holder(3).evaluate(cue)
    page.emulate_media(media="print")
    assert holder(3).evaluate(cue) == "none"


def test_heads_of_narrow_pages_are_not_towers(opened: Open, tmp_path: Path) -> None:
    from errcomp.report import forms
    from errcomp.report.html import page
    from errcomp.report.model import Column, Table, report_of

    heads = ("Half of the series expired", "n") * 4
    table = Table("Half-lives", [Column(head, lambda n: n, forms.count) for head in heads], [1])
    path = tmp_path / "heads.html"
    text = page([report_of(table)], title="Tables", made_by="errcomp")
    path.write_text(text, encoding="utf-8")
    head = opened(path, viewport={"width": 400, "height": 800}).locator("thead tr")
    size = head.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
    assert head.bounding_box()["height"] < 5.5 * size  # three lines and their padding


def test_a_shade_says_that_there_is_more_only_where_there_is(opened: Open, broad: Path) -> None:
    page = opened(broad, viewport={"width": 1200, "height": 800}, color_scheme="light")

    def darkest(title: str) -> int:
        """Return the darkest of what is drawn at the right edge, between the lines of text."""
        holder = page.locator(".wide", has=page.get_by_role("table", name=title))
        box = holder.bounding_box()
        clip = {"x": box["x"] + box["width"] - 3, "y": box["y"] + 2, "width": 2, "height": 3}
        shot = page.screenshot(clip=clip, full_page=True)
        return int(_pixels(shot).min())

    assert darkest("With 30 figures") < 210
    assert darkest("With 3 figures") == 255


def _pixels(png: bytes) -> Any:
    import io

    import matplotlib.image
    import numpy as np

    return np.round(255 * matplotlib.image.imread(io.BytesIO(png))[..., :3])


def test_nothing_moves_by_itself(opened: Open) -> None:
    page = opened(reduced_motion="reduce")
    page.locator("summary").first.click()
    page.get_by_role("button", name="Colours").click()
    assert page.evaluate("document.getAnimations().length") == 0
    moving = "[...document.querySelectorAll('*')].filter(e => { const s = getComputedStyle(e);"
    moving += " return s.animationName !== 'none' || s.scrollBehavior === 'smooth'; }).length"
    assert page.evaluate(moving) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_keep_their_ground_in_forced_colours(opened: Open, scheme: str) -> None:
    page = opened(forced_colors="active", color_scheme=scheme)
    drawn = page.locator(".frame svg").first
    style = "e => { const s = getComputedStyle(e); return [s.filter, s.backgroundColor]; }"
    assert drawn.evaluate(style) == ["none", "rgb(255, 255, 255)"]
