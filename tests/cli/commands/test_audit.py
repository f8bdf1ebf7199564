from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
COLUMNS = ("--predicted", "estimate", "--measured", "latency")


def test_the_embedded_table_as_json_keeps_its_contract(run: Run) -> None:
    ran = run("audit", "neusight", "--by", "device,mode", "--json")
    assert ran.code == 0
    rows = ran.json["rows"]
    assert sum(row["n"] for row in rows) == 146
    assert len({row["device"] for row in rows}) == 12
    found = {(row["device"], row["mode"]): row for row in rows}
    v100 = found["V100", "inference"]
    assert round(v100["mape"], 4) == 0.0587
    assert v100["mape_low"] < v100["mape"] < v100["mape_high"]
    assert (v100["claimed"], v100["verdict"]) == (0.052, "consistent")
    p4 = found["P4", "inference"]
    assert (round(p4["mape"], 4), round(p4["max_ape"], 4)) == (0.271, 0.653)
    assert p4["claimed"] is None
    assert {"gmape", "caveats"} <= p4.keys()
    assert p4["caveats"][0].keys() == {"code", "message", "evidence"}
    assert ran.json["schema"] == "errcomp.audit/1"


def test_people_get_a_table_of_at_most_a_hundred_columns(run: Run) -> None:
    ran = run("audit")
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 100
    assert any("H100" in line and "overstated" in line and "[" in line for line in lines)
    assert "What the MAPE of all 146 pairs hides" in ran.out
    assert "habitat, micro, roofline" in ran.out
    assert "  maybe overstated  pooled-variants +5" in ran.out
    assert "9 claims are checked" in ran.out
    assert 'A verdict with "maybe" is not significant after' in ran.out
    assert lines[0].endswith(": dataset neusight, tool neusight")
    assert "44.0]‡" in ran.out
    assert "H100 training: the median of these pairs matches the claim of 4.1 %." in ran.out
    # Titles are those of checks of pairs, although some codes exist between tools as well.
    assert "The tools predict different levels" not in run("audit", "--tool", "micro").out
    assert "\x1b" not in ran.out


def test_all_tools_stand_apart(run: Run) -> None:
    argv = ("audit", "neusight", "--tool", "all", "--by", "mode", "--where", "mode=training")
    rows = run(*argv, "--json").json["rows"]
    assert {(r["tool"], r["n"]) for r in rows if r["mode"] == "training"} == {
        ("neusight", 52),
        ("habitat", 26),
        ("micro", 26),
        ("roofline", 26),
    }


def test_the_users_own_file_and_claim(run: Run, pairs_csv: Path) -> None:
    ran = run("audit", pairs_csv, *COLUMNS, "--claim", "0.1%", "--cluster", "none", "--json")
    assert [row["gpu"] for row in ran.json["rows"]] == ["A", "B"]
    assert [row["claimed"] for row in ran.json["rows"]] == [0.001, 0.001]
    assert ran.json["claims"][0]["verdict"] == "overstated"
    assert ran.json["claims"][0]["claimed_printed"] == "0.1%"


def test_a_claim_is_told_in_per_cent_and_kept_as_written(run: Run, pairs_csv: Path) -> None:
    argv = ("audit", pairs_csv, *COLUMNS, "--by", "gpu", "--claim", "0.001")
    ran = run(*argv)
    assert "0.001" not in ran.out
    assert "0.1 % (given by the user)" in ran.out
    assert run(*argv, "--json").json["claims"][0]["claimed_printed"] == "0.001"


