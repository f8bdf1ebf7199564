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
from typing import TYPE_CHECKING

from errcomp import __version__
from errcomp.cli._parser import Parser, commands_of
from errcomp.cli._streams import complain, silence

if TYPE_CHECKING:
    from collections.abc import Mapping

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


# Examples that the help of every command ends with, in one place: they are all run by a test.

#: Command to examples. One may read files that an earlier one wrote.
EXAMPLES: Mapping[str, Sequence[str]] = {
    "": ("errcomp audit neusight", "errcomp report neusight -o report.html", "errcomp doctor"),
    "audit": (
        "errcomp audit neusight --where device=H100",
        "errcomp audit pairs.csv --predicted estimate --measured latency --claim 5% "
        "--aggregation mean",
    ),
    "report": ("errcomp report neusight -o report.html",),
    "propagate": (
        "errcomp propagate neusight-kernels --where device=H100",
        "errcomp propagate kernels.csv --spread 10% --assume independent,comonotonic",
        "errcomp propagate validate neusight-kernels --where device=H100,L4,V100",
    ),
    "calibrate": (
        "errcomp calibrate fit ort-cpu --estimator device -o ort.errcomp",
        "errcomp predict ort-cpu --model ort.errcomp",
    ),
    "calibrate fit": (
        "errcomp calibrate fit ort-cpu --estimator device -o ort.errcomp",
        "errcomp calibrate fit torch-cpu --estimator linear -o torch.errcomp",
    ),
    "calibrate evaluate": (
        "errcomp calibrate evaluate neusight-kernels --estimator linear --split leave-device-out",
    ),
    "calibrate show": ("errcomp calibrate show ort.errcomp",),
    "predict": (
        "errcomp predict ort-cpu --model ort.errcomp",
        "errcomp predict ort-cpu --model ort.errcomp --where model=mlp -o predicted.csv",
    ),
    "halflife": ("errcomp halflife show ort",),
    "halflife fit": ("errcomp halflife fit ort-releases --where level=model --cluster model",),
    "halflife forecast": (
        "errcomp halflife forecast ort-releases --where level=model --cluster model --error 10%",
    ),
    "halflife check": (
        "errcomp halflife check history.db new.csv --junit check.xml --markdown check.md",
    ),
    "halflife show": ("errcomp halflife show ort",),
    "history": (
        "errcomp history add history.db validations.csv",
        "errcomp history list history.db",
    ),
    "history add": (
        "errcomp history add history.db validations.csv",
        "errcomp history add history.db log.csv --column measured=latency --skip-known",
    ),
    "history list": ("errcomp history list history.db",),
    "history export": ("errcomp history export history.db -o history.parquet",),
    "metrics": (
        "errcomp metrics neusight --by device --figures mape,wape,p95_ape",
        "errcomp metrics drivers neusight",
        "errcomp metrics list",
    ),
    "claims": ("errcomp claims show NeuSight",),
    "claims list": ("errcomp claims list --level kernel",),
    "claims show": ("errcomp claims show NeuSight",),
    "claims search": (
        "errcomp claims search neusight --figure neusight=8.9% --where vendor=NVIDIA",
        "errcomp claims search neusight --figure neusight=2.3% --figure habitat=121.4%",
    ),
    "replicate": ("errcomp replicate survey --table table6_neusight",),
    "datasets": ("errcomp datasets list", "errcomp datasets show neusight"),
    "datasets list": ("errcomp datasets list",),
    "datasets show": ("errcomp datasets show neusight",),
    "datasets build": ("errcomp datasets build neusight --from neusight-artifact --to rebuilt",),
    "datasets export": (
        "errcomp datasets export neusight -o neusight.csv",
        "errcomp datasets export survey -o survey",
    ),
    "ingest": (
        "errcomp ingest trace.json --table kernels -o kernels.parquet",
        "errcomp ingest kineto-trace trace.json -o rows.csv",
    ),
    "join": (
        "errcomp join predicted.csv measured.csv --on model,layer=layer_id -o joined.csv",
        "errcomp join predicted.csv measured.csv --on model --by order -o joined.csv",
    ),
    "readers": ("errcomp readers", "errcomp readers --tool VIDUR"),
    "doctor": ("errcomp doctor", "errcomp doctor --json"),
    "completion": ("errcomp completion bash", "errcomp completion zsh"),
}


def add_examples(parser: argparse.ArgumentParser) -> None:
    """End the help of every command with its examples."""
    for name, command in _commands(parser, ""):
        lines = EXAMPLES.get(name, ())
        if lines:
            word = "example" if len(lines) == 1 else "examples"
            command.epilog = "\n".join([f"{word}:", *(f"  {line}" for line in lines)])


def _commands(
    parser: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command and group of commands with its name."""
    yield name, parser
    commands = commands_of(parser)
    for word, one in commands.choices.items() if commands else ():
        yield from _commands(one, f"{name} {word}".strip())
