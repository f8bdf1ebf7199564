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
    assert done.code == 2
    assert "vidurr: no such file or folder, and no format or tool 'vidurr'" in done.err
    done = run("ingest", logs / "a.log", "missing.log", "-o", tmp_path / "o.csv")
    assert (done.code, "missing.log: no such file or folder" in done.err) == (2, True)
    done = run("ingest", "neusight", ".", "-o", tmp_path / "o.csv", "--table", "runs")
    assert (done.code, "only be read as pairs (--table pairs" in done.err) == (2, True)
    for more in ([logs], ["--set", "model=x"], ["--from-name", "{model}"]):
        done = run("ingest", "neusight", ".", *more)
        assert (done.code, "read it alone, without --set and --from-name" in done.err) == (2, True)


def test_several_paths_are_read_like_one_folder(run: Any, logs: Path, tmp_path: Path) -> None:
    (logs / "b.log").write_text(LOG.format(0, 90))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "c.log").write_text(LOG.format(0, 70))
    out = tmp_path / "out.csv"
    paths = [logs / "a.log", tmp_path / "other", logs, logs / "a.log"]
    assert run("ingest", *paths, "-o", out, "--quantity", "time").code == 0
    found = pl.read_csv(out)
    assert sorted(zip(found["file"], found["predicted"], strict=True)) == [
        ("logs/a.log", 110.0),
        ("logs/a.log", 120.0),
        ("logs/b.log", 90.0),
        ("other/c.log", 70.0),
    ]
    assert run("ingest", "astra-sim", logs / "a.log", logs / "b.log", "-o", out).code == 0


def test_a_folder_of_a_format_is_read_alone(run: Any, logs: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        "errcomp.readers.core.ingest.recognise", lambda source, among: [source.path.is_dir()]
    )
    done = run("ingest", logs / "a.log", logs)
    assert (done.code, "cannot be read together with other paths" in done.err) == (2, True)


def test_without_a_file_the_first_rows_are_shown(run: Any, logs: Path) -> None:
    done = run("ingest", logs, "--where", "rank=0")
    assert done.code == 0
    assert done.out.splitlines() == [
        "2 rows, 9 columns",
        "",
        "quantity               predicted",
        "────────────────────────────────",
        "time                         120",
        "exposed communication          3",
        "",
        "The same in all rows: tool=ASTRA-sim, level=system, unit=cycles, rank=0, ranks=2.",
        "To write all rows, add -o rows.parquet.",
    ]
    assert "read a.log" in done.err
    done = run("ingest", logs / "a.log", "--table", "graph")
    assert (done.code, "Add -o graph.json" in done.err) == (2, True)


def test_keys_are_given_or_taken_from_names(run: Any, tmp_path: Path) -> None:
    for name, cycles in (("bert_H100_b8.log", 120), ("opt_L4_b16.log", 90)):
        (tmp_path / name).write_text(LOG.format(0, cycles))
    out = tmp_path / "tables" / "out.parquet"
    out.parent.mkdir()
    files = sorted(tmp_path.glob("*.log"))
    argv = ["ingest", *files, "-o", out, "--quantity", "time", "--set", "mode=training"]
    assert run(*argv, "--from-name", "{model}_{device}_b{batch}.log").code == 0
    keys = pl.read_parquet(out).select("model", "device", "batch", "mode").sort("model")
    assert keys.rows() == [("bert", "H100", 8, "training"), ("opt", "L4", 16, "training")]
    done = run(*argv, "--from-name", "{model}_{device}")
    assert done.code == 2
    assert "--from-name: bert_H100_b8.log: fits the pattern '{model}_{device}' in several" in (
        done.err
    )


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["model"], "--set takes KEY=VALUE, got 'model'"),
        (["=bert"], "--set takes KEY=VALUE, got '=bert'"),
        (["model="], "--set takes KEY=VALUE, got 'model='"),
        (["model=a", "model=b"], "--set gives model twice: 'a' and 'b'"),
        (["measured=2"], "'measured' cannot be the name of a key"),
    ],
)
def test_what_set_refuses(run: Any, logs: Path, items: list[str], message: str) -> None:
    done = run("ingest", logs, *(word for item in items for word in ("--set", item)))
    assert (done.code, message in done.err) == (2, True), done.err


@pytest.mark.shared
def test_from_profiles_to_bands(run: Any, shared_data: Path, tmp_path: Path) -> None:
    """The walk of somebody with a folder of profiles, in three commands."""
    profiles = sorted((shared_data / "tools" / "onnxruntime").glob("profile_*.json"))
    kernels, model = tmp_path / "kernels.parquet", tmp_path / "m.errcomp"
    ran = run(
        *("ingest", *profiles, "--from-name", "profile_{model}_ort{version}.json"),
        *("--set", "device=CPU", "--set", "mode=inference", "--table", "kernels", "-o", kernels),
    )
    assert (ran.code, "wrote 1168 rows" in ran.err) == (0, True)
    argv = ("--estimator", "device", "--where", "repeat=2,3,4,5,6,7,8")
    judged = run("calibrate", "evaluate", kernels, *argv, "--split", "leave-model-out", "--json")
    rows = {row["estimator"]: row for row in judged.json["rows"]}
    assert (rows["sum"]["n"], rows["sum"]["groups"]) == (28, 2)
    assert rows["linear"]["mean_ape"] < 0.06
    assert run("calibrate", "fit", kernels, *argv, "-o", model).code == 0
    first = run("predict", kernels, "--where", "repeat=1", "--model", model, "--json").json["rows"]
    assert len(first) == 4
    assert all(row["low_90"] < row["predicted"] < row["high_90"] for row in first)


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
    assert (done.code, "only 1 of 2 rows match" in done.err) == (2, True)
