"""What is printed on the standard streams, whatever they lead to."""

from __future__ import annotations

import contextlib
import os
import sys

__all__ = ["complain", "say", "silence"]

_OUTPUT = "standard output"


def say(text: str, end: str = "\n") -> None:
    """Print on stdout at once, so that a full disk is told and not found by nobody at the end.

    Raises
    ------
    BrokenPipeError
        Its reader has left.
    OSError
        It cannot be written; named as what it is.
    """
    try:
        sys.stdout.write(f"{text}{end}")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, _OUTPUT) from error


def complain(message: str) -> None:
    """Print one line, whatever a file name or a value in it holds."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    with contextlib.suppress(OSError):  # there is nobody to tell
        print(f"errcomp: {line}", file=sys.stderr)


def silence() -> None:
    """Keep the interpreter from flushing into the closed pipe once more when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
