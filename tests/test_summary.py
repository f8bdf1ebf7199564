from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.documents import json_schema, load
from errcomp.errors import InputError
from errcomp.summary import summarize
from errcomp.tables import Pairs

RNG = np.random.default_rng(3)
MEASURED = RNG.lognormal(3.0, 1.0, 60)
DATA = {
    "predicted": MEASURED * np.exp(0.2 * RNG.standard_normal(60)),
    "measured": MEASURED,
    "device": ["A"] * 40 + ["B"] * 20,
    "model": [f"m{i % 10}" for i in range(60)],
}


def test_groups_pooled_and_macro_agree_with_numpy() -> None:
    summary = summarize(DATA, by=["device"], figures=["mape", "wape"])
    ape = np.abs(DATA["predicted"] / DATA["measured"] - 1)
    assert [(r.key["device"], r.n) for r in summary.rows] == [("A", 40), ("B", 20)]
    a, b = (row.figures["mape"].value for row in summary.rows)
    assert a == pytest.approx(ape[:40].mean())
    assert summary.pooled.figures["mape"].value == pytest.approx(ape.mean())
    assert summary.macro["mape"] == pytest.approx((a + b) / 2)


def test_without_keys_there_is_one_row_and_it_is_pooled() -> None:
    summary = summarize(Pairs(DATA), figures=["mape"])
    assert summary.rows == (summary.pooled,)
    assert summary.pooled.n == 60


@pytest.mark.parametrize("like", [dict, pl.LazyFrame], ids=["memory", "engine"])
def test_errors_of_several_tools_are_not_pooled(like: Any) -> None:
    table = {name: list(values) for name, values in DATA.items()}
    tools = ["x"] * 50 + ["y"] * 10
    summary = summarize(like({**table, "tool": tools}), figures=["mape"], level=None)
    assert (summary.pooled, summary.macro, summary.tool) == (None, None, None)
    assert [(row.key, row.n) for row in summary.rows] == [({"tool": "x"}, 50), ({"tool": "y"}, 10)]
    by = summarize(like({**table, "tool": tools}), by="device", figures=["mape"], level=None)
    assert by.by == ("tool", "device")
    assert by.pooled is None
    chosen = summarize(
        like({**table, "tool": tools}), by=("device", "tool"), figures=["mape"], level=None
    )
    assert (chosen.by, chosen.pooled, len(chosen.rows)) == (("device", "tool"), None, 3)
    one = summarize(like({**table, "tool": ["x"] * 60}), figures=["mape"], level=None)
    assert (one.by, one.tool, one.pooled.n) == ((), "x", 60)


@pytest.mark.extras
def test_every_row_is_flat_and_the_frame_is_of_the_users_kind() -> None:
    pandas = pytest.importorskip("pandas")
    summary = summarize(pandas.DataFrame(DATA), by=["device"], figures=["mape"])
    frame = summary.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["device", "n", "mape", "mape_low", "mape_high"]
    assert isinstance(summarize(DATA, by=["device"]).to_frame(), pl.DataFrame)


def test_an_undefined_figure_says_why_and_the_others_stay() -> None:
    data = {"predicted": [0.0, 1.0], "measured": [1.0, 1.0], "device": ["A", "B"]}
    summary = summarize(data, by=["device"], figures=["mape", "rmsle"])
    rmsle = summary.rows[0].figures["rmsle"]
    assert math.isnan(rmsle.value)
    assert "predicted must be positive" in rmsle.method
    assert summary.rows[0].figures["mape"].value == 1.0
    document = summary.to_dict()
    assert document["rows"][0]["rmsle"] is None
    assert document["macro"]["rmsle"] is None
    assert "predicted must be positive" in document["rows"][0]["rmsle_reason"]
    assert "rows counted among these pairs" in document["rows"][0]["rmsle_reason"]
    too_few = "no interval from 1 pair: at least 4 are needed"
    assert document["rows"][1]["rmsle_reason"] == too_few
    assert document["rows"][1]["mape_reason"] == too_few
    enough = summarize({k: v for k, v in DATA.items() if k in ("predicted", "measured")})
    assert not any(name.endswith("_reason") for name in enough.to_dict()["pooled"])


def test_a_figure_in_the_unit_of_the_data_says_it() -> None:
    assert summarize(Pairs(DATA, unit="us"), figures=["rmse"]).pooled.figures["rmse"].unit == "us"
    assert summarize(DATA, figures=["rmse"]).pooled.figures["rmse"].unit == "measured"


