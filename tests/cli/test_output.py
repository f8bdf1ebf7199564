"""Several files of one command: refused before the work, and written all of them or none."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from errcomp import __version__, datasets
from errcomp.cli.output import with_basis
from errcomp.report.model import Report

Run = Callable[..., Any]


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{'AB'[i % 2]},{1.08 + 0.004 * (i % 10)},1.0" for i in range(24)]
    path = tmp_path / "pairs.csv"
    path.write_text("device,predicted,measured\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def _there() -> list[str]:
    return sorted(one.name for one in Path().iterdir())


ALL = ("-o", "page.html", "--junit", "a.xml", "--markdown", "a.md")


@pytest.mark.core
@pytest.mark.usefixtures("without_pictures")
def test_all_are_written_and_said(run: Run, pairs: Path) -> None:
    ran = run("audit", pairs, "--claim", "5%", *ALL)
    assert ran.code == 0
    assert ran.err.splitlines() == ["wrote a.xml", "wrote a.md", "wrote page.html"]
    assert _there() == ["a.md", "a.xml", "page.html", "pairs.csv"]


@pytest.mark.core
@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("failing", ["a.xml", "a.md", "page.html"])
def test_a_full_disk_leaves_all_as_it_was(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Whichever file does not fit: what was there stays, and nothing new is there."""
    Path("a.xml").write_text("older", encoding="utf-8")
    for name in ("write_text", "write_bytes"):
        monkeypatch.setattr(Path, name, _full(getattr(Path, name), failing))
    ran = run("audit", pairs, "--claim", "5%", *ALL)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert f"{failing}: cannot be written (No space left on device)" in ran.err
    assert _there() == ["a.xml", "pairs.csv"]
    assert Path("a.xml").read_text(encoding="utf-8") == "older"


def _full(write: Callable[..., int], failing: str) -> Callable[..., int]:
    def full(path: Path, *given: Any, **named: Any) -> int:
        if path.name.startswith(f".{failing}."):
            write(path, given[0][:10], **named)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, *given, **named)

    return full


def test_a_name_that_is_taken_meanwhile_is_told(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def taken(path: Path, target: Path) -> Path:
        Path("a.md").mkdir(exist_ok=True)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", taken)
    ran = run("audit", pairs, "--claim", "5%", "--markdown", "a.md")
    assert (ran.code, "a.md: cannot be written (Is a directory)" in ran.err) == (2, True)
    assert _there() == ["a.md", "pairs.csv"]


def test_a_folder_that_takes_no_files_is_refused_before_the_work(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("closed").mkdir()
    access = os.access
    monkeypatch.setattr(  # whoever runs the tests may be allowed everything
        os, "access", lambda path, mode: Path(path).name != "closed" and access(path, mode)
    )
    pairs.write_text("not read\n", encoding="utf-8")
    ran = run("audit", pairs, "-o", "page.html", "--junit", "closed/a.xml")
    assert ran.code == 2
    assert ran.err == (
        "errcomp: --junit: closed/a.xml: cannot be written: the folder closed is read-only. Name "
        "another folder, or make this one writable.\n"
    )


@pytest.mark.extras
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--figure", "bands=a.svg", "--figure", "budget=./a.svg"),
         "--figure budget: a.svg is also the file of --figure bands; name different files"),
        (("--figure", "bands=a.svg", "--figure", "bands=a.svg"),
         "--figure bands: a.svg is also the file of --figure bands; name different files"),
        (("--figure", "bands=no/a.svg"), "--figure bands: no/a.svg: cannot be written: the folder"),
        (("--figure", "bands=d.svg"), "--figure bands: d.svg is a folder; name a file"),
        (("--figure", "bands=k.svg"), "--figure bands: k.svg would overwrite an input"),
    ],
)  # fmt: skip
def test_figures_are_checked_like_the_others(
    run: Run, pairs: Path, options: tuple[str, ...], message: str
) -> None:
    pytest.importorskip("matplotlib")
    Path("d.svg").mkdir()
    Path("k.svg").write_text("not read\n", encoding="utf-8")
    before = _there()
    ran = run("propagate", "k.svg", "-o", "x.json", *options)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert message in ran.err
    assert _there() == before


@pytest.mark.extras
def test_a_figure_that_cannot_be_written_takes_the_document_with_it(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def savefig(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    kernels = Path("k.csv")
    kernels.write_text("run,kernel,kernel_class,predicted\nr,a,x,1\nr,b,y,2\n", encoding="utf-8")
    argv = ("propagate", kernels, "--spread", "10%", "--correlation", "independent", "-o", "x.json")
    before = _there()
    with monkeypatch.context() as patched:
        patched.setattr(Figure, "savefig", savefig)
        ran = run(*argv, "--figure", "bands=a.png")
    assert (ran.code, "a.png: cannot be written (No space left" in ran.err) == (2, True)
    assert _there() == before
    assert run(*argv, "--figure", "bands=a.png").code == 0
    assert _there() == sorted([*before, "a.png", "x.json"])


@pytest.mark.parametrize("command", [("ingest", "in.csv"), ("join", "in.csv", "b", "--on", "k")])
def test_what_is_read_is_not_written_over(run: Run, pairs: Path, command: tuple[str, ...]) -> None:
    Path("in.csv").write_text("not read\n", encoding="utf-8")
    ran = run(*command, "-o", "in.csv")
    assert ran.code == 2
    assert ran.err == ("errcomp: -o: in.csv would overwrite an input; name another file\n")
    assert Path("in.csv").read_text(encoding="utf-8") == "not read\n"


def test_a_page_names_each_file_behind_it_with_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    texts = {"b/x.csv": "1\n", "a.csv": "2\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    sums = {
        name: f"{tmp_path / name} (SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"
        for name, text in texts.items()
    }
    made = dict(with_basis(Report("t", method=[("Seed", "0")]), [tmp_path, None, ""]).method)
    assert [*made] == ["Seed", "Made with", "Made from"]
    assert made["Made from"] == f"{sums['a.csv']}; {sums['b/x.csv']}"
    assert made["Made with"].startswith(f"errcomp {__version__}, Python 3.")
    assert f"numpy {metadata.version('numpy')}" in made["Made with"]
    one = dict(with_basis(Report("t"), [tmp_path / "a.csv", "no such"]).method)
    assert one["Made from"] == sums["a.csv"]
    (table,) = datasets.info("survey").tables[:1]
    built_in = dict(with_basis(Report("t"), ["survey"]).method)["Made from"]
    assert built_in.split("; ")[0] == f"survey/{table.file} (SHA-256 {table.sha256})"
    assert "Made from" not in dict(with_basis(Report("t"), []).method)
