"""The whole replication: counts, the cells that teach something, and that it cannot be fooled."""

from __future__ import annotations

import json

import polars as pl
import pytest

from errcomp import datasets
from errcomp.claims import replicate_survey
from errcomp.claims.replicate import STATUSES, TITLES, Replication
from errcomp.claims.replicate.judging import INPUTS
from errcomp.errors import InputError

R, A, N, D = STATUSES


@pytest.fixture(scope="module")
def found() -> Replication:
    return replicate_survey()


@pytest.fixture
def no_search(monkeypatch):
    """Leave out the search for the published figures, which takes a second or two."""
    monkeypatch.setattr("errcomp.claims.replicate.neusight._search", lambda source: None)


def test_every_cell_of_every_table_is_there_once(found):
    printed = {
        (name, row["row"], row["column"])
        for name, frame in datasets.tables("survey").items()
        if name not in INPUTS
        for row in frame.iter_rows(named=True)
    }
    cells = [(cell.table, cell.row, cell.column) for cell in found.cells]
    assert len(cells) == len(set(cells)) == 367
    assert set(cells) == printed
    assert set(found.tables()) == set(TITLES)


def test_no_cell_is_left_unexplained(found):
    for cell in found.cells:
        assert cell.status in STATUSES
        assert cell.rule
        if cell.status == D:
            assert (cell.recomputed, cell.rule) == (None, "none")
            assert cell.note.endswith(".")
        else:
            assert cell.recomputed is not None
            assert cell.rule != "none"
        if cell.status == A:
            assert cell.note, cell.describe()
            # A rule that is not stated is never taken without the chance that some rule fits.
            assert cell.tried >= 1
            assert 0 < cell.chance <= 1
        else:
            assert (cell.chance is None) == (cell.tried is None)
        if cell.status == R:
            assert cell.chance is None


def test_counts(found):
    counts = {name: tuple(count[s] for s in STATUSES) for name, count in found.counts().items()}
    assert counts == {
        "tools": (0, 1, 0, 31),
        "table3_suite": (0, 0, 0, 10),
        "table4_accuracy": (1, 1, 1, 12),
        "table6_neusight": (10, 5, 0, 11),
        "table7_astrasim": (11, 1, 0, 4),
        "table8_vidur": (16, 2, 0, 0),
        "table9_coverage": (10, 0, 0, 10),
        "table9_totals": (16, 3, 3, 0),
        "table10_cross_tool": (6, 0, 0, 24),
        "table11_12_deployment": (0, 0, 0, 35),
        "error_by_level": (0, 2, 8, 2),
        "text_neusight": (11, 11, 6, 0),
        "timeloop_resnet50_conv1": (5, 6, 0, 0),
        "table1_taxonomy": (20, 4, 1, 0),
        "statements": (24, 3, 19, 21),
        "all": (130, 39, 38, 160),
    }


@pytest.mark.parametrize(
    ("table", "row", "column", "status", "recomputed", "rule"),
    [
        ("table6_neusight", "V100, inference", "survey", R, 0.0587154, "mean APE, all 10"),
        ("table6_neusight", "P4, inference", "survey", R, 0.2709895, "mean APE, all 3"),
        ("table6_neusight", "H100, inference", "survey", A, 0.0873580, "fused and unfused"),
        ("table6_neusight", "H100, training", "survey", A, 0.0660100, "distributed and single"),
        ("table6_neusight", "L4, inference", "survey", A, 0.1407545, "rounded to 0.01 %"),
        ("table6_neusight", "MI250, inference", "survey", A, 0.07655, "rounded to 0.01 %"),
        ("table6_neusight", "T4, inference", "survey verdict", R, 3.034426, "more than twice"),
        ("table7_astrasim", "All-Reduce, 8 NPUs 1 MB", "cycles", R, 57426, "in the log"),
        ("table7_astrasim", "communication scaling 4 to 8 GPUs", "ratio", R, 2.2746, "cycles"),
        ("table8_vidur", "P99 E2E latency", "sarathi", R, 0.261925, "'linear'"),
        ("table8_vidur", "P99/mean", "vllm", R, 1.774560, "'linear'"),
        ("table8_vidur", "Preempted share", "vllm", R, 0.265, "preemption time above 0"),
        ("table9_totals", "coverage, % weighted", "vidur", R, 7.5 / 36, "(S + P/2) / 36"),
        ("table9_totals", "union of all tools, scenarios", "suite", A, 16, "full support only"),
        ("table9_totals", "T4+I5+D1 scenarios", "suite", R, 13, "of T4, I5 and D1"),
        ("table9_totals", "workloads said to lack any tool, %", "suite", N, 13 / 36, "names"),
        ("text_neusight", "GPU types, second edition", "value", A, 10, "listed in Table 6"),
        ("text_neusight", "GPU types, first edition", "value", R, 12, "all configurations"),
        ("text_neusight", "H100 GPT-2-Large fused", "value", A, 0.1936988, "batch 8 alone"),
        ("text_neusight", "DP4 APE", "value", A, 0.1287025, "A100-40G-SXM alone"),
        ("text_neusight", "TP4 APE", "value", A, 0.0839674, "A100-40G-SXM alone"),
        ("text_neusight", "PP4 APE", "value", A, 0.1026045, "A100-40G-SXM alone"),
        ("text_neusight", "H100 gap to claim", "value", A, 3.798174, "fused and unfused"),
        ("text_neusight", "AMD training error, lowest device", "value", R, 0.1562275, "AMD"),
        (
            "timeloop_resnet50_conv1",
            "ideal cycles",
            "value",
            R,
            702464,
            "MACs divided by proc",
        ),
        ("timeloop_resnet50_conv1", "total energy", "value", R, 649.0767, "MACs"),
        ("timeloop_resnet50_conv1", "DRAM share", "value", A, 0.618113, "reference output"),
        ("timeloop_resnet50_conv1", "utilisation", "value", A, 0.599986, "200 MHz"),
        ("timeloop_resnet50_conv1", "data movement to computation", "value", A, 16.263, "DRAM"),
    ],
)
def test_cells(found, table, row, column, status, recomputed, rule):
    cell = found.cell(table, row, column)
    assert cell.status == status, cell.describe()
    assert cell.recomputed == pytest.approx(recomputed, rel=1e-5)
    assert rule in cell.rule


