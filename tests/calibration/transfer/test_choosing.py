"""Which runs to measure next: better than chance, consistent with the adaptation, bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import plan_runs
from errcomp.calibration.fitted import CompositionModel
from errcomp.documents import load
from errcomp.errors import InputError
from errcomp.tables import Kernels

pytestmark = pytest.mark.usefixtures("few_choices")


def some(runs: Kernels, *names: str) -> Kernels:
    return runs.take(np.isin(runs.run.astype(str), names))


@pytest.fixture(scope="module")
def new(runs_of: Any) -> Kernels:
    return runs_of(("H100", "T4"), seed=4)


@pytest.mark.slow
def test_the_widths_are_those_of_the_adapted_model(model: CompositionModel, new: Kernels) -> None:
    """Without a disturbed run the band of the adapted model is about as wide as was expected."""
    plan = plan_runs(model, new, k=3)
    before = model.predict(new).relative_width
    assert plan.width == pytest.approx(before.mean())
    assert len({row.run for row in plan.rows}) == 3
    adapted = model.adapt(some(new, *(row.run for row in plan.rows)))
    assert adapted.predict(new).relative_width.mean() == pytest.approx(
        plan.rows[-1].width, rel=0.15
    )
    assert all(row.width <= row.width_random + 1e-12 for row in plan.rows)


@pytest.mark.slow
def test_targets_choose_the_device(model: CompositionModel, new: Kernels) -> None:
    target = some(new, "T4/bert/1", "T4/opt/8")
    plan = plan_runs(model, new, k=2, targets=target)
    assert {row.device for row in plan.rows} == {"T4"}
    assert (plan.targets, plan.candidates) == (2, 8)
    assert plan.width == pytest.approx(model.predict(target).relative_width.mean())


def test_runs_of_earlier_adaptations_count(model: CompositionModel, new: Kernels) -> None:
    first = plan_runs(model, some(new, "H100/bert/1", "H100/opt/8"), k=1).rows[0].run
    adapted = model.adapt(some(new, first))
    rest = new.take((new.run != first) & (new.column("device") == "H100"))
    plan = plan_runs(adapted, rest, k=1)
    assert plan.width == pytest.approx(adapted.predict(rest).relative_width.mean())
    both = adapted.adapt(some(new, plan.rows[0].run)).predict(rest).relative_width.mean()
    assert both == pytest.approx(plan.rows[0].width, rel=0.15)


def test_no_more_runs_than_candidates(model: CompositionModel, new: Kernels) -> None:
    plan = plan_runs(model, some(new, "H100/bert/1", "H100/opt/8"), k=9)
    assert len(plan.rows) == 2
    assert plan.rows[1].width == pytest.approx(plan.rows[1].width_random)


def test_the_document_and_the_page(model: CompositionModel, new: Kernels) -> None:
    plan = plan_runs(model, new, k=2)
    assert load(plan.to_dict()) == plan
    assert (plan.devices, plan.devices_needed) == (4, 9)
    assert "at least 9 devices in the fit; this fit has 4" in " ".join(str(plan).split())
    known = plan_runs(model, some(new, "H100/bert/1"), k=1, targets=some(new, "H100/opt/8"))
    assert known.rows[0].in_fit is False


def test_bad_input(model: CompositionModel, new: Kernels, runs_of: Any) -> None:
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        plan_runs(model, new, k=0)
    with pytest.raises(InputError, match="no candidate run is on the device of a target run"):
        plan_runs(model, some(new, "H100/bert/1"), targets=some(new, "T4/bert/1"))
    with pytest.raises(InputError, match="no candidate run is on the device of a target run"):
        plan_runs(model, runs_of(("",), ("bert",)))
    with pytest.raises(InputError, match="earlier version of errcomp"):
        plan_runs(replace(model, held_out=None), new)
    nameless = runs_of(("", "T4"), ("bert",), seed=4)
    assert len(plan_runs(model, nameless, k=1).left_out) == 2
