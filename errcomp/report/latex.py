"""Tables in LaTeX: booktabs, numbers aligned by siunitx, notes below."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from textwrap import wrap
from typing import Any

from errcomp.report.model import ITEM, Cell, Column, Note, Table, clean
from errcomp.report.text import WIDTH, fitting

#: Most rows of a float; a longer table becomes a longtable, which can span pages.
_FLOAT_ROWS = 40
#: Lines of small print that fit on a page; if there are more, the notes follow the float as text.
_PAGE = 56
#: Characters of a row that fit on a line of a paper, by font size; the widest also have less space
#: between columns.
_SIZES = ((64, ""), (76, r"\small"), (None, r"\footnotesize\setlength{\tabcolsep}{4pt}"))
_SMALL_FROM = 10
#: Characters after which a header wraps, and the least width of a text column that is too wide.
_HEADER, _TEXT = 14, 12
#: The space between two columns, in characters.
_GAP = 3
_LABEL = 48
_SETUP = (
    r"\sisetup{table-number-alignment=right, table-text-alignment=right, group-digits=integer, "
    "retain-explicit-plus}"
)
#: Command for a note beside its mark; it is defined locally, within the notes.
_MARKED = r"\errnote"
_HANGING = (
    rf"\def{_MARKED}#1{{\par\noindent\hangindent=2em\hangafter=1 "
    r"\makebox[2em][l]{#1}\ignorespaces}"
)
#: What only a reader at a terminal can type; a remark in brackets; and where a sentence ends.
_COMMAND = re.compile(r"(?<![\w-])--[a-z]|\berrcomp [a-z]+ [A-Z]")
_ASIDE = re.compile(r" ?\([^()]*\)")
_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z])")
#: Texts of a missing value.
_MISSING = ("", "—", "–", "-", "·", "n/a")


def latex(tables: Sequence[Table]) -> str:
    r"""Write tables as floats for a paper; the first lines name the packages they need.

    Numbers with the same unit are aligned at the decimal point (an S column of siunitx, with the
    unit in the header), with their intervals and signs in a second column. Numbers with different
    units are aligned right. Wide tables have a smaller font; tables wider than a line continue
    below with their key columns repeated; long tables become a longtable. Text is escaped.

    Examples
    --------
    >>> from errcomp.report import forms
    >>> from errcomp.report.model import Column
    >>> from errcomp.results import Estimate
    >>> columns = [
    ...     Column("GPU", lambda row: row[0]), Column("MAPE", lambda row: row[1], forms.estimate)]
    >>> rows = [
    ...     ("A_1", Estimate("mape", 0.0874, 0.056, 0.121)), ("B", Estimate("mape", float("nan")))]
    >>> text = latex([Table("Errors", columns, rows)])
    >>> print("\n".join(line for line in text.splitlines() if "&" in line))
    GPU & \multicolumn{2}{c}{MAPE (\%)} \\
    A\_1 & 8.74 & [\num{5.6}, \num{12.1}] \\
    B & {n/a} &  \\
    """
    labels: dict[str, int] = {}
    body = "\n\n".join(_table(table, _label(table.title, labels)) for table in tables)
    return f"{_preamble(body)}\n\n{body}"


def _preamble(body: str) -> str:
    packages = ["booktabs", "siunitx", *(["longtable"] if r"\begin{longtable}" in body else [])]
    lines = [f"% Needs in the preamble: \\usepackage{{{','.join(packages)}}}"]
    if needs_t1(body):
        lines.append("% and, for some letters in pdfLaTeX: \\usepackage[T1]{fontenc}")
    if needs_others(body):
        lines += [
            "% Characters such as [U+4E2D] need LuaLaTeX or XeLaTeX, and a font that has them.",
            OTHERS,
        ]
    if "longtable" in packages:
        lines.append("% A longtable needs a one-column page.")
    if r"\footnotesize" in body:
        lines.append("% On a two-column page, a wide table needs table* instead of table.")
    return "\n".join(lines)


def _label(title: str, known: dict[str, int]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "table"
    if len(slug) > _LABEL:
        slug = slug[:_LABEL].rpartition("-")[0] or slug[:_LABEL]
    known[slug] = known.get(slug, 0) + 1
    return f"tab:{slug}" + (f"-{known[slug]}" if known[slug] > 1 else "")


def _table(table: Table, label: str) -> str:
    remarks = for_paper(table.remarks())
    title, notes = escaped(table.title.strip(" ")), _notes(remarks)
    if not table.rows:
        return "\n".join(
            [rf"\par\noindent\textbf{{{title}}}", *(["{", *notes, "}"] if notes else [])]
        )
    grids = [_Grid.of(columns, table.rows) for columns in fitting(table)]
    setup = [*filter(None, [_size(grids)]), _SETUP]
    caption = [rf"\caption{{{title}}}", rf"\label{{{label}}}"]
    if len(table.rows) > _FLOAT_ROWS:
        return "\n".join(["{", *setup, *_long(grids, "".join(caption)), *notes, "}"])
    lines = [r"\begin{table}", r"\centering", *caption, *setup]
    for i, grid in enumerate(grids):
        lines += [*([r"\par\medskip"] if i else []), *grid.short()]
    if len(table.rows) * len(grids) + _lines(remarks) > _PAGE:
        after = ["", "{", rf"\par\noindent Notes to Table~\ref{{{label}}}:", *notes, "}"]
        return "\n".join([*lines, r"\end{table}", *after])
    if notes:
        lines += [r"\par\medskip", r"\begin{minipage}{\linewidth}", *notes, r"\end{minipage}"]
    return "\n".join([*lines, r"\end{table}"])


def _long(grids: Sequence[_Grid], caption: str) -> list[str]:
    """Write grids that can span pages; only the first has a caption and a number."""
    first, *others = grids
    lines = first.long(rf"{caption}\\")
    for grid in others:
        lines += [*grid.long(), r"\addtocounter{table}{-1}"]
    return lines


def _lines(notes: Sequence[Note]) -> int:
    return sum(1 + len(note.text) // WIDTH for note in notes)


def _size(grids: Sequence[_Grid]) -> str:
    width = max((grid.width for grid in grids), default=0)
    size = next(name for limit, name in _SIZES if limit is None or width <= limit)
    many = any(len(grid.headers) >= _SMALL_FROM for grid in grids)
    return size or (r"\small" if many else "")


def for_paper(notes: Sequence[Note]) -> list[Note]:
    """Leave out of the notes what says which command to type.

    Examples
    --------
    >>> notes = [
    ...     Note("no interval: 2 models are too few (for only these 2, use --cluster none)", "–"),
    ...     Note("To read a row's caveats in full: errcomp audit TABLE --where gpu=A100"),
    ... ]
    >>> [note.text for note in for_paper(notes)]
    ['no interval: 2 models are too few']
    """
    told = [replace(note, text=_without_commands(note.text)) for note in notes]
    return [note for note in told if note.text]


def _without_commands(text: str) -> str:
    if not _COMMAND.search(text):
        return text
    text = _ASIDE.sub(lambda aside: "" if _COMMAND.search(aside[0]) else aside[0], text)
    return " ".join(part for part in _SENTENCE.split(text) if not _COMMAND.search(part))


def _notes(notes: Sequence[Note]) -> list[str]:
    lines = [_note(note) for note in notes]
    hanging = [_HANGING] if any(line.startswith(_MARKED) for line in lines) else []
    return [r"\footnotesize\raggedright", *hanging, *lines, r"\par"] if lines else []


def _note(note: Note) -> str:
    """Write a note as a paragraph; a note with a mark is indented beside it."""
    if not note.mark:
        return rf"\par\noindent {escaped(note.text)}"
    mark = r"\textbullet{}" if note.mark == ITEM else escaped(note.mark)
    return f"{_MARKED}{{{mark}}} {escaped(note.text)}"


@dataclass(frozen=True, slots=True)
class _Grid:
    """Columns that fit side by side, as LaTeX.

    Attributes
    ----------
    spec : str
        Column specification of the tabular.
    headers : list of str
        One per column of the table; the header of numbers with intervals spans two columns.
    lines : list of list of str
        For each row, the cells of all columns of the tabular.
    width : int
        Width of the widest row in characters.
    """

    spec: str
    headers: list[str]
    lines: list[list[str]]
    width: int

    @classmethod
    def of(cls, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> _Grid:
        """Lay out columns; columns of long text share the space that the others leave."""
        written = [[column.cell(row) for row in rows] for column in columns]
        cells = [[cell.text.strip() for cell in column] for column in written]
        drawn = [
            _figures(column.header, given) if column.right else None
            for column, given in zip(columns, written, strict=True)
        ]
        natural = [
            len(column.header) if block is None else block.width
            for column, block in zip(columns, drawn, strict=True)
        ]
        natural = [
            width if block else max([width, *map(len, texts)])
            for width, block, texts in zip(natural, drawn, cells, strict=True)
        ]
        least = [
            width if block else min(width, max(_TEXT, *map(_longest_word, [column.header, *texts])))
            for width, block, column, texts in zip(natural, drawn, columns, cells, strict=True)
        ]
        widths = _shared_widths(natural, least)
        total = sum(widths) + _GAP * len(widths)
        done = [
            block or _text(column.header, texts, share / total if share < wanted else None)
            for column, texts, block, share, wanted in zip(
                columns, cells, drawn, widths, natural, strict=True
            )
        ]
        named = any(column.header for column in columns)
        lines = [
            [cell for parts in line for cell in parts]
            for line in zip(*(block.cells for block in done), strict=True)
        ]
        spec = " ".join(block.spec for block in done)
        return cls(spec, [block.header for block in done] if named else [], lines, total)

    def short(self) -> list[str]:
        """Return the grid as a tabular."""
        return [
            rf"\begin{{tabular}}{{{self.spec}}}",
            r"\toprule",
            *self._head(),
            *self._rows(),
            r"\bottomrule",
            r"\end{tabular}",
        ]

    def long(self, caption: str = "") -> list[str]:
        """Return the grid as a longtable, with its header on every page."""
        head = [r"\toprule", *self._head()]
        return [
            rf"\begin{{longtable}}{{{self.spec}}}",
            *([caption, *head, r"\endfirsthead"] if caption else []),
            *head,
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *self._rows(),
            r"\end{longtable}",
        ]

    def _head(self) -> list[str]:
        return [" & ".join(self.headers) + r" \\", r"\midrule"] if self.headers else []

    def _rows(self) -> list[str]:
        return [" & ".join(line) + r" \\" for line in self.lines]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One column of a table as one or two columns of the tabular."""

    spec: str
    header: str
    cells: list[list[str]]
    width: int


