from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_examples_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_counts_of_the_replication_are_those_of_the_code() -> None:
    from errcomp.claims.replicate import replicate_survey

    counts = replicate_survey().counts()["all"]
    same = counts["reproduced"] + counts["reproduced under another rule"]
    recomputed = same + counts["not reproduced"]
    page = ROOT / "docs" / "published-figures.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert f"{recomputed + counts['no data']} printed cells" in text
    assert f"{recomputed} are recomputed; {same} of these match the printed value" in text
    assert (
        f"({counts['reproduced under another rule']} of the {same} only under another rule," in text
    )
    assert f"and {counts['not reproduced']} do not" in text
    assert f"For the {counts['no data']} cells that are not recomputed" in text


@pytest.mark.extras
def test_the_picture_is_what_the_code_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    picture.main(tmp_path / "audit.svg")
    assert (tmp_path / "audit.svg").read_bytes() == (ROOT / "docs" / "audit.svg").read_bytes()
