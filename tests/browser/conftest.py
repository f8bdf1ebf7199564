"""A headless Chromium for pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Start Debian's Chromium under Playwright."""
    api = pytest.importorskip("playwright.sync_api")
    path = which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=[
                *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update"),
                "--disable-sync",
            ],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of the NeuSight audit as the README says."""
    pytest.importorskip("matplotlib")
    from errcomp.cli import main

    path = tmp_path_factory.mktemp("page") / "report.html"
    assert main(["report", "neusight", "-o", str(path)]) == 0
    return path


@pytest.fixture
def opened(chromium: Any, report: Path) -> Iterator[Callable[..., Any]]:
    """Open a page and fail if it asks for anything or complains."""
    contexts = []
    said: list[str] = []

    def call(path: Path = report, **options: Any) -> Any:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request",
            lambda request: request.url == path.as_uri() or said.append(f"asks {request.url}"),
        )
        page.goto(path.as_uri())
        return page

    yield call
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture(scope="session")
def broad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page of tables with ever more columns of figures, and of long names."""
    from errcomp.report.html import page
    from errcomp.report.model import Cell, Column, Form, Report, Table

    figure = Form(lambda i: Cell(f"{100 + i}.25 % [99.5, {200 + i}.5]", 100.0 + i), right=True)
    word = Form(Cell, right=True)
    tables = []
    for n in (3, 9, 14, 30):
        columns = [
            Column("Configuration", lambda k: f"A100-80G/{'long_name_' * 9}/{k}"),
            *(Column(f"figure {i}", lambda _, i=i: i, figure) for i in range(n)),
            Column("The last of the heads", lambda k, n=n: f"end-{n}-{k}", word),
        ]
        tables.append(Table(f"With {n} figures", columns, range(60)))
    path = tmp_path_factory.mktemp("broad") / "broad.html"
    text = page([Report("Tables", tables=tables)], title="Tables", made_by="errcomp")
    path.write_text(text, encoding="utf-8")
    return path
