"""``errcomp ingest``, ``join`` and ``readers`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.cli.commands import ingest as command
from errcomp.readers.core.output import output

LOG = "sys[{}] finished, {} cycles, exposed communication 3 cycles.\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text(LOG.format(0, 120) + LOG.format(1, 110))
    (folder / "b.log").write_text("")
    return folder


def test_a_folder(run: Any, logs: Path, tmp_path: Path) -> None:
    done = run("ingest", logs, "-o", tmp_path / "out.parquet")
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "read a.log (astra-sim-log): 4 rows, 4 predicted",
        "skipped b.log: empty: the run may have failed",
        f"wrote 4 rows to {tmp_path / 'out.parquet'}",
    ]
    done = run("ingest", "astra-sim", logs, "-o", tmp_path / "o.csv", "--quantity", "time")
    assert done.code == 0
    assert pl.read_csv(tmp_path / "o.csv")["predicted"].to_list() == [120.0, 110.0]
    done = run("ingest", logs, "-o", tmp_path / "w.csv", "--level", "system", "--where", "rank=1")
    assert pl.read_csv(tmp_path / "w.csv").height == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--table", "pairs"], "several quantities"),
        (["--table", "pairs", "--quantity", "time"], "holds only predicted values"),
        (["--table", "kernels"], "no row holds the time of a kernel"),
        (["--table", "graph"], "has no graph"),
        (["--quantity", "power"], "no row has quantity=power. Existing values: exposed"),
    ],
)
def test_what_is_not_in_it(
    run: Any, logs: Path, tmp_path: Path, more: list[str], message: str
) -> None:
    done = run("ingest", logs / "a.log", "-o", tmp_path / "out.json", *more)
    if "pairs" in more and len(more) == 2:
        message = "holds only predicted values"
    assert (done.code, message in done.err) == (2, True), done.err
    assert not (tmp_path / "out.json").exists()


def test_names_of_formats_and_paths(run: Any, logs: Path, tmp_path: Path) -> None:
    done = run("ingest", "vidurr", logs, "-o", tmp_path / "o.csv")
    assert (done.code, "no format or tool 'vidurr'" in done.err) == (2, True)
    done = run("ingest", "a", "b", "c", "-o", tmp_path / "o.csv")
    assert (done.code, "one path, or a format and one path" in done.err) == (2, True)
    done = run("ingest", "neusight", ".", "-o", tmp_path / "o.csv", "--table", "runs")
    assert (done.code, "only be read as pairs (--table pairs" in done.err) == (2, True)


def test_a_graph(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"tool": "x", "level": "kernel", "quantity": "time", "unit": "us", "measured": 1.0}
    found = output("a", "x", [row], graph=lambda: {"schema": "x"})
    monkeypatch.setattr(command, "_read", lambda name, chosen: found)
    done = run("ingest", "a", "-o", tmp_path / "g.json", "--table", "graph")
    assert (done.code, json.loads((tmp_path / "g.json").read_text())) == (0, {"schema": "x"})
    done = run("ingest", "a", "-o", tmp_path / "g.csv", "--table", "graph")
    assert (done.code, "a graph is written as JSON" in done.err) == (2, True)


def test_tools_and_formats(run: Any) -> None:
    rows = {row["tool"]: row for row in run("readers", "--json").json["rows"]}
    astra = rows["ASTRA-sim"]
    assert (astra["gives"], astra["sample_tested"]) == ("predictions", True)
    assert "astra-sim-log" in astra["formats"]
    assert (rows["Lumos"]["formats"], rows["Lumos"]["gives"]) == ([], "neither")
    shown = run("readers").out
    assert all(name in shown for name in ("ASTRA-sim", "NeuSight", "Concorde"))
    assert "PyTorch profiler traces" in run("readers", "--tool", "lumos").out
    assert "PyTorch profiler" in run("readers", "--tool", "kineto").out
    assert "Nsight Systems" in run("readers", "--tool", "systems").out
    done = run("readers", "--tool", "pytorch")
    assert (done.code, "matches several tools. Tools: PyTorch profiler" in done.err) == (2, True)
    done = run("readers", "--tool", "vidurr")
    assert (done.code, "no tool 'vidurr'. Did you mean 'VIDUR'? " in done.err) == (2, True)
    done = run("readers", "--tool", "kinteo")
    assert (done.code, "no tool 'kinteo'. Did you mean 'kineto'? " in done.err) == (2, True)


def test_names_of_formats_and_files_are_not_broken(run: Any) -> None:
    # Words longer than a third of the line (paths) may be.
    for tool in run("readers", "--json").json["rows"]:
        shown = run("readers", "--tool", tool["tool"]).out.split()
        for one in tool["details"]:
            words = [one["name"], *one["files"].split(), *one["sample"].split()]
            assert [word for word in words if len(word) <= 33 and word not in shown] == []


def test_joining(run: Any, logs: Path, tmp_path: Path) -> None:
    measured = tmp_path / "measured.csv"
    measured.write_text("id,measured,unit\n0,0.1,us\n1,0.2,us\n2,0.3,us\n")
    argv = ["join", logs / "a.log", measured, "--on", "rank=id", "--quantity", "time"]
    out = tmp_path / "pairs.csv"
    done = run(*argv, "--clock", "1GHz", "-o", out)
    assert done.code == 0, done.err
    assert pl.read_csv(out).select("predicted", "measured").rows() == [
        (120.0, 100.0),
        (110.0, 200.0),
    ]
    assert "1 measurement without a prediction: 2" in done.err
    audit = run("audit", out, "--json")
    assert audit.code == 0, audit.err
    done = run(*argv, "-o", out)
    assert (done.code, "--clock" in done.err) == (2, True)
    done = run(*argv, "--clock", "fast", "-o", out)
    assert (done.code, "fast is not a clock rate: write 1.2GHz" in done.err) == (2, True)
    done = run(*argv, "--least", "0", "-o", out)
    assert (done.code, "must be above 0" in done.err) == (2, True)
    done = run(*argv[:3], "--on", "=id", "-o", out)
    assert (done.code, "a key is empty" in done.err) == (2, True)
    done = run(*argv, "--where", "rank=7", "-o", out)
    assert (done.code, "no row meets the conditions" in done.err) == (2, True)


def test_joining_by_name_with_aliases(run: Any, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("op,predicted\nGemmRelu,1\nAdd_1,2\n")
    (tmp_path / "m.csv").write_text('op,measured\n"void gemm<1, 2>(x)",3\nadd,4\n')
    (tmp_path / "a.json").write_text('{"GemmRelu": "gemm"}')
    argv = ["join", tmp_path / "p.csv", tmp_path / "m.csv", "--on", "op", "--by", "name"]
    out = tmp_path / "o.csv"
    done = run(*argv, "--aliases", tmp_path / "a.json", "-o", out)
    assert (done.code, pl.read_csv(out)["measured"].to_list()) == (0, [3, 4]), done.err
    (tmp_path / "a.json").write_text("[1]")
    done = run(*argv, "--aliases", tmp_path / "a.json", "-o", out)
    assert (done.code, "expected a JSON object that maps" in done.err) == (2, True)
    done = run(*argv, "-o", out)
    assert (done.code, "only 1 of 2 rows find a match" in done.err) == (2, True)
