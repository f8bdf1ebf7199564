"""A value that a reader refuses is named with its own line, in every text format."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.registry import Format, formats, recognise
from errcomp.readers.core.source import Source

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
FORMATS = [f for f in formats() if f.read and not f.folder and (FIXTURES / f.name).is_dir()]
#: Tools whose files have no lines to name (JSON, YAML, blocks, rows), or skip a damaged one.
WITHOUT = {
    *("Accelergy", "Ansor", "Chakra", "JAX", "MetaSchedule", "PyTorch profiler", "SimuMax", "TVM"),
    *("GRANITE", "TrioSim", "errcomp"),
}
_NUMBER = re.compile(rb"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
#: Numbers that are damaged in one file.
_MOST = 32


def damaged(content: bytes) -> list[tuple[int, str, bytes]]:
    """Return files with one bad number each, and its line."""
    lines = content.split(b"\n")
    numbers = [(i, found) for i, line in enumerate(lines) for found in _NUMBER.finditer(line)]
    changed = []
    for k, (i, match) in enumerate(numbers[:: -(-len(numbers) // _MOST) or 1]):
        bad = ("7q7", "-77.5")[k % 2]
        line = lines[i][: match.start()] + bad.encode() + lines[i][match.end() :]
        changed.append((i + 1, bad, b"\n".join([*lines[:i], line, *lines[i + 1 :]])))
    return changed


def refused(one: Format, path: Path) -> list[tuple[int, int, str]]:
    """Return the line of each bad value that a message quotes, and the line that it names."""
    assert one.read is not None
    found = []
    for line, bad, changed in damaged(path.read_bytes()):
        path.write_bytes(changed)
        try:
            one.read(Source(path))
        except InputError as error:
            named = re.search(r"\blines? (\d+)", str(error))
            if named and bad in str(error):
                found.append((line, int(named[1]), str(error)))
    return found


@pytest.mark.parametrize("tool", sorted({one.tool for one in FORMATS} - WITHOUT))
def test_the_line_of_a_bad_value_is_named(tool: str, tmp_path: Path) -> None:
    lines = []
    for one in FORMATS:
        if one.tool == tool:
            folder = shutil.copytree(FIXTURES / one.name, tmp_path / one.name)
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            own = next(path for path in files if recognise(Source(path), [one]))
            if b"\0" not in own.read_bytes():
                lines += refused(one, own)
    assert lines
    assert [line for line in lines if line[0] != line[1]] == []
