"""What is printed on the standard streams, whatever they lead to, and the progress bar."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

_OUTPUT = "standard output"
#: Shorter work shows nothing: a bar that flashes by tells nobody anything.
_PATIENCE_S = 2.0


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


@contextlib.contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[float, float], None]]:
    """Yield a function to call with what is done and how much there is; calling it is optional.

    The bar appears after two seconds, on a terminal only, and leaves no trace behind.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    import threading

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(title, total=None)
    # A timer, because the work itself may not report before it ends.
    timer = threading.Timer(_PATIENCE_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
