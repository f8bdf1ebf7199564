"""The report of a result before it becomes text, a page or a paper: values with their formats.

A view turns a result into a `Report`. Each output format has a renderer, which depends only on the
classes of this module. No renderer parses text to find a number in it.
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

#: The mark of a list item; other marks are letters or signs of a legend, or numbers.
ITEM = "·"
Tone = Literal["good", "bad", "doubt", "plain"]
#: The media that a part of a report can be limited to: text (terminal, Markdown, LaTeX), and an
#: HTML page, which can sort and fold tables and has a section for advice.
Medium = Literal["text", "page"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence that answers the reader's question.

    Attributes
    ----------
    head : str
        The answer in a word or two, e.g. ``"overstated"``.
    text : str
        The subject of the answer, and the numbers that support it.
    tone : {"good", "bad", "doubt", "plain"}
        Sets the colour and the sign; the head must be clear without them.

    Examples
    --------
    >>> import errcomp as ec
    >>> verdict = ec.audit(ec.datasets.load("neusight")).view().verdicts[0]
    >>> verdict.head, verdict.tone
    ('Overstated', 'bad')
    """

    head: str
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to know before using the numbers, and what to do about it.

    Attributes
    ----------
    title, text : str
    remedy : str
        What to do, as a sentence; empty if there is nothing to do.

    Examples
    --------
    >>> few = Advice("Few pairs", "The interval rests on 4 pairs.", "Measure more configurations.")
    >>> Report("How large is the error?", advice=[few]).advice[0].remedy
    'Measure more configurations.'
    """

    title: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes
    ----------
    text : str
        The text that people read.
    value : float or None
        The number to sort the column by; None to sort by the text.
    figure : Written or None
        The parts of the number, for output formats that align them; None for words.
    marks : str
        Signs after the number that a note explains.
    tone : {"good", "bad", "doubt", "plain"}
    more : sequence of Advice
        Details that a page shows on demand below the table; for at most one cell per row.
    about : str
        Heading of these details: their subject and row.

    Examples
    --------
    >>> from errcomp.report.forms import percent
    >>> percent.write(0.0874).text, percent.write(0.0874).value
    ('8.74 %', 0.0874)
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
    """The format of one kind of value.

    Attributes
    ----------
    write : callable
        Takes a value, returns its `Cell`.
    right : bool
        Whether the values are numbers: aligned right and never broken over two lines.

    Examples
    --------
    >>> watts = Form(lambda value: Cell(f"{value:.0f} W", value), right=True)
    >>> watts.write(412.4).text
    '412 W'
    """

    write: Callable[[Any], Cell]
    right: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its value for each row, and the format of the value.

    Attributes
    ----------
    header : str
    value : callable
        Takes a row, returns the value: a number, an `Estimate` or a text.
    form : Form
        Format of the value, see ``errcomp.report.forms``.
    key : bool
        Whether the column names the row: it is repeated when a wide table is split.
    marks : callable, optional
        Takes a row, returns the signs after its value that a note explains.
    choice : bool
        Whether a page has a filter for its values; key columns always have one.
    about : str
        Explanation that a page shows on the header.
    on : {"text", "page"}, optional
        The only medium that shows it; by default, both.

    Examples
    --------
    >>> from errcomp.report.forms import percent
    >>> Column("MAPE", lambda row: row["mape"], percent).cell({"mape": 0.0874}).text
    '8.74 %'
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
        """Whether the column holds numbers."""
        return self.form.right

    def cell(self, row: Any) -> Cell:
        """Return the cell of a row.

        Examples
        --------
        >>> column = Column("n", lambda row: row["n"], marks=lambda row: " a" * (row["n"] < 10))
        >>> column.cell({"n": 4}).text, column.cell({"n": 40}).text
        ('4 a', '40')
        """
        cell = self.form.write(self.value(row))
        marks = self.marks(row) if self.marks else ""
        return replace(cell, text=cell.text + marks, marks=marks) if marks else cell


@dataclass(frozen=True, slots=True)
class Note:
    """One note below a table.

    Attributes
    ----------
    text : str
        The text without the mark.
    mark : str
        ``"·"`` for a list item, a letter or sign that cells show, ``"[1]"``, or empty.
    below : bool
        Whether it is an item of the list that the note above begins.
    apart : bool
        Whether a blank line comes before it.
    on : {"text", "page"}, optional
        The only medium that shows it; by default, both.

    Examples
    --------
    >>> from errcomp.report.text import render
    >>> print(render(Table("Errors", [], [], [Note("rests on few pairs", "a")])))
    Errors
     a  rests on few pairs
    """

    text: str
    mark: str = ""
    below: bool = False
    apart: bool = False
    on: Medium | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows, with notes below.

    Attributes
    ----------
    title : str
    columns : sequence of Column
    rows : sequence
    notes : sequence of Note or str
        A str is a note without a mark.
    on : {"text", "page"}, optional
        The only medium that shows it; by default, both.
    lead : str
        What the table shows, in one sentence below its title; a page shows verdicts instead.

    Examples
    --------
    >>> from errcomp.report.forms import percent
    >>> from errcomp.report.text import render
    >>> columns = [Column("GPU", lambda row: row[0]), Column("MAPE", lambda row: row[1], percent)]
    >>> print(render(Table("Errors", columns, [("H100", 0.0874), ("A100", 0.112)])))
    Errors
    <BLANKLINE>
    GPU      MAPE
    ─────────────
    H100   8.74 %
    A100  11.20 %
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Any]
    notes: Sequence[Note | str] = ()
    on: Medium | None = None
    lead: str = ""

    def remarks(self) -> list[Note]:
        """Return the notes as `Note` objects.

        Examples
        --------
        >>> Table("Errors", [], [], ["n is small"]).remarks()
        [Note(text='n is small', mark='', below=False, apart=False, on=None)]
        """
        return [note if isinstance(note, Note) else Note(note) for note in self.notes]

    def for_medium(self, medium: Medium) -> Table:
        """Return this table with the columns and notes of one medium.

        Examples
        --------
        >>> table = Table("Errors", [], [], [Note("See --by.", on="text"), "n is small"])
        >>> [note.text for note in table.for_medium("page").remarks()]
        ['n is small']
        """
        return replace(
            self,
            columns=[column for column in self.columns if column.on in (None, medium)],
            notes=[note for note in self.remarks() if note.on in (None, medium)],
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is only drawn when an output format shows it.

    Attributes
    ----------
    name : str
        Unique in its report.
    caption : str
        How to read it.
    draw : callable
        Returns the axes; raises `errcomp.errors.InputError` if there is nothing to draw.

    Examples
    --------
    >>> import errcomp as ec
    >>> report = ec.audit(ec.datasets.load("neusight")).view()
    >>> figure = report.figures[0]
    >>> figure.name, figure.draw().get_xlabel()
    ('claimed', 'absolute error (% of measured)')
    """

    name: str
    caption: str
    draw: Callable[[], Axes]


