"""``errcomp halflife``: tables, documents, the gate's exit code and files, bad input."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp import datasets
from errcomp.documents import json_schema

Run = Callable[..., Any]


def text(first: int = 0, end: int = 14, slow_from: int = 99, seed: int = 0) -> str:
    """Eight operators of two classes under versions 1.first to 1.end; Gelus slow down."""
    rng = np.random.default_rng([seed, first])
    lines = ["release,day,op,shape,run,latency"]
    for version in range(first, end):
        day = f"20{20 + version // 4}-{1 + 3 * (version % 4):02}-01"
        for kind in ("Conv", "Gelu"):
            for shape in range(4):
                slow = 1.5 if kind == "Gelu" and version >= slow_from else 1.0
                for repeat in range(2):
                    time = (shape + 1) * slow * math.exp(rng.normal(0, 0.01))
                    lines.append(f"1.{version},{day},{kind},{shape},{repeat},{time:.6f}")
    return "\n".join(lines) + "\n"


READING = ("--column", "version=release", "--column", "released=day", "--column", "repeat=run",
           "--column", "measured=latency", "--unit", "ms")  # fmt: skip


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """How precise the bounds of forecasts are is tested elsewhere."""
    monkeypatch.setattr("errcomp.halflife.forecast.compound_poisson._DRAWS", 50)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.csv"
    path.write_text(text(slow_from=8), encoding="utf-8")
    return path


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "short.csv"
    path.write_text(text(end=6, slow_from=3), encoding="utf-8")
    return path


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    path = tmp_path / "quiet.csv"
    path.write_text(text(), encoding="utf-8")
    return path


def new(tmp_path: Path, **options: Any) -> Path:
    path = tmp_path / "new.csv"
    path.write_text(text(14, 15, **options), encoding="utf-8")
    return path


def test_fit_says_when_and_which_release(run: Run, history: Path) -> None:
    done = run("halflife", "fit", history, *READING, "--by", "op", "--error", "10%")
    assert (done.code, done.err) == (0, "")
    assert "Half-life in releases" in done.out
    assert "Half-life in months" in done.out
    gelu = next(line for line in done.out.splitlines() if line.startswith("Gelu"))
    assert "10.00 % (given)" in gelu
    assert "4 of 4, after 8" in gelu
    conv = next(line for line in done.out.splitlines() if line.startswith("Conv"))
    assert "0 of 4" in conv
    steps = done.out[done.out.index("Steps: which release") :]
    assert "1.8" in steps
    assert "4 of 4" in steps
    assert "-33." in steps


def test_the_document_has_a_row_per_group_clock_and_method(run: Run, history: Path) -> None:
    done = run("halflife", "fit", history, *READING, "--by", "op", "--error", "0.1", "--json")
    assert done.code == 0
    document = done.json
    assert document["schema"] == "errcomp.half-lives/1"
    rows = document["rows"]
    assert {row["op"] for row in rows} == {"Conv", "Gelu"}
    assert {row["unit"] for row in rows} == {"releases", "months"}
    names = {"half_life", "low", "high", "unit", "censored_share", "n_units", "method", "steps"}
    assert all(names < set(row) for row in rows)
    trajectory = [r for r in rows if (r["op"], r["method"]) == ("Gelu", "trajectory")]
    assert trajectory
    assert document["noise"]["sd"] == pytest.approx(0.01, rel=0.3)


def test_one_group_shows_the_laws(run: Run, history: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    done = run("halflife", "fit", history, *READING, "--error", "10%", "-o", target)
    assert done.code == 0
    assert "Median survival if the times follow a distribution" in done.out
    assert target.read_text(encoding="utf-8").startswith("method,half_life,low,high")


def test_a_store_is_read_as_a_file_is(run: Run, short: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    assert run("history", "add", store, short, *READING).code == 0
    by_file = run("halflife", "fit", short, *READING, "--error", "10%", "--json").json
    by_store = run("halflife", "fit", store, "--error", "10%", "--json").json
    assert by_store["rows"] == by_file["rows"]
    chosen = run("halflife", "fit", store, "--where", "op=Gelu", "--error", "10%", "--json").json
    assert {row["n_units"] for row in chosen["rows"]} <= {4, 8}


def test_check_passes_what_is_as_before(run: Run, quiet: Path, tmp_path: Path) -> None:
    done = run("halflife", "check", quiet, new(tmp_path), *READING, "--by", "op")
    assert done.code == 0, done.out
    assert "PASS" in done.out
    assert "would be detected half of the time" in done.out


def test_a_series_that_is_too_short_says_how_many_more(run: Run, tmp_path: Path) -> None:
    old, fresh = tmp_path / "old.csv", tmp_path / "fresh.csv"
    # Check number 40 of a single series that is new at the last two.
    lines = [
        f"1.{v},{op},{1 + 0.01 * (v % 2)}" for v in range(40) for op in "ab" if op < "b" or v > 37
    ]
    old.write_text("version,op,measured\n" + "\n".join(lines) + "\n", encoding="utf-8")
    fresh.write_text("version,op,measured\n1.40,b,1.0\n", encoding="utf-8")
    done = run("halflife", "check", old, fresh, "--series", "op")
    assert done.code == 0, done.err
    assert "CANNOT TELL YET." in done.out
    assert "too few validations to know the noise: 4 more needed" in done.out


@pytest.mark.slow
def test_one_bad_run_asks_for_a_repeat(run: Run, tmp_path: Path) -> None:
    old, fresh, junit = (tmp_path / name for name in ("old.csv", "fresh.csv", "check.xml"))
    lines = [f"1.{v},{1 + 0.01 * math.sin(7 * v)}" for v in range(30)]
    old.write_text("version,measured\n" + "\n".join(lines) + "\n", encoding="utf-8")
    runs = ["1.30,1.5", "1.30,1.51", "1.30,1.49", "1.30,1.505"]

    def checked(n: int, *more: object) -> Any:
        fresh.write_text("version,measured\n" + "\n".join(runs[:n]) + "\n", encoding="utf-8")
        return run("halflife", "check", old, fresh, *more)

    once = checked(1, "--junit", junit)
    assert once.code == 0
    assert "REPEAT NEEDED." in once.out
    assert "Runs" in once.out
    assert 'skipped message="repeat needed in 1 of 1 series' in junit.read_text(encoding="utf-8")
    assert checked(1, "--fail-on", "repeat", "--junit", junit).code == 1
    assert 'type="repeat"' in junit.read_text(encoding="utf-8")
    document = json.loads(checked(1, "--json").out)
    assert (document["outcome"], document["series"][0]["verdict"]) == ("repeat", "repeat")
    needed = document["series"][0]["repeats_needed"]
    assert 1 <= needed <= 3
    assert checked(1 + needed).code == 1
    assert "REGRESSION." in checked(4).out


def test_whoever_waits_sees_what_is_done(
    run: Run, quiet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = []

    @contextmanager
    def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[float, float], None]]:
        titles.append((title, quiet))
        yield lambda done, total: None

    monkeypatch.setattr("errcomp.cli.commands.halflife.progress", progress)
    assert run("halflife", "fit", quiet, *READING).code == 0
    assert run("halflife", "forecast", quiet, *READING, "--error", "10%", "--json").code == 0
    assert run("halflife", "check", quiet, new(tmp_path), *READING).code == 0
    assert titles == [("fitting half-lives", False), ("forecasting", True), ("checking", False)]


def test_check_fails_with_who_is_to_blame(run: Run, quiet: Path, tmp_path: Path) -> None:
    junit, summary = tmp_path / "check.xml", tmp_path / "summary.md"
    done = run(
        "halflife", "check", quiet, new(tmp_path, slow_from=0), *READING, "--by", "op",
        "--junit", junit, "--markdown", summary, "--recalibrate",
    )  # fmt: skip
    assert done.code == 1
    assert "REGRESSION" in done.out
    assert "Gelu" in done.out
    assert "Recalibrated: old against new" in done.out
    assert f"wrote {junit}" in done.err
    cases = ET.parse(junit).iter("testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert failed == ["Gelu"]
    assert "Gelu" in summary.read_text(encoding="utf-8")
    document = run("halflife", "check", quiet, new(tmp_path, slow_from=0), *READING, "--json").json
    assert document["outcome"] == "regression"
    assert document["recalibration"] is None


def test_growth_within_the_margin_passes(run: Run, quiet: Path, tmp_path: Path) -> None:
    slow = new(tmp_path, slow_from=0)
    assert run("halflife", "check", quiet, slow, *READING, "--margin", "60%").code == 0
    assert run("halflife", "check", quiet, slow, *READING, "--error", "60%").code == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("fit", "nothing.csv"), "no such file, and no built-in history of that name"),
        (("fit", "HISTORY", "--error", "500%"), "is not between 0 and 100 %"),
        (("fit", "HISTORY", "--error", "much"), "--error"),
        (("fit", "HISTORY", *READING, "--by", "kind"), "no column 'kind'"),
        (("fit", "HISTORY"), "missing column"),
        (("forecast", "HISTORY", *READING, "--age", "14"), "age must be between 0 and 13 releases"),
        (("forecast", "HISTORY", *READING, "--error", "0"), "promised error must be positive"),
        (("forecast", "HISTORY", *READING, "--below", "0%"), "below must be a probability"),
        (("forecast", "nothing.csv"), "no such file, and no built-in history of that name"),
        (("check", "HISTORY", "HISTORY", *READING), "has all versions of the new table"),
        (("show", "gpu"), "invalid choice"),
    ],
)
def test_bad_input_is_one_line_and_2(
    run: Run, history: Path, argv: tuple[str, ...], said: str
) -> None:
    done = run("halflife", *[history if part == "HISTORY" else part for part in argv])
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_what_is_read_is_not_overwritten(run: Run, history: Path) -> None:
    before = history.read_bytes()
    done = run("halflife", "fit", history, *READING, "-o", history)
    assert done.code == 2
    assert history.read_bytes() == before


def test_a_store_needs_no_columns(run: Run, history: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    run("history", "add", store, history, *READING)
    done = run("halflife", "fit", store, "--unit", "ms")
    assert done.code == 2
    assert "is a store" in done.err


@pytest.mark.extras
def test_figures_are_written(run: Run, short: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    errors, heat = tmp_path / "errors.png", tmp_path / "heat.svg"
    done = run("halflife", "fit", short, *READING, "--error", "10%", "--figure", f"errors={errors}")
    assert (done.code, errors.stat().st_size > 1000) == (0, True)
    assert f"wrote {errors}" in done.err
    done = run("halflife", "fit", short, *READING, "--by", "op", "--figure", f"heat={heat}")
    assert (done.code, heat.exists()) == (0, True)
    done = run("halflife", "fit", short, *READING, "--figure", f"pie={heat}")
    assert done.code == 2
    assert "--figure takes errors=FILE or survival=FILE" in done.err


def test_too_few_versions_are_said_to_be_too_few(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("version,measured\n1.0,1\n1.1,2\n", encoding="utf-8")
    done = run("halflife", "fit", path)
    assert done.code == 0
    told = " ".join(done.out.split())
    assert "No series could be searched for steps: at least 4 values are needed" in told
    assert told.endswith("after a step), the series has 2.")


@pytest.mark.extras
def test_the_study_says_what_moved(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    # Five networks at eight of the releases tell it, too.
    networks = ["encoder", "encoder_int8", "layernorm", "conv", "gemm"]
    versions = ["1.15.0", "1.20.0", "1.24.4", "1.28.0", "1.29.0", "1.30.0", "1.31.0", "1.31.1"]
    known = datasets.load("ort-releases").where({"model": networks, "version": versions})
    asked = []
    monkeypatch.setattr(datasets, "load", lambda name: asked.append(name) or known)
    done = run("halflife", "show", "ort", "-o", tmp_path / "study.json")
    assert (done.code, done.err) == (0, f"wrote {tmp_path / 'study.json'}\n")
    assert asked == ["ort-releases"]
    tables = done.out.split("\n\n\n")[0]
    assert "a model calibrated at 1.15.0, validated at every release to 1.31.1" in tables
    skip = next(line for line in done.out.splitlines() if line.startswith("SkipLayerNorm"))
    assert "1.30.0" in skip
    # One sign everywhere: predicted over measured, as in the table of steps.
    assert "-72.4 %" in skip
    assert "above 0, the measured time fell (a speed-up)" in " ".join(done.out.split())
    steps = done.out[done.out.index("Steps: which release") :].splitlines()
    assert any("SkipLayerNormalization" in line and "-7" in line for line in steps)
    document = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, json_schema("half-life-study"))
    assert document["schema"] == "errcomp.half-life-study/1"
    assert {row["level"] for row in document["modelled"]["rows"]} == {"composition", "model"}
    # Two processes of one release agree.
    for one in document["alike"]:
        assert one["low"] < 0 < one["high"]


def test_a_store_is_checked_against_a_table_of_other_columns(
    run: Run, quiet: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    assert run("history", "add", store, quiet, *READING).code == 0
    done = run("halflife", "check", store, new(tmp_path, slow_from=0), *READING, "--by", "op")
    assert done.code == 1, done.err
    assert "Gelu" in done.out


def test_versions_in_a_store_can_be_ordered(run: Run, tmp_path: Path) -> None:
    path, store = tmp_path / "hashes.csv", tmp_path / "store.db"
    path.write_text("version,measured\na1b,1\nc2d,2\n", encoding="utf-8")
    assert run("history", "add", store, path, "--order", "c2d,a1b").code == 0
    assert "cannot be ordered" in run("halflife", "fit", store).err
    done = run("halflife", "fit", store, "--order", "c2d,a1b", "--json")
    assert done.json["versions"] == ["c2d", "a1b"]


COMMITS = (
    "version,op,measured,day,position\n"
    "3333333,Gelu,1.0,2026-01-02,1\n1111111,Gelu,1.1,2026-01-01,1\n2222222,Gelu,1.2,2026-01-01,2\n"
)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("option", "versions"),
    [
        (["--order-by", "day,position"], ["1111111", "2222222", "3333333"]),
        (["--order-by", "rows"], ["3333333", "1111111", "2222222"]),
        (["--git-log", "git.log"], ["2222222", "1111111", "3333333"]),
    ],
)
def test_commits_of_one_day_need_no_list(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: list[str],
    versions: list[str],
    stored: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("git.log").write_text(
        "4444444444 (HEAD -> main) D\n3333333333 C\n1111111111 A\n2222222222 B\n"
    )
    Path("h.csv").write_text(COMMITS, encoding="utf-8")
    source, named = "h.csv", ["--series", "op"]
    if stored:
        assert run("history", "add", "h.db", "h.csv", *named, *option).code == 0
        source = "h.db"
    done = run("halflife", "fit", source, *named, *option, "--json")
    assert done.json["versions"] == versions, done.err
    later = COMMITS.splitlines()[0] + "\n4444444,Gelu,9.0,2026-01-03,1\n"
    Path("new.csv").write_text(later, encoding="utf-8")
    done = run("halflife", "check", source, "new.csv", "--series", "op", *option, "--json")
    assert done.json["version"] == "4444444", done.err


@pytest.mark.parametrize(
    "option",
    [
        "--order 1,2",
        "--order-by rows",
        "--git-log -",
        "--series op",
        "--unit s",
        "--column date=day",
    ],
)
def test_a_built_in_history_is_read_in_one_way(run: Run, option: str) -> None:
    done = run("halflife", "fit", "ort-releases", *option.split())
    assert done.code == 2
    assert "ort-releases is a built-in history: its columns, units and order are known." in done.err


def test_only_one_order_may_be_given(run: Run, history: Path) -> None:
    done = run("halflife", "fit", history, "--order", "a,b", "--order-by", "day")
    assert done.code == 2
    assert "not allowed with" in done.err


def test_without_a_threshold_no_share_is_made_up(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "exact.csv"
    lines = [f"1.{v},{op},{op + 1},{op + 1}" for v in range(6) for op in range(6)]
    path.write_text("version,op,measured,predicted\n" + "\n".join(lines) + "\n", encoding="utf-8")
    rows = run("halflife", "fit", path, "--series", "op", "--json").json["rows"]
    assert rows
    assert all(row["refused"] and row["censored_share"] is None for row in rows)


def test_a_group_of_one_series_among_others_says_when_it_expired(
    run: Run, history: Path, tmp_path: Path
) -> None:
    kept = [
        line
        for line in history.read_text(encoding="utf-8").splitlines()
        if ",Gelu," not in line or ",Gelu,0," in line
    ]
    path = tmp_path / "one.csv"
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    done = run("halflife", "fit", path, *READING, "--by", "op", "--error", "10%")
    gelu = next(line for line in done.out.splitlines() if line.startswith("Gelu"))
    assert "8 [8, 8]" in gelu
    assert "  0 %  " in gelu


def test_forecast_says_how_likely_and_until_when(run: Run, history: Path) -> None:
    done = run("halflife", "forecast", history, *READING, "--by", "op", "--error", "10%")
    assert (done.code, done.err) == (0, "")
    told = " ".join(done.out.split())
    assert "is within 10.00 %, for a model calibrated at 1.13, by releases" in told
    assert "calibrated at 1.13, by months" in told
    assert "Below 90 %" in told
    lines = done.out.splitlines()
    gelu = next(i for i, line in enumerate(lines) if line.startswith("Gelu"))
    # All four stepped once, at 1.8.
    assert "survival  " in lines[gelu]
    assert "100 %" in lines[gelu]
    assert "steps *" in lines[gelu + 1]
    assert "* The method to use for this group." in told
    assert (
        "'Now' means the last version, at which the model is assumed to be calibrated. --age N "
        in told
    )
    assert "Dates count from 2023-04-01" in done.out
    drift = run("halflife", "forecast", history, *READING, "--error", "10%", "--explain").out
    assert " · no forecast by drift: drift is dominated by " in drift


def test_an_older_model_is_said_to_be_one(run: Run, history: Path) -> None:
    done = run("halflife", "forecast", history, *READING, "--error", "10%", "--age", "2",
               "--below", "50%")  # fmt: skip
    assert done.code == 0
    assert "calibrated at 1.11 (2 releases before 1.13)" in done.out.replace("\n", " ")
    assert "was calibrated 2 releases before the last version and not since" in done.out.replace(
        "\n", " "
    )
    assert "Below 50" in done.out


def test_without_a_promise_each_group_has_its_own(run: Run, history: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    done = run("halflife", "forecast", history, *READING, "--by", "op", "-o", target)
    assert done.code == 0
    assert "Promise" in done.out
    assert "8.82 %" in done.out
    assert "less than twice the error at calibration, as in `errcomp halflife fit`" in " ".join(
        done.out.split()
    )
    assert target.read_text(encoding="utf-8").startswith("op,n_units,promise")


def test_the_document_of_a_forecast(run: Run, history: Path) -> None:
    argv = ("halflife", "forecast", history, *READING, "--by", "op", "--error", "10%", "--json")
    document = run(*argv).json
    assert document["schema"] == "errcomp.half-life-forecast/1"
    assert (document["error"], document["age"], document["below"]) == (0.1, 0, 0.9)
    rows = document["rows"]
    assert {(row["op"], row["method"], row["unit"]) for row in rows} == {
        (op, method, unit)
        for op in ("Conv", "Gelu")
        for method in ("survival", "drift", "steps")
        for unit in ("releases", "months")
    }
    # One line of each table answers; the others are there to compare.
    answering = [(row["op"], row["unit"]) for row in rows if row["answers"]]
    assert len(answering) == len(set(answering)) == 4
    for row in rows:
        assert (row["refused"] is None) == bool(row["within"]) == bool(row["assumptions"])
        for one in row["within"]:
            values = (one["low"], one["probability"], one["high"])
            known = [value for value in values if value is not None]
            assert known == sorted(known)


def test_where_only_survival_answers_it_is_the_line_to_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    # Three versions: too short to search for steps, and for drift.
    lines = [f"1.{v},{op},{1 + (v == 2 and op < 2)}" for v in range(3) for op in range(9)]
    path.write_text("version,op,measured\n" + "\n".join(lines) + "\n", encoding="utf-8")
    done = run("halflife", "forecast", path, "--series", "op", "--error", "10%")
    assert "survival *" in done.out
    assert "steps *" not in done.out


def test_steps_are_sorted_as_the_note_says(run: Run, tmp_path: Path) -> None:
    def measured(op: int, version: int) -> float:
        # One series steps by a factor of 2 at 1.3; four by 1.6 at 1.6, together more: 0.69 < 0.94.
        late = version >= 6 and 1 <= op < 5
        return (2.0 if op == 0 and version >= 3 else 1.6 if late else 1.0) + 0.001 * (version % 2)

    path = tmp_path / "two.csv"
    lines = [f"1.{v},{op},{measured(op, v)}" for v in range(12) for op in range(8)]
    path.write_text("version,op,measured\n" + "\n".join(lines) + "\n", encoding="utf-8")
    done = run("halflife", "fit", path, "--series", "op")
    steps = done.out[done.out.index("Steps: which release") :].splitlines()
    first = [line.split()[0] for line in steps if line.startswith("1.")]
    assert first[:2] == ["1.6", "1.3"]
    assert "Sorted by |log change| times the square root of the number of series" in " ".join(steps)


def test_the_table_says_which_error_at_calibration_it_has(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = [
        f"1.{v},{op},{repeat},{math.exp(rng.normal(0, 0.02)):.6f},1"
        for v in range(6) for op in range(6) for repeat in range(2)
    ]  # fmt: skip
    path = tmp_path / "noisy.csv"
    head = "version,op,repeat,measured,predicted\n"
    path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    told = " ".join(run("halflife", "fit", path, "--series", "op", "--explain").out.split())
    assert "RMS error over the series at their first version, minus measurement noise" in told
    shown = re.search(r"all 6 ([0-9.]+ %)", told)
    assert shown is not None
    assert f"the error at calibration, {shown[1]}, is not distinguishable from measurement" in told


def test_a_forecast_of_few_versions_is_refused_by_reasons(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("version,measured\n1.0,1\n1.1,2\n", encoding="utf-8")
    done = run("halflife", "forecast", path, "--error", "10%")
    assert done.code == 0
    assert "cannot be determined" in done.out
    for said in (
        "a survival curve needs several",
        "1 pair of successive versions",
        "no series could be",
    ):
        assert said in done.out.replace("\n", " ").replace("   ", " ")
