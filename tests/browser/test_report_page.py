"""The page of the NeuSight audit in a browser: what it shows, how it answers, who can use it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import main

pytestmark = [pytest.mark.extras, pytest.mark.browser]

Open = Callable[..., Any]


def table(page: Any, title: str) -> Any:
    return page.get_by_role("table", name=title)


def column(page: Any, title: str, at: int) -> list[str]:
    cells = table(page, title).locator(f"tbody tr:not([hidden]) > :nth-child({at})")
    return [text.strip() for text in cells.all_inner_texts()]


GROUPS = "Claimed and recomputed accuracy"


def test_it_is_small_and_complete(report: Path, opened: Open) -> None:
    assert report.stat().st_size <= 1_000_000
    page = opened()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Does the claimed accuracy")
    assert page.locator("figure.picture svg").count() >= 6
    assert "Overstated" in page.locator(".verdict").first.inner_text()


def test_numbers_are_those_of_the_document(
    opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    from errcomp.results import format_fraction

    main(["audit", "neusight", "--json"])
    document = json.loads(capsys.readouterr().out)
    page = opened()
    rows = [*document["rows"], *document["overall"]]
    assert column(page, GROUPS, 3) == [str(row["n"]) for row in rows]
    assert len(rows) == 19
    for at, name in ((5, "mape"), (6, "max_ape")):
        values = column(page, GROUPS, at)
        for text, row in zip(values, rows, strict=True):
            assert text.startswith(format_fraction(row[name])), (name, row)
            if row.get(f"{name}_low") is not None:
                assert f"[{100 * row[f'{name}_low']:.1f}, " in text
    words = [word.removeprefix("? ").removeprefix("✗ ") for word in column(page, GROUPS, 7)]
    judged = [(row["verdict"], row["verdict_jointly"]) for row in rows]
    assert words == [f"maybe {a}" if b not in (None, a) else a for a, b in judged]


def test_a_click_on_a_head_sorts_by_value(opened: Open) -> None:
    page = opened()
    head = table(page, GROUPS).get_by_role("button", name="MAPE")
    head.click()
    values = [float(text.split()[0]) for text in column(page, GROUPS, 5)]
    assert values == sorted(values)
    assert values[-1] > 10 > values[0]  # by number: as text 10 would come before 9
    head.click()
    assert [float(text.split()[0]) for text in column(page, GROUPS, 5)] == values[::-1]
    assert table(page, GROUPS).locator("th[aria-sort=descending]").count() == 1
    assert page.locator("#told").inner_text().startswith("Sorted by MAPE")


def test_rows_without_a_number_stay_last_both_ways(opened: Open) -> None:
    page = opened()
    head = table(page, GROUPS).get_by_role("button", name="Claim")
    for _ in range(2):
        head.click()
        claimed = column(page, GROUPS, 4)
        first = claimed.index("—")
        assert first == 8
        assert set(claimed[first:]) == {"—"}


def test_filters_by_words_and_by_value(opened: Open) -> None:
    page = opened()
    holder = page.locator(".table", has=table(page, GROUPS))
    holder.get_by_label("Filter").fill("h100")
    assert column(page, GROUPS, 1) == ["H100", "H100"]
    holder.get_by_label("Filter").fill("")
    holder.get_by_label("Verdict").select_option(label="? maybe overstated")
    assert column(page, GROUPS, 1) == ["H100", "L4"]
    assert holder.locator(".hint").inner_text() == "2 of 19 rows"


def test_caveats_unfold_with_what_to_do(opened: Open) -> None:
    page = opened()
    row = table(page, GROUPS).locator("tbody tr").nth(3)
    fold = page.locator(".fold").filter(has_text="H100 inference: maybe overstated, 6 caveats")
    assert not fold.locator(".remedy").first.is_visible()
    row.locator("a").click()
    assert fold.locator(".remedy").count() == 6
    assert fold.locator(".remedy").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_verdict_and_the_main_picture_need_no_scrolling(opened: Open) -> None:
    page = opened(viewport={"width": 1280, "height": 800})
    answer = page.locator(".answer")
    for part in (".headline", ".verdict >> nth=0", "figure.picture svg"):
        box = answer.locator(part).bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 800, part
    assert answer.locator(".headline").inner_text().startswith("MAPE 9.99")
    words, picture = (answer.locator(part).bounding_box() for part in (".words", ".picture"))
    assert words["x"] + words["width"] <= picture["x"]


@pytest.mark.parametrize("width", [400, 1280])
def test_the_contents_lead_to_each_part(opened: Open, width: int) -> None:
    page = opened(viewport={"width": width, "height": 800})
    links = page.get_by_role("navigation", name="On this page").get_by_role("link")
    assert links.first.inner_text() == "Answer"
    assert links.count() >= 6
    for link in links.all():
        link.click()
        part = page.locator(link.get_attribute("href"))
        assert part.count() == 1
        assert part.bounding_box()["y"] < 800
    # Beside the text on a wide screen, where they stay in view.
    stays = links.first.bounding_box()["y"] >= 0
    assert stays is (width == 1280)


def test_filtering_rows_filters_their_caveats(opened: Open) -> None:
    page = opened()
    holder = page.locator(".table", has=table(page, GROUPS))
    folds = holder.locator(".fold:visible")
    before = folds.count()
    holder.get_by_label("Filter").fill("h100")
    assert [fold.locator("summary").inner_text()[:4] for fold in folds.all()] == ["H100", "H100"]
    holder.get_by_label("Filter").fill("")
    assert folds.count() == before > 2


def test_a_figure_is_enlarged_and_dragged(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.picture").first
    svg = figure.locator("svg")

    def view() -> list[float]:
        return [float(part) for part in svg.get_attribute("viewBox").split()]

    full = view()
    larger = figure.get_by_role("button", name="Enlarge the figure")
    smaller = figure.get_by_role("button", name="Reduce the figure")
    smaller.click()
    assert view() == pytest.approx(full)
    larger.click()
    x, y, width, height = view()
    assert (width, height) == pytest.approx((full[2] / 2, full[3] / 2))
    assert (x, y) == pytest.approx((full[2] / 4, full[3] / 4))
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, box["y"] + 100)
    page.mouse.up()
    page.mouse.move(box["x"] + 150, box["y"] + 100)
    assert view()[0] == pytest.approx(x + 50 * width / box["width"], rel=0.01)
    for _ in range(5):
        larger.click()
    assert view()[2] == pytest.approx(full[2] / 8)
    for _ in range(5):
        smaller.click()
    assert view() == pytest.approx(full)


def test_series_of_a_figure_are_hidden_and_shown(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.picture", has=page.locator("[data-series]")).first
    names = json.loads(figure.get_attribute("data-series"))
    assert len(names) > 2
    button = figure.get_by_role("button", name=names[1], exact=True)
    drawn = figure.locator('svg [data-series="1"]')
    assert drawn.count() >= 1
    assert drawn.first.is_visible()
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert not drawn.first.is_visible()
    assert figure.locator('svg [data-series="0"]').first.is_visible()
    button.click()
    assert drawn.first.is_visible()


def test_a_figure_answers_the_pointer(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.picture").filter(has=page.locator("script.spots")).first
    spots = json.loads(figure.locator("script.spots").inner_text() or "null") or json.loads(
        figure.locator("script.spots").text_content()
    )
    x, y, text = spots[0]
    figure.scroll_into_view_if_needed()
    at = figure.locator("svg").evaluate(
        "(svg, [x, y]) => { const p = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());"
        " return [p.x, p.y]; }",
        [x, y],
    )
    page.mouse.move(*at)
    tip = figure.locator(".tip")
    assert tip.is_visible()
    assert tip.inner_text() in [spot[2].strip() for spot in spots]
    ring = figure.locator(".ring").bounding_box()
    assert abs(ring["x"] + ring["width"] / 2 - at[0]) < 25
    page.mouse.move(1, 1)
    assert not tip.is_visible()
    assert text


def test_a_figure_answers_the_keyboard(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.picture").filter(has=page.locator("script.spots")).first
    spots = json.loads(figure.locator("script.spots").text_content())
    figure.locator(".frame").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert figure.locator(".tip").text_content() == spots[1][2]
    assert page.locator("#told").text_content() == spots[1][2]
    page.keyboard.press("Escape")
    assert not figure.locator(".tip").is_visible()


def test_colours_follow_the_system_and_the_button(opened: Open) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    dark, light = "rgb(20, 23, 26)", "rgb(255, 255, 255)"
    page = opened(color_scheme="dark")
    assert page.evaluate(ground) == dark
    button = page.get_by_role("button", name="Colours")
    button.click()
    assert page.evaluate(ground) == light
    button.click()
    assert page.evaluate(ground) == dark
    assert opened(color_scheme="light").evaluate(ground) == light


def test_it_reads_without_scripts(opened: Open) -> None:
    page = opened(java_script_enabled=False)
    assert page.locator("figure.picture svg").first.is_visible()
    assert page.locator("table.grid tbody tr").count() >= 19
    assert page.locator(".tools").count() == 0
    assert "Overstated" in page.locator("main").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_axe_finds_nothing(opened: Open, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    page = opened(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    page.evaluate(script)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [
        (one["id"], one["impact"], [n["html"] for n in one["nodes"][:2]]) for one in found
    ] == []


def test_a_model_named_script_is_a_name(opened: Open, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    lines = ["device,model,mode,predicted,measured"]
    lines += [f"{evil},<img src=x onerror=alert({i})>,inference,{90 + i},100" for i in range(12)]
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    target = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "pairs.csv"), "-o", str(target)]) == 0
    page = opened(target)
    assert evil in page.locator("main").inner_text()
    assert page.locator("img").count() == 0
    assert len(re.findall("<script>", target.read_text())) == 1
