"""A reader is one file that declares itself: the registry finds it in its room."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.readers import is_output
from errcomp.readers.core import registry
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output, Rows, output
from errcomp.readers.core.registry import ToolFormats
from errcomp.readers.core.source import Source

#: All that is added: nothing of the package is edited.
READER = '''\
"""A simulator that nobody knows."""

from errcomp.readers.core import Rows, ToolFormats, read_as

_tool = ToolFormats("Nobody's simulator", gives="predictions")


def read(path):
    return read_as(path, FORMATS)


@_tool.reads("nobody-csv", "nobody.csv", "kernel: time (us)", ("layer", "nobody_us"))
def _read(source):
    sheet = source.sheet(["layer", "nobody_us"])
    rows = {"kernel": sheet.texts("layer"), "predicted": sheet.numbers("nobody_us")}
    return Rows(rows, notes=["Nobody knows it."])


_tool.knows("nobody-config", "nobody.conf", ("nobody_seed",), "It holds a seed, no times.")
FORMATS = _tool.formats
'''
ROOMS = ("profilers", "simulators", "serving", "learned", "collectives")


@pytest.fixture(params=ROOMS)
def room(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Put the file into a room, beside the readers that are there."""
    package = import_module(f"errcomp.readers.{request.param}")
    folder = tmp_path / "room"
    folder.mkdir()
    (folder / "nobody.py").write_text(READER)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    invalidate_caches()
    registry.formats.cache_clear()
    yield f"{package.__name__}.nobody"
    sys.modules.pop(f"{package.__name__}.nobody", None)
    vars(package).pop("nobody", None)
    registry.formats.cache_clear()


def written(folder: Path) -> Path:
    path = folder / "nobody.csv"
    path.write_text("layer,nobody_us\nconv1,2.5\nconv2,n/a\n")
    return path


def test_a_part_of_a_name_finds_one_tool_or_names_all() -> None:
    assert [tool.name for tool in registry.tools("kineto")] == ["PyTorch profiler"]
    with pytest.raises(InputError, match=r"'sim' matches several tools\. Tools: Accel-Sim, "):
        registry.tools("sim")
    with pytest.raises(InputError, match=r"no tool 'kinteo'.*kineto"):
        registry.tools("kinteo")


def test_one_file_in_a_room_adds_a_reader(
    room: str, tmp_path: Path, run: Callable[..., Any]
) -> None:
    path = written(tmp_path)
    own = [one.name for one in registry.formats() if one.tool == "Nobody's simulator"]
    assert own == ["nobody-csv", "nobody-config"]
    assert len(registry.formats()) == len({one.name for one in registry.formats()}) > 100
    assert is_output(path)

    found = ec.read(path)
    assert isinstance(found, Output)
    assert (found.formats, found.notes) == (("nobody-csv",), ("Nobody knows it.",))
    columns = ("tool", "level", "quantity", "unit", "predicted", "status", "kernel")
    assert found.rows.select(columns).rows() == [
        ("Nobody's simulator", "kernel", "time", "us", 2.5, None, "conv1"),
        ("Nobody's simulator", "kernel", "time", "us", None, "no value", "conv2"),
    ]
    # The file's own function, a folder, and the command line read the same.
    assert import_module(room).read(path).rows.equals(found.rows)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.csv").write_bytes(path.read_bytes())
    assert ingest(tmp_path / "runs").rows.equals(found.rows)
    made = run("ingest", path, "-o", tmp_path / "rows.csv")
    assert made.code == 0
    assert "nobody-csv" in made.out + made.err
    assert "Nobody's simulator,kernel,time,us,2.5" in (tmp_path / "rows.csv").read_text()
    listed = run("readers", "--json")
    assert listed.code == 0
    assert "Nobody's simulator" in {one["tool"] for one in json.loads(listed.out)["rows"]}


def test_without_the_file_nobody_knows_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert not is_output(path)
    with pytest.raises(InputError, match="not recognised as the output of a known tool"):
        ingest(path)


def test_what_a_tool_only_knows_says_why(room: str, tmp_path: Path) -> None:
    path = tmp_path / "nobody.conf"
    path.write_text("nobody_seed\n7\n")
    with pytest.raises(InputError, match=r"nobody\.conf of Nobody's simulator.* It holds a seed"):
        ingest(path)


def test_what_is_common_is_said_once_and_overridden_where_it_differs(tmp_path: Path) -> None:
    tool = ToolFormats("x", gives="measurements", reference="hardware", sample="1.0", limits="L.")

    @tool.reads("x-a", "a", "kernel: time (ms, us)", lambda source: True, sample="")
    def read(source: Source) -> Rows:
        # A value of its own stands; what is missing is the format's.
        rows = [{"measured": 1.0, "tool": "y", "unit": "ms"}, {"measured": 2.0, "unit": "us"}]
        return Rows(rows, dropped={"gone": 2, "nothing": 0})

    tool.knows("x-b", "b", ("one", "two"), "Why.", part_of="x-a")
    own, known = tool.formats
    assert (own.levels, own.quantities, own.units) == (("kernel",), ("time",), ("ms", "us"))
    assert (own.tool, own.reference, own.sample, own.limits) == ("x", "hardware", "", "L.")
    # The function itself stays as it is written.
    assert own.read is not None
    assert isinstance(read(Source(tmp_path / "a")), Rows)
    path = tmp_path / "a"
    path.write_text("a\n")
    found = own.read(Source(path))
    assert found.rows["tool"].to_list() == ["y", "x"]
    assert found.rows.select("level", "quantity").unique().rows() == [("kernel", "time")]
    assert [(one.reason, one.n) for one in found.dropped] == [("gone", 2)]

    assert (known.gives, known.reference, known.limits) == ("neither", None, "Why.")
    assert known.read is None
    for header, expected in (("two,three,one", True), ("one,three", False)):
        path.write_text(f"{header}\n")
        assert known.recognise(Source(path)) is expected


def test_a_reader_may_return_an_output_of_its_own(tmp_path: Path) -> None:
    tool = ToolFormats("x", gives="predictions")
    row = {"tool": "y", "level": "system", "quantity": "power", "unit": "W", "predicted": 1.0}
    own = output("other name", "other", [row])

    @tool.reads("x-a", "a", "kernel: time (ms)", lambda source: True)
    def read(source: Source) -> Output:
        return own

    path = tmp_path / "a"
    path.write_text("a\n")
    assert read(Source(path)) is own
    (form,) = tool.formats
    assert form.read is not None
    assert form.read(Source(path)) is own
