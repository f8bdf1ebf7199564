"""A damaged file may hold a line of any length: the time to read it grows in proportion."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.readers.core.registry import Format, recognise
from errcomp.readers.core.source import Source
from errcomp.readers.joining import normalised
from errcomp.readers.profilers.phases import phase_of
from tests.readers.test_every_format import READABLE, main_file

#: Characters of a run. Where each position is compared with all others, it takes ten seconds.
LONG, SECONDS = 40_000, 2.0
#: What is repeated; the first two in the fast tests.
RUNS = (" ", "1", "a", "[", "(", "-", ".", "a ", "1,", "[.", ":", "/")


def damaged(content: bytes, lines: int, runs: tuple[str, ...]) -> Iterator[bytes]:
    """Put runs into the middle and to the end of lines, of which none are alike."""
    whole = content.split(b"\n")
    shapes: dict[bytes, int] = {}
    for i, line in enumerate(whole):
        shapes.setdefault(re.sub(rb"[\d.]+", b"0", line)[:60], i)
    for i in islice(shapes.values(), lines):
        line = whole[i]
        for at in {len(line) // 2, len(line)}:
            for run in runs:
                long = (run * (LONG // len(run))).encode()
                yield b"\n".join([*whole[:i], line[:at] + long + line[at:], *whole[i + 1 :]])


def seconds(one: Format, path: Path) -> float:
    began = time.process_time()
    recognise(Source(path))
    assert one.read is not None
    # `ingest` refuses what is nested too deeply.
    with contextlib.suppress(InputError, RecursionError):
        one.read(Source(path))
    return time.process_time() - began


def check(one: Format, folder: Path, lines: int, runs: tuple[str, ...]) -> None:
    content = main_file(one.name).read_bytes()
    path = folder / main_file(one.name).name
    for text in damaged(content, lines, runs):
        path.write_bytes(text)
        took = seconds(one, path)
        short = re.sub(rb"(..?)\1{99,}", rb"\1...", text)
        assert took < SECONDS, short


TEXT = [one for one in READABLE if b"\0" not in main_file(one.name).read_bytes()[:1000]]


_PARSED = (".csv", ".json", ".jsonl", ".yaml", ".pbtxt")
#: Files that are read line by line, by regular expressions.
LOGS = [one for one in TEXT if main_file(one.name).suffix not in _PARSED]


@pytest.mark.parametrize("one", LOGS, ids=lambda one: one.name)
def test_a_long_line_takes_little_time(one: Format, tmp_path: Path) -> None:
    check(one, tmp_path, 6, RUNS[:2])


@pytest.mark.slow
@pytest.mark.parametrize("one", TEXT, ids=lambda one: one.name)
def test_no_long_line_takes_much_time(one: Format, tmp_path: Path) -> None:
    check(one, tmp_path, 14, RUNS)


@pytest.mark.parametrize("run", ["1", " ", "1.", "a", "1,"])
def test_a_long_cell_takes_little_time(tmp_path: Path, run: str) -> None:
    path = tmp_path / "pairs.csv"
    long = run * (LONG // len(run))
    path.write_text(f'model,predicted,measured\na,1,2\nb,{long}x,3\nc,2,"{long}x"\n')
    began = time.process_time()
    with pytest.raises(InputError, match=r"pairs\.csv"):
        ec.read(path)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("run", ["_1", ".1", "1.", "=", "(", "a", " "])
def test_a_long_name_takes_little_time(run: str) -> None:
    began = time.process_time()
    for name in (f"x{run * LONG}y", f"x{run * LONG}"):
        normalised(name)
        phase_of(name)
    assert time.process_time() - began < SECONDS
