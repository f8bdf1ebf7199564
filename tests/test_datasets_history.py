"""The history of releases that the project measured itself."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from errcomp import datasets
from errcomp.datasets.measured import HISTORY_COLUMNS
from errcomp.errors import InputError
from errcomp.tables import History

NAME = "ort-releases"
LEVELS = {"kernel", "operators", "run", "composition", "model"}


@pytest.fixture(scope="module")
def history() -> History:
    return datasets.load(NAME)


@pytest.fixture(scope="module")
def protocol() -> dict[str, object]:
    text = (datasets.folder(NAME) / "protocol.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def test_every_level_has_every_release(history: History, protocol: dict[str, object]) -> None:
    assert (history.unit, history.order_by, history.dropped) == ("ms", "released", ())
    releases = protocol["releases"]
    assert isinstance(releases, dict)
    assert set(history.versions) == set(releases)
    assert history.versions[0] == protocol["anchor"] == "1.15.0"
    levels = history.column("level").astype(str)
    assert set(levels) == LEVELS
    for level in LEVELS - {"kernel"}:
        part = history.take(levels == level)
        assert part.n == part.n_series * len(releases)
        assert set(part.version.tolist()) == set(range(len(releases)))


def test_the_protocol_covers_what_was_measured(
    history: History, protocol: dict[str, object]
) -> None:
    pieces, how = protocol["pieces"], protocol["protocol"]
    assert isinstance(pieces, list)
    assert isinstance(how, dict)
    per_release = [piece["version"] for piece in pieces]
    others = set(history.versions) - {"1.15.0"}
    assert {per_release.count(version) for version in others} == {how["rounds"]} == {3}
    assert per_release.count("1.15.0") == 9
    at_run = history.column("level").astype(str) == "run"
    runs = history.runs[at_run]
    assert set(runs[history.version[at_run] > 0]) == {3.0}
    assert set(runs[history.version[at_run] == 0]) == {9.0}


def test_processes_of_one_release_agree(history: History) -> None:
    """What the protocol itself adds: nothing in the mean, a few per cent in a network."""
    runs = history.where({"level": "run"})
    first = runs.version == 0
    changes, networks = runs.error()[first], runs.codes("model")[first]
    means = np.bincount(networks, changes) / np.bincount(networks)
    assert len(means) == 16
    half = 2.13 * float(np.std(means, ddof=1)) / math.sqrt(len(means))
    assert abs(float(means.mean())) < half < 0.01
    assert np.abs(changes).max() < 0.05


def test_levels_add_up(history: History) -> None:
    """The error of the whole is that of the operators plus that of the composition."""
    parts = {level: history.where({"level": level}) for level in LEVELS - {"kernel"}}
    key = {
        level: dict(
            zip(
                zip(part.column("series"), part.version.tolist(), strict=True),
                part.error().tolist(),
                strict=True,
            )
        )
        for level, part in parts.items()
    }
    for (series, version), whole in key["model"].items():
        network = str(series).partition("/model")[0]
        names = {level: f"{network}/{level}" for level in ("operators", "composition")}
        found = sum(key[level][name, version] for level, name in names.items())
        assert whole == pytest.approx(found, abs=2e-3)


def test_it_is_no_table_of_another_kind() -> None:
    assert datasets.histories() == (NAME,)
    assert isinstance(datasets.load(NAME), History)


def test_it_is_built_from_what_the_scripts_wrote(tmp_path: Path) -> None:
    folder = datasets.folder(NAME)
    (tmp_path / "history.csv").write_bytes((folder / f"{NAME}.csv").read_bytes())
    (tmp_path / "protocol.json").write_bytes((folder / "protocol.json").read_bytes())
    datasets.build(NAME, tmp_path, tmp_path / "out")
    for file in (f"{NAME}.csv", "protocol.json", "SHA256SUMS"):
        assert (tmp_path / "out" / file).read_bytes() == (folder / file).read_bytes()
    (tmp_path / "history.csv").write_text("version\n", encoding="utf-8")
    with pytest.raises(InputError, match="its columns are not those that the script"):
        datasets.build(NAME, tmp_path, tmp_path / "again")


def test_columns_are_those_told(history: History) -> None:
    header = (datasets.folder(NAME) / f"{NAME}.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert header.split(",") == [*HISTORY_COLUMNS]
    text = (datasets.folder(NAME) / "README.md").read_text(encoding="utf-8")
    assert all(f"| {column} |" in text for column in HISTORY_COLUMNS)
    assert f"in {len(history.versions)} releases" in text
