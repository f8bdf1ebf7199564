"""The site is built with warnings as errors; then its pages are read as a browser would.

Run by `make docs`. External links are checked for their form only: nothing here uses the network.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from errcomp.claims.entries import json_schema as schema_of_claims
from errcomp.documents import CLASSES, ROWS_ONLY, json_schema

pytest.importorskip("sphinx")
pytest.importorskip("myst_nb")
pytest.importorskip("ipykernel")
pytest.importorskip("furo")
bs4 = pytest.importorskip("bs4")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytestmark = [pytest.mark.site, pytest.mark.extras]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
#: What a browser fetches by itself, by tag and attribute. A link that is clicked is not among them.
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
    ("video", "src"),
}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once, where `make site` wants it; whatever Sphinx warns of fails."""
    out = Path(os.environ.get("ERRCOMP_SITE") or tmp_path_factory.mktemp("site"))
    command = [sys.executable, "-m", "sphinx", "-E", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    # Named, as a terminal's width must not show.
    environment = {**os.environ, "COLUMNS": "40", "OMP_NUM_THREADS": "1"}
    built = subprocess.run(
        [*command, "-d", str(out / "doctrees"), str(DOCS), str(out / "html")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-6000:]
    return out / "html"


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, bs4.BeautifulSoup]:
    return {
        page: bs4.BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
        for page in sorted(site.rglob("*.html"))
    }


@pytest.fixture(scope="session")
def entries(site: Path) -> set[str]:
    """Return all names of Python that the site describes."""
    from sphinx.util.inventory import InventoryFile

    data = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    return {name for kind, named in data.items() if kind.startswith("py:") for name in named}


def test_every_link_and_anchor_leads_somewhere(
    site: Path, pages: dict[Path, bs4.BeautifulSoup]
) -> None:
    ids = {page: {tag["id"] for tag in soup.find_all(id=True)} for page, soup in pages.items()}
    lost = []
    for page, soup in pages.items():
        for link in soup.find_all("a", href=True):
            parts = urlsplit(link["href"])
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            # "#" alone is the top of the page.
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and anchor not in ids.get(target, {anchor})):
                lost.append(f"{page.relative_to(site)}: {link['href']}")
    assert len(pages) > 20
    assert lost == []


def test_links_elsewhere_are_well_formed(pages: dict[Path, bs4.BeautifulSoup]) -> None:
    links = {link["href"] for soup in pages.values() for link in soup.find_all("a", href=True)}
    outward = {link for link in links if urlsplit(link).scheme}
    good = re.compile(r"https?://[a-z0-9.-]+\.[a-z]{2,}(/\S*)?")
    assert {link for link in outward if not good.fullmatch(link)} == set()


def test_pages_fetch_nothing_from_elsewhere(
    site: Path, pages: dict[Path, bs4.BeautifulSoup]
) -> None:
    found = []
    for page, soup in pages.items():
        asked = [
            tag[attribute]
            for name, attribute in FETCHED
            for tag in soup.find_all(name)
            if tag.has_attr(attribute)
        ]
        asked += [tag["href"] for tag in soup.find_all("link", href=True)]
        asked += [tag.get_text() for tag in soup.find_all("style")]
        found += [f"{page.name}: {url}" for url in asked if re.search(r"(https?:)?//\w", url)]
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        urls = re.findall(r"url\(\s*[\"']?([^)\"']+)|@import\s+[\"']([^\"']+)", text)
        found += [f"{sheet.name}: {a or b}" for a, b in urls if re.match(r"(https?:)?//", a or b)]
    assert found == []


def test_every_public_name_has_an_entry(entries: set[str]) -> None:
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        namespace: dict[str, object] = {"__file__": str(DOCS / "conf.py")}
        exec((DOCS / "conf.py").read_text(encoding="utf-8"), namespace)
    finally:
        sys.path.remove(str(DOCS / "_ext"))
    modules = namespace["public_modules"]
    assert isinstance(modules, tuple)
    wanted = set(_packages()) | set(modules)
    missing = [
        f"{module}.{name}"
        for module in sorted(wanted)
        for name in importlib.import_module(module).__all__
        if not inspect.ismodule(getattr(importlib.import_module(module), name))
        and f"{module}.{name}" not in entries
    ]
    assert missing == []
    assert {module for module in modules if module not in entries} == set()


