"""``errcomp propagate`` and ``propagate validate``: documents, files, options, bad input."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.propagation.validation import COMPARED

Run = Callable[..., Any]
ONE = ("--run", "H100/bert_large/inference/512/8")


@pytest.fixture
def kernels_csv(tmp_path: Path) -> Path:
    """Three runs on three devices, predicted and measured, as a user would have them."""
    path = tmp_path / "kernels.csv"
    lines = ["run,kernel,kernel_class,count,predicted,measured,device,model"]
    for run, device, model, size, ratio in [
        ("a", "X", "m1", 1.0, 1.10), ("b", "Y", "m2", 2.0, 1.05), ("c", "Z", "m1", 1.5, 0.80),
    ]:  # fmt: skip
        lines.append(f"{run},gemm,Linear,24,{size},{size * ratio},{device},{model}")
        lines.append(f"{run},soft,Softmax,24,{size / 5},{size / 5 * ratio**2},{device},{model}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write a file: text as it is, anything else as JSON."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
        return path

    return write


GEMM = {"node": "kernel", "name": "gemm"}
SOFT = {"node": "kernel", "name": "soft", "count": 24}


# --- documents ---


def test_one_run_of_the_embedded_table(run: Run) -> None:
    ran = run("propagate", *ONE, "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert found["schema"] == "errcomp.propagate/1"
    assert (found["unit"], found["seed"]) == ("ms", 0)
    rows = {row["assumption"]: row for row in found["rows"]}
    assert list(rows) == ["estimated", "independent", "comonotonic", "unknown"]
    for row in rows.values():
        assert [band["level"] for band in row["bands"]] == [0.5, 0.8, 0.9, 0.95]
        assert row["prediction"] == pytest.approx(86.18, abs=0.01)
        assert row["measured"] == pytest.approx(77.75, abs=0.01)
    width = {name: row["bands"][2]["high"] - row["bands"][2]["low"] for name, row in rows.items()}
    assert width["independent"] < width["estimated"] < width["comonotonic"] < width["unknown"]
    # All other runs know the errors, this one had no part in it.
    assert found["errors"]["n_runs"] == 86
    assert found["caveats"] == []
    assert found["errors"]["components"]["n_clusters"] == 8
    assert sum(row["first_order"] for row in rows["estimated"]["by_class"]) == pytest.approx(1)


def test_the_same_seed_gives_the_same_bytes(run: Run, kernels_csv: Path, written: Any) -> None:
    graph = written("graph.json", GEMM)
    argv = ("propagate", kernels_csv, "--run", "a", "--graph", graph, "--draws", "512")
    argv = (*argv, "--json", "--seed")
    assert run(*argv, "7").out == run(*argv, "7").out != run(*argv, "8").out


@pytest.mark.slow
def test_validation_has_the_rows_that_were_promised(run: Run) -> None:
    ran = run("propagate", "validate", "--correlation", "estimated,comonotonic", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["schema"] == "errcomp.validation/1"
    assert ran.json["left_out"] == "device"
    rows = ran.json["rows"]
    assert [(row["assumption"], row["level"]) for row in rows] == [
        (name, level) for name in ("estimated", "comonotonic") for level in (0.5, 0.8, 0.9, 0.95)
    ]
    promised = {
        "assumption", "level", "coverage", "coverage_low", "coverage_high", "n", "mean_width",
        "interval_score",
    }  # fmt: skip
    for row in rows:
        assert promised <= row.keys()
        assert 0 <= row["coverage_low"] <= row["coverage"] <= row["coverage_high"] <= 1
        assert row["n"] == 87
    found = {(row["assumption"], row["level"]): row for row in rows}
    assert 0.87 <= found["estimated", 0.9]["coverage"] <= 0.95
    assert 0.45 <= found["estimated", 0.5]["coverage"] <= 0.58
    assert found["estimated", 0.9]["mean_width"] < found["comonotonic", 0.9]["mean_width"]
    assert len(ran.json["pit"]["estimated"]) == len(ran.json["runs"]) == 87


def test_all_assumptions_are_validated_by_default(run: Run, kernels_csv: Path) -> None:
    rows = run("propagate", "validate", kernels_csv, "--json").json["rows"]
    assert list(dict.fromkeys(row["assumption"] for row in rows)) == list(COMPARED)


# --- where errors come from ---


def test_errors_from_the_runs_of_the_table(run: Run, kernels_csv: Path) -> None:
    found = run("propagate", kernels_csv, "--json").json
    assert [caveat["code"] for caveat in found["caveats"]] == ["in-sample", "few-clusters"]
    assert len(found["rows"]) == 3 * 3
    assert found["errors"]["unit"] is None


def test_the_only_run_of_a_table_is_its_own_source(run: Run, kernels_csv: Path) -> None:
    argv = ("propagate", kernels_csv, "--where", "run=a", "--run", "a", "--json")
    assert run(*argv).json["errors"]["n_runs"] == 1


def test_errors_from_another_table(run: Run, kernels_csv: Path, written: Any) -> None:
    new = written("new.csv", "kernel,kernel_class,count,predicted\ng,Linear,2,3.0\nx,New,1,1.0\n")
    ran = run("propagate", new, "--train", kernels_csv, "--json")
    row = ran.json["rows"][0]
    assert (row["assumption"], row["measured"]) == ("estimated", None)
    assert [caveat["code"] for caveat in row["caveats"]] == ["unknown-class"]


def test_errors_by_class_from_a_file(run: Run, kernels_csv: Path, written: Any) -> None:
    errors = written("errors.csv", "kernel_class,spread,bias\nLinear,0.1,0.5\n*,0.2,0\n")
    argv = ("propagate", kernels_csv, "--run", "a", "--errors", errors, "--kind", "relative")
    row = run(*argv, "--correlation", "comonotonic", "--json").json["rows"][0]
    # 24 · 1 · 1.5 + 24 · 0.2, and 2.4 + 0.96 of spread.
    assert (row["mean"], row["sd"]) == pytest.approx((40.8, 3.36))


def test_one_error_for_all_kernels(run: Run, kernels_csv: Path) -> None:
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1", "--bias=-0.2", "--kind")
    rows = run(*argv, "relative", "--json").json["rows"]
    assert [row["assumption"] for row in rows] == [
        "repeats", "independent", "comonotonic", "unknown",
    ]  # fmt: skip
    assert (rows[2]["mean"], rows[2]["sd"]) == pytest.approx((0.8 * 28.8, 2.88))


def test_errors_and_correlations_are_read_in_per_cent(run: Run, kernels_csv: Path) -> None:
    argv = ("propagate", kernels_csv, "--run", "a", "--json")
    plain = run(*argv, "--spread", "0.1", "--bias=-0.2", "--correlation", "classes=0.25")
    percent = run(*argv, "--spread", "10%", "--bias=-20%", "--correlation", "classes=25%")
    assert plain.code == 0
    assert percent.out == plain.out


def test_kernels_that_were_only_measured_are_to_be_joined(run: Run, written: Any) -> None:
    table = written("trace.csv", "run,kernel,measured\na,gemm,3.0\na,soft,1.0\n")
    for given in ((), ("--spread", "10%"), ("--run", "a")):
        ran = run("propagate", table, "--unit", "ms", *given)
        assert (ran.code, ran.out) == (2, "")
        assert "trace.csv: the kernels were measured but not predicted" in ran.err
        assert "errcomp join PREDICTED MEASURED --on run,kernel -o kernels.csv" in ran.err
        assert "errcomp calibrate" in ran.err


def test_the_order_of_the_assumptions_and_their_correlations(run: Run, kernels_csv: Path) -> None:
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1", "--kind", "relative")
    rows = run(*argv, "--correlation", "classes=0.25, independent", "--json").json["rows"]
    assert [row["assumption"] for row in rows] == ["classes", "independent"]
    shared, own = 0.25 * (2.4**2 + 0.48**2), 0.75 * 24 * (0.1**2 + 0.02**2)
    assert rows[0]["sd"] == pytest.approx((shared + own) ** 0.5)


def test_a_matrix_from_a_file(run: Run, kernels_csv: Path, written: Any) -> None:
    matrix = written("matrix.csv", "1,-0.5\n-0.5,1\n")
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1", "--kind", "relative")
    row = run(*argv, "--correlation", "matrix", "--matrix", matrix, "--json").json["rows"][0]
    assert row["sd"] == pytest.approx((2.4**2 + 0.48**2 - 2.4 * 0.48) ** 0.5)


# --- graphs ---


def test_a_graph_of_several_nodes(run: Run, kernels_csv: Path, written: Any) -> None:
    overlap = {
        "node": "overlap", "compute": SOFT, "communication": {"node": "constant", "value": 3.0},
    }  # fmt: skip
    graph = written(
        "graph.json",
        {"node": "serial", "children": [{"node": "repeat", "child": GEMM, "count": 24}, overlap]},
    )
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1", "--graph", graph)
    ran = run(*argv, "--json")
    assert ran.code == 0
    for row in ran.json["rows"]:
        assert row["prediction"] == pytest.approx(24 + 4.8)
        assert row["saturated"] == 0
        assert row["by_class"] is None
    assert "Monte Carlo" in ran.json["rows"][0]["method"]


def test_a_dag_tells_what_is_critical(run: Run, kernels_csv: Path, written: Any) -> None:
    nodes = [
        {"id": "e1", "kernel": "gemm"},
        {"id": "e2", "duration": 1.0},
        {"id": "e3", "kernel": "soft"},
    ]
    edges = [["e1", "e3"], ["e2", "e3"]]
    graph = written("dag.json", {"node": "dag", "nodes": nodes, "edges": edges})
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1", "--graph", graph)
    critical = run(*argv, "--correlation", "repeats", "--json").json["rows"][0]["critical"]
    assert critical["e3"] == 1
    assert critical["e1"] == pytest.approx(0.5, abs=0.02)
    text = run(*argv, "--correlation", "repeats").out
    assert "How often an event is on the critical path" in text
    assert "e3         100.0 %" in text


def test_saturation_is_a_result(run: Run, kernels_csv: Path, written: Any) -> None:
    graph = written("queue.json", {"node": "queue", "service": GEMM, "arrival_rate": 0.9})
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1", "--kind", "relative")
    argv = (*argv, "--correlation", "repeats", "--graph", graph)
    ran = run(*argv, "--json")
    assert ran.code == 0
    row = ran.json["rows"][0]
    # 1 ± 0.1 at 0.9: saturated from 1.111 on.
    assert row["saturated"] == pytest.approx(0.133, abs=0.01)
    assert row["mean"] is row["bands"][3]["high"] is None
    assert row["bands"][3]["low"] > 0
    text = run(*argv).out
    assert "A queue is saturated with probability 13." in text
    assert "more work arrives than can be served" in " ".join(text.split())
    assert "∞" in text


def test_draws_and_precision(run: Run, kernels_csv: Path, written: Any) -> None:
    graph = written("graph.json", GEMM)
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1", "--graph", graph)
    argv = (*argv, "--correlation", "independent", "--json", "--draws", "512")
    few = run(*argv).json["rows"][0]["method"]
    many = run(*argv, "--precision", "0.002").json["rows"][0]["method"]
    assert "512 draws" in few
    assert int(many.split()[2]) > 2000


# --- validation ---


def test_leaving_out_another_key(run: Run, kernels_csv: Path) -> None:
    argv = ("propagate", "validate", kernels_csv, "--leave-out", "model", "--json")
    found = run(*argv, "--correlation", "estimated,classes=0.5").json
    assert (found["left_out"], found["rows"][0]["n"], found["rows"][0]["n_clusters"]) == (
        "model", 3, 2,
    )  # fmt: skip
    assert found["rows"][4]["assumption"] == "classes"


def test_separate_tables_to_fit_to_and_to_judge(
    run: Run, kernels_csv: Path, tmp_path: Path
) -> None:
    argv = ("propagate", "validate", "--train", "neusight-kernels", "--test", kernels_csv)
    ran = run(*argv, "--correlation", "estimated", "-o", tmp_path / "out.json")
    assert ran.code == 0
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (found["left_out"], found["rows"][0]["n"]) == ("", 3)
    text = " ".join(ran.out.split())
    assert "errors from another table" in text
    assert "totals of one device as correlated (3 devices)" in text


@pytest.mark.slow
@pytest.mark.shared
def test_separate_folders_of_an_artifact(run: Run, shared_data: Path, tmp_path: Path) -> None:
    whole = shared_data / "neusight-artifact"
    both = [p for p in (whole / "scripts/asplos/label").iterdir() if any(p.glob("*.csv"))]
    devices = sorted(path.name for path in both)
    parts = {"train": devices[:-2], "test": devices[-2:]}
    for part, names in parts.items():
        for source in whole.rglob("*"):
            inside = source.relative_to(whole)
            if source.is_dir() or not set(devices) & set(inside.parts) <= set(names):
                continue
            target = tmp_path / part / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    argv = ("propagate", "validate", "--train", tmp_path / "train", "--test", tmp_path / "test")
    ran = run(*argv, "--correlation", "estimated,independent", "--json")
    assert ran.code == 0
    rows = {(row["assumption"], row["level"]): row for row in ran.json["rows"]}
    assert rows["estimated", 0.9]["n_clusters"] == 2
    assert 0 < rows["estimated", 0.9]["n"] < 87
    assert rows["estimated", 0.95]["coverage"] > rows["independent", 0.95]["coverage"]


@pytest.mark.slow
@pytest.mark.shared
def test_the_artifact_itself(run: Run, shared_data: Path) -> None:
    folder = shared_data / "neusight-artifact"
    ran = run("propagate", "validate", folder, "--correlation", "estimated,independent", "--json")
    rows = {(row["assumption"], row["level"]): row for row in ran.json["rows"]}
    assert rows["estimated", 0.9]["n"] == 87
    assert 0.87 <= rows["estimated", 0.9]["coverage"] <= 0.95
    assert 0.2 <= rows["independent", 0.9]["coverage"] <= 0.3


# --- files ---


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "md", "tex"])
@pytest.mark.parametrize("command", ["propagate", "validate"])
def test_files_by_suffix(
    run: Run, kernels_csv: Path, tmp_path: Path, suffix: str, command: str
) -> None:
    words = ("propagate",) if command == "propagate" else ("propagate", "validate")
    target = tmp_path / f"out.{suffix}"
    argv = (*words, kernels_csv, "--correlation", "estimated,independent", "-o", target)
    ran = run(*argv)
    assert ran.code == 0
    assert ran.err == f"wrote {target}\n"
    assert target.stat().st_size > 100
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernels.csv", target.name]
    ran = run(*argv, "--json")
    assert ran.json["rows"]


def test_columns_of_a_file_are_plain(run: Run, kernels_csv: Path, tmp_path: Path) -> None:
    run("propagate", kernels_csv, "--correlation", "estimated,unknown", "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert list(rows[0]) == [
        "run", "assumption", "prediction", "measured", "mean", "sd", "median", "bias",
        "relative_sd", "kernel_sd", "growth", "effective_number", "saturated", "low_50", "high_50",
        "low_80", "high_80", "low_90", "high_90", "low_95", "high_95", "unit", "method", "caveats",
    ]  # fmt: skip
    assert not any("{" in value or "[" in value for row in rows for value in row.values())
    assert float(rows[0]["low_90"]) < float(rows[0]["median"]) < float(rows[0]["high_90"])
    assert (rows[1]["assumption"], rows[1]["mean"]) == ("unknown", "")
    assert rows[0]["caveats"] == "in-sample; few-clusters"


def test_columns_of_a_validation_are_those_of_its_rows(
    run: Run, kernels_csv: Path, tmp_path: Path
) -> None:
    argv = ("propagate", "validate", kernels_csv, "--correlation", "independent")
    run(*argv, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert float(rows[2]["level"]) == 0.9
    assert float(rows[2]["coverage"]) == run(*argv, "--json").json["rows"][2]["coverage"]


def test_a_file_has_the_budget_and_all_else_as_json(
    run: Run, kernels_csv: Path, tmp_path: Path
) -> None:
    ran = run("propagate", kernels_csv, "--run", "a", "-o", tmp_path / "out.json", "--json")
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert written == ran.json
    assert written["rows"][0]["by_kernel"]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("words", "figure"),
    [((), "bands"), ((), "budget"), (("validate",), "coverage"), (("validate",), "pit")],
)
def test_figures(
    run: Run, kernels_csv: Path, tmp_path: Path, words: tuple[str, ...], figure: str
) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / f"{figure}.svg"
    argv = ("propagate", *words, kernels_csv, "--correlation", "unknown,estimated,independent")
    if figure == "budget":
        argv = (*argv[:-1], "estimated", "--run", "a")
    assert run(*argv, "--figure", f"{figure}={target}").code == 0
    assert target.read_text(encoding="utf-8").startswith("<?xml")


def test_an_absolute_spread_needs_no_bias(run: Run, kernels_csv: Path) -> None:
    argv = ("--spread", "0.1", "--kind", "absolute", "--correlation", "independent", "--json")
    [first, *_] = run("propagate", str(kernels_csv), *argv).json["rows"]
    # Two kernels of 24 instances each.
    assert first["sd"] == pytest.approx(0.1 * 48**0.5)


# --- bad input: one line, exit 2, nothing written ---

BAD = [
    (("nothing.csv",), "nothing.csv: no such file, and no built-in table of kernels"),
    (("neusight-kernels", "more.csv"), "takes one table, got neusight-kernels and more.csv"),
    (("neusight-kernels", "--unit", "ms"), "is a built-in table: its columns, unit and tool"),
    (("k", "--run", "z"), "no row has run=z. Values of run: a, b, c"),
    (("k", "--where", "device=W"), "no row has device=W"),
    (("k", "--where", "device"), "--where takes KEY=VALUE"),
    (("k", "--test", "k"), "--test needs propagate validate"),
    (("k", "--leave-out", "device"), "--leave-out needs propagate validate"),
    (("k", "--correlation", "alike"), "assumption 'alike' is unknown. Assumptions: independent"),
    (("k", "--correlation", ""), "--correlation takes names separated by commas, got ''"),
    (("k", "--correlation", "repeats,repeats"), "names repeats more than once"),
    (("k", "--correlation", "classes=0.1,classes=0.2"), "assumption 'classes' is given twice"),
    (("k", "--correlation", "classes=much"), "--correlation classes=much: 'much' is not a number"),
    (("k", "--correlation", "classes=1.5"), "must be between 0 and 1, got 1.5"),
    (
        ("k", "--correlation", "independent=0.5"),
        "assumption 'independent' takes no correlation, got 0.5",
    ),
    (("k", "--spread", "0.1", "--correlation", "estimated"), "needs an error model"),
    (("k", "--spread=-0.1"), "spread of all classes must not be negative, got -0.1"),
    (("k", "--spread", "nan"), "spread of all classes must be a finite number, got nan"),
    (("k", "--spread", "wide"), "'wide' is not a fraction: write 5% or 0.05"),
    (("k", "--spread", "10%", "--kind", "absolute"), "--spread is in per cent, but errors of"),
    (("k", "--spread", "1", "--bias", "5%", "--kind", "absolute"), "--bias is in per cent, but"),
    (("k", "--bias", "0.1"), "--bias needs --spread"),
    (("k", "--spread", "0.1", "--train", "k"), "give the errors in one way only, got --train and"),
    (("k", "--kind", "percent"), "invalid choice: 'percent'"),
    (("k", "--seed", "-1"), "is not a seed"),
    (("k", "--draws", "1000"), "--draws needs --graph"),
    (("k", "--precision", "0.01"), "--precision needs --graph"),
    (("k", "--correlation", "matrix"), "--correlation matrix needs --matrix FILE"),
    (("k", "--correlation", "matrix=0.5", "--matrix", "k"), "--matrix needs --correlation"),
    (("k", "--matrix", "k"), "--matrix needs --correlation matrix"),
    (("k", "--correlation", "matrix", "--matrix", "k"), "must hold numbers separated by"),
    (("k", "--errors", "nothing.csv"), "nothing.csv: no such file"),
    (("k", "--graph", "nothing.json"), "nothing.json"),
    (("k", "--figure", "bands"), "--figure takes bands=FILE or budget=FILE, got 'bands'"),
    (("k", "--figure", "pit=a.svg"), "--figure takes bands=FILE or budget=FILE"),
    (("k", "--figure", "bands=a.txt"), "the suffix sets the format"),
    (("k", "-o", "out.xlsx"), "cannot determine the format"),
    (("k", "-o", "nowhere/out.csv"), "cannot be written"),
    (("k", "-o", "k"), "would overwrite an input"),
    (("validate", "k", "-o", "k"), "would overwrite an input"),
    (("validate", "k", "--run", "a"), "propagate validate does not take --run"),
    (("validate", "k", "--spread", "0.1"), "propagate validate does not take --spread"),
    (("validate", "k", "--errors", "k"), "propagate validate does not take --errors"),
    (("validate", "k", "--graph", "g"), "propagate validate does not take --graph"),
    (("validate", "k", "--draws", "1000"), "propagate validate does not take --draws"),
    (("validate", "k", "--correlation", "matrix"), "does not take the assumption \"matrix\""),
    (("validate", "--train", "k"), "--train and --test go together"),
    (("validate", "--test", "k"), "--train and --test go together"),
    (("validate", "k", "--train", "k", "--test", "k"), "replace TABLE: leave out"),
    (("validate", "k", "--leave-out", "colour"), "no column 'colour'"),
    (("validate", "k", "--leave-out", "kernel"), "kernel differs within run"),
    (("validate", "k", "--where", "run=a"), "all measured runs have the same device, 'X', so"),
    (("validate", "nothing.csv"), "nothing.csv: no such file"),
    (("validate", "a\nb.csv"), "a\\nb.csv: no such file"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "message"), BAD)
def test_bad_usage_is_one_line_and_exit_2(
    run: Run,
    kernels_csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    # Formats are told by suffixes: -o gets the name as it is.
    before = kernels_csv.read_bytes()
    ran = run("propagate", *("kernels.csv" if word == "k" else word for word in argv))
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [kernels_csv]
    assert kernels_csv.read_bytes() == before


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            {"node": "dag", "nodes": [{"id": "e1", "kernel": "gemm"}, {"id": "e2", "duration": 1}],
             "edges": [["e1", "e2"], ["e2", "e1"]]},
            "events wait for each other: 'e1' -> 'e2' -> 'e1'",
        ),
        (
            {"node": "dag", "nodes": [{"id": "e1", "kernel": "gemm"}], "edges": [["e1", "e9"]]},
            "'e9'",
        ),
        (
            {"node": "dag", "nodes": [{"id": "e1", "duration": 1}, {"id": "e1", "duration": 2}],
             "edges": []},
            "'e1'",
        ),
        ({"node": "kernel", "name": "nope"}, "no kernel or quantity is named 'nope'. Kernels: g"),
        ({"node": "kernel", "name": "gemm", "count": 1.5}, "whole number of at least 1, got 1.5"),
        ({"node": "kernel", "name": "gemm", "count": 0}, "whole number of at least 1, got 0"),
        ({"node": "repeat", "child": GEMM, "count": -2}, "whole number of at least 1, got -2"),
        ({"node": "queue", "service": GEMM, "arrival_rate": -1}, "arrival_rate"),
        ({"node": "quantity", "name": "q", "value": 1, "spread": -0.1}, "spread"),
        ({"node": "star", "child": GEMM}, "star"),
        ("no json", "is not strict JSON"),
        ({"a": 1}, "format"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_bad_graphs_are_named(
    run: Run, kernels_csv: Path, written: Any, tmp_path: Path, graph: Any, message: str
) -> None:
    path = written("graph.json", graph)
    argv = ("propagate", kernels_csv, "--spread", "0.1", "--graph", path)
    ran = run(*argv, "-o", tmp_path / "out.csv")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,0.9,-0.9\n0.9,1,0.9\n-0.9,0.9,1\n", "Use nearest_correlation(matrix)"),
        ("1,1.5\n1.5,1\n", "must be in [-1, 1], got (1, 2) = 1.5"),
        ("1,0.5\n0.4,1\n", "must be symmetric"),
        ("1,0.5,0\n0.5,1,0\n0,0,1\n", "has 3 rows, but run 'a' has 2 kernels"),
        ("1,0.5\n", "must be a square matrix"),
        ("gemm,soft\n1,0\n0,1\n", "must hold numbers separated by commas, without a header"),
        ("1,nan\nnan,1\n", "must be finite"),
        ("", "must be a square matrix"),
    ],
)
def test_bad_matrices_are_named(
    run: Run, kernels_csv: Path, written: Any, text: str, message: str
) -> None:
    path = written("matrix.csv", text)
    argv = ("propagate", kernels_csv, "--run", "a", "--spread", "0.1")
    ran = run(*argv, "--correlation", "matrix", "--matrix", path)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel_class,spread\nLinear,-0.1\n", "spread must be a number that is not negative"),
        ("kernel_class,spread\nLinear,0.1\nLinear,0.2\n", "class 'Linear' occurs twice"),
        ("kernel_class,bias\nLinear,0.1\n", "no column 'spread'"),
        ("kernel_class,spread\nLinear,0.1\n", "no error for kernel class 'Softmax'"),
        ("kernel_class,spread\n,0.1\n", "kernel_class is missing in line 2"),
    ],
)
def test_bad_errors_are_named(
    run: Run, kernels_csv: Path, written: Any, text: str, message: str
) -> None:
    ran = run("propagate", kernels_csv, "--errors", written("errors.csv", text))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.extras
def test_a_figure_that_cannot_be_drawn_leaves_nothing(
    run: Run, kernels_csv: Path, written: Any, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    graph = written("graph.json", GEMM)
    argv = ("propagate", kernels_csv, "--run", "a", "--graph", graph)
    out, figure = tmp_path / "out.csv", tmp_path / "budget.svg"
    ran = run(*argv, "--figure", f"budget={figure}", "-o", out)
    assert (ran.code, ran.out) == (2, "")
    assert "no error budget" in ran.err
    assert not out.exists()
    assert not figure.exists()


def test_without_matplotlib_nothing_is_computed(
    run: Run, kernels_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errcomp.cli.output.find_spec", lambda _: None)
    ran = run("propagate", kernels_csv, "--figure", "bands=a.svg")
    assert ran.code == 2
    assert "errcomp[figures]" in ran.err


def test_units_of_two_tables_are_not_mixed(run: Run, kernels_csv: Path, written: Any) -> None:
    new = written("new.csv", "kernel,kernel_class,predicted,unit\ng,Linear,3.0,us\n")
    ran = run("propagate", new, "--train", "neusight-kernels")
    assert ran.code == 2
    assert "new.csv: the kernels are in us, but the errors were fitted to times in ms" in ran.err


@pytest.mark.extras
def test_bounds_have_no_distribution_to_draw(run: Run, kernels_csv: Path) -> None:
    pytest.importorskip("matplotlib")
    chosen = ("--correlation", "unknown", "--figure", "pit=a.svg")
    ran = run("propagate", "validate", kernels_csv, *chosen)
    assert ran.code == 2
    assert "bounds without a distribution" in ran.err


def test_the_old_name_of_an_option_warns(run: Run, kernels_csv: Path) -> None:
    old = run("propagate", kernels_csv, "--spread", "10%", "--assume", "independent", "--json")
    new = run("propagate", kernels_csv, "--spread", "10%", "--correlation", "independent", "--json")
    assert old.out == new.out
    assert old.err == "errcomp: warning: --assume is now --correlation\n"
    assert "--assume" not in run("propagate", "--help").out
