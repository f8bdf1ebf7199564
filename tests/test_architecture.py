"""The house: arrows point one way, folders are small, the report knows no result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import errcomp

ROOT = Path(errcomp.__file__).parent
CHECKOUT = Path(__file__).resolve().parents[1]

#: Rooms from the ground up: each imports only rooms named before it.
ROOMS = (
    *("errors", "system", "codec", "results", "stats"),
    *("tables", "metrics", "readers", "datasets", "report"),
    *("measurements", "caveats", "summary"),
    *("claims", "propagation", "calibration", "planning", "decisions", "halflife"),
    "drivers",
    *("documents", "_moved", "", "cli", "__main__"),
)
#: Packages for different questions: they meet in the rooms below them. Whether the measured side
#: is fit is a question beneath the others: an audit asks it.
QUESTIONS = (
    *("claims", "propagation", "calibration", "planning", "decisions", "halflife"),
    "drivers",
)
#: Entries of a folder, and of the package itself and the list of commands.
MOST_ENTRIES, MOST_ROOMS = 16, 24


@cache
def modules() -> Mapping[str, Path]:
    """Return the file of every module of the package by its name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(name: str, *, typing: bool) -> tuple[str, ...]:
    """Return the modules that a module imports, at its head or within a function."""
    return tuple(one for one, for_types in every_import(name) if typing or not for_types)


@cache
def every_import(name: str) -> tuple[tuple[str, bool], ...]:
    """Return the modules that a module imports, and whether only for types."""
    return tuple(_imported(name))


#: What is imported only for types, and a statement that imports modules of the package. No
#: formatted module has such a line in another place than a statement.
FOR_TYPES = re.compile(r"^( *)if TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", re.MULTILINE)
IMPORT = re.compile(
    r"^ *((?:from (?:errcomp\b|\.)[\w.]* import (?:\([^)]*\)|.*)|import errcomp\b.*))", re.MULTILINE
)


def _imported(name: str) -> Iterator[tuple[str, bool]]:
    text = modules()[name].read_text(encoding="utf-8")
    for_types = "".join(found[0] for found in FOR_TYPES.finditer(text))
    for part, typing in ((FOR_TYPES.sub("", text), False), (for_types, True)):
        statements = ast.parse("\n".join(IMPORT.findall(part))).body
        targets = [one for node in statements for one in _targets(name, node)]
        yield from ((one, typing) for one in targets if one in modules() and one != name)


def _targets(name: str, node: ast.stmt) -> list[str]:
    """Return what a statement imports: modules where there are such, not names within them."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert isinstance(node, ast.ImportFrom)
    assert not node.level, f"{name}: imports are absolute"
    # The version is no arrow: it is all that the front door has of its own.
    names = [alias.name for alias in node.names if alias.name != "__version__"]
    whole = (f"{node.module}.{name}" for name in names)
    return [one if one in modules() else str(node.module) for one in whole]


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of names that lead back to themselves (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            at = stack.index(name)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def room(name: str) -> str:
    """Return the room that a module stands in; nothing for the front door."""
    return [*name.split("."), ""][1]


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"d", "f"}, "f": {"e"}}
    assert circles(graph) == [["a", "b", "c"], ["e", "f"]]


def test_no_module_leads_back_to_itself() -> None:
    assert circles({name: set(imported(name, typing=False)) for name in modules()}) == []


def test_no_room_leads_back_to_itself_even_for_types() -> None:
    graph: dict[str, set[str]] = {room(name): set() for name in modules()}
    for name in modules():
        graph[room(name)] |= {room(one) for one in imported(name, typing=True)} - {room(name)}
    assert circles(graph) == []


def test_arrows_point_down() -> None:
    assert sorted({room(name) for name in modules()}) == sorted(ROOMS)
    up = [
        f"{name} imports {one}"
        for name in modules()
        for one in imported(name, typing=True)
        if ROOMS.index(room(one)) > ROOMS.index(room(name))
    ]
    assert up == []


def test_questions_do_not_import_each_other() -> None:
    across = [
        f"{name} imports {one}"
        for name in modules()
        if room(name) in QUESTIONS
        for one in imported(name, typing=True)
        if room(one) in QUESTIONS and room(one) != room(name)
    ]
    assert across == []


def folders() -> list[Path]:
    """Return the folders of the package, without what Python leaves in them."""
    found = [ROOT, *(path for path in sorted(ROOT.rglob("*")) if path.is_dir())]
    # The wheel holds the datasets as well, which are no rooms.
    return [path for path in found if not {"__pycache__", "_datasets"} & {*path.parts}]


@pytest.mark.parametrize("folder", folders(), ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_a_folder_can_be_read_at_a_glance(folder: Path) -> None:
    entries = {
        path.name
        for path in folder.iterdir()
        if path.name not in ("__init__.py", "__pycache__", "py.typed")
    }
    listed = folder in (ROOT, ROOT / "cli" / "commands")
    assert len(entries) <= (MOST_ROOMS if listed else MOST_ENTRIES)


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_what_newcomers_are_led_to_is_there(page: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    named = {path for path in re.findall(r"`([\w./]+(?:/|\.py))`", text) if "mysim" not in path}
    places = [ROOT, *(path for path in ROOT.iterdir() if path.is_dir())]
    missing = [
        path
        for path in named
        if not (CHECKOUT / path).exists() and not any((at / path).exists() for at in places)
    ]
    assert len(named) > 5
    assert missing == []
