"""Corrections of predicted kernels: levels, robustness, typical times, totals and files.

Coverage and recovery are simulated in tests/statistical.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from errcomp.calibration.kernels import KERNEL_LEVELS, KernelCorrection
from errcomp.calibration.kernels.pooling import CONSISTENCY, Pooled, _minimise
from errcomp.errors import InputError
from errcomp.tables import Kernels

FACTORS = {("BMM", "H100"): 1.2, ("BMM", "L4"): 1.1, ("VEC", "H100"): 0.8, ("VEC", "L4"): 0.7}


def made(seed: int = 0, each: int = 6, runs: int = 2, **changes: Any) -> dict[str, list[Any]]:
    """Kernels of known factors, with 5 % noise."""
    rng = np.random.default_rng(seed)
    data: dict[str, list[Any]] = {
        name: []
        for name in ("run", "kernel", "kernel_class", "device", "count", "predicted", "measured")
    }
    for (kind, device), factor in FACTORS.items():
        for run in range(runs):
            for i in range(each):
                predicted = float(np.exp(rng.normal()))
                row = (f"{device}/{run}", f"{kind}{run}{i}", kind, device, 1 + i, predicted)
                row = (*row, predicted * factor * float(np.exp(0.05 * rng.normal())))
                for name, value in zip(data, row, strict=True):
                    data[name].append(value)
    return {**data, **changes}


def asked(**changes: Any) -> Kernels:
    data: dict[str, Any] = {
        "run": ["n"],
        "kernel": ["new"],
        "kernel_class": ["BMM"],
        "device": ["H100"],
        "predicted": [2.0],
    }
    return Kernels({**data, **{k: v if isinstance(v, list) else [v] for k, v in changes.items()}})


@pytest.fixture(scope="module")
def fitted() -> KernelCorrection:
    return KernelCorrection().fit(Kernels(made(), unit="ms"))


def test_the_constant_makes_a_t_of_normal_data_their_standard_deviation() -> None:
    s = 1 / CONSISTENCY
    mean = integrate.quad(lambda x: 5 * x**2 / (4 * s**2 + x**2) * stats.norm.pdf(x), -9, 9)[0]
    assert mean == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(("kind", "device"), FACTORS)
def test_a_class_on_a_device_is_corrected_by_its_factor(
    fitted: KernelCorrection, kind: str, device: str
) -> None:
    found = fitted.apply(asked(kernel_class=kind, device=device))
    assert found.level.tolist() == ["class"]
    assert found.factor[0] == pytest.approx(FACTORS[kind, device], rel=0.04)
    assert found.predicted[0] == pytest.approx(2 * found.factor[0])
    assert 0.03 < found.spread[0] < 0.09
    assert not found.added[0]


def test_levels_say_what_is_known_and_spreads_grow(fitted: KernelCorrection) -> None:
    predicted = made()["predicted"][0]
    found = fitted.apply(
        asked(
            run=["n"] * 5,
            kernel=["BMM00", "x", "x", "x", "x"],
            kernel_class=["BMM", "BMM", "CONV", "BMM", "CONV"],
            device=["H100", "H100", "H100", "B200", "B200"],
            predicted=[predicted] + [2.0] * 4,
        )
    )
    assert found.level.tolist() == ["exact", "class", "device", "global", "global"]
    assert set(found.level) | {"none"} == set(KERNEL_LEVELS)
    exact, here, unknown_class, unknown_device, nothing = found.spread
    assert exact < here < unknown_class <= nothing
    assert here < unknown_device < nothing
    assert (found.shared <= found.spread).all()
    # A class of another device is better than none.
    assert found.factor[3] == pytest.approx(1.15, rel=0.1)
    assert found.factor[4] == pytest.approx(1.0, abs=0.2)


def test_less_measured_is_a_wider_band() -> None:
    spreads = []
    for each, runs in ((1, 1), (2, 2), (10, 4)):
        correction = KernelCorrection().fit(Kernels(made(each=each, runs=runs)))
        spreads.append(correction.apply(asked()).spread[0])
    assert spreads[0] > 1.3 * spreads[1]
    assert spreads[0] > 1.3 * spreads[2] > 0.06


def test_the_spread_grows_with_every_level_for_every_class(fitted: KernelCorrection) -> None:
    pooled = fitted._parts["ratio"].pooled
    kind, device = (x.ravel() for x in np.meshgrid([0, 1], [0, 1]))
    none, zero = np.full(4, -1), np.zeros(4)
    here = pooled.predict(kind, device, none, zero)
    elsewhere = pooled.predict(kind, none, none, zero)
    unknown = pooled.predict(none, none, none, zero)
    assert (here.base < elsewhere.base).all()
    assert (elsewhere.base < unknown.base).all()
    assert here.here.all()
    assert not elsewhere.here.any()


def test_one_absurd_kernel_does_not_move_its_class() -> None:
    clean, dirty = made(each=3), made(each=3)
    dirty["measured"] = [dirty["measured"][0] * 5, *dirty["measured"][1:]]
    before, after = (
        KernelCorrection().fit(Kernels(d)).apply(asked(kernel="other")) for d in (clean, dirty)
    )
    assert after.factor[0] == pytest.approx(before.factor[0], rel=0.02)
    assert after.spread[0] < 2 * before.spread[0]


def test_one_kernel_alone_borrows_from_its_class_and_device() -> None:
    data = made()
    for name, value in zip(data, ("z", "z", "BMM", "T4", 1, 1.0, 5.0), strict=True):
        data[name] = [*data[name], value]
    alone = KernelCorrection().fit(Kernels(data)).apply(asked(device="T4"))
    assert alone.level[0] == "class"
    # Believed neither fully (5) nor not at all (1.15).
    assert 1.0 < alone.factor[0] < 3.0
    known = KernelCorrection().fit(Kernels(data)).apply(asked())
    assert alone.spread[0] > 1.1 * known.spread[0]


def test_a_kernel_that_was_measured_is_corrected_by_its_own_error() -> None:
    data = made(each=10)
    factors = (1.5, 1.52, 1.48)
    for factor in factors:
        values = ("H100/0", "odd", "BMM", "H100", 1, 3.0, 3.0 * factor)
        for name, value in zip(data, values, strict=True):
            data[name] = [*data[name], value]
    correction = KernelCorrection().fit(Kernels(data))
    found = correction.apply(
        asked(
            run=["n"] * 3,
            kernel=["odd", "odd", "new"],
            kernel_class=["BMM"] * 3,
            device=["H100", "L4", "H100"],
            predicted=[3.0, 3.0, 3.0],
        )
    )
    assert found.level.tolist() == ["exact", "class", "class"]
    assert 1.3 < found.factor[0] < 1.52
    assert found.factor[1] < 1.3 > found.factor[2]


def test_what_recurs_is_counted_against_the_spread_within_a_run() -> None:
    data = made(each=10)
    rng = np.random.default_rng(5)
    for kind, spread in (("BMM", 0.08), ("VEC", 0.15)):
        for i, error in enumerate(spread * rng.normal(size=6)):
            for run in range(3):
                factor = float(np.exp(error + 0.1 * rng.normal()))
                values = (f"H100/{run}", f"odd {i}", kind, "H100", 1, 3.0, 3.0 * factor)
                for name, value in zip(data, values, strict=True):
                    data[name] = [*data[name], value]
    table = Kernels(data)
    part = KernelCorrection().fit(table)._parts["ratio"]
    kind = np.searchsorted(part.kind, table.kernel_class.astype(str))
    device = np.searchsorted(part.device, table.device.astype(str))
    size = np.log(table.predicted)
    mean = part.pooled.predict(kind, device, np.zeros_like(kind), size).mean
    # The error of the run is ρ² of the variance of the class, τ² is that of the class on a device.
    _, run_ratio, of_cell, _ = part.pooled.ratios
    assert abs(run_ratio - of_cell) > 0.1
    spread = np.sqrt(part.pooled.own + part.pooled.scale * run_ratio)[kind]
    z = (np.log(table.measured / table.predicted) - mean) / spread
    odd = {(k, name): [] for k, name in zip(kind, table.kernel, strict=True) if "odd" in name}
    for k, name, value in zip(kind, table.kernel, z, strict=True):
        if (k, name) in odd:
            odd[k, name].append(value)
    left = sum(((np.array(values) - np.mean(values)) ** 2).sum() for values in odd.values())
    # 24 repetitions, and the prior of 4 kernels of which half the variance is their own.
    assert part.repeated == pytest.approx(1 - (left + 2) / (24 + 4))
    assert 0.1 < part.repeated < 0.9


def test_shapes_tell_kernels_apart_and_names_made_of_rows_do_not() -> None:
    shapes = [str(i) for i in range(len(made()["run"]))]
    correction = KernelCorrection().fit(Kernels(made(shape=shapes)))
    first = {"kernel": "BMM00", "predicted": 9.0}
    assert correction.apply(asked(**first, shape="0")).level.tolist() == ["exact"]
    assert correction.apply(asked(**first, shape="1")).level.tolist() == ["class"]
    assert correction.apply(asked(**first)).level.tolist() == ["class"]
    nameless = made()
    del nameless["kernel"]
    correction = KernelCorrection().fit(Kernels(nameless))
    again = Kernels({k: v[:1] for k, v in nameless.items()})
    assert again.kernel[0] == "BMM/1"
    assert correction.apply(again).level.tolist() == ["class"]


def test_modes_are_classes_of_their_own() -> None:
    data = made()
    training = {**data, "run": [f"t{r}" for r in data["run"]]}
    training["measured"] = [2 * m for m in data["measured"]]
    n = len(data["run"])
    both = {name: [*data[name], *training[name]] for name in data}
    both["mode"] = ["inference"] * n + ["training"] * n
    correction = KernelCorrection().fit(Kernels(both))
    found = correction.apply(
        asked(
            run=["n"] * 3,
            kernel=["new"] * 3,
            kernel_class=["BMM"] * 3,
            device=["H100"] * 3,
            predicted=[1.0] * 3,
            mode=["inference", "training", None],
        )
    )
    assert found.level.tolist() == ["class", "class", "device"]
    assert found.factor[1] / found.factor[0] == pytest.approx(2, rel=0.05)


def test_phases_are_classes_of_their_own() -> None:
    data = made()
    n = len(data["run"])
    both = {name: [*values, *values] for name, values in data.items()}
    both["phase"] = ["forward"] * n + ["backward"] * n
    both["measured"][n:] = [1.5 * measured for measured in data["measured"]]
    new = asked(
        run=["n"] * 3,
        kernel=["new"] * 3,
        kernel_class=["BMM"] * 3,
        device=["H100"] * 3,
        predicted=[1.0] * 3,
        phase=["forward", "backward", None],
    )
    corrected = KernelCorrection().fit(Kernels(both)).apply(new)
    assert corrected.level.tolist() == ["class", "class", "device"]
    assert corrected.factor[1] / corrected.factor[0] == pytest.approx(1.5, rel=0.05)


def test_a_phase_that_the_fitted_table_lacked_is_left_out(fitted: KernelCorrection) -> None:
    plain = asked()
    of_phases = asked(phase="forward")
    expected, corrected = fitted.apply(plain), fitted.apply(of_phases)
    assert corrected.level.tolist() == expected.level.tolist()
    assert corrected.factor.tolist() == expected.factor.tolist()


@pytest.mark.parametrize("slope", [0.02, 0.0, -0.02])
def test_factors_follow_the_size_where_they_do_within_runs(slope: float) -> None:
    rng = np.random.default_rng(0)
    sizes = np.linspace(-4.0, 6.0, 12)
    rows = [(f"r{run}", f"k{run}{i}", size) for run in range(4) for i, size in enumerate(sizes)]
    predicted = np.exp([size for *_, size in rows])
    noise = 0.001 * rng.normal(size=len(rows))
    correction = KernelCorrection().fit(
        Kernels(
            {
                "run": [run for run, *_ in rows],
                "kernel": [kernel for _, kernel, _ in rows],
                "kernel_class": ["BMM"] * len(rows),
                "device": ["H100"] * len(rows),
                "predicted": predicted,
                "measured": 1.2 * predicted * np.exp(slope * (np.log(predicted) - 1) + noise),
            }
        )
    )
    ends = [-4.0, 1.0, 6.0]
    found = correction.apply(
        asked(run=["n"] * 3, kernel=["x"] * 3, kernel_class=["BMM"] * 3, device=["H100"] * 3,
              predicted=np.exp(ends).tolist())
    )  # fmt: skip
    expected = 1.2 * np.exp(slope * (np.asarray(ends) - 1))
    assert found.factor == pytest.approx(expected, rel=0.005)
    # What the slope explains is no spread.
    assert (found.spread < 0.02).all()


def test_devices_borrow_from_their_family() -> None:
    factors = {"A1": 1.5, "A2": 1.45, "A3": 1.55, "B1": 0.7, "B2": 0.72, "B3": 0.68}
    data: dict[str, list[Any]] = {
        name: []
        for name in ("run", "kernel", "kernel_class", "device", "vendor", "predicted", "measured")
    }
    rng = np.random.default_rng(0)
    for device, factor in factors.items():
        for i, kind in enumerate(["BMM", "VEC", "NORM"] * 4):
            p = float(np.exp(rng.normal()))
            row = (device, f"{device}{i}", kind, device, device[0], p)
            row = (*row, p * factor * float(np.exp(0.05 * rng.normal())))
            for name, value in zip(data, row, strict=True):
                data[name].append(value)
    new = asked(
        run=["n"] * 3,
        kernel=["x"] * 3,
        kernel_class=["BMM"] * 3,
        device=["A9", "B9", "C9"],
        vendor=["A", "B", None],
        predicted=[1.0] * 3,
    )
    plain = KernelCorrection().fit(Kernels(data)).apply(new)
    assert np.ptp(plain.factor) == 0
    correction = KernelCorrection(family="vendor").fit(Kernels(data))
    found = correction.apply(new)
    assert set(found.level) == {"global"}
    assert found.factor[0] > 1.25 > 0.85 > found.factor[1]
    assert found.spread[0] < found.spread[2]
    # A device of the fit is in its family, whatever the new table says.
    known = correction.apply(asked(device="A1", kernel_class="CONV", predicted=1.0))
    assert known.level.tolist() == ["device"]
    assert known.factor[0] > 1.2
    with pytest.raises(
        InputError, match=r"no column 'maker'\. The parameter 'family' must name the column that"
    ):
        KernelCorrection(family="maker").fit(Kernels(data))
    data["vendor"][0] = "B"
    with pytest.raises(InputError, match="vendor must be the same .* got A and B for device 'A1'"):
        KernelCorrection(family="vendor").fit(Kernels(data))


def test_a_class_that_a_family_predicts_alike_has_a_narrow_band_on_its_next_device() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for device in ("A1", "A2", "A3", "B1", "B2", "B3"):
        for i, kind in enumerate(["BMM", "VEC"] * 12):
            shift = 0.4 if (device[0], kind) == ("A", "BMM") else 0.0
            p = float(np.exp(rng.normal()))
            m = p * float(np.exp(shift + 0.05 * rng.normal()))
            rows.append((f"{device}{i}", f"k{i}", kind, device, device[0], p, m))
    names = ("run", "kernel", "kernel_class", "device", "vendor", "predicted", "measured")
    data = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    found = (
        KernelCorrection(family="vendor")
        .fit(Kernels(data))
        .apply(
            asked(
                run=["n"] * 4,
                kernel=["x"] * 4,
                kernel_class=["BMM", "VEC", "BMM", "BMM"],
                device=["A9", "A9", "B9", "C9"],
                vendor=["A", "A", "B", None],
                predicted=[1.0] * 4,
            )
        )
    )
    assert found.factor[:3] == pytest.approx([np.exp(0.4), 1.0, 1.0], rel=0.03)
    assert (found.spread[:3] < 0.75 * found.spread[3]).all()


def small_kernels() -> dict[str, list[Any]]:
    """Kernels as `made`, and some that only rearrange memory: 6 µs on one device, 12 on another."""
    data = made()
    rng = np.random.default_rng(1)
    for device, floor in (("H100", 0.006), ("L4", 0.012)):
        for i in range(8):
            p = 0.0 if i % 2 else 1e-9
            m = floor * float(np.exp(0.05 * rng.normal()))
            row = (f"{device}/0", f"view{i}", "VIEW", device, 100, p, m)
            for name, value in zip(data, row, strict=True):
                data[name].append(value)
    return data


def test_what_was_predicted_as_0_gets_a_typical_time() -> None:
    correction = KernelCorrection().fit(Kernels(small_kernels(), unit="ms"))
    found = correction.apply(
        asked(
            run=["n"] * 5,
            kernel=["a", "b", "c", "d", "e"],
            kernel_class=["VIEW", "VIEW", "BMM", "VIEW", "VIEW"],
            device=["H100", "L4", "H100", "B200", "H100"],
            predicted=[0.0, 1e-9, 0.0, 0.0, 1.0],
        )
    )
    assert found.added.tolist() == [True] * 4 + [False]
    assert found.level.tolist() == ["class", "class", "device", "global", "device"]
    assert found.predicted[[0, 1, 3]] == pytest.approx([0.006, 0.012, 0.0085], rel=0.1)
    assert 0.006 < found.predicted[2] < 0.0085
    assert np.isnan(found.factor).tolist() == [True] * 4 + [False]
    assert found.spread[0] < min(found.spread[2:4])
    assert max(found.spread[2:4]) < 1
    assert found.uncorrected.tolist() == [0]


def test_small_kernels_are_not_taken_for_zeros_where_none_were_seen(
    fitted: KernelCorrection,
) -> None:
    found = fitted.apply(asked(predicted=1e-6))
    assert (found.level[0], found.added[0]) == ("class", False)
    assert found.predicted[0] == pytest.approx(1.2e-6, rel=0.1)


def test_small_kernels_that_were_predicted_well_are_no_zeros() -> None:
    data = made()
    for name, value in zip(data, ("z", "z", "BMM", "H100", 1, 1e-4, 1.2e-4), strict=True):
        data[name] = [*data[name], value]
    found = KernelCorrection().fit(Kernels(data)).apply(asked(predicted=1e-5))
    assert (found.level[0], found.added[0]) == ("class", False)


def test_what_nothing_is_known_of_stays_and_says_so(fitted: KernelCorrection) -> None:
    found = fitted.apply(
        asked(run=["n", "n"], kernel=["a", "b"], kernel_class=["BMM"] * 2, device=["H100"] * 2,
              predicted=[0.0, 1.0], count=[7, 1])
    )  # fmt: skip
    assert found.level.tolist() == ["none", "class"]
    assert (found.predicted[0], found.factor[0], found.added[0]) == (0.0, 1.0, False)
    assert np.isinf(found.spread[0])
    assert found.uncorrected.tolist() == [7]
    assert np.isfinite(found.total_spread).all()
    assert found.band()[0].tolist() == [0.0, 0.0]
    only_zeros = small_kernels()
    rows = [i for i, kind in enumerate(only_zeros["kernel_class"]) if kind == "VIEW"]
    zeros = {name: [values[i] for i in rows] for name, values in only_zeros.items()}
    found = KernelCorrection().fit(Kernels(zeros)).apply(asked())
    assert (found.level[0], found.predicted[0], found.factor[0]) == ("none", 2.0, 1.0)
    assert np.isinf(found.total_spread[0])
    assert found.band()[0].tolist() == [0.0, np.inf]


def test_totals_shares_and_their_spread(fitted: KernelCorrection) -> None:
    data = {
        "run": ["a", "b", "a", "a"],
        "kernel": ["x", "x", "y", "z"],
        "kernel_class": ["BMM", "BMM", "BMM", "VEC"],
        "device": ["H100"] * 3 + ["B200"],
        "count": [2, 1, 3, 1],
        "predicted": [1.0, 2.0, 1.5, 4.0],
    }
    found = fitted.apply(Kernels(data, unit="ms"))
    time = np.asarray(data["count"]) * found.predicted
    assert found.run.tolist() == ["a", "b"]
    assert found.total == pytest.approx([time[[0, 2, 3]].sum(), time[1]])
    assert found.share.sum(axis=1) == pytest.approx([1, 1])
    assert found.share[0] == pytest.approx([0, 1 - time[3] / found.total[0], 0,
                                            time[3] / found.total[0], 0])  # fmt: skip
    assert found.total_spread[1] == pytest.approx(found.spread[1])
    w, own = time / found.total[0], np.sqrt(found.spread**2 - found.shared**2)
    same = (w[0] * found.shared[0] + w[2] * found.shared[2]) ** 2 + (w[3] * found.shared[3]) ** 2
    by_hand = np.sqrt(same + ((w * own)[[0, 2, 3]] ** 2).sum())
    assert found.total_spread[0] == pytest.approx(by_hand)
    low, high = found.band(0.5).T
    assert np.log(high / found.predicted) == pytest.approx(0.67449 * found.spread, rel=1e-4)
    assert low * high == pytest.approx(found.predicted**2)


def test_a_run_with_a_failed_kernel_has_no_total(fitted: KernelCorrection) -> None:
    found = fitted.apply(
        asked(run=["a", "a", "b"], kernel=["k", "l", "k"], kernel_class=["BMM"] * 3,
              device=["H100"] * 3, predicted=[1.0, None, 1.0], status=["", "oom", ""])
    )  # fmt: skip
    assert np.isnan(found.total).tolist() == [True, False]
    assert np.isnan(found.total_spread).tolist() == [True, False]


def test_a_run_of_zeros_has_a_total_of_0(fitted: KernelCorrection) -> None:
    found = fitted.apply(asked(predicted=0.0))
    assert (found.total[0], found.total_spread[0]) == (0.0, 0.0)
    assert found.share[0].tolist() == [0.0] * 5
    assert found.uncorrected.tolist() == [1]


def test_units_do_not_matter() -> None:
    data = small_kernels()
    scaled = {
        **data,
        "predicted": [1000 * p for p in data["predicted"]],
        "measured": [1000 * m for m in data["measured"]],
    }
    new = {"run": ["n"] * 3, "kernel": ["x"] * 3, "kernel_class": ["BMM", "VIEW", "CONV"],
           "device": ["H100", "L4", "B200"]}  # fmt: skip
    ms = KernelCorrection().fit(Kernels(data)).apply(Kernels({**new, "predicted": [1.0, 0, 2.0]}))
    us = KernelCorrection().fit(Kernels(scaled))
    found = us.apply(Kernels({**new, "predicted": [1000.0, 0, 2000.0]}))
    np.testing.assert_allclose(found.predicted, 1000 * ms.predicted, rtol=1e-3)
    np.testing.assert_allclose(found.spread, ms.spread, rtol=1e-3)


def test_the_order_of_rows_does_not_matter() -> None:
    data = small_kernels()
    order = np.random.default_rng(0).permutation(len(data["run"]))
    mixed = {name: [values[i] for i in order] for name, values in data.items()}
    a, b = (KernelCorrection().fit(Kernels(d)).apply(asked()) for d in (data, mixed))
    assert a.predicted == pytest.approx(b.predicted, rel=1e-4)
    assert a.spread == pytest.approx(b.spread, rel=1e-3)


def test_what_is_not_used_is_counted() -> None:
    data = made()
    n = len(data["run"])
    data["measured"][0], data["measured"][1] = None, 0.0
    data["device"][2] = None
    correction = KernelCorrection().fit(Kernels(data))
    assert correction.n_ == n - 3
    assert [(d.reason, d.n, d.rows) for d in correction.dropped_] == [
        ("not measured", 1, (1,)),
        ("measured as 0", 1, (2,)),
        ("without a device", 1, (3,)),
    ]
    assert correction.apply(asked(device=None)).level.tolist() == ["global"]
    # Without any device all of it is one.
    del data["device"]
    bare = Kernels(data)
    new = Kernels({"kernel": ["x"], "kernel_class": ["BMM"], "predicted": [1.0]})
    assert KernelCorrection().fit(bare).apply(new).level.tolist() == ["class"]


def test_one_kernel_is_enough_and_says_how_little_it_is() -> None:
    one = Kernels({k: v[:1] for k, v in made().items()})
    found = KernelCorrection().fit(one).apply(asked())
    assert found.level.tolist() == ["class"]
    assert 0.1 < found.spread[0] < 2
    perfect = Kernels({**made(), "measured": made()["predicted"]})
    found = KernelCorrection().fit(perfect).apply(asked())
    assert found.factor[0] == pytest.approx(1, abs=1e-3)
    assert 0 < found.spread[0] < 0.05


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({k: v for k, v in made().items() if k != "predicted"}, "no kernel has a predicted time"),
        ({k: v for k, v in made().items() if k != "measured"}, "k.csv: no kernel has a measured"),
        (made(measured=[0.0] * 48), r"no kernel to learn from \(48 measured as 0\)"),
        (made(tool=["a", "b"] * 24), r"kernels come from several tools \(a, b\), which have diff"),
    ],
)
def test_bad_kernels_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        KernelCorrection().fit(Kernels(data, source="k.csv"))


def test_bad_requests_are_refused(fitted: KernelCorrection) -> None:
    with pytest.raises(InputError, match=r"not fitted. Call fit\(kernels\) first"):
        KernelCorrection().apply(asked())
    with pytest.raises(InputError, match="not fitted"):
        KernelCorrection().to_arrays()
    with pytest.raises(InputError, match="the kernels are in 'us', but the corrections .* in 'ms'"):
        fitted.apply(asked(unit="us"))
    with pytest.raises(InputError, match="kernels without a predicted time cannot be corrected"):
        fitted.apply(Kernels({"kernel": ["k"], "measured": [1.0]}))
    with pytest.raises(InputError, match="kernels come from several tools"):
        fitted.apply(Kernels({**made(), "tool": ["a", "b"] * 24}))


def stored(correction: KernelCorrection, tmp_path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    meta, arrays = correction.to_arrays()
    np.savez(tmp_path / "a.npz", allow_pickle=False, **arrays)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        return json.loads(json.dumps(meta)), dict(file)


def test_a_file_gives_the_same_corrections(tmp_path: Any) -> None:
    data = small_kernels()
    data["measured"][0] = None
    correction = KernelCorrection().fit(Kernels(data, unit="ms"))
    again = KernelCorrection.from_arrays(*stored(correction, tmp_path))
    new = Kernels(small_kernels(), unit="ms")
    a, b = correction.apply(new), again.apply(new)
    for field in fields(a):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))
    assert (again.unit_, again.n_, again.dropped_) == ("ms", correction.n_, correction.dropped_)
    assert again.family is None


def test_the_same_kernels_give_the_same_arrays(fitted: KernelCorrection) -> None:
    _, first = fitted.to_arrays()
    _, second = KernelCorrection().fit(Kernels(made(), unit="ms")).to_arrays()
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])
        assert values.dtype.kind in "fiU"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "other"),
        ("unit", 3),
        ("family", ["a"]),
        ("n", "many"),
        ("largest_added", None),
        ("largest_added", -1.0),
        ("largest_added", float("nan")),
        ("parts", []),
        ("parts", ["ratio", "else"]),
        ("dropped", [{"reason": "x"}]),
        ("dropped", None),
    ],
)
def test_a_bad_description_is_refused(fitted: KernelCorrection, key: str, value: object) -> None:
    meta, arrays = fitted.to_arrays()
    with pytest.raises(InputError, match="not a valid description of kernel-correction"):
        KernelCorrection.from_arrays({**meta, key: value}, arrays)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ratio.name_kind", lambda a: None),
        ("ratio.name_kind", lambda a: a[::-1]),
        ("ratio.name_kind", lambda a: a[:0]),
        ("ratio.name_identity", lambda a: a[:, None]),
        ("ratio.residual", lambda a: a[1:]),
        ("ratio.residual", lambda a: a * np.nan),
        ("ratio.times", lambda a: 0 * a),
        ("ratio.times", lambda a: a.astype(str)),
        ("ratio.repeated", lambda a: a + 1),
        ("ratio.pooled_kind", lambda a: None),
        ("ratio.pooled_kind", lambda a: a[1:]),
        ("ratio.pooled_kind", lambda a: a.astype(np.int64)),
        ("ratio.pooled_scale", lambda a: -a),
        ("ratio.pooled_device", lambda a: a * np.inf),
        ("ratio.pooled_cell", lambda a: a + np.inf),
        ("ratio.pooled_cell_var", lambda a: -a),
        ("ratio.pooled_device_family", lambda a: a + 1),
    ],
)
def test_bad_arrays_are_refused(fitted: KernelCorrection, name: str, change: Any) -> None:
    meta, arrays = fitted.to_arrays()
    changed = change(arrays[name])
    bad = {**arrays, name: changed} if changed is not None else {**arrays}
    if changed is None:
        del bad[name]
    with pytest.raises(InputError, match="Fit and write the corrections again|Fit\nand write"):
        KernelCorrection.from_arrays(meta, bad)


def test_every_effect_has_a_shape_in_the_file() -> None:
    from errcomp.calibration.kernels.pooling import _SHAPES

    assert set(_SHAPES) == {f.name for f in fields(Pooled)}


@pytest.mark.parametrize("lowest", [-20.0, -1.0, 20.0])
def test_variances_are_found_as_scipy_finds_them(lowest: float) -> None:
    """Also where the least loss is at, or beyond, an end of the range."""
    asked: list[float] = []

    def loss(log: Any) -> float:
        asked.extend(log.tolist())
        return float(np.sum(np.cosh((log - lowest) / 5) + 0.1 * np.cos(3 * log)))

    start, ends = [-2.0, 3.0], [(-9.0, 5.0)] * 2
    expected = optimize.minimize(loss, start, method="L-BFGS-B", bounds=ends).x
    assert _minimise(loss, start).tolist() == expected.tolist()
    assert -9.0 <= min(asked) < max(asked) <= 5.0
