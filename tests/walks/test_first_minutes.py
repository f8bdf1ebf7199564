"""The first lines that a new user types, as typed, each of which must work at the first try.

`make core` runs those marked ``core`` in a fresh environment, without any extra.
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

RESULTS = "app,gpu,sim_cycles,hw_cycles\n" + "".join(
    f"{app},{gpu},{100 + 3 * i + j},{100 + 2 * i}\n"
    for i, app in enumerate(("bert", "gpt", "resnet", "opt"))
    for j, gpu in enumerate(("A100", "H100", "L4"))
)
#: Seconds from the line to its answer.
SOON = 3.0

Typed = Callable[..., str]


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    """Type a line into a shell, in a folder with ``results.csv``; return what it prints."""
    (tmp_path / "results.csv").write_text(RESULTS, encoding="utf-8")
    (tmp_path / "runs").mkdir()
    for name in ("a", "b"):
        (tmp_path / "runs" / f"{name}.csv").write_text(RESULTS, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def line(text: str, code: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", text],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return line


@pytest.mark.core
def test_the_first_answer_about_ones_own_table_comes_soon(typed: Typed) -> None:
    took = []
    for _ in range(3):  # other tests run at the same time
        began = time.perf_counter()
        text = typed("errcomp audit results.csv")
        took.append(time.perf_counter() - began)
        if took[-1] <= SOON:
            break
    assert min(took) <= SOON
    assert "A100   4" in text
    assert "all   12" in text


@pytest.mark.slow
@pytest.mark.core
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("errcomp audit results.csv --predicted sim_cycles --measured hw_cycles --by gpu", "all  "),
        ('errcomp audit results.csv --claim "MAPE 2.3 %"', "\n2.3 % (given by the user): "),
        ('errcomp audit results.csv --claim "2.3% MAPE"', "\n2.3 % (given by the user): "),
        ("errcomp audit results.csv --claim 2.3% --metric mape", "2.3 % (given by the user): "),
        ("errcomp audit results.csv --claim 2.3% --aggregation geomean", "(given by the user): "),
        ("cat results.csv | errcomp audit -", "standard input"),
        ("errcomp audit runs", "24"),
        ("errcomp audit 'runs/*.csv'", "24"),
        ("errcomp metrics results.csv --by gpu", "GMAPE"),
        ("errcomp audit results.csv --format tex", r"\begin{tabular}"),
        ("errcomp audit results.csv --json", '"schema": "errcomp.audit/1"'),
        ("errcomp audit results.csv -o audit.csv && cat audit.csv", "gpu,"),
        ("errcomp ingest runs/a.csv || errcomp audit runs/a.csv", "all  "),
        ("errcomp completion fish | head -1", "#"),
        ("errcomp datasets list", "neusight"),
    ],
)
def test_a_line_as_typed(typed: Typed, line: str, shown: str) -> None:
    assert shown in typed(line)


@pytest.mark.slow
@pytest.mark.core
def test_tables_as_people_have_them(typed: Typed, tmp_path: Path) -> None:
    commented = f"# simulated on Monday\n{RESULTS}"
    (tmp_path / "r.csv.xz").write_bytes(lzma.compress(commented.encode()))
    assert "all   12" in typed("errcomp audit r.csv.xz")
    comma = "app;sim;hw\n" + "".join(f"a{i};1{i},5;1{i},0\n" for i in range(9))
    (tmp_path / "comma.csv").write_text(comma, encoding="utf-8")
    assert "add --decimal ," in typed("errcomp audit comma.csv", code=2)
    assert "MAPE" in typed("errcomp audit comma.csv --decimal ,")
    units = "app,sim,hw\n" + "".join(f"a{i},1{i} ms,0.01{i} s\n" for i in range(9))
    (tmp_path / "units.csv").write_text(units, encoding="utf-8")
    assert json.loads(typed("errcomp audit units.csv --json"))["unit"] == "ms"
    gaps = RESULTS.replace("100,100", "100,", 1)
    (tmp_path / "gaps.csv").write_text(gaps, encoding="utf-8")
    assert "--missing exclude" in typed("errcomp audit gaps.csv", code=2)
    assert "all   11" in typed("errcomp audit gaps.csv --missing exclude")


@pytest.mark.slow
@pytest.mark.core
def test_what_cannot_be_read_says_what_to_type(typed: Typed, tmp_path: Path) -> None:
    two = "app,sim_cycles,sim_ms,hw_cycles,hw_ms\na,1,2,1,2\nb,3,4,3,4\n"
    (tmp_path / "two.csv").write_text(two, encoding="utf-8")
    assert "--predicted sim_cycles --measured hw_cycles" in typed("errcomp audit two.csv", code=2)
    message = typed("errcomp audit https://example.org/r.csv", code=2)
    assert "curl -L -o r.csv https://example.org/r.csv" in message
    assert "Did you mean 'results.csv'" in typed("errcomp audit result.csv", code=2)


@pytest.mark.core
def test_the_same_in_python(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import errcomp as ec\n"
        "audit = ec.audit('results.csv', predicted='sim_cycles', measured='hw_cycles', by='gpu')\n"
        "print(audit.overall.n, audit.overall.figures['mape'])\n"
        "print(audit.to_frame().shape, audit.to_markdown()[:2], audit.to_latex()[:1])\n"
        "audit.save('audit.json')\n"
        "print(ec.audit('results.csv', claims='12%').overall.verdict.word)\n"
        "print(ec.load('neusight-kernels').runs[0])\n",
        encoding="utf-8",
    )
    lines = typed("python -W error::DeprecationWarning own.py").splitlines()
    assert lines[0].startswith("12 ")
    assert lines[1].startswith("(4, ")
    assert lines[2] in ("consistent", "not verifiable", "understated")
    assert (tmp_path / "audit.json").exists()


@pytest.mark.slow
@pytest.mark.extras
def test_pictures_and_workbooks(typed: Typed, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for suffix in ("svg", "pdf", "png", "html"):
        typed(f"errcomp audit results.csv -o audit.{suffix}")
        assert (tmp_path / f"audit.{suffix}").stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.core
def test_traces_become_bands(typed: Typed, shared_data: Path, tmp_path: Path) -> None:
    (tmp_path / "profiles").symlink_to(shared_data / "tools" / "onnxruntime")
    shown = typed(
        "errcomp ingest profiles/profile_*.json --from-name 'profile_{model}_ort{version}.json' "
        "--set device=CPU --set mode=inference --table kernels"
    )
    assert "1,168 rows" in shown
    typed(
        "errcomp ingest profiles/profile_*.json --from-name 'profile_{model}_ort{version}.json' "
        "--set device=CPU --set mode=inference --table kernels -o kernels.parquet"
    )
    judged = typed(
        "errcomp calibrate evaluate kernels.parquet --split leave-model-out --estimator device"
    )
    assert "linear" in judged
    typed("errcomp calibrate fit kernels.parquet --estimator device -o m.errcomp")
    assert "90 % band" in typed("errcomp predict kernels.parquet --model m.errcomp")