def _shared_widths(natural: Sequence[int], least: Sequence[int]) -> list[int]:
    """Return the widths of columns: none below its least, and the rest of a line shared equally."""
    spare = max(WIDTH - _GAP * len(natural) - sum(least), 0)
    widths = list(least)
    wanted = sorted((n - some, i) for i, (n, some) in enumerate(zip(natural, least, strict=True)))
    for rank, (more, i) in enumerate(wanted):
        share = min(more, spare // (len(wanted) - rank))
        widths[i] += share
        spare -= share
    return widths


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _text(header: str, texts: Sequence[str], share: float | None) -> _Drawn:
    """Write a text column; it wraps if `share` limits it to a share of the width."""
    spec = "l" if share is None else rf">{{\raggedright\arraybackslash}}p{{{share:.2f}\linewidth}}"
    return _Drawn(spec, escaped(header), [[escaped(text)] for text in texts], 0)


def _figures(header: str, cells: Sequence[Cell]) -> _Drawn:
    """Write a column of numbers, aligned at the decimal point if most are numbers of one unit."""
    texts = [cell.text.strip() for cell in cells]
    figures = [cell.figure for cell in cells if cell.figure]
    units = {figure.unit for figure in figures}
    exponents = any("e" in figure.number.lower() for figure in figures)
    if len(units) != 1 or 2 * len(figures) < sum(t not in _MISSING for t in texts) or exponents:
        alone = [[_in_line(cell) if cell.figure else escaped(cell.text.strip())] for cell in cells]
        return _Drawn("r", _stacked(header), alone, _width(header, texts))
    unit = units.pop()
    tails = [_tail(cell) for cell in cells]
    values = [
        _plain(cell.figure.number) if cell.figure else f"{{{escaped(text)}}}" if text else ""
        for cell, text in zip(cells, texts, strict=True)
    ]
    width = _width(header, [text.replace(unit, "", 1) for text in texts])
    spec = f"S[table-format={_format([figure.number for figure in figures])}]"
    if not any(tails):
        return _Drawn(spec, f"{{{_header(header, unit)}}}", [[value] for value in values], width)
    beside = r"@{\,}l" if any(figure.low for figure in figures) else "@{}l"
    pairs = [list(pair) for pair in zip(values, tails, strict=True)]
    return _Drawn(
        spec + beside, rf"\multicolumn{{2}}{{c}}{{{_header(header, unit)}}}", pairs, width
    )


def _width(header: str, texts: Sequence[str]) -> int:
    return max(len(max(wrap(header, _HEADER) or [""], key=len)), *map(len, texts))


def _plain(number: str) -> str:
    plain = number.replace(",", "").replace("−", "-")
    return re.sub(r"[eE]\+?(-?)0*(?=[0-9])", r"e\1", plain)


def _format(numbers: Sequence[str]) -> str:
    """Return the siunitx table-format: most digits before and after the point, and a sign."""
    parts = [_plain(number).partition(".") for number in numbers]
    digits = max(len(whole.lstrip("+-")) for whole, _, _ in parts)
    decimals = max(len(rest) for _, _, rest in parts)
    sign = next((s for s in "+-" if any(whole[0] == s for whole, _, _ in parts)), "")
    return f"{sign}{digits}.{decimals}"


def _tail(cell: Cell) -> str:
    if cell.figure is None:
        return ""
    low, high = cell.figure.low, cell.figure.high
    return (f"[{_bound(low)}, {_bound(high)}]" if low else "") + escaped(cell.marks)


def _bound(text: str) -> str:
    return (
        rf"\num{{{_plain(text)}}}" if text[-1:].isdigit() and text[0] not in "<>" else escaped(text)
    )


def _in_line(cell: Cell) -> str:
    assert cell.figure is not None  # ensured by the caller
    unit = cell.figure.unit
    text = rf"\num{{{_plain(cell.figure.number)}}}"
    text += r"\," * unit.startswith(" ") + escaped(unit.strip())
    return text + ("~" if cell.figure.low else "") + _tail(cell)


def _header(header: str, unit: str) -> str:
    """Write a header with the unit of its numbers, before a remark in square brackets."""
    if not unit.strip():
        return _stacked(header)
    name, bracket, remark = header.partition(" [")
    return _stacked(f"{name} ({unit.strip()}){bracket}{remark}")


def _stacked(text: str) -> str:
    """Write a header; a long header on several lines."""
    lines = wrap(text.replace(" %", "\u00a0%"), _HEADER, break_long_words=False)
    written = [escaped(line.replace("\u00a0%", " %")) for line in lines]
    if len(written) < 2:
        return "".join(written)
    rows = r"\\".join(written)
    return rf"\begin{{tabular}}[b]{{@{{}}r@{{}}}}{rows}\end{{tabular}}"


#: Command for a character without a LaTeX command, by its code point. It shows the character if the
#: engine supports Unicode and the font has it, else ``[U+1F600]``.
_OTHER = r"\errchar"
#: Definition of this command.
OTHERS = (
    rf'\DeclareRobustCommand{{{_OTHER}}}[1]{{\ifdefined\Uchar\iffontchar\font"#1 '
    r'\Uchar"#1 \else[U+#1]\fi\else[U+#1]\fi}'
)

_ASCII = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\`{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
}
_SIGNS = {
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "§": r"\S{}",
    "¶": r"\P{}",
    "•": r"\textbullet{}",
    "©": r"\textcopyright{}",
    "®": r"\textregistered{}",
    "™": r"\texttrademark{}",
    "£": r"\pounds{}",
    "€": r"\texteuro{}",
    "¡": "!`",
    "¿": "?`",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "ȷ": r"\j{}",
}
#: Commands that pdfLaTeX only has with ``\usepackage[T1]{fontenc}``.
_T1 = {
    "đ": r"\dj{}",
    "Đ": r"\DJ{}",
    "ð": r"\dh{}",
    "Ð": r"\DH{}",
    "þ": r"\th{}",
    "Þ": r"\TH{}",
    "ŋ": r"\ng{}",
    "Ŋ": r"\NG{}",
    "«": r"\guillemotleft{}",
    "»": r"\guillemotright{}",
    "„": r"\quotedblbase{}",
    "‚": r"\quotesinglbase{}",
}
_OGONEK = "\N{COMBINING OGONEK}"
_MATH = {
    "−": "-", "±": r"\pm", "∓": r"\mp", "×": r"\times", "÷": r"\div", "·": r"\cdot",
    "⋅": r"\cdot", "°": r"^{\circ}", "¬": r"\neg", "≤": r"\le", "≥": r"\ge", "≠": r"\ne",
    "≈": r"\approx", "≡": r"\equiv", "∼": r"\sim", "≃": r"\simeq", "∝": r"\propto",
    "≪": r"\ll", "≫": r"\gg", "∞": r"\infty", "√": r"\surd", "∑": r"\sum", "∏": r"\prod",
    "∫": r"\int", "∂": r"\partial", "∇": r"\nabla", "∆": r"\Delta", "Ω": r"\Omega",
    "∈": r"\in", "∉": r"\notin", "⊂": r"\subset", "⊆": r"\subseteq", "∪": r"\cup",
    "∩": r"\cap", "∅": r"\emptyset", "∀": r"\forall", "∃": r"\exists", "∧": r"\wedge",
    "∨": r"\vee", "→": r"\rightarrow", "←": r"\leftarrow", "↑": r"\uparrow",
    "↓": r"\downarrow", "↔": r"\leftrightarrow", "⇒": r"\Rightarrow", "⇐": r"\Leftarrow",
    "⇔": r"\Leftrightarrow", "↗": r"\nearrow", "↘": r"\searrow", "⌈": r"\lceil",
    "⌉": r"\rceil", "⌊": r"\lfloor", "⌋": r"\rfloor", "⟨": r"\langle", "⟩": r"\rangle",
    "✓": r"\surd", "✔": r"\surd", "✗": r"\times", "✘": r"\times", "µ": r"\mu",
    "ϑ": r"\vartheta", "ϕ": r"\varphi", "ϵ": r"\varepsilon", "★": r"\star",
}  # fmt: skip
# A dot marks a letter without a command: LaTeX uses a Latin letter for it.
_SMALL = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi . pi rho varsigma "
    "sigma tau upsilon phi chi psi omega"
)
_CAPITAL = ". . Gamma Delta . . . Theta . . Lambda . . Xi . Pi . . Sigma . Upsilon Phi . Psi Omega"
_LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": "`",
    "\N{COMBINING ACUTE ACCENT}": "'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "^",
    "\N{COMBINING TILDE}": "~",
    "\N{COMBINING DIAERESIS}": '"',
    "\N{COMBINING MACRON}": "=",
    "\N{COMBINING DOT ABOVE}": ".",
    "\N{COMBINING BREVE}": "u",
    "\N{COMBINING CARON}": "v",
    "\N{COMBINING DOUBLE ACUTE ACCENT}": "H",
    "\N{COMBINING CEDILLA}": "c",
    "\N{COMBINING DOT BELOW}": "d",
    "\N{COMBINING MACRON BELOW}": "b",
    "\N{COMBINING RING ABOVE}": "r",
    _OGONEK: "k",
}
#: Unicode decomposition tags (superscript, subscript, fraction) and their LaTeX.
_RAISED = {"<super>": r"\textsuperscript{{}}", "<sub>": r"$_{\mathrm{{}}}$", "<fraction>": "({})"}
#: Variation selectors only change how the character before them is drawn.
_VARIANTS = "\N{VARIATION SELECTOR-15}\N{VARIATION SELECTOR-16}"
#: LaTeX joins two of these characters into another character.
_LIGATURES = "-',`!?"


