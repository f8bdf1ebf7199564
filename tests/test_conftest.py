"""What the conftest of the checkout promises of every test."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
Ends = Callable[..., dict[str, set[str]]]
SKIPS = {
    "tests/test_some.py": """
import pytest

def test_passes():
    pass

def test_stops():
    pytest.skip("there is no Java")

def test_needs_a_package():
    pytest.importorskip("no_such_package")

def test_needs_an_extra():
    pytest.skip("this needs x. Install it with: pip install 'errcomp[figures]'")

@pytest.mark.skip(reason="as marked")
def test_marked():
    pass

@pytest.mark.parametrize("nothing", [])
def test_of_nothing(nothing):
    pass

@pytest.mark.xfail(reason="known")
def test_expected_to_fail():
    assert False

@pytest.fixture
def server():
    pytest.skip("there is no server")

def test_with_a_fixture(server):
    pass
""",
    "tests/test_whole.py": """
import pytest

pytest.importorskip("another_package")
""",
    "examples.py": '"""Say.\n\n>>> 1 + 1  # doctest: +SKIP\n3\n"""\n',
}
#: Why a test of these fails.
WHY = "Under CI no test is skipped|Timeout|Image file not found|end differently without extras"
LACK = {"test_needs_a_package", "test_needs_an_extra", "tests.test_whole"}
OTHER = {"test_stops", "test_marked", "test_of_nothing[NOTSET]", "test_with_a_fixture", "examples"}


#: A process that has loaded pytest, most of the time of a run: each run is in a fork of it.
RUNS = """
import json, os, sys

import pytest, xdist.plugin
from _pytest.config import get_config

get_config()  # loads what every run needs, and registers it with no other
for line in sys.stdin:
    folder, arguments, variables = json.loads(line)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.chdir(folder)
        sys.path.insert(0, folder)
        os.environ.update(variables)
        os._exit(pytest.main(arguments))
    os.waitpid(child, 0)
    print(flush=True)
"""


@pytest.fixture(scope="module")
def pytests() -> Iterator[subprocess.Popen[str]]:
    """Start a process that runs pytest for each line that it is given."""
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", RUNS],
        env={**os.environ, **alone},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def ends(tmp_path: Path, pytests: subprocess.Popen[str]) -> Ends:
    """Return what runs files under the conftest of these tests and says how each test ended."""
    (tmp_path / "tests").mkdir()
    shutil.copy(CONFTEST, tmp_path)

    def call(files: dict[str, str], *options: str, ci: str = "") -> dict[str, set[str]]:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        arguments = [
            *("-p", "xdist", "-p", "pytest_timeout", "-p", "no:cacheprovider"),
            *("--doctest-modules", "--junitxml=out.xml", "--continue-on-collection-errors"),
            *files,
            *options,
        ]
        (tmp_path / "out.xml").unlink(missing_ok=True)
        assert pytests.stdin is not None
        assert pytests.stdout is not None
        print(json.dumps([str(tmp_path), arguments, {"CI": ci}]), file=pytests.stdin, flush=True)
        assert pytests.stdout.readline() == "\n"
        found: dict[str, set[str]] = {"passed": set(), "skipped": set(), "failed": set()}
        for case in ET.parse(tmp_path / "out.xml").iter("testcase"):
            for how in case:
                if how.get("type") == "pytest.xfail":
                    continue
                assert how.tag == "skipped" or re.search(WHY, str(how.text))
                found["skipped" if how.tag == "skipped" else "failed"].add(str(case.get("name")))
            if not len(case):
                found["passed"].add(str(case.get("name")))
        return found

    return call


@pytest.mark.core
def test_a_skip_is_a_skip_on_a_machine_of_ones_own(ends: Ends) -> None:
    found = ends(SKIPS, "-n", "0")
    assert found == {"passed": {"test_passes"}, "skipped": OTHER | LACK, "failed": set()}


@pytest.mark.core
def test_a_skip_fails_under_ci(ends: Ends) -> None:
    # In a worker, as `make test` runs them.
    found = ends(SKIPS, "-n", "1", ci="true")
    assert found == {"passed": {"test_passes"}, "skipped": set(), "failed": OTHER | LACK}


@pytest.mark.core
def test_a_missing_package_may_skip_where_the_extras_are_left_out(ends: Ends) -> None:
    found = ends(SKIPS, "-n", "0", "--without-extras", ci="true")
    assert found == {"passed": {"test_passes"}, "skipped": LACK, "failed": OTHER}


@pytest.mark.core
def test_tests_of_third_party_data_may_skip_where_the_checkout_is_alone(ends: Ends) -> None:
    test = """
import pytest

def test_reads_them():
    pytest.skip("the third-party data folder (../shared/data) is not beside this checkout")
"""
    data = {"tests/test_data.py": test}
    assert ends(data, "-n", "0", ci="true")["failed"] == {"test_reads_them"}
    assert ends(data, "-n", "0", "--without-shared", ci="true")["skipped"] == {"test_reads_them"}


