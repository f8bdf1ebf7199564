"""Tests of what else changed in the stack at a version."""

from __future__ import annotations

import json

import pytest

from errcomp.halflife.fitting import half_life
from errcomp.halflife.gate.checking import check_validation
from errcomp.halflife.stack import Stack
from errcomp.tables import History


def columns(n=12, **stack):
    wobble = [0.0, 0.05, 0.02] * n
    measured = [4.0 + wobble[k] + (3.0 if k >= 6 else 0.0) for k in range(n)]
    return {
        "version": [f"1.{k}" for k in range(n)],
        "op": ["Gelu"] * n,
        "measured": measured,
        **{f"stack_{name}": values for name, values in stack.items()},
    }


CUDA = ["12.1"] * 6 + ["12.4"] * 6
DRIVER = ["550"] * 12


def test_components_that_changed():
    stack = Stack(History(columns(cuda=CUDA, driver=DRIVER)))
    assert stack.components == ("cuda", "driver")
    assert stack.changed("1.5", "1.6") == ("cuda 12.1 to 12.4",)
    assert stack.changed("1.6", "1.7") == ()
    assert Stack(History(columns())).changed("1.5", "1.6") is None


def test_several_and_unknown_values():
    table = {
        "version": ["1", "1", "2", "3"],
        "measured": [4.0, 4.1, 4.2, 4.3],
        "stack_driver": ["560", "550", "560", None],
    }
    stack = Stack(History(table))
    assert stack.changed("1", "2") == ("driver 550, 560 to 560",)
    assert stack.changed("2", "3") == ("driver 560 to unknown",)


def test_steps_say_what_else_changed():
    found = half_life(History(columns(cuda=CUDA, driver=DRIVER)))
    [step] = found.groups[0].steps
    assert (step.version, step.stack) == ("1.6", ("cuda 12.1 to 12.4",))
    table = found.view().tables
    [shown] = [one for one in table if one.title.startswith("Steps: which release")]
    assert [c.value(shown.rows[0]) for c in shown.columns if c.header == "Also changed"] == [
        "cuda 12.1 to 12.4"
    ]
    rows = json.loads(json.dumps(found.to_dict()))["rows"]
    assert rows[0]["steps"][0]["stack"] == ["cuda 12.1 to 12.4"]


def test_without_such_columns_nothing_is_said():
    found = half_life(History(columns()))
    assert found.groups[0].steps[0].stack is None
    [shown] = [one for one in found.view().tables if one.title.startswith("Steps: which release")]
    assert "Also changed" not in [column.header for column in shown.columns]
    assert "stack" not in found.to_dict()["rows"][0]["steps"][0]


@pytest.mark.parametrize(
    ("driver", "told"),
    [("550", ()), ("560", ("at 2.0 the stack changed, too: driver 550 to 560",))],
)
def test_the_check_says_what_else_changed(driver, told):
    new = {"version": ["2.0"] * 3, "op": ["Gelu"] * 3, "measured": [7.0, 7.02, 7.04],
           "stack_cuda": ["12.4"] * 3, "stack_driver": [driver] * 3}  # fmt: skip
    checked = check_validation(History(columns(cuda=CUDA, driver=DRIVER)), new)
    assert tuple(note for note in checked.notes if "stack" in note) == told
