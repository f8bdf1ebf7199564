"""Inputs that fuzzing found to break a reader: each is read or refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source

FOUND = Path(__file__).parents[1] / "data" / "fuzz"


@pytest.mark.parametrize("path", sorted(FOUND.iterdir()), ids=lambda path: path.name)
def test_what_fuzzing_found(path: Path) -> None:
    source = Source(path)
    formats = []
    with contextlib.suppress(InputError):
        formats = recognise(source)
    for one in formats:
        if one.read is not None:
            with contextlib.suppress(InputError):
                assert len(one.read(Source(path)).rows)
