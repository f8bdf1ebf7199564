"""Directive ``command-line``: every command with its options, read from the parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from errcomp.cli import build_parser

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: Characters that mark a heading, by depth.
_MARKS = "=-^"
_WIDTH = 88


def commands(
    parser: argparse.ArgumentParser, depth: int = 0
) -> Iterator[tuple[argparse.ArgumentParser, str, int]]:
    """Yield every command with its one-line help and its depth, parents first."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, child in action.choices.items():
                yield child, said.get(name, ""), depth
                yield from commands(child, depth + 1)


class CommandLine(SphinxDirective):
    """Write a section for each command, below the section with the directive."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        self.env.note_dependency(__file__)
        found = list(commands(build_parser()))
        lines = [".. list-table::", "   :widths: auto", ""]
        for parser, help_text, depth in found:
            if depth == 0:
                lines.append(f"   * - :ref:`{parser.prog} <{_anchor(parser.prog)}>`")
                lines.append(f"     - {_plain(help_text)}")
        lines.append("")
        for parser, help_text, depth in found:
            lines += [*_heading(parser.prog, depth), *_command(parser, help_text)]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def _anchor(prog: str) -> str:
    return prog.replace(" ", "-")


def _heading(prog: str, depth: int) -> list[str]:
    return [f".. _{_anchor(prog)}:", "", prog, _MARKS[depth] * len(prog), ""]


def _command(parser: argparse.ArgumentParser, help_text: str) -> list[str]:
    about = _plain(parser.description or f"{help_text[:1].upper()}{help_text[1:]}.")
    lines = [about, "", ".. code-block:: text", "", *_indented(_usage(parser)), ""]
    lines += [f".. program:: {parser.prog}", ""]
    for group in parser._action_groups:
        shown = [one for one in group._group_actions if _is_shown(one)]
        if shown:
            title = {"positional arguments": "Arguments", "options": "Options"}.get(
                group.title or "", f"{(group.title or '')[:1].upper()}{(group.title or '')[1:]}"
            )
            lines += [f".. rubric:: {title}", ""]
        for action in shown:
            lines += [f".. option:: {_names(action)}", "", *_indented(_about(action)), ""]
    return lines + _examples(parser.epilog)


def _is_shown(action: argparse.Action) -> bool:
    hidden = isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    return not hidden and action.help != argparse.SUPPRESS


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    # As wide as the page, for any width of the terminal.
    formatter = argparse.HelpFormatter(parser.prog, width=_WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, "")
    return formatter.format_help().strip().splitlines()


def _names(action: argparse.Action) -> str:
    """Write an option in the form of Sphinx: every name with its value, so that each has a link."""
    value = _value(action)
    if not action.option_strings:
        return value
    return ", ".join(f"{name} {value}".strip() for name in action.option_strings)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    metavar = action.metavar if isinstance(action.metavar, str) else None
    name = action.dest.upper() if action.option_strings else action.dest
    return metavar or ("CHOICE" if action.choices else name)


def _about(action: argparse.Action) -> list[str]:
    text = _plain((action.help or "").replace("%%", "%"))
    lines = [
        f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?")) or not text else ".")
    ]
    if action.choices is not None:
        lines += ["", "One of: " + ", ".join(f"``{choice}``" for choice in action.choices) + "."]
    if action.required and action.option_strings:
        lines += ["", "Required."]
    default = action.default
    told = "default" in text or default is None or default == argparse.SUPPRESS
    if action.option_strings and action.nargs != 0 and not told and default != []:
        lines += ["", f"Default: ``{default}``."]
    return lines


def _examples(epilog: str | None) -> list[str]:
    """Show the epilog (`Example: command` or `Start with: command`) as a block to copy."""
    if not epilog:
        return []
    title, _, command = epilog.partition(":")
    return [
        f".. rubric:: {title}",
        "",
        ".. code-block:: console",
        "",
        f"   $ {command.strip()}",
        "",
    ]


def _plain(text: str) -> str:
    """Escape the text of argparse: only backquotes are markup."""
    text = re.sub(r"(?<![`\w-])(--[a-z][a-z-]*)(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", r"`\1`", text)
    parts = re.split(r"`([^`]+)`", text)
    escaped = [re.sub(r"([\\*|_<>])", r"\\\1", part) for part in parts[::2]]
    code = [f"``{part}``\\ " for part in parts[1::2]]
    return "".join(a + b for a, b in zip(escaped, [*code, ""], strict=True))


def _indented(lines: list[str]) -> list[str]:
    return [f"   {line}" if line else "" for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
