"""Change errcomp in a few hundred places, one at a time, and count the changes that tests notice.

    python tests/mutants.py                          # 200 mutants, of seed 1
    python tests/mutants.py --seed 2 --sample 60
    python tests/mutants.py --since main~3           # of lines changed since then

The operators are those of cosmic-ray. A line of the package is drawn, and a mutation of it. Nothing
is mutated that is no behaviour: annotations, what only type checkers run (protocols, too), guards
(`frozen`, `eq`, `strict` of zip, …), `@cache`, the wording of errors and warnings (strings within
`raise` and `warn`), and what `EQUIVALENT` lists.

A mutant is killed if a fast test of its package fails: of the folder in `tests/` that mirrors it,
of a file that is named after it, or an example in its docstrings. Only tests that run the mutated
statement are asked; of what importing runs, such as constants, those of files that name the module,
too. A record of all fast tests says which; it is made where it is missing or older than the
package. If they pass, all fast tests in their files are asked, and the stored results of the
package. Fast tests of other packages are asked what they say to survivors, and counted apart.

The working tree is copied, never changed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import multiprocessing
import os
import queue
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "build" / "mutants" / "record"
FAST = "not slow and not distributed and not browser"
#: Tests of rooms and modules without a folder or file of their name: words of the tests' names.
ALSO = {
    "codec": ("documents",),
    "datasets": ("inputs",),
    "errors": ("test",),
    "system": ("files", "folders", "jobs", "limits", "strict"),
}
#: Arguments that change nothing in a correct program: they end a wrong one early, or cost time.
_GUARDS = ("slots", "frozen", "eq", "strict", "copy", "check_finite")
#: Any change of a line.
_ANY = "*"
#: Mutants that no test can kill: file, line, mutated line (both stripped) or any, and why.
EQUIVALENT: tuple[tuple[str, str, str, str], ...] = (
    (
        "errcomp/stats/mixtures.py",
        "square = mixtures.sums(mixtures.error**2 + (mixtures.size - mean[mixtures.mixture]) ** 2)",
        "square = mixtures.sums(mixtures.error** 3 + (mixtures.size - mean[mixtures.mixture]) ** 2)",  # noqa: E501
        "the first guess of a root that is then found to the last digit",
    ),
    (
        "errcomp/calibration/estimators/shared/spread.py",
        "break",
        "continue",
        "the iteration has converged: further rounds change nothing",
    ),
    (
        "errcomp/claims/search/__init__.py",
        "counts = np.bincount(candidates.complexity[verified], minlength=1).cumsum()",
        "counts = np.bincount(candidates.complexity[verified], minlength= 2).cumsum()",
        "a cumulative sum repeats its last value, and is read up to its end",
    ),
    (
        "errcomp/halflife/steps/scan.py",
        "step = max(1, _BLOCK // n)",
        "step = max(1, _BLOCK % n)",
        "rows computed at a time: any number gives the same",
    ),
    (
        "errcomp/readers/core/packed.py",
        '"BinaryIO", io.BufferedReader(_Unpacked(file, content, kind, broken, error), 1 << 18)',
        _ANY,
        "the size of a buffer",
    ),
    (
        "errcomp/cli/__init__.py",
        "gc.set_threshold(50_000, 20, 20)",
        _ANY,
        "how often memory is collected",
    ),
    (
        "errcomp/propagation/graph/schedule.py",
        "_COUNTED = 2**20",
        _ANY,
        "from here on another way to the same numbers is faster",
    ),
    (
        "errcomp/propagation/sums/variance.py",
        "_DISTINCT = 256",
        _ANY,
        "up to here another way to the same numbers is faster",
    ),
    (
        "errcomp/halflife/gate/monitor.py",
        "panel.version[self._order], np.arange(len(panel.versions) + 1)",
        "panel.version[self._order], np.arange(len(panel.versions) + 2)",
        "one bound more than is read",
    ),
)
#: Seconds of the processor for one test, which a busy machine does not stretch, and seconds for all
#: tests of one mutant.
TEST_LIMIT, LIMIT = 60, 1200
#: Bytes that a mutant may fill.
MEMORY = 8 << 30
#: Imported once, as that takes longer than most tests: every mutant gets a copy of the process.
PRELOADED = [
    *("pytest", "hypothesis", "numpy", "scipy.stats", "scipy.optimize", "scipy.sparse", "polars"),
    *("pandas", "narwhals", "sqlalchemy", "msgspec", "yaml", "rich.table", "markdown_it"),
    *("matplotlib.pyplot", "pytest_mpl.plugin", "pytest_cov.plugin", "xdist.plugin"),
    *("duckdb", "pyarrow", "jsonschema", "statsmodels.api"),
]


@dataclass(frozen=True)
class Mutant:
    """One changed place."""

    file: str
    line: int
    operator: str
    text: str

    @property
    def diff(self) -> str:
        old, new = source(self.file), self.text
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if line[:3] not in ("---", "+++"))


@dataclass
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    killed: bool
    test: str = ""
    asked: int = 0
    #: The test of another package that killed it.
    elsewhere: str = ""


# Where and how to mutate


def lines_of(since: str) -> list[tuple[str, int]]:
    """Return file and number of each line of the package; of those changed since a commit."""
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "errcomp").rglob("*.py"))
    if not since:
        return [(file, at) for file in files for at in range(1, source(file).count("\n") + 1)]
    command = ["git", "diff", "-U0", "--no-prefix", since, "--", "errcomp/*.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines, file = [], ""
    for line in done.stdout.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ ")
        elif line.startswith("@@ "):
            start, _, n = line.split()[2].removeprefix("+").partition(",")
            lines += [(file, at) for at in range(int(start), int(start) + int(n or 1))]
    return [line for line in lines if line[0] in files]


def sample(lines: list[tuple[str, int]], n: int, seed: int) -> Iterator[Mutant]:
    """Draw from these lines, each with one of its mutations."""
    rng = random.Random(seed)
    rng.shuffle(lines)
    for file, at in lines:
        here = places(file, at)
        if not here:
            continue
        where = rng.choice(sorted(here))
        mutant = mutated(file, where, rng.choice(here[where]))
        if mutant is not None and not _equivalent(mutant):
            yield mutant
            n -= 1
            if not n:
                return


@cache
def source(file: str) -> str:
    """Return the text of a file."""
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def operators() -> dict[str, Any]:
    """Return the operators of cosmic-ray that need no arguments."""
    from cosmic_ray import plugins

    kinds = {name: plugins.get_operator(name) for name in plugins.operator_names()}
    return {name: kind() for name, kind in kinds.items() if not kind.arguments()}


@cache
def nodes(file: str) -> list[Any]:
    """Return the nodes of a file, as cosmic-ray counts them."""
    from cosmic_ray.ast import ast_nodes, get_ast

    return list(ast_nodes(get_ast(source(file))))


def places(file: str, line: int) -> dict[Any, list[str]]:
    """Return where a line can be mutated, and the operators that do so."""
    found: dict[Any, list[str]] = {}
    near = [node for node in nodes(file) if node.start_pos[0] <= line <= node.end_pos[0]]
    for name, operator in operators().items():
        for node in near:
            for span in operator.mutation_positions(node):
                if span[0][0] == line:
                    found.setdefault(span, []).append(name)
    skipped = _no_behaviour(file) if found else []
    return {
        span: names
        for span, names in found.items()
        if not any(start <= span[0] < end for start, end in skipped)
    }


@cache
def _no_behaviour(file: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the spans of annotations, what only type checkers run, messages and guards."""
    nodes: list[ast.AST] = []
    for node in ast.walk(ast.parse(source(file))):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            nodes += [node.test, *node.body]
        elif isinstance(node, ast.Raise) or _warns(node):
            nodes += [inner for inner in ast.walk(node) if isinstance(inner, ast.JoinedStr)]
        elif isinstance(node, ast.FunctionDef):
            nodes += [node.returns] if node.returns is not None else []
            nodes += [one for one in node.decorator_list if ast.unparse(one) == "cache"]
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            nodes.append(node.annotation)
        elif isinstance(node, ast.ClassDef):
            protocol = any(ast.unparse(base).startswith("Protocol") for base in node.bases)
            nodes += node.body if protocol else []
            options = [one for one in node.decorator_list if isinstance(one, ast.Call)]
            nodes += [word for one in options for word in one.keywords if word.arg in _GUARDS]
        elif isinstance(node, ast.Call):
            nodes += [word for word in node.keywords if word.arg in _GUARDS]
    return [_span(node) for node in nodes]


