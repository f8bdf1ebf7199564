"""Public modules, classes and functions still work under the names that they had."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from pkgutil import resolve_name

import pytest

from errcomp._moved import _NAMES, _SPLIT, _TODAY
from errcomp.errors import MissingExtraError


@pytest.mark.parametrize("old", sorted(_TODAY))
def test_an_old_name_is_the_module_of_today_and_warns(old: str) -> None:
    try:
        today = importlib.import_module(_TODAY[old])
    except MissingExtraError as missing:
        pytest.skip(str(missing))
    spec = today.__spec__
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "errcomp.scale is now errcomp.tables.engine")
        importlib.import_module(old.rpartition(".")[0])  # which may have moved as well
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {_TODAY[old]}"):
        assert importlib.import_module(old) is today
    assert today.__spec__ is spec
    sys.modules.pop(old)


@pytest.mark.parametrize("old", sorted(_SPLIT))
def test_functions_of_a_module_that_was_split_are_those_of_today(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: call .plot"):
        module = importlib.import_module(old)
    for name, today in _SPLIT[old].items():
        assert getattr(module, name) is resolve_name(f"errcomp.{today}")
    sys.modules.pop(old)


@pytest.mark.parametrize(("place", "old"), [(at, old) for at in _NAMES for old in _NAMES[at]])
def test_an_old_name_in_a_module_is_that_of_today_and_warns(place: str, old: str) -> None:
    module, new = importlib.import_module(place), _NAMES[place][old]
    today = vars(module)[new]
    assert old not in vars(module)
    assert str(inspect.getmodule(today).__name__).startswith(place)
    with pytest.warns(DeprecationWarning, match=f"^{place}.{old} is now {new}$") as warned:
        assert getattr(module, old) is today
    assert warned[0].filename == __file__
    namespace: dict[str, object] = {}
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        exec(f"from {place} import {old}", namespace)
    assert namespace[old] is today


@pytest.mark.parametrize("place", sorted(_NAMES))
def test_a_module_with_old_names_has_no_others_and_its_source(place: str) -> None:
    module = importlib.import_module(place)
    with pytest.raises(AttributeError, match=f"module '{place}' has no attribute 'no_such'"):
        module.no_such  # noqa: B018
    assert "import" in inspect.getsource(module)


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        importlib.import_module("errcomp.halflife.no_such")
