"""Figures into files: whole or not at all, the same bytes every time."""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError, MissingExtraError
from errcomp.report._fonts import borrow
from errcomp.system.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["drawn_figure", "save"]

#: What of a file would differ from one run, or one release of Matplotlib, to the next.
_METADATA: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Creator": None, "Date": None},
}
_DPI = 200
#: Letters that a warning names.
_MOST_LETTERS = 10


def save(drawn: Axes | Figure, path: str | PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF, by suffix.

    The same figure gives the same bytes: no date, no random names inside. An SVG keeps its text as
    text. An interrupted run leaves what was there before. Letters that the usual font has not are
    taken from other installed fonts; a warning names those that none has.

    Parameters
    ----------
    drawn : matplotlib.axes.Axes or matplotlib.figure.Figure
        Axes stand for the whole figure they are in.
    path : path
        Ends in .png, .svg or .pdf.

    Raises
    ------
    InputError
        The suffix is another one, what is to be drawn is no figure, or the file cannot be written.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from errcomp.report.figures import growth
    >>> with TemporaryDirectory() as folder:
    ...     save(growth([("kernel", 0.12, None, None), ("model", 0.04, 0.03, 0.06)]),
    ...          Path(folder) / "growth.svg")
    ...     [file.name for file in Path(folder).iterdir()]
    ['growth.svg']
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _METADATA:
        raise InputError(
            f"{path}: the suffix says how a figure is written. Known: {', '.join(_METADATA)}"
        )
    figure = drawn_figure(drawn)
    import matplotlib as mpl

    settings = mpl.rc_context({"svg.hashsalt": "errcomp", "svg.fonttype": "none"})
    missing = borrow(figure)
    with settings, replacing(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # told below, once
        figure.savefig(temporary, format=suffix[1:], dpi=_DPI, metadata=_METADATA[suffix])
    if missing and suffix != ".svg":  # there the reader's own fonts show them
        warnings.warn(
            f"{path}: no installed font has {missing[:_MOST_LETTERS]!r}"
            f"{' and more' if len(missing) > _MOST_LETTERS else ''}; boxes stand there. Install a "
            "font that has them, or write an .svg, which is shown in the fonts of its reader.",
            stacklevel=2,
        )


def drawn_figure(drawn: Axes | Figure) -> Figure:
    """Return the whole figure that axes are in.

    Raises
    ------
    InputError
        What is given is no figure and no axes of one.
    MissingExtraError
        Matplotlib is not installed.
    """
    try:
        from matplotlib.artist import Artist
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "figures", "drawing figures") from error
    figure = drawn.figure if isinstance(drawn, Artist) else None
    while figure is not None and not isinstance(figure, Figure):  # a figure within a figure
        figure = figure.figure
    if figure is None:
        raise InputError(f"expected a figure or axes of one, got {drawn!r}")
    return figure
