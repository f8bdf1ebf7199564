"""Reader of the JSON export of Nsight Systems."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import nsys
from errcomp.readers.profilers.nsys import read_lines

GOOD = Path(__file__).parents[1] / "data" / "readers" / "nsys-lines" / "good" / "export.json"
COLUMNS = ("kernel", "measured", "unit", "start", "device_id", "stream", "grid", "bytes")


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    text = GOOD.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "export.json"
    path.write_text(text)
    return path


def test_kernels_copies_and_sets() -> None:
    found = nsys.read(GOOD)
    assert found.formats == ("nsys-lines",)
    assert found.rows.select(COLUMNS).rows() == [
        ("void scale<float>(float *, int)", 250.0, "ns", 1000, 0, 14, "64x2x1", None),
        ("[CUDA memcpy Device-to-Host]", 40.0, "ns", 1300, 0, 7, None, 4096),
        ("[CUDA memset]", 5.0, "ns", 1400, 1, 7, None, 64),
        ("shift", 30.0, "ns", 1500, 0, 14, None, None),
    ]
    kinds = found.rows["kernel_class"].to_list()
    assert kinds == ["void scale<float>(float *, int)", "memcpy", "memset", "shift"]
    assert found.dropped == ()


def test_names_may_be_longer_than_the_head(tmp_path: Path) -> None:
    names = json.dumps(["k" * 80] * 2000)
    path = written(tmp_path, ('["","[All', f'{names},"x":["","[All'))
    assert path.stat().st_size > 1 << 17
    assert nsys.read(path).rows["kernel"].to_list()[0] == "k" * 80
    path.write_text(json.dumps({"data": ["k" * 80] * 2000}) + "\n{}\n")
    assert recognise(Source(path)) == []


@pytest.mark.parametrize(
    "change",
    [('endNs":"1250"', 'endNs":"999"'), ('"1250"', "null"), ('"1250"', '"late"')],
)
def test_events_without_times_are_counted(change: tuple[str, str], tmp_path: Path) -> None:
    found = nsys.read(written(tmp_path, change))
    assert len(found.rows) == 3
    assert [(one.reason, one.n) for one in found.dropped] == [("events without times", 1)]


def test_what_is_missing_or_of_the_wrong_kind(tmp_path: Path) -> None:
    changes = (('"shortName":4', '"shortName":99'), ('"copyKind":2', '"copyKind":77'))
    rows = nsys.read(written(tmp_path, *changes)).rows
    names = rows["kernel"].to_list()
    assert names[1:] == ["[CUDA memcpy]", "[CUDA memset]", "kernel without a name"]
    changes = (('{"shortName":4}', "[4]"), ('"deviceId":1', '"deviceId":[1]'))
    rows = nsys.read(written(tmp_path, *changes)).rows
    assert rows["device_id"].to_list() == [0, 0, None, 0]
    found = nsys.read(
        written(tmp_path, ('"CudaEvent":{"startNs":"1400"', '"CudaEvent":"1400","x":{"y":"'))
    )
    assert len(found.rows) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([('"demangledName":"3",', '"demangledName":"3",,')], "line 4: not valid JSON"),
        ([('"startNs"', '"start"')], "no GPU work .4 events without times"),
    ],
)
def test_damaged_exports_are_refused(
    changes: list[tuple[str, str]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        nsys.read(written(tmp_path, *changes))


MUTATIONS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 30), st.binary(max_size=6)), min_size=1, max_size=3
)


@given(changes=MUTATIONS)
def test_mutations_are_read_or_refused(
    changes: list[tuple[float, int, bytes]], tmp_path_factory: Any
) -> None:
    content = GOOD.read_bytes()
    for where, length, put in changes:
        at = int(where * len(content))
        content = content[:at] + put + content[at + length :]
    path = tmp_path_factory.mktemp("mutated") / "export.json"
    path.write_bytes(content)
    recognise(Source(path), nsys.FORMATS)
    with contextlib.suppress(InputError):
        assert len(read_lines(Source(path)).rows)


def test_blank_lines_are_passed_over_and_names_must_not_stand_twice(tmp_path: Path) -> None:
    lines = GOOD.read_text().splitlines()
    path = tmp_path / "export.json"
    path.write_text("\n  \n".join(lines) + "\n\n")
    assert nsys.read(path).rows.equals(nsys.read(GOOD).rows)
    at = next(i for i, line in enumerate(lines) if '"startNs":"1000"' in line)
    lines[at] = lines[at].replace('"startNs":"1000"', '"startNs":"1000","startNs":"1001"')
    path.write_text("\n".join(["", *lines]))
    with pytest.raises(InputError, match=rf"line {at + 2}: .*'startNs' twice\. Export it again"):
        read_lines(Source(path))


def test_an_export_whose_end_is_broken_is_not_recognised(tmp_path: Path) -> None:
    rng = random.Random(1)
    names = json.dumps({"data": [rng.randbytes(40).hex() for _ in range(8000)]})
    path = tmp_path / "export.json.gz"
    whole = gzip.compress(f"{names}\n{GOOD.read_text()}".encode(), 1)
    path.write_bytes(whole)
    assert nsys.is_lines(Source(path))
    path.write_bytes(whole[:-2000])
    assert len(Source(path).head) == 1 << 16
    assert not nsys.is_lines(Source(path))
