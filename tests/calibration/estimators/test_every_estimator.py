"""All estimators together: fitted, stacked, stored, and read where nothing of theirs is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.calibration.composition import Composition
from errcomp.calibration.storing import save_model
from errcomp.errors import SmallSampleWarning

pytestmark = [pytest.mark.slow, pytest.mark.extras]

#: Predicts a table with each estimator of a model, where the libraries that fitted it are missing.
ELSEWHERE = """
import json, sys
for name in ("pymc", "nutpie", "arviz", "pytensor", "xgboost", "sklearn", "pandas"):
    sys.modules[name] = None
from errcomp.calibration.storing import load_model
from errcomp.readers import kernels
model, table = load_model(sys.argv[1]), kernels.read(sys.argv[2], unit="ms")
found = {name: model.predict(table, estimator=name).rows() for name in model.estimators}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def fitted(runs_of: Any) -> Composition:
    for package in ("pymc", "nutpie", "arviz", "xgboost", "sklearn"):
        pytest.importorskip(package)
    table = runs_of(("A100", "L4", "V100"), ("bert", "gpt2", "opt"))
    with pytest.warns(SmallSampleWarning) as said:
        found = Composition(seed=3).fit(table)
    # All of it is inference: features are named.
    text = " ".join(str(warning.message) for warning in said)
    assert "dropped, because all runs have the same value: training" in text
    assert "because all runs have the value 0: launch_work_training" in text
    return found


def test_the_stack_weighs_its_members_for_known_and_new_devices(fitted: Composition) -> None:
    weights = fitted.model_.weights
    assert set(weights) == {"device", "global"}
    for of in weights.values():
        assert set(of) == {"bayesian", "boosted", "physics"}
        assert min(of.values()) >= 0
        assert sum(of.values()) == pytest.approx(1)
    assert fitted.model_.estimators[-1] == "stack"


def test_each_is_better_than_the_sum_and_the_parts_add_up(
    fitted: Composition, runs_of: Any
) -> None:
    new = runs_of(("A100", "L4", "V100"), seed=7)
    truth = new.totals().run_measured
    errors = {}
    for name in fitted.model_.estimators:
        found = fitted.predict(new, estimator=name)
        errors[name] = float(np.abs(found.predicted / truth - 1).mean())
        assert found.total + sum(found.parts.values()) == pytest.approx(found.predicted)
        # Launches of 8 µs hide: the physics says so for every estimator.
        assert (found.parts["launches"] < 0).all()
    for name in ("bayesian", "boosted", "stack"):
        assert errors[name] < 0.5 * errors["sum"], errors


def test_it_predicts_where_nothing_that_fitted_it_is_installed(
    fitted: Composition, runs_of: Any, tmp_path: Path
) -> None:
    new = runs_of(("L4", "B200"), seed=7)
    path, table = tmp_path / "gpu.errcomp", tmp_path / "new.csv"
    save_model(fitted.model_, path, created="2030-01-31")
    columns = ("run", "device", "model", "mode", "kernel", "kernel_class")
    given = {name: new.column(name) for name in columns}
    given |= {name: getattr(new, name) for name in ("count", "predicted", "measured")}
    pl.DataFrame(given, strict=False).write_csv(table)
    command = [sys.executable, "-W", "error", "-c", ELSEWHERE, str(path), str(table)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    elsewhere = json.loads(ran.stdout)
    for name in fitted.model_.estimators:
        here = fitted.predict(new, estimator=name)
        for at, row in enumerate(elsewhere[name]):
            assert row["predicted"] == pytest.approx(float(here.predicted[at]), rel=1e-6)
            assert row["low_90"] == pytest.approx(float(here.low[at, 2]), rel=1e-6)
        fallbacks = [row["fallback"] for row in elsewhere[name]]
        assert set(fallbacks) == {"device", "global"}
