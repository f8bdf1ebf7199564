"""Figures of calibrated models: numbers as given, what they are held against, names that fit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from errcomp.calibration.evaluation.scoring import abstention_curve
from errcomp.calibration.view import figures as draw
from errcomp.errors import InputError, MissingExtraError, NotDefinedError
from errcomp.propagation.view.figures import save

pytestmark = pytest.mark.extras
matplotlib = pytest.importorskip("matplotlib")

LONG = "NVIDIA A100-SXM4-80GB of the second rack, with $x$_{1} and\na line break, number "
NAMES = ("stack", "bayesian", "boosted", "linear", "device", "global", "sum")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def times(n=40):
    """Measured from 1 to 1000, predicted 5 % too long; every fourth band misses."""
    measured = np.geomspace(1, 1000, n)
    predicted = 1.05 * measured
    low = np.where(np.arange(n) % 4 == 0, 1.02, 0.9) * measured
    return {"measured": measured, "predicted": predicted, "low": low, "high": 1.2 * measured}


def points(devices, models, n=40):
    rng = np.random.default_rng(0)
    return {
        "error": 0.1 * rng.standard_normal(n),
        "device": [f"{LONG if devices > 9 else 'gpu'}{i % devices}" for i in range(n)],
        "model": [f"model{i // 2 % models}" for i in range(n)],
    }


def curves(names=NAMES, n=40):
    rng = np.random.default_rng(1)
    error = rng.exponential(0.05, n)
    return {name: abstention_curve(error * (1 + i / 5), rng.random(n)) for i, name in
            enumerate(names)}  # fmt: skip


LEVELS = (0.5, 0.8, 0.9, 0.95)
COVERAGE = {
    name: [(level, level - 0.02 * i, max(level - 0.2, 0), min(level + 0.1, 1)) for level in LEVELS]
    for i, name in enumerate(NAMES)
}
DRAWS = {f"gpu{i}": {"all": np.linspace(2.0 + i, 4.0 + i, 101)} for i in range(8)}
KINDS = {
    name: {kind: costs["all"] - 2 * i for i, kind in enumerate(("idle", "work", "training"))}
    for name, costs in DRAWS.items()
}

ALL = {
    "predicted": lambda ax=None: draw.predicted(**times(), unit="$m$", note="a note", ax=ax),
    "one run": lambda ax=None: draw.predicted(
        measured=[1.0], predicted=[1.0], low=[1.0], high=[1.0], ax=ax
    ),
    "residuals": lambda ax=None: draw.residuals(**points(8, 5), note="a note", ax=ax),
    "40 devices": lambda ax=None: draw.residuals(**points(40, 20), ax=ax),
    "coverage": lambda ax=None: draw.coverage(
        COVERAGE, n=87, drawn="8 devices", note="a note", ax=ax
    ),
    "other names": lambda ax=None: draw.coverage({LONG: COVERAGE["sum"]}, n=1, ax=ax),
    "abstention": lambda ax=None: draw.abstention(curves(), note="a note", ax=ax),
    "overhead": lambda ax=None: draw.overhead(DRAWS, note="a note", ax=ax),
    "40 overheads": lambda ax=None: draw.overhead(
        {f"{LONG}{i}": {"all": [-1.0, 2.0, 30.0]} for i in range(40)}, ax=ax
    ),
    "kinds of launches": lambda ax=None: draw.overhead(KINDS, note="a note", ax=ax),
    "posterior": lambda ax=None: draw.posterior(
        np.linspace(-0.2, 0.2, 40), np.random.default_rng(0).normal(0, 0.1, (50, 40)),
        note="a note", ax=ax,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_labels_do_not_overlap_nor_leave_the_figure(name, fits):
    fits(ALL[name]())


@pytest.mark.parametrize("name", ALL)
def test_draws_on_axes_given_and_changes_no_setting(name):
    before = dict(matplotlib.rcParams)
    sub = matplotlib.figure.Figure().subplots()
    assert ALL[name](sub) is sub
    assert ALL[name]() is not ALL[name]()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files_are_the_same_every_time(tmp_path, suffix):
    first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
    for path in (first, second):
        save(draw.abstention(curves(("stack", "sum")), note="a note"), path)
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 1000


def test_predicted_against_measured():
    given = times()
    ax = draw.predicted(**given, unit="ms", note="leave-device-out, stack")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("measured (ms)", "predicted (ms)")
    missed = np.arange(40) % 4 == 0
    np.testing.assert_allclose(line(ax, "outside").get_xdata(), given["measured"][missed])
    np.testing.assert_allclose(line(ax, "inside").get_ydata(), given["predicted"][~missed])
    ends = [tuple(path.vertices[:, 1]) for path in ax.collections[1].get_paths()]
    np.testing.assert_allclose(ends, np.column_stack([given["low"], given["high"]])[missed])
    np.testing.assert_array_equal(line(ax, "equal").get_xdata(), line(ax, "equal").get_ydata())
    assert "n=40 runs" in ax.get_title(loc="left")
    assert {"75 % of the runs inside the band", "leave-device-out, stack"} <= set(texts(ax))


@pytest.mark.parametrize(
    ("ratio", "labels"),
    [
        (1.3, ["80", "100", "120"]),
        (40.0, ["100", "200", "500", "1,000", "2,000"]),
        (1e4, ["100", "1,000", "10,000", "100,000", "1,000,000"]),
        (1e12, ["1e−05", "0.001", "0.1", "10", "1,000", "100,000", "10,000,000"]),
    ],
)
def test_times_are_written_as_people_do(ratio, labels):
    low = 90 if ratio < 1e9 else 1e-5
    ends = [low, low * ratio]
    ax = draw.predicted(measured=ends, predicted=ends, low=ends, high=ends)
    for axis in (ax.xaxis, ax.yaxis):
        found = [label.get_text() for label in axis.get_ticklabels()]
        assert found == labels
        assert not any(text.get_text() for text in axis.get_ticklabels(minor=True))


def test_errors_by_device_and_model():
    ax = draw.residuals(
        error=[0.1, -0.3, 0.02, 0.04], device=["B", "B", "A", ""], model=["x", "y", "x", ""]
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == ["(unknown)", "A", "B"]
    x = {float(v): float(y) for label in ("x", "y") for v, y in line(ax, label).get_xydata()}
    assert sorted(x) == pytest.approx([-30, 2, 10])
    assert {round(y) for y in x.values()} == {1, 2}
    assert len(set(x.values())) == 3  # of one device, side by side
    told = texts(ax)
    assert told[: told.index("mean |error|")] == ["n=1", "4.0 %", "n=1", "2.0 %", "n=2", "20 %"]
    medians = [line.get_xdata()[0] for line in ax.lines if str(line.get_label()).startswith("_")]
    assert medians[-1] == pytest.approx(-10)
    assert "n=4 runs: 3 devices, 3 models" in ax.get_title(loc="left")


def test_many_models_share_a_mark():
    ax = draw.residuals(**points(3, 12))
    legend = [text.get_text() for box in [*ax.get_children(), ax.get_legend()]
              if isinstance(box, matplotlib.legend.Legend) for text in box.get_texts()]  # fmt: skip
    assert legend.count("other models") <= 2
    assert len(set(legend)) == 8
    drawn = [line for line in ax.lines if line.get_marker() not in ("None", None, "")]
    assert sum(len(line.get_xdata()) for line in drawn) == 40


def test_coverage_against_promise():
    stack = [(0.9, 0.92, 0.8, 1.0), (0.5, 0.55, 0.45, 0.6)]
    found = {"sum": [(0.5, 0.3, 0.2, 0.4)], "stack": stack, "global": []}
    ax = draw.coverage(found, n=87, drawn="8 devices")
    np.testing.assert_allclose(line(ax, "stack").get_ydata(), [55, 92])
    np.testing.assert_allclose(line(ax, "stack").get_xdata(), [50, 90], atol=2)
    np.testing.assert_allclose(line(ax, "sum").get_ydata(), [30])
    assert line(ax, "sum").get_xdata()[0] != line(ax, "stack").get_xdata()[0]
    np.testing.assert_array_equal(line(ax, "nominal").get_xdata(), line(ax, "nominal").get_ydata())
    intervals = [[tuple(path.vertices[:, 1]) for path in c.get_paths()] for c in ax.collections]
    np.testing.assert_allclose(intervals[0], [(45, 60), (80, 100)])
    assert {"stack", "sum"} <= set(texts(ax))
    assert "global" not in texts(ax)
    assert ax.get_title(loc="left") == "Do the bands hold? n=87 runs, 8 devices"


def test_coverage_without_an_interval():
    ax = draw.coverage({"stack": [(0.9, 0.9, np.nan, np.nan)]}, n=2)
    np.testing.assert_allclose(line(ax, "stack").get_ydata(), [90])
    assert not np.isfinite(ax.collections[0].get_paths()[0].vertices[:, 1]).any()


def test_an_estimator_looks_the_same_everywhere():
    first = line(draw.coverage(COVERAGE, n=87), "boosted")
    second = line(draw.abstention(curves(("boosted", "sum"))), "boosted")
    assert (first.get_color(), first.get_marker()) == (second.get_color(), second.get_marker())
    every = [line(draw.coverage(COVERAGE, n=87), name) for name in NAMES]
    assert len({one.get_color() for one in every}) == len({one.get_marker() for one in every}) == 7


def test_names_that_are_not_known_have_looks_of_their_own(long_names):
    names = long_names(4)
    ax = draw.coverage(dict.fromkeys(names, COVERAGE["sum"]), n=87)
    looks = {(line(ax, name).get_color(), line(ax, name).get_marker()) for name in names}
    assert len(looks) == 4


def test_abstention_starts_at_five_runs():
    found = curves(("stack",), n=10)
    ax = draw.abstention(found)
    x, y = line(ax, "stack").get_xydata().T
    np.testing.assert_allclose(x, 100 * np.arange(5, 11) / 10)
    np.testing.assert_allclose(y, 100 * found["stack"].mean_error[4:])
    assert f"stack {100 * found['stack'].at(0.8):.1f} %" in texts(ax)
    assert "n=10 runs" in ax.get_title(loc="left")
    few = draw.abstention(curves(("stack",), n=2))
    np.testing.assert_allclose(line(few, "stack").get_xdata(), [100])


def test_abstention_without_any_error():
    ax = draw.abstention({"stack": abstention_curve([0.0, 0.0], [1.0, 2.0])})
    assert ax.get_ylim() == (0, 1)


def test_overhead_with_its_spans():
    ax = draw.overhead({"H100": {"all": np.linspace(2, 4, 201)},
                        "V100": {"all": np.linspace(-3, -1, 201)}})  # fmt: skip
    assert [label.get_text() for label in ax.get_yticklabels()] == ["H100", "V100"]
    spans = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2][:2]
    np.testing.assert_allclose(spans, [[2.1, 3.9], [2.5, 3.5]])
    assert ax.get_xlabel() == "overhead per launch (µs)"
    assert {"3.0  [2.10 – 3.90]", "−2.0  [−2.90 – −1.10]", "median [90 %]"} <= set(texts(ax))
    low, high = ax.get_xlim()
    assert low < -3 < 3.9 < high
    # What a launch costs is seen against nothing.
    assert draw.overhead({"H100": {"all": [5.0, 6.0]}}).get_xlim()[0] == 0
    # Neither is a small one nothing, nor has a large one an exponent.
    ax = draw.overhead({"a": {"all": [0.002, 0.002]}, "b": {"all": [5e6, 5e6]}})
    assert any(text.startswith("0.002  ") for text in texts(ax))
    assert any(text.startswith("5,000,000.0  ") for text in texts(ax))


def test_kinds_of_launches_stand_apart():
    ax = draw.overhead({"H100": {"idle": [7.0, 8.0], "work": [3.0, 4.0]}, "V100": {"work": [1.0]}})
    assert ax.get_title(loc="left") == "Cost of a launch, n=2 devices"
    other = draw.overhead({"H100": {"work": [3.0, 4.0]}, "(a new device)": {"work": [1.0, 5.0]}})
    assert other.get_title(loc="left") == "Cost of a launch, n=1 device"
    points = [tuple(map(float, line.get_xydata()[0])) for line in ax.lines
              if line.get_marker() not in ("None", "")]  # fmt: skip
    assert [x for x, _ in points] == [7.5, 3.5, 1.0]
    assert points[0][1] < 0 < points[1][1]
    assert points[1][1] + 1 == points[2][1]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["idle", "work"]
    assert "median [90 %]" not in texts(ax)


def test_posterior_against_the_runs():
    observed = np.array([-0.1, 0.0, 0.1, 0.2])
    tables = np.tile([0.0, 0.0, 0.0, 0.05], (20, 1))
    ax = draw.posterior(observed, tables)
    median = line(ax, "median of drawn tables").get_xydata()
    np.testing.assert_allclose(np.interp([-2.0, 2.0, 8.0], *median.T), [0, 75, 100])
    x, y = line(ax, "observed").get_xydata().T
    np.testing.assert_allclose(x[1:-1], 100 * np.expm1(observed))
    np.testing.assert_allclose(y, [0, 25, 50, 75, 100, 100])
    assert "n=4 runs" in ax.get_title(loc="left")
    assert any("20 tables drawn from the model" in text for text in texts(ax))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw.predicted(**{**times(), "low": [1.0]}), r"one value per run .* low \(1,\)"),
        (lambda: draw.predicted(measured=[], predicted=[], low=[], high=[]), "at least one run"),
        (lambda: draw.predicted(measured=[1.0], predicted=[1.0], low=[0.0], high=[2.0]),
         "low must be above 0"),
        (lambda: draw.predicted(measured=[1.0, 2.0], predicted=[1.0, np.nan], low=[1.0, 1.0],
                                high=[2.0, 2.0]), "predicted must be finite, got nan in row 2"),
        (lambda: draw.residuals(error=[0.1], device=["a", "b"], model=["x"]),
         r"device must have one name per run, shape \(1,\), got \(2,\)"),
        (lambda: draw.residuals(error=[[0.1]], device=["a"], model=["x"]), "one value per run"),
        (lambda: draw.overhead({"a": {"all": []}}), "draws of 'a' must be one or more finite"),
        (lambda: draw.overhead({"a": {"all": [1.0, np.inf]}}), "draws of 'a' must be one or"),
        (lambda: draw.posterior([], [[]]), "measured must be one or more finite"),
        (lambda: draw.posterior([0.1], [0.1, 0.2]), r"shape \(simulations, 1\), got \(2,\)"),
        (lambda: draw.posterior([0.1], [[np.nan]]), "draws must be one or more finite"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_nothing_to_draw():
    for call in (lambda: draw.coverage({"stack": []}, n=0), lambda: draw.abstention({}),
                 lambda: draw.overhead({})):  # fmt: skip
        with pytest.raises(NotDefinedError, match="to draw|cannot be drawn"):
            call()


def test_a_missing_matplotlib_is_asked_for(monkeypatch):
    for name in ("matplotlib", "matplotlib.artist", "matplotlib.axes", "matplotlib.figure",
                 "matplotlib.lines"):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, None)
    for name, call in ALL.items():
        with pytest.raises(MissingExtraError, match=r"pip install 'errcomp\[figures\]'"):
            call()
        assert name


def test_importing_the_figures_does_not_import_matplotlib():
    code = "import sys, errcomp.calibration.view.figures; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
