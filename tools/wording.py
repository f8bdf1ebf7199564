"""Find wording that a reader has to read twice: `python tools/wording.py [PATH ...]`.

Reads Markdown (prose and the output of commands), strings, docstrings and comments of Python,
whose strings are also what the command line and the tables show, and the text of JSON. The
patterns are in `wording.txt`, with a better wording for each. Exit code 1 if it finds any.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "tools" / "wording.txt"
#: What is read if no path is given.
PLACES = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"),
    "PACKAGE.md",
    *("docs", "datasets", "errcomp", "examples", "benchmarks", "tools", ".github"),
)
#: Folders that are made, and an environment.
SKIPPED = {"build", "results", "__pycache__", ".venv", ".peers"}
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```", re.M | re.S)
#: Fenced blocks that are read: what commands print, and plain text.
READ = ("console", "pycon", "text", "")
#: Not prose: code spans, targets of links, formulas, addresses, comments of HTML, titles in quotes,
#: and the names of documented parameters.
INLINE = re.compile(
    r"`[^`\n]+`|\]\([^)\n]*\)|\$[^$\n]+\$|https?://\S+|<!--.*?-->|\"[A-Z][^\"]{20,}\""
    r"|^ *[\w*, ]+ : ",
    re.M | re.S,
)
#: A space of a pattern, or a condition on what precedes a match.
SPACE = re.compile(r"(\(\?<[!=][^)]*\))| ")
#: Words that documents have held from the start: views show other words for them.
DOCUMENTED = {"cannot be told", "not judged"}
EXAMPLE = re.compile(r"^[ ]*(?:>>>|\.\.\.).*$", re.M)


class Rule(NamedTuple):
    """A pattern that text must not match, and what to write instead."""

    pattern: re.Pattern[str]
    better: str


class Text(NamedTuple):
    """A piece of text and its place in a file."""

    text: str
    first: int
    """Line of the file in which it begins."""
    lines: tuple[str, ...] = ()
    """The lines of the file that hold it; empty where those of the text are those of the file."""

    def line_of(self, match: re.Match[str]) -> int:
        """Return the line of the file in which a match begins."""
        if len(self.lines) in (0, self.text.count("\n") + 1):
            return self.first + self.text.count("\n", 0, match.start())
        words = match[0].split()
        for some in range(len(words), 0, -1):
            for number, line in enumerate(self.lines):
                if " ".join(words[:some]) in line:
                    return self.first + number
        return self.first


class Finding(NamedTuple):
    """A match of a rule."""

    line: int
    text: str
    better: str


def read_rules(path: Path = RULES) -> list[Rule]:
    """Read `pattern => better wording`, one a line; the pattern is a regular expression.

    A space in it also matches the end of a line, but not that of a paragraph.
    """
    rules = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, arrow, better = (part.strip() for part in line.partition("=>"))
        if not (pattern and arrow and better):
            raise ValueError(f"{path.name}, line {number}: expected pattern => better wording")
        flags = re.I if pattern == pattern.lower() else re.NOFLAG
        rules.append(Rule(re.compile(SPACE.sub(any_space, pattern), flags), better))
    return rules


def any_space(match: re.Match[str]) -> str:
    """Let a space of a pattern match where a line is wrapped, too."""
    # What precedes a match must have a known length.
    return match[1].replace(" ", r"\s") if match[1] else r"[^\S\n]*(?:\s|\n[^\S\n]*)"


def blank(match: re.Match[str]) -> str:
    """Replace a match by dots, so that what is around it keeps its place."""
    return re.sub(r"\S", "·", match[0])


def markdown(source: str) -> Iterator[Text]:
    """Yield the prose of a page, and what its commands print."""

    def without_code(block: re.Match[str]) -> str:
        lines = block[0].split("\n")
        if block[2] not in READ:
            return "\n" * (len(lines) - 1)
        return "\n".join("" if line.lstrip()[:1] in "$>`" else line for line in lines)

    text = FENCE.sub(without_code, EXAMPLE.sub("", source))
    # Indented code: after an empty line, and not in a list.
    text = re.sub(r"(?<=\n\n)(?: {4}[^\n]*\n)+", lambda code: "\n" * code[0].count("\n"), text)
    yield Text(INLINE.sub(blank, text), 1)


class Strings(ast.NodeVisitor):
    """Collects the strings of a module; what an f-string fills in becomes `{}`."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.texts: list[Text] = []

    def add(self, text: str, node: ast.Constant | ast.JoinedStr) -> None:
        """Add one, unless it is a name or a pattern rather than words."""
        if " " not in text.strip() and not re.fullmatch(r"[A-Z][a-z]+", text):
            return
        if text in DOCUMENTED:
            return
        text = INLINE.sub(blank, EXAMPLE.sub("", text))
        self.texts.append(
            Text(text, node.lineno, tuple(self.lines[node.lineno - 1 : node.end_lineno]))
        )

    def visit_Constant(self, node: ast.Constant) -> None:
        """Add a plain string."""
        if isinstance(node.value, str):
            self.add(node.value, node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Add an f-string, and the strings within what it fills in."""
        parts = [
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        ]
        self.add("".join(parts), node)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)


def python(source: str) -> Iterator[Text]:
    """Yield strings, docstrings and comments of a module, comments of several lines as one."""
    strings = Strings(source.split("\n"))
    strings.visit(ast.parse(source))
    yield from strings.texts
    block: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if first + len(block) != token.start[0] or token.line.split("#")[0].strip():
            yield Text(INLINE.sub(blank, "\n".join(block)), first)
            block, first = [], token.start[0]
        block.append(token.string.lstrip("#: "))
    yield Text(INLINE.sub(blank, "\n".join(block)), first)


def findings(path: Path, rules: list[Rule]) -> list[Finding]:
    """Return what the rules find in a file, in the order of its lines."""
    source = path.read_text(encoding="utf-8")
    texts = {".md": markdown, ".py": python}.get(path.suffix, lambda all_: iter([Text(all_, 1)]))
    found = [
        Finding(text.line_of(match), " ".join(match[0].split()), rule.better)
        for text in texts(source)
        for rule in rules
        for match in rule.pattern.finditer(text.text)
    ]
    return sorted(found)


def files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files to read of files and folders."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for file in sorted(path.rglob("*")):
            if not SKIPPED.isdisjoint(file.relative_to(path).parts):
                continue
            claims = file.suffix == ".json" and file.parent.parent.name == "tools"
            if file.suffix in (".md", ".py", ".ipynb") or claims:
                yield file


def main(arguments: list[str]) -> int:
    """Print what is found in the files given, or in the repository."""
    given = [Path(argument) for argument in arguments]
    paths = given or [ROOT / place for place in PLACES if (ROOT / place).exists()]
    rules = read_rules()
    count = 0
    for path in files(paths):
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for found in findings(path, rules):
            print(f"{shown}:{found.line}: {found.text!r}: write {found.better}")
            count += 1
    if count:
        print(f"Findings: {count}. The patterns are in {RULES.relative_to(ROOT)}.")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
