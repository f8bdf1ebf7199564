"""Arguments that several commands share: fractions, and which rows to take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli.input import fraction, select
from errcomp.errors import InputError
from errcomp.tables import Pairs

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "value"), [("10%", 0.1), ("0.1", 0.1), ("12.5 %", 0.125), ("-5%", -0.05), ("2", 2.0)]
)
def test_a_fraction_is_in_per_cent_or_plain(text: str, value: float) -> None:
    assert fraction(text) == value


@pytest.mark.parametrize("text", ["wide", "", "%", "5%%"])
def test_what_is_no_fraction_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a fraction: write 5% or 0.05"):
        fraction(text)


@pytest.mark.parametrize("command", ["metrics", "audit"])
def test_levels_are_read_in_per_cent(run: Run, pairs_csv: Path, command: str) -> None:
    argv = (command, pairs_csv, "--predicted", "estimate", "--measured", "latency", "--json")
    plain, percent = (run(*argv, "--level", level) for level in ("0.8", "80%"))
    assert (plain.code, percent.code) == (0, 0)
    assert plain.out == percent.out
    assert run(*argv).out != percent.out


NAMED = Pairs(
    {
        "predicted": [1.0, 2.0, 3.0],
        "measured": [1.0, 2.0, 3.0],
        "device": ["A", "B", "B"],
        "shape": ["m=1,n=2", "m=1,n=2", "device=B"],
    }
)


@pytest.mark.parametrize(
    ("items", "rows"),
    [([], 3), (["device=B"], 2), (["shape=m=1,n=2"], 2), (["shape=device=B"], 1)],
)
def test_a_value_may_have_commas_and_equals_signs(items: list[str], rows: int) -> None:
    assert select(NAMED, items).n == rows


@pytest.mark.parametrize(
    ("item", "hint"),
    [
        ("device=A,shape=x", "--where device=A --where shape=x"),
        ("device=A,shape=m=1,n=2", "--where device=A --where shape=m=1,n=2"),
        ("colour=red,device=A", "--where colour=red --where device=A"),
        ("device=A,shape=a b", "--where device=A --where 'shape=a b'"),
        ("device=A,colour=x", ""),
        ("shape=x,device=B", ""),  # which is a shape as well
        ("device=C", ""),
    ],
)
def test_several_keys_in_one_where_are_told_apart_for_the_user(item: str, hint: str) -> None:
    with pytest.raises(InputError, match="no (row|column)") as raised:
        select(NAMED, [item])
    _, _, found = str(raised.value).partition(". Write one --where per key: ")
    assert found == hint


ENDS = {
    "metrics --unit ms": "op,predicted,measured\na,1,2\nb,2,3",
    "propagate --unit ms": "run,kernel,predicted,measured,count\nr,k,1,2,1\nr,l,2,3.5,2",
    "propagate --errors": "kernel_class,bias,spread\n*,0.01,0.1",
    "halflife forecast --error 10%": "version,predicted,measured\n1,1,1\n2,1,1\n3,1,1.1\n4,1,1.5",
}


@pytest.mark.parametrize("command", ENDS)
def test_a_table_that_may_be_cut_off_is_noted_once(run: Run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "table.csv"
    for end, n in (("", 1), ("\n", 0)):
        path.write_text(ENDS[command] + end)
        found = run(*command.split(), path)
        assert found.code == 0, found.err
        assert found.err.count("The last line of table.csv has no line end") == n
