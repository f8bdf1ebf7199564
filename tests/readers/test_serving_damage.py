"""Damaged outputs of the serving and training simulators: read or refused, never another error."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers import blis, echo, frontier, llmservingsim, simai, vidur
from errcomp.readers.registry import Format, recognise
from errcomp.readers.source import Source

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
#: What tools write, and what breaks readers, besides single bytes.
PIECES = (b"\n", b",", b'"', b"{", b"]", b"null", b"-nan", b"1e999", b"-5", b"\xff", b"9" * 400)
KINDS = ("flip", "delete", "insert", "repeat")
MODULES = (vidur, frontier, llmservingsim, blis, echo, simai)


def damaged(content: bytes, data: st.DataObject) -> bytes:
    """Change up to three spans of the content."""
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        end = at + data.draw(st.integers(0, 40))
        span = content[at:end]
        kind = data.draw(st.sampled_from(KINDS))
        if kind == "flip" and span:
            span = bytes([span[0] ^ data.draw(st.integers(1, 255))]) + span[1:]
        elif kind == "delete":
            span = b""
        elif kind == "insert":
            span = data.draw(st.sampled_from(PIECES)) + span
        else:
            span = span * 2
        content = content[:at] + span + content[end:]
    return content


def read_damaged(folder: Path, path: Path, content: bytes, among: Sequence[Format]) -> None:
    """Recognise and read a damaged file beside the files that were with it."""
    shutil.copytree(path.parent, folder, dirs_exist_ok=True)
    target = folder / path.name
    target.write_bytes(content)
    with contextlib.suppress(InputError):
        recognise(Source(target), among)
    for one in among:
        # Damage may hide what it is: a user may still say so.
        here = (FIXTURES / one.name / "good" / path.name).is_file()
        if one.read is not None and here:
            with contextlib.suppress(InputError):
                assert len(one.read(Source(target)).rows)
    if path.suffix not in (".csv", ".jsonl"):
        read_beside(target, among)


def read_beside(target: Path, among: Sequence[Format]) -> None:
    """Read the files that a damaged one is read along with."""
    for other in sorted(target.parent.iterdir()):
        for one in recognise(Source(other), among) if other != target else ():
            if one.read is not None:
                with contextlib.suppress(InputError):
                    one.read(Source(other))


@pytest.mark.parametrize("module", MODULES, ids=lambda one: one.__name__.rpartition(".")[2])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_damage_is_an_input_error(module: object, data: st.DataObject) -> None:
    among: Sequence[Format] = module.FORMATS  # type: ignore[attr-defined]
    folders = [FIXTURES / one.name / "good" for one in among]
    files = sorted(path for one in folders if one.is_dir() for path in one.iterdir())
    path = data.draw(st.sampled_from(files))
    content = damaged(path.read_bytes(), data)
    with TemporaryDirectory() as folder:
        read_damaged(Path(folder), path, content, among)
