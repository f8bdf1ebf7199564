from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import errcomp as ec
from errcomp.errors import InputError, MissingExtraError
from errcomp.report import writing
from errcomp.report.model import Report
from errcomp.report.shown import Shown

HOMES = {
    "Audit": "errcomp.claims.auditing",
    "DriversResult": "errcomp.drivers",
    "Evaluation": "errcomp.calibration.evaluation",
    "HalfLifeForecast": "errcomp.halflife.forecast",
    "HalfLives": "errcomp.halflife.results",
    "Predictions": "errcomp.calibration.predictions",
    "Propagation": "errcomp.propagation",
    "Replication": "errcomp.claims.replicate",
    "SearchResult": "errcomp.claims.search",
    "Summary": "errcomp.summary",
    "Validation": "errcomp.propagation.validation",
    "ValidationCheck": "errcomp.halflife.gate.checking",
}


@pytest.mark.parametrize("name", HOMES)
def test_every_result_has_a_view_of_its_own(name: str) -> None:
    kind = getattr(import_module(HOMES[name]), name)
    assert issubclass(kind, Shown)
    assert kind.view is not Shown.view


@pytest.mark.slow
def test_a_result_prints_as_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from errcomp.cli import main

    main(["audit", "neusight", "--by", "device"])
    assert (
        str(ec.audit(ec.datasets.load("neusight"), by=["device"])) + "\n" == capsys.readouterr().out
    )


@pytest.mark.core
def test_results_do_not_reach_for_the_report_when_they_are_imported() -> None:
    import subprocess
    import sys

    code = "import sys, errcomp.claims.auditing, errcomp.propagation, errcomp.halflife.results; "
    code += "print([m for m in sys.modules if m.startswith('errcomp.report.')])"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout == "['errcomp.report.shown']\n"


#: What a file of each format begins with.
BEGINNINGS = {
    "html": b"<!doctype html>",
    "svg": b"<?xml",
    "pdf": b"%PDF",
    "png": b"\x89PNG",
    "csv": b"tool,",
    "parquet": b"PAR1",
    "json": b"{",
    "md": b"**",
    "tex": b"% Needs",
}


#: Two of twelve, for the pictures of an audit take longer the more groups it has.
DEVICES = ("A100-40G", "H100")


@pytest.fixture(scope="module")
def audit() -> ec.claims.auditing.Audit:
    return ec.audit(ec.datasets.load("neusight").where({"device": list(DEVICES)}), by="device")


@pytest.mark.extras
@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_a_result_is_saved_by_suffix(suffix: str, audit: Shown, tmp_path: Path) -> None:
    audit.save(tmp_path / f"audit.{suffix}")
    audit.save(f"{tmp_path}/AUDIT.{suffix.upper()}")
    first, second = sorted(tmp_path.iterdir())
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(BEGINNINGS[suffix])


@pytest.mark.extras
def test_a_saved_table_is_the_frame_and_the_file_of_the_command(
    audit: Shown, tmp_path: Path
) -> None:
    from errcomp.cli import main

    audit.save(tmp_path / "audit.csv")
    where = ("--where", f"device={','.join(DEVICES)}")
    main(["audit", "neusight", *where, "--by", "device", "-o", f"{tmp_path}/command.csv"])
    written = (tmp_path / "audit.csv").read_text()
    assert written == (tmp_path / "command.csv").read_text()
    frame = pl.read_csv(tmp_path / "audit.csv")
    assert frame["n"].to_list() == audit.to_frame()["n"].to_list()


def test_markdown_and_latex_are_those_of_files(audit: Shown, tmp_path: Path) -> None:
    for suffix, text in (("md", audit.to_markdown()), ("tex", audit.to_latex())):
        audit.save(tmp_path / f"audit.{suffix}")
        assert (tmp_path / f"audit.{suffix}").read_text() == text + "\n"


def test_another_suffix_is_refused_before_anything_is_written(audit: Shown, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Use one of: .html, .csv, .*, .svg, .pdf, .png"):
        audit.save(tmp_path / "audit.docx")
    assert list(tmp_path.iterdir()) == []


def test_pictures_need_matplotlib(
    audit: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="figures"):
        audit.save(tmp_path / "audit.svg")


@pytest.mark.extras
def test_a_result_without_a_picture(tmp_path: Path) -> None:
    from errcomp.report.model import Report

    with pytest.raises(
        InputError, match=r"x.svg: this result \(Datasets\) cannot be drawn. Use one of: .html"
    ):
        writing.write_result(tmp_path / "x.svg", {}, Report("Datasets"))


@pytest.mark.extras
def test_a_notebook_shows_the_picture(audit: Shown) -> None:
    drawn = audit.plot()
    picture = drawn._repr_png_()  # type: ignore[attr-defined]
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_every_dataset_loads_by_name() -> None:
    assert ec.load("neusight-kernels").n > 0
    assert ec.load is ec.datasets.load


def test_a_result_without_a_view_or_a_figure_says_so() -> None:
    class Bare(Shown):
        pass

    with pytest.raises(NotImplementedError):
        Bare().view()
    with pytest.raises(NotImplementedError):
        Bare().plot()

    class Text(Shown):
        def view(self) -> Report:
            return Report("t")

    with pytest.raises(InputError, match="^.*Text has no figure$"):
        Text().plot()

    class Drawn(Shown):
        def view(self) -> Report:
            return Report("t", draw=lambda ax=None, run="r": (ax, run))

    drawn: Any = Drawn()
    assert drawn.plot() == (None, "r")
    assert drawn.plot(ax=1, run="x") == (1, "x")
    with pytest.raises(InputError, match=r"the figure of Drawn has no option runs\. Options: run"):
        drawn.plot(runs="x")
