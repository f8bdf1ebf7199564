"""What all figures share: no global state, labels apart, files that are the same every time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import optimize

from errcomp.errors import InputError
from errcomp.propagation import Band
from errcomp.propagation.view import figures

pytestmark = pytest.mark.extras
matplotlib = pytest.importorskip("matplotlib")

LONG = "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>, std::array<char, {}>>"


@pytest.fixture
def drawn(outcome, bounds, propagation, budget_of, validation):
    """Every figure, plain and with a great deal in it."""
    many = [outcome(f"an assumption with a long name, number {i}") for i in range(40)]
    beyond = outcome("comonotonic", bands=(Band(0.9, 80.0, np.inf),), saturated=0.3)
    names = [LONG.format(i) for i in range(38)] + ["$x$_{", "line\nbreak"]
    parts = [0.5, *np.full(38, 0.55 / 38), -0.05]
    wide = outcome(by_class=budget_of(parts, names))
    rows = [replace(row, assumption=f"{row.assumption} as somebody else sees it, number {i}")
            for i in range(10) for row in validation.rows]  # fmt: skip
    fan = {f"{LONG}{i}": [("kernel", 0.1, 0.05, 0.2), (LONG, 0.1 / (i + 1), None, None)]
           for i in range(40)}  # fmt: skip
    return {
        "bands": lambda ax=None: figures.bands(
            propagation(outcome(), beyond, bounds(10.0, 1e9)), ax=ax
        ),
        "40 bands": lambda ax=None: figures.bands(propagation(*many, unit="$m$"), ax=ax),
        "1 band": lambda ax=None: figures.bands(propagation(outcome()), ax=ax),
        "budget": lambda ax=None: figures.budget(wide, ax=ax),
        "40 rows": lambda ax=None: figures.budget(wide, top=40, ax=ax),
        "1 row": lambda ax=None: figures.budget(outcome(by_class=budget_of([1.0])), ax=ax),
        "growth": lambda ax=None: figures.growth(
            [outcome(), outcome("independent", relative_sd=0.001), outcome("classes"),
             outcome("repeats", relative_sd=0.101)], ax=ax,
        ),
        "40 lines": lambda ax=None: figures.growth(fan, ax=ax),
        "calibration": lambda ax=None: figures.calibration(validation, ax=ax),
        "20 assumptions": lambda ax=None: figures.calibration(
            replace(validation, rows=tuple(rows)), ax=ax
        ),
        "pit": lambda ax=None: figures.pit(validation, "estimated", ax=ax),
    }  # fmt: skip


NAMES = ["bands", "40 bands", "1 band", "budget", "40 rows", "1 row", "growth", "40 lines",
         "calibration", "20 assumptions", "pit"]  # fmt: skip
#: One of each function, which draw in less time.
PLAIN = ["bands", "1 row", "growth", "calibration", "pit"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_labels_do_not_overlap_nor_leave_the_figure(drawn, name, fits):
    fits(drawn[name]())


@pytest.mark.parametrize("name", NAMES)
def test_draws_on_axes_given_and_changes_no_setting(drawn, name):
    before = dict(matplotlib.rcParams)
    figure = matplotlib.figure.Figure()
    sub = figure.subfigures(1, 2)[0].subplots()
    assert drawn[name](sub) is sub
    if name in PLAIN:
        assert drawn[name]() is not drawn[name]()
    assert dict(matplotlib.rcParams) == before


def test_axes_are_axes(drawn):
    gone = matplotlib.figure.Figure().subplots()
    gone.remove()
    for no_axes in ("axes", matplotlib.figure.Figure(), gone):
        with pytest.raises(InputError, match="ax must be Matplotlib axes of a figure or None"):
            drawn["pit"](no_axes)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files_are_the_same_every_time(drawn, tmp_path, suffix):
    first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix.upper()}"
    figures.save(drawn["growth"](), first)
    figures.save(drawn["growth"]().figure, str(second))
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 1000
    assert sorted(file.name for file in tmp_path.iterdir()) == [first.name, second.name]


def test_an_svg_keeps_its_text_and_has_no_date(drawn, tmp_path):
    figures.save(drawn["bands"](), tmp_path / "bands.svg")
    text = (tmp_path / "bands.svg").read_text(encoding="utf-8")
    assert "unknown (bounds)</text>" in text
    assert "dc:date" not in text


_PROGRAM = """
import sys
from errcomp.propagation.view.figures import growth, save
axes = growth({"estimated": [("kernel", 0.2, 0.1, 0.3), ("job", 0.1, None, None)],
               "other": [("kernel", 0.2, None, None), ("job", 0.01, None, None)]})