@dataclass(frozen=True, slots=True)
class Report:
    """The full report of one result, the answer first.

    Attributes
    ----------
    title : str
        The question that it answers.
    line : sequence of str
        The result in one line: main metric and number of cases.
    verdicts : sequence of Verdict
    advice : sequence of Advice
        Caveats, with what to do about them.
    tables : sequence of Table
    notes : sequence of str
        Paragraphs that a page shows below the verdicts.
    figures : sequence of Figure
        Figures of a page.
    method : sequence of (str, str)
        How the numbers were computed: terms with their explanations.
    draw : callable, optional
        Draws the main figure of the result: takes ``ax`` and the options of the figure.

    Examples
    --------
    >>> import errcomp as ec
    >>> report = ec.audit({"predicted": [11.0, 90.0], "measured": [10.0, 100.0]}).view()
    >>> report.line
    ['MAPE 10.00 %', 'n=2']
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
        """Return the tables of one medium, each with its columns and notes for that medium.

        Examples
        --------
        >>> tables = [Table("All", [], []), Table("Keys", [], [], on="page")]
        >>> report = Report("Errors", tables=tables)
        >>> [table.title for table in report.tables_for("text")]
        ['All']
        """
        return [table.for_medium(medium) for table in self.tables if table.on in (None, medium)]


def report_of(*tables: Table) -> Report:
    """Return a report that consists of tables, with the title of the first.

    Examples
    --------
    >>> report_of(Table("Errors", [], [])).title
    'Errors'
    """
    return Report(tables[0].title if tables else "Nothing was found", tables=tables)


def item(text: str, on: Medium | None = None) -> Note:
    """Return a note that is a list item.

    Examples
    --------
    >>> item("n is small").mark
    '·'
    """
    return Note(text, ITEM, on=on)


def listing(head: str, items: Iterable[str], on: Medium | None = None) -> list[Note]:
    """Return a sentence and the list items below it, after a blank line.

    Examples
    --------
    >>> from errcomp.report.text import render
    >>> notes = listing("Before using these numbers:", ["n is small.", "Errors are skewed."])
    >>> print(render(Table("Errors", [], [], notes)))
    Errors
    <BLANKLINE>
    Before using these numbers:
     · n is small.
     · Errors are skewed.
    """
    return [Note(head, apart=True, on=on), *(Note(text, ITEM, below=True, on=on) for text in items)]


def heading_of(name: str) -> str:
    """Return the heading of a column: its name, capitalised unless the first word has capitals.

    Examples
    --------
    >>> heading_of("device"), heading_of("GPU type"), heading_of("max APE"), heading_of("sMAPE")
    ('Device', 'GPU type', 'Max APE', 'sMAPE')
    """
    first = name.split(" ", 1)[0]
    return name[:1].upper() + name[1:] if first.islower() else name


def key_heading(name: str) -> str:
    """Return the heading of a key column: a name that errcomp gave, or the author's own name.

    Examples
    --------
    >>> key_heading("device"), key_heading("gpu")
    ('Device', 'gpu')
    """
    from errcomp.tables import RESERVED_KEYS

    return heading_of(name) if name in RESERVED_KEYS else name


def key_text(value: object) -> str:
    """Write the value of a key; a missing value becomes ``(none)``.

    Examples
    --------
    >>> key_text("H100"), key_text(None), key_text("")
    ('H100', '(none)', '(none)')
    """
    return "(none)" if value is None or value == "" else str(value)


def caveat_text(code: str, title: str) -> str:
    """Name a caveat in a legend or a list: its code, as in the documentation, and its meaning.

    Examples
    --------
    >>> caveat_text("one-sided", "Most errors have the same sign")
    'one-sided: most errors have the same sign'
    """
    return f"{code}: {title[:1].lower()}{title[1:]}"


def clean(text: str) -> str:
    r"""Replace line breaks and control characters in a user's text by their escape sequences.

    Examples
    --------
    >>> print(clean("two\nlines"))
    two\nlines
    """
    # Keep no-break spaces: they hold a number and its unit together.
    if text.replace("\xa0", " ").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\xa0" else repr(c)[1:-1] for c in text)
