"""Printing on the standard streams, whatever they lead to, and the progress of work."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator

_OUTPUT = "standard output"
#: Characters of a line on stderr, and how many of them are its end, which says what to do.
_MOST, _END = 2000, 800
_CUT = " … "
#: The password of a database, also in a misspelt URL, and the text before it.
_PASSWORDS = (
    re.compile(r"(postgres\w*(?:\+\w+)?:/*[^\s:/@]*:)(?!password@)\S+(?=@)", re.IGNORECASE),
    re.compile(r"(\bpassword=)[^\s&]+", re.IGNORECASE),
)
#: Seconds of work before the bar appears: a bar that only flashes helps nobody.
_PATIENCE_S = 2.0
#: Seconds between two lines of progress where there is no terminal.
_EVERY_S = 5.0


def say(text: str, end: str = "\n") -> None:
    """Print on stdout and flush, so that a full disk raises here and not at exit.

    Raises
    ------
    BrokenPipeError
        The reader closed the pipe.
    OSError
        Standard output cannot be written; the error names it.
    """
    try:
        sys.stdout.write(f"{text}{end}")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, _OUTPUT) from error


def complain(message: str) -> None:
    """Print one line on stderr, as from `one_line`."""
    with contextlib.suppress(OSError):  # stderr is closed, too
        print(f"errcomp: {one_line(message)}", file=sys.stderr)


def tell(lines: str) -> None:
    """Print lines on stderr, each as from `one_line`: names in them come from files."""
    print("\n".join(map(one_line, lines.split("\n"))), file=sys.stderr)


def one_line(text: str) -> str:
    r"""Return text with all unprintable characters escaped; long text without its middle.

    Passwords of databases are left out.

    Examples
    --------
    >>> one_line("postgresql:/me:secret@host/db: not found")
    'postgresql:/me:***@host/db: not found'
    >>> print(one_line("a\x1b[31m\n"))
    a\x1b[31m\n
    >>> len(one_line("name " * 100_000))
    2000
    """
    if len(text) > 2 * _MOST:  # an escaped character is longer, never shorter
        text = text[:_MOST] + text[-_MOST:]
    for password in _PASSWORDS:
        text = password.sub(r"\1***", text)
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(line) > _MOST:
        line = line[: _MOST - _END - len(_CUT)] + _CUT + line[-_END:]
    return line


@contextlib.contextmanager
def warnings_told(*always: type[Warning]) -> Iterator[None]:
    """Print each warning of a block once, in one line on stderr, when the block ends.

    Of other kinds than those named, only what Python would show.
    """
    with warnings.catch_warnings(record=True) as caught:
        for kind in always:
            warnings.simplefilter("always", kind)
        try:
            yield
        finally:
            from errcomp.errors import GuessedWarning

            categories = {str(warning.message): warning.category for warning in caught}
            for text, category in categories.items():
                word = "note" if issubclass(category, GuessedWarning) else "warning"
                complain(f"{word}: {' '.join(text.split())}")


def silence() -> None:
    """Keep the interpreter from flushing into the closed pipe again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[float, float], None]]:
    """Yield a function to call with the work done and the total; calling it is optional.

    After two seconds, a bar appears on a terminal, and is removed at the end; elsewhere, a line at
    most every five seconds says what is done and how long the rest may take.
    """
    if quiet:
        yield lambda done, total: None
        return
    import threading

    if not sys.stderr.isatty():
        lines = _Lines(title)
        timer = threading.Timer(_PATIENCE_S, lines.show)
        timer.daemon = True
        timer.start()
        try:
            yield lines
        finally:
            timer.cancel()
            timer.join()
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


class _Lines:
    """Prints a line of progress now and then, after the first seconds."""

    def __init__(self, title: str) -> None:
        self.title, self.what, self.share = title, "", 0.0
        self.began = self.last = time.monotonic()

    def __call__(self, done: float, total: float) -> None:
        self.share = done / total if total else 0.0
        self._show_now_and_then()

    def begin(self, what: str) -> None:
        """Name the step that begins."""
        self.what = what
        self._show_now_and_then()

    def show(self) -> None:
        """Print what is done, what is going on, and how long the rest may take, as far as known."""
        if not self.share and not self.what:
            return
        self.last = time.monotonic()
        spent = self.last - self.began
        parts = [f"{self.share:.0%} done after {spent:.0f} s"]
        if self.share:
            parts.append(f"about {spent * (1 - self.share) / self.share:.0f} s left")
        tell(f"{self.title}: {'; '.join([', '.join(parts), *filter(None, [self.what])])}")

    def _show_now_and_then(self) -> None:
        now = time.monotonic()
        if now - self.began >= _PATIENCE_S and now - self.last >= _EVERY_S and self.share < 1:
            self.show()