for path in sys.argv[1:]:
    save(axes, path)
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.slow
def test_files_are_the_same_in_every_process(tmp_path):
    for seed in ("1", "2"):
        paths = [str(tmp_path / f"{seed}.{suffix}") for suffix in ("png", "svg", "pdf")]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", _PROGRAM, *paths], check=True, env=environment)
    for suffix in ("png", "svg", "pdf"):
        one, two = ((tmp_path / f"{seed}.{suffix}").read_bytes() for seed in "12")
        assert one == two, suffix


def test_saving_refuses_and_leaves_nothing(drawn, tmp_path):
    ax = drawn["1 band"]()
    for name in ("figure.jpg", "figure", "png", "figure.svg.gz"):
        with pytest.raises(InputError, match=r"format of a figure\. Use one of: \.pdf, \.png"):
            figures.save(ax, tmp_path / name)
    for no_figure in (None, "figure", matplotlib.text.Text()):
        with pytest.raises(InputError, match="expected a figure or axes of a figure, got"):
            figures.save(no_figure, tmp_path / "figure.png")
    with pytest.raises(InputError, match="cannot be written"):
        figures.save(ax, tmp_path / "no folder" / "figure.png")
    (tmp_path / "old.svg").write_text("old")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matplotlib.figure.Figure, "savefig", _break)
        with pytest.raises(OverflowError):
            figures.save(ax, tmp_path / "old.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["old.svg"]
    assert (tmp_path / "old.svg").read_text() == "old"


def _break(*_args, **_kwargs):
    raise OverflowError


def test_a_figure_within_a_figure_is_saved_whole(drawn, tmp_path):
    figure = matplotlib.figure.Figure()
    ax = drawn["pit"](figure.subfigures(1, 2)[0].subfigures(1, 1).subplots())
    figures.save(ax, tmp_path / "part.svg")
    figures.save(figure, tmp_path / "whole.svg")
    assert (tmp_path / "part.svg").read_bytes() == (tmp_path / "whole.svg").read_bytes()


@settings(deadline=None)
@given(
    st.lists(st.floats(-1, 2), min_size=1, max_size=12),
    st.floats(0.0, 0.5),
)
def test_labels_move_apart_and_no_further_than_they_must(wanted, gap):
    from errcomp.report.drawing.style import spread

    wanted = np.array(wanted)
    found = spread(wanted, gap, low=0.0, high=1.0)
    n = len(wanted)
    gap = min(gap, 1 / max(n - 1, 1))
    assert found.min() >= -1e-9
    assert found.max() <= 1 + 1e-9
    assert (np.diff(np.sort(found)) >= gap - 1e-9).all()
    # The nearest positions in that order, by SciPy's isotonic regression.
    order = np.argsort(wanted, kind="stable")
    apart = optimize.isotonic_regression(wanted[order] - gap * np.arange(n)).x
    expected = np.clip(apart, 0.0, 1.0 - gap * (n - 1)) + gap * np.arange(n)
    np.testing.assert_allclose(found[order], expected, atol=1e-9)


@pytest.mark.slow
def test_figures_of_real_runs(shared_data, tmp_path):
    from errcomp.propagation import propagate
    from errcomp.propagation.validation import validate
    from errcomp.readers import kernels

    found = kernels.read(shared_data / "neusight-artifact")
    some = found.take(np.isin(found.run, found.runs[:2]))
    assume = ["estimated", "independent", "comonotonic"]
    result = propagate(some, correlation=assume)
    ax = figures.bands(result)
    edges = [p.get_x() for p in ax.patches]
    expected = [band.low for o in result.outcomes[:3] for band in reversed(o.bands)]
    np.testing.assert_allclose(edges, expected)
    waterfall = figures.budget(result.of(), by="kernel")
    last = waterfall.containers[0].patches[-1]
    assert last.get_x() + last.get_width() == pytest.approx(100)
    judged = validate(found, correlation=assume)
    counts = [bar.get_height() for bar in figures.pit(judged, "independent").patches]
    assert sum(counts) == len(judged.runs)
    assert counts[0] + counts[-1] > 0.5 * sum(counts)  # bands that are far too narrow
    figures.save(figures.calibration(judged), tmp_path / "calibration.pdf")
