"""Pages with `pycon` blocks run as they stand: Python blocks in one namespace, in their order."""

from __future__ import annotations

import doctest
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import pytest

from errcomp.caveats import CHECKS
from errcomp.caveats._registry import ELSEWHERE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```", re.M | re.S)
HEADING = re.compile(r"^#+ (.*)$", re.M)
#: Pages whose examples need a package beyond the core.
NEEDS = {"caveats.md": "statsmodels"}
TEXTS = {
    file.relative_to(DOCS).as_posix(): file.read_text(encoding="utf-8")
    for file in sorted(DOCS.rglob("*.md"))
}
PAGES = [
    pytest.param(page, marks=[pytest.mark.extras] if page in NEEDS else [])
    for page, text in TEXTS.items()
    if "\n```pycon\n" in text
]
CODES = {one.code for one in (*CHECKS, *ELSEWHERE)}


def run_blocks(text: str, name: str, known: dict[str, Any]) -> list[str]:
    """Run the blocks of a text; return what differs from the output shown."""
    found = []
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(2))
        if block[1] == "python":
            exec(compile("\n" * line + block[2], name, "exec"), known)
            continue
        example = parser.get_doctest(block[2], known, name, name, line)
        assert example.examples, f"{name}, line {line}: a pycon block without >>>"
        said = io.StringIO()
        runner.run(example, out=said.write, clear_globs=False)
        if said.getvalue():
            found.append(said.getvalue())
        known.update(example.globs)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_python_of_a_page_runs_and_prints_what_is_shown(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    monkeypatch.chdir(tmp_path)
    differs = run_blocks(TEXTS[page], page, {"__name__": "page"})
    assert differs == [], "\n".join(differs)


def test_an_output_that_is_not_what_is_shown_is_noticed() -> None:
    page = "```python\na = 2\n```\n\n```pycon\n>>> a\n{}\n```\n"
    assert run_blocks(page.format(2), "page.md", {}) == []
    assert "Expected:\n    3\nGot:\n    2" in run_blocks(page.format(3), "page.md", {})[0]


def sections(text: str) -> dict[str, str]:
    """Return what stands under each heading, up to the next heading of any depth."""
    parts = HEADING.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.extras
def test_every_caveat_has_a_heading_and_an_example_that_triggers_it_alone() -> None:
    pytest.importorskip("statsmodels")
    page = sections(TEXTS["caveats.md"])
    assert {title.strip("`") for title in page if title.startswith("`")} == CODES
    for title, text in page.items():
        if not title.startswith("`"):
            continue
        shown = [out for kind, out in BLOCK.findall(text) if kind == "pycon"]
        printed = [
            example.want for one in shown for example in doctest.DocTestParser().get_examples(one)
        ]
        codes = re.findall(r"^([a-z0-9-]+): ", "".join(printed), re.M)
        assert codes, f"{title}: no example"
        assert set(codes) == {title.strip("`")}


@pytest.mark.parametrize("page", ["choosing-a-metric.md", "glossary.md", "caveats.md"])
def test_links_within_the_documentation_lead_to_a_heading(page: str) -> None:
    lost = []
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", TEXTS[page]):
        text = TEXTS.get(target or page)
        if text is None:
            lost.append(target)
        elif anchor and anchor not in {slug(title) for title in HEADING.findall(text)}:
            lost.append(f"{target}#{anchor}")
    assert lost == []


@pytest.mark.parametrize("page", [p for p in TEXTS if p.startswith("tutorials/")])
def test_links_of_a_tutorial_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)", TEXTS[page])
    assert links
    assert [link for link in links if not (DOCS / page).parent.joinpath(link).exists()] == []


def slug(title: str) -> str:
    """Anchor that code hosts and MyST give a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def test_tutorials_say_how_to_go_on_with_own_data() -> None:
    pages = [text for page, text in TEXTS.items() if page.startswith("tutorials/")]
    assert len(pages) == 4
    for text in pages:
        assert "\n## With your own data\n" in text
        assert "\n**Next**: " in text


def test_every_figure_of_the_registry_is_on_the_page_that_chooses() -> None:
    from errcomp.metrics import FIGURES

    table = sections(TEXTS["choosing-a-metric.md"])["All figures"].replace("`_", "`within_")
    assert [name for name in FIGURES if f"`{name}`" not in table] == []


def test_the_glossary_is_what_errcomp_explains() -> None:
    spec = importlib.util.spec_from_file_location("glossary", ROOT / "tools" / "glossary.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert TEXTS["glossary.md"] == tool.glossary(), "run: python tools/glossary.py"
