from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.claims.search.keys import Configurations, Factor, choose_factors, listing_cost
from errcomp.errors import InputError


def table(**columns: list[Any]) -> Configurations:
    n = len(next(iter(columns.values())))
    ones = np.ones((1, n))
    return Configurations(("",), ones, ones, columns, {}, {})


def test_cost_grows_with_the_values_named_and_is_the_same_for_listing_and_leaving_out() -> None:
    costs = [listing_cost(k, 12) for k in range(1, 7)]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)
    assert [listing_cost(12 - k, 12) for k in range(1, 7)] == costs
    assert listing_cost(12, 12) == 0
    assert listing_cost(1, 2) < listing_cost(1, 12)


def test_constant_and_repeated_columns_are_not_searched() -> None:
    factors, unused = choose_factors(
        table(
            device_name=["long a", "long b", "long b"],
            device=["a", "b", "b"],
            level=["model", "model", "model"],
        ),
        None,
        None,
    )
    assert [f.name for f in factors] == ["device"]
    assert unused == {"device_name": "same information as device", "level": "always model"}


def test_functions_of_a_key_are_folded_into_it() -> None:
    factors, _ = choose_factors(
        table(
            device=["V100", "H100", "MI100", "MI210"] * 2,
            vendor=["NVIDIA", "NVIDIA", "AMD", "AMD"] * 2,
            mode=["inference"] * 4 + ["training"] * 4,
        ),
        None,
        None,
    )
    assert [(f.name, [d.name for d in f.derived]) for f in factors] == [
        ("device", ["vendor"]),
        ("mode", []),
    ]
    device = factors[0]
    assert device.values == ["H100", "MI100", "MI210", "V100"]
    namings = device.namings()
    assert len(namings) == 15
    assert namings[0b0110].where == (("vendor", ("AMD",)),)
    assert namings[0b0110].cost == listing_cost(1, 2)
    # A single device is named directly, although its vendor could be named too.
    assert namings[0b0010].where == (("device", ("MI100",)),)


def test_a_function_with_many_values_is_named_one_value_at_a_time() -> None:
    device = [f"d{i:02}" for i in range(10)]
    factors, _ = choose_factors(
        table(device=device, family=[f"f{min(i, 8)}" for i in range(10)]), None, None
    )
    (factor,) = factors
    assert [d.name for d in factor.derived] == ["family"]
    namings = factor.namings()
    assert namings[0b11_0000_0000].where == (("family", ("f8",)),)
    assert {key for naming in namings.values() for key, _ in naming.where} == {"device", "family"}


def test_a_derived_key_and_values_left_out_of_it() -> None:
    device = [f"a{i}" for i in range(6)] + [f"n{i}" for i in range(6)]
    (factor,), _ = choose_factors(table(device=device, vendor=["A"] * 6 + ["N"] * 6), None, None)
    # All of vendor N but n0: vendor N, and any device other than n0.
    naming = factor.namings()[0b1111_1000_0000]
    assert [key for key, _ in naming.where] == ["vendor", "device"]
    assert naming.where[0] == ("vendor", ("N",))
    assert set(device) - set(naming.where[1][1]) == {"n0"}
    assert naming.cost == listing_cost(1, 2) + listing_cost(11, 12)


def test_keys_with_very_many_values_stay_apart() -> None:
    n = 20
    factors, _ = choose_factors(
        table(case=[f"c{i}" for i in range(n)], mode=["a", "b"] * (n // 2)), None, None
    )
    assert [(f.name, f.complete) for f in factors] == [("case", False), ("mode", True)]


def test_bound_on_the_values_in_a_union() -> None:
    columns = {"device": ["a", "b", "c", "d", "e", "f"]}
    (free,), _ = choose_factors(table(**columns), None, None)
    (bound,), _ = choose_factors(table(**columns), None, 1)
    assert (free.count(), free.complete) == (63, True)
    assert (bound.count(), bound.complete) == (13, False)
    assert len(free.namings()) == 63
    assert len(bound.namings()) == 13


def test_the_bound_holds_for_derived_keys_too() -> None:
    columns = {"device": list("abcdefgh"), "family": [i // 2 for i in range(8)]}
    for bound, most in ((1, 1), (None, 2)):
        (factor,), _ = choose_factors(table(**columns), None, bound)
        named = [len(v) for n in factor.namings().values() for k, v in n.where if k == "family"]
        assert max(min(n, 4 - n) for n in named) == most


def test_count_is_the_number_of_namings() -> None:
    for v, k in ((1, 0), (2, 1), (5, 1), (5, 2), (9, 3), (9, 0)):
        factor = Factor("x", list(range(v)), np.arange(v), k)
        assert factor.count() == len(factor.namings())


def test_missing_values_are_a_value() -> None:
    (factor,), _ = choose_factors(table(variant=[None, "fused", None, 2]), None, None)
    assert factor.values == [2, "fused", None]


def test_keys_are_chosen_and_unknown_ones_refused() -> None:
    data = table(device=["a", "b"], operators=[1, 2])
    data.ignored["operators"] = "a quantity"
    factors, unused = choose_factors(data, None, None)
    assert ([f.name for f in factors], unused) == (["device"], {"operators": "a quantity"})
    factors, unused = choose_factors(data, ["operators"], None)
    assert ([f.name for f in factors], unused) == (["operators"], {})
    with pytest.raises(InputError, match="no key 'gpu' to search. Keys of the table: device"):
        choose_factors(data, ["gpu"], None)
    with pytest.raises(InputError, match="max_values must be at least 1, got 0"):
        choose_factors(data, None, 0)
