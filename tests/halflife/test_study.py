"""The levels of a frozen model, each with its half-life."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.halflife.fitting import PROMISED, release_study
from errcomp.tables import History


def table() -> dict[str, list[Any]]:
    """Eight networks of a Gemm and a Gelu over ten releases; Gelus are slower from 1.6 on."""
    rng = np.random.default_rng(0)
    names = ("level", "series", "model", "kernel_class", "version", "predicted", "measured")
    rows: dict[str, list[Any]] = {name: [] for name in (*names, "measured_spread", "n_repeats")}

    def add(*values: Any) -> None:
        for name, value in zip(rows, (*values, 0.01, 3), strict=True):
            rows[name].append(value)

    for i in range(8):
        network, factor = f"net{i}", math.exp(0.05 * (-1) ** i)
        for version in range(10):
            slow = 1.4 if version >= 6 else 1.0
            gemm, gelu = (t * math.exp(rng.normal(0, 0.005)) for t in (1.0, slow))
            run = (gemm + gelu) * 1.1
            key = (f"1.{version}",)
            add("kernel", f"{network} Gemm", network, "Gemm", *key, 1.0, gemm)
            add("kernel", f"{network} Gelu", network, "Gelu", *key, 1.0, gelu)
            add("operators", network, network, "", *key, 2.0, gemm + gelu)
            add("run", network, network, "", *key, 2.2, run)
            add("composition", network, network, "", *key, (gemm + gelu) * 1.1 * factor, run)
            add("model", network, network, "", *key, 2.2 * factor, run)
    return rows


def test_operators_move_and_the_composition_holds() -> None:
    seen: list[tuple[float, float]] = []
    study = release_study(History(table()), progress=lambda *now: seen.append(now))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    by_level = {group.key["level"]: group for group in study.modelled.groups}
    whole = by_level["model"].estimate("trajectory", "releases")
    holds = by_level["composition"].estimate("trajectory", "releases")
    assert whole is not None
    assert holds is not None
    assert whole.half_life == 6.0
    assert holds.half_life == math.inf
    assert by_level["model"].threshold.error == pytest.approx(0.05, abs=0.01)
    classes = {g.key["kernel_class"]: g for g in study.classes.groups}
    assert np.isfinite(classes["Gelu"].expiry["releases"].right).all()
    assert np.isinf(classes["Gemm"].expiry["releases"].right).all()
    assert classes["Gelu"].threshold.error == pytest.approx(math.log1p(PROMISED))
    # Networks are held to the error of the whole model at first.
    assert study.networks.groups[0].threshold.error == pytest.approx(
        by_level["model"].threshold.error
    )
    assert [estimate.figure.split()[2] for estimate in study.alike] == [
        "kernel",
        "operators",
        "run",
    ]
    for estimate in study.alike:
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low < 0.01
        assert estimate.high > -0.01


def test_a_history_without_the_levels_is_refused() -> None:
    with pytest.raises(InputError, match="no column 'level'"):
        release_study(History({"version": ["1", "2"], "measured": [1.0, 2.0]}))
