"""The one place that imports PyMC, ArviZ and nutpie, and silences their own warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from errcomp.errors import MissingExtraError

__all__ = ["import_arviz", "import_pymc", "quiet"]

#: What these libraries say on their own account: start of message, category.
_KNOWN: tuple[tuple[str, type[Warning]], ...] = (
    (r"\s*ArviZ is undergoing a major refactor", FutureWarning),
    (r"PyTensor could not link to a BLAS installation", UserWarning),
    (r"The inplace keyword in DataFrame.sort_values is deprecated", DeprecationWarning),
    # Where sampling is interrupted before the first draw.
    (r"More chains \(\d+\) than draws \(0\)", UserWarning),
)
_PURPOSE = "the Bayesian residual model"


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings of `_KNOWN` and no others."""
    with warnings.catch_warnings():
        for message, category in _KNOWN:
            warnings.filterwarnings("ignore", message=message, category=category)
        yield


def import_arviz() -> Any:
    """Return ArviZ.

    Raises
    ------
    MissingExtraError
        It is not installed, or of a version (1 or later) whose posteriors are of another type.
    """
    with quiet():
        try:
            import arviz
        except ImportError as error:
            raise MissingExtraError("arviz", "bayes", _PURPOSE) from error
    if not hasattr(arviz, "InferenceData"):
        raise MissingExtraError("arviz < 1", "bayes", _PURPOSE)
    return arviz


def import_pymc() -> tuple[Any, Any]:
    """Return PyMC and nutpie.

    Raises
    ------
    MissingExtraError
        One of them is not installed.
    """
    with quiet():
        try:
            import nutpie  # type: ignore[import-untyped]
            import pymc  # type: ignore[import-untyped]
        except ImportError as error:
            missing = (error.name or "pymc").partition(".")[0]
            raise MissingExtraError(missing, "bayes", _PURPOSE) from error
    return pymc, nutpie
