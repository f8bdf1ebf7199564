"""Figures of an audit and its pairs: what is drawn where, what is told, and extremes."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

import errcomp as ec
from errcomp.claims.registry import user_claim
from errcomp.claims.view import figures as draw
from errcomp.errors import InputError, NotDefinedError
from errcomp.report.drawing import style
from errcomp.report.drawing.hover import spots

pytestmark = pytest.mark.extras
matplotlib = pytest.importorskip("matplotlib")

ODD = "void $x$_{ at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>"


def texts(ax):
    return [text.get_text() for text in ax.texts]


def told(ax):
    """Everything a reader is told: (x, y) and text; all must be finite."""
    found = {}
    for one in spots(ax):
        assert np.isfinite(one.x).all()
        assert np.isfinite(one.y).all()
        found.update(zip(zip(one.x.tolist(), one.y.tolist(), strict=True), one.texts, strict=True))
    return found


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def marks(ax, marker):
    """Points of one marker: x and y."""
    return [
        (float(x), float(y))
        for line in ax.lines
        if line.get_marker() == marker
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def pairs(n=6, tools=1, devices=2, **columns):
    """Return pairs with errors 1 %, 2 %, …, of tools and devices in turn."""
    measured = np.linspace(10.0, 20.0, n)
    data = {
        "predicted": measured * (1 + np.arange(1, n + 1) / 100),
        "measured": measured,
        "tool": [f"tool {i % tools}" for i in range(n)],
        "device": [f"gpu{i % devices}" for i in range(n)],
        "model": [f"net{i % 3}" for i in range(n)],
    }
    return ec.Pairs({**data, **columns}, unit="ms")


@pytest.fixture(scope="module")
def neusight():
    return ec.datasets.load("neusight")


@pytest.fixture(scope="module")
def audited(neusight):
    return ec.audit(neusight, by=["device", "mode"])


@pytest.fixture(scope="module")
def several(neusight):
    return ec.audit(neusight, by=["mode"], tool="all", resamples=999)


@pytest.fixture(scope="module")
def drawn(neusight, audited, several, long_names):
    one = neusight.of_tool("neusight")
    odd = pairs(120, 9, 40, device=[f"{ODD}{i % 40}" for i in range(120)])
    names = long_names(40)
    long = pairs(120, device=[names[i % 12] for i in range(120)],
                 tool=[names[12 + i % 3] for i in range(120)])  # fmt: skip
    hours = pairs(40, 1, 40, measured=np.geomspace(1e5, 1e8, 40), predicted=np.full(40, 4e6))
    below = np.where(np.arange(40) % 5 == 0, -0.5, 1.1)
    mixed = pairs(40, 1, 4, predicted=np.linspace(10, 20, 40) * below,
                  measured=np.linspace(10, 20, 40))  # fmt: skip
    extremes = {
        f"{name}, {kind}": lambda ax=None, draw_it=draw_it, table=table: draw_it(table, ax=ax)
        for kind, table in (("long", long), ("hours", hours), ("mixed", mixed))
        for name, draw_it in (
            ("scatter", draw.predicted_against_measured),
            ("ecdf", draw.ecdf),
            ("by_group", draw.by_group),
            ("coverage", lambda table, ax: draw.coverage_map(table, "tool", "device", ax=ax)),
            ("bland_altman", lambda table, ax: draw.bland_altman(table.of_tool(table.tools[0]),
                                                                 ax=ax)),
            ("claimed", lambda table, ax: draw.claimed(
                ec.audit(table, by=["device"], tool="all", resamples=99), ax=ax)),
        )
    }  # fmt: skip
    return {
        **extremes,
        "claimed": lambda ax=None: draw.claimed(audited, ax=ax),
        "claimed, tools": lambda ax=None: draw.claimed(several, ax=ax),
        "claimed, odd": lambda ax=None: draw.claimed(
            ec.audit(odd.of_tool("tool 1"), resamples=999), ax=ax
        ),
        "scatter": lambda ax=None: draw.predicted_against_measured(one, ax=ax),
        "scatter, odd": lambda ax=None: draw.predicted_against_measured(
            odd.of_tool("tool 1"), ax=ax
        ),
        "ecdf": lambda ax=None: draw.ecdf(one, ax=ax),
        "ecdf, tools": lambda ax=None: draw.ecdf(odd, ax=ax),
        "bland_altman": lambda ax=None: draw.bland_altman(neusight, ax=ax),
        "by_group": lambda ax=None: draw.by_group(neusight, ("tool", "mode"), ax=ax),
        "by_group, odd": lambda ax=None: draw.by_group(odd, ax=ax),
        "coverage": lambda ax=None: draw.coverage_map(neusight, ax=ax),
        "coverage, odd": lambda ax=None: draw.coverage_map(odd, columns="device", ax=ax),
    }


EXTREMES = [f"{name}, {kind}" for kind in ("long", "hours", "mixed") for name in
            ("scatter", "ecdf", "by_group", "coverage", "bland_altman", "claimed")]  # fmt: skip
NAMES = ["claimed", "claimed, tools", "claimed, odd", "scatter", "scatter, odd", "ecdf",
         "ecdf, tools", "bland_altman", "by_group", "by_group, odd", "coverage",
         "coverage, odd"]  # fmt: skip


# What holds for all ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *EXTREMES])
def test_labels_do_not_overlap_nor_leave_the_figure(drawn, name, fits):
    fits(drawn[name]())


@pytest.mark.parametrize("name", NAMES)
def test_draws_on_axes_given_changes_no_setting_and_tells(drawn, name):
    before = dict(matplotlib.rcParams)
    figure = matplotlib.figure.Figure()
    sub = figure.subfigures(1, 2)[0].subplots()
    assert drawn[name](sub) is sub
    assert dict(matplotlib.rcParams) == before
    said = told(sub)
    assert said
    assert all(len(text.split("\n")) == 2 for text in said.values())
    assert not any("nan" in text for text in [*said.values(), *texts(sub)])


FIGURES = [draw.predicted_against_measured, draw.ecdf, draw.bland_altman, draw.by_group,
           draw.coverage_map]  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES)
def test_no_pairs_are_refused_and_one_is_drawn(figure):
    table = pairs()
    with pytest.raises(InputError, match="no pairs to draw"):
        figure(table.take(np.array([], dtype=int)))
    ax = figure(table.take(np.array([0])))
    ax.figure.draw_without_rendering()
    assert "n=1 pair" in ax.get_title(loc="left")
    assert "+1.00 %" in str(told(ax)) or "1.00 %" in str(told(ax))


@pytest.mark.parametrize("figure", FIGURES)
def test_exact_predictions_are_drawn(figure):
    measured = np.linspace(1.0, 2.0, 12)
    ax = figure(pairs(12, measured=measured, predicted=measured))
    ax.figure.draw_without_rendering()
    assert told(ax)


@pytest.mark.parametrize("figure", FIGURES[:4])
def test_an_svg_of_very_many_pairs_stays_small(figure):
    rng = np.random.default_rng(1)
    measured = rng.uniform(1, 1000, 20_000)  # each in the file: more than 1,000,000 bytes
    predicted = measured * np.exp(rng.normal(0, 0.2, 20_000))
    ax = figure(ec.Pairs({"predicted": predicted, "measured": measured, "device": "A"}))
    stream = io.BytesIO()
    ax.figure.savefig(stream, format="svg")
    assert len(stream.getvalue()) < 300_000
    errors = np.abs(predicted / measured - 1)
    said = told(ax)
    if figure is not draw.ecdf:
        assert len(said) == 50
        worst = np.sort(np.where(predicted > measured, 1, -1) * errors)[-1]
        assert f"+{100 * worst:.1f} %" in str(said)


@pytest.mark.parametrize(
    ("figure", "keys"), [(draw.by_group, {"by": "devise"}), (draw.coverage_map, {"rows": "devise"})]
)
def test_a_key_that_is_not_there(figure, keys):
    with pytest.raises(InputError, match="no column 'devise'.*tool, device, model"):
        figure(pairs(), **keys)


def test_hovering_names_a_pair_by_what_tells_it_apart():
    table = pairs(4, batch=[1, 2, 1, 8], level="model", seq_len=512)
    said = told(draw.predicted_against_measured(table))
    measured = float(table.measured[3])
    assert said[measured, float(table.predicted[3])] == (
        "gpu1, net0, batch 8\npredicted 20.8 ms, measured 20 ms, +4.00 %"
    )
    plain = ec.Pairs({"predicted": [11.0, 9.0], "measured": [10.0, 10.0]})
    assert told(draw.predicted_against_measured(plain))[10.0, 9.0] == (
        "row 2\npredicted 9, measured 10, −10.00 %"
    )


# claimed -----------------------------------------------------------------------------------------


def test_groups_are_sorted_worst_first_with_all_pairs_apart(audited):
    ax = draw.claimed(audited)
    assert rows(ax)[0] == "P4, inference  n=3"
    assert rows(ax)[-1] == "all  n=146"
    by_error = sorted((row.figures["mape"].value for row in audited.rows), reverse=True)
    circles = sorted(marks(ax, "o"), key=lambda point: point[1])
    assert [x for x, _ in circles[:-1]] == pytest.approx([100 * e for e in by_error])
    assert circles[-1][0] == pytest.approx(100 * audited.overall.figures["mape"].value)
    assert [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "-"
            and list(line.get_xdata()) == [0, 1]] == [len(audited.rows) - 0.5]  # fmt: skip


def test_claims_are_open_diamonds_where_they_stand_and_verdicts_are_words(audited):
    ax = draw.claimed(audited)
    row_of = {name: y for y, name in enumerate(rows(ax))}
    diamonds = {y: x for x, y in marks(ax, "D")}
    assert diamonds[row_of["H100, inference  n=16"]] == pytest.approx(2.3)
    assert diamonds[row_of["all  n=146"]] == pytest.approx(2.3)
    assert row_of["P4, inference  n=3"] not in diamonds
    written = {(text.xy[1], text.get_text()) for text in ax.texts}
    assert (row_of["all  n=146"], "overstated") in written
    assert (
        row_of["H100, inference  n=16"],
        "maybe overstated",
    ) in written  # only when judged alone
    assert (row_of["V100, inference  n=10"], "consistent") in written
    assert (row_of["V100, training  n=3"], "not verifiable") in written
    assert any("after correcting for 9 claims" in text for text in texts(ax))


def test_a_wide_interval_is_cut_with_an_arrow_and_written_out(audited):
    l4 = next(row for row in audited.rows if row.key["device"] == "L4" and row.n == 11)
    mape = replace(l4.figures["mape"], high=4.445)
    wide = replace(l4, figures={**l4.figures, "mape": mape})
    ax = draw.claimed(replace(audited, rows=[wide if row is l4 else row for row in audited.rows]))
    row_of = {name: y for y, name in enumerate(rows(ax))}
    assert ax.get_xlim()[1] < 100
    assert {y for _, y in marks(ax, ">")} == {row_of["L4, inference  n=11"]}
    assert mape.format() in texts(ax)
    assert mape.format().endswith(", 444.5]")


def test_a_largest_error_beyond_the_axis_is_an_arrow():
    errors = [0.01] * 29 + [0.5]
    data = {"predicted": [1 + e for e in errors], "measured": [1.0] * 30, "device": ["A"] * 30}
    found = ec.audit(data, by=["device"])
    (row,) = found.rows
    mape = 0.79 / 30
    assert row.figures["mape"].value == pytest.approx(mape)
    for high, colours in ((None, "MUTED"), (0.1, "MUTED"), (0.4, "BLUE")):
        ends = replace(row.figures["mape"], low=None if high is None else 0.01, high=high)
        changed = replace(row, figures={**row.figures, "mape": ends})
        ax = draw.claimed(replace(found, rows=(changed,), by_tool=(changed,)))
        assert ax.get_xlim()[1] == pytest.approx(1.04 * 7 * 100 * mape)
        arrows = {line.get_color() for line in ax.lines if line.get_marker() == ">"}
        assert arrows == {getattr(style, colours)}
        assert marks(ax, "|") == []


@pytest.mark.parametrize(
    ("printed", "low", "high"), [("<5%", 0.0, 5.0), ("5–10%", 5.0, 10.0), (">=30%", 30.0, None)]
)
def test_bounds_and_ranges_are_open_bars(neusight, printed, low, high):
    ax = draw.claimed(ec.audit(neusight, by=[], claims=[user_claim(printed)], resamples=999))
    (bar,) = ax.patches
    end = ax.get_xlim()[1] if high is None else high
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((low, end))
    assert bar.get_facecolor()[3] == 0
    assert not marks(ax, "D")


def test_a_claim_of_another_kind_is_written_and_not_drawn(neusight):
    claim = user_claim("0.97", metric="correlation")
    ax = draw.claimed(ec.audit(neusight, by=[], claims=[claim], resamples=999))
    assert not marks(ax, "D")
    assert not ax.patches
    assert {"0.97", "consistent"} <= set(texts(ax))


def test_a_claimed_median_is_drawn_with_the_median(neusight):
    claim = user_claim("2%", aggregation="median")
    audit = ec.audit(neusight, by=[], claims=[claim], resamples=999)
    ax = draw.claimed(audit)
    row = audit.overall
    assert [x for x, _ in marks(ax, "o")] == pytest.approx(
        [100 * row.figures["mape"].value, 100 * row.figures["median_ape"].value]
    )


def test_of_many_groups_the_worst_are_drawn_and_the_others_counted():
    table = pairs(200, 1, 100)
    audit = ec.audit(table, by=["device"], resamples=999)
    ax = draw.claimed(audit)
    assert len(rows(ax)) == 31
    assert rows(ax)[0] == "gpu99  n=2"
    assert any("not drawn: 70 groups, MAPE up to 120.0 %" in text for text in texts(ax))
    assert ax.get_title(loc="left") == "Recomputed error of tool 0, n=200 pairs"


def test_rows_of_several_tools_say_the_tool_and_far_apart_ones_share_a_log_axis(several):
    ax = draw.claimed(several)
    assert rows(ax)[0] == "habitat, training  n=26"
    assert rows(ax)[-4:] == ["habitat, all  n=80", "micro, all  n=80", "roofline, all  n=80",
                             "neusight, all  n=146"]  # fmt: skip
    assert ax.get_xscale() == "log"


def test_an_audit_without_rows_is_refused(audited):
    with pytest.raises(NotDefinedError, match="it has no rows"):
        draw.claimed(replace(audited, rows=(), by_tool=()))


# predicted_against_measured ----------------------------------------------------------------------


def test_points_stand_where_they_are_and_bands_are_relative_to_measured():
    table = pairs()
    ax = draw.predicted_against_measured(table, within=[0.25, 0.1])
    points = marks(ax, "o") + marks(ax, "s")
    assert sorted(points) == sorted(zip(table.measured, table.predicted, strict=True))
    low, _ = ax.get_xlim()
    edges = [band.get_paths()[0].vertices for band in ax.collections]
    at_low = [sorted({round(y / low, 9) for x, y in edge if x == low}) for edge in edges]
    assert at_low == [[0.75, 1.25], [0.9, 1.1]]  # the narrow one above the wide one
    assert "shaded: ±10 % of measured (100 % of the pairs), ±25 % (100 %)" in texts(ax)
    assert ax.get_xlim() == ax.get_ylim()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("measured (ms)", "predicted (ms)")


def test_seven_groups_have_a_look_and_the_rest_share_one():
    ax = draw.predicted_against_measured(pairs(30, 10))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 8
    assert labels[-1].startswith("3 others\nn=9, MAPE ")
    assert len({(line.get_marker(), line.get_color()) for line in ax.lines
                if line.get_marker() != "None"}) == 8  # fmt: skip
    eight = draw.predicted_against_measured(pairs(16, 8))
    assert [text.get_text().split("\n")[0] for text in eight.get_legend().get_texts()] == [
        f"tool {i}" for i in range(8)
    ]


def test_predictions_that_are_not_positive_are_counted():
    table = pairs(4, predicted=[0.0, -1.0, 14.0, 20.0])
    for figure in (draw.predicted_against_measured, draw.bland_altman):
        ax = figure(table)
        assert "not drawn: 2 predictions of 0 or less" in texts(ax)
        assert len(told(ax)) == 2
        with pytest.raises(
            NotDefinedError, match=r"none of the predictions is positive \(2 pairs\)"
        ):
            figure(table.take(np.array([0, 1])))


@pytest.mark.parametrize("within", [[0.0], [-0.1], [np.nan], ["a"], [True]])
def test_bands_and_thresholds_are_fractions(within):
    with pytest.raises(InputError, match="within must contain only fractions above 0,"):
        draw.predicted_against_measured(pairs(), within=within)
    with pytest.raises(InputError, match="thresholds must contain only fractions above 0"):
        draw.ecdf(pairs(), thresholds=within)


def test_a_band_of_more_than_all_reaches_down():
    ax = draw.predicted_against_measured(pairs(), within=[2.0])
    lowest = ax.collections[0].get_paths()[0].vertices[:, 1].min()
    assert lowest < ax.get_ylim()[0]


# ecdf --------------------------------------------------------------------------------------------


def test_the_line_steps_at_each_error_and_shares_are_written_out():
    ax = draw.ecdf(pairs(10), thresholds=[0.05, 0.1])
    (line,) = (line for line in ax.lines if line.get_drawstyle() == "steps-post")
    assert line.get_xdata()[1:-1] == pytest.approx(range(1, 11))
    assert line.get_ydata()[1:-1] == pytest.approx(range(10, 101, 10))
    assert "within 5, 10 %: 50, 100 %" in texts(ax)
    assert "median 5.50 %, P90 9.10 %" in texts(ax)
    assert np.ravel(marks(ax, "o")) == pytest.approx([5.5, 50.0, 9.1, 90.0])


def test_the_band_is_that_of_dvoretzky_kiefer_and_wolfowitz():
    ax = draw.ecdf(pairs(100))
    corners = ax.collections[0].get_paths()[0].vertices
    half = 100 * np.sqrt(np.log(2 / 0.05) / 200)
    assert half == pytest.approx(13.581, abs=0.001)
    heights = {round(y, 6) for y in corners[np.isclose(corners[:, 0], 50)][:, 1]}
    assert heights == {round(y + side * half, 6) for y in (49, 50) for side in (-1, 1)}
    assert not draw.ecdf(pairs(100, 2)).collections  # several lines would hide each other's
    assert not draw.ecdf(pairs(4)).collections


def test_tools_have_lines_and_the_eighth_is_thin():
    ax = draw.ecdf(pairs(45, 9))
    lines = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert [line.get_linewidth() for line in lines] == [1.8] * 7 + [0.7] * 2
    assert "★ tool 6, n=5" in texts(ax)  # its mark too, for print in grey
    assert "thin lines: 2 other tools" in texts(ax)


# bland_altman ------------------------------------------------------------------------------------


def test_p_values_have_two_digits_and_an_end():
    from errcomp.claims.view.agreement import _p_value

    assert [_p_value(p) for p in (0.25, 0.00123, 0.001, 0.0009)] == [
        *("p=0.25", "p=0.0012", "p=0.001", "p<0.001"),
    ]


def test_limits_and_intervals_are_those_of_bland_and_altman():
    from errcomp.claims.view.agreement import agreement

    # Bland and Altman (1986), PEFR by two meters, n=17: mean -2.1, sd 38.8 l/min.
    unit = np.array([-1.0, 1.0] * 8 + [0.0])
    difference = -2.1 + 38.8 * unit / unit.std(ddof=1)
    found = agreement(difference, np.zeros(17))
    sd, t = 38.8, 2.1199
    assert found.mean == pytest.approx((-2.1, -2.1 - t * sd / 17**0.5, -2.1 + t * sd / 17**0.5),
                                       abs=0.001)  # fmt: skip
    se = sd * np.sqrt(1 / 17 + 1.96**2 / 32)
    assert found.high == pytest.approx(
        (-2.1 + 1.96 * sd, -2.1 + 1.96 * sd - t * se, -2.1 + 1.96 * sd + t * se), abs=0.01
    )
    assert found.slope is None


def test_heights_are_log_ratios_with_ticks_in_percent():
    table = pairs(3, 1, predicted=[20.0, 15.0, 10.0], measured=[10.0, 15.0, 20.0])
    ax = draw.bland_altman(table)
    points = marks(ax, "o")
    assert [y for _, y in points] == pytest.approx([np.log(2), 0, -np.log(2)])
    assert [x for x, _ in points] == pytest.approx([200**0.5, 15, 200**0.5])
    ticks = {t.get_text(): y for t, y in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)}
    assert ticks["+100 %"] == pytest.approx(-ticks["−50 %"])
    assert "fewer than 5 pairs: too few for the 95 % limits" in texts(ax)


def test_a_trend_is_drawn_only_where_it_is_significant():
    size = np.geomspace(1, 1000, 40)
    wiggle = 0.05 * np.tile([1.0, -1.0, -1.0, 1.0], 10)
    grows = draw.bland_altman({"predicted": size**1.05 * np.exp(wiggle), "measured": size})
    assert [line for line in grows.lines if line.get_label() == "trend"]
    assert any("per tenfold size (p<0.001)" in text for text in texts(grows))
    flat = draw.bland_altman({"predicted": size * np.exp(wiggle), "measured": size})
    assert not [line for line in flat.lines if line.get_label() == "trend"]
    assert "no significant trend with size (5 % level)" in texts(flat)


def test_small_sizes_with_larger_errors_are_told():
    size = np.geomspace(1, 1000, 60)
    off = np.where(size < 10, 0.4, 0.02) * np.tile([1.0, -1.0], 30)
    ax = draw.bland_altman({"predicted": size * (1 + off), "measured": size})
    note = " ".join(
        text for text in reversed(texts(ax)) if "too wide" in text or "large on" in text
    )
    share = np.abs(off[:15]).sum() / np.abs(off).sum()
    assert note == (
        f"{100 * share:.0f} % of the MAPE comes from the smallest 15 pairs: the limits are too "
        "wide for large ones"
    )
    even = draw.bland_altman({"predicted": size * (1 + off[::-1]), "measured": size})
    assert not any("too wide" in text for text in texts(even))


def test_limits_far_from_normal_say_so():
    size = np.geomspace(1, 1000, 60)
    heavy = np.where(np.arange(60) % 20 == 7, 1.5, 0.01 * (-1.0) ** np.arange(60))
    ax = draw.bland_altman({"predicted": size * np.exp(heavy), "measured": size})
    assert any(text.startswith("errors far from normal (Shapiro-Wilk W=0.") for text in texts(ax))
    rng = np.random.default_rng(3)
    plain = draw.bland_altman(
        {"predicted": size * np.exp(rng.normal(0, 0.1, 60)), "measured": size}
    )
    assert not any("normal (" in text for text in texts(plain))


def test_several_tools_are_refused_unless_one_is_the_subject(neusight):
    with pytest.raises(InputError, match=r"one tool, got 2 tools: tool 0, tool 1\. Choose"):
        draw.bland_altman(pairs(6, 2))
    title = draw.bland_altman(neusight).get_title(loc="left")
    assert title == "Does the error of neusight depend on size? n=146 pairs"


# by_group ----------------------------------------------------------------------------------------


def test_rows_are_sorted_by_median_and_boxes_are_quartiles():
    table = pairs(9, device=["A"] * 5 + ["B"] * 4)
    ax = draw.by_group(table)
    assert rows(ax) == ["B  n=4", "A  n=5"]
    (box,) = ax.patches  # of five pairs; four have none
    assert (box.get_x(), box.get_x() + box.get_width()) == pytest.approx((2.0, 4.0))
    assert {"7.50 %", "3.00 %"} <= set(texts(ax))
    errors = sorted(x for x, _ in marks(ax, "o"))
    assert errors == pytest.approx(range(1, 10))
    heights = [y for _, y in marks(ax, "o")]
    assert all(abs(y - round(y)) <= 0.28 for y in heights)
    assert ax.get_xscale() == "linear"


def test_errors_far_apart_need_a_log_axis_and_tiny_ones_stand_at_its_edge():
    errors = np.array([0.0, 1e-9, 0.05, 0.06, 0.07, 8.0])
    ax = draw.by_group(pairs(6, measured=[1.0] * 6, predicted=1 + errors))
    assert ax.get_xscale() == "log"
    low, _ = ax.get_xlim()
    assert low == pytest.approx(0.06)
    assert sorted(x for x, _ in marks(ax, "o"))[:2] == pytest.approx([low, low])
    assert "at the left edge: 2 pairs with errors below 0.06 %" in texts(ax)


def test_of_many_groups_those_with_the_largest_median_are_drawn():
    ax = draw.by_group(pairs(100, 1, 100), by=["device", "tool"])
    assert len(rows(ax)) == 30
    assert rows(ax)[0] == "gpu99, tool 0  n=1"
    assert "not drawn: 70 groups, median error up to 70.00 %" in texts(ax)


# coverage_map ------------------------------------------------------------------------------------


def test_cells_hold_error_and_number_and_empty_ones_are_told():
    table = pairs(6, tool=["A"] * 4 + ["B"] * 2, model=["x", "y", "y", "y", "x", "x"])
    ax = draw.coverage_map(table)
    cells = {text.get_position(): text.get_text() for text in ax.texts if "n=" in text.get_text()}
    assert cells == {(0, 0): "1.0 %\nn=1", (1, 0): "3.0 %\nn=3", (0, 1): "5.5 %\nn=2"}
    assert told(ax)[1.0, 1.0] == "B, y\nno prediction"
    assert "3 of 4 combinations predicted" in texts(ax)
    assert rows(ax) == ["A  n=4", "B  n=2"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x\nn=3", "y\nn=3"]


def test_failures_are_counted_in_their_cells():
    table = ec.Pairs(
        {
            "predicted": [11.0, None, None, 12.0],
            "measured": [10.0, 10.0, 10.0, 10.0],
            "tool": ["A", "A", "B", "A"],
            "model": ["x", "x", "z", "y"],
            "status": ["ok", "out of memory", "failed", "ok"],
        }
    )
    ax = draw.coverage_map(table)
    cells = {text.get_position(): text.get_text() for text in ax.texts
             if isinstance(text.get_position()[0], int)}  # fmt: skip
    assert cells[0, 0] == "10.0 %\nn=1, 1 ×"
    assert cells[2, 1] == "1 ×"
    assert told(ax)[2.0, 1.0] == "B, z\nno prediction, 1 failed"
    assert "2 of 6 combinations predicted; ×: 2 predictions that failed" in texts(ax)
    only = draw.coverage_map(table.of_tool("A"))
    assert told(only)[0.0, 0.0] == "A, x\nMAPE 10.00 %, n=1, 1 failed"
    selected = draw.coverage_map(table.where({"model": "x"}))
    assert "1 of 1 combination predicted; ×: 1 prediction that failed" in texts(selected)
    by_hand = draw.coverage_map(table.take(np.array([0])))  # whose failures those are is not known
    assert told(by_hand) == {(0.0, 0.0): "A, x\nMAPE 10.00 %, n=1"}


def test_rows_and_columns_beyond_the_room_are_counted():
    ax = draw.coverage_map(pairs(200, 50, 40), rows="tool", columns="device")
    assert len(rows(ax)) == 30
    assert len(ax.get_xticklabels()) == 24
    assert {"not drawn: 20 values of tool with the fewest pairs",
            "not drawn: 16 values of device with the fewest pairs"} <= set(texts(ax))  # fmt: skip


def test_rows_count_the_pairs_that_are_not_drawn_too():
    """Forty devices, each in one column of its own: those of columns left out have three pairs."""
    table = pairs(120, 1, 40, model=[f"net{i % 40}" for i in range(120)])
    ax = draw.coverage_map(table, rows="device", columns="model")
    assert {label.split("  ")[1] for label in rows(ax)} == {"n=3"}


def test_thresholds_beyond_the_axis_have_no_name():
    measured = np.linspace(10.0, 20.0, 40)
    factor = np.where(np.arange(40) % 5 == 0, 2.5, 1.1)  # errors of 10 % and more
    ax = draw.ecdf(pairs(40, measured=measured, predicted=measured * factor))
    assert ax.get_xlim()[0] > 5
    assert "5 %" not in texts(ax)
    assert "20 %" in texts(ax)


def test_errors_at_the_edge_are_counted_where_there_are_any():
    errors = [0.0, 1e-9, 0.05, 0.06, 0.07, 8.0, 0.08, 0.09, 0.1, 0.11]
    for found, edge in ((errors, True), (errors[2:], False)):
        ax = draw.ecdf(
            pairs(len(found), measured=[1.0] * len(found), predicted=1 + np.array(found))
        )
        assert ax.get_xscale() == "log"
        assert any("at the left edge" in text for text in texts(ax)) is edge


def test_rows_and_columns_must_differ():
    with pytest.raises(InputError, match="two different keys, got 'tool' twice"):
        draw.coverage_map(pairs(), columns="tool")


# Real tables -------------------------------------------------------------------------------------


@pytest.mark.shared
def test_figures_of_a_real_table(shared_data):
    found = ec.read(shared_data / "tools" / "nn-meter")
    table = found if isinstance(found, ec.Pairs) else found.pairs
    ax = draw.ecdf(table)
    assert f"n={table.n}" in ax.get_title(loc="left")
    assert len(told(draw.predicted_against_measured(table))) == table.n