HANG = """
import time
import pytest

def test_hangs():
    time.sleep(30)

@pytest.mark.slow
def test_takes_long():
    time.sleep(1.5)
"""


@pytest.mark.core
def test_what_hangs_fails_and_slow_tests_may_take_longer(ends: Ends) -> None:
    found = ends({"tests/test_hang.py": HANG}, "-n", "0", "-o", "timeout=1")
    assert found == {"passed": {"test_takes_long"}, "skipped": set(), "failed": {"test_hangs"}}


PARTS = """
import pytest

@pytest.fixture
def shared_data():
    return 1

def test_fast():
    pass

@pytest.mark.slow
@pytest.mark.parametrize("case", range(7))
def test_cases(case):
    pass

@pytest.mark.slow
def test_of_data(shared_data):
    pass
"""


@pytest.mark.core
def test_each_case_of_a_slow_test_is_in_one_of_the_parts(ends: Ends) -> None:
    each = [
        ends({"tests/test_parts.py": PARTS}, "-n", "0", "--part", f"{k}/3")["passed"]
        for k in (1, 2, 3)
    ]
    in_all = {"test_fast", "test_of_data"}
    assert set.intersection(*each) == in_all
    cases = [part - in_all for part in each]
    assert sorted(map(len, cases)) == [2, 2, 3]
    assert set.union(*cases) == {f"test_cases[{case}]" for case in range(7)}


@pytest.mark.core
def test_with_many_examples_all_tests_are_in_one_of_the_parts(ends: Ends) -> None:
    profile = "import hypothesis\n\nhypothesis.settings.register_profile('thorough')\n"
    files = {
        "tests/conftest.py": profile,
        "tests/test_parts.py": PARTS.replace("range(7)", "range(1)"),
    }
    plugin = ("-p", "_hypothesis_pytestplugin", "--hypothesis-profile=thorough")
    thorough = (*plugin, "-n", "0", "--part")
    each = [ends(files, *thorough, f"{k}/2")["passed"] - {"test_of_data"} for k in (1, 2)]
    assert set.union(*each) == {"test_fast", "test_cases[0]"}
    assert not set.intersection(*each)


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert 0 < float(pytestconfig.getini("timeout")) < 900
    # The thread of the other method ends the whole process.
    assert pytestconfig.getini("timeout_method") == "signal"


@pytest.mark.extras
def test_an_image_without_a_baseline_fails(ends: Ends) -> None:
    pytest.importorskip("pytest_mpl")
    text = """
import pytest

@pytest.mark.mpl_image_compare
def test_image():
    from matplotlib.figure import Figure
    return Figure()
"""
    found = ends({"tests/test_image.py": text}, "-p", "pytest_mpl.plugin")
    assert found == {"passed": set(), "skipped": set(), "failed": {"test_image"}}


ASKING = """
import importlib
import importlib.util
import subprocess
import sys
import pytest

def test_imports():
    with pytest.raises(ImportError):
        import psycopg.nothing

def test_imports_by_name():
    with pytest.raises(ImportError):
        importlib.import_module("psycopg.nothing")

def test_looks():
    importlib.util.find_spec("psycopg")

@pytest.fixture(scope="module")
def shared():
    importlib.util.find_spec("psycopg")

def test_uses_what_is_shared(shared):
    pass

def test_uses_it_again(shared):
    pass

def test_starts():
    subprocess.run([sys.executable, "-c", ""], check=True)

@pytest.mark.core
def test_core():
    subprocess.run([sys.executable, "-c", ""], check=True)

@pytest.mark.extras
def test_extras():
    importlib.util.find_spec("psycopg")

def test_starts_something_else():
    subprocess.run(["true"], check=True)

def test_imports_something_else():
    import json
"""


@pytest.mark.core
def test_what_asks_for_an_extra_is_marked(ends: Ends) -> None:
    found = ends({"tests/test_asking.py": ASKING}, "-n", "0")
    unmarked = {"test_imports", "test_imports_by_name", "test_looks", "test_starts"}
    unmarked |= {"test_uses_what_is_shared", "test_uses_it_again"}
    marked = {"test_core", "test_extras"}
    other = {"test_starts_something_else", "test_imports_something_else"}
    assert found == {"passed": marked | other, "skipped": set(), "failed": unmarked}


def test_all_extras_are_watched() -> None:
    text = (CONFTEST.parent / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    names = {"scikit-learn": "sklearn", "xgboost-cpu": "xgboost"}
    needed = {
        re.split(r"[\[<>=]", need)[0]
        for extra, needs in extras.items()
        # Tools for the documentation and for work on errcomp: it imports none of them.
        if extra not in ("docs", "dev")
        for need in needs
    } - {"errcomp"}
    conftest = runpy.run_path(str(CONFTEST))
    assert {names.get(need, need) for need in needed} <= conftest["EXTRAS"]
