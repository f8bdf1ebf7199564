"""What people see of a result, before it is text, a page or a paper: values with formats, as data.

A view turns a result into a `Report`; each medium has a renderer that knows only what stands here.
No renderer takes text apart to find a number in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.results import Written


__all__ = [
    "ITEM",
    "Advice",
    "Cell",
    "Column",
    "Figure",
    "Form",
    "Medium",
    "Note",
    "Report",
    "Table",
    "Tone",
    "Verdict",
    "caveat_text",
    "clean",
    "heading_of",
    "item",
    "key_text",
    "listing",
    "report_of",
]

#: The mark of an item; others are letters and signs of a legend, or numbers.
ITEM = "·"
Tone = Literal["good", "bad", "doubt", "plain"]
#: Where a part is shown if not everywhere: text (terminal, Markdown, LaTeX) has it in one line, a
#: page unfolds, sorts and has a place of its own for advice.
Medium = Literal["text", "page"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence that answers the reader's question; the tone never stands alone for it.

    Attributes
    ----------
    head : str
        The answer in a word or two, e.g. ``"overstated"``.
    text : str
        What it is about and what it rests on.
    tone : {"good", "bad", "doubt", "plain"}
    """

    head: str
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to know before using the figures, and what to do about it."""

    title: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes
    ----------
    text : str
        As people read it.
    value : float or None
        What the column is sorted by; None where the text is.
    figure : Written or None
        The parts of a number, for media that align them; None of words.
    marks : str
        Signs behind the figure that a note explains.
    tone : {"good", "bad", "doubt", "plain"}
    more : sequence of Advice
        What unfolds below the table, for one cell of a row at most.
    about : str
        What that is, and of which row.
    """

    text: str
    value: float | None = None
    figure: Written | None = None
    marks: str = ""
    tone: Tone = "plain"
    more: Sequence[Advice] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How values of one kind are written.

    Attributes
    ----------
    write : callable
        Takes a value, returns its `Cell`.
    right : bool
        Whether they are figures: aligned at the right and never broken.
    """

    write: Callable[[Any], Cell]
    right: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it shows of a row, and how.

    Attributes
    ----------
    header : str
    value : callable
        Takes a row, returns the value: a number, an `Estimate`, a text.
    form : Form
        How the value is written, see ``errcomp.report.forms``.
    key : bool
        Names the row: repeated when a table is too wide and continues below.
    marks : callable, optional
        Takes a row, returns the signs behind its value that a note explains.
    choice : bool
        Whether a page offers its values to filter by; those of keys always.
    about : str
        What it is, for those who ask.
    on : {"text", "page"}, optional
        The only medium that has it; all by default.
    """

    header: str
    value: Callable[[Any], Any]
    form: Form = field(default_factory=lambda: Form(lambda text: Cell(str(text))))
    key: bool = False
    marks: Callable[[Any], str] | None = None
    choice: bool = False
    about: str = ""
    on: Medium | None = None

    @property
    def right(self) -> bool:
        """Whether the column holds figures."""
        return self.form.right

    def cell(self, row: Any) -> Cell:
        """Return the cell of a row."""
        cell = self.form.write(self.value(row))
        marks = self.marks(row) if self.marks else ""
        return replace(cell, text=cell.text + marks, marks=marks) if marks else cell


