"""Check that each number of README, docs and dataset pages has a source.

A number with a unit (per cent, seconds, bytes, …) belongs to a block of text: a paragraph, an item
of a list, a heading, a table. It is covered if the page shows it in a block that tests compare, or
if a comment in the same block names its source:

    <!-- from: facts.json#torch-cpu.ratio.median, errcomp.calibration.features:SLOW_FROM -->
    <!-- given: 5 %, 12 times -->
    <!-- shown: 26 % -->
    <!-- table: calibration.json#evaluation -->
    <!-- tested: tests/examples/test_measured_systems.py -->

`from` is a value in a result of `docs/results`, in another JSON file of the repository, or a
constant of a module. A fraction may be printed in per cent and seconds in ms; the printed digits
must be those of the value. `given` is for numbers that were not measured: a level, a threshold, a
default, the input of an example, a statement by others. `shown` is for numbers that a compared
block of code on the page has without a unit or as a fraction. `table` names the stored table whose
cells are those below. `tested` names a test that compares the block.

Run `python docs/sources.py` to write the stored tables into the pages.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
#: Pages generated from results; a test compares them.
GENERATED = ("docs/benchmarks.md",)
#: Pages with quotations that a test compares with the output of the command.
QUOTED = ("docs/ci.md",)
#: Kinds of code blocks whose output is compared by tests.
COMPARED = ("console", "python", "pycon", "text")

_UNIT = (
    r"%|‰|per cent\b|points?\b|times\b|(?:[nµm]?s|minutes?|hours?|days?|weeks?|months?)\b|"
    r"[KMGT]i?B(?:/s)?\b|bytes\b|[GMk]Hz\b|[TGM]FLOP/s"
)
_ONE = r"[-+−±<>~]?\d+(?:,\d{3})*(?:\.\d+)?"
_RANGE = rf"(?:\s*\[{_ONE}, {_ONE}\])?"
_AND = r"(?:\s*(?:–|…|/|± )\s*|\s+(?:to|and|or|instead of|by|against)\s+|,\s+(?:and\s+|or\s+)?)"
_CHAIN = re.compile(
    rf"(?<![\w.,/^])({_ONE}{_RANGE}(?:{_AND}{_ONE}{_RANGE})*)\s*({_UNIT})({_RANGE})"
)
_INTERVAL = re.compile(rf"\[{_ONE}, {_ONE}\]")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
_MATH, _DATE = r"\$[^$\n]*\$", r"\b\d{4}-\d\d-\d\d\b"
_COMMENT = re.compile(r"<!--(.*?)-->", re.S)
_KINDS = ("from", "given", "shown", "table", "tested")
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[^\n]*$", re.M | re.S)
#: Errors raised by a reference that cannot be resolved.
_LOST = (KeyError, IndexError, OSError, ImportError, AttributeError, AssertionError)
#: Levels of intervals and bands, which are chosen, not measured.
_LEVEL = re.compile(
    r"(?:nominal|level of|levels of|at|promised?)\s+(?:a\s+)?(?:50|80|90|95|99) %|\b95 %|"
    r"(?:50|80|90|95|99) %(?= (?:bands?|intervals?|levels?|confidence|bounds?)\b)"
)
_SCALES = {
    "%": 100.0,
    "per cent": 100.0,
    "points": 100.0,
    "point": 100.0,
    "ms": 1e3,
    "µs": 1e6,
    "ns": 1e9,
}
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_WORDS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}


@dataclass(frozen=True)
class Figure:
    """A number as printed, with its unit."""

    text: str
    unit: str

    @property
    def value(self) -> float:
        """The number, without its sign."""
        return float(_bare(self.text))

    @property
    def decimals(self) -> int:
        """Number of decimals."""
        return len(_bare(self.text).partition(".")[2])

    def __str__(self) -> str:
        return f"{self.text} {self.unit}".strip()

    def prints(self, value: float) -> bool:
        """Whether this is how a value is printed, as a plain number or in this unit."""
        half = 0.5 * 10.0**-self.decimals * (1 + 1e-9) + 1e-12
        scales = (1.0, _SCALES.get(self.unit, 1.0))
        return any(abs(abs(value) * scale - self.value) <= half for scale in scales)


@dataclass
class Block:
    """A paragraph, an item, a heading or a table, with the marks from its comments."""

    line: int
    text: str
    marks: dict[str, list[str]] = field(default_factory=dict)

    @property
    def rows(self) -> list[list[str]]:
        """Cells of a table, without its line of dashes; empty for other blocks."""
        lines = [line.strip() for line in self.text.splitlines()]
        if not lines or not lines[0].startswith("|"):
            return []
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]


def pages() -> list[Path]:
    """Return the pages for readers, except the generated ones."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found += sorted((ROOT / "datasets").glob("*/README.md"))
    return [path for path in found if path.relative_to(ROOT).as_posix() not in GENERATED]


def _bare(text: str) -> str:
    return text.lstrip("-+−±<>~").replace(",", "")


