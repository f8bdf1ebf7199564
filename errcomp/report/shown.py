"""Printing, drawing and notebook output of results, all from the report of the result."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.report.model import Report

__all__ = ["Shown"]


class Shown:
    """Base of all results: ``print`` shows what the command prints, a notebook shows HTML.

    Examples
    --------
    >>> import errcomp as ec
    >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
    >>> audit
    Audit(MAPE 10.00 %, n=2)
    >>> isinstance(audit, Shown)
    True
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def to_dict(self) -> dict[str, Any]:
            """Return the document of the class that mixes this in."""

    def view(self) -> Report:
        """Return the report of this result: verdicts, tables, notes and figures, with formats.

        Examples
        --------
        >>> import errcomp as ec
        >>> report = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]}).view()
        >>> [column.header for column in report.tables[0].columns]
        ['n', 'MAPE [95 %]', 'Max APE', 'Caveats', 'Caveats']
        """
        raise NotImplementedError

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the main figure of this result.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default, new axes in a new figure.
        options
            Options of the figure, e.g. ``run`` for a propagation.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            The option does not exist, or there is nothing to draw.
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
            raise InputError(f"{name} has no figure")
        known = [option for option in inspect.signature(draw).parameters if option != "ax"]
        unknown = [option for option in options if option not in known]
        if unknown:
            raise InputError(
                f"the figure of {name} has no option {unknown[0]}. "
                f"Options: {describe_names(known) or 'none'}"
            )
        return draw(ax=ax, **options)

    def to_frame(self) -> Any:
        """Return the rows of this result as a Polars dataframe, as ``-o FILE.csv`` writes them.

        Returns
        -------
        polars.DataFrame
            Fractions with all their digits, one column per key of the document's rows.

        Examples
        --------
        >>> import errcomp as ec
        >>> ec.audit(ec.datasets.load("neusight")).to_frame().select("device", "mode", "n").row(0)
        ('A100-40G', 'inference', 16)
        """
        from errcomp.report.writing import flat_columns
        from errcomp.tables.frames import frame_from_columns

        return frame_from_columns(flat_columns(self.rows_document()))

    def rows_document(self) -> Mapping[str, Any]:
        """Return the document whose rows dataframes, CSV and Parquet hold.

        Examples
        --------
        >>> import errcomp as ec
        >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
        >>> len(audit.rows_document()["rows"])
        1
        """
        return self.to_dict()

    def save(self, path: str | PathLike[str]) -> None:
        """Write this result to a file, as the command does with ``-o``.

        Parameters
        ----------
        path : path
            The suffix sets the format: .html (a page with plots), .svg, .pdf or .png (the main
            plot), .csv, .parquet, .json, .md or .tex. An existing file is replaced. An error
            leaves no partial file.

        Raises
        ------
        InputError
            The suffix is unknown, the result has no picture, or the file cannot be written.
        MissingExtraError
            The format is one of a picture, and Matplotlib is not installed.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import errcomp as ec
        >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
        >>> with TemporaryDirectory() as folder:
        ...     audit.save(Path(folder) / "audit.md")
        ...     "10.00 %" in (Path(folder) / "audit.md").read_text(encoding="utf-8")
        True
        """
        from errcomp.report.writing import write_result

        path = Path(path)
        rows = path.suffix.lower() in (".csv", ".parquet")
        write_result(path, self.rows_document() if rows else self.to_dict(), self.view())

    def to_markdown(self) -> str:
        """Return the tables of this result in Markdown, as ``--format md`` prints them.

        Examples
        --------
        >>> import errcomp as ec
        >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
        >>> "10.00 %" in audit.to_markdown()
        True
        """
        from errcomp.report.markdown import markdown

        return markdown(self.view().tables_for("text"))

    def to_latex(self) -> str:
        """Return the tables of this result in LaTeX (booktabs, siunitx), as ``--format tex`` does.

        Examples
        --------
        >>> import errcomp as ec
        >>> audit = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]})
        >>> "toprule" in audit.to_latex()
        True
        """
        from errcomp.report.latex import latex

        return latex(self.view().tables_for("text"))

    def __init_subclass__(cls, **options: Any) -> None:
        """Set ``__repr__`` in each subclass: otherwise a dataclass would print all its fields."""
        super().__init_subclass__(**options)
        cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return one line: the class, the main metric and the number of cases."""
        return f"{_name_of(self)}({', '.join(self.view().line)})"

    def __str__(self) -> str:
        """Return the tables that the command prints for such a result."""
        from errcomp.report.text import render

        return "\n\n".join(render(table) for table in self.view().tables_for("text"))

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: with figures, without a script."""
        from errcomp.report.html import fragment

        return fragment(self.view())


def _name_of(result: Shown) -> str:
    """Return the name of a result's class, also for a result that was read from a document."""
    return next(base.__name__ for base in type(result).__mro__ if Shown in base.__bases__)
