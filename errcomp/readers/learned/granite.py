"""GRANITE and Gematria: basic blocks with inverse throughputs from several tools."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import number_at

_TOKEN = re.compile(
    r'\s+|#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|'
    r"(?P<word>[A-Za-z_][\w.]*)|(?P<number>[-+]?[\d.][\w.+-]*|-inf\b)|(?P<mark>[{}<>\[\]:,;])"
)
_CLOSES = {"{": "}", "<": ">"}
_DEEPEST = 50
#: Sources that run the code on a processor; all others predict.
_MEASURE = re.compile(r"bhive|exegesis|measured|nanobench|perf[ _]counter", re.IGNORECASE)
_CPU = re.compile(r"cpu=([\w.-]+)")

Message = dict[str, list[Any]]


def read(path: AnyPath) -> Output:
    r"""Read a ``BasicBlockWithThroughputProto`` in the text format (pbtxt).

    Parameters
    ----------
    path : path
        A file, or a folder or archive of them.

    Returns
    -------
    Output
        For each ``kernel`` (a basic block, named by a hash of its content; ``block`` is its
        number) and each source the ``time`` in cycles: measured if the source runs the code,
        else predicted. Several values of a source are ``repeat`` 1, 2, …

    Raises
    ------
    InputError
        The file is not a text proto, or holds no inverse throughput.

    Notes
    -----
    Cycle counts are for as many iterations as the source used, which the file does not state.
    Throughputs of prefixes of a block are not read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "blocks.pbtxt"
    >>> _ = path.write_text('''basic_blocks {
    ...   basic_block { canonicalized_instructions { mnemonic: "NOP" } }
    ...   inverse_throughputs { source: "uica: cpu=skylake" inverse_throughput_cycles: 0.25 }
    ... }''')
    >>> read(path).rows.select("tool", "predicted", "device", "mnemonics").rows()
    [('uica', 0.25, 'skylake', 'NOP')]
    """
    return read_as(path, FORMATS)


def _recognise(source: Source) -> bool:
    return b"inverse_throughputs" in source.head and b"basic_block" in source.head


def _tokens(source: Source) -> Iterator[tuple[str, str, int]]:
    text, at, line = source.text, 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise source.error(
                f"not valid text proto: {text[at : at + 20]!r}. The file may be damaged: copy it "
                "again.",
                line=line,
            )
        if match.lastgroup:
            yield match.lastgroup, match.group(), line
        line += match.group().count("\n")
        at = match.end()


class _Parser:
    """Parses tokens into messages: fields with lists of values."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = list(_tokens(source))
        self.at = 0

    def error(self, problem: str) -> Exception:
        line = self.tokens[min(self.at, len(self.tokens) - 1)][2] if self.tokens else 1
        return self.source.error(
            f"{problem}. The file may be incomplete: copy it again.", line=line
        )

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise self.error("the text proto ends within a message")
        kind, text, _ = self.tokens[self.at]
        self.at += 1
        return kind, text

    def _sees(self, marks: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][1] in tuple(marks)

    def message(self, end: str, depth: int = 0) -> Message:
        if depth > _DEEPEST:
            raise self.error("messages are nested too deeply")
        fields: Message = {}
        while self.at < len(self.tokens):
            if end and self._sees(end):
                self.at += 1
                return fields
            if self._sees(",;"):
                self.at += 1
                continue
            kind, name = self._next()
            if kind != "word":
                raise self.error(f"expected the name of a field, got {name[:20]!r}")
            fields.setdefault(name, []).extend(self._values(depth))
        if end:
            raise self.error("the text proto ends within a message")
        return fields

    def _values(self, depth: int) -> list[Any]:
        if self._sees(":"):
            self.at += 1
        if not self._sees("["):
            return [self._value(depth)]
        self.at += 1
        values: list[Any] = []
        while not self._sees("]"):
            values.append(self._value(depth))
            if self._sees(","):
                self.at += 1
        self.at += 1
        return values

    def _value(self, depth: int) -> Any:
        kind, text = self._next()
        if text in _CLOSES:
            return self.message(_CLOSES[text], depth + 1)
        if kind == "mark":
            raise self.error(f"expected a value, got {text!r}")
        value = text[1:-1] if kind == "text" else text
        while kind == "text" and self.at < len(self.tokens) and self.tokens[self.at][0] == "text":
            value += self._next()[1][1:-1]
        return value


_tool = ToolFormats("GRANITE", gives="predictions")


@_tool.reads(
    "granite-throughputs",
    "BasicBlockWithThroughputProto (pbtxt)",
    "kernel: time (cycles)",
    _recognise,
    sample="gematria 935cbf4, test data with made-up values",
    limits="Throughputs of the prefixes of a block (its first instructions) are not read.",
)
def _read(source: Source) -> Rows:
    whole = _Parser(source).message("")
    # A file may also hold a single block.
    blocks = whole.get("basic_blocks", []) or [whole]
    rows: list[dict[str, Any]] = []
    without, made_up = 0, False
    for i, block in enumerate(blocks, start=1):
        added = _block(source, i, block) if isinstance(block, dict) else []
        rows += added
        without += not added
        made_up |= any("made up" in row["source"] for row in added)
    notes = ["The file does not state how many iterations of a block the cycles cover."]
    if made_up:
        notes.append(
            "According to the file, some values are made up for tests: draw no conclusions from "
            "them."
        )
    return Rows(rows, dropped={"basic block without throughput": without}, notes=notes)


def _block(source: Source, i: int, block: Message) -> list[dict[str, Any]]:
    content = block.get("basic_block", [{}])[0]
    listed = content.get("canonicalized_instructions", []) if isinstance(content, dict) else []
    listed = [instruction for instruction in listed if isinstance(instruction, dict)]
    names = [str(instruction.get("mnemonic", ["?"])[0]) for instruction in listed]
    keys = {
        "kernel": hashlib.sha256(repr(content).encode()).hexdigest()[:12],
        "block": i,
        "instructions": len(names),
        "mnemonics": " ".join(names),
    }
    rows = []
    for throughput in block.get("inverse_throughputs", []):
        if not isinstance(throughput, dict):
            continue
        origin = str(throughput.get("source", ["unknown"])[0])
        values = throughput.get("inverse_throughput_cycles", [])
        cpu = _CPU.search(origin)
        column = "measured" if _MEASURE.search(origin) else "predicted"
        common = {
            "tool": origin.partition(":")[0].strip() or "unknown",
            **keys,
            "source": origin,
            "device": cpu.group(1) if cpu else None,
        }
        if not values:
            rows.append({**common, "status": "no throughput"})
        for repeat, text in enumerate(values, start=1):
            value = number_at(
                source, f"inverse_throughput_cycles of block {i}", str(text).removesuffix("f")
            )
            rows.append({**common, column: value, "repeat": repeat if len(values) > 1 else None})
    return rows


FORMATS = _tool.formats
