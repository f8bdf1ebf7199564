"""From kernels to what models see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errcomp.calibration.features import fit_features
from errcomp.calibration.kernel_corrections import KernelCorrection
from errcomp.calibration.preparing import Preparation, measured_runs, runs_at
from errcomp.errors import InputError


def test_only_measured_runs_are_kept(runs_of: Any) -> None:
    ends = runs_of().run_measured.copy()
    ends[:8] = np.nan
    kept, times = measured_runs(runs_of(run_measured=ends.tolist()))
    assert kept.n_runs == len(times) == 38
    assert times == pytest.approx(kept.totals().run_measured)
    whole = runs_of()
    assert measured_runs(whole)[0] is whole


def test_no_measured_run_is_refused(runs_of: Any) -> None:
    with pytest.raises(InputError, match=r"simulated.csv: no run was measured end to end"):
        measured_runs(runs_of(run_measured=[None] * 160))


def test_runs_at_positions_and_under_a_mask(runs_of: Any) -> None:
    table = runs_of()
    mask = np.zeros(40, dtype=bool)
    mask[[3, 5]] = True
    assert list(runs_at(table, mask).runs) == [table.runs[3], table.runs[5]]
    assert list(runs_at(table, np.array([5])).runs) == [table.runs[5]]


def test_spread_beyond_the_typical_one(runs_of: Any) -> None:
    table = runs_of(("A100", "L4"), ("bert", "opt"))
    state = fit_features(table, task="prediction")
    correction = KernelCorrection().fit(table)
    plain = Preparation(state, correction, 0.0)
    found = plain.prepare(table)
    assert (found.spread > 0).all()
    assert plain.excess(found) == pytest.approx(found.spread)
    typical = float(found.spread[0])
    excess = Preparation(state, correction, typical).excess(found)
    assert excess[0] == 0
    assert excess == pytest.approx(np.sqrt(np.maximum(found.spread**2 - typical**2, 0)))


def test_failed_kernels_are_refused(runs_of: Any) -> None:
    table = runs_of(("A100", "L4"), ("bert", "opt"))
    preparation = Preparation(
        fit_features(table, task="prediction"), KernelCorrection().fit(table), 0.0
    )
    failed = runs_of(("A100", "L4"), ("bert", "opt"), status=["failed", *["ok"] * 31])
    with pytest.raises(InputError, match="A100/bert/1"):
        preparation.prepare(failed)
