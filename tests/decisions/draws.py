"""Fewer draws of the error model, for tests that do not ask how precise its results are."""

from __future__ import annotations

import pytest

from errcomp.decisions import probabilities


def fewer(patch: pytest.MonkeyPatch, burn_in: int = 20, draws: int = 100) -> None:
    """Let every sampler of a comparison make this many draws."""
    for name in ("errors._BURN", "errors._SHAPES", "conditions._BURN"):
        patch.setattr(f"errcomp.decisions.{name}", burn_in)
    for name in ("_FOLD_DRAWS", "_CONDITION_DRAWS"):
        patch.setattr(probabilities, name, draws)
    patch.setitem(probabilities.learned.__kwdefaults__, "draws", draws)