# A page: its blocks, and its text that tests compare.


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, without code."""
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), page)
    # The lines of a comment belong to one block, in any case.
    text = _COMMENT.sub(lambda found: found[0].replace("\n", "\r"), text)
    found: list[Block] = []
    current: list[str] = []
    start = 0

    def end() -> None:
        if current:
            found.append(_block(start, "\n".join(current)))
        current.clear()

    number = 0
    for line in text.split("\n"):
        number += 1 + line.count("\r")
        here = line.removeprefix("> ")
        table, before = here.startswith("|"), [one for one in current if not _only_comment(one)]
        if not here.strip() or here.startswith("    "):
            end()
            continue
        if re.match(r"\s*(?:[*-]|\d+\.)\s", here) or (
            table != (before or [here])[0].startswith("|")
        ):
            end()
        if not current:
            start = number - line.count("\r")
        current.append(here)
    end()
    return found


def _only_comment(line: str) -> bool:
    return _COMMENT.sub("", line).strip() == ""


def _block(line: int, text: str) -> Block:
    marks: dict[str, list[str]] = {}
    for comment in _COMMENT.findall(text):
        for part in " ".join(comment.split()).split(";"):
            kind, colon, rest = part.strip().partition(":")
            if colon and kind in _KINDS:
                marks.setdefault(kind, []).extend(_items(rest))
    return Block(line, _COMMENT.sub("", text).strip("\n"), marks)


def _items(text: str) -> list[str]:
    """Split at commas outside brackets."""
    return [one.strip() for one in re.findall(r"(?:[^,\[]|,(?! )|\[[^\]]*\])+", text)]


def figures(text: str) -> list[Figure]:
    """Return the numbers of a text that have a unit, except levels of intervals."""
    text = re.sub(rf"{_MATH}|{_DATE}|`[^`]*`|\]\([^)]*\)", " ", " ".join(text.split()))
    text = _LEVEL.sub(" ", text)
    found = []
    for chain, unit, after in _CHAIN.findall(text):
        if unit != "%":
            # "η 0.78, 2 µs" are two things; "5, 10, 20 %" are three of a kind.
            chain = chain.rpartition(", ")[2]
        found += [Figure(one, unit) for one in _NUMBER.findall(f"{chain} {after}")]
    return found


def numbers(text: str) -> list[Figure]:
    """Return all numbers of a text, including those in words, with the unit that follows."""
    plain = re.sub(r"\]\([^)]*\)|`[^`]*`", " ", text)
    with_unit = {one.text: one.unit for one in figures(text)}
    found = [Figure(one, with_unit.get(one, "")) for one in _NUMBER.findall(plain)]
    words = re.findall(r"[a-z]+", plain.lower())
    return [*figures(text), *found, *(Figure(str(_WORDS[w]), "") for w in words if w in _WORDS)]


def compared(path: Path, page: str) -> str:
    """Return the parts of a page that tests compare."""
    shown = [body for kind, body in _FENCE.findall(page) if kind in COMPARED]
    if path.relative_to(ROOT).as_posix() in QUOTED:
        shown += re.findall(r"^>.*$", page, re.M)
    # A prompt's dollar sign does not begin a formula.
    return "\n".join(shown).replace("$", "")


def is_shown(figure: Figure, text: str) -> bool:
    """Whether a compared text has the number, possibly with more digits.

    With fewer than three digits, and for a rounded number, the unit must be the same.
    """
    digits = figure.text.replace(",", "").replace(".", "").lstrip("0")
    if len(digits) >= 3 and figure.text in _NUMBER.findall(text):
        return True
    return any(
        figure.decimals <= other.decimals
        and abs(other.value - figure.value) <= 0.5 * 10.0**-figure.decimals * (1 + 1e-9)
        for other in _with_unit(text)
        if other.unit == figure.unit
    )


@cache
def _with_unit(text: str) -> tuple[Figure, ...]:
    return tuple(figures(text))


# References of marks.


def resolve(reference: str) -> Any:
    """Return the value that a reference names.

    `FILE#key.key` is in a JSON file of `docs/results`, or of the repository if it names a folder.
    `[text]` selects the entry of a list that has this text, the row of a table that begins with it,
    or the column of a row. `module:NAME` is a constant.
    """
    name, hash_, keys = reference.partition("#")
    if not hash_:
        module, _, constant = reference.partition(":")
        return getattr(importlib.import_module(module), constant)
    value = _document(ROOT / name if "/" in name else RESULTS / name)
    for key in re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", keys):
        value = _within(value, *key, reference)
    return value


def _within(value: Any, text: str, key: str, reference: str) -> Any:
    if not text:
        return value[int(key)] if isinstance(value, list) else value[key]
    if isinstance(value, list):
        found = [one for one in value if text in one.values()]
    elif "rows" in value:
        rows = [row for row in value["rows"] if row[0] == text]
        found = [dict(zip(value["head"], row, strict=True)) for row in rows]
    else:
        found = [value[text]] if text in value else []
    assert len(found) == 1, f"{reference}: {len(found)} entries have {text!r}"
    return found[0]


@cache
def _document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _values(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _values(one)
    elif isinstance(value, str):
        yield from (float(one.replace(",", "")) for one in _NUMBER.findall(value))
    elif value is not None:
        yield float(value)


def stored_rows(table: Mapping[str, Any]) -> list[list[str]]:
    """Return the cells of a stored table, head first."""
    return [list(map(str, table["head"])), *(list(map(str, row)) for row in table["rows"])]


# Findings on a page.


def findings(path: Path, page: str) -> list[str]:
    """Return the numbers without a source, and the wrong marks."""
    name, text = path.relative_to(ROOT).as_posix(), compared(path, page)
    found = []
    for block in blocks(page):
        if name in QUOTED and page.splitlines()[block.line - 1].startswith(">"):
            continue
        found += [f"{name}:{block.line}: {one}" for one in _of_block(block, text)]
    return found


def _of_block(block: Block, shown: str) -> Iterator[str]:
    if block.marks and not block.text.strip():
        yield "a mark without a text"
    values: list[float] = []
    for reference in block.marks.get("from", []):
        try:
            found = resolve(reference)
        except _LOST as error:
            yield f"from {reference}: {type(error).__name__} {error}"
            continue
        yield from _not_printed(reference, found, block.text)
        values += _values(found)
    yield from _lists_that_do_not_hold(block, shown)
    if "table" in block.marks:
        yield from _differs(block)
    elif "tested" not in block.marks:
        yield from _uncovered(block, values, shown)


def _not_printed(reference: str, found: Any, text: str) -> Iterator[str]:
    values = list(_values(found))
    lost = [value for value in values if not any(one.prints(value) for one in numbers(text))]
    # In a cell with several numbers, one is enough.
    if lost and not (isinstance(found, str) and len(lost) < len(values)):
        yield f"from {reference}: the text does not have {lost[:6]}"


def _uncovered(block: Block, values: list[float], shown: str) -> Iterator[str]:
    free = {*block.marks.get("given", []), *block.marks.get("shown", [])}

    def known(figure: Figure) -> bool:
        return any(figure.prints(value) for value in values)

    for figure in figures(block.text):
        if not (str(figure) in free or known(figure) or is_shown(figure, shown)):
            yield f"{figure}: where is it from?"
    for interval in _INTERVAL.findall(re.sub(r"`[^`]*`", " ", block.text)):
        ends = [Figure(one, "%") for one in _NUMBER.findall(interval)]
        if not (interval in shown or interval in free or all(map(known, ends))):
            yield f"{interval}: where is it from?"
    if not all(map(known, _numbers_of_a_table(block.rows))):
        yield "a table of numbers: where is it from?"


def _lists_that_do_not_hold(block: Block, shown: str) -> Iterator[str]:
    there = {str(one): one for one in numbers(block.text)}
    for kind in ("given", "shown"):
        for one in block.marks.get(kind, []):
            if one not in there:
                yield f"{kind} {one}: is not in the text"
    printed = [Figure(one, "").value for one in _NUMBER.findall(shown)]
    for one in block.marks.get("shown", []):
        if one in there and not any(there[one].prints(value) for value in printed):
            yield f"shown {one}: no compared block of the page has it"
    for test in block.marks.get("tested", []):
        if not (ROOT / test).is_file():
            yield f"tested {test}: there is no such file"


def _differs(block: Block) -> Iterator[str]:
    (reference,) = block.marks["table"]
    try:
        stored = stored_rows(resolve(reference))
    except _LOST as error:
        yield f"table {reference}: {type(error).__name__} {error}"
        return
    printed = [[cell.replace("**", "") for cell in row] for row in block.rows]
    if printed != stored:
        lost = [row for row in stored if row not in printed][:3]
        yield f"table {reference}: is not what is stored, first in {lost}"


def _numbers_of_a_table(rows: list[list[str]]) -> list[Figure]:
    """Return the numbers of a table if most of its cells are plain numbers."""
    cells = [cell for row in rows[1:] for cell in row[1:] if cell]
    plain = [cell for cell in cells if re.fullmatch(r"[-+−\d.,/ %\[\]()*–]+", cell)]
    if len(plain) < 4 or 2 * len(plain) <= len(cells):
        return []
    return [Figure(one, "%") for cell in plain for one in _NUMBER.findall(cell)]


# Writing the stored tables into a page.


def with_tables(page: str) -> str:
    """Return a page with the stored cells in every marked table."""

    def table(found: re.Match[str]) -> str:
        rows = stored_rows(resolve(found[2].strip()))
        lines = [f"| {' | '.join(row)} |" for row in rows]
        left = found[3].splitlines()[1]
        return f"{found[1]}\n" + "\n".join([lines[0], left, *lines[1:]]) + "\n"

    marked = re.compile(r"^(<!-- table: ([^\n]*?) -->)\n((?:\|.*\n)+)", re.M)
    return marked.sub(table, page)


def write() -> None:
    """Write the stored tables into all pages."""
    for path in pages():
        page = path.read_text(encoding="utf-8")
        if with_tables(page) != page:
            path.write_text(with_tables(page), encoding="utf-8")


if __name__ == "__main__":
    write()
