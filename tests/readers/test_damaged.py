"""Damaged files of every format: read or refused, never another error."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.propagation.graph.document import read_document
from errcomp.readers.core.registry import Format, formats, recognise
from errcomp.readers.core.source import Source

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
FORMATS = [one for one in formats() if (FIXTURES / one.name).is_dir() and not one.folder]
#: What breaks readers: other types, other sizes, ends of other things.
PIECES = (
    *(b"\n", b",", b":", b'"', b"=", b"{", b"[", b"]", b"{}", b"\0", b"\xff", b"-1", b"nan"),
    *(b"-nan", b"1e999", b"9" * 400, b"18446744073709551615", b"null", b"true", b" " * 9),
)
Change = tuple[str, float, int, bytes]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["flip", "delete", "insert", "replace", "repeat", "cut"]),
        st.floats(0, 1),
        st.integers(0, 40),
        st.sampled_from(PIECES) | st.binary(min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=4,
)


def damaged(content: bytes, changes: list[Change]) -> bytes:
    for kind, where, length, piece in changes:
        at = int(where * len(content))
        end = len(content) if kind == "cut" else at + length
        span = content[at:end]
        new = {
            "flip": bytes(byte ^ (piece[0] or 1) for byte in span),
            "delete": b"",
            "insert": piece + span,
            "replace": piece,
            "repeat": span * 2,
            "cut": b"",
        }[kind]
        content = content[:at] + new + content[end:]
    return content


def read_all(one: Format, path: Path) -> None:
    if one.read is None:
        return
    with contextlib.suppress(InputError):
        found = one.read(Source(path))
        assert len(found.rows)
        if found.graph is not None:
            read_document(found.graph())


@pytest.mark.hypothesis
@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_damage_is_read_or_refused(one: Format, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    shutil.copytree(FIXTURES / one.name, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    own = [path for path in files if recognise(Source(path), [one])]
    same_tool = [other for other in formats() if other.tool == one.tool]

    # Half as many as elsewhere: there are a hundred formats.
    @settings(
        max_examples=settings.default.max_examples // 2, suppress_health_check=list(HealthCheck)
    )
    @given(st.sampled_from(files), CHANGES, st.sampled_from(same_tool))
    def check(path: Path, changes: list[Change], other: Format) -> None:
        content = path.read_bytes()
        path.write_bytes(damaged(content, changes))
        try:
            with contextlib.suppress(InputError):
                recognise(Source(path), same_tool)
            # Damage may hide what it is: a user may still say so, rightly or not.
            for asked in (one, other) if path in own else ():
                read_all(asked, path)
            # Some files are read along with those beside them.
            for beside in own if path not in own else ():
                if beside.parent == path.parent:
                    read_all(one, beside)
        finally:
            path.write_bytes(content)

    check()
