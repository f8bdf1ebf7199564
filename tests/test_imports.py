"""Every module can be imported; one that needs an extra names it."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import errcomp
from errcomp.errors import MissingExtraError

pytestmark = pytest.mark.core


def test_every_module_is_imported_or_names_the_extra_that_it_needs() -> None:
    lacking = {}
    for module in pkgutil.walk_packages(errcomp.__path__, "errcomp."):
        # Importing this one runs the command.
        if module.name == "errcomp.__main__":
            continue
        try:
            import_module(module.name)
        except MissingExtraError as error:
            lacking[module.name] = str(error)
    assert [said for said in lacking.values() if "pip install 'errcomp[" not in said] == []
    # Of scikit-learn's classes two are made, when their module is loaded; all else loads without.
    assert {name.split(".")[1] for name in lacking} <= {"calibration"}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports when it is loaded, not in its functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif not isinstance(node, ast.FunctionDef):
            yield from imported(node)


def test_no_module_loads_the_package_that_takes_a_second() -> None:
    files = sorted(Path(errcomp.__path__[0]).rglob("*.py"))
    found = {name for path in files for name in imported(ast.parse(path.read_text("utf-8")))}
    assert "scipy.special" in found
    assert [name for name in found if name.startswith("scipy.stats")] == []