def escaped(text: str) -> str:
    r"""Write text as LaTeX that gives the same text with pdfLaTeX and with LuaLaTeX.

    Special characters are escaped. Double hyphens stay two hyphens. Letters with accents, Greek
    letters, arrows and mathematical signs become commands that every installation has. Other
    characters, such as emoji and Chinese, use a command that `OTHERS` defines. A hyphen before a
    digit becomes a minus, straight quotes become typographic ones, and a % sign stays with its
    number.

    Examples
    --------
    >>> print(escaped("a_b & 50 % of {x}"), escaped("--by µs"), escaped("-3.5 → café"))
    a\_b \& 50\,\% of \{x\} -{}-by $\mu$s $-$3.5 $\rightarrow$ caf\'{e}
    """
    cleaned = unicodedata.normalize("NFC", clean(text))
    out: list[str] = []
    for i, sign in enumerate(cleaned):
        piece = _piece(sign, cleaned[i - 1] if i else "", cleaned[i + 1 : i + 2])
        if out and piece and out[-1][-1] in _LIGATURES and piece[0] in _LIGATURES:
            out.append("{}")
        if piece:
            out.append(piece)
    # After the end of a row (\\), LaTeX would read [ or * as an argument of that command.
    if cleaned[:1] in ("[", "*"):
        out[0] = f"{{{out[0]}}}"
    return "".join(out)


