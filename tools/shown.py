"""Run what README and docs show, and write its present output into them.

`python tools/shown.py [FILE ...]` takes all pages unless some are named. It changes the blocks that
`make docs` compares: ```console blocks with `$ errcomp …`, and ```pycon blocks. Look at the diff
before you commit it: this tool cannot know whether a new output is right.
"""

from __future__ import annotations

import difflib
import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(console|python|pycon)\n(.*?)^```", re.M | re.S)


def printed(argv: list[str], folder: Path) -> str:
    """Return what a command prints on standard output."""
    env = {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "errcomp", *argv]
    done = subprocess.run(program, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.stdout.rstrip()


def split(block: str) -> list[tuple[str, str]]:
    """Return command, as written, and output of each part of a console block."""
    parts = []
    for part in re.split(r"^(?=\$ )", block, flags=re.M):
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command += "\n" + more
        parts.append((command, output))
    return parts


def words(command: str) -> list[str]:
    """Return the words of a command without the prompt."""
    return shlex.split(re.sub(r"\\\n(> )?", "", command.removeprefix("$ ")))


def chosen(old: str, new: str) -> str:
    """Return the lines of a new output that an old one with `…` shows.

    A piece between two `…` goes from the line most like its first to the one most like its last.
    """
    pieces = [piece.strip("\n").splitlines() for piece in re.split(r"^…$", old, flags=re.M)]
    if len(pieces) == 1:
        return new
    if all("\n".join(piece) in new for piece in pieces):
        return old
    lines, shown, begin = new.splitlines(), [], 0
    for i, piece in enumerate(pieces):
        start, end = begin, begin
        if piece:
            start = begin if i == 0 else nearest(piece[0], lines, begin)
            last = i == len(pieces) - 1
            end = len(lines) if last else nearest(piece[-1], lines, start) + 1
        shown.append("\n".join(lines[start:end]))
        begin = end
    return "\n…\n".join(shown).strip("\n")


def nearest(line: str, lines: list[str], begin: int) -> int:
    """Return the place of the line most like another, from a place upward."""
    alike = [difflib.SequenceMatcher(None, line, other).ratio() for other in lines[begin:]]
    return begin + alike.index(max(alike))


class Page:
    """A page whose blocks run in order: Python in one namespace, commands in one folder."""

    def __init__(self, text: str, folder: Path, writers: list[list[str]]) -> None:
        # As in `make docs`: the Python of a page is run if it shows what it prints.
        self.runs = "\n```pycon\n" in text
        self.folder, self.writers = folder, writers
        self.names: dict[str, object] = {"__name__": "page"}

    def block(self, found: re.Match[str]) -> str:
        """Return a block with present outputs."""
        return f"```{found[1]}\n{getattr(self, found[1])(found[2])}```"

    def console(self, block: str) -> str:
        """Return a console block with present outputs."""
        shown = []
        for command, output in split(block):
            argv = words(command)
            if argv[:1] == ["errcomp"]:
                for other in self.writers:
                    if other != argv and other[other.index("-o") + 1] in argv:
                        printed(other[1:], self.folder)
                output = chosen(output.rstrip(), printed(argv[1:], self.folder))
                output += "\n" if output else ""
            shown.append(f"{command}\n{output}" if command else output)
        return "".join(shown).replace("\n\n```", "\n```")

    def python(self, block: str) -> str:
        """Run a block, and return it."""
        if self.runs:
            exec(block, self.names)
        return block

    def pycon(self, block: str) -> str:
        """Return a block of examples with present outputs."""
        example = doctest.DocTestParser().get_doctest(block, self.names, "page", "page", 0)
        runner = Printing()
        runner.run(example, out=lambda _: None, clear_globs=False)
        self.names.update(example.globs)
        for old, new in runner.differ:
            block = block.replace(old, new, 1)
        return block


class Printing(doctest.DocTestRunner):
    """Collects expected outputs that differ, with the real ones."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.differ: list[tuple[str, str]] = []

    def report_failure(self, out, test, example, got):  # type: ignore[no-untyped-def]  # noqa: D102
        if example.exc_msg:  # the message of an exception, without the way to it
            got = re.sub(r"(?s)^(Traceback .*?:\n)(?: +[^\n]*\n)+", r"\1    ...\n", got)
        self.differ.append((f"{example.source}{example.want}", f"{example.source}{got}"))


def main(names: list[str]) -> None:
    """Rewrite pages."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    commands = [
        words(command)
        for text in texts.values()
        for block in BLOCK.finditer(text)
        if block[1] == "console"
        for command, _ in split(block[2])
        if command.startswith("$ errcomp ")
    ]
    writers = [argv for argv in commands if "-o" in argv]
    for page in [Path(name).resolve() for name in names] or PAGES:
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "shared").symlink_to(ROOT.parent / "shared")
            folder = Path(scratch) / "checkout"
            folder.mkdir()
            (folder / "examples").symlink_to(ROOT / "examples")
            os.chdir(folder)
            text = BLOCK.sub(Page(texts[page], folder, writers).block, texts[page])
        if text != texts[page]:
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
