"""A progress bar on stderr for work that may take more than two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

#: Shorter work shows nothing: a bar that flashes by tells nobody anything.
_PATIENCE_S = 2.0


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[float, float], None]]:
    """Yield a function to call with what is done and how much there is; calling it is optional.

    The bar appears after two seconds, on a terminal only, and leaves no trace behind.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
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
