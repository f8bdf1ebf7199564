"""Tables pasted from a paper: CSV, Markdown, LaTeX and HTML as grids of plain text.

A cell that spans columns or rows fills all of them, so that each figure finds its headings.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from errcomp.errors import InputError
from errcomp.readers.core.source import Source

__all__ = ["Grid", "tables_in"]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts; all rows have the same length.

    Attributes
    ----------
    rows : tuple of tuple of str
    caption : str
        Empty where the file gives none.
    """

    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


def tables_in(path: Path) -> list[Grid]:
    r"""Return the tables of a file, in order.

    Parameters
    ----------
    path : Path
        ``.csv`` or ``.tsv`` (one table), ``.md``, ``.tex`` or ``.html``.

    Returns
    -------
    list of Grid
        At least one.

    Raises
    ------
    InputError
        The file cannot be read, has another suffix, or holds no table.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.md"
    >>> _ = path.write_text("| GPU | MAPE |\n|---|---|\n| **A100** | 7.5 % |\n")
    >>> tables_in(path)[0].rows
    (('GPU', 'MAPE'), ('A100', '7.5 %'))
    """
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(
            f"{path}: the name of a table must end in one of {', '.join(_READERS)}. Save what you "
            "copied under such a name."
        )
    if path.exists() and path.stat().st_size > _LARGEST:
        raise InputError(f"{path}: larger than 4 MiB, the limit for tables of a paper.")
    try:
        grids = [grid for grid in read(Source(path).text) if len(grid.rows) > 1]
    except InputError as error:
        raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error
    if not grids:
        raise InputError(
            f"{path}: holds no table of at least two rows. Needed: headings and rows, as CSV, "
            "Markdown (| GPU | MAPE |), a LaTeX tabular or an HTML <table>."
        )
    return grids


_LARGEST = 4 * 2**20


def _grid(rows: list[list[str]], caption: str = "") -> Grid:
    filled = [[" ".join(cell.split()) for cell in row] for row in rows if any(map(str.strip, row))]
    width = max(map(len, filled), default=0)
    return Grid(tuple(tuple(row + [""] * (width - len(row))) for row in filled), caption)


def _csv(text: str) -> Iterator[Grid]:
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t|", key=first.count)
    try:
        yield _grid(list(csv.reader(lines, delimiter=delimiter, strict=True)))
    except csv.Error as error:
        raise InputError(f"not valid CSV ({error}). Copy the table again.") from error


_PIPE = re.compile(r"(?<!\\)\|")
_MARKS = re.compile(r"\*\*|__|`|\[\^[^\]]*\]|</?[a-z]+\s*/?>|(?<!\\)\$")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def _markdown(text: str) -> Iterator[Grid]:
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if "|" in line and not line.lstrip().startswith(("```", "~~~")):
            if line.strip("|:- \t") or "--" not in line:
                rows.append(_cells_of(line))
        elif rows:
            yield _grid(rows)
            rows = []


def _cells_of(line: str) -> list[str]:
    line = line.strip()
    cells = _PIPE.split(line.removeprefix("|"))
    cells = cells[:-1] if line.endswith("|") and len(cells) > 1 else cells
    return [_LINK.sub(r"\1", _MARKS.sub(" ", cell)).replace(r"\|", "|") for cell in cells]


_TABULAR = re.compile(r"\\(begin|end)\{(tabular[xy*]?|longtable)\}")
_CAPTION = re.compile(r"\\caption(?:\[[^\]]*\])?\{((?:[^{}]|\{[^{}]*\})*)\}")
_COMMENT = re.compile(r"(?<!\\)%.*")
_ARGUMENT = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
_MULTICOLUMN = re.compile(r"\\multicolumn\s*\{(\d+)\}\s*" + _ARGUMENT + r"\s*" + _ARGUMENT)
_MULTIROW = re.compile(
    r"\\multirow\s*(?:\[[^\]]*\])?\{(\d+)\}\s*(?:\[[^\]]*\])?" + _ARGUMENT + r"\s*" + _ARGUMENT
)
_LINES = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|addlinespace|endhead|endfirsthead)(?:\[[^\]]*\])?"
    r"|\\c(?:line|midrule)(?:\([^)]*\))?\{[^}]*\}"
)
_SYMBOLS = {
    **{r"\%": "%", r"\&": "&", r"\_": "_", r"\#": "#", r"\,": " ", r"\;": " ", r"\ ": " "},
    **{r"\leq": "≤", r"\le": "≤", r"\geq": "≥", r"\ge": "≥", r"\approx": "≈", r"\sim": "~"},
    **{r"\pm": "±", r"\times": "×", "--": "–", r"\dagger": "†", r"\ddagger": "‡"},
}
_QUANTITY = re.compile(r"\\(?:SI|qty)\{([^}]*)\}\{\\percent\}")
_NO_TEXT = re.compile(r"\\(?:cite[pt]?|ref|label|footnote(?:mark)?|tnote)(?:\[[^\]]*\])?\{[^}]*\}")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\[[^\]]*\])?")


