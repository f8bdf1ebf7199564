from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

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


def test_a_figure_in_the_unit_of_the_data_says_it() -> None:
    assert summarize(Pairs(DATA, unit="us"), figures=["rmse"]).pooled.figures["rmse"].unit == "us"
    assert summarize(DATA, figures=["rmse"]).pooled.figures["rmse"].unit == "measured"


def test_clusters_widen_the_interval_when_their_members_agree() -> None:
    rng = np.random.default_rng(5)
    shared = np.repeat(np.exp(0.4 * rng.standard_normal(20)), 10)
    data = {"predicted": shared, "measured": np.ones(200), "model": np.repeat(np.arange(20), 10)}
    alone = summarize(data, figures=["mape"]).pooled.figures["mape"]
    clustered = summarize(data, figures=["mape"], cluster="model").pooled.figures["mape"]
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
