"""Files and folders of outputs."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.readers.core import registry, values
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output, output
from errcomp.readers.core.registry import Format, formats_of, read_source
from errcomp.readers.core.source import Source
from errcomp.report.writing import write_frame
from errcomp.system.limits import TookTooLongError, limits
from errcomp.tables import Pairs

LOG = "sys[{}] finished, 12 cycles, exposed communication 3 cycles.\n"


def _read(source: Source) -> Output:
    row = {"tool": "X", "level": "model", "quantity": "time", "unit": "ms", "run": "1"}
    notes = ["Read along." if source.sibling("x.cfg") else "No configuration."]
    return output(source.name, "x-log", [{**row, "predicted": 2.0}], notes=notes)


def form(name: str = "x-log", begins: bytes = b"X", **more: object) -> Format:
    known: dict[str, object] = {
        "name": name,
        "tool": "X",
        "files": "log",
        "levels": ("model",),
        "quantities": ("time",),
        "units": ("ms",),
        "gives": "predictions",
        "sample": "",
        "recognise": lambda source: source.head.startswith(begins),
        "read": _read,
    }
    return Format(**{**known, **more})  # type: ignore[arg-type]


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return folder


def test_a_folder_says_what_it_did(tmp_path: Path) -> None:
    write(tmp_path, a=LOG.format(0), b__c=LOG.format(1), d="?", e="", f=" \n")
    (tmp_path / "README.md").write_text("x")
    done: list[tuple[float, float]] = []
    found = ingest(tmp_path, progress=lambda *step: done.append(step))
    assert found.files == ("a", "b/c")
    assert found.rows["file"].to_list() == ["a", "a", "b/c", "b/c"]
    assert {one.name: one.reason[:14] for one in found.skipped} == {
        "README.md": "not a tool's o",
        "d": "not recognised",
        "e": "empty: the run",
        "f": "empty: the run",
    }
    assert done[-1][0] == done[-1][1] > 0
    assert found.report.splitlines()[0] == "read 2 files (astra-sim-log): 4 rows, 4 predicted"


def test_nothing_read_is_an_error_with_reasons(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file in it could be read. It is empty"):
        ingest(tmp_path)
    write(tmp_path, a="?", b="", c="?", d="?")
    message = r"could be read. a: not recognised.*it begins with '\?'.*b: empty.*and 1 more files"
    with pytest.raises(InputError, match=message):
        ingest(tmp_path)
    with pytest.raises(InputError, match=" no such file or folder"):
        ingest(tmp_path / "none")


def test_runs_of_one_name_get_that_of_their_file(tmp_path: Path) -> None:
    write(tmp_path, a="X", b="X")
    found = ingest(tmp_path, among=[form()])
    assert found.rows["run"].to_list() == ["a:1", "b:1"]
    assert found.notes[:2] == ("a: No configuration.", "b: No configuration.")
    assert found.runs.n == 2


def test_files_read_along_with_another(tmp_path: Path) -> None:
    along = form("x-cfg", b"C", read=None, part_of="x-log", gives="neither")
    write(tmp_path, a="X")
    (tmp_path / "x.cfg").write_text("C")
    found = ingest(tmp_path, among=[form(), along])
    assert (found.files, found.notes) == (("a",), ("Read along.",))
    assert (found.skipped, found.along) == ((), ("x.cfg",))
    assert found.report.splitlines()[-1] == "files that only add settings or names: x.cfg"
    (tmp_path / "a").unlink()
    with pytest.raises(
        InputError, match=r"x\.cfg: is read only with a file of the format x-log, which is missing"
    ):
        ingest(tmp_path, among=[form(), along])
    with pytest.raises(InputError, match="is read together with x-log"):
        ingest(tmp_path / "x.cfg", among=[along])


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = write(tmp_path, a="X") / "a"
    with pytest.raises(
        InputError, match=r"log of X, which errcomp does not read\. It holds no times\."
    ):
        ingest(path, among=[form(read=None, limits="It holds no times.", gives="neither")])
    with pytest.raises(InputError, match=r"fits several formats: x-log or y-log\. Give one:"):
        ingest(path, among=[form(), form("y-log")])

    def deep(source: Source) -> Output:
        return deep(source)

    with pytest.raises(InputError, match="nested too deeply"):
        read_source(Source(path), [form(read=deep)])


def test_closed_folders_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a=LOG.format(0), b__c=LOG.format(1))
    scan = os.scandir

    def closed(path: str) -> Any:
        # Every folder is open to root, whatever its mode.
        if Path(path) == tmp_path / "b":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert [one.name for one in ingest(tmp_path).skipped] == ["b"]


def test_read_takes_tables_and_outputs(tmp_path: Path) -> None:
    write(tmp_path, a=LOG.format(0), b="predicted,measured\n1,2\n")
    found = ec.read(tmp_path / "a")
    assert isinstance(found, Output)
    table = ec.read(tmp_path / "b")
    assert isinstance(table, Output)
    assert isinstance(table.pairs, Pairs)
    assert ec.summarize(table, figures="mape").pooled.figures["mape"].value == 0.5
    with pytest.warns(
        DeprecationWarning, match=r"read\(path\).n is now errcomp.read\(path\).pairs.n"
    ):
        assert table.n == 1
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = table.nothing
    with pytest.raises(AttributeError, match="no attribute 'n'"):
        _ = found.n
    with pytest.raises(InputError, match="the output of a tool, so its columns and unit are known"):
        ec.read(tmp_path / "a", unit="ms")


def test_rows_that_were_written_are_read_again(tmp_path: Path) -> None:
    row = {"tool": "X", "level": "model", "quantity": "time", "unit": "ms"}
    rows = output("a", "x", [{**row, "predicted": 2.0, "measured": 4.0, "run": "007"}]).rows
    for name in ("rows.csv", "rows.parquet", "rows.json"):
        path = tmp_path / name
        write_frame(path, rows)
        found = ec.read(path)
        assert isinstance(found, Output)
        assert found.pairs.column("run").tolist() == ["007"]


def test_empty_and_cut_archives_are_named(tmp_path: Path) -> None:
    write(tmp_path, a="")
    with pytest.raises(InputError, match="a: the file is empty. The run may have failed"):
        ingest(tmp_path / "a")
    (tmp_path / "b").write_bytes(b"PK\x03\x04" + bytes(90))
    with pytest.raises(InputError, match="the zip archive is cut off or damaged"):
        ingest(tmp_path / "b")


def test_formats_by_name_or_tool() -> None:
    assert [one.name for one in formats_of("astra-sim-log")] == ["astra-sim-log"]
    assert {one.tool for one in formats_of("ASTRA-sim")} == {"ASTRA-sim"}
    with pytest.raises(
        InputError, match=r"no format or tool 'astrasim'. Did you mean 'ASTRA-sim'\? Known: "
    ):
        formats_of("astrasim")


class Entry:
    def __init__(self, name: str, given: object) -> None:
        self.name, self.value, self.given = name, "package:FORMATS", given

    def load(self) -> object:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def entries(monkeypatch: pytest.MonkeyPatch, given: object) -> None:
    def of(group: str) -> list[Entry]:
        assert group == "errcomp.readers"
        return [Entry("other", given)]

    monkeypatch.setattr(registry, "entry_points", of)
    registry.formats.cache_clear()


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> object:
    yield monkeypatch
    monkeypatch.undo()
    registry.formats.cache_clear()


def test_packages_add_readers(uncached: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entries(uncached, [form("x-log")])
    path = write(tmp_path, a="X") / "a"
    assert ingest(path).rows.select(pl.col("predicted")).item() == 2.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ImportError("no module"), r"'other' of package:FORMATS cannot be loaded \(no module\)"),
        ([1], "provides a int, which is not a format or has the name of another one"),
        (
            [form("astra-sim-log")],
            "provides 'astra-sim-log', which is not a format or has the name of another one",
        ),
    ],
)
def test_packages_that_add_something_else(
    uncached: pytest.MonkeyPatch, given: object, message: str
) -> None:
    entries(uncached, given)
    with pytest.raises(InputError, match=message):
        registry.formats()


def test_columns_that_the_user_names_make_a_table_of_any_file(tmp_path: Path) -> None:
    # This is nn-Meter's header, which has a reader of its own.
    header = "model_group_file,index,predicted_ms,real_ms\n"
    path = write(tmp_path, a=f"{header}alexnets.jsonl,0,23.4,24.5\n") / "a"
    assert isinstance(ec.read(path), Output)
    table = ec.read(path, columns={"predicted": "predicted_ms", "measured": "real_ms"}, unit="ms")
    assert (table.pairs.predicted.tolist(), table.pairs.unit) == ([23.4], "ms")


def test_a_table_of_pairs_may_be_one_of_kernels_or_a_history_too(tmp_path: Path) -> None:
    rows = "run,kernel,version,op,predicted,measured\na,k,1,x,1,2\na,l,2,x,3,4\n"
    content = ec.read(write(tmp_path, a=rows) / "a", unit="ms")
    assert content.kernels.measured.tolist() == [2.0, 4.0]
    assert content.history.versions == ("1", "2")
    assert content.rows["predicted"].to_list() == [1.0, 3.0]
    errors = ec.propagation.given_errors(0.1)
    result = ec.propagate(content, errors=errors, correlation="independent")
    assert [outcome.prediction for outcome in result.outcomes] == [4.0]


@pytest.mark.parametrize(("name", "cells"), [("level", ",time"), ("quantity", "model,")])
def test_a_row_without_a_level_or_quantity_is_refused(
    tmp_path: Path, name: str, cells: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "tool,level,quantity,unit,predicted,measured,status\n"
        f"x,model,time,ms,1,2,\nx,{cells},ms,1,2,\n"
    )
    with pytest.raises(InputError, match=f"row 2 has no {name}. The file may be damaged: copy"):
        ingest(path)


def test_rows_that_may_be_cut_off_have_a_note(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("tool,level,quantity,unit,predicted,measured,status\nx,model,time,ms,1,2,")
    (note,) = ingest(path).notes
    assert note.startswith("The last line of rows.csv does not end with a line break")


def test_what_many_files_say_is_said_once(tmp_path: Path) -> None:
    fixtures = Path(__file__).parents[1] / "data" / "readers"
    log = fixtures / "nccl-tests-log" / "good" / "all_reduce.log"
    text = log.read_text()
    for i in range(7):
        (tmp_path / f"{i}.log").write_text(text.replace("host-a", f"host-{i}"))
    alone, found = ingest(tmp_path / "0.log"), ingest(tmp_path)
    (drop,) = alone.dropped
    assert [(one.reason, one.n) for one in found.dropped] == [
        (f"0.log and 6 more files: {drop.reason}", 7 * drop.n)
    ]
    for i in (5, 6):
        (tmp_path / f"{i}.log").unlink()
    assert [(one.reason, one.n) for one in ingest(tmp_path).dropped] == [
        (f"{i}.log: {drop.reason}", drop.n) for i in range(5)
    ]


def test_several_paths_are_read_like_a_folder_that_holds_them(tmp_path: Path) -> None:
    write(tmp_path, x__a=LOG.format(0), x__b__c=LOG.format(1), x__b__d="?", x__e=LOG.format(2))
    x = tmp_path / "x"
    found = ingest([x / "b", str(x / "a"), x / "b" / ".." / "a", x / "b" / "c"])
    assert found.files == ("b/c", "a")
    assert found.rows["file"].to_list() == ["b/c", "b/c", "a", "a"]
    assert [one.name for one in found.skipped] == ["b/d"]
    assert ingest([x / "b" / "c"]).files == (str(x / "b" / "c"),)
    with pytest.raises(InputError, match=r"^the paths: no file in it could be read\. d: not rec"):
        ingest([x / "b" / "d", x / "b" / "d"], among=[form()])
    with pytest.raises(InputError, match=r"^no path was given\. Name a file or a folder\.$"):
        ingest([])
    (x / "b" / "gone").symlink_to("nowhere")
    found = ingest([x / "e", x / "b"])
    assert {one.name: one.reason[:10] for one in found.skipped} == {
        "b/gone": "a pipe, a ",
        "b/d": "not recogn",
    }


def test_a_format_that_is_a_folder_is_read_alone(tmp_path: Path) -> None:
    write(tmp_path, a="X", b__c="?", b__d__e="???")
    asked: list[Path] = []

    def whole(source: Source) -> Output:
        asked.append(source.path)
        return _read(source)

    of_folder = form(folder=True, recognise=lambda source: source.path.name == "b", read=whole)
    assert ingest(tmp_path / "b", among=[of_folder]).files == (str(tmp_path / "b"),)
    assert asked == [tmp_path / "b"]
    assert registry._size(tmp_path / "b") == 4  # of its files at any depth
    assert registry._size(tmp_path / "a") == 1
    with pytest.raises(InputError, match=r"b: cannot be read together with other paths\. Give it"):
        ingest([tmp_path / "a", tmp_path / "b"], among=[of_folder, form()])


def test_errors_of_a_reader_name_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, a="X") / "a"

    def failing(error: BaseException) -> Format:
        def fail(source: Source) -> Output:
            raise error

        return form(read=fail)

    def long_number(source: Source) -> Output:
        values.digits("9" * 18)
        values.digits("12345678901234567890123")
        raise AssertionError

    with pytest.raises(
        InputError,
        match=r"a whole number is too long \(23 digits\): 12345678901234567890…\. The file may be",
    ):
        ingest(path, among=[form(read=long_number)])
    stopped = r"a: reading it was stopped after {} s: it may be damaged .*--limit seconds=600"
    with pytest.raises(InputError, match=stopped.format(60)):
        ingest(path, among=[failing(TookTooLongError())])
    with limits(seconds=6.7), pytest.raises(InputError, match=stopped.format(7)):
        ingest(path, among=[failing(TookTooLongError())])
    with pytest.raises(MemoryError):
        ingest(path, among=[failing(MemoryError())])
    with pytest.raises(InputError, match="^my own words$"):
        read_source(Source(path), [failing(InputError("my own words"))])


def test_rows_without_a_column_that_every_row_has_are_refused(tmp_path: Path) -> None:
    columns = ("tool", "level", "quantity", "unit", "predicted", "measured", "status")
    row = dict.fromkeys(columns, 1)
    del row["quantity"]
    path = write(tmp_path, a=json.dumps({**dict.fromkeys(columns, 2), "rows": [row]})) / "a"
    with pytest.raises(
        InputError,
        match=r"a: missing column 'quantity': this file was not written by `errcomp ingest`\. "
        r"Columns found: tool, level, unit, predicted, measured, status\.$",
    ):
        ingest(path)
