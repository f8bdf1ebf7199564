"""How results print, draw and show themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Shown"]


class Shown:
    """A result that prints as on the command line, shows itself in a notebook and draws itself.

    All of this reaches for `errcomp.report` when it is called: a result knows nothing of it.
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

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep the short line: a dataclass writes all its fields unless its class has one."""
        super().__init_subclass__(**options)
        cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return one line: the class, the main figure, and of how many."""
        from errcomp.report.tables.short import short

        return short(self)

    def __str__(self) -> str:
        """Return the tables that the command line prints of such a result."""
        from errcomp.report.showing import text

        return text(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows of this result."""
        from errcomp.report.showing import html

        return html(self)
