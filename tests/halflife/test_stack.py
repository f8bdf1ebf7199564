"""Tests of what else changed in the stack at a version."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from errcomp.errors import InputError
from errcomp.halflife.fitting import half_life
from errcomp.halflife.gate.checking import check_validation
from errcomp.halflife.stack import Stack
from errcomp.tables import History
from errcomp.tables.engine.history import HistoryRows


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


class TestStacksAsVersions:
    ROWS: ClassVar = {
        "version": ["2.9"] * 4 + ["2.10"] * 4,
        "stack_driver": ["550.9"] * 2 + ["550.10"] * 2 + ["550.10"] * 2 + ["560.1"] * 2,
        "op": ["a", "b"] * 4,
        "measured": [1.0, 2.0, 1.5, 3.0, 1.5, 3.0, 1.1, 2.2],
    }
    VERSIONS: ClassVar = (
        "2.9 (driver 550.9)",
        "2.9 (driver 550.10)",
        "2.10 (driver 550.10)",
        "2.10 (driver 560.1)",
    )

    def test_each_combination_is_a_version(self):
        history = History(self.ROWS, order_by=["version", "stack_driver"])
        assert history.versions == self.VERSIONS
        assert history.order_by == "columns"
        assert history.series_names == ("a", "b")
        assert History(self.ROWS).versions == ("2.9", "2.10")
        assert Stack(history).changed(*self.VERSIONS[:2]) == ("driver 550.9 to 550.10",)
        assert Stack(history).changed(*self.VERSIONS[1:3]) == ()

    def test_several_components_and_their_order(self):
        rows = {**self.ROWS, "stack_cuda": ["12"] * 8}
        history = History(rows, order_by=["stack_driver", "version", "stack_cuda"])
        assert history.versions[0] == "2.9 (driver 550.9, cuda 12)"
        # 2.10 with an older driver comes before 2.9 with a newer one.
        turned = {**rows, "stack_driver": ["2"] * 4 + ["1"] * 4}
        assert [
            name[:4] for name in History(turned, order_by=["stack_driver", "version"]).versions
        ] == ["2.10", "2.9 "]

    def test_rows_of_an_engine(self):
        import polars as pl

        from errcomp.halflife.panel import panel_of

        options = {"order_by": ["version", "stack_driver"]}
        lazy = HistoryRows(pl.LazyFrame(self.ROWS), **options)
        assert panel_of(lazy).panel.versions == self.VERSIONS
        same = panel_of(History(self.ROWS, **options)).panel
        assert panel_of(lazy).panel.error.tolist() == pytest.approx(same.error.tolist())

    def test_a_check_of_a_new_stack(self):
        wobble = [0.0, 0.05, 0.02] * 4
        old = {
            "version": ["2.9"] * 12,
            "stack_driver": [f"550.{k}" for k in range(12)],
            "op": ["a"] * 12,
            "measured": [4.0 + w for w in wobble],
        }
        new = {"version": ["2.9"] * 3, "stack_driver": ["560.1"] * 3, "op": ["a"] * 3,
               "measured": [8.0, 8.1, 8.05]}  # fmt: skip
        history = History(old, order_by=["version", "stack_driver"])
        checked = check_validation(history, new)
        assert checked.result.version == "2.9 (driver 560.1)"
        assert checked.result.outcome == "regression"
        assert checked.notes[-1] == (
            "at 2.9 (driver 560.1) the stack changed, too: driver 550.11 to 560.1"
        )

    def test_what_cannot_be_ordered(self):
        rows = {**self.ROWS, "stack_driver": ["blue"] * 8}
        with pytest.raises(InputError, match=r"cannot order by stack_driver: 'blue' is not a ver"):
            History(rows, order_by=["version", "stack_driver"])
        rows = {**self.ROWS, "stack_driver": [None] + ["1"] * 7}
        with pytest.raises(InputError, match=r"stack_driver is missing in row 1"):
            History(rows, order_by=["version", "stack_driver"])
        with pytest.raises(InputError, match=r"no column 'stack_cuda' to order versions by"):
            History(self.ROWS, order_by=["version", "stack_cuda"])