def _packages() -> Iterator[str]:
    """Yield `errcomp` and its public packages; conf.py names the modules that are offered too."""
    package = ROOT / "errcomp"
    for init in [package / "__init__.py", *sorted(package.glob("*/__init__.py"))]:
        module = ".".join(init.parent.relative_to(ROOT).parts)
        if init.parent.name not in ("cli", "codec") and hasattr(
            importlib.import_module(module), "__all__"
        ):
            yield module


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield child
                yield from _commands(child)


def test_every_command_and_option_has_its_place(
    site: Path, pages: dict[Path, bs4.BeautifulSoup]
) -> None:
    from errcomp.cli import build_parser

    soup = pages[site / "reference" / "cli.html"]
    titles = {h.get_text().removesuffix("¶") for h in soup.find_all(re.compile("h[2-4]"))}
    ids = {tag["id"] for tag in soup.find_all(id=True)}
    parsers = list(_commands(build_parser()))
    assert [one.prog for one in parsers if one.prog not in titles] == []
    missing = [
        f"{one.prog} {name}"
        for one in parsers
        for action in one._actions
        for name in action.option_strings
        if name not in ("-h", "--help")
        and action.help != argparse.SUPPRESS
        and f"cmdoption-{one.prog.replace(' ', '-')}-{name.lstrip('-')}" not in ids
    ]
    assert missing == []


def test_every_figure_has_its_section(site: Path, pages: dict[Path, bs4.BeautifulSoup]) -> None:
    from errcomp.metrics import FIGURES

    text = pages[site / "reference" / "figures.html"].get_text(" ", strip=True)
    plain = " ".join(text.split())
    assert [name for name, one in FIGURES.items() if one.misleads not in plain] == []


def test_the_schema_of_every_document_is_published(site: Path) -> None:
    names = {path.stem.removesuffix("-1") for path in (site / "schemas").glob("*.json")}
    assert names == {*CLASSES, *ROWS_ONLY, "claims-of-a-tool-2"}
    of_claims = (site / "schemas" / "claims-of-a-tool-2.json").read_text(encoding="utf-8")
    assert json.loads(of_claims) == schema_of_claims()
    for name in names - {"claims-of-a-tool-2"}:
        text = (site / "schemas" / f"{name}-1.json").read_text(encoding="utf-8")
        assert json.loads(text) == json_schema(name)


def test_every_page_is_in_the_contents(site: Path, pages: dict[Path, bs4.BeautifulSoup]) -> None:
    """Also what Sphinx warns of, unless somebody marks a page as an orphan."""
    sidebar = pages[site / "index.html"].select(".sidebar-tree a[href]")
    listed = {(site / urlsplit(link["href"]).path).resolve() for link in sidebar}
    written = [
        page
        for page in (*DOCS.rglob("*.md"), *NOTEBOOKS)
        if not {"_ext", ".ipynb_checkpoints"} & set(page.parts)
    ]
    lost = [
        page.relative_to(DOCS).as_posix()
        for page in written
        if page.stem != "index"
        and (site / page.relative_to(DOCS)).with_suffix(".html").resolve() not in listed
    ]
    assert written
    assert lost == []


def test_formulas_are_mathml_and_search_has_an_index(
    site: Path, pages: dict[Path, bs4.BeautifulSoup]
) -> None:
    metrics = pages[site / "reference" / "api" / "metrics.html"]
    assert len(metrics.find_all("math", display="block")) > 20
    assert "\\frac" not in metrics.get_text()
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    wanted = {"latex": "pages", "mape": "reference/figures", "excel": "quickstart"}
    for word, page in wanted.items():
        found = [index[where].get(word, []) for where in ("terms", "titleterms")]
        numbers = [n for some in found for n in ([some] if isinstance(some, int) else some)]
        assert page in [index["docnames"][n] for n in numbers], word


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebooks_are_run_when_the_site_is_built(
    notebook: Path, pages: dict[Path, bs4.BeautifulSoup], site: Path
) -> None:
    """The site shows what the cells give now: the notebook itself is stored without output."""
    stored = [
        cell
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    assert [cell["outputs"] for cell in stored] == [[]] * len(stored)
    shown = pages[site / "notebooks" / f"{notebook.stem}.html"]
    plots = sum("plot()" in "".join(cell["source"]) for cell in stored)
    assert plots > 0
    assert len(shown.select(".cell_output img")) == plots
    assert len(shown.select(".cell_output .errcomp table.grid")) > 1
    assert "Traceback" not in shown.get_text()


def test_no_date_and_no_path_of_the_machine_is_in_a_page(
    site: Path, pages: dict[Path, bs4.BeautifulSoup]
) -> None:
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert str(ROOT) not in text, page
        assert "Last updated" not in text, page
