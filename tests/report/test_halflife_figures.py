"""Figures of half-life: numbers as found, what they are held against, labels that fit."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import errcomp as ec
from errcomp.errors import InputError, MissingExtraError
from errcomp.halflife.estimators.turnbull import turnbull
from errcomp.halflife.view import figures as draw
from errcomp.halflife.view import parts
from errcomp.propagation.view.figures import save

pytestmark = pytest.mark.extras
matplotlib = pytest.importorskip("matplotlib")

LONG = "a very long name of an operator with $x$_{1} and\na line break, number "


def history(
    n=12,
    versions=12,
    step_at=6,
    step=0.4,
    noise=0.01,
    repeats=2,
    dated=True,
    stepping=0.75,
    starts=(0,),
    names=None,
    groups=1,
    clusters=None,
    predicted=True,
    seed=0,
):
    """Series of which a share steps at a release; errors of 4 % at calibration."""
    rng = np.random.default_rng(seed)
    columns = {name: [] for name in ("series", "version", "op", "model", "measured", "predicted",
                                     "released")}  # fmt: skip
    for i in range(n):
        level = 1.0 + i
        frozen = level * np.exp(0.04 * rng.choice([-1.0, 1.0]))
        for v in range(starts[i % len(starts)], versions):
            moved = step if v >= step_at and i < stepping * n else 0.0
            for _ in range(repeats):
                columns["series"].append(f"s{i}")
                columns["version"].append(f"1.{v}" if names is None else names[v])
                columns["op"].append(f"{LONG if groups > 9 else 'op'}{i % groups}")
                columns["model"].append(f"m{i % (clusters or n)}")
                columns["measured"].append(level * np.exp(-moved + noise * rng.standard_normal()))
                columns["predicted"].append(frozen)
                columns["released"].append(str(np.datetime64("2024-01-10") + 40 * v))
    if not dated:
        del columns["released"]
    if not predicted:
        del columns["predicted"]
    return columns


def fitted(by=(), cluster=None, error=None, order=None, **changes):
    from errcomp.tables import History

    table = history(**changes)
    ordered = History(table, unit="ms", order=order) if order else History(table, unit="ms")
    return ec.half_life(ordered, by=by, cluster=cluster, error=error)


@pytest.fixture(scope="module")
def few():
    """Twelve series of which nine step at the seventh release of twelve."""
    return fitted()


@pytest.fixture(scope="module")
def single():
    return fitted(n=1, stepping=1.0)


@pytest.fixture(scope="module")
def mixed():
    """Forty series without predictions, calibrated at three different releases."""
    return fitted(n=40, repeats=1, starts=(0, 2, 3), predicted=False, dated=False, clusters=8,
                  cluster="model")  # fmt: skip


@pytest.fixture(scope="module")
def large():
    """Operators with long names, versions with long names, most of them not shown."""
    names = [f"2024.{v:04d}-nightly+{v * 7919 % 9973:x}" for v in range(90)]
    return fitted(n=36, versions=90, repeats=1, names=names, order=names, groups=12, by="op",
                  step=1.5, step_at=60, dated=False)  # fmt: skip


@pytest.fixture(scope="module")
def groups():
    return fitted(n=9, groups=3, by="op", repeats=1)


def without_threshold(group):
    refused = replace(group.threshold, error=0.0, value=None, refused="all errors are 0.")
    return replace(group, threshold=refused, expiry={}, estimates=())


FIGURES = {
    "errors": lambda f, ax=None: draw.draw_error_by_release(f("few").groups[0], note="a", ax=ax),
    "errors of one": lambda f, ax=None: draw.draw_error_by_release(f("single").groups[0], ax=ax),
    "errors from zero": lambda f, ax=None: draw.draw_error_by_release(f("mixed").groups[0], ax=ax),
    "errors, many versions": lambda f, ax=None: draw.draw_error_by_release(
        f("large").groups[0], ax=ax
    ),
    "errors, no threshold": lambda f, ax=None: draw.draw_error_by_release(
        without_threshold(f("few").groups[0]), ax=ax
    ),
    "survival": lambda f, ax=None: draw.draw_survival(f("few").groups[0], note="a", ax=ax),
    "survival in months": lambda f, ax=None: draw.draw_survival(
        f("few").groups[0], "months", ax=ax
    ),
    "survival in clusters": lambda f, ax=None: draw.draw_survival(f("mixed").groups[0], ax=ax),
    "variogram": lambda f, ax=None: draw.draw_variogram(f("few").groups[0], note="a", ax=ax),
    "variogram of one": lambda f, ax=None: draw.draw_variogram(f("single").groups[0], ax=ax),
    "variogram, noise unknown": lambda f, ax=None: draw.draw_variogram(f("mixed").groups[0], ax=ax),
    "variogram, long": lambda f, ax=None: draw.draw_variogram(f("large").groups[0], ax=ax),
    "heat": lambda f, ax=None: draw.draw_releases_heat(f("groups"), note="a note", ax=ax),
    "heat, many": lambda f, ax=None: draw.draw_releases_heat(f("large"), ax=ax),
}


def texts(ax):
    return [text.get_text() for text in ax.texts]


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def collection(ax, label):
    return next(artist for artist in ax.collections if artist.get_label() == label)


def legend(ax):
    boxes = [child for child in ax.get_children() if isinstance(child, matplotlib.legend.Legend)]
    return [text.get_text() for box in boxes for text in box.get_texts()]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_labels_do_not_overlap_nor_leave_the_figure(name, request, fits):
    fits(FIGURES[name](request.getfixturevalue))


@pytest.mark.slow
@pytest.mark.shared
def test_figures_of_mlperf(shared_data, fits):
    """Rounds as versions, series calibrated at different ones, no repeats, clusters of series."""
    import polars as pl

    path = shared_data / "longitudinal" / "mlperf_inference" / "embedded_candidate.csv"
    table = pl.read_csv(path, infer_schema_length=None).select(
        "scenario", "submitter", series=pl.col("series_id").cast(pl.String), measured="value",
        version="round", released="date",
    )  # fmt: skip
    half_lives = ec.half_life(table, by="scenario", cluster="submitter")
    heat = draw.FIGURES["heat"](half_lives)
    fits(heat)
    assert [text for text in texts(heat) if text.startswith("n=")] == ["n=142", "n=53"]
    offline = replace(half_lives, groups=half_lives.groups[:1])
    for name in ("errors", "survival", "variogram"):
        fits(draw.FIGURES[name](offline))


@pytest.mark.parametrize("name", ["errors", "survival", "variogram", "heat"])
def test_draws_on_axes_given_and_changes_no_setting(name, request):
    before = dict(matplotlib.rcParams)
    sub = matplotlib.figure.Figure().subplots()
    assert FIGURES[name](request.getfixturevalue, sub) is sub
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", ["errors", "heat"])
def test_files_are_the_same_every_time(tmp_path, request, name):
    first, second = tmp_path / "1.svg", tmp_path / "2.svg"
    save(FIGURES[name](request.getfixturevalue), first)
    save(FIGURES[name](request.getfixturevalue), second)
    assert first.read_bytes() == second.read_bytes()


def test_errors_with_their_levels_and_steps(few):
    group = few.groups[0]
    ax = draw.draw_error_by_release(group)
    rms = line(ax, "RMS, noise subtracted").get_xydata()
    np.testing.assert_allclose(rms[:, 0], range(12))
    np.testing.assert_allclose(rms[:, 1], 100 * np.expm1(group.trajectory.rms))
    ends = [path.vertices[:, 1] for path in collection(ax, "its 95 % interval").get_paths()]
    np.testing.assert_allclose(np.array(ends)[:, 1], 100 * np.expm1(group.trajectory.rms_high))
    assert sum(artist.get_label() == "one series" for artist in ax.lines) == 12
    # The promise and its double, by their values.
    assert line(ax, "calibrated").get_ydata()[0] == pytest.approx(
        100 * np.expm1(group.threshold.error)
    )
    doubled = 100 * np.expm1(2 * group.threshold.error)
    assert line(ax, "doubled").get_ydata()[0] == pytest.approx(doubled)
    assert {f"doubled {doubled:.1f} %"} <= set(texts(ax))
    # Nine of twelve series step at 1.6, and the RMS error has doubled there.
    [bar] = ax.patches
    assert bar.get_x() + bar.get_width() / 2 == pytest.approx(6)
    assert (bar.get_y(), bar.get_height()) == (1.0, pytest.approx(-0.17))
    assert "series with a step at that version (longest bar: 9 of 12)" in legend(ax)
    notes = " ".join(reversed(texts(ax)))  # the last line is written first
    assert "most at 1.6: predicted / measured changed by +48 %" in notes
    marked = line(ax, "half-life").get_xydata()
    np.testing.assert_allclose(marked, [[6, doubled], [6, doubled]])
    assert any("error doubled): 6 releases [6,\N{NO-BREAK SPACE}6]" in text for text in texts(ax))
    assert ax.get_xlabel() == "version; below: months since 1.0"
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[0] == "1.0\n0"
    assert labels[-1].startswith("1.11\n14") or len(labels) < 12


def test_scale_is_logarithmic_where_errors_are_far_beyond_their_double(few):
    far = draw.draw_error_by_release(few.groups[0])
    assert far.get_yscale() == "symlog"
    near = fitted(step=0.1)
    ax = draw.draw_error_by_release(near.groups[0])
    assert ax.get_yscale() == "linear"
    assert ax.get_ylim()[0] == 0
    top = 100 * np.expm1(np.abs(near.groups[0].panel.error).max())
    assert top < ax.get_ylim()[1] * 0.8  # steps hang above


def test_the_error_of_one_series_with_its_noise(single):
    group = single.groups[0]
    ax = draw.draw_error_by_release(group)
    size = np.abs(group.panel.error)
    np.testing.assert_allclose(line(ax, "|error|").get_ydata(), 100 * np.expm1(size))
    bars = collection(ax, "± 2 standard deviations of noise").get_paths()
    np.testing.assert_allclose(
        [path.vertices[1, 1] for path in bars], 100 * np.expm1(size + 2 * group.panel.sd)
    )
    assert ax.get_title(loc="left") == "Error of a frozen model, n=1 series"


def test_noise_of_the_first_measurement_is_in_later_errors():
    group = fitted(n=1, stepping=1.0, predicted=False).groups[0]
    ax = draw.draw_error_by_release(group)
    bars = collection(ax, "± 2 standard deviations of noise").get_paths()
    size, sd = np.abs(group.panel.error), group.panel.sd
    high = np.array([path.vertices[1, 1] for path in bars])
    assert high[0] == 0
    np.testing.assert_allclose(high[1:], 100 * np.expm1(size + 2 * np.hypot(sd, sd[0]))[1:])


def test_series_calibrated_at_different_releases(mixed):
    group = mixed.groups[0]
    ax = draw.draw_error_by_release(group)
    panel = group.panel
    at = panel.version == 7
    expected = 100 * np.expm1(np.median(np.abs(panel.error[at])))
    assert line(ax, "median of the series").get_ydata()[7] == pytest.approx(expected)
    assert not [artist for artist in ax.lines if artist.get_label() == "half-life"]
    notes = " ".join(texts(ax))
    assert "since the first version of each series" in notes
    assert "14 to 40 series per version" in notes
    wide = collection(ax, "80 % of the series").get_paths()[0].vertices
    tenth = 100 * np.expm1(np.quantile(np.abs(panel.error[at]), 0.9))
    assert wide[wide[:, 0] == 7][:, 1].max() == pytest.approx(tenth)
    assert "assumed 5.0 %" in notes
    assert ax.get_xlabel() == "version, in order"


def test_errors_without_a_threshold(few):
    ax = draw.draw_error_by_release(without_threshold(few.groups[0]))
    assert not [artist for artist in ax.lines if artist.get_label() in ("doubled", "half-life")]
    assert any("half-life cannot be determined: all errors are 0." in text for text in texts(ax))


def test_errors_that_are_all_zero():
    group = fitted(n=2, versions=4, step=0.0, dated=False, predicted=False).groups[0]
    panel = replace(group.panel, error=np.zeros_like(group.panel.error))
    still = replace(without_threshold(group), panel=panel)
    trajectory = replace(group.trajectory, **{name: np.zeros(4) for name in
                                              ("rms", "rms_low", "rms_high")})  # fmt: skip
    ax = draw.draw_error_by_release(replace(still, trajectory=trajectory, steps=()))
    assert ax.get_ylim()[1] > 0


def test_many_versions_name_every_kth(large):
    ax = draw.draw_error_by_release(large.groups[0])
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    assert 3 <= len(labels) <= 12
    assert line(ax, "RMS, noise subtracted").get_marker() == ""


def test_survival_is_that_of_turnbull(few):
    group = few.groups[0]
    ax = draw.draw_survival(group)
    expiry = group.expiry["releases"]
    curve = turnbull(*expiry.intervals("face"), clusters=expiry.cluster)
    x, y = line(ax, "share of the series").get_xydata().T
    for release in range(1, 12):  # a step at the release itself
        after = y[x <= release][-1]
        assert after == pytest.approx(100 * curve.survival(release)[0])
    assert y[x < 6].min() == 100
    assert y[-1] == pytest.approx(25)
    band = collection(ax, "95 % band").get_paths()[0].vertices
    early = turnbull(*expiry.intervals("early"), clusters=expiry.cluster).surviving(11.0)
    late = turnbull(*expiry.intervals("late"), clusters=expiry.cluster).surviving(11.0)
    last = band[band[:, 0] == 11][:, 1]
    np.testing.assert_allclose([last.min(), last.max()], [100 * early.low, 100 * late.high])
    assert "last seen, not doubled (3)" in legend(ax)
    np.testing.assert_allclose(line(ax, "last seen, not doubled (3)").get_xydata(), [[11, 25]])
    # What is counted beside the curve is what the curve shows, and apart from it what is sure.
    sure = round(len(expiry.right) * (1 - expiry.censored_share))
    note = (
        f"{curve.n_events} of 12 series as measured, {sure} of them by more than noise explains "
        "(95 % confidence)"
    )
    assert note in " ".join(reversed(texts(ax)))
    assert line(ax, "half-life").get_xdata()[0] == 6
    assert any("in half of the series): 6 releases [6," in text for text in texts(ax))
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[0] == "0\n12"
    assert labels[-1].split("\n")[1] == "3"
    assert ax.get_title(loc="left") == "Series whose error has not doubled, n=12"


def test_survival_in_months_has_boxes_between_looks(few):
    group = few.groups[0]
    ax = draw.draw_survival(group, "months")
    assert "falls within" in legend(ax)
    box = collection(ax, "falls within").get_paths()[0].vertices
    months = group.panel.months
    np.testing.assert_allclose([box[:, 0].min(), box[:, 0].max()], months[5:7])
    np.testing.assert_allclose([box[:, 1].min(), box[:, 1].max()], [25, 100])
    # What was shown of the sixth release holds before it, what of the fifth after that.
    band = collection(ax, "95 % band").get_paths()[0].vertices
    assert band[band[:, 0] == 0][:, 1].min() < 100
    assert "months since calibration" in ax.get_xlabel()


def test_the_law_that_scores_best_is_drawn():
    rng = np.random.default_rng(3)
    at = np.minimum(1 + rng.geometric(0.15, 40), 30)
    table = {"series": [], "version": [], "measured": []}
    for i, when in enumerate(at):
        for v in range(14):
            table["series"].append(f"s{i}")
            table["version"].append(f"1.{v}")
            table["measured"].append(np.exp(0.3 * (v >= when) + 0.002 * rng.standard_normal()))
    group = ec.half_life(table).groups[0]
    scores = {
        law: group.estimate(law, "releases").details["held_out_score"]
        for law in ("exponential", "weibull", "log-normal")
    }
    best = max(scores, key=scores.get)
    ax = draw.draw_survival(group)
    assert f"{best} distribution (best fit)" in legend(ax)
    x, y = line(ax, f"{best} distribution (best fit)").get_xydata().T
    from errcomp.halflife.estimators.parametric import fit_law

    fit = fit_law(*group.expiry["releases"].intervals("face"), best)
    assert np.interp(fit.median, x, y) == pytest.approx(50, abs=0.5)
    # A law that was scored, but cannot be fitted to all, is not drawn.
    scored = replace(group.estimate(best, "releases"), method="weibull")
    nobody = replace(
        group.expiry["releases"],
        guess=np.full(40, np.inf),
        before_guess=group.expiry["releases"].last_seen,
    )
    bare = draw.draw_survival(replace(group, estimates=(scored,), expiry={"releases": nobody}))
    assert not any("distribution" in text for text in legend(bare))


def test_many_times_are_thinned_in_the_band():
    group = fitted(n=60, versions=80, repeats=1, dated=False).groups[0]
    rng = np.random.default_rng(0)
    expiry = group.expiry["releases"]
    right = 1.0 + rng.permutation(60)
    times = replace(
        expiry, left=right - 1, after_left=right, before_right=right - 1, right=right,
        before_guess=right - 1, guess=right,
        series=np.arange(60), cluster=np.arange(60), last_seen=np.full(60, 79.0),
        returned=np.zeros(60, bool),
    )  # fmt: skip
    ax = draw.draw_survival(replace(group, expiry={"releases": times}))
    band = collection(ax, "95 % band").get_paths()[0].vertices
    assert len(np.unique(band[:, 0])) == 40
    curve = turnbull(right - 1, right)
    for release in (5.0, 33.0, 47.0):  # it never excludes what was seen
        x = band[:, 0]
        low = band[(x <= release) & (band[:, 1] < 100 * curve.survival(release)[0])]
        assert len(low)
    assert not any("last seen" in text for text in legend(ax))


def test_survival_in_one_cluster_has_no_band(few):
    group = few.groups[0]
    expiry = replace(group.expiry["releases"], cluster=np.zeros(12, np.int64))
    estimates = tuple(x for x in group.estimates if x.method == "turnbull")
    ax = draw.draw_survival(replace(group, expiry={"releases": expiry}, estimates=estimates))
    assert "95 % band" not in legend(ax)
    assert any(text.startswith("no band: all series are in one cluster") for text in texts(ax))
    assert ax.get_title(loc="left") == "Series whose error has not doubled, n=12 in 1 cluster"


def test_survival_in_clusters_counts_them(mixed):
    ax = draw.draw_survival(mixed.groups[0])
    assert ax.get_title(loc="left").endswith("n=40 in 8 clusters")


def test_variogram_with_what_is_read_off(few):
    group = few.groups[0]
    drift = group.variogram
    ax = draw.draw_variogram(group)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    above = drift.v > 0
    points = line(ax, "drift, noise subtracted").get_xydata()
    np.testing.assert_allclose(points[:, 0], drift.lag[above])
    np.testing.assert_allclose(points[:, 1], 100 * np.expm1(np.sqrt(drift.v[above])))
    np.testing.assert_allclose(
        line(ax, "median change, with noise").get_ydata(), 100 * np.expm1(drift.median)
    )
    target = 100 * np.expm1(np.sqrt(3) * group.threshold.error)
    assert line(ax, "doubles").get_ydata()[0] == pytest.approx(target)
    notes = "\n".join(texts(ax))
    assert "doubles: drift that doubles the error, √3 times the error at calibration" in notes
    assert "noise: scatter of the difference between two versions" in notes
    assert line(ax, "noise").get_ydata()[0] == pytest.approx(
        100 * np.expm1(np.sqrt(2 * drift.noise))
    )
    assert line(ax, "half-life").get_ydata()[0] == pytest.approx(target)
    law = next(artist for artist in ax.lines if "power law" in str(artist.get_label()))
    x, y = law.get_xydata()[50]
    assert y == pytest.approx(100 * np.expm1(np.sqrt(drift.scale * x**drift.beta)))
    assert ax.get_xticklabels()[0].get_text() == "1\n12"
    intervals = collection(ax, "95 % interval").get_paths()
    highs = [path.vertices[1, 1] for path in intervals]
    np.testing.assert_allclose(highs, 100 * np.expm1(np.sqrt(drift.high)))


def test_variogram_below_noise_and_beyond_every_scale(few):
    group = few.groups[0]
    v = group.variogram.v.copy()
    v[1] = -1e-4
    high = group.variogram.high.copy()
    high[2] = 1e6
    odd = replace(group.variogram, v=v, high=high, scale=None, beta=None,
                  median=np.zeros_like(v))  # fmt: skip
    ax = draw.draw_variogram(replace(group, variogram=odd))
    below = line(ax, "less than noise").get_xydata()
    np.testing.assert_allclose(below, [[group.variogram.lag[1], ax.get_ylim()[0]]])
    assert not any("law" in text or "median" in text for text in legend(ax))
    assert ax.get_ylim()[1] < 1000


def test_variogram_where_nothing_was_measured_twice(mixed):
    ax = draw.draw_variogram(mixed.groups[0])
    assert "drift, with noise" in legend(ax)
    assert any("the noise is unknown" in text for text in texts(ax))
    assert not [artist for artist in ax.lines if artist.get_label() == "noise"]
    assert not any("noise: scatter of the difference" in text for text in texts(ax))


def test_variogram_without_a_threshold(few):
    ax = draw.draw_variogram(without_threshold(few.groups[0]))
    assert not [artist for artist in ax.lines if artist.get_label() in ("doubles", "half-life")]
    assert any("half-life cannot be determined: all errors are 0." in text for text in texts(ax))


def test_a_variogram_of_one_lag():
    group = fitted(n=6, versions=2, step_at=1, dated=False).groups[0]
    ax = draw.draw_variogram(group)
    low, high = ax.get_xlim()
    assert low < 1 < high


def test_heat_is_the_median_change_by_group_and_release(groups):
    ax = draw.draw_releases_heat(groups)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["op0", "op1", "op2"]
    cells = next(c for c in ax.collections if isinstance(c, matplotlib.collections.QuadMesh))
    values = np.asarray(cells.get_array()).reshape(3, 12)
    panel = groups.groups[1].panel
    change = panel.error - np.repeat(panel.error[panel.starts[:-1]], np.diff(panel.starts))
    assert values[1, 7] == pytest.approx(np.median(change[panel.version == 7]))
    np.testing.assert_array_equal(values[:, 0], 0)
    low, high = cells.get_clim()
    assert low == -high
    assert np.expm1(high) == pytest.approx(0.5)  # the next stated end beyond most of them
    assert any("the colour scale ends at −33 % and +50 %" in text for text in texts(ax))
    assert texts(ax).count("n=3") == 3
    assert "n=9 series in 3 groups" in ax.get_title(loc="left")
    assert ax.get_ylabel() == "op"
    dots = [c for c in ax.collections if isinstance(c, matplotlib.collections.PathCollection)]
    assert {6.0} <= {float(x) for dot in dots for x in dot.get_offsets()[:, 0]}
    assert "step in all series" in legend(ax)
    assert len(ax.figure.axes) == 2
    assert ax.get_title(loc="left").startswith("Change of predicted / measured")
    assert ax.figure.axes[1].get_ylabel() == "median change since the first version"
    assert any("orange: measured values fell (times: faster)" in text for text in texts(ax))
    assert "dash: no series" not in " ".join(reversed(texts(ax)))


def test_heat_without_steps_and_with_blank_cells(groups):
    first, *others = groups.groups
    panel = first.panel
    keep = panel.version != 4
    counts = np.add.reduceat(keep, panel.starts[:-1])
    part = replace(
        panel, version=panel.version[keep], error=-panel.error[keep], sd=panel.sd[keep],
        starts=np.append(0, np.cumsum(counts)),
    )  # fmt: skip
    plain = tuple(replace(group, steps=()) for group in (replace(first, panel=part), *others))
    ax = draw.draw_releases_heat(replace(groups, groups=plain))
    dashes = [c for c in ax.collections if isinstance(c, matplotlib.collections.LineCollection)]
    [dash] = [path.vertices for artist in dashes for path in artist.get_paths()]
    np.testing.assert_allclose(dash, [[3.8, 0], [4.2, 0]])
    notes = " ".join(reversed(texts(ax)))  # the last line is written first
    assert "hatched: below −7.8 %; dash: no series" in notes
    assert legend(ax) == []
    # Below 0 cells are hatched: six releases of the group that was turned round.
    assert len([patch for patch in ax.patches if patch.get_hatch()]) == 6


@pytest.mark.parametrize(
    ("value", "clip", "extend"),
    [(0.0, 0.02, "neither"), (0.5, 0.5, "neither"), (9.0, 3.0, "max"), (-0.9, 3.0, "neither")],
)
def test_colours_end_at_a_stated_value(groups, value, clip, extend):
    clipped = replace(groups, groups=tuple(
        replace(group, steps=(), panel=replace(
            group.panel,
            error=np.where(group.panel.version > 0, np.log1p(value), 0.0)))
        for group in groups.groups))  # fmt: skip
    ax = draw.draw_releases_heat(clipped)
    cells = next(c for c in ax.collections if isinstance(c, matplotlib.collections.QuadMesh))
    assert np.expm1(cells.get_clim()[1]) == pytest.approx(clip) or value == -0.9
    if value != -0.9:
        assert cells.colorbar.extend == extend


def test_figures_by_name(few, groups):
    assert tuple(draw.FIGURES) == ("errors", "survival", "variogram", "heat")
    half_lives = replace(few, source="history.csv")
    for name in ("errors", "survival", "variogram"):
        assert "history.csv" in texts(draw.FIGURES[name](half_lives))
        with pytest.raises(
            InputError, match=rf"'{name}' shows one group, but there are 3 groups: op0, op1"
        ):
            draw.FIGURES[name](groups)
    assert "history.csv" in texts(draw.FIGURES["heat"](replace(groups, source="history.csv")))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: draw.draw_releases_heat(f("few")), "two or more groups, got 1. Group the"),
        (lambda f: draw.draw_survival(without_threshold(f("few").groups[0])),
         r"all errors are 0\). Give the promised error"),
        (lambda f: draw.draw_survival(f("single").groups[0]), "two or more series .* got 1 of 1"),
        (lambda f: draw.draw_survival(f("mixed").groups[0], "months"), "versions have no dates"),
        (lambda f: draw.draw_survival(f("few").groups[0], "days"), "'releases' or 'months', got"),
        (lambda f: draw.draw_variogram(replace(f("few").groups[0], variogram=None)),
         "no error changed between versions"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_named(call, message, request):
    with pytest.raises(InputError, match=message):
        call(request.getfixturevalue)


def test_survival_names_the_series_left_out(few):
    group = few.groups[0]
    which = np.arange(12) < 1
    expiry = replace(group.expiry["releases"].take(which), too_noisy=np.arange(1, 12))
    with pytest.raises(InputError, match=r"got 1 of 12 \(11 left out: too noisy for the threshold"):
        draw.draw_survival(replace(group, expiry={"releases": expiry}))


def test_a_half_life_is_told_with_its_unit(few):
    half_life = few.groups[0].estimate("turnbull", "releases")
    tell = parts.half_life_text
    assert (
        tell(replace(half_life, half_life=1.0, low=1.0, high=np.inf))
        == "1 release [1,\N{NO-BREAK SPACE}∞]"
    )
    text = tell(replace(half_life, half_life=250.4, low=9.7, high=700.0))
    assert text == "250 releases [9.7,\N{NO-BREAK SPACE}700]"
    assert tell(replace(half_life, half_life=np.inf, low=3.0)) == (
        "longer than the record, at least 3 releases"
    )
    assert tell(replace(half_life, half_life=np.inf, low=0.0)) == (
        "longer than the record, without a lower bound"
    )
    assert tell(replace(half_life, half_life=None, refused="why")) == "cannot be determined: why"


def test_an_interval_that_leaves_the_axes_ends_in_arrows(few):
    half_life = replace(few.groups[0].estimate("turnbull", "releases"), half_life=20.0, low=-1.0,
                  high=np.inf)  # fmt: skip
    ax = matplotlib.figure.Figure().subplots()
    ax.set_xlim(0, 10)
    [key] = parts.mark_half_life(ax, half_life, 5.0)
    assert key.get_label() == "95 % interval of the half-life"
    assert [artist.get_marker() for artist in ax.lines] == ["None", "<", ">"]
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0, 5], [10, 5]])
    assert parts.mark_half_life(ax, None, 5.0) == []


def test_a_missing_matplotlib_is_asked_for(monkeypatch, request):
    for name in ("few", "single", "mixed", "large", "groups"):
        request.getfixturevalue(name)
    for name in ("matplotlib", "matplotlib.artist", "matplotlib.axes", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in FIGURES.values():
        with pytest.raises(MissingExtraError, match=r"pip install 'errcomp\[figures\]'"):
            call(request.getfixturevalue)


def test_importing_the_figures_does_not_import_matplotlib():
    code = (
        "import sys, errcomp.halflife.view.figures; assert 'matplotlib' not in sys.modules; "
        "assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
