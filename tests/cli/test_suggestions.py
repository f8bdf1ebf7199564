"""What is mistyped is refused with the nearest name that there is."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from errcomp.errors import describe_names, nearest, offer

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("adit",), "invalid choice: 'adit'. Did you mean 'audit'? Choices: audit, report, "),
        (("halflife", "chexk", "a"), "'chexk'. Did you mean 'check'? Choices: fit, forecast, "),
        (("propagate", "validat"), "no such file. Did you mean `errcomp propagate validate`?"),
        (("propagate", "valxdate", "k.csv"), "Did you mean `errcomp propagate validate`?"),
        (("completion",), "errcomp: SHELL is missing: bash, zsh, fish (see: errcomp"),
        (("completion", "bsh"), "Did you mean 'bash'? Choices: bash, zsh, fish"),
        (("halflife", "show"), "errcomp: NAME is missing: ort (see: errcomp halflife show --help)"),
        (("ingest", "kineto", "-o", "x.csv"), "`errcomp readers --tool kineto` lists its files."),
        (("ingest", "Vidur", "-o", "x.csv"), "Vidur is the name of a tool: `errcomp readers --to"),
        (("audit", "--bye", "x"), "no option '--bye'. Did you mean '--by'? (see: errcomp audit -"),
        (("audit", "--jsn=1"), "no option '--jsn'. Did you mean '--json'?"),
        (("audit", "--zzz"), "errcomp: no option '--zzz' (see: errcomp audit --help)\n"),
        (("report", "t.csv", "--predicted", "x"), "no option '--predicted'. To set how a table "
         "is read, use `errcomp audit`, which also writes the page: errcomp audit TABLE "
         "--predicted COLUMN"),
        (("metrics", "pairs.csv", "--predicted=estimate", "--measured=latency",
          "--column=device=gpu", "--by=gpu"), "no column 'gpu'. It is now called 'device'. Col"),
        (("--json", "audit"), "errcomp: --json goes after its command, as in: errcomp audit "),
        (("datasets", "list", "x"), "errcomp: one argument too many: 'x' (see: errcomp datasets l"),
        (("audit", "--fail-on", "overstatd"), "Did you mean 'overstated'? Choices: overstated, "),
        (("audit", "--fail-on", "Overstated"), "Did you mean 'overstated'? Names are case-sens"),
        (("audit", "neusigth"), "Did you mean 'neusight'? Built-in: neusight, "),
        (("audit", "pair.csv"), "Did you mean 'pairs.csv'? Built-in: "),
        (("propagate", "ort-cp"), "Did you mean 'ort-cpu'? Built-in: neusight-kernels, ort-cpu"),
        (("datasets", "show", "neusigth"), "Did you mean 'neusight'? Datasets: neusight, "),
        (("metrics", "--by", "devicx"), "no column 'devicx'. Did you mean 'device'? Columns to g"),
        (("metrics", "--by", "Device"), "Did you mean 'device'? Names are case-sensitive. "),
        (("metrics", "--cluster", "modelx"), "no column 'modelx'. Did you mean 'model'?"),
        (("metrics", "--where", "device=h100"), "no row has device=h100. Did you mean 'H100'? Na"),
        (("metrics", "--where", "device=A100"), "Did you mean 'A100-40G'? Values of device: "),
        (("metrics", "--tool", "neusigth"), "no tool 'neusigth'. Did you mean 'neusight'? Tools "),
        (("metrics", "--figures", "mapee"), "no metric 'mapee'. Did you mean 'mape'? Metrics: "),
        (("metrics", "--method", "bcaa"), "no interval method 'bcaa'. Did you mean 'bca'? Meth"),
        (("metrics", "pairs.csv", "--predicted", "estimat"), "estimat, measured. Did you mean "
         "'estimate'? Columns found: gpu, workload, estimate, latency."),
        (("claims", "list", "--level", "Kernel"), "Did you mean 'kernel'? Names are case-sens"),
        (("claims", "show", "neusigth"), "Did you mean 'NeuSight'? Tools with a claim: "),
        (("claims", "search", "--value", "neusigth=2%"), "Did you mean 'neusight'? Tools in the"),
        (("claims", "search", "--value", "neusight=2%", "--keys", "modelx"), "mean 'model'? Keys"),
        (("calibrate", "fit", "--estimator", "linear", "-o", "m", "--figure", "overhed=a.svg"),
         "got 'overhed=a.svg'. Did you mean 'overhead'?"),
    ],
)  # fmt: skip
def test_the_nearest_name_is_suggested(
    run: Run, argv: tuple[str, ...], message: str, pairs_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pairs_csv.parent)
    ran = run(*argv)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    # Commands to choose from may follow.
    assert [line for line in ran.err.splitlines()[1:] if not line.startswith("  errcomp ")] == []


def test_pairs_need_no_ingest(run: Run, pairs_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pairs_csv.parent)
    for name, text in (
        ("my pairs.csv", "device,predicted,measured\nA,1,2\n"),
        ("pairs.json", '[{"predicted": 1, "measured": 2}]'),
    ):
        Path(name).write_text(text, encoding="utf-8")
        ran = run("ingest", name, "-o", "x.csv")
        assert ran.code == 2
        assert ran.err.endswith(f" It is already a table of pairs: errcomp audit {quote(name)}\n")
    for argv in (("pairs.csv",), ("kineto", "pairs.json"), ("none.csv",)):
        ran = run("ingest", *argv, "-o", "x.csv")
        assert (ran.code, "audit" in ran.err, "readers --tool" in ran.err) == (2, False, False)
    assert not Path("x.csv").exists()


def test_a_series_that_is_misspelt(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("version,workload,predicted,measured\n1,a,1,1\n2,a,1,1\n", encoding="utf-8")
    ran = run("halflife", "fit", path, "--series", "workloda")
    assert "no column 'workloda' that can name a series. Did you mean 'workload'?" in ran.err


@pytest.mark.parametrize(
    ("wanted", "names", "found"),
    [
        ("H100", ["h100", "H100x"], "h100"),
        ("kernel class", ["kernel_class", "kernel"], "kernel_class"),
        ("PCIe", ["NVIDIA H100 PCIe", "MI250"], "NVIDIA H100 PCIe"),
        ("100", ["A100", "H100 PCIe 80GB"], "A100"),
        ("e", ["device"], None),
        ("", ["device"], None),
        ("x", [], None),
    ],
)
def test_what_is_near(wanted: str, names: list[str], found: str | None) -> None:
    assert nearest(wanted, names) == found


def test_a_long_list_is_cut_and_the_nearest_is_named() -> None:
    names = [f"gpu{i}" for i in range(1000)]
    text = offer("Devices", names, wanted="GPU77")
    assert text.startswith("Did you mean 'gpu77'? Names are case-sensitive. Devices: gpu0, gpu1,")
    assert text.endswith("(and 988 more)")
    assert describe_names(names, wanted="gpu77x").startswith("gpu77 (nearest), gpu0")


def test_numbers_that_are_none(run: Run) -> None:
    ran = run("metrics", "--seed", "x")
    assert "argument --seed: 'x' is not a seed: write a whole number, 0 or more (see: " in ran.err
    assert "'-1' is not a seed" in run("metrics", "--seed=-1").err
    search = ("claims", "search", "--value", "neusight=2%", "--top")
    assert "argument --top: '0' is not a count: write a whole number above 0" in run(*search, 0).err
    assert "'x' is not a count" in run(*search, "x").err


@pytest.mark.parametrize(
    ("columns", "options", "commands"),
    [
        ("app,v1,v2", "--by app", ["--by app --predicted v1 --measured v2",
                                   "--by app --predicted v2 --measured v1"]),
        ("app,v1,v2", "--predicted=v3 --measured v1", ["--predicted v2 --measured v1"]),
        ("app,measured,my time", "--predicted mine", ["--predicted 'my time' --measured measured"]),
        ("app,v1,measured", "", ["--predicted v1 --measured measured"]),
        ("v0,v1,v2", "", []),
    ],
)  # fmt: skip
def test_a_missing_column_comes_with_the_whole_command(
    run: Run, columns: str, options: str, commands: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    first = "a" if columns.startswith("app") else "1"
    Path("t.csv").write_text(f"{columns}\n{first},2,3\n{first},5,6\n", encoding="utf-8")
    argv = ["audit", "t.csv", *options.split()]
    monkeypatch.setattr("sys.argv", ["errcomp", *argv])
    ran = run(*argv)
    assert ran.code == 2
    first, *shown = ran.err.splitlines()
    assert "missing column" in first
    assert shown == [f"  errcomp audit t.csv {command}" for command in commands]
    for line in shown:
        assert run(*shlex.split(line)[1:]).code == 0
