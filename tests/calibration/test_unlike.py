"""What is said of runs that are unlike those of the fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.design import Design
from errcomp.calibration.estimators import columns_of
from errcomp.calibration.features import design
from errcomp.calibration.fitted import Training
from errcomp.calibration.fitted.unlike import other_times, unlike_the_fit, warnings_of
from errcomp.calibration.preparing import Prepared

LINEAR = columns_of("linear", "composition")


@pytest.fixture
def seen(runs_of: Any) -> Design:
    return design(runs_of(), task="composition")


def prepared(found: Design, **changed: Any) -> Prepared:
    n = len(found)
    whole = Prepared(found, np.zeros(n), np.zeros((n, 5)), np.zeros(n, dtype=np.int64))
    return replace(whole, **changed)


def said(found: Design, training: Training, **changed: Any) -> tuple[tuple[str, ...], ...]:
    yes = np.ones(len(found), dtype=bool)
    return warnings_of(prepared(found, **changed), training, yes, yes, LINEAR)


def test_runs_of_the_fit_are_like_it(seen: Design) -> None:
    assert not any(said(seen, Training.of(seen)))


def test_features_beyond_the_fit_are_named(seen: Design) -> None:
    far = seen.take(np.arange(len(seen)))
    column = far.names.index("total_ms")
    far.x[3, column] += 2
    found = said(far, Training.of(seen))
    assert [bool(text) for text in found] == [i == 3 for i in range(len(seen))]
    assert found[3][0].startswith("feature total_ms = ")
    assert " ms is outside the fit's " in found[3][0]


def test_features_that_the_estimator_does_not_see_do_not_count(seen: Design) -> None:
    far = seen.take(np.arange(len(seen)))
    far.x[3, far.names.index("largest_share")] += 2
    assert not any(said(far, Training.of(seen)))


def test_modes_and_devices_are_named(seen: Design) -> None:
    other = replace(seen, mode=np.full(len(seen), "training", dtype=object))
    no = np.zeros(len(seen), dtype=bool)
    nameless = replace(other, device=np.full(len(seen), "", dtype=object))
    for found, device in ((other, "device 'A100' was not in the fit"), (nameless, "no device is")):
        text = warnings_of(prepared(found), Training.of(seen), no, no, LINEAR)[0]
        assert text[0].startswith(device)
        assert text[1].startswith("too few devices in the fit to calibrate this band")
        assert text[2] == "mode 'training' was not in the fit"


def test_levels_of_kernel_corrections_are_told(seen: Design) -> None:
    levels = np.zeros((len(seen), 5))
    levels[:, 0] = 1
    levels[1] = [0.7, 0.0, 0.2, 0.1, 0.0]
    without = np.zeros(len(seen), dtype=np.int64)
    without[2] = 1200
    found = said(seen, Training.of(seen), levels=levels, uncorrected=without)
    assert found[0] == ()
    assert found[1] == (
        "some kernel classes were not measured on the device (of the kernel time: 20 % corrected "
        "from other classes on the device, 10 % corrected from other devices)",
    )
    assert found[2] == ("1,200 kernels are not corrected: no similar kernel was measured",)


def moved(seen: Design, by: float, key: str, to: str) -> Design:
    """Return the runs of one group as those of another one, moved in every feature."""
    here = getattr(seen, key) == getattr(seen, key)[0]
    part = seen.take(here)
    part = replace(part, **{key: np.full(len(part), to, dtype=object)})
    part.x[:, list(LINEAR)] += by * np.nanstd(seen.x[:, list(LINEAR)], axis=0)
    return part


@pytest.mark.parametrize(
    ("key", "to", "known", "word"),
    [("model", "llama", True, "new models: "), ("device", "B200", False, "new devices: ")],
)
def test_new_groups_far_off_raise_an_alarm(
    seen: Design, key: str, to: str, known: bool, word: str
) -> None:
    training = Training.of(seen)
    for by, alarm in ((0.0, False), (20.0, True)):
        new = moved(seen, by, key, to)
        found = unlike_the_fit(new, training, np.full(len(new), known), LINEAR)
        assert bool(found) == alarm
        if alarm:
            assert found[0].startswith(word)
            assert "bands may not hold" in found[0]


def test_nothing_to_compare_is_no_alarm(seen: Design) -> None:
    new = moved(seen, 20.0, "model", "llama")
    yes = np.ones(len(new), dtype=bool)
    assert unlike_the_fit(new, Training.of(seen), yes, ()) == ()
    two = seen.take(np.isin(seen.model.astype(str), ["bert", "gpt2"]))
    assert unlike_the_fit(new, Training.of(two), yes, LINEAR) == ()
    same = seen.take(np.arange(len(seen)))
    same.x[:] = 1.0
    assert unlike_the_fit(new, Training.of(same), yes, LINEAR) == ()


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (0.0, []),
        (2.0, []),
        (5.0, ["at least 1,000 times longer"]),
        (-5.0, ["at least 1,000 times shorter"]),
    ],
)
def test_runs_in_another_unit_are_suspected(seen: Design, moved: float, words: list[str]) -> None:
    """The fit has runs over two decades, so that 5 decades away leaves 3 between them."""
    x, at = seen.x.copy(), seen.names.index("total_ms")
    x[:, at] = np.linspace(1.0, 3.0, len(x))
    training = Training.of(replace(seen, x=x))
    new = x.copy()
    new[:, at] += moved
    said = other_times(replace(seen, x=new), training)
    assert len(said) == len(words)
    for text, part in zip(said, words, strict=True):
        assert part in text
        assert text.endswith("than in any run of the fit: check the unit")
