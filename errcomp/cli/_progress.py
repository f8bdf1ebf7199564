"""A progress bar on stderr for work that may take more than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

#: Shorter work shows nothing: a bar that flashes by tells nobody anything.
_PATIENCE_S = 2.0


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[float, float], None]]:
    """Yield a function to call with what is done and how much there is.

    The bar appears after two seconds, on a terminal only, and leaves no trace behind.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    begun = time.monotonic()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    task = bar.add_task(title, total=1.0)

    def report(done: float, total: float) -> None:
        if not bar.live.is_started and time.monotonic() - begun > _PATIENCE_S:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()
