"""Every code that any part of the package can print is explained, and no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from errcomp.caveats import CHECKS, explain
from errcomp.caveats._registry import ELSEWHERE, PROPAGATED

ROOT = Path(__file__).parents[2] / "errcomp"


@cache
def codes() -> frozenset[str]:
    """Return every text that may be the code of a caveat made in the package."""
    return frozenset(code for path in ROOT.rglob("*.py") for code in _codes(path))


def _codes(path: Path) -> Iterator[str]:
    if "Caveat(" not in (text := path.read_text(encoding="utf-8")):
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Caveat":
            continue
        for part in ast.walk(node.args[0]):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def test_every_code_in_the_package_is_explained() -> None:
    assert {"in-sample", "few-clusters", "few-configurations", "untracked-causes"} <= codes()
    for code in codes():
        assert "What to do: " in explain(code)


def test_no_explanation_is_of_a_code_that_nothing_has() -> None:
    assert {one.code for one in (*CHECKS, *ELSEWHERE, *PROPAGATED)} - codes() == set()


def test_the_documentation_has_every_code() -> None:
    page = (ROOT.parent / "docs" / "caveats.md").read_text(encoding="utf-8")
    assert [code for code in sorted(codes()) if f"`{code}`" not in page] == []


def test_one_code_may_have_several_explanations() -> None:
    text = explain("few-clusters")
    assert "An interval from few clusters." in text
    assert "Errors estimated from few devices or runs." in text
