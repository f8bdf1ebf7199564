"""Every `$ errcomp …` in a ```console block of README and docs is run; its output must be as shown.

A line `…` stands for any number of lines left out. `make` commands are run by CI itself. A command
that reads a file which another shown command writes (`-o model`) finds it.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from errcomp.cli import main

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.M | re.S)


def shown_commands() -> dict[str, list[tuple[str, str]]]:
    """Return of each command the files that show it, with the output shown below it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file in FILES:
        for block in BLOCK.findall(file.read_text(encoding="utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                while command.endswith("\\"):
                    more, _, output = output.partition("\n")
                    command = command[:-1] + more.removeprefix("> ")
                if command.startswith("errcomp "):
                    found.setdefault(command.strip(), []).append((file.name, output.rstrip()))
    return found


SHOWN = shown_commands()


def commands_that_write(argv: list[str]) -> list[list[str]]:
    """Return the shown commands that write a file which this one reads."""
    found = []
    for command in SHOWN:
        words = shlex.split(command)[1:]
        if "-o" in words and words != argv and words[words.index("-o") + 1] in argv:
            found.append(words)
    return found


def test_there_are_commands_to_check() -> None:
    assert "README.md" in {file for places in SHOWN.values() for file, _ in places}


@pytest.mark.parametrize("command", SHOWN, ids=[c[:60] for c in SHOWN])
def test_output_is_as_shown(
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    argv = shlex.split(command)[1:]
    if "../shared" in command:
        if not (ROOT.parent / "shared").is_dir():
            pytest.skip("needs the third-party data folder beside the checkout")
        # Beside the folder where the command runs as well, so that it prints the path as shown.
        (tmp_path / "shared").symlink_to(ROOT.parent / "shared")
    here = tmp_path / "checkout"
    here.mkdir()
    (here / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(here)
    for made in commands_that_write(argv):
        main(made)
    capsys.readouterr()
    main(argv)
    real = capsys.readouterr().out.rstrip()
    for file, output in SHOWN[command]:
        pattern = r"\n(?:.*\n)*?".join(
            "\n".join(re.escape(line.rstrip()) for line in piece.strip("\n").splitlines())
            for piece in re.split(r"^…$", output, flags=re.M)
        )
        tail = r"(?:\n.*)*" if output.endswith("…") else ""
        text = f"\n{real}" if output.startswith("…") else real
        assert re.fullmatch(pattern.removesuffix(r"\n(?:.*\n)*?") + tail, text), (
            f"{file}: `{command}` now prints:\n{real}"
        )
