"""Damaged outputs of simulators of accelerators and networks: read or refused, nothing else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers import (
    accelergy,
    archgym,
    astra_sim,
    chakra,
    llmcompass,
    maestro,
    pytorchsim,
    scale_sim,
    sparseloop,
    timeloop,
    triosim,
)
from errcomp.readers.registry import Format, recognise
from errcomp.readers.source import Source

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
MODULES = (
    *(accelergy, archgym, astra_sim, chakra, llmcompass, maestro, pytorchsim, scale_sim),
    *(sparseloop, timeloop, triosim),
)
READABLE = [one for module in MODULES for one in module.FORMATS if one.read is not None]
#: What breaks readers: other types, other sizes, ends of other things.
PIECES = (
    *(b"", b"\n", b",", b":", b'"', b"[", b"]", b"{}", b"\0", b"\xff", b"-1", b"nan", b"1e999"),
    *(b"9" * 400, b"18446744073709551615", b"null", b"true", b"=", b" " * 9),
)


def fixtures(one: Format) -> list[bytes]:
    folder = FIXTURES / one.name
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.read_bytes() for path in files if recognise(Source(path), [one])]


@pytest.mark.parametrize("one", READABLE, ids=lambda one: one.name)
def test_damage_is_read_or_refused(one: Format, tmp_path: Path) -> None:
    contents = fixtures(one)
    path = tmp_path / "output.txt"

    @settings(
        max_examples=50,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        content = data.draw(st.sampled_from(contents))
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(content)))
            end = min(start + data.draw(st.integers(0, 30)), len(content))
            kind = data.draw(st.sampled_from(["replace", "insert", "double", "flip"]))
            if kind == "replace":
                content = content[:start] + data.draw(st.sampled_from(PIECES)) + content[end:]
            elif kind == "insert":
                content = content[:start] + data.draw(st.sampled_from(PIECES)) + content[start:]
            elif kind == "double":
                content = content[:end] + content[start:]
            elif start < end:
                byte = bytes([content[start] ^ data.draw(st.integers(1, 255))])
                content = content[:start] + byte + content[start + 1 :]
        path.write_bytes(content)
        recognise(Source(path), READABLE)
        assert one.read is not None
        with contextlib.suppress(InputError):
            assert len(one.read(Source(path)).rows)

    check()
