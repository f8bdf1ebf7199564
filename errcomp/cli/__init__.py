"""The command line: parses, calls the library, prints. Light to import: work happens at use."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from errcomp import __version__

__all__ = ["build_parser", "main"]

_COMMANDS = ("audit", "metrics", "claims", "replicate", "datasets", "ingest")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # argparse says NoReturn
        """Print one line and leave with 2, as for every other bad input."""
        print(f"errcomp: {message} (see: {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="errcomp",
        description="How wrong is a performance prediction, why, and is the published figure true?",
        epilog="Start with:  errcomp audit neusight",
    )
    parser.add_argument("--version", action="version", version=f"errcomp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name in _COMMANDS:
        import_module(f"errcomp.cli.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 1 a requested check failed, 2 bad usage or input."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 2
    from errcomp.errors import ErrcompError

    try:
        return int(args.run(args))
    except ErrcompError as error:
        print(f"errcomp: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has left, e.g. `| head`
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("errcomp: interrupted; nothing was written", file=sys.stderr)
        return 130