@dataclass(frozen=True, slots=True)
class Note:
    """One note below a table.

    Attributes
    ----------
    text : str
        What it says, without the mark.
    mark : str
        ``"·"`` of an item, a letter or sign that cells show, ``"[1]"``, or nothing.
    below : bool
        Whether it is an item of the sentence above it.
    apart : bool
        Whether it begins a part of its own.
    on : {"text", "page"}, optional
        The only medium that has it; all by default.
    """

    text: str
    mark: str = ""
    below: bool = False
    apart: bool = False
    on: Medium | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Columns over rows, with notes below; a note that is a text has no mark.

    Attributes
    ----------
    title : str
    columns : sequence of Column
    rows : sequence
    notes : sequence of Note or str
    on : {"text", "page"}, optional
        The only medium that has it; all by default.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Any]
    notes: Sequence[Note | str] = ()
    on: Medium | None = None

    def remarks(self) -> list[Note]:
        """Return all notes as such."""
        return [note if isinstance(note, Note) else Note(note) for note in self.notes]

    def for_medium(self, medium: Medium) -> Table:
        """Return it with the columns and notes of one medium."""
        return replace(
            self,
            columns=[column for column in self.columns if column.on in (None, medium)],
            notes=[note for note in self.remarks() if note.on in (None, medium)],
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is drawn when a medium asks for it.

    Attributes
    ----------
    name : str
        Unique in its report.
    caption : str
        How to read it.
    draw : callable
        Returns the axes; raises `errcomp.errors.InputError` where there is nothing to draw.
    """

    name: str
    caption: str
    draw: Callable[[], Axes]


@dataclass(frozen=True, slots=True)
class Report:
    """All that people see of one result, the answer first.

    Attributes
    ----------
    title : str
        The question that it answers.
    line : sequence of str
        Main figure and number of cases: the result in one line.
    verdicts : sequence of Verdict
    advice : sequence of Advice
        What to know before using the figures.
    tables : sequence of Table
    notes : sequence of str
        What a page says below the verdicts.
    figures : sequence of Figure
        What a page shows.
    method : sequence of (str, str)
        How the figures were computed: a term and what it means.
    draw : callable, optional
        Draws the figure of the result: takes ``ax`` and the options of the figure.
    """

    title: str
    line: Sequence[str] = ()
    verdicts: Sequence[Verdict] = ()
    advice: Sequence[Advice] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    method: Sequence[tuple[str, str]] = ()
    draw: Callable[..., Axes] | None = None

    def tables_for(self, medium: Medium) -> list[Table]:
        """Return the tables of one medium, with its columns and notes."""
        return [table.for_medium(medium) for table in self.tables if table.on in (None, medium)]


def report_of(*tables: Table) -> Report:
    """Return a report that is tables only, named after the first."""
    return Report(tables[0].title if tables else "Nothing was found", tables=tables)


def item(text: str, on: Medium | None = None) -> Note:
    """Return a note that is an item of a list."""
    return Note(text, ITEM, on=on)


def listing(head: str, items: Iterable[str], on: Medium | None = None) -> list[Note]:
    """Return a sentence and the items below it, as a part of its own."""
    return [Note(head, apart=True, on=on), *(Note(text, ITEM, below=True, on=on) for text in items)]


def heading_of(name: str) -> str:
    """Return the heading of a column: its name, with a capital unless it has capitals of its own.

    Examples
    --------
    >>> heading_of("device"), heading_of("GPU type"), heading_of("max APE"), heading_of("sMAPE")
    ('Device', 'GPU type', 'Max APE', 'sMAPE')
    """
    first = name.split(" ", 1)[0]
    return name[:1].upper() + name[1:] if first.islower() else name


def key_text(value: object) -> str:
    """Write the value of a key of the user's; a missing one is not a name.

    Examples
    --------
    >>> key_text("H100"), key_text(None), key_text("")
    ('H100', '(none)', '(none)')
    """
    return "(none)" if value is None or value == "" else str(value)


def caveat_text(code: str, title: str) -> str:
    """Name a caveat in a key or a list: the code that documentation is found by, and its meaning.

    Examples
    --------
    >>> caveat_text("one-sided", "Most errors have one sign")
    'one-sided: most errors have one sign'
    """
    return f"{code}: {title[:1].lower()}{title[1:]}"


def clean(text: str) -> str:
    """Show a line break or an escape code in a user's value as what it is."""
    # A no-break space is no break: it is what keeps a figure and its sign together.
    return "".join(c if c.isprintable() or c == "\xa0" else repr(c)[1:-1] for c in text)
