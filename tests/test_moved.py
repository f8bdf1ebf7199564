"""Public modules still import under the names that they had."""

from __future__ import annotations

import importlib
import sys

import pytest

from errcomp._moved import _TODAY
from errcomp.errors import MissingExtraError


@pytest.mark.parametrize("old", sorted(_TODAY))
def test_an_old_name_is_the_module_of_today_and_warns(old: str) -> None:
    try:
        today = importlib.import_module(_TODAY[old])
    except MissingExtraError as missing:
        pytest.skip(str(missing))
    spec = today.__spec__
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {_TODAY[old]}"):
        assert importlib.import_module(old) is today
    assert today.__spec__ is spec
    sys.modules.pop(old)


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        importlib.import_module("errcomp.halflife.no_such")
