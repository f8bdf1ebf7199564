"""Every test can fail: it asserts, expects an error or a warning, or calls a helper that does.

A test that ignores any warning does not fail at the one that matters.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent
#: What raises where something is not as it should be.
CHECKS = ("raises", "warns", "deprecated_call", "fail")
_CHECKED = ("check", "Constant(value=True)")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Found(NamedTuple):
    """What matters of a function of a file: the tree that it is read from is large."""

    name: str
    line: int
    #: Whether it checks something by itself.
    asserts: bool
    #: Names of what it calls, if it asserts nothing.
    called: frozenset[str]
    #: Whether it draws what is compared with an image.
    draws: bool


@cache
def read(path: Path) -> tuple[list[Found], list[tuple[str, set[str]]]]:
    """Return the functions of a file and the methods of its classes, and its imports from tests."""
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    images = {
        ast.unparse(line.targets[0])
        for line in (module.body if "mpl_image_compare" in text else ())
        if isinstance(line, ast.Assign) and "mpl_image_compare" in ast.unparse(line.value)
    }
    bodies = [module.body, *(one.body for one in module.body if isinstance(one, ast.ClassDef))]
    functions = [one for body in bodies for one in body if isinstance(one, Function)]
    imports = [
        (str(line.module), {alias.name for alias in line.names})
        for line in module.body
        if isinstance(line, ast.ImportFrom) and str(line.module).startswith("tests.")
    ]
    return [found(one, images) for one in functions], imports


def found(function: Function, images: set[str]) -> Found:
    marks = function.decorator_list if images else ()
    draws = any(ast.unparse(mark) in images for mark in marks)
    called, asserts = (frozenset[str](), True) if states(function) else inside(function)
    return Found(function.name, function.lineno, asserts, called, draws)


def states(function: Function) -> bool:
    """Tell whether a function has a statement that checks, or expects an error within ``with``."""
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.With):
            asked = (one.context_expr for one in node.items)
            if any(isinstance(one, ast.Call) and name_of(one) in CHECKS for one in asked):
                return True
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, ())
    return False


def name_of(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def inside(function: Function) -> tuple[frozenset[str], bool]:
    """Return the names of what a function calls, and whether one of the calls checks something."""
    names, checks = set(), False
    for one in ast.walk(function):
        if isinstance(one, ast.Call):
            names.add(name_of(one))
        elif isinstance(one, ast.keyword):
            # Of a process: that it ended well.
            checks |= (one.arg, ast.dump(one.value)) == _CHECKED
    checks |= any(name in CHECKS or name.startswith("assert_") for name in names)
    return frozenset(names), checks


def helpers(path: Path) -> list[Found]:
    """Return the functions that the tests of a file can call: its own, imported ones, fixtures."""
    own, imports = read(path)
    known = [*own]
    for folder in path.parents:
        if (folder / "conftest.py").exists():
            known += read(folder / "conftest.py")[0]
        if folder == TESTS:
            break
    for module, names in imports:
        source = TESTS.parent / f"{module.replace('.', '/')}.py"
        known += [one for one in read(source)[0] if one.name in names]
    return known


#: A function or class, or a method of a class or a function within a function.
HEAD = re.compile(r"^( {4})?(?:def|async def|class) (\w+)", re.MULTILINE)
STATEMENT = re.compile(
    r"^ +(?:assert |raise |np\.testing\.assert_|(?:with )?pytest\.(?:raises|warns)\()", re.MULTILINE
)
DOCSTRING = re.compile(r''':\n +"""[^"]*"""\n''')


def plainly_assert(text: str) -> bool:
    """Tell whether a line of each test asserts: to read trees takes most of the time.

    A test with text over several lines, which may hold anything, does not count. What asserts
    only by the helpers that it calls is found in the tree.
    """
    heads = [*HEAD.finditer(text)]
    for i, head in enumerate(heads):
        if head[2].startswith("test"):
            after = (one.start() for one in heads[i + 1 :] if head[1] or not one[1])
            lines = DOCSTRING.sub(":\n", text[head.end() : next(after, len(text))], count=1)
            if not STATEMENT.search(lines) or '"""' in lines or "'''" in lines:
                return False
    return True


def without_assertion(path: Path) -> list[str]:
    """Return the tests of a file that cannot fail."""
    if plainly_assert(path.read_text(encoding="utf-8")):
        return []
    known = helpers(path)
    checking = {one.name for one in known if one.asserts}
    while True:
        more = {one.name for one in known if one.called & checking} - checking
        if not more:
            break
        checking |= more
    return [
        f"{path.name}:{one.line} {one.name}"
        for one in read(path)[0]
        if one.name.startswith("test") and one.name not in checking and not one.draws
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def test_a():\n    assert f()", []),
        ("def test_a():\n    f()", ["x.py:1 test_a"]),
        ("def test_a():\n    with pytest.raises(E):\n        f()", []),
        ("def test_a():\n    np.testing.assert_allclose(1, 2)", []),
        ("def g():\n    f()\ndef f():\n    assert 1\ndef test_a():\n    g()", []),
        ("class TestA:\n    def test_a(self):\n        run(1, check=True)", []),
        ("class TestA:\n    def test_a(self):\n        run(1, check=False)", ["x.py:2 test_a"]),
        ("def test_a():\n    f('''\n    assert 1\n''')", ["x.py:1 test_a"]),
        ("def test_a():\n    f()\ndef g():\n    assert 1", ["x.py:1 test_a"]),
        ("def test_a():\n    f()\nclass A:\n    def g():\n        assert 1", ["x.py:1 test_a"]),
        (
            "class TestA:\n    def test_a():\n        f()\n    def g():\n        assert 1",
            ["x.py:2 test_a"],
        ),
        ("def test_a():\n    def g():\n        f()\n    assert 1", []),
        ("def test_a():\n    assert 1\ndef test_b():\n    f()", ["x.py:3 test_b"]),
        ("image = mark.mpl_image_compare()\n@image\ndef test_a():\n    return f()", []),
    ],
)
def test_what_asserts_nothing_is_found(tmp_path: Path, text: str, found: list[str]) -> None:
    path = tmp_path / "x.py"
    path.write_text(text)
    assert without_assertion(path) == found


def test_every_test_can_fail() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    assert len(files) > 300
    assert [test for path in files for test in without_assertion(path)] == []


def test_warnings_are_ignored_by_their_text() -> None:
    wholesale = re.compile(r"""simplefilter\("ignore"\)|filterwarnings\(\s*"ignore("\)|::)""")
    lines = [
        f"{path.name}: {one[0]}"
        for path in sorted(TESTS.rglob("*.py"))
        if path != Path(__file__)
        for one in wholesale.finditer(path.read_text(encoding="utf-8"))
    ]
    assert lines == []
