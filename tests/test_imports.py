"""Every module can be imported; one that needs an extra names it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

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
