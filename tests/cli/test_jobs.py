"""``--jobs``: the same documents from more processes, and no option that would do nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError

Run = Callable[..., Any]
#: Commands that divide their work by groups.
COMMANDS = {
    "metrics": ("metrics", "neusight", "--by", "mode", "--figures", "mape"),
    "halflife": ("halflife", "fit", "ort-releases", "--where", "level=run,model", "--where",
                 "model=conv,encoder,gelu,mlp,softmax", "--by", "level"),
}  # fmt: skip


@pytest.mark.extras
@pytest.mark.parametrize("command", COMMANDS)
def test_the_document_is_the_same(run: Run, command: str) -> None:
    pytest.importorskip("joblib")
    words = COMMANDS[command]
    one, two = run(*words, "--json"), run(*words, "--json", "--jobs", "2")
    assert one.code == two.code == 0
    assert one.out == two.out
    assert len(one.json["rows"]) > 1


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (
            ("calibrate", "evaluate", "--estimator", "device"),
            "calibration.evaluation.composed.evaluate_composition",
        ),
        (("propagate", "--graph", "graph.json"), "propagation.propagate"),
    ],
)
def test_the_number_arrives(
    run: Run,
    words: tuple[str, ...],
    called: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def stop(*_: Any, n_jobs: int, **__: Any) -> None:
        raise InputError(f"{n_jobs} processes")

    monkeypatch.setattr(f"errcomp.{called}", stop)
    monkeypatch.chdir(tmp_path)
    Path("graph.json").write_text('{"node": "constant", "value": 1.0}', encoding="utf-8")
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    done = run(*words, "--jobs", "1000")
    assert done.code == 2
    assert "3 processes" in done.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("metrics", "neusight", "--jobs", "0"), "above 0"),
        (("metrics", "drivers", "--jobs", "2"), "metrics drivers does not take --jobs"),
        (("propagate", "--jobs", "2"), "--jobs needs --graph"),
        (("propagate", "validate", "--jobs", "2"), "does not take --jobs"),
    ],
)
def test_where_it_would_do_nothing(run: Run, words: tuple[str, ...], reason: str) -> None:
    done = run(*words)
    assert done.code == 2
    assert reason in done.err


def test_a_table_that_stays_on_disk(run: Run, tmp_path: Path) -> None:
    pl.DataFrame({"predicted": [1.0, 2.0], "measured": [1.0, 3.0]}).write_parquet(
        tmp_path / "part.parquet"
    )
    done = run("metrics", str(tmp_path / "*.parquet"), "--jobs", "2")
    assert done.code == 2
    assert "--jobs applies only to tables in memory" in done.err
