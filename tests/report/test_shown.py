from __future__ import annotations

from importlib import import_module

import pytest

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


def test_a_result_prints_as_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import errcomp as ec
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
