"""Running one command: from its arguments to the exit code, whatever goes wrong."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from _thread import interrupt_main
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from shlex import join
from threading import Timer, current_thread, main_thread
from types import TracebackType
from typing import Any

from errcomp import __version__
from errcomp.cli import commands
from errcomp.cli.parser import Parser, add_commands, add_examples, leaves
from errcomp.cli.streams import complain, silence, tell, warnings_told
from errcomp.errors import ErrcompError, GuessedWarning, LeftOutWarning
from errcomp.system.stopping import stopping

#: Examples of the whole command line; those of a command are in its file.
EXAMPLES = {
    "": ("errcomp audit neusight", "errcomp report neusight -o report.html", "errcomp doctor")
}
#: What a signal raises. Python's own handler of Ctrl-C raises the same.
_RAISED = (KeyboardInterrupt, SystemExit)
#: Seconds until a signal is sent again, if the command has not ended: what dropped it has.
_AGAIN_S = 0.1


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
        help="raise a limit for reading a file: unpacked (size after unpacking), files (in an "
        "archive), rows, memory or seconds, e.g. unpacked=4GB; may be repeated",
    )


def run(argv: Sequence[str] | None) -> int:
    """Run one command and return its exit code."""
    args = argparse.Namespace(exit_code=0, beside=[], instead=[])
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as we run
    with _Signals() as signals, stopping(signals.check):
        try:
            for stream in (sys.stdout, sys.stderr):
                # A terminal or pipe of another encoding gets an escape, not a crash.
                if isinstance(stream, io.TextIOWrapper):
                    stream.reconfigure(errors="backslashreplace")
            code = _run(argv, args)
            signals.check()  # a library may drop what a signal raises
            return code
        except BrokenPipeError:  # the reader closed the pipe, e.g. `| head`
            silence()
            return int(args.exit_code)
        except (ErrcompError, OSError) as error:
            signals.check()  # a library may make an error of the signal
            complain(str(error) if isinstance(error, ErrcompError) else _of_system(error))
            typed = sys.argv[1:] if argv is None else argv
            words = _without_sides(typed) if hasattr(args, "predicted") else args.instead
            for line in _commands(error, words):
                tell(line)
            return 2
        except BaseException:  # Polars has an error outside of Exception
            signals.check()
            raise


def _commands(error: Exception, words: Sequence[str]) -> Iterator[str]:
    """Yield the commands to choose from, where an error leaves a choice of columns."""
    choices = getattr(error, "choices", ()) if words else ()
    for predicted, measured in choices[:3]:
        named = ("--predicted", predicted, "--measured", measured)
        yield f"  {join(('errcomp', *words, *named))}"


def _without_sides(argv: Sequence[str]) -> list[str]:
    """Leave out the columns that the command line names already."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        option, sign, _ = word.partition("=")
        if option not in ("--predicted", "--measured"):
            kept.append(word)
        elif not sign:
            next(words, None)
    return kept


def _of_system(error: OSError) -> str:
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"


def _run(argv: Sequence[str] | None, args: argparse.Namespace) -> int:
    parser = build_parser()
    parser.parse_args(argv, args)
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    from errcomp.system.limits import limits, parsed

    with (
        limits(**parsed(getattr(args, "limit", ()))),
        warnings_told(LeftOutWarning, GuessedWarning),
    ):
        args.run(args)
    sys.stdout.flush()
    return int(args.exit_code)


class _Signals:
    """A block in which a signal raises ``KeyboardInterrupt``, or ``SystemExit`` with code 143.

    Libraries may raise another error instead, log it, or drop it: `check` says so.
    """

    def __init__(self) -> None:
        self._came = 0
        self._handlers: dict[int, Any] = {}
        self._hook = sys.unraisablehook
        self._timer: Timer | None = None
        #: While the timer is set, and from the end of the block on, a signal changes nothing.
        self._deaf = False

    def __enter__(self) -> _Signals:
        sys.unraisablehook = self._dropped
        if current_thread() is main_thread():
            # A signal that is ignored stays so.
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if before in (signal.default_int_handler, signal.SIG_DFL):
                    self._handlers[number] = before
                    signal.signal(number, self._stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._deaf = True
        self._expect_none()
        for number, before in self._handlers.items():
            signal.signal(number, before)
        sys.unraisablehook = self._hook

    def check(self) -> None:
        """Raise what the signal means, if one came; call this before an error is reported."""
        if self._came:
            raise _meaning(self._came) from None

    def _stop(self, number: int, _: object) -> None:
        if self._deaf:
            return
        self._came = number
        # A library may drop what is raised here, and Python does in its own callbacks.
        self._deaf = True
        self._expect_none()
        self._timer = Timer(_AGAIN_S, interrupt_main, [number])
        self._timer.daemon = True
        self._timer.start()
        self._deaf = False
        # One more does not keep what ends from cleaning up: Polars makes two of one Ctrl-C.
        if not isinstance(sys.exc_info()[1], _RAISED):
            raise _meaning(number)

    def _expect_none(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _dropped(self, dropped: sys.UnraisableHookArgs) -> None:
        """Report what Python drops, but for a signal, which comes again."""
        # The other one came while `__exit__` gave up its handler: the command has ended.
        late = "ignored due to race condition" in str(dropped.exc_value)
        if dropped.exc_type not in _RAISED and not late:
            self._hook(dropped)


def _meaning(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