def _warns(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "warn"


def _span(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def mutated(file: str, span: Any, name: str) -> Mutant | None:
    """Make one mutation; None where it gives the same text or no Python."""
    from cosmic_ray.mutating import mutate_code

    operator = operators()[name]
    spans = [one for node in nodes(file) for one in operator.mutation_positions(node)]
    try:
        # The operator of exceptions replaces no dotted name.
        new = mutate_code(source(file), operator, spans.index(span))
        same = ast.dump(ast.parse(new)) == ast.dump(ast.parse(source(file)))
    except (SyntaxError, AttributeError):
        return None
    return None if same else Mutant(file, span[0][0], name.rpartition("/")[2], new)


def _equivalent(mutant: Mutant) -> bool:
    lines = mutant.diff.splitlines()
    pairs = {(mutant.file, lines[i][1:].strip(), lines[-1][1:].strip()) for i in range(len(lines))}
    pairs |= {(file, old, _ANY) for file, old, _ in pairs}
    return any((file, old, new) in pairs for file, old, new, _ in EQUIVALENT)


# Which tests to ask


def record() -> None:
    """Note the lines that each test runs: of all where there is no note, else of the new ones."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    files = newer((ROOT / "tests").rglob("test_*.py")) if is_fresh() else ["tests", "errcomp"]
    if not files:
        return
    new, settings = RECORD.with_name("new"), RECORD.with_name("coveragerc")
    settings.write_text(f"[run]\nsource = errcomp\nrelative_files = true\ndata_file = {new}\n")
    command = ["-n", "2", "--dist", "worksteal", "-m", FAST, *files, "--ignore=tests/docs"]
    command += ["--doctest-modules", "--cov", f"--cov-config={settings}"]
    command += ["--cov-context=test", "--cov-report="]
    done = subprocess.run([*_pytest(), *command], cwd=ROOT, env=_environment(ROOT), check=False)
    if done.returncode:
        sys.exit("tests fail without any mutation: mend them first")
    if is_fresh():
        _add(new)
    else:
        new.replace(RECORD)


def _add(new: Path) -> None:
    from coverage import CoverageData

    known, added = CoverageData(str(RECORD)), CoverageData(str(new))
    known.read()
    added.read()
    known.update(added)
    known.write()
    new.unlink()
    RECORD.touch()


def is_fresh() -> bool:
    """Say whether there is a record that is newer than all of the package."""
    return RECORD.exists() and not newer((ROOT / "errcomp").rglob("*.py"))


def newer(files: Iterable[Path]) -> list[str]:
    """Return the files that were changed since the record was made."""
    made = RECORD.stat().st_mtime
    return sorted(str(path.relative_to(ROOT)) for path in files if path.stat().st_mtime > made)


@cache
def contexts(file: str) -> dict[int, list[str]]:
    """Return the tests that run each line of a file."""
    from coverage import CoverageData

    data = CoverageData(str(RECORD))
    data.read()
    return {
        line: [context.partition("|")[0] for context in tests if context]
        for line, tests in data.contexts_by_lineno(file).items()
    }


def is_own(test: str, file: str) -> bool:
    """Say whether a test is of the package of a file."""
    room = Path(file).parts[1].removesuffix(".py").strip("_")
    path = Path(test.partition("::")[0])
    if path.parts[0] == "errcomp":
        return path.parts[1].removesuffix(".py") == room
    # What people see is tested beside what draws and writes it, too.
    own = {room, *ALSO.get(room, ()), *(("report",) if "view" in Path(file).parts else ())}
    return not own.isdisjoint((*path.stem.split("_"), path.parts[1]))


def tests_for(mutant: Mutant) -> tuple[list[str], list[str]]:
    """Return the tests that run the statement of a mutant: of its package, and others."""
    start, end, at_import = statement(mutant.file, mutant.line)
    asked = {
        test
        for line, tests in contexts(mutant.file).items()
        if at_import or start <= line <= end
        for test in tests
    }
    if at_import:
        # Whole files: tests that only look at constants run no line of the package.
        asked |= {test for test in test_files() if names_module(test, mutant.file)}
    own = {test for test in asked if is_own(test, mutant.file)}
    return sorted(own), sorted(asked - own)


@cache
def test_files() -> frozenset[str]:
    """Return the files with tests, and those with examples."""
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "errcomp").rglob("*.py")]
    return frozenset(str(path.relative_to(ROOT)) for path in files)


@cache
def names_module(test_file: str, file: str) -> bool:
    """Say whether a file of tests imports a module, or names from it."""
    path = ROOT / test_file
    stem = file.removesuffix("/__init__.py").removesuffix(".py")
    dotted, word = stem.replace("/", "."), stem.rpartition("/")[2]
    if test_file == file or not path.exists():
        return test_file == file
    return dotted in (content := source(test_file)) or f"import {word}\n" in content


def statement(file: str, line: int) -> tuple[int, int, bool]:
    """Return first and last line of the statement, and whether importing the module runs it."""
    tree = ast.parse(source(file))
    found, at_import = (line, line), True
    pending: list[tuple[ast.AST, bool]] = [(tree, True)]
    while pending:
        node, outside = pending.pop()
        for child in ast.iter_child_nodes(node):
            inside = isinstance(node, ast.FunctionDef) and child in node.body
            pending.append((child, outside and not inside))
            if isinstance(child, ast.stmt):
                decorators = getattr(child, "decorator_list", [])
                first = min([child.lineno, *(one.lineno for one in decorators)])
                last = child.end_lineno or first
                if first <= line <= last:
                    body = getattr(child, "body", None)
                    head = body[0].lineno - 1 if body else last
                    found = (first, max(head, first)) if line <= head else (line, line)
                    at_import = outside and not inside
    return *found, at_import


# How to ask them


def judge(mutant: Mutant, tree: Path) -> Outcome:
    """Run the tests of a mutant in a copy of the tree, up to the first that fails."""
    asked, others = tests_for(mutant)
    target = tree / mutant.file
    target.write_text(mutant.text, encoding="utf-8")
    try:
        for some in (asked, _beside(asked, mutant.file)):
            code, last = _run(tree, some, mutant.file) if some else (0, "")
            # Without a test that failed, the mutant cannot be imported.
            if code not in (0, 5):
                return Outcome(mutant, True, last or some[0], len(asked))
        code, last = _run(tree, others, mutant.file) if others else (0, "")
    finally:
        shutil.copy2(ROOT / mutant.file, target)
    return Outcome(mutant, False, "", len(asked), last if code not in (0, 5) else "")


def _beside(asked: Sequence[str], file: str) -> list[str]:
    """Return the files of these tests, and the stored results of the package.

    What a fixture of several tests runs, or a cache keeps, is only known of the first test.
    """
    room, name = Path(file).parts[1], f"test_{Path(file).stem.strip('_')}"
    files = {test.partition("::")[0] for test in asked} | {f"tests/{room}/test_stored.py"}
    files |= {one for one in test_files() if Path(one).stem == name and is_own(one, file)}
    return sorted(one for one in files if (ROOT / one).exists())


def _run(tree: Path, asked: Sequence[str], file: str) -> tuple[int, str]:
    """Return the exit status of pytest, and the last test, which failed where one did."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as folder:
        last = Path(folder) / "last"
        process = context.Process(target=_ask, args=(tree, asked, file, folder))
        process.start()
        process.join(LIMIT)
        code = process.exitcode
        # What its tests have started and left running goes with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
        if code is None:
            return 0, f"undecided after {LIMIT} s"
        return code, last.read_text(encoding="utf-8") if last.exists() else ""


def _ask(tree: Path, asked: Sequence[str], file: str, folder: str) -> None:
    """Run tests in a copy of the tree; leave with the exit status of pytest."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os.chdir(tree)
    os.environ.update(_environment(tree), TMPDIR=folder)
    sys.path.insert(0, str(tree))
    sys.dont_write_bytecode = True

    import pytest

    files = sorted({test.partition("::")[0] for test in asked})
    files = [name for name in files if Path(name).exists()]
    # Asserts are left as they are: it is quicker, and some of what is preloaded has some.
    options = ["-p", "no:cacheprovider", "-x", "-q", "--tb=no", "--assert=plain", "-m", FAST]
    options += ["--mpl", "--doctest-modules", "-o", "timeout=0"]
    plugin = _Asked(frozenset(asked), file, Path(folder) / "last")
    os._exit(int(pytest.main([*options, *files], plugins=[plugin])))


@dataclass(frozen=True)
class _Asked:
    """Keeps the tests and whole files that are asked, those named after the mutated module first.

    A test that is gone is not asked; named on the command line it would end the run with an error.
    """

    tests: frozenset[str]
    file: str
    last: Path

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        words = set(Path(self.file).with_suffix("").parts[2:])

        def rank(item: Any) -> bool:
            return words.isdisjoint(Path(item.nodeid.partition("::")[0]).stem.split("_"))

        def asked(item: Any) -> bool:
            return not self.tests.isdisjoint((item.nodeid, item.nodeid.partition("::")[0]))

        items[:] = sorted(filter(asked, items), key=rank)

    def pytest_runtest_setup(self, item: Any) -> None:
        self.last.write_text(item.nodeid, encoding="utf-8")
        signal.setitimer(signal.ITIMER_PROF, TEST_LIMIT)


def _pytest() -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]


def _environment(tree: Path) -> dict[str, str]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}


def copy(to: Path) -> Path:
    """Copy the files of the working tree, compiled, with what stands beside it."""
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tree = to / "errcomp"
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    if (ROOT.parent / "shared").exists():
        (to / "shared").symlink_to((ROOT.parent / "shared").resolve())
    compiling = [sys.executable, "-m", "compileall", "-q", "errcomp"]
    subprocess.run(compiling, cwd=tree, check=True)
    return tree


def judge_all(mutants: Iterable[Mutant], workers: int) -> list[Outcome]:
    """Judge mutants in as many copies of the tree as there are workers."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        trees: queue.Queue[Path] = queue.Queue()
        for i in range(workers):
            trees.put(copy(Path(folder) / str(i)))

        def one(mutant: Mutant) -> Outcome:
            tree = trees.get()
            try:
                outcome = judge(mutant, tree)
            finally:
                trees.put(tree)
            show(outcome)
            return outcome

        found = list(pool.map(one, mutants))
        _check(found, trees.get())
    return found


def _check(found: Sequence[Outcome], tree: Path) -> None:
    """Insist that the tests that killed mutants pass without any."""
    tests = sorted({one.test for one in found if one.killed})
    code, last = _run(tree, tests, "errcomp/__init__.py") if tests else (0, "")
    if code:
        sys.exit(f"{last or 'a test'} fails without any mutation: what it killed says nothing")


def show(outcome: Outcome) -> None:
    """Print what became of a mutant; what survived with the change."""
    mutant = outcome.mutant
    what = f"{mutant.file}:{mutant.line} {mutant.operator}"
    if outcome.killed:
        print(f"killed   {what} by {outcome.test}", flush=True)
    else:
        other = f", but not {outcome.elsewhere}" if outcome.elsewhere else ""
        print(f"SURVIVED {what}, {outcome.asked} tests{other}\n{mutant.diff}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample, judge, count."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sample", type=int, default=200, help="how many mutants (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--since", default="", help="only lines changed since this commit")
    parser.add_argument("--at-least", type=float, default=0.95, help="share to be killed (0.95)")
    parser.add_argument("--workers", type=int, default=2, help="copies tested at a time (2)")
    options = parser.parse_args(arguments)
    record()
    drawn = sample(lines_of(options.since), options.sample, options.seed)
    found = judge_all(drawn, options.workers)
    killed = sum(one.killed for one in found)
    elsewhere = sum(bool(one.elsewhere) for one in found)
    print(
        f"{killed} of {len(found)} mutants killed by fast tests of their package "
        f"({killed / len(found):.1%}), {elsewhere} more by other fast tests, seed {options.seed}"
    )
    return int(killed < options.at_least * len(found))


if __name__ == "__main__":
    sys.exit(main())
