"""Running one command: from its arguments to the exit code, whatever goes wrong."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from errcomp import __version__
from errcomp.cli import commands
from errcomp.cli.parser import Parser, add_commands, add_examples, leaves
from errcomp.cli.streams import complain, silence

#: Examples of the whole command line; those of a command are in its file.
EXAMPLES = {
    "": ("errcomp audit neusight", "errcomp report neusight -o report.html", "errcomp doctor")
}


def build_parser() -> Parser:
    """Return the parser of the whole command line; a command is imported at its first use."""
    parser = Parser(
        prog="errcomp",
        description="How wrong is a performance prediction, why, and does the published figure "
        "hold?",
    )
    parser.add_argument("--version", action="version", version=f"errcomp {__version__}")
    add_examples(parser, "", EXAMPLES)
    add_commands(parser, command_helps(), _build)
    return parser


def command_helps() -> dict[str, str]:
    """Return every command with its line of help, read from its file without importing it."""
    heads = {}
    for path in sorted(file for folder in commands.__path__ for file in Path(folder).glob("*.py")):
        if path.stem != "__init__":
            with path.open(encoding="utf-8") as file:
                heads[path.stem] = file.readline().strip().strip('"')
    ordered = {name: heads[name] for name in (*commands.ORDER, *heads) if name in heads}
    return {name: f"{text[:1].lower()}{text[1:].rstrip('.')}" for name, text in ordered.items()}


def _build(parser: Parser, name: str) -> None:
    command = import_module(f"{commands.__name__}.{name}")
    command.build(parser)
    if name not in commands.WITHOUT_FILES:
        for leaf in leaves(parser):
            _add_limit(leaf)
    add_examples(parser, name, command.EXAMPLES)


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="raise a limit on what reading a file may cost: unpacked=4GB, files, rows, memory or "
        "seconds; may be repeated",
    )


def run(argv: Sequence[str] | None) -> int:
    """Run one command and return its exit code."""
    args = argparse.Namespace(exit_code=0, beside=[])
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as we run
    try:
        for stream in (sys.stdout, sys.stderr):
            # A terminal or pipe of another encoding gets an escape, not a crash.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with _terminated_as_interrupted():
            return _run(argv, args)
    except BrokenPipeError:  # the reader closed the pipe, e.g. `| head`
        silence()
        return int(args.exit_code)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        complain(f"{name}{error.strerror or error}")
        return 2


def _run(argv: Sequence[str] | None, args: argparse.Namespace) -> int:
    parser = build_parser()
    parser.parse_args(argv, args)
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    import logging

    from errcomp.errors import ErrcompError
    from errcomp.system.limits import limits, parsed

    # SQLAlchemy logs the traceback of a signal that comes while it closes a connection.
    pools = logging.getLogger("sqlalchemy.pool")
    if not pools.hasHandlers():
        pools.addHandler(logging.NullHandler())
    try:
        with limits(**parsed(getattr(args, "limit", ()))):
            args.run(args)
        sys.stdout.flush()
    except ErrcompError as error:
        complain(str(error))
        return 2
    return int(args.exit_code)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let a cancelled job clean up: unfinished files are removed, as after an interrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
