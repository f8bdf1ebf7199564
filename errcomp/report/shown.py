"""How results print, draw and show themselves: each by its own view."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.report.model import Report

__all__ = ["Shown"]


class Shown:
    """A result that prints as on the command line, shows itself in a notebook and draws itself."""

    __slots__ = ()

    if TYPE_CHECKING:

        def to_dict(self) -> dict[str, Any]:
            """Return the document of the class that mixes this in."""

    def view(self) -> Report:
        """Return all that people see of this result, as values with formats."""
        raise NotImplementedError

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the figure that answers what this result is about.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes in a figure of their own by default.
        options
            Of that figure, e.g. ``run`` of a propagation.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            The figure has no such option, or there is nothing to draw.
        MissingExtraError
            Matplotlib is not installed.

        Examples
        --------
        >>> import errcomp as ec
        >>> ec.audit(ec.datasets.load("neusight")).plot().get_xlabel()
        'absolute error (% of measured)'
        """
        from errcomp.errors import InputError, describe_names

        draw = self.view().draw
        name = _name_of(self)
        if draw is None:
            raise InputError(f"there is no figure of {name}")
        known = [option for option in inspect.signature(draw).parameters if option != "ax"]
        unknown = [option for option in options if option not in known]
        if unknown:
            raise InputError(
                f"the figure of {name} has no option {unknown[0]}. "
                f"Options: {describe_names(known) or 'none'}"
            )
        return draw(ax=ax, **options)

    def to_frame(self) -> Any:
        """Return the rows of this result as a Polars frame: what ``-o FILE.csv`` writes.

        Returns
        -------
        polars.DataFrame
            Fractions with all their digits, one column for each key of the document's rows.

        Examples
        --------
        >>> import errcomp as ec
        >>> ec.audit(ec.datasets.load("neusight")).to_frame().select("device", "mode", "n").row(0)
        ('A100-80G', 'inference', 23)
        """
        from errcomp.report.writing import flat_columns
        from errcomp.tables.frames import frame_from_columns

        return frame_from_columns(flat_columns(self.to_dict()))

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep the short line: a dataclass writes all its fields unless its class has one."""
        super().__init_subclass__(**options)
        cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return one line: the class, the main figure, and of how many."""
        return f"{_name_of(self)}({', '.join(self.view().line)})"

    def __str__(self) -> str:
        """Return the tables that the command line prints of such a result."""
        from errcomp.report.text import render

        return "\n\n".join(render(table) for table in self.view().tables_for("text"))

    def _repr_html_(self) -> str:
        """Return what a notebook shows of this result: with figures, without a script."""
        from errcomp.report.html import fragment

        return fragment(self.view())


def _name_of(result: Shown) -> str:
    """Return the class of a result, also of one that was read from a document."""
    return next(base.__name__ for base in type(result).__mro__ if Shown in base.__bases__)
