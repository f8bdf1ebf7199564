from __future__ import annotations

from importlib import import_module

import pytest

from errcomp._showing import Shown
from errcomp.errors import InputError
from errcomp.report import showing
from errcomp.report.sections import _MAKERS

HOMES = {
    "Audit": "errcomp.claims.auditing",
    "Checked": "errcomp.halflife.gate.checking",
    "DriversResult": "errcomp.drivers",
    "Evaluation": "errcomp.calibration.evaluation",
    "HalfLives": "errcomp.halflife.results",
    "Outlook": "errcomp.halflife.forecast",
    "Predictions": "errcomp.calibration.predictions",
    "Propagation": "errcomp.propagation",
    "Replication": "errcomp.claims.replicate",
    "SearchResult": "errcomp.claims.search",
    "Summary": "errcomp.summary",
    "Validation": "errcomp.propagation.validation",
}


def test_every_result_that_draws_itself_has_a_section_as_well() -> None:
    assert set(HOMES) == set(showing.FIGURES) == set(_MAKERS)


@pytest.mark.parametrize("name", HOMES)
def test_every_result_shows_and_draws_itself(name: str) -> None:
    kind = getattr(import_module(HOMES[name]), name)
    assert issubclass(kind, Shown)
    for places in (showing.FIGURES, _MAKERS):
        module, function = places[name]
        where = "errcomp.report" if places is showing.FIGURES else "errcomp.report.sections"
        assert callable(getattr(import_module(f"{where}.{module}"), function))


def test_a_result_prints_as_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import errcomp as ec
    from errcomp.cli import main

    main(["audit", "neusight", "--by", "device"])
    assert (
        str(ec.audit(ec.datasets.load("neusight"), by=["device"])) + "\n" == capsys.readouterr().out
    )


def test_a_result_that_was_read_from_a_document_is_of_its_kind() -> None:
    from errcomp.claims.replicate import Replication
    from errcomp.report.sections import kind, tables_of

    class Read(Replication):
        pass

    assert kind(Read.__new__(Read)) == "Replication"
    with pytest.raises(InputError, match="there are no tables of int"):
        tables_of(3)


def test_results_do_not_reach_for_the_report_when_they_are_imported() -> None:
    import subprocess
    import sys

    code = "import sys, errcomp.claims.auditing, errcomp.propagation, errcomp.halflife.results; "
    code += "assert not [m for m in sys.modules if m.startswith('errcomp.report')]"
    subprocess.run([sys.executable, "-c", code], check=True)
