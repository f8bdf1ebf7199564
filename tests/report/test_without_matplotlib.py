"""Matplotlib is an extra: not needed to import, asked for by name when it is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from errcomp.errors import MissingExtraError
from errcomp.propagation.view import figures


@pytest.mark.core
def test_importing_the_figures_does_not_import_matplotlib():
    code = "import sys, errcomp.propagation.view.figures; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.core
def test_a_missing_matplotlib_is_asked_for(
    monkeypatch, tmp_path, outcome, propagation, budget_of, validation
):
    for name in ("matplotlib", "matplotlib.artist", "matplotlib.axes", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    made = outcome(by_class=budget_of([1.0]))
    for draw in (
        lambda: figures.bands(propagation(made)),
        lambda: figures.budget(made),
        lambda: figures.growth([made]),
        lambda: figures.calibration(validation),
        lambda: figures.pit(validation, "estimated"),
        lambda: figures.save(None, tmp_path / "figure.png"),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'errcomp\[figures\]'"):
            draw()
    assert not list(tmp_path.iterdir())
