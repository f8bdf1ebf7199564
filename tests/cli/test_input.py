"""Arguments that several commands share: fractions, in per cent or plain."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli._input import fraction

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "value"), [("10%", 0.1), ("0.1", 0.1), ("12.5 %", 0.125), ("-5%", -0.05), ("2", 2.0)]
)
def test_a_fraction_is_in_per_cent_or_plain(text: str, value: float) -> None:
    assert fraction(text) == value


@pytest.mark.parametrize("text", ["wide", "", "%", "5%%"])
def test_what_is_no_fraction_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no fraction: write 5% or 0.05"):
        fraction(text)


@pytest.mark.parametrize("command", ["metrics", "audit"])
def test_levels_are_read_in_per_cent(run: Run, pairs_csv: Path, command: str) -> None:
    argv = (command, pairs_csv, "--predicted", "estimate", "--measured", "latency", "--json")
    plain, percent = (run(*argv, "--level", level) for level in ("0.8", "80%"))
    assert (plain.code, percent.code) == (0, 0)
    assert plain.out == percent.out
    assert run(*argv).out != percent.out