def _latex(text: str) -> Iterator[Grid]:
    text = _COMMENT.sub("", text)
    captions = [(match.start(), _plain(match[1])) for match in _CAPTION.finditer(text)]
    start = None
    for mark in _TABULAR.finditer(text):
        if mark[1] == "begin":
            start = mark.end()
        elif start is not None:
            # A caption is above its table, or just below it.
            above = [told for at, told in captions if at < mark.end() + _BELOW]
            yield _grid(_rows(text[start : mark.start()]), above[-1] if above else "")
            start = None


_BELOW = 400
#: What follows the name of the environment: a place, a width, the columns.
_COLUMNS = re.compile(r"\s*(?:\[[^\]]*\])?(?:\{(?:[^{}]|\{[^{}]*\})*\}){1,2}")


def _rows(body: str) -> list[list[str]]:
    below: dict[int, tuple[int, str]] = {}
    body = _LINES.sub("", _COLUMNS.sub("", body, count=1))
    lines = re.split(r"\\\\(?:\[[^\]]*\])?|\\tabularnewline", body)
    return [_row(line, below) for line in lines if line.strip()]


def _row(line: str, below: dict[int, tuple[int, str]]) -> list[str]:
    """Return the cells of a row; `below` has the columns that a cell above fills, and how often."""
    cells: list[str] = []
    for cell in re.split(r"(?<!\\)&", line):
        span = _MULTICOLUMN.search(cell)
        inner = span[3] if span else cell
        times = int(span[1]) if span else 1
        if rows := _MULTIROW.search(inner):
            inner = rows[3]
            below[len(cells)] = (int(rows[1]), _plain(inner))
        left, above = below.get(len(cells), (0, ""))
        if left:
            below[len(cells)] = (left - 1, above)
        text = _plain(inner)
        cells += [text or (above if left else "")] * max(1, min(times, 100))
    return cells


def _plain(text: str) -> str:
    """Return LaTeX without its commands."""
    text = _NO_TEXT.sub("", _QUANTITY.sub(r"\1%", text)).replace("~", " ")
    for name, symbol in _SYMBOLS.items():
        end = r"(?![A-Za-z])" if name[-1].isalpha() else ""
        text = re.sub(re.escape(name) + end, symbol, text)
    return " ".join(re.sub(r"[{}$]", "", _COMMAND.sub("", text)).split())


class _Html(HTMLParser):
    """Collects the tables of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.grids: list[Grid] = []
        self._rows: list[list[str]] = []
        self._below: dict[int, tuple[int, str]] = {}
        self._caption, self._text, self._within = "", "", ""
        self._spans = (1, 1)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._rows, self._below, self._caption = [], {}, ""
        elif tag == "tr":
            self._rows.append([])
            self._fill()
        elif tag in ("td", "th", "caption"):
            given = dict(attrs)
            self._spans = (_span(given.get("colspan")), _span(given.get("rowspan")))
            self._text, self._within = "", tag
        elif tag == "br":
            self._text += " "

    def handle_data(self, data: str) -> None:
        if self._within:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self._caption, self._within = self._text, ""
        elif tag in ("td", "th") and self._within and self._rows:
            columns, rows = self._spans
            for _ in range(columns):
                if rows > 1:
                    self._below[len(self._rows[-1])] = (rows - 1, self._text)
                self._rows[-1].append(self._text)
            self._within = ""
            self._fill()
        elif tag == "table" and self._rows:
            self.grids.append(_grid(self._rows, " ".join(self._caption.split())))
            self._rows = []

    def _fill(self) -> None:
        """Repeat the cells above that reach into this place."""
        row = self._rows[-1]
        while self._below.get(len(row), (0, ""))[0]:
            left, text = self._below[len(row)]
            self._below[len(row)] = (left - 1, text)
            row.append(text)


def _span(text: str | None) -> int:
    return min(int(text), 100) if text and text.isdecimal() and int(text) else 1


def _html(text: str) -> Iterator[Grid]:
    parser = _Html()
    parser.feed(text)
    parser.close()
    yield from parser.grids


_READERS: Mapping[str, Callable[[str], Iterator[Grid]]] = {
    **{".csv": _csv, ".tsv": _csv, ".md": _markdown, ".tex": _latex},
    **{".html": _html, ".htm": _html},
}
