"""Running one command: from its words to the exit code, whatever goes wrong."""

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
from errcomp.cli._examples import add_examples
from errcomp.cli._parser import Parser
from errcomp.cli._streams import complain, silence

__all__ = ["build_parser", "run"]

_COMMANDS = (
    "audit",
    "report",
    "propagate",
    "calibrate",
    "predict",
    "halflife",
    "history",
    "metrics",
    "claims",
    "replicate",
    "datasets",
    "ingest",
    "join",
    "readers",
    "doctor",
    "completion",
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="errcomp",
        description="How wrong is a performance prediction, why, and is the published figure true?",
    )
    parser.add_argument("--version", action="version", version=f"errcomp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in _COMMANDS:
        import_module(f"errcomp.cli.{name}").add_parser(commands)
    add_examples(parser)
    return parser


def run(argv: Sequence[str] | None) -> int:
    """Run one command and return its exit code."""
    args = argparse.Namespace(exit_code=0, beside=[])
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who called us
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as we run
    try:
        for stream in (sys.stdout, sys.stderr):
            # A terminal or pipe of another encoding gets an escape, not a crash.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with _terminated_as_interrupted():
            return _run(argv, args)
    except BrokenPipeError:  # the reader of our output has left, e.g. `| head`
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
    from errcomp.errors import ErrcompError

    try:
        args.run(args)
        sys.stdout.flush()
    except ErrcompError as error:
        complain(str(error))
        return 2
    return int(args.exit_code)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let a cancelled job clean up behind itself: half a file is removed as when interrupted."""
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
