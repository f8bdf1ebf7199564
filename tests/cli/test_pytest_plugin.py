"""Claims as tests of pytest, as a user's own test suite has them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errcomp.cli import pytest_plugin
from errcomp.errors import InputError

PAIRS = "gpu,app,predicted,measured\n" + "".join(
    f"g{i % 3},a{i % 5},{10 + i % 4},10\n" for i in range(30)
)
SUITE = """
import errcomp as ec
import pytest

TABLE = {"predicted": [11.0, 12.0, 10.5, 11.5, 10.8] * 4, "measured": [10.0] * 20}


def test_holds(errcomp_check):
    audit = errcomp_check("pairs.csv", "MAPE 50 %", by=[])
    assert audit.overall.n == 30


def test_is_overstated(errcomp_check):
    errcomp_check(TABLE, "MAPE 1 %", by=[])


def test_cannot_be_decided(errcomp_check):
    errcomp_check({"predicted": [11.0, 12.0], "measured": [10.0, 10.0]}, "MAPE 1 %")
"""


#: Plugins that may be installed and take time to load.
OTHERS = ("hypothesispytest", "xdist", "xdist.looponfail", "pytest_mpl", "pytest_cov", "zarr")


def pytest_in(folder: Path, *options: str) -> tuple[int, str]:
    without = [word for name in ("cacheprovider", *OTHERS) for word in ("-p", f"no:{name}")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *without, "-q", "-ra", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "" or done.returncode == 4
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pairs.csv").write_text(PAIRS, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.core
def test_the_fixture_fails_or_skips_with_the_reason(folder: Path) -> None:
    (folder / "test_claims.py").write_text(SUITE, encoding="utf-8")
    code, text = pytest_in(folder)
    assert code == 1
    assert "1 failed, 1 passed, 1 skipped" in text
    assert "1 of 1 claim is overstated: the error is larger than claimed" in text
    assert "times the claim: the whole interval is above 1 %" in text
    assert "errcomp_check(TABLE" not in text  # the reason without a traceback
    assert re.search(r"SKIPPED.*No interval from 2 pairs", text)


@pytest.mark.slow
@pytest.mark.core
def test_the_option_adds_a_test_for_each_claim(folder: Path) -> None:
    (folder / "a=b.csv").write_text(PAIRS, encoding="utf-8")
    claims = ["pairs.csv=MAPE 50 %", "a=b.csv=MAPE 50 %", "pairs.csv=MAPE 1 %", "none.csv=1 %"]
    code, text = pytest_in(folder, *(word for c in claims for word in ("--errcomp-check", c)))
    assert code == 1
    assert "2 failed, 2 passed" in text
    assert "errcomp: pairs.csv=MAPE 1 %" in text
    assert "gpu=g0: overstated: 15.00 %" in text
    assert "none.csv: no such file" in text
    assert "Traceback" not in text


@pytest.mark.slow
@pytest.mark.core
@pytest.mark.parametrize("value", ["pairs.csv", "=1 %", "pairs.csv="])
def test_bad_usage_is_refused(folder: Path, value: str) -> None:
    code, text = pytest_in(folder, f"--errcomp-check={value}")
    assert code == 4
    assert f"--errcomp-check takes TABLE=CLAIM, got {value!r}" in text


@pytest.mark.core
def test_without_claims_nothing_is_loaded(folder: Path) -> None:
    (folder / "test_nothing.py").write_text(
        "import sys\n\n\ndef test():\n    assert 'errcomp.claims' not in sys.modules\n"
        "    assert 'errcomp.cli.pytest_plugin' in sys.modules\n",
        encoding="utf-8",
    )
    assert pytest_in(folder)[0] == 0


@pytest.fixture
def check() -> Any:
    """The fixture of the plugin, which the tests of errcomp do not load."""
    return pytest_plugin.errcomp_check.__wrapped__()


@pytest.mark.core
def test_the_fixture_judges_in_this_process_too(check: Any) -> None:
    table = {"predicted": [11.0, 12.0, 10.5, 11.5, 10.8] * 4, "measured": [10.0] * 20}
    assert check(table, "MAPE 50 %", by=[]).overall.n == 20
    with pytest.raises(pytest.fail.Exception, match="overstated"):
        check(table, "MAPE 1 %", by=[])
    few = {"predicted": [11.0, 12.0], "measured": [10.0, 10.0]}
    with pytest.raises(pytest.skip.Exception) as skipped:
        check(few, "MAPE 1 %", by=[])
    assert "2" in str(skipped.value)


@pytest.mark.core
def test_each_claim_becomes_a_test(request: pytest.FixtureRequest, folder: Path) -> None:
    texts = [f"{folder / 'pairs.csv'}=MAPE 50 %", f"{folder / 'pairs.csv'}=MAPE 1 %"]
    config: Any = SimpleNamespace(getoption=lambda name: texts)
    items: list[Any] = []
    pytest_plugin.pytest_collection_modifyitems(request.session, config, items)
    assert [item.name for item in items] == texts
    assert [item.claim for item in items] == ["MAPE 50 %", "MAPE 1 %"]
    items[0].runtest()
    with pytest.raises(pytest.fail.Exception, match="overstated"):
        items[1].runtest()
    texts[:] = ["pairs.csv"]
    with pytest.raises(pytest.UsageError, match="takes TABLE=CLAIM"):
        pytest_plugin.pytest_collection_modifyitems(request.session, config, items)


@pytest.mark.core
def test_an_error_about_a_table_is_told_without_a_traceback(
    request: pytest.FixtureRequest, folder: Path
) -> None:
    text = f"{folder / 'none.csv'}=MAPE 5 %"
    config: Any = SimpleNamespace(getoption=lambda name: [text])
    items: list[Any] = []
    pytest_plugin.pytest_collection_modifyitems(request.session, config, items)
    (item,) = items
    assert item.reportinfo() == (str(folder / "none.csv"), None, f"errcomp: {text}")
    with pytest.raises(InputError) as raised:
        item.runtest()
    assert item.repr_failure(raised) == str(raised.value)
    with pytest.raises(ZeroDivisionError) as other:
        _ = 1 / 0
    assert "ZeroDivisionError" in str(item.repr_failure(other))
    assert str(item.repr_failure(other)) != "division by zero"


@pytest.mark.core
def test_the_option_may_be_repeated() -> None:
    parser = pytest.Parser(_ispytest=True)
    pytest_plugin.pytest_addoption(parser)
    claims = ["a.csv=5 %", "b=c.csv=MAPE 2 %"]
    given = [f"--errcomp-check={claim}" for claim in claims]
    assert parser.parse_known_args(given).errcomp_check == claims
    assert parser.parse_known_args([]).errcomp_check == []
