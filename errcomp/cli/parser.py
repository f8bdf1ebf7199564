"""The parser of all commands: help that ends in examples, errors that suggest the nearest name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from errcomp.cli.streams import complain, say
from errcomp.errors import InputError, did_you_mean, nearest


class _Formatter(argparse.HelpFormatter):
    """Help that keeps the lines of examples unwrapped, so that they can be copied."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"max_help_position": 28, **options})

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap a paragraph; keep lines that are indented."""
        if "\n  " not in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(indent + line for line in text.splitlines())

    def add_argument(self, action: argparse.Action) -> None:
        """Make room for the names of commands, which are indented more than options."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            longest = max(map(len, action.choices), default=0)
            indented = self._current_indent + self._indent_increment + longest
            self._action_max_length = max(self._action_max_length, indented)


class Renamed(argparse.Action):
    """An option under its old name: it works, with a warning, and is not in the help.

    Added as ``parser.add_argument("--by", action=Renamed, today="--match", choices=...)``.
    """

    def __init__(self, option_strings: Sequence[str], *, today: str, **options: Any) -> None:
        self.today = today
        options["dest"] = today.lstrip("-").replace("-", "_")
        options |= {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
        super().__init__(option_strings, **options)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the value under the current name, after those of an option that is repeated."""
        complain(f"warning: {option_string} is now {self.today}")
        so_far = getattr(namespace, self.dest, None)
        setattr(namespace, self.dest, [*so_far, values] if isinstance(so_far, list) else values)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the nearest name and where to read more."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", _Formatter)
        super().__init__(*args, **options)
        #: Option of another command that users may look for here → where it is.
        self.elsewhere: dict[str, str] = {}

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with 2, as for all bad input."""
        missing = message.partition("arguments are required: ")[2]
        for action in self._actions:
            if action.choices and missing == (action.metavar or action.dest):
                choices = ", ".join(map(str, action.choices))
                message = f"{missing.upper()} is missing: {choices}"
        complain(f"{message} (see: {self.prog} --help)")
        raise SystemExit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help, and raise if the disk is full: argparse would ignore that."""
        if file is sys.stdout:
            say(message, end="")
        else:
            super()._print_message(message, file)

    def parse_known_args(  # type: ignore[override]  # the namespace is always a plain one here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown arguments here, where the parser knows the options of its command."""
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._unknown(rest[0]))
        return known, rest

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            quoted = word.endswith((".parquet", ".pq"))
            hint = (
                f". If you typed a pattern, quote it: '{Path(word).parent / '*.parquet'}'"
                if quoted
                else ""
            )
            return f"one argument too many: {word!r}{hint}"
        option = word.partition("=")[0]
        after = [leaf.prog for leaf in leaves(self) if option in leaf._option_string_actions]
        if after:
            return f"{option} goes after its command, as in: {after[0]} {option}"
        # Without the dashes, which would make any two options look similar.
        names = {name.lstrip("-"): name for name in self._option_string_actions}
        near = nearest(option.lstrip("-"), names)
        refusal = f"no option {option!r}"
        if option in self.elsewhere:
            return f"{refusal}. {self.elsewhere[option]}"
        return f"{refusal}. Did you mean {names[near]!r}?" if near else refusal

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a wrong choice, and name the nearest."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        raise argparse.ArgumentError(
            action,
            f"invalid choice: {value!r}. {did_you_mean(str(value), choices)}"
            f"Choices: {', '.join(choices)}",
        )


def refuse_mistyped(command: str, word: str, actions: Sequence[str], tables: Iterable[str]) -> None:
    """Refuse a word in the place of a table if an action was probably meant.

    Raises
    ------
    InputError
        It is not a file, and an action is the nearest of all names.
    """
    near = nearest(word, [*actions, *tables])
    if near in actions and word != near and not Path(word).exists():
        raise InputError(f"{word}: no such file. Did you mean `errcomp {command} {near}`?")


class _Parsers(dict[str, Any]):
    """The parsers of commands by name: all names at once, each parser at its first use."""

    def __init__(self, names: Iterable[str], build: Callable[[str], Parser]) -> None:
        super().__init__(dict.fromkeys(names))
        self._build = build

    def __getitem__(self, name: str) -> Parser:
        parser: Parser | None = super().__getitem__(name)
        if parser is None:
            parser = self[name] = self._build(name)
        return parser

    def values(self) -> list[Parser]:  # type: ignore[override]  # a view would show unbuilt parsers
        return [self[name] for name in self]

    def items(self) -> list[tuple[str, Parser]]:  # type: ignore[override]  # likewise
        return [(name, self[name]) for name in self]


def add_commands(
    parser: Parser, helps: Mapping[str, str], build: Callable[[Parser, str], None]
) -> None:
    """Add commands, each built when it is called or inspected.

    Parameters
    ----------
    parser : Parser
        The parser of the whole command line.
    helps : mapping of str to str
        Names of the commands, and the line of help for each.
    build : callable
        Makes the parser of a command complete.
    """
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def built(name: str) -> Parser:
        command = Parser(prog=f"{parser.prog} {name}")
        build(command, name)
        return command

    commands.choices = commands._name_parser_map = _Parsers(helps, built)
    commands._choices_actions = [
        commands._ChoicesPseudoAction(name, (), text) for name, text in helps.items()
    ]


def add_examples(
    parser: argparse.ArgumentParser, name: str, examples: Mapping[str, Sequence[str]]
) -> None:
    """End the help of a command, and of the commands below it, with its examples."""
    lines = examples.get(name, ())
    if lines:
        word = "example" if len(lines) == 1 else "examples"
        parser.epilog = "\n".join([f"{word}:", *(f"  {line}" for line in lines)])
    commands = commands_of(parser)
    for word, below in commands.choices.items() if commands else ():
        add_examples(below, f"{name} {word}", examples)


def commands_of(
    parser: argparse.ArgumentParser,
) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    """Return the choice of commands of a parser, if it has any."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action
    return None


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of all commands that do something, however deep."""
    commands = commands_of(parser)
    if commands is None:
        yield parser
        return
    for command in commands.choices.values():
        yield from leaves(command)
