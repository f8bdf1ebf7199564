from __future__ import annotations

import subprocess
import sys

import pytest

import errcomp


@pytest.mark.parametrize("name", errcomp.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(errcomp, name) is not None
    assert name in dir(errcomp)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = errcomp.nothing


@pytest.mark.core
def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, errcomp; print([m for m in ('numpy', 'polars', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
