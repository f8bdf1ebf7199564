from __future__ import annotations

from importlib import import_module

import pytest

from errcomp._showing import Shown
from errcomp.report import showing
from errcomp.report.sections import _MAKERS

HOMES = {
    "Audit": "errcomp.claims.auditing",
    "Checked": "errcomp.halflife.checking",
    "DriversResult": "errcomp.drivers",
    "Evaluation": "errcomp.calibration.evaluation",
    "HalfLives": "errcomp.halflife.results",
    "Outlook": "errcomp.halflife.outlook",
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


def test_results_do_not_reach_for_the_report_when_they_are_imported() -> None:
    import subprocess
    import sys

    code = "import sys, errcomp.claims.auditing, errcomp.propagation, errcomp.halflife.results; "
    code += "assert not [m for m in sys.modules if m.startswith('errcomp.report')]"
    subprocess.run([sys.executable, "-c", code], check=True)