def test_columns_of_odd_names(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    rows = [f"{100 + 7 * i},{90 + 8 * i},{'AB'[i % 2]},net{i % 3}" for i in range(12)]
    path.write_text("\n".join(["pred_ms,real_ms,rack,topology", *rows]) + "\n")
    plain = run("audit", path, "--predicted", "pred_ms", "--measured", "real_ms")
    assert "Every pair counts as independent, because no column shows which" in plain.out
    assert "--column device=COLUMN" in " ".join(plain.out.split())
    named = ("--column", "predicted=pred_ms", "--measured", "real_ms", "--column", "device=rack",
             "--column", "model=topology")  # fmt: skip
    ran = run("audit", path, *named, "--json")
    assert [row["device"] for row in ran.json["rows"]] == ["A", "B"]
    assert ran.json["cluster_keys"] == ["model", "device"]
    assert "Every pair counts as independent" not in run("audit", path, *named).out
    figures = run("metrics", path, *named, "--by", "model", "--json")
    assert [row["model"] for row in figures.json["rows"]] == ["net0", "net1", "net2"]


@pytest.mark.parametrize("by", [("--by", "gpu"), (), ("--by", ",")])
def test_flat_rows_have_all_pairs_too(run: Run, pairs_csv: Path, by: tuple[str, ...]) -> None:
    argv = ("audit", pairs_csv, *COLUMNS, "--claim", "0.1%", "--cluster", "none", *by)
    rows = list(csv.DictReader(run(*argv, "--format", "csv").out.splitlines()))
    grouped = by != ("--by", ",")
    assert [row["n"] for row in rows] == (["6", "6", "12"] if grouped else ["12"])
    assert [row.get("gpu") for row in rows] == (["A", "B", ""] if grouped else [None])
    assert rows[-1]["verdict"] == "overstated"
    written = pairs_csv.with_name("t.csv")
    run(*argv, "-o", written)
    assert list(csv.DictReader(written.read_text().splitlines())) == rows


@pytest.mark.parametrize(("verdict", "code"), [("overstated", 1), ("understated", 0)])
def test_a_requested_check_decides_the_exit_code(
    run: Run, pairs_csv: Path, verdict: str, code: int
) -> None:
    argv = ("audit", pairs_csv, *COLUMNS, "--claim", "0.1%", "--fail-on", verdict)
    assert run(*argv).code == code


def test_where_selects_rows(run: Run) -> None:
    ran = run(
        "audit", "neusight", "--where", "device=H100,L4", "--where", "mode=inference", "--json"
    )
    assert [(r["device"], r["n"]) for r in ran.json["rows"]] == [("H100", 16), ("L4", 11)]


def test_the_same_seed_gives_the_same_bytes(run: Run) -> None:
    argv = ("audit", "neusight", "--where", "device=H100", "--json", "--seed", "7")
    assert run(*argv).out == run(*argv).out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("audit", "nothing.csv"), "nothing.csv: no such file, and no built-in table"),
        (("audit", "neusight", "--by", "colour"), "no column 'colour'"),
        (("audit", "neusight", "--tool", "vidur"), "no tool 'vidur'"),
        (("audit", "neusight", "--where", "device=H200"), "no row has device=H200"),
        (("audit", "neusight", "--where", "device"), "--where takes KEY=VALUE"),
        (("audit", "neusight", "--column", "device"), "--column takes NAME=COLUMN, got 'device'"),
        (("audit", "neusight", "--column", "device=gpu"), "Leave out --predicted, --measured, --c"),
        (("metrics", "neusight", "--column", "a=b", "--column", "a=c"), "names a twice: 'b' and"),
        (
            ("audit", "neusight", "--predicted", "x", "--column", "predicted=y"),
            "--predicted x and --column predicted=y contradict",
        ),
        (
            ("metrics", "neusight", "--where", "device=H100,L4, mode=inference,training"),
            "Write one --where per key: --where device=H100,L4 --where mode=inference,training",
        ),
        (("audit", "neusight", "--claim", "good"), "cannot read the figure 'good'"),
        (("audit", "neusight", "--metric", "correlation"), "--metric is the metric of --claim"),
        (("audit", "neusight", "--aggregation", "total"), "--aggregation says how --claim"),
        (("audit", "neusight", "--claim", "5"), "has no % sign"),
        (("audit", "neusight", "--claim=-5%"), "not positive"),
        (("audit", "neusight", "--claim", "<0%"), "not positive"),
        (
            ("audit", "neusight", "--claim", "1e99999999999%"),
            "Write the number without an exponent",
        ),
        (("audit", "neusight", "--claim", "٥%"), "cannot read the figure"),
        (("audit", "neusight", "--aggregation", "mean"), "give --claim as well"),
        (("audit", "neusight", "--seed", "-1"), "is not a seed"),
        (("audit", "neusight", "--by", "device,device"), "names device more than once"),
        (("audit", "a\nb\x1b[31m.csv"), "a\\nb\\x1b[31m.csv: no such file"),
        (("audit", "x" * 300), "File name too long"),
        (("audit", "neusight", "--predicted", "x"), "its columns and unit are known"),
        (("audit", "neusight", "--level", "1.5"), "level"),
        (("audit", "neusight", "-o", "x.xlsx"), "cannot determine the format"),
        (("audit", "neusight", "--fail-on", "bad"), "invalid choice: 'bad'"),
        (("audit", "neusight", "--aggregation", "mode", "--claim", "1%"), "no average is called"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    run: Run, argv: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*argv)
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
