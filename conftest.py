"""What holds for every test and for every example in a docstring.

* Under CI (where the variable CI is set) a test that is skipped fails, but for `ALLOWED_SKIPS`.
* Images are compared wherever they are drawn.
* A slow test may take longer than others before it counts as hanging.
* ``--part K/N`` runs one of N parts of the slow tests, and of all with many more examples: CI runs
  another eighth of them each time.
* `make core` runs the tests that may end differently without the extras: those marked ``core``. A
  test that asks for an extra has that mark, or ``extras`` if it cannot do without.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest

#: What a test may say when it is skipped under CI, the option of pytest that allows it, and why.
#: Elsewhere a skip remains a skip.
ALLOWED_SKIPS = (
    (
        r"could not import '|pip install 'errcomp\[",
        "--without-extras",
        "the environment of `make core` lacks every package beyond the core dependencies",
    ),
    (
        "third-party data folder",
        "--without-shared",
        "the hosted workflow checks out the repository alone, without ../shared",
    ),
)
#: Fixtures of data and servers that CI must try each time: their slow tests are in every part.
ALWAYS = frozenset(("shared_data", "server", "place"))
#: Seconds that a slow test may take; what any other may take stands in pyproject.toml.
SLOW_LIMIT = 900
#: Examples of docstrings that take seconds: they run with the slow tests.
SLOW_EXAMPLES = frozenset(
    [
        "errcomp.claims.board.Board",
        "errcomp.claims.board.Board.view",
        "errcomp.decisions.compare",
        "errcomp.decisions.compare_kinds",
        "errcomp.decisions.kinds.DecisionKinds.view",
        "errcomp.decisions.kinds.Kind.of",
        "errcomp.decisions.results.Decisions.table",
        "errcomp.decisions.results.Decisions.view",
        "errcomp.halflife.gate.dry_run.dry_run",
        "errcomp.halflife.gate.planning.GatePlan.view",
        "errcomp.halflife.gate.planning.plan_gate",
    ]
)
#: What the extras install, as it is imported.
EXTRAS = frozenset(
    [
        *("arviz", "dask", "distributed", "duckdb", "joblib", "matplotlib", "nutpie", "pandas"),
        *("psycopg", "pyarrow", "pymc", "pyspark", "sklearn", "statsmodels", "xgboost"),
        *("fastexcel", "zstandard"),
    ]
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that allow skips."""
    for _, option, why in ALLOWED_SKIPS:
        parser.addoption(option, action="store_true", help=f"allow skips because {why}")
    told = "of the slow tests, or of all with the profile thorough, run part K of N"
    parser.addoption("--part", metavar="K/N", help=told)


# Before pytest-mpl looks at its option.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Compare images, and watch what tests ask for."""
    # Without the option a test of an image draws it and asserts nothing.
    if hasattr(config.option, "mpl") and config.option.mpl_generate_path is None:
        config.option.mpl = True
    if not config.getoption("--without-extras"):
        config.pluginmanager.register(Asking())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow examples, give slow tests more time, and leave out those of other parts."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT))
    if part := config.getoption("--part"):
        every = config.getoption("--hypothesis-profile", None) == "thorough"
        slow = [item for item in items if every or item.get_closest_marker("slow")]
        kept = _of_part(items, slow, *map(int, part.split("/")))
        left = set(items).difference(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = kept


def _of_part(
    items: list[pytest.Item], slow: list[pytest.Item], k: int, n: int
) -> list[pytest.Item]:
    """Return the items without the slow ones of other parts.

    The cases of a test take turns, so that each part has some of a test with many cases. Each case
    is in one part.
    """
    kept, seen, takes_turns = [], Counter[str](), set(slow)
    for item in items:
        if item not in takes_turns or ALWAYS.intersection(_fixtures(item)):
            kept.append(item)
            continue
        test = item.nodeid.partition("[")[0]
        if (zlib.crc32(test.encode()) + seen[test]) % n == k % n:
            kept.append(item)
        seen[test] += 1
    return kept


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return getattr(item, "fixturenames", ())


def pytest_collection_finish() -> None:
    """Spare the collector of garbage all that the tests themselves are made of."""
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Let a test that is skipped fail under CI."""
    return _fail_if_skipped((yield), item.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    """Let a file that is skipped as a whole fail under CI."""
    return _fail_if_skipped((yield), collector.config)


def _fail_if_skipped(report: Any, config: pytest.Config) -> Any:
    # A test that is expected to fail is reported as skipped, too.
    if not (os.environ.get("CI") and report.skipped) or hasattr(report, "wasxfail"):
        return report
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    allowed = [reason for reason, option, _ in ALLOWED_SKIPS if config.getoption(option)]
    if not any(re.search(reason, said) for reason in allowed):
        report.outcome = "failed"
        report.longrepr = (
            f"{said}. Under CI no test is skipped: install what it needs in .ci/run, or add the "
            "skip to ALLOWED_SKIPS in conftest.py with the reason"
        )
    return report


class Asking:
    """Notes what a test asks for that an environment without extras lacks, and looks for its mark.

    A test can end differently there only if it imports an extra, looks whether it is there, or
    starts another Python, which may.
    """

    def __init__(self) -> None:
        self.asked: set[str] | None = None
        # By the fixtures that several tests share, whichever of them is first.
        self.shared: dict[Any, set[str]] = {}
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(builtins, "__import__", self.noting(builtins.__import__))
        self.patch.setattr(importlib, "import_module", self.noting(importlib.import_module))
        self.patch.setattr(importlib.util, "find_spec", self.noting(importlib.util.find_spec))
        start = subprocess.Popen.__init__

        def started(process: Any, args: Any, *more: Any, **options: Any) -> None:
            if self.asked is not None and sys.executable in str(args):
                self.asked.add("starts another Python")
            start(process, args, *more, **options)

        self.patch.setattr(subprocess.Popen, "__init__", started)

    def noting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, which notes the extras among the names that it is given."""

        def noted(name: str, *more: Any, **options: Any) -> Any:
            if self.asked is not None:
                package = name.partition(".")[0]
                # Thousands of imports of one package are one question, and a frame is long.
                known = package not in EXTRAS or f"asks for {package}" in self.asked
                if not known and _by_a_function(sys._getframe(1)):
                    self.asked.add(f"asks for {package}")
            return real(name, *more, **options)

        return noted

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Any:
        self.asked = None if _is_marked(item) else set()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        before = self.asked
        if fixturedef.scope != "function":
            self.asked = self.shared[fixturedef] = set()
        try:
            return (yield)
        finally:
            self.asked = before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        result = yield
        if not isinstance(item, pytest.Function) or self.asked is None:
            return result
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        shared = (self.shared.get(one, set()) for group in fixtures for one in group)
        asked, self.asked = sorted(self.asked.union(*shared)), None
        if asked:
            pytest.fail(
                f"this test {', '.join(asked)}, so it may end differently without extras. "
                "Mark it `core` if it passes without them, or `extras` if it needs one",
                pytrace=False,
            )
        return result

    def pytest_runtest_teardown(self) -> None:
        self.asked = None

    def pytest_unconfigure(self) -> None:
        self.patch.undo()


def _is_marked(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("extras", "core"))


def _by_a_function(frame: FrameType | None) -> bool:
    """Tell whether a test asks, not a module that is loaded once, by whichever test is first."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("_pytest."):
            return True
        if frame.f_code.co_name == "<module>":
            return name.startswith("tests.")
        frame = frame.f_back
    return True
