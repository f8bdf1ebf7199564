"""Every test can fail: it asserts, expects an error or a warning, or calls a helper that does.

A test that ignores any warning does not fail at the one that matters.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: What raises where something is not as it should be.
CHECKS = ("raises", "warns", "deprecated_call", "fail")
_CHECKED = ("check", "Constant(value=True)")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def inside(function: Function) -> tuple[frozenset[str], bool]:
    """Return the names of what a function calls, and whether it checks something by itself."""
    names, checks = set(), False
    for one in ast.walk(function):
        if isinstance(one, ast.Call):
            names.add(getattr(one.func, "attr", getattr(one.func, "id", "")))
        elif isinstance(one, ast.keyword):
            # Of a process: that it ended well.
            checks |= (one.arg, ast.dump(one.value)) == _CHECKED
        else:
            checks |= isinstance(one, ast.Assert | ast.Raise)
    return frozenset(names), checks


def called(function: Function) -> frozenset[str]:
    return inside(function)[0]


def asserts(function: Function) -> bool:
    """Tell whether a function checks something by itself."""
    names, checks = inside(function)
    return checks or any(name in CHECKS or name.startswith("assert_") for name in names)


@cache
def defined(path: Path) -> list[Function]:
    """Return the functions of a file and the methods of its classes."""
    module = tree(path)
    bodies = [module.body, *(one.body for one in module.body if isinstance(one, ast.ClassDef))]
    return [one for body in bodies for one in body if isinstance(one, Function)]


def helpers(path: Path) -> list[Function]:
    """Return the functions that the tests of a file can call: its own, imported ones, fixtures."""
    found = [*defined(path)]
    for folder in path.parents:
        if (folder / "conftest.py").exists():
            found += defined(folder / "conftest.py")
        if folder == TESTS:
            break
    for line in tree(path).body:
        if isinstance(line, ast.ImportFrom) and str(line.module).startswith("tests."):
            source = TESTS.parent / f"{str(line.module).replace('.', '/')}.py"
            names = {alias.name for alias in line.names}
            found += [one for one in defined(source) if one.name in names]
    return found


def compares_an_image(path: Path, test: Function) -> bool:
    marks = {
        ast.unparse(line.targets[0])
        for line in tree(path).body
        if isinstance(line, ast.Assign) and "mpl_image_compare" in ast.unparse(line.value)
    }
    return any(ast.unparse(mark) in marks for mark in test.decorator_list)


def without_assertion(path: Path) -> list[str]:
    """Return the tests of a file that cannot fail."""
    known = helpers(path)
    checking = {one.name for one in known if asserts(one)}
    while True:
        more = {one.name for one in known if called(one) & checking} - checking
        if not more:
            break
        checking |= more
    return [
        f"{path.name}:{one.lineno} {one.name}"
        for one in defined(path)
        if one.name.startswith("test") and one.name not in checking
        if not compares_an_image(path, one)
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
        f"{path.name}: {found[0]}"
        for path in sorted(TESTS.rglob("*.py"))
        if path != Path(__file__)
        for found in wholesale.finditer(path.read_text(encoding="utf-8"))
    ]
    assert lines == []
