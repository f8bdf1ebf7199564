"""Tables in LaTeX, set by an engine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import errcomp as ec

#: What a paper adds around a table that was pasted into it.
PAPER = r"""\documentclass{article}
\usepackage[margin=1in]{geometry}
%(preamble)s
\begin{document}
%(table)s
\end{document}
"""
OVERFULL = re.compile(r"Overfull \\hbox \((\d+\.\d+)pt too wide\)")


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[str], str]:
    """Return what the engine says when it sets a table pasted into a paper."""
    if shutil.which("pdflatex") is None:
        pytest.skip(
            "there is no pdflatex (Debian: apt-get install texlive-latex-recommended "
            "texlive-science)"
        )

    def set_in_a_paper(table: str) -> str:
        needs = re.match(r"% Needs in the preamble: (\\usepackage\{[a-z,]+\})\n", table)
        assert needs is not None, table[:100]
        text = PAPER % {"preamble": needs[1], "table": table}
        (tmp_path / "paper.tex").write_text(text, encoding="utf-8")
        engine = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        # A longtable learns its widths in the first run.
        for _ in range(2 if "longtable" in table else 1):
            done = subprocess.run(engine, cwd=tmp_path, capture_output=True, check=False)
        said = done.stdout.decode("latin-1")
        assert done.returncode == 0, said[-1500:]
        assert (tmp_path / "paper.pdf").stat().st_size > 1000
        return said

    return set_in_a_paper


def nothing(*_: object, **__: object) -> dict[str, Any]:
    return {}


def loaded(name: str, load: Callable[[str], Any] = ec.datasets.load) -> Any:
    """Load a dataset; a history has a third of its releases, and tables of as many rows."""
    table = load(name)
    if isinstance(table, ec.History):
        return table.where({"version": table.versions[::3]})
    return table


@pytest.mark.parametrize(
    "argv",
    [
        ("audit", "neusight", "--by", "device,mode"),
        ("audit", "own table", "--claim", "MAPE 5 %"),
        ("audit", "own table"),
        ("metrics", "neusight", "--by", "device"),
        ("propagate", "--run", "H100/gpt3_27/inference/2048/2", "--where", "device=H100,V100"),
        ("halflife", "show", "ort"),
        ("claims", "list"),
        ("datasets", "list"),
    ],
    ids=" ".join,
)
def test_the_table_of_a_result_fits_a_page(
    argv: tuple[str, ...],
    compiled: Callable[[str], str],
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is estimated for the document alone: no table shows it.
    monkeypatch.setattr("errcomp.halflife.estimators.survival.LAWS", ())
    monkeypatch.setattr("errcomp.halflife.estimators.survival.held_out_scores", nothing)
    monkeypatch.setattr("errcomp.halflife.estimators.by_steps._DRAWS", 2)
    monkeypatch.setattr("errcomp.datasets.load", loaded)
    own = Path(__file__).parents[2] / "examples" / "own-table" / "results.csv"
    ran = run(*(own if word == "own table" else word for word in argv), "--format", "tex")
    assert ran.code == 0, ran.err
    wide = [float(width) for width in OVERFULL.findall(compiled(ran.out))]
    assert max(wide, default=0.0) < 12, "a table is wider than the page"


def test_any_name_in_a_table_compiles(compiled: Callable[[str], str]) -> None:
    names = [r"a_b & c%", r"\input{x} $x$ #1", "{~^}", "µ ≤ 5 – “naïve”", "GPU <80GB> | \\\\"]
    table = {"predicted": [11.0] * 5, "measured": [10.0] * 5, "gpu_&_app": names}
    compiled(ec.audit(table, by="gpu_&_app", claims="5 %").to_latex())
