"""Keep a file from its name where a signal has come since it was begun.

A signal raises an exception, which a library may drop in the middle of its work. What came of that
work must not be left, so whoever gives a file its name asks first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["check_stopping", "stopping"]

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def stopping(check: Callable[[], None]) -> Iterator[None]:
    """Let `check_stopping` call `check` in the block, which raises if a signal has come."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_stopping() -> None:
    """Raise what a signal means, if one has come."""
    if (check := _CHECK.get()) is not None:
        check()
