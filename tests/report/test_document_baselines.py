"""The figure of each kind of result against an image of it, drawn from an archived document.

After a change that is meant, run ``pytest tests/report/test_document_baselines.py
--mpl-generate-path=tests/report/baseline``, and look at each picture that changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.documents import read_result

pytest.importorskip("matplotlib")
pytest.importorskip("pytest_mpl")
pytestmark = pytest.mark.extras

DOCUMENTS = sorted((Path(__file__).parents[1] / "data" / "documents-v1").glob("*.json"))
#: What cannot be drawn without its series: these are not in a document.
DRAWN = [path for path in DOCUMENTS if path.stem != "half-lives-by-group"]


@pytest.mark.mpl_image_compare(
    baseline_dir="baseline",
    tolerance=0.2,
    style="default",
    savefig_kwargs={"dpi": 60, "metadata": {"Software": None}, "pil_kwargs": {"optimize": True}},
)
@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_a_document_looks_the_same(path, readable):
    from matplotlib.axes import Axes

    drawn = read_result(path).plot()
    assert isinstance(drawn, Axes)
    return readable(drawn)