def test_the_relative_difference_has_two_bases(found):
    second = found.cell("table8_vidur", "E2E lower under Sarathi, second edition", "sarathi")
    first = found.cell("table8_vidur", "E2E lower under Sarathi, first edition", "sarathi")
    assert (second.printed, second.status) == ("10.7%", A)
    assert "as printed (rounded), divided by" in second.rule
    assert (first.printed, first.status, first.edition) == ("12.2%", A, "first")
    assert "divided by the mean latency of Sarathi" in first.rule
    # Neither compares like with like.
    assert "On these 50 requests, Sarathi's mean latency is 2.0 % lower" in first.note


@pytest.mark.parametrize(
    ("row", "recomputed"),
    [
        ("published by the NeuSight authors: NeuSight, abstract", 0.0233),
        ("published by the NeuSight authors: Habitat, abstract", 1.2140),
        ("published by the NeuSight authors: Li et al., abstract", 0.3076),
    ],
)
def test_the_published_figures_are_of_one_subset(found, row, recomputed):
    cell = found.cell("text_neusight", row, "value")
    assert cell.status == A
    assert cell.recomputed == pytest.approx(recomputed, abs=5e-5)
    assert "H100" in cell.rule
    assert "gpt3_27 or gpt3_xl" in cell.rule
    assert found.cell("tools", "NeuSight", "claimed accuracy").status == A


def test_the_ranges_of_neusight_are_end_to_end_and_not_reproduced(found):
    kernel = found.cell("error_by_level", "kernel, NeuSight", "high")
    model = found.cell("error_by_level", "model, NeuSight, extrapolated", "low")
    assert "are the printed range, but they are errors of end-to-end times" in kernel.note
    assert (kernel.status, model.status) == (N, N)
    assert "All rows of Table 6: 5.9 % to 27.1 %" in model.note
    assert "composition error" in model.note


def test_a_gap_of_five_to_fifteen_percent_is_not_in_the_data(found):
    ends = [
        found.cell("text_neusight", f"composition error, {e}", "value") for e in ("low", "high")
    ]
    assert [cell.status for cell in ends] == [N, N]
    assert ends[0].recomputed < 0 < ends[1].recomputed < 0.10


def test_a_share_of_a_count_that_is_not_reproduced_is_not_either(found):
    cell = found.cell("table9_totals", "at most one tool, %", "suite")
    assert cell.status == N
    assert "The printed count, 33, divided by 36 is 91.7 %, but the count is not" in cell.note


def test_a_claim_below_a_bound_is_not_a_claim_of_zero(found):
    cell = found.cell("error_by_level", "model", "low")
    assert cell.recomputed == pytest.approx(0.007)  # LitePred; nn-Meter's "< 1 %" has no lower end


def test_a_search_says_how_many_it_tried(found):
    cell = found.cell("tools", "NeuSight", "claimed accuracy")
    assert cell.tried > 1e6
    assert 0 < cell.chance < 1e-3


def test_an_open_count_is_given_as_bounds(found):
    cell = found.cell("table9_totals", "at most one tool, scenarios", "suite")
    assert (cell.status, cell.recomputed) == (N, (30.0, 32.0))
    assert cell.to_dict()["recomputed"] == [30.0, 32.0]
    assert cell.recomputed_text == "30 to 32"


