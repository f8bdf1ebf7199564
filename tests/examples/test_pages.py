"""Every python block of the pages on the examples runs, and prints what is shown below it."""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
NUMBER = re.compile(r"\d[\d.]*(?:e\+\d+)?")


def words(text: str) -> list[str]:
    """Text between the numbers, without spaces."""
    return ["".join(part.split()) for part in NUMBER.split(text)]


def last_digit(number: str) -> float:
    """Value of one unit of the last digit shown."""
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - decimals))


def differing(shown: str, printed: str) -> list[str]:
    """Numbers that are not the same but for one unit of the last digit."""
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return [
        f"{a} is now {b}"
        for a, b in pairs
        if not math.isclose(float(a), float(b), rel_tol=0.003, abs_tol=1.01 * last_digit(a))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["training-64-gpus.md", "serving-p99.md"])
def test_blocks_print_what_is_shown(page: str) -> None:
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    known: dict[str, Any] = {}
    for source, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, page, "exec"), known)
        assert words(printed.getvalue()) == words(shown), printed.getvalue()
        assert differing(shown, printed.getvalue()) == [], printed.getvalue()


@pytest.mark.parametrize("page", ["training-64-gpus.md", "serving-p99.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_a_changed_number_is_noticed() -> None:
    assert differing("48.4 s", "48.5 s") == []
    assert differing("48.4 s", "48.6 s") == ["48.4 is now 48.6"]
    assert differing("0.29", "0.31") == ["0.29 is now 0.31"]
    assert differing("4.492e+17", "4.51e+17") == ["4.492e+17 is now 4.51e+17"]
