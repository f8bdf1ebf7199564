"""What is broken is a line, never a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errcomp import datasets
from errcomp.cli.commands import doctor
from errcomp.cli.commands.doctor import satisfies

pytestmark = pytest.mark.core

Run = Callable[..., Any]


@pytest.fixture
def core_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at what is always needed, and at an extra that nobody has: quick."""
    needed = ["numpy>=1.26", "PyYAML>=6.0", "nowhere[x]>=2; extra == 'bayes'"]
    monkeypatch.setattr(metadata, "requires", lambda _: needed)


@pytest.mark.usefixtures("core_only")
def test_all_is_well(run: Run, tmp_path: Path) -> None:
    ran = run("doctor", "-o", tmp_path / "doctor.csv")
    assert ran.code == 0
    assert ran.out.endswith("\nAll required parts work.\n")
    assert "lacks nowhere; pip install 'errcomp[bayes]'" in ran.out
    assert "386 rows, checksum matches" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100
    assert (tmp_path / "doctor.csv").is_file()
    document = run("doctor", "--json").json
    # Not in the table, which breaks lines where the path of Python is long.
    folder = [row["found"] for row in document["rows"] if row["name"] == "this folder"]
    assert folder == ["writable"]
    assert (document["schema"], document["ok"]) == ("errcomp.doctor/1", True)
    assert {row["group"] for row in document["rows"]} == {
        "environment", "package", "extra", "dataset", "check",
    }  # fmt: skip
    rows = {row["name"]: row for row in document["rows"]}
    assert rows["numpy"] == {
        "group": "package", "name": "numpy", "found": metadata.version("numpy"),
        "needed": ">=1.26", "state": "ok", "note": "",
    }  # fmt: skip
    assert rows["bayes"]["state"] == "not installed"
    assert rows["MAPE of NeuSight over 146 pairs"]["found"] == "9.99 %"


@pytest.mark.parametrize(
    ("needed", "state", "note"),
    [
        ("numpy>=1000", "broken", "is not >=1000; pip install 'numpy>=1000'"),
        ("nowhere", "broken", "not installed; pip install 'nowhere'"),
        ("numpy>=1000; extra == 'bayes'", "broken", "is not >=1000; pip install 'errcomp[bayes]'"),
    ],
)
def test_a_package_that_will_not_do(
    run: Run, monkeypatch: pytest.MonkeyPatch, needed: str, state: str, note: str
) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: [needed])
    ran = run("doctor", "--json")
    (row,) = (r for r in ran.json["rows"] if r["group"] in ("package", "extra"))
    assert (ran.code, ran.json["ok"], row["state"]) == (1, False, state)
    assert row["note"].endswith(note)


@pytest.mark.usefixtures("core_only")
def test_a_table_that_was_modified_and_a_figure_that_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = datasets.info

    def info(name: str) -> Any:
        if name == "survey":
            raise ValueError("its SHA-256\nis not the one")
        return real(name)

    monkeypatch.setattr(datasets, "info", info)
    monkeypatch.setattr(doctor, "_KNOWN_MAPE", 0.1)
    ran = run("doctor")
    assert ran.code == 1
    assert "ValueError: its SHA-256 is not the one" in ran.out
    assert ran.out.endswith("\nBroken: survey, MAPE of NeuSight over 146 pairs.\n")


