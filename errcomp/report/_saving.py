"""Figures into files: whole or not at all, the same bytes every time."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp._files import replacing
from errcomp.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["save"]

#: What of a file would differ from one run, or one release of Matplotlib, to the next.
_METADATA: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Creator": None, "Date": None},
}
_DPI = 200


def save(drawn: Axes | Figure, path: str | PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF, by suffix.

    The same figure gives the same bytes: no date, no random names inside. An SVG keeps its text as
    text. An interrupted run leaves what was there before.

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
    figure = _figure(drawn)
    import matplotlib as mpl

    settings = mpl.rc_context({"svg.hashsalt": "errcomp", "svg.fonttype": "none"})
    with settings, replacing(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], dpi=_DPI, metadata=_METADATA[suffix])


def _figure(drawn: Axes | Figure) -> Figure:
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