def test_clusters_widen_the_interval_when_their_members_agree() -> None:
    rng = np.random.default_rng(5)
    shared = np.repeat(np.exp(0.4 * rng.standard_normal(20)), 10)
    shared *= np.exp(0.01 * rng.standard_normal(200))
    data = {"predicted": shared, "measured": np.ones(200), "model": np.repeat(np.arange(20), 10)}
    alone = summarize(data, figures=["mape"], cluster="none").pooled.figures["mape"]
    clustered = summarize(data, figures=["mape"]).pooled.figures["mape"]
    assert alone.low is not None
    assert alone.high is not None
    assert clustered.low is not None
    assert clustered.high is not None
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)


def test_dropped_rows_are_reported() -> None:
    data = {"predicted": [1.0, 2.0], "measured": [1.0, 0.0]}
    summary = summarize(Pairs(data, zeros="exclude"), figures=["mape"])
    assert summary.to_dict()["dropped"] == [
        {"reason": "measured is not positive", "n": 1, "rows": [2]}
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"figures": ["mapes"]}, "mape"), ({"by": ["colour"]}, "no column 'colour'")],
)
def test_unknown_names_are_refused(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        summarize(DATA, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bogus"}, "no interval method 'bogus'. Methods: default"),
        (
            {"method": "wilson"},
            "method 'wilson' gives no interval for mape. Use one of: default, log",
        ),
        ({"method": "bca", "figures": "within_10"}, "gives no interval for within_10"),
        ({"level": 2}, "level must be between 0 and 1, got 2"),
        ({"level": math.nan}, "level must be between 0 and 1, got nan"),
        ({"level": "95"}, "level must be a number, got '95'"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ({"resamples": 3}, "resamples must be at least 39 .* 9999 is usual"),
        ({"level": 0.9999}, "resamples must be at least 19999 .* 19999 is usual"),
        ({"resamples": None}, "resamples must be a whole number, got None"),
    ],
)
def test_options_that_cannot_be_used_are_no_missing_figure(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        summarize(DATA, **{"figures": ["mape"], **options})


def test_a_method_for_some_of_the_figures_is_used_for_those() -> None:
    data = {name: DATA[name] for name in ("predicted", "measured")}
    figures = summarize(data, figures=["mape", "within_10"], method="wilson").pooled.figures
    assert figures["mape"].low is None
    assert "wilson does not apply to a mean" in figures["mape"].method
    assert figures["within_10"].method == "wilson"


@pytest.mark.parametrize("name", ["n", "mape", "mape_low", "mape_reason"])
def test_a_key_that_the_result_would_overwrite_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"cannot group by '{name}'.*Rename the column"):
        summarize({**DATA, name: ["x"] * 60}, by=[name], figures=["mape"])


def test_one_key_and_one_figure_may_be_given_as_they_are() -> None:
    summary = summarize(DATA, by="device", figures="mape")
    assert summary.by == ("device",)
    assert [row.key["device"] for row in summary.rows] == ["A", "B"]


def test_missing_clusters_say_so() -> None:
    data = {**DATA, "model": [None, *DATA["model"][1:]]}
    mape = summarize(data, figures="mape", cluster="model").pooled.figures["mape"]
    assert mape.low is None
    assert mape.method.startswith(
        "no interval: the key model is missing in row 1 of these pairs. Fill"
    )


def test_by_default_models_and_devices_that_cross_are_both_drawn() -> None:
    data = {**DATA, "device": [f"d{i // 15}" for i in range(60)]}
    mape = summarize(data, figures="mape").pooled.figures["mape"]
    assert mape.method == "log-t, 10 models x 4 devices"
    per_device = summarize(data, by="device", figures="mape").rows[0].figures["mape"]
    assert per_device.method == "log-t, 10 models"
    two = summarize(DATA, figures="mape").pooled.figures["mape"]
    assert two.low is None
    assert two.method.endswith("(for results about only these 2, use --cluster model)")
    assert summarize(DATA, figures="mape", cluster="model").pooled.figures["mape"].low is not None


def test_identifiers_of_many_digits_come_out_as_they_went_in() -> None:
    data = {"predicted": [1.0] * 3, "measured": [1.0] * 3, "id": [2**80 + 1, 2**80, 5]}
    ids = ["5", str(2**80), str(2**80 + 1)]
    assert summarize(data, by="id", figures="mape").to_frame()["id"].to_list() == ids


@pytest.mark.extras
@pytest.mark.parametrize("options", [{"cluster": "model"}, {"level": None}, {"by": ()}])
def test_processes_change_nothing(options: dict[str, Any]) -> None:
    pytest.importorskip("joblib")
    asked = {"by": ["device"], "resamples": 499, **options}
    figures = ["mape", "median_ape", "spearman"]
    found = [
        summarize(Pairs(DATA, unit="ms"), figures=figures, n_jobs=n_jobs, **asked)
        for n_jobs in (None, 2)
    ]
    assert found[0].to_dict() == found[1].to_dict()
    assert found[0].pooled.n == found[1].pooled.n == 60


def test_processes_are_for_rows_in_memory() -> None:
    with pytest.raises(InputError, match="n_jobs applies only to rows in memory, got n_jobs=2:"):
        summarize(pl.LazyFrame(DATA), n_jobs=2)


def test_rows_in_an_engine_say_why_they_have_no_interval() -> None:
    table = pl.DataFrame({**DATA, "device": ["A"] * 59 + ["B"]}).drop("model")
    inside, engine = (
        summarize(rows, by="device", figures=["mape"]).to_frame() for rows in (table, table.lazy())
    )
    assert engine["mape_low"].is_null().to_list() == [False, True]
    assert engine["mape_reason"].to_list() == inside["mape_reason"].to_list()
    assert engine["mape_reason"].is_null().to_list() == [True, False]


def test_rows_without_reasons_have_the_values_and_bounds_of_the_others() -> None:
    unit = {**DATA, "unit": ["ms"] * 60}
    figures = ["mape", "max_ape", "rmsle"]
    rows = summarize(pl.LazyFrame(unit), by=["device", "model"], figures=figures).rows
    bare = rows.bare()
    assert len(bare) == len(rows) == 20
    for one, other in zip(bare, rows, strict=True):
        assert (one.key, one.n, list(one.figures)) == (other.key, other.n, figures)
        for name in figures:
            a, b = one.figures[name], other.figures[name]
            assert (a.value, a.low, a.high, a.unit) == (b.value, b.low, b.high, b.unit)
    assert {row.figures["mape"].low is None for row in bare} == {True, False}
    by_device = summarize(pl.LazyFrame(unit), by="device").rows.bare()
    assert [row.figures["mape"].low is None for row in by_device] == [False, False]


def test_metrics_with_one_reason_are_named_in_their_order() -> None:
    few = {"predicted": [1.1, 2.1, 9.0, 8.0], "measured": [1.0, 2.0, 3.0, 4.0], "g": list("aabb")}
    for table in (few, pl.LazyFrame(few)):
        notes = summarize(table, by="g", figures=["wape", "mape", "gmape"]).view().tables[0].notes
        assert notes[2:] == [
            "MAPE, GMAPE: no interval: 4 pairs differ so much that a bound of the interval would "
            "be more than 12 times the metric",
            "WAPE, MAPE, GMAPE: no interval from 2 pairs: at least 4 are needed",
        ]


def test_documents_without_means_of_groups_come_back_and_other_means_are_refused() -> None:
    of_tools = summarize({**DATA, "tool": ["x"] * 30 + ["y"] * 30})
    assert of_tools.macro is None
    assert load(of_tools.to_dict()).to_dict() == of_tools.to_dict()
    document = summarize(DATA, by="device", figures=["mape", "mae"]).to_dict()
    del document["macro"]["mae"]
    with pytest.raises(InputError, match="the means of exactly the metrics in units"):
        load(document)


@pytest.mark.extras
def test_whole_summaries(seen: Any, stored: Any) -> None:
    pytest.importorskip("matplotlib")
    tools = {**DATA, "tool": ["x"] * 30 + ["y"] * 30}
    made = {
        "all pairs": summarize(DATA),
        "by device": summarize(Pairs(DATA, unit="ms"), by="device", level=0.9),
        "by two keys": summarize(DATA, by=["device", "model"], figures=["mape", "mae", "pearson"]),
        "without intervals": summarize(DATA, by="device", level=None),
        "two tools": summarize(tools, by="device", cluster="none"),
        "resampled": summarize(DATA, figures="mape", method="bca", resamples=999, seed=3),
        "in an engine": summarize(pl.DataFrame(DATA).lazy(), by="device"),
    }
    whole = {
        name: {"document": json.loads(found.to_json()), "rows": found.to_frame(), **seen(found)}
        for name, found in made.items()
    }
    stored("summary/summaries", whole)


def _grouped() -> dict[str, Any]:
    data = {"predicted": [11.0, 9.0, 21.0, 17.0], "measured": [10.0, 10.0, 20.0, 20.0]}
    return summarize(
        {**data, "device": list("AABB")}, by="device", figures=["mape", "rmsle", "max_ape"]
    ).to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"units": {"mape": "fraction", "strange": "fraction"}},
         "units has no figure 'strange'. Figures: mape, "),
        ({"units": {"mape": 1}}, "units.mape must be text, got 1"),
        ({"macro": {"mape": 0.1}}, "macro must be the means of exactly the metrics in units"),
        ({"by": ["device", "mode"]}, r"rows[0] has no key 'mode'"),
    ],
)  # fmt: skip
def test_a_summary_that_contradicts_itself_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"errcomp.metrics/1: {re.escape(message)}"):
        load({**_grouped(), **change})


