"""Fits to parts of a table: each once, and never with what was left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.composition import fits as parts
from errcomp.calibration.composition.fits import Fits
from errcomp.calibration.features import FEATURES
from errcomp.calibration.kernels import KernelCorrection
from errcomp.calibration.preparing import Preparation, Prepared
from errcomp.errors import InputError
from errcomp.tables import Kernels

CORRECTION = [feature.name for feature in FEATURES].index("kernel_correction")


def everything(fits: Fits) -> np.ndarray[Any, Any]:
    return np.ones(fits.kernels.n_runs, dtype=bool)


@pytest.fixture(scope="module")
def corrected(runs_of: Any, few_rounds: Any) -> tuple[Preparation, Prepared]:
    """All runs, their predicted kernels corrected."""
    fits = Fits(runs_of(), "prediction", seed=0, n_jobs=1)
    with few_rounds():
        return fits.prepared(everything(fits))


def test_which_runs_kernels_are_of(runs_of: Any) -> None:
    table = runs_of()
    fits = Fits(table, "composition", seed=0, n_jobs=1)
    part = table.take(table.device == "L4")
    mask = fits.which(part)
    assert mask.sum() == 8
    assert list(fits.at(mask).runs) == list(part.runs)
    assert fits.at(everything(fits)) is table


def test_every_part_is_fitted_once(runs_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    true = parts.fit_member

    def counted(name: str, design: Any, **options: Any) -> Any:
        fitted.append((name, len(design), options["quick"]))
        return true(name, design, **options)

    monkeypatch.setattr(parts, "fit_member", counted)
    fits = Fits(runs_of(), "composition", seed=0, n_jobs=1)
    mask = everything(fits)
    first = fits.portable("device", mask)
    assert fits.portable("device", mask.copy()) is first
    mask[:8] = False
    assert fits.portable("device", mask) is not first
    assert fitted == [("device", 40, True), ("device", 32, True)]


def test_measured_kernels_are_not_corrected(runs_of: Any) -> None:
    fits = Fits(runs_of(), "composition", seed=0, n_jobs=1)
    preparation, prepared = fits.prepared(everything(fits))
    assert preparation.correction is None
    assert not prepared.spread.any()
    assert not prepared.design.x[:, CORRECTION].any()


def test_kernels_of_the_fit_are_corrected_as_those_of_new_runs(
    runs_of: Any, few_rounds: Any, corrected: tuple[Preparation, Prepared]
) -> None:
    table, (preparation, prepared) = runs_of(), corrected
    assert preparation.correction is not None
    assert list(prepared.design.run) == list(table.runs)
    assert preparation.typical_spread == np.median(prepared.spread) > 0
    # Every model was corrected by what was learnt from the others.
    for model in ("bert", "opt"):
        with few_rounds():
            rest = KernelCorrection().fit(table.take(table.column("model") != model))
        part = table.take(table.column("model") == model)
        expected = np.log(rest.apply(part).total / part.totals().predicted)
        here = prepared.design.model == model
        assert prepared.design.x[here, CORRECTION] == pytest.approx(expected)


def test_corrections_of_classes_are_found(
    runs_of: Any, corrected: tuple[Preparation, Prepared]
) -> None:
    table, (_, prepared) = runs_of(), corrected
    total = table.totals()
    off = np.log(total.measured / total.predicted)
    assert np.abs(off).mean() > 0.04
    assert np.abs(off - prepared.design.x[:, CORRECTION]).mean() < 0.025


@pytest.mark.parametrize("name", ["device", ""])
def test_without_models_devices_or_parts_are_left_out(
    runs_of: Any, few_rounds: Any, name: str
) -> None:
    table = runs_of(("A100", "L4", "V100"), ("bert", "gpt2"))
    columns = {key: table.column(key) for key in ("run", "kernel", "kernel_class")}
    times = ("count", "predicted", "measured", "run_measured")
    columns |= {key: getattr(table, key) for key in times}
    if name:
        columns["device"] = table.device
    plain = Kernels(columns, unit="ms")
    fits = Fits(plain, "prediction", seed=0, n_jobs=1)
    with few_rounds():
        preparation, prepared = fits.prepared(everything(fits))
    assert preparation.correction is not None
    # Without devices a device that errs in its own way cannot be told.
    levels = prepared.levels.sum(axis=0)
    assert (levels[3] > 0) == bool(name)


def test_kernels_that_were_not_measured_teach_nothing(runs_of: Any) -> None:
    table = runs_of(measured=[None] * 160)
    fits = Fits(table, "prediction", seed=0, n_jobs=1)
    preparation, prepared = fits.prepared(everything(fits))
    assert preparation.correction is None
    assert not prepared.uncorrected.any()


@pytest.mark.slow
def test_disturbed_runs_teach_no_corrections(runs_of: Any) -> None:
    table = runs_of()
    slow = np.isin(table.run.astype(str), ["A100/gpt2/1", "A100/gpt2/8"])
    measured = np.where(slow, 2 * table.measured, table.measured)
    disturbed = runs_of(measured=measured.tolist())
    mask = np.ones(40, dtype=bool)
    found = [
        Fits(one, "prediction", seed=0, n_jobs=1).prepared(mask)[0].correction
        for one in (table, disturbed)
    ]
    new = table.take(table.column("model") == "bert")
    plain, cleaned = (one.apply(new).total for one in found if one is not None)
    assert cleaned == pytest.approx(plain, rel=0.02)
    assert found[1] is not None
    assert found[1].n_ < table.n


def test_parts_are_fitted_ahead_once_and_models_first(
    runs_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be fitted is left out, and refused when it is asked for."""
    table = runs_of(("A100", "L4"), ("bert", "gpt2", "opt"))
    fits = Fits(table, "prediction", seed=5, n_jobs=None)
    model, device = fits.labels("model", everything(fits)), fits.labels("device", everything(fits))
    whole, l4 = everything(fits), device == "L4"
    made: list[Any] = []

    def named(runs: np.ndarray[Any, Any]) -> tuple[int, ...]:
        return tuple(np.flatnonzero(runs).tolist())

    def correct(_: Kernels, runs: np.ndarray[Any, Any]) -> Any:
        made.append(("kernels", named(runs)))
        if named(runs) == named(l4):
            raise InputError("too few kernels")
        return f"correction of {named(runs)}"

    def prepare(_: Fits, runs: np.ndarray[Any, Any]) -> Any:
        if named(runs) == (0,):
            raise InputError("a single run")
        return None, SimpleNamespace(design=named(runs))

    def fit(name: str, design: Any, **options: Any) -> Any:
        assert options == {"seed": 5, "n_jobs": 1, "quick": True}
        made.append((name, design))
        if (name, design) == ("linear", named(l4)):
            raise InputError("too few runs")
        return SimpleNamespace(portable_=f"{name} of {design}")

    def one_by_one(function: Any, items: Any, *, n_jobs: int) -> Any:
        assert n_jobs == 2
        return map(function, items)

    for name, fake in (("_correction", correct), ("fit_member", fit), ("map_jobs", one_by_one)):
        monkeypatch.setattr(parts, name, fake)
    monkeypatch.setattr(Fits, "prepared", prepare)
    single = np.arange(12) == 0
    names, masks = ["linear", "physics"], [whole, l4, single, whole.copy()]
    done = list(fits.ahead(names, masks, 2))
    # A single run has no other model that could teach about its kernels.
    corrected = [
        *(mask & (model != left) for mask in (whole, l4) for left in ("", "bert", "gpt2", "opt")),
    ]
    expected = [("kernels", named(mask)) for mask in corrected]
    expected += [(name, named(m)) for name in ("physics", "linear") for m in (whole, l4)]
    assert made == expected
    # A part without a preparation counts as done for each estimator.
    total = len(corrected) + 2 * 3
    assert done == [(i, total) for i in (*range(1, 9), *range(11, 15))]
    made.clear()
    assert fits.portable("physics", l4) == f"physics of {named(l4)}"
    assert fits._correction(whole) == f"correction of {named(whole)}"
    assert made == []
    with pytest.raises(InputError, match="too few kernels"):
        fits._correction(l4)
    monkeypatch.setattr(fits, "n_jobs", 1)
    with pytest.raises(InputError, match="too few runs"):
        fits.portable("linear", l4)
    assert made == [("kernels", named(l4)), ("linear", named(l4))]


def test_measured_kernels_are_not_corrected_ahead(
    runs_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = Fits(runs_of(("A100",), ("bert",)), "composition", seed=0, n_jobs=1)
    monkeypatch.setattr(Fits, "prepared", lambda *_: (None, SimpleNamespace(design="all")))
    monkeypatch.setattr(parts, "fit_member", lambda *_, **__: SimpleNamespace(portable_="fit"))
    assert list(fits.ahead(["sum", "linear"], [everything(fits)], 1)) == [(1, 2), (2, 2)]
    assert fits.portable("linear", everything(fits)) == "fit"