def _with(tables, name, row, column, **values):
    frame = tables[name]
    hit = (pl.col("row") == row) & (pl.col("column") == column)
    assert frame.filter(hit).height == 1
    changed = [
        pl.when(hit).then(pl.lit(v)).otherwise(pl.col(k)).alias(k) for k, v in values.items()
    ]
    return {**tables, name: frame.with_columns(changed)}


@pytest.mark.parametrize(
    ("table", "row", "column", "printed", "value"),
    [
        ("table6_neusight", "V100, inference", "survey", "5.88", 5.88),
        ("table6_neusight", "L4, inference", "survey", "14.09", 14.09),
        ("table7_astrasim", "ResNet-50 data parallel, 8 GPUs", "cycles", "3307887", 3307887.0),
        ("table8_vidur", "P99 E2E latency", "vllm", "0.321", 0.321),
        ("table9_totals", "supported", "astrasim", "8", 8.0),
        ("table10_cross_tool", "NeuSight", "coverage of 36", "9", 9.0),
        ("text_neusight", "configurations", "value", "147", 147.0),
        ("text_neusight", "DP4 APE", "value", "12.88", 12.88),
        ("timeloop_resnet50_conv1", "MACs", "value", "118013953", 118013953.0),
        ("timeloop_resnet50_conv1", "DRAM share", "value", "61.9", 61.9),
    ],
)
def test_an_invented_figure_is_not_reproduced(no_search, table, row, column, printed, value):
    tables = _with(datasets.tables("survey"), table, row, column, printed=printed, value=value)
    cell = replicate_survey(printed=tables).cell(table, row, column)
    assert cell.status == N, cell.describe()
    assert cell.recomputed is not None


@pytest.mark.parametrize(
    ("printed", "counted", "rule"), [(19, 7, "S / 36"), (31, 11, "(S + P) / 36")]
)
def test_other_ways_to_count_partial_support_are_tried(no_search, printed, counted, rule):
    """ASTRA-sim supports 7 scenarios in full and 4 in part: 25 % if these count half."""
    name, row = "table9_totals", "coverage, % weighted"
    given = {"printed": str(printed), "value": float(printed)}
    tables = _with(datasets.tables("survey"), name, row, "astrasim", **given)
    cell = replicate_survey(printed=tables).cell(name, row, "astrasim")
    assert (cell.status, cell.rule, cell.recomputed) == (A, rule, counted / 36)


def test_an_invented_range_is_not_reproduced(no_search):
    name, row = "error_by_level", "kernel, NeuSight"
    tables = _with(datasets.tables("survey"), name, row, "low", printed="4", value=4.0)
    found = replicate_survey(printed=tables)
    assert {found.cell(name, row, end).status for end in ("low", "high")} == {N}


def test_an_invented_verdict_contradicts_its_caption(no_search):
    name, row = "table6_neusight", "V100, inference"
    tables = _with(datasets.tables("survey"), name, row, "survey verdict", printed="Mismatch")
    cell = replicate_survey(printed=tables).cell(name, row, "survey verdict")
    assert (cell.status, round(cell.recomputed, 2)) == (N, 1.13)


@pytest.mark.slow
def test_figures_that_no_subset_gives_are_said_to_be_such():
    name, row = "text_neusight", "published by the NeuSight authors: Habitat, abstract"
    tables = _with(datasets.tables("survey"), name, row, "value", printed="99999.9", value=99999.9)
    cell = replicate_survey(printed=tables).cell(name, row, "value")
    assert cell.status == N
    assert "No single subset gives all three published figures." in cell.note


def test_pairs_without_a_group_are_named(no_search):
    pairs = datasets.load("neusight").where({"device": ["V100", "H100"]})
    with pytest.raises(InputError, match="no configuration with device A100-80G, mode training"):
        replicate_survey(pairs=pairs)


def test_a_dataset_without_a_figure_is_named(no_search):
    tables = datasets.tables("survey")
    runs = tables["runs"].filter(pl.col("tool") != "VIDUR")
    with pytest.raises(InputError, match="no requests .* for tool VIDUR,"):
        replicate_survey(printed={**tables, "runs": runs})
    totals = tables["table6_neusight"].filter(pl.col("column") != "claimed")
    with pytest.raises(InputError, match="no printed number in table table6_neusight,"):
        replicate_survey(printed={**tables, "table6_neusight": totals})


def test_result_is_plain_for_machines_and_readable_for_people(found):
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(document["rows"]) == len(found.cells)
    assert document["counts"]["all"] == found.counts()["all"]
    first = next(row for row in document["rows"] if row["table"] == "table6_neusight")
    assert (first["printed"], first["unit"], first["status"]) == ("5.2%", "fraction", D)
    text = found.cell("table4_accuracy", "NeuSight", "survey result").describe()
    assert "5.87–27.1% printed, 5.872 % to 27.099 % recomputed: reproduced" in text
    with pytest.raises(KeyError):
        found.cell("table6_neusight", "V100, inference", "nothing")