def test_a_row_without_an_interval_keeps_its_reason() -> None:
    document = _grouped()
    again = load(document)
    assert again.to_dict() == document
    found = again.rows[1].figures["mape"]
    assert (found.value, found.low, found.level, found.n) == (pytest.approx(0.1), None, None, 2)
    assert found.method == "no interval from 2 pairs: at least 4 are needed"
    assert found.definition.startswith("Arithmetic mean over pairs of the absolute error")
    del document["rows"][1]["mape_reason"]
    assert load(document).rows[1].figures["mape"].method == "none"
    document["rows"][1]["mape"] = None
    with pytest.raises(InputError, match=r"rows\[1\] has no key 'mape_reason'"):
        load(document)
    schema = json_schema("metrics")
    assert schema["properties"]["units"] == {
        "type": "object",
        "additionalProperties": {"type": "string"},
    }
    row = schema["$defs"]["SummaryRow"]
    assert row["additionalProperties"] == {"type": ["string", "number", "boolean", "null"]}


def test_without_an_interval_an_undefined_figure_says_why() -> None:
    data = {"predicted": [0.0, 1.0], "measured": [1.0, 1.0]}
    figures = summarize(data, figures=["rmsle", "mape"], level=None).pooled.figures
    assert math.isnan(figures["rmsle"].value)
    reason = "not defined here (rows counted among these pairs): predicted must be positive"
    assert figures["rmsle"].method.startswith(reason)
    assert figures["rmsle"].n == 2
    assert figures["mape"].value == 0.5
    assert figures["mape"].method == "no interval was requested"
    times = Pairs({"predicted": [2.0, 3.0], "measured": [1.0, 1.0]}, unit="ms")
    rmse = summarize(times, figures=["rmse", "mape"], level=None).pooled.figures
    assert (rmse["rmse"].value, rmse["rmse"].unit) == (pytest.approx(2.5**0.5), "ms")
    assert rmse["mape"].unit == "fraction"


