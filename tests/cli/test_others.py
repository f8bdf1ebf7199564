"""The other commands: each runs on real data, for people and for machines, and refuses nonsense."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Run = Callable[..., Any]
FIGURES = ("--value", "neusight=2.3%", "--value", "habitat=121.4%", "--value", "micro=30.8%")


def test_the_search_explains_the_abstract(run: Run, tmp_path: Path) -> None:
    # All keys are searched for the survey, and in test_search.py.
    argv = ("claims", "search", "neusight", *FIGURES, "--keys", "device,model")
    ran = run(*argv, "-o", tmp_path / "found.json")
    assert "coincidence is unlikely" in ran.out
    best = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["matches"][0]
    assert best["where"] == {"device": ["H100"], "model": ["gpt3_27", "gpt3_xl"]}
    assert (best["aggregation"], best["denominator"], best["n"]) == ("mean", "measured", 6)
    assert {k: round(v, 4) for k, v in best["values"].items()} == {
        "neusight": 0.0233,
        "habitat": 1.2140,
        "micro": 0.3076,
    }
    assert best["expected_by_chance"] < 0.001


@pytest.mark.slow
def test_the_search_explains_the_overall_figure(run: Run) -> None:
    argv = ("claims", "search", "neusight", "--value", "neusight=8.9%", "--where", "vendor=NVIDIA")
    best = run(*argv, "--json").json["matches"][0]
    assert (best["where"], best["aggregation"], best["n"]) == ({"variant": ["base"]}, "mean", 80)


def test_claims_are_listed_and_shown(run: Run) -> None:
    ran = run("claims", "list", "--json")
    assert len({row["tool"] for row in ran.json["rows"]}) == 57
    assert all(row["url"] and row["work"]["url"] for row in ran.json["rows"])
    (one,) = (r for r in ran.json["rows"] if r["tool"] == "Wattchmen" and r["printed"] == "14%")
    assert (one["n"], one["protocol"]) == (16, "not stated")
    assert "held-out GPU" in " ".join(run("claims", "show", "KernelSight-LM").out.split())
    assert max(map(len, run("claims", "list").out.splitlines())) <= 100
    assert all(
        "kernel" in r["level"]
        for r in run("claims", "list", "--level", "kernel", "--json").json["rows"]
    )
    assert "Overstated 2–4×" in run("claims", "show", "neusight").out


def test_the_survey_is_replicated(run: Run) -> None:
    fails = ("--fail-on", "not reproduced")
    ran = run("replicate", "survey", "--json", *fails)
    assert ran.code == 1
    assert ran.json["counts"]["all"] == {
        "reproduced": 130,
        "reproduced under another rule": 39,
        "not reproduced": 38,
        "no data": 160,
    }
    one = run("replicate", "survey", "--table", "table6_neusight", *fails)
    assert one.code == 0
    assert "pooled (16)" in one.out
    assert " 0.79 % (8)" in one.out
    told = " ".join(one.out.split())
    assert "Chance (rules): shown where no stated rule gives the printed figure. " in told
    assert "In brackets: the number of rules tried." in told
    several = run("replicate", "survey", "--table", "statements").out
    assert several.startswith("Several sections (statements)")
    assert "Chance (rules)" not in run("replicate", "survey", "--table", "table3_suite").out
    every = " ".join(run("replicate", "survey").out.split())
    assert (
        "In 39 of these cells, another rule gives the figure; by chance, this would be expected in "
        "about 5.3 cells. 13 of"
    ) in every
    assert "so those 13 say little about the rule" in every
    assert max(map(len, one.out.splitlines())) <= 100


def test_figures_by_any_key(run: Run) -> None:
    ran = run("metrics", "neusight", "--by", "mode", "--figures", "mape,rmse", "--json")
    assert [row["n"] for row in ran.json["rows"]] == [94, 52]
    assert ran.json["rows"][0].keys() >= {"mode", "n", "mape", "mape_low", "rmse", "rmse_high"}
    assert "all pairs" in run("metrics", "neusight", "--by", "mode").out
    assert "246 ms" in run("metrics", "neusight", "--figures", "rmse").out
    assert "ignored: 240 pairs from other tools" in run("metrics", "neusight").out
    by_tool = run("metrics", "neusight", "--tool", "all", "--json").json
    assert by_tool["pooled"] is None  # the errors of all tools together are nobody's
    assert "all pairs" not in run("metrics", "neusight", "--tool", "all").out
    assert [row["tool"] for row in by_tool["rows"]] == ["habitat", "micro", "neusight", "roofline"]


def test_every_figure_is_explained(run: Run) -> None:
    names = {row["name"] for row in run("metrics", "list", "--json").json["rows"]}
    assert {"mape", "gmape", "wape", "top_1_regret"} <= names


@pytest.mark.extras
def test_drivers_print_verdicts_first(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("statsmodels")
    ran = run("metrics", "drivers", "-o", tmp_path / "drivers.json")
    assert ran.out.index("contradicted") < ran.out.index("Ratio of APE")
    assert max(map(len, ran.out.splitlines())) <= 100
    verdicts = json.loads((tmp_path / "drivers.json").read_text(encoding="utf-8"))["statements"]
    assert [v["verdict"] for v in verdicts] == ["contradicted", "undecided", "undecided"]


@pytest.mark.slow
def test_datasets_are_listed_shown_and_exported(run: Run, tmp_path: Path) -> None:
    assert [r["name"] for r in run("datasets", "list", "--json").json["rows"]] == [
        "neusight",
        "neusight-kernels",
        "ort-cpu",
        "ort-releases",
        "survey",
        "torch-cpu",
        "torch-cuda",
    ]
    shown = run("datasets", "show", "neusight").out
    assert "MIT" in shown
    assert "measured_ms" in shown
    for suffix in ("csv", "parquet", "jsonl"):
        path = tmp_path / f"n.{suffix}"
        assert run("datasets", "export", "neusight", "-o", path).code == 0
        again = run("audit", path, "--predicted", "predicted_ms", "--measured", "measured_ms",
                    "--tool", "neusight", "--json")  # fmt: skip
        assert sum(row["n"] for row in again.json["rows"]) == 146


@pytest.mark.slow
@pytest.mark.shared
def test_the_artifact_is_ingested(run: Run, shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "neusight-artifact"
    pairs, kernels = tmp_path / "pairs.parquet", tmp_path / "kernels.parquet"
    ran = run("ingest", "neusight", source, "-o", pairs)
    assert (ran.code, "wrote 386 rows" in ran.err) == (0, True)
    assert "3 measured without prediction" in ran.err
    assert (
        sum(r["n"] for r in run("audit", pairs, "--tool", "neusight", "--json").json["rows"]) == 146
    )
    assert run("ingest", "neusight", source, "--level", "kernel", "-o", kernels).code == 0
    assert pl.read_parquet(kernels).height > 40_000
    assert run("audit", source, "--tool", "neusight", "--json").json["n"] == 146


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "source"),
    [
        # The function that the command calls builds these two in test_datasets.py.
        pytest.param("neusight", "neusight-artifact", marks=pytest.mark.slow),
        pytest.param("neusight-kernels", "neusight-artifact", marks=pytest.mark.slow),
        ("survey", "."),
    ],
)
def test_embedded_tables_are_rebuilt_to_the_byte(
    name: str, source: str, run: Run, shared_data: Path, tmp_path: Path
) -> None:
    from errcomp import datasets

    argv = ("datasets", "build", name, "--from", shared_data / source, "--to", tmp_path / name)
    assert run(*argv).code == 0
    for path in (tmp_path / name).iterdir():
        assert path.read_bytes() == (datasets.folder(name) / path.name).read_bytes()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "usage: errcomp"),
        (("nonsense",), "invalid choice: 'nonsense'"),
        (("claims", "list", "--level", "none"), "no claim of level 'none'"),
        (("claims", "show", "neusigth"), "Did you mean 'NeuSight'?"),
        (("claims", "search", "neusight"), "--value"),
        (("claims", "search", "neusight", "--value", "x=1%"), "x"),
        (("claims", "search", "neusight", "--value", "neusight=a"), "cannot read the figure"),
        (("claims", "search", "--value", "neusight=1%", "--value", "neusight=2%"), "two figures"),
        (("replicate", "survey", "--table", "table99"), "no table 'table99'"),
        (("metrics", "neusight", "--figures", "mapes"), "mape"),
        (("metrics", "neusight", "other"), "takes one table"),
        (("metrics", "drivers", "--by", "mode"), "does not take --by"),
        (("audit", "neusight", "--zeros", "exclude"), "all its rows have values. Leave out"),
        (("audit", "neusight", "--decimal", ","), "all its rows have values. Leave out"),
        (("metrics", "list", "--figures", "mape"), "does not take --figures"),
        (("datasets", "show", "nothing"), "there is no dataset 'nothing'"),
        (("datasets", "build", "neusight", "--from", "."), "artifact"),
        (("ingest", "neusight", ".", "-o", "x.parquet"), "artifact"),
    ],
)
def test_bad_usage_says_so_and_leaves_nothing(
    run: Run, argv: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*argv)
    assert ran.code == 2
    assert message in ran.err + ran.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.core
def test_it_runs_as_a_module_and_answers_quickly() -> None:
    import time

    times = []
    for _ in range(5):
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "errcomp", "--help"], capture_output=True, text=True, check=True
        )
        times.append(time.perf_counter() - begun)
    assert "audit" in done.stdout
    # The budget is 0.3 s on an idle machine; tests share the machine, so the quickest run counts.
    assert min(times) < 0.5
    heavy = "import sys, errcomp.cli; errcomp.cli.build_parser();"
    heavy += "print(sorted({'numpy', 'scipy', 'polars', 'narwhals', 'rich'} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", heavy], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


def test_the_input_is_never_overwritten(run: Run, pairs_csv: Path) -> None:
    before = pairs_csv.read_bytes()
    ran = run(
        "metrics", pairs_csv, "--predicted", "estimate", "--measured", "latency", "-o", pairs_csv
    )
    assert (ran.code, "would overwrite an input" in ran.err) == (2, True)
    assert pairs_csv.read_bytes() == before


@pytest.mark.slow
@pytest.mark.shared
def test_what_an_artifact_lacks_is_said(run: Run, shared_data: Path) -> None:
    ran = run("audit", shared_data / "neusight-artifact", "--tool", "neusight")
    assert "3 measured without prediction" in ran.err


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    import os

    command = command.replace("errcomp", f"{sys.executable} -m errcomp", 1)
    variables = {**os.environ, **environment}
    return subprocess.run(["bash", "-c", command], capture_output=True, env=variables, check=False)


@pytest.mark.slow
@pytest.mark.core
def test_a_reader_that_leaves_does_not_change_the_exit_code() -> None:
    done = shell(
        "errcomp audit neusight --tool all --fail-on overstated | head -1; exit ${PIPESTATUS[0]}"
    )
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.slow
@pytest.mark.core
def test_another_encoding_gets_escapes_and_a_full_disk_a_message() -> None:
    done = shell("errcomp audit neusight", PYTHONIOENCODING="ascii")
    assert (done.returncode, b"\\u2020" in done.stdout) == (0, True)
    full = shell("errcomp datasets list > /dev/full")
    assert (full.returncode, full.stderr.count(b"\n")) == (2, 1)
    assert b"No space left" in full.stderr


def test_values_of_the_user_cannot_break_a_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    data = {"predicted": [1.0, 2.0], "measured": [1.0, 1.0], "device": ["a\nb", "\x1b[31mred"]}
    pl.DataFrame(data).write_parquet(path)
    ran = run("metrics", path, "--by", "device", "--figures", "mape", "-o", tmp_path / "t.md")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "a\\nb" in ran.out
    assert "a\\\\nb" in (tmp_path / "t.md").read_text(encoding="utf-8")


def test_readers_say_which_were_tested_on_real_output(run: Run) -> None:
    rows = run("readers", "--json").json["rows"]
    shown = {line.split("  ")[0].strip(): line for line in run("readers").out.splitlines()}
    for row in rows:
        if row["tool"] in shown:
            assert shown[row["tool"]].rstrip().endswith(("no", "yes")[row["sample_tested"]])
    assert {row["sample_tested"] for row in rows if row["tool"] in shown} == {True, False}
