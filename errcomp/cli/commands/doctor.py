"""Check the installation: Python, packages, extras, built-in tables, a known result."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from errcomp.cli.output import add_output_arguments, emit
from errcomp.cli.streams import progress, say
from errcomp.report.model import Column, Table, report_of

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {"doctor": ("errcomp doctor", "errcomp doctor --json")}

State = Literal["ok", "broken", "not installed", ""]
BROKEN: State = "broken"
#: Packages that have different names for installing and importing.
_MODULES = {
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "xgboost-cpu": "xgboost",
    "latex2mathml": "latex2mathml.converter",
}
#: Other names of the same package.
_ALSO = {"xgboost-cpu": "xgboost"}
#: Tools for work on errcomp itself: run, not imported.
_TOOLS = ("dev", "docs")
#: MAPE of NeuSight over its 146 configurations in the built-in table (9.99 %).
_KNOWN_MAPE = 0.09988448303761839
_TITLES = {
    "environment": "Environment",
    "package": "Required packages",
    "extra": "Extras",
    "dataset": "Built-in tables",
    "check": "A known result, recomputed",
}


def build(parser: Parser) -> None:
    """Add ``doctor``."""
    parser.description = (
        "Check Python, the packages, the extras and the built-in tables, and recompute a known "
        "result. Exits with 1 if something is broken; a missing extra does not count as broken."
    )
    add_output_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run the checks, and print the findings even if tables cannot be drawn."""
    from errcomp import __version__

    with progress("looking", quiet=args.json or not _can_draw()):
        findings = checkup()
    broken = [finding.name for finding in findings if finding.state == BROKEN]
    args.exit_code = 1 if broken else 0
    document = {
        "schema": "errcomp.doctor/1",
        "version": __version__,
        "ok": not broken,
        "rows": [finding.to_dict() for finding in findings],
    }
    last = f"Broken: {', '.join(broken)}." if broken else "All required parts work."
    if args.json or _can_draw():
        emit(args, document, report_of(*_tables(findings, last)))
        return
    for finding in findings:
        say(
            " ".join(filter(None, (f"{finding.name}:", finding.found, finding.state, finding.note)))
        )
    say(last)


def _can_draw() -> bool:
    """Say whether the package that draws tables can be imported."""
    try:
        import rich.console
        import rich.table  # noqa: F401
    except Exception:
        return False
    return True


def _tables(findings: Sequence[Finding], last: str) -> list[Table]:
    tables = []
    for group, title in _TITLES.items():
        rows = [finding.to_dict() for finding in findings if finding.group == group]
        if not rows:
            continue
        columns = [Column("Name", lambda row: row["name"], key=True)]
        for header in ("Found", "Needed", "State", "Note"):
            key = header.lower()
            if any(row[key] for row in rows):
                columns.append(Column(header, lambda row, key=key: row[key]))  # type: ignore[misc]
        tables.append(Table(title, columns, rows))
    return [*tables, Table(last, (), ())]


# The checks. Each is independent: one that raises becomes a finding, not a crash.


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: ``state`` is ok, broken, not installed (an extra) or empty (for information)."""

    group: str
    name: str
    found: str
    needed: str = ""
    state: State = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a row."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that errcomp needs, with the accepted versions, and the extra that needs it."""

    package: str
    versions: str
    extra: str


def checkup() -> list[Finding]:
    """Return all findings, whatever the state of the environment."""
    groups: Sequence[tuple[str, Callable[[], Iterator[Finding]]]] = (
        ("environment", _environment),
        ("package", _packages),
        ("extra", _extras),
        ("dataset", _datasets),
        ("check", _numerics),
    )
    findings: list[Finding] = []
    for group, look in groups:
        try:
            findings += look()
        except (Exception, SystemExit) as error:
            findings.append(Finding(group, group, "", "", BROKEN, _reason(error)))
    return findings


def _environment() -> Iterator[Finding]:
    from errcomp import __version__

    yield Finding("environment", "errcomp", __version__, note=str(Path(__file__).parents[2]))
    version = platform.python_version()
    enough = sys.version_info >= (3, 11)
    yield Finding(
        "environment", "Python", version, ">=3.11", "ok" if enough else BROKEN, sys.executable
    )
    yield Finding("environment", "platform", platform.platform())
    yield Finding("environment", "CPUs", _cpus())
    encoding = getattr(sys.stdout, "encoding", None) or "unknown"
    unicode = encoding.lower().replace("-", "").startswith("utf")
    note = (
        ""
        if unicode
        else "other characters are printed as escapes; to print them, set PYTHONIOENCODING=utf-8"
    )
    yield Finding("environment", "output encoding", encoding, note=note)
    if sys.stdout is not None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        note = "" if width >= 100 else "tables are up to 100 characters wide"
        yield Finding("environment", "terminal width", str(width), note=note)
    else:
        yield Finding("environment", "terminal width", "no terminal")
    writable = os.access(".", os.W_OK)
    note = "" if writable else "write to another folder with -o"
    access = "writable" if writable else "not writable"
    yield Finding("environment", "this folder", access, note=note)