def test_copies_of_pairs_are_one_case_of_an_interval() -> None:
    """Twenty different pairs, each four times: the interval is that of the twenty."""
    rng = np.random.default_rng(7)
    predicted = np.exp(0.2 * rng.standard_normal(20))
    once = {"predicted": predicted, "measured": np.ones(20), "batch": np.arange(20)}
    often = {name: np.repeat(values, 4) for name, values in once.items()}
    one, other = (
        summarize(data, figures=["mape"]).pooled.figures["mape"] for data in (once, often)
    )
    assert one.low is not None
    assert other.low is not None
    assert other.value == pytest.approx(one.value)
    assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=0.05)


def test_rows_of_an_engine_can_be_sliced() -> None:
    table = pl.LazyFrame({**DATA, "rack": [i % 5 for i in range(60)]})
    rows = summarize(table, by="rack", figures=["mape"], level=None).rows
    assert len(rows) == 5
    assert [row.key["rack"] for row in rows[1:4]] == [1, 2, 3]
    assert [row.key["rack"] for row in rows[::-2]] == [4, 2, 0]
    assert rows[-1].key["rack"] == 4
    assert isinstance(rows[:2], tuple)


def test_a_method_that_needs_single_pairs_is_refused_in_an_engine() -> None:
    table = pl.LazyFrame(DATA)
    with pytest.raises(InputError) as raised:
        summarize(table, figures=["mape"], method="bca", cluster="none")
    text = str(raised.value)
    assert text.startswith("method 'bca' resamples single pairs, but these pairs stay in Polars. ")
    assert text.endswith(". Or name clusters, or load the table into memory first.")
    summarize(table, figures=["mape"], method="bca", cluster="model")


def test_what_a_summary_leaves_out_stands_below_its_table() -> None:
    summary = replace(summarize(DATA, figures=["mape"], level=None), not_used=1200)
    assert summary.view().tables[0].notes[-1] == "ignored: 1,200 pairs from other tools"
    (table,) = replace(summary, not_used=0).view().tables
    assert not any("ignored" in str(note) for note in table.notes)


@pytest.mark.extras
def test_the_axis_of_a_summary_names_the_unit() -> None:
    pytest.importorskip("matplotlib")
    given = Pairs(DATA, unit="ms")
    summary = summarize(given, by="device", figures=["mape", "rmse", "pearson"], level=None)
    assert summary.plot(figure="mape").get_xlabel() == "MAPE (%)"
    assert summary.plot(figure="rmse").get_xlabel() == "RMSE (ms)"
    assert summary.plot(figure="pearson").get_xlabel() == "Pearson correlation"
    assert summarize(DATA, figures="rmse", level=None).plot().get_xlabel() == (
        "RMSE (unit not stated)"
    )
    with pytest.raises(InputError, match="wape was not computed. Computed: mape, rmse, pearson"):
        summary.plot(figure="wape")