@pytest.mark.usefixtures("core_only")
def test_run_from_its_source(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(_: str) -> Any:
        raise metadata.PackageNotFoundError("errcomp")

    monkeypatch.setattr(metadata, "requires", requires)
    ran = run("doctor")
    assert (ran.code, "install it with: pip install -e ." in ran.out) == (1, True)


@pytest.mark.parametrize(("package", "options"), [("rich", []), ("numpy", ["--json"])])
def test_packages_that_raise_when_imported(
    tmp_path: Path, package: str, options: list[str]
) -> None:
    (tmp_path / f"{package}.py").write_text("raise OSError('libfoo.so is missing')\n")
    (tmp_path / "fake.py").write_text(
        "from importlib import metadata\n"
        f"metadata.requires = lambda _: ['{package}', 'pyyaml>=6']\n"
        "from errcomp.cli import main\n"
        "import sys\nraise SystemExit(main(sys.argv[1:]))\n"
    )
    paths = [str(tmp_path), str(Path(__file__).parents[3])]
    done = subprocess.run(
        [sys.executable, str(tmp_path / "fake.py"), "doctor", *options],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "cannot be imported (OSError: libfoo.so is missing)" in " ".join(done.stdout.split())
    if options:
        assert json.loads(done.stdout)["ok"] is False
    else:
        assert "Broken: rich." in done.stdout


@pytest.mark.parametrize(
    ("version", "versions", "will_do"),
    [
        ("1.26.4", ">=1.26", True),
        ("1.9", ">=1.26", False),
        ("5.28.5", ">=5.28,<6", True),
        ("6", "<6,>=5.28", False),
        ("2.0rc1", ">=2", True),
        ("2.0+cpu", "==2", True),
        ("2.0", "!=2.0.0", False),
        ("3", "", True),
    ],
)
def test_versions(version: str, versions: str, will_do: bool) -> None:
    assert satisfies(version, versions) is will_do


@pytest.mark.parametrize(
    ("columns", "note"), [(99, "tables are up to 100 characters wide"), (100, "")]
)
def test_a_narrow_terminal_is_noted(
    monkeypatch: pytest.MonkeyPatch, columns: int, note: str
) -> None:
    monkeypatch.setattr(doctor.sys, "stdout", SimpleNamespace(isatty=lambda: True, encoding="x"))
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(doctor.shutil, "get_terminal_size", lambda: size)
    found = {one.name: one for one in doctor._environment()}
    assert (found["terminal width"].found, found["terminal width"].note) == (str(columns), note)
    assert found["output encoding"].note.startswith("other characters are printed as escapes")
    monkeypatch.setattr(doctor.sys, "stdout", SimpleNamespace(isatty=lambda: False, encoding="u8"))
    assert "no terminal" in [one.found for one in doctor._environment()]
    monkeypatch.setattr(doctor.sys, "stdout", None)
    assert "unknown" in [one.found for one in doctor._environment()]


def test_lines_are_printed_where_no_table_can_be_drawn(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        doctor.Finding("package", "numpy", "2.0", ">=1", "ok"),
        doctor.Finding("package", "rich", "", "", doctor.BROKEN, "not installed"),
    ]
    monkeypatch.setattr(doctor, "checkup", lambda: found)
    monkeypatch.setitem(sys.modules, "rich.table", None)
    assert not doctor._can_draw()
    ran = run("doctor")
    assert (ran.code, ran.out) == (
        1,
        "numpy: 2.0 ok\nrich: broken not installed\nBroken: rich.\n",
    )
    monkeypatch.setattr(doctor, "checkup", lambda: found[:1])
    ran = run("doctor")
    assert (ran.code, ran.out) == (0, "numpy: 2.0 ok\nAll required parts work.\n")
    monkeypatch.undo()
    assert doctor._can_draw()


def test_a_check_that_raises_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Any:
        raise SystemExit("gone\naway")

    for name in ("_environment", "_packages", "_extras", "_numerics"):
        monkeypatch.setattr(doctor, name, lambda: iter(()))
    monkeypatch.setattr(doctor, "_datasets", fails)
    (found,) = doctor.checkup()
    assert found == doctor.Finding(
        "dataset", "dataset", "", "", doctor.BROKEN, "SystemExit: gone away"
    )


def test_a_package_that_cannot_be_imported_is_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "errcomp_dummy_broken.py").write_text("raise OSError('libfoo.so is missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "_version", lambda name: "1.5")
    needed = [
        "errcomp-dummy-broken>=1", "errcomp[all]; extra == 'dev'", "???",
        "errcomp-dummy-broken>=1; extra == 'bayes'",
    ]  # fmt: skip
    monkeypatch.setattr(metadata, "requires", lambda _: needed)
    assert [(one.package, one.versions, one.extra) for one in doctor.requirements()] == [
        ("errcomp-dummy-broken", ">=1", ""),
        ("errcomp-dummy-broken", ">=1", "bayes"),
    ]
    why = "cannot be imported (OSError: libfoo.so is missing)"
    (package,), (extra,) = [*doctor._packages()], [*doctor._extras()]
    assert (package.state, package.found) == (doctor.BROKEN, "1.5")
    assert package.note == f"{why}; pip install 'errcomp-dummy-broken>=1'"
    assert (extra.state, extra.found) == (doctor.BROKEN, "")
    assert extra.note == f"errcomp-dummy-broken 1.5 {why}; pip install 'errcomp[bayes]'"
