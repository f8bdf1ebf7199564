"""Files of LitePred are refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers import litepred
from errcomp.readers.ingesting import ingest
from errcomp.readers.output import Output
from errcomp.readers.registry import recognise
from errcomp.readers.source import Source

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"
NAMES = [one.name for one in litepred.FORMATS]


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=litepred.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", NAMES)
def test_fixtures_are_recognised_by_their_format_alone(name: str) -> None:
    for path in (DATA / name).rglob("*.*"):
        found = [one.name for one in recognise(Source(path), litepred.FORMATS)]
        assert found == [name], path


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=st.data())
def test_damaged_files_are_refused_or_read(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = sorted((DATA / name / "good").iterdir())[0]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 40)))
        how = data.draw(st.sampled_from(["flip", "delete", "insert", "double"]))
        if how == "flip":
            content[start:end] = bytes(
                b ^ data.draw(st.integers(1, 255)) for b in content[start:end]
            )
        elif how == "delete":
            del content[start:end]
        elif how == "insert":
            content[start:start] = data.draw(
                st.sampled_from(
                    [b"nan", b"-1", b"{", b"[", b'"', b",", b"\n", b"1e999", b"\0", b"="]
                )
            )
        else:
            content[start:start] = content[start:end]
    damaged = tmp_path_factory.mktemp("damaged") / path.name
    damaged.write_bytes(content)
    recognise(Source(damaged), litepred.FORMATS)
    (own,) = (one for one in litepred.FORMATS if one.name == name)
    if own.read is not None:
        with contextlib.suppress(InputError):
            own.read(Source(damaged))


@pytest.mark.parametrize(
    "text", ["", "\n", "a,b\n1,2\n", "[]", "{}", "[1, 2]", "\0", '{"a": [', "7"]
)
def test_other_files_are_not_recognised(text: str, tmp_path: Path) -> None:
    source = Source(text_of(tmp_path, text))
    assert recognise(source, litepred.FORMATS) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("litepred-accuracy", "shares of predictions within 5 and 10 %"),
        ("litepred-configurations", "shapes of kernels without latencies"),
    ],
)
def test_they_are_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        fixture(name)


@pytest.mark.shared
def test_the_sample(shared_data: Path) -> None:
    path = shared_data / "tools" / "litepred" / "readme_accuracy_table.csv"
    with pytest.raises(InputError, match="other metrics cannot be computed"):
        litepred.read(path)
