"""What the sections of all results have in common: figures where they can be drawn, and a basis."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp import __version__
from errcomp.errors import InputError
from errcomp.report.page import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Drawing", "basis", "inputs_of", "pictures"]

#: Name, how to read it, and what draws it.
Drawing = tuple[str, str, "Callable[[], Axes]"]
_LIBRARIES = ("numpy", "scipy", "polars", "matplotlib")


def pictures(drawings: Sequence[Drawing]) -> tuple[list[Picture], list[str]]:
    """Draw what can be drawn, and say what cannot and why."""
    if not drawings:
        return [], []
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError:
        return [], ["Figures are left out: install them with pip install 'errcomp[figures]'."]
    except ImportError as error:
        return [], [f"Figures are left out: Matplotlib cannot be imported ({error})."]
    from errcomp.report.page._svg import picture

    drawn, notes = [], []
    for name, caption, draw in drawings:
        try:
            drawn.append(picture(draw(), name, caption))
        except InputError as error:
            notes.append(f"Not drawn ({name}): {error}")
    return drawn, notes


def basis(inputs: Sequence[tuple[str, str]] = ()) -> list[tuple[str, str]]:
    """Return what a result was made with and from: versions, and checksums of the inputs."""
    found = [f"errcomp {__version__}", f"Python {platform.python_version()}"]
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    made = [("Made with", ", ".join(found))]
    if inputs:
        made.append(
            ("Made from", "; ".join(f"{name} (SHA-256 {digest})" for name, digest in inputs))
        )
    return made


def inputs_of(name: str) -> list[tuple[str, str]]:
    """Return the checksums of an input: a file, an embedded table, or each file of a folder.

    A store on a server has none.
    """
    from errcomp import datasets

    path = Path(name)
    if path.is_file():
        return [(name, _digest(path))]
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
        return [(str(one), _digest(one)) for one in files]
    if name in datasets.names():
        return [(f"{name}/{table.file}", table.sha256) for table in datasets.info(name).tables]
    return []


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
