"""How results show themselves in a notebook, and draw themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Shown"]


class Shown:
    """A result that a notebook shows as a page would, and that draws itself.

    Both reach for `errcomp.report` when they are called: a result itself knows nothing of it.
    """

    __slots__ = ()

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the figure that answers what this result is about.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes in a figure of their own by default.
        options
            Of that figure, e.g. ``run`` of a propagation: see `errcomp.report.showing.FIGURES`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            The figure has no such option, or there is nothing to draw.
        MissingExtraError
            Matplotlib is not installed.
        """
        from errcomp.report.showing import plot

        return plot(self, ax=ax, **options)

    def _repr_html_(self) -> str:
        """Return what a notebook shows of this result."""
        from errcomp.report.showing import html

        return html(self)
