"""Take the screenshots of docs/pages.md: the page of the NeuSight audit, light, dark and narrow.

Run: python docs/screenshots.py        needs Chromium and Playwright; writes docs/page-*.png
"""

from __future__ import annotations

from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from errcomp.cli import main as errcomp

HERE = Path(__file__).parent
#: Name, colours, width and height in pixels.
SHOTS = (
    ("light", "light", 1280, 1300),
    ("dark", "dark", 1280, 1300),
    ("narrow", "light", 400, 1300),
)


def main() -> None:
    """Write the page and photograph it."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        errcomp(["report", "neusight", "-o", str(page)])
        browser = playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, scheme, width, height in SHOTS:
            shown = browser.new_page(
                color_scheme=scheme, viewport={"width": width, "height": height}
            )
            shown.goto(page.as_uri())
            figure = shown.locator("figure.picture", has=shown.locator("script.spots")).first
            if name != "narrow":  # one point answers
                figure.locator(".frame").focus()
                shown.keyboard.press("ArrowRight")
                shown.evaluate("scrollTo(0, 0)")
            shown.screenshot(path=HERE / f"page-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
