from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    lines = ["device,predicted,measured"]
    lines += [f"{'AB'[i % 2]},{100 + 7 * i},{90 + 8 * i}" for i in range(12)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.core
def test_a_table_is_audited(run: Run, table: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    ran = run("report", table, "-o", target)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.endswith(f"wrote {target}\n")
    text = target.read_text(encoding="utf-8")
    assert "Does the claimed accuracy hold?" in text
    audited = run("audit", table, "--json").json
    assert f"{100 * audited['overall'][0]['mape']:.2f} %" in text


@pytest.mark.slow
@pytest.mark.core
def test_documents_and_tables_share_a_page(run: Run, table: Path, tmp_path: Path) -> None:
    for name, argv in (
        ("audit", ("audit", table, "--claim", "5%")),
        ("metrics", ("metrics", table, "--by", "device")),
        ("search", ("claims", "search", table, "--value", "6.9%")),
        ("datasets", ("datasets", "list")),
        ("replication", ("replicate", "survey")),
    ):
        assert run(*argv, "-o", tmp_path / f"{name}.json").code == 0
    target = tmp_path / "page.html"
    names = [
        tmp_path / f"{n}.json" for n in ("audit", "metrics", "search", "datasets", "replication")
    ]
    assert run("report", *names, table, "--title", "All of it", "-o", target).code == 0
    text = target.read_text(encoding="utf-8")
    assert text.count("<section") == 6
    assert '<h1 id="title">All of it</h1>' in text
    assert "5\xa0% claimed" in text
    assert run("report", *names, table, "-o", tmp_path / "again.html").code == 0


@pytest.mark.core
def test_a_page_of_a_document_is_that_of_the_command(run: Run, table: Path, tmp_path: Path) -> None:
    run("metrics", table, "--by", "device", "-o", tmp_path / "m.json")
    run("metrics", table, "--by", "device", "-o", tmp_path / "direct.html")
    run("report", tmp_path / "m.json", "-o", tmp_path / "read.html")
    direct, read = (
        (tmp_path / name).read_text(encoding="utf-8").partition("How this was computed")[0]
        for name in ("direct.html", "read.html")
    )
    assert direct == read


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("pairs.csv", "-o", "page.pdf"), "page.pdf: a report is an HTML page; name a file"),
        (("none.csv", "-o", "page.html"), "none.csv: no such file"),
        (("pairs.csv", "-o", "no/page.html"), "no/page.html: cannot be written"),
        (("bad.json", "-o", "page.html"), "bad.json: "),
        (("pairs.csv", "page.html", "-o", "page.html"), "would overwrite an input"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    run: Run,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(table.parent)
    Path("bad.json").write_text('{"schema": "errcomp.audit/1", "rows": [')
    if "page.html" in argv[:-1]:
        Path("page.html").write_text("old")
    before = sorted(path.name for path in Path.cwd().iterdir())
    ran = run("report", *argv)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert sorted(path.name for path in Path.cwd().iterdir()) == before


@pytest.mark.core
@pytest.mark.usefixtures("without_pictures")
def test_without_matplotlib_a_page_has_its_tables_and_says_so(
    run: Run, table: Path, tmp_path: Path
) -> None:
    target = tmp_path / "page.html"
    assert run("report", table, "-o", target).code == 0
    text = target.read_text(encoding="utf-8")
    assert "<svg" not in text
    assert "errcomp[figures]" in text
    assert "<table" in text


def test_every_command_writes_a_page(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert run("claims", "list", "-o", target, "--json").code == 0
    assert "Published accuracy claims" in target.read_text(encoding="utf-8")


def test_tables_to_paste(run: Run, table: Path) -> None:
    assert run("metrics", table, "--format", "md").out.startswith("**Error metrics of ")
    assert "\\begin{tabular}" in run("metrics", table, "--format", "tex").out
    rows = run("metrics", table, "--by", "device", "--format", "csv").out.splitlines()
    assert rows[0].startswith("device,n,mape,")
    assert len(rows) == 3
    assert json.loads(run("metrics", table, "--json").out)["tool"] is None
    both = run("metrics", table, "--json", "--format", "md")
    assert (both.code, "not allowed with" in both.err) == (2, True)


@pytest.mark.extras
def test_a_unit_that_cannot_be_printed_is_shown_as_what_it_is(
    run: Run, table: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "page.html"
    assert run("audit", table, "--unit", "a\x01", "-o", target).code == 0
    text = target.read_text(encoding="utf-8")
    assert "predicted (a\\x01)" in text
    assert "\x01" not in text


def test_two_spellings_of_one_file_are_one(run: Run, table: Path) -> None:
    other = table.parent / "." / ".." / table.parent.name / "x.html"
    ran = run("audit", table, "--claim", "5%", "--markdown", table.parent / "x.html", "-o", other)
    assert (ran.code, "x.html is also the file of -o; name different files" in ran.err) == (2, True)
    assert not (table.parent / "x.html").exists()


@pytest.mark.core
@pytest.mark.usefixtures("without_pictures")
def test_each_result_names_its_own_input(run: Run, table: Path, tmp_path: Path) -> None:
    run("metrics", table, "-o", tmp_path / "m.json")
    target = tmp_path / "page.html"
    assert run("report", tmp_path / "m.json", table, "-o", target).code == 0
    first, second = target.read_text(encoding="utf-8").split("<section")[1:]
    assert first.count("(SHA-256 ") == second.count("(SHA-256 ") == 1
    assert "m.json (SHA-256 " in first
    assert "pairs.csv (SHA-256 " in second


@pytest.mark.core
@pytest.mark.usefixtures("without_pictures")
def test_a_table_with_names_of_its_own_gets_the_command_that_reads_it(
    run: Run, tmp_path: Path
) -> None:
    path, page = tmp_path / "odd.csv", tmp_path / "x.html"
    path.write_text("gpu,estimate,latency\nA,1,2\nB,2,3\n")
    ran = run("report", path, "-o", page)
    assert (ran.code, page.exists()) == (2, False)
    command = ran.err.splitlines()[-1].strip()
    assert command == f"errcomp audit {path} -o {page} --predicted estimate --measured latency"
    assert ran.err.splitlines()[0].endswith("use `errcomp audit`, which also writes the page:")
    again = run(*command.split()[1:])
    assert (again.code, page.exists()) == (0, True)


def test_without_a_column_to_choose_the_command_names_the_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("gpu,note\nA,a\n")
    ran = run("report", path, "-o", tmp_path / "x.html")
    ending = f"errcomp audit {path} --predicted COLUMN --measured COLUMN -o {tmp_path / 'x.html'}\n"
    assert (ran.code, ran.err.endswith(ending)) == (2, True)
    assert "errcomp audit" not in run("report", "none.csv", "-o", tmp_path / "x.html").err


@pytest.fixture
def document(run: Run, table: Path) -> bytes:
    return run("metrics", table, "--json").out.encode()


def _piped(argv: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "errcomp", "report", *argv],
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.core
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_document_may_come_through_standard_input(
    document: bytes, tmp_path: Path, name: str
) -> None:
    done = _piped([name, "-o", str(tmp_path / "x.html")], document)
    assert (done.returncode, done.stderr.decode()) == (0, f"wrote {tmp_path / 'x.html'}\n")
    assert "Error metrics of " in (tmp_path / "x.html").read_text(encoding="utf-8")


@pytest.mark.core
def test_a_document_may_come_through_a_named_pipe(
    run: Run, document: bytes, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(document,))
    writer.start()
    ran = run("report", pipe, "-o", tmp_path / "x.html")
    writer.join(10)
    assert (ran.code, ran.err) == (0, f"wrote {tmp_path / 'x.html'}\n")
    assert "Error metrics of " in (tmp_path / "x.html").read_text(encoding="utf-8")


@pytest.mark.core
def test_a_table_in_a_named_pipe_is_refused(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"predicted,measured\n1,2\n",))
    writer.start()
    ran = run("report", pipe, "-o", tmp_path / "x.html")
    writer.join(10)
    assert ran.code == 2
    assert ran.err.endswith("can be read from a pipe. Give a table as a file.\n")


@pytest.mark.core
@pytest.mark.parametrize(
    ("argv", "data", "message"),
    [
        (["-"], b"", "/dev/stdin: is empty. "),
        (["-"], b"device,predicted,measured\nA,1,2\n", "a table as a file."),
        (["-", "/dev/stdin"], b"{}", "/dev/stdin is named twice, but a pipe "),
    ],
)
def test_what_cannot_come_through_a_pipe_is_refused(
    tmp_path: Path, argv: list[str], data: bytes, message: str
) -> None:
    done = _piped([*argv, "-o", str(tmp_path / "x.html")], data)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert message in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.core
def test_closed_standard_input_is_told(tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    done = subprocess.run(
        f"{sys.executable} -m errcomp report - -o {target} <&-",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    said = "errcomp: -: standard input is closed; name a file\n"
    assert (done.returncode, done.stderr) == (2, said)