def needs_others(text: str) -> bool:
    r"""Return whether escaped text needs the definition `OTHERS`.

    Examples
    --------
    >>> print(escaped("中"), needs_others(escaped("中")), needs_others(escaped("é")))
    \errchar{4E2D} True False
    """
    return f"{_OTHER}{{" in text


def needs_t1(text: str) -> bool:
    r"""Return whether pdfLaTeX needs ``\usepackage[T1]{fontenc}`` for escaped text.

    Examples
    --------
    >>> needs_t1(escaped("Dąbrowska")), needs_t1(escaped("Müller"))
    (True, False)
    """
    return "\\k{" in text or any(command in text for command in _T1.values())


def _piece(sign: str, before: str, after: str) -> str:
    """Write one character, given the characters before and after it."""
    if sign == '"':
        return "``" if before in ("", " ", "(", "[", "{", "/", "=") else "''"
    if sign == "-" and "0" <= after <= "9" and not (before.isalnum() or before in ("-", "_", ".")):
        return "$-$"
    if sign == " " and after == "%" and "0" <= before <= "9":
        return r"\,"
    return _command(sign)


@cache
def _command(sign: str) -> str:
    known = _letter(sign)
    if known is not None:
        return known
    # Write out ligatures, full-width letters, superscript digits, fractions and similar.
    parts = [_letter(part) for part in unicodedata.normalize("NFKC", sign)]
    if None in parts:
        return f"{_OTHER}{{{ord(sign):04X}}}"
    written = "".join(filter(None, parts))
    kind = unicodedata.decomposition(sign).partition(" ")[0]
    return _RAISED.get(kind, "{}").replace("{}", written)


def _letter(sign: str) -> str | None:
    if sign in _VARIANTS:
        return ""
    if sign in _ASCII:
        return _ASCII[sign]
    if " " <= sign <= "~":
        return sign
    if sign in _SIGNS or sign in _T1:
        return _SIGNS.get(sign) or _T1[sign]
    if sign in _MATH:
        return f"${_MATH[sign]}$"
    if sign in "⁄∕":
        return "/"
    return _greek(sign) or _accented(sign)


def _greek(sign: str) -> str:
    # Drop the accent: mathematical Greek has none.
    base = unicodedata.normalize("NFD", sign)[0]
    if base in _LATIN:
        return _LATIN[base]
    for first, names in (("α", _SMALL.split()), ("Α", _CAPITAL.split())):
        at = ord(base) - ord(first)
        if 0 <= at < len(names) and names[at] != ".":
            return f"$\\{names[at]}$"
    return ""


def _accented(sign: str) -> str | None:
    parts = unicodedata.normalize("NFD", sign)
    base, marks = parts[0], parts[1:]
    if not marks or not base.isascii() or not base.isalpha() or not set(marks) <= set(_ACCENTS):
        return None
    for mark in marks:
        base = f"\\{_ACCENTS[mark]}{{{base}}}"
    return base
