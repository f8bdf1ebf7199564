"""The list of the tools whose output is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


def test_all_tools(run: Run, stored: Callable[[str, Any], None]) -> None:
    stored("cli/readers", run("readers").out)


@pytest.mark.parametrize("tool", ["VIDUR", "Paleo", "gem5", "nsys"])
def test_a_tool(tool: str, run: Run, stored: Callable[[str, Any], None]) -> None:
    stored(f"cli/readers, {tool}", run("readers", "--tool", tool).out)


def test_values_without_a_unit_and_formats_that_are_not_read(run: Run) -> None:
    (row,) = run("readers", "--tool", "VIDUR", "--json").json["rows"]
    text = " ".join(run("readers", "--tool", "VIDUR").out.split())
    for form in row["details"]:
        if form["units"]:
            assert f"({', '.join(form['units'])})" in text
        else:
            assert f"{form['name']} – " in text