def _cpus() -> str:
    """Say how many CPUs this process may use, out of how many."""
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    return str(total) if usable == total else f"{usable} of {total}"


def requirements() -> list[Requirement]:
    """Return the requirements of the installed package.

    Raises
    ------
    PackageNotFoundError
        errcomp runs from its source without being installed.
    """
    needed = []
    for text in metadata.requires("errcomp") or ():
        parts = re.match(r"\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?$", text)
        if parts is None or parts[1].lower() == "errcomp":
            continue
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", parts[3] or "")
        versions = parts[2].replace(" ", "")
        needed.append(Requirement(parts[1].lower(), versions, extra[1] if extra else ""))
    return needed


def _packages() -> Iterator[Finding]:
    try:
        needed = requirements()
    except metadata.PackageNotFoundError:
        note = "runs from source; install it with: pip install -e ."
        yield Finding("package", "errcomp", "not installed", "", BROKEN, note)
        return
    for need in needed:
        if not need.extra:
            version, problem = _version_and_problem(need, imported=True)
            state: State = BROKEN if problem else "ok"
            note = problem and f"{problem}; pip install '{need.package}{need.versions}'"
            yield Finding("package", need.package, version, need.versions, state, note)


def _extras() -> Iterator[Finding]:
    try:
        needed = [need for need in requirements() if need.extra]
    except metadata.PackageNotFoundError:
        return
    for extra in sorted({need.extra for need in needed}):
        lacking, broken, working = [], [], []
        for need in (need for need in needed if need.extra == extra):
            version, problem = _version_and_problem(need, imported=extra not in _TOOLS)
            if not problem:
                working.append(f"{need.package} {version}")
            elif version:
                broken.append(f"{need.package} {version} {problem}")
            else:
                lacking.append(need.package)
        command = f"pip install 'errcomp[{extra}]'"
        notes = [f"lacks {', '.join(lacking)}"] if lacking else []
        notes += [*broken, command] if lacking or broken else []
        state: State = BROKEN if broken else "not installed" if lacking else "ok"
        yield Finding("extra", extra, ", ".join(working), "", state, "; ".join(notes))


def _version_and_problem(need: Requirement, *, imported: bool) -> tuple[str, str]:
    """Return the version of a package (empty: not installed), and its problem (empty: none)."""
    version = next(
        (v for name in (need.package, _ALSO.get(need.package)) if name and (v := _version(name))),
        "",
    )
    if not version:
        return "", "not installed"
    if not satisfies(version, need.versions):
        return version, f"is not {need.versions}"
    if imported:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import_module(_MODULES.get(need.package, need.package.replace("-", "_")))
        except (Exception, SystemExit) as error:
            return version, f"cannot be imported ({_reason(error)})"
    return version, ""


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def satisfies(version: str, versions: str) -> bool:
    """Say whether a version is accepted; suffixes such as rc1 and +cpu are ignored.

    Examples
    --------
    >>> satisfies("1.26.4", ">=1.26"), satisfies("6.0", ">=5.28,<6"), satisfies("10.1", ">=9")
    (True, False, True)
    """
    have = _numbers(version)
    for part in filter(None, versions.split(",")):
        sign, _, wanted = re.match(r"([<>=!~]=?)(=?)(.*)", part).groups()  # type: ignore[union-attr]
        limit = _numbers(wanted)
        width = max(len(have), len(limit))
        a, b = (numbers + (0,) * (width - len(numbers)) for numbers in (have, limit))
        able = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
        if not able.get(sign, a >= b):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()


def _datasets() -> Iterator[Finding]:
    from errcomp import datasets

    for name in datasets.names():
        try:
            dataset = datasets.info(name)
        except (Exception, SystemExit) as error:
            yield Finding("dataset", name, "", "", BROKEN, _reason(error))
        else:
            summary = f"{dataset.rows:,} rows, checksum matches"
            yield Finding("dataset", name, summary, "", "ok")


def _numerics() -> Iterator[Finding]:
    """Recompute a known result."""
    from errcomp import datasets
    from errcomp.metrics import mape

    pairs = datasets.load("neusight").of_tool("neusight")
    value = mape(predicted=pairs.predicted, measured=pairs.measured)
    holds = abs(value / _KNOWN_MAPE - 1) < 1e-12
    yield Finding(
        "check",
        "MAPE of NeuSight over 146 pairs",
        f"{value:.2%}".replace("%", " %") if holds else repr(value),
        f"{_KNOWN_MAPE:.2%}".replace("%", " %") if holds else repr(_KNOWN_MAPE),
        "ok" if holds else BROKEN,
        "" if holds else "wrong result on this machine: reinstall NumPy, update the system",
    )


def _reason(error: BaseException) -> str:
    """Return the message of an error, in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
