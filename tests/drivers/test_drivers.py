"""The public entry: which tool, what is refused, and what the result turns into."""

from __future__ import annotations

import builtins
import json
import math

import numpy as np
import pytest

from errcomp.drivers import DriversResult, _table_of, error_drivers
from errcomp.errors import InputError, MissingExtraError
from errcomp.tables import Pairs


def table(seed=0, **more):
    rng = np.random.default_rng(seed)
    n = 48
    columns = {
        "device": [f"d{i // 8}" for i in range(n)],
        "model": [f"m{i // 4 % 2}" for i in range(n)],
        "variant": ["base", "fusion"] * 24,
        "batch": [4, 4, 8, 8] * 12,
        "predicted": np.exp(0.1 * rng.normal(size=n)),
        "measured": np.ones(n),
    }
    return {**columns, **more}


@pytest.mark.core
def test_the_subject_is_explained_unless_another_tool_is_named():
    tools = ["a", "b"] * 24
    data = table(tool=tools, variant=(["base"] * 2 + ["fusion"] * 2) * 12, batch=[4] * 48)
    pairs = Pairs(data, subject="b")
    assert (error_drivers(pairs).tool, error_drivers(pairs).n) == ("b", 24)
    assert error_drivers(pairs, tool="a").tool == "a"
    with pytest.raises(InputError, match=r"several tools \(a, b\).* Name one with tool="):
        error_drivers(Pairs(data))
    with pytest.raises(InputError, match="no row has tool=c"):
        error_drivers(pairs, tool="c")


@pytest.mark.core
def test_a_table_of_one_tool_needs_no_name_and_one_without_has_none():
    assert error_drivers(Pairs(table(tool=["a"] * 48))).tool == "a"
    assert error_drivers(Pairs(table())).tool is None
    with pytest.raises(InputError, match="no key 'tool'"):
        error_drivers(Pairs(table()), tool="a")


def test_a_table_without_factors_is_refused():
    with pytest.raises(InputError, match="no key of the table can be a factor"):
        error_drivers(
            Pairs({"predicted": [1.0, 2.0], "measured": [1.0, 1.0], "device": ["a", "b"]})
        )


def test_a_level_without_tested_coverage_is_refused():
    with pytest.raises(InputError, match=r"at least 0.917"):
        error_drivers(Pairs(table()), level=0.8)


@pytest.mark.core
def test_a_higher_level_gives_a_wider_interval():
    narrow, wide = (
        error_drivers(Pairs(table()), level=v).contrasts[0].effect for v in (0.95, 0.99)
    )
    assert wide.low < narrow.low < narrow.value == wide.value < narrow.high < wide.high
    assert (narrow.level, wide.level) == (0.95, 0.99)


@pytest.mark.core
def test_the_same_seed_gives_the_same_bytes():
    data = table(device=[f"d{i // 2}" for i in range(48)])
    one, two = (json.dumps(error_drivers(Pairs(data), seed=7).to_dict()) for _ in range(2))
    assert one == two


@pytest.mark.core
def test_dropped_rows_travel_with_the_result():
    data = table()
    data["measured"] = [0.0, *data["measured"][1:]]
    result = error_drivers(Pairs(data, zeros="exclude"))
    assert [(d.reason, d.n) for d in result.dropped] == [("measured is not positive", 1)]
    assert result.n == 47


@pytest.mark.core
def test_result_becomes_plain_values_for_json():
    result = error_drivers(Pairs(table()))
    assert isinstance(result, DriversResult)
    text = json.dumps(result.to_dict(), allow_nan=False)
    back = json.loads(text)
    assert back["factors"] == ["variant", "batch"]
    assert back["contrasts"][0]["effect"]["unit"] == "ratio"
    assert back["contrasts"][0]["matched_on"] == ["device", "model", "batch"]
    assert {s["verdict"] for s in back["statements"]} <= {
        "supported",
        "undecided",
        "contradicted",
        "not decidable",
    }


@pytest.mark.extras
def test_rows_are_flat_and_share_their_columns():
    pytest.importorskip("statsmodels")
    result = error_drivers(Pairs(table()))
    rows = result.rows()
    assert len({tuple(row) for row in rows}) == 1
    assert {row["kind"] for row in rows} == {
        "contrast",
        "regression, absolute",
        "regression, signed",
    }
    first = rows[0]
    assert (first["figure"], first["n"], first["clusters"]) == ("ape_ratio", 24, 6)
    assert first["low"] < first["value"] < first["high"]
    for row in rows:
        for value in row.values():
            assert value is None or isinstance(value, str | int) or math.isfinite(value)


@pytest.mark.core
def test_errors_near_zero_are_counted():
    data = table()
    data["predicted"] = [1.0, *data["predicted"][1:]]
    caveats = {c.code: c for c in error_drivers(Pairs(data)).caveats}
    assert caveats["errors-near-zero"].evidence["n"] == 1


@pytest.mark.core
def test_labels_with_many_values_can_be_asked_for():
    found = error_drivers(Pairs(table()), factors=["device"])
    assert len(found.contrasts) == 5
    assert {c.matched_on for c in found.contrasts} == {("model", "variant", "batch")}
    assert {c.cluster_key for c in found.contrasts} == {"model"}


def test_missing_statsmodels_names_the_extra_and_leaves_the_contrasts(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("statsmodels"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    from errcomp.drivers.regression import regress

    monkeypatch.setattr(builtins, "__import__", without)
    pairs = Pairs(table())
    with pytest.raises(MissingExtraError, match=r"pip install 'errcomp\[drivers\]'"):
        regress(_table_of(pairs, None, None), level=0.95)
    result = error_drivers(pairs)
    assert result.regressions == ()
    assert len(result.contrasts) == 2
    assert result.caveats[-1].code == "no-regression"
    assert "errcomp[drivers]" in result.caveats[-1].message


def test_a_subset_that_no_row_is_in_is_none():
    part = _table_of(Pairs(table()), None, None)
    assert part.where({"variant": "base", "batch": "4"}).pairs.n == 12
    assert part.where({"variant": "base", "batch": "16"}) is None


@pytest.mark.core
def test_a_mapping_will_do_and_one_factor_needs_no_list():
    found = error_drivers(table(), factors="variant")
    assert found.to_dict() == error_drivers(Pairs(table()), factors=["variant"]).to_dict()


def test_numbers_are_said_to_be_no_factors_unless_named():
    columns = {"predicted": [1.1, 1.2], "measured": [1.0, 1.0], "depth": [1, 2]}
    with pytest.raises(
        InputError, match="must not hold numbers, .* with numbers, name it in Python: .* depth"
    ):
        error_drivers(columns)


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed must not be negative, got -1"):
        error_drivers(table(), seed=-1)
