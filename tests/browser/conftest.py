"""A headless Chromium for pages; mandatory where CI says so, else skipped if it is not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
        message = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
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
