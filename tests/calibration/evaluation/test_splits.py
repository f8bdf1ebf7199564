"""Which runs are held out."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp import datasets
from errcomp.calibration.design import Design
from errcomp.calibration.evaluation.held_out import judged_runs
from errcomp.calibration.evaluation.splits import SPLITS, check_split, split, vendor_of, vendors_of
from errcomp.errors import InputError


def runs(device, model):
    n = len(device)
    names = np.array([f"r{i}" for i in range(n)], dtype=object)
    return Design(
        run=names,
        total=np.ones(n),
        measured=np.ones(n),
        x=np.empty((n, 0)),
        names=(),
        device=np.array(device, dtype=object),
        model=np.array(model, dtype=object),
        mode=np.full(n, "", dtype=object),
        unit="ms",
        task="composition",
    )


@pytest.fixture(scope="module")
def neusight():
    return judged_runs(datasets.load("neusight-kernels"), "composition")[1]


@pytest.mark.parametrize(("name", "groups"), list(zip(SPLITS, [5, 8, 37, 2, 10], strict=True)))
def test_every_run_is_held_out_once_and_never_in_its_own_fit(neusight, name, groups):
    parts = split(neusight, name)
    assert len(parts) == groups
    assert sorted(np.concatenate([p.test for p in parts]).tolist()) == list(range(87))
    for part in parts:
        assert not set(part.train) & set(part.test)
        if name != "leave-model-and-device-out":
            assert len(part.train) + len(part.test) == 87
    assert [p.held_out for p in parts] == sorted(p.held_out for p in parts)


def test_what_is_left_out_is_not_in_the_fit(neusight):
    for name, attribute in (("leave-model-out", "model"), ("leave-device-out", "device")):
        for part in split(neusight, name):
            groups = getattr(neusight, attribute)
            assert set(groups[part.test]) == {part.held_out}
            assert part.held_out not in set(groups[part.train])


def test_both_at_once_shares_neither_and_loses_nothing_else(neusight):
    for part in split(neusight, "leave-model-and-device-out"):
        device, model = part.held_out.split(" / ")
        on, of = neusight.device == device, neusight.model == model
        assert part.train.tolist() == np.flatnonzero(~on & ~of).tolist()
        assert part.test.tolist() == np.flatnonzero(on & of).tolist()
        assert len(part.train) > 0


def test_vendors_of_the_real_devices(neusight):
    amd, nvidia = split(neusight, "leave-vendor-out")
    assert (amd.held_out, len(amd.test)) == ("AMD", 27)
    assert (nvidia.held_out, len(nvidia.test)) == ("NVIDIA", 60)
    assert set(neusight.device[amd.test]) == {"MI100", "MI210"}


def test_random_folds_are_even_seeded_and_ordered():
    design = runs(["a"] * 23, ["m"] * 23)
    first, again, other = (split(design, "random", folds=4, seed=s) for s in (1, 1, 2))
    assert sorted(len(p.test) for p in first) == [5, 6, 6, 6]
    assert [p.test.tolist() for p in first] == [p.test.tolist() for p in again]
    assert [p.test.tolist() for p in first] != [p.test.tolist() for p in other]
    assert [p.held_out for p in split(design, "random", folds=10)][::9] == ["fold 01", "fold 10"]


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("V100", "NVIDIA"),
        ("P4", "NVIDIA"),
        ("NVIDIA GeForce RTX 3090", "NVIDIA"),
        ("RTX4090", "NVIDIA"),
        ("gtx1080ti", "NVIDIA"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA"),
        ("h100_pcie", "NVIDIA"),
        ("H100SXM5", "NVIDIA"),
        ("Tesla T4", "NVIDIA"),
        ("MI250X", "AMD"),
        ("AMD Instinct MI300A", "AMD"),
        ("Radeon RX 7900", "AMD"),
        ("AMD EPYC 7763", "AMD"),
        ("Intel Xeon 8380 CPU", "Intel"),
        ("Gaudi2", "Intel"),
        ("Intel Data Center GPU Max 1550", "Intel"),
        ("TPU v4", "Google"),
        ("Apple M1", "Apple"),
        ("AMD A10", "AMD"),
        ("cpu", "CPU"),
        ("cpu-8-cores", "CPU"),
        ("A1000", None),
        ("M1", None),
        ("Intel Xeon with NVIDIA H100", None),
        ("", None),
    ],
)
def test_vendor_of_a_name(name, vendor):
    assert vendor_of(name) == vendor


def test_a_key_decides_over_the_name_and_fills_what_the_name_leaves_open():
    device = np.array(["H100", "mystery", "V100"], dtype=object)
    given = np.array(["Clone", "Acme", None], dtype=object)
    assert vendors_of(device, given).tolist() == ["Clone", "Acme", "NVIDIA"]


def test_unknown_vendors_are_named_with_the_remedy():
    device = np.array(["H100", "npu-1", "npu-2", "npu-1", ""], dtype=object)
    with pytest.raises(InputError, match=r"of 3 devices is unknown: npu-1, npu-2, \(no name\)"):
        vendors_of(device)
    with pytest.raises(InputError, match=r"1 device is unknown: npu-1\. Add a vendor column"):
        split(runs(["npu-1", "H100"], ["m", "m"]), "leave-vendor-out")


def test_a_split_that_does_not_exist():
    with pytest.raises(
        InputError,
        match=r"no split 'leave-gpu-out'. Did you mean 'leave-model-out'\? Splits: leave-model-",
    ):
        split(runs(["a", "b"], ["m", "m"]), "leave-gpu-out")
    for name in SPLITS:
        check_split(name)


@pytest.mark.parametrize(
    ("device", "model", "name", "words"),
    [
        ("ab", "mm", "leave-model-out", "runs of at least 2 models, got 1: m. Add runs of"),
        ("aa", "mn", "leave-device-out", "at least 2 devices, got 1: a"),
        ("aa", "mn", "leave-model-and-device-out", "at least 2 devices, got 1: a"),
        ("ab", "mm", "leave-model-and-device-out", "at least 2 models, got 1: m"),
        ("aab", "mnm", "leave-model-and-device-out", None),
        (["V100", "H100"], "mm", "leave-vendor-out", "at least 2 vendors, got 1: NVIDIA"),
        ("", "", "leave-model-out", "at least 2 models, got 0. Add"),
    ],
)
def test_too_few_groups(device, model, name, words):
    design = runs(list(device), list(model))
    if words is None:
        # Only (a, n) and (b, m) share neither; the cell (a, m) has nothing to be fitted on.
        parts = {p.held_out: p.train.tolist() for p in split(design, name)}
        assert parts == {"a / m": [], "a / n": [2], "b / m": [1]}
        return
    with pytest.raises(InputError, match=words):
        split(design, name)


@pytest.mark.parametrize(
    ("device", "model", "name", "words"),
    [
        (
            ["a", "", "b"],
            ["m"] * 3,
            "leave-device-out",
            "of every run; it is unknown for 1 run: r1",
        ),
        (["a", "b", "b"], ["", "", "m"], "leave-model-out", "unknown for 2 runs: r0, r1. Add a"),
        (["a", "b"], ["", "m"], "leave-model-and-device-out", "the model of every run"),
    ],
)
def test_runs_without_a_group_are_named(device, model, name, words):
    with pytest.raises(InputError, match=words):
        split(runs(device, model), name)


@pytest.mark.parametrize(("n", "folds"), [(1, 2), (5, 6), (5, 1)])
def test_folds_that_cannot_be(n, folds):
    with pytest.raises(InputError, match="at least . runs and 2 folds"):
        split(runs(["a"] * n, ["m"] * n), "random", folds=folds)
