"""A script that lets bash, zsh or fish complete commands, options and names."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.cli.parser import leaves
from errcomp.cli.streams import say

if TYPE_CHECKING:
    from errcomp.cli.parser import Parser

#: Command → examples at the end of its help. An example may read files that an earlier one wrote.
EXAMPLES = {"completion": (*(f"errcomp completion {shell}" for shell in ("bash", "zsh", "fish")),)}

#: Arguments that name a file, by their name in the help.
_FILES = (
    "FILE",
    "FILE|FOLDER",
    "PATH",
    "[FORMAT] PATH",
    "TABLE",
    "RESULT",
    "HISTORY",
    "STORE",
    "MODEL",
    "NEW",
)
_FOLDERS = ("FOLDER",)
#: Command → argument that also takes the name of a built-in table, and the table's kind.
_EMBEDDED = {
    "audit": ("table", "pairs"),
    "report": ("results", "pairs"),
    "metrics": ("table", "pairs"),
    "claims search": ("table", "pairs"),
    "propagate": ("table", "kernels"),
    "calibrate fit": ("table", "kernels"),
    "calibrate evaluate": ("table", "kernels"),
    "predict": ("table", "kernels"),
    "halflife fit": ("history", "history"),
    "halflife forecast": ("history", "history"),
    "halflife check": ("history", "history"),
    "datasets show": ("name", ""),
    "datasets build": ("name", ""),
    "datasets export": ("name", ""),
}
#: Words that may take the place of a table.
_WORDS = {"metrics": ("drivers", "list"), "propagate": ("validate",)}


def build(parser: Parser) -> None:
    """Add ``completion bash|zsh|fish``."""
    parser.description = (
        "Print a script that completes commands, options, their choices, files and "
        "built-in tables. For bash, save the script as "
        "~/.local/share/bash-completion/completions/errcomp, or put the line "
        "`source <(errcomp completion bash)` into ~/.bashrc. For zsh, save it as _errcomp "
        "in a folder of $fpath. For fish, save it as ~/.config/fish/completions/errcomp.fish."
    )
    parser.add_argument(
        "shell", choices=("bash", "zsh", "fish"), help="shell to write the script for"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    say(script(args.shell))


def script(shell: str) -> str:
    """Return the script for a shell."""
    import shtab

    from errcomp.cli import build_parser

    parser = build_parser()
    for leaf in leaves(parser):
        command = leaf.prog.removeprefix(f"{parser.prog} ")
        for action in leaf._actions:
            completer = _completer(command, action)
            if completer is not None:
                action.complete = completer  # type: ignore[attr-defined]  # where shtab looks for it
    return shtab.complete(parser, shell)


def _completer(command: str, action: argparse.Action) -> Any:
    """Return what completes an argument, where its choices do not."""
    import shtab

    name = f"_errcomp_{re.sub(r'[^a-z]+', '_', f'{command}_{action.dest}')}"
    argument, kind = _EMBEDDED.get(command, ("", ""))
    if action.dest == argument:
        words = [*_WORDS.get(command, ()), *_tables(kind)]
        return _words_or_files(name, words) if kind else _words(name, words)
    if action.choices:
        choices = [str(choice) for choice in action.choices]
        # A shell would split a choice of several words into several choices.
        return _words(name, choices) if any(" " in choice for choice in choices) else None
    if action.metavar in _FOLDERS:
        return shtab.DIRECTORY
    return shtab.FILE if action.type is Path or action.metavar in _FILES else None


def _tables(kind: str) -> Sequence[str]:
    """Return the names of the built-in tables of a kind, or of all kinds."""
    return [name for name, holds in _kinds().items() if kind in ("", holds)]


@cache  # many arguments name a table, and each time the files of all would be read
def _kinds() -> dict[str, str]:
    """Return the kind of every built-in table by its name."""
    from errcomp import datasets

    return {dataset.name: dataset.holds for dataset in datasets.list()}


def _words(name: str, words: Sequence[str]) -> dict[str, Any]:
    """Complete one of some words, which may contain spaces."""
    typed = " ".join(shlex.quote(word.replace(" ", r"\ ")) for word in words)
    bash = f"""\
{name}() {{
  local one
  for one in {typed}; do
    [[ "$one" == "$1"* ]] && printf '%s\\n' "$one"
  done
}}"""
    zsh = f"{name}() {{ compadd -- {shlex.join(words)} }}"
    return {
        **{"bash": name, "zsh": name, "fish": f"({name})"},
        "preamble": {"bash": bash, "zsh": zsh, "fish": _in_fish(name, words)},
    }


def _in_fish(name: str, words: Sequence[str]) -> str:
    """Return a function of fish that prints words, one per line."""
    return f"function {name}\n  printf '%s\\n' {shlex.join(words)}\nend"


def _words_or_files(name: str, words: Sequence[str]) -> dict[str, Any]:
    """Complete one of some words or a file; its name makes bash treat matches as files."""
    name = f"{name}_or_file"
    bash = f"""\
{name}() {{
  compgen -W {shlex.quote(shlex.join(words))} -- "$1"
  compgen -f -- "$1"
}}"""
    zsh = f"{name}() {{ compadd -- {shlex.join(words)}; _files }}"
    return {
        **{"bash": name, "zsh": name, "fish": f"({name}; __fish_complete_path)"},
        "preamble": {"bash": bash, "zsh": zsh, "fish": _in_fish(name, words)},
    }
