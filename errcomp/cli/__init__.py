"""The command line: parses, calls the library, prints. A command is imported when it is called."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

__all__ = ["build_parser", "main"]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    from errcomp.cli.running import build_parser

    return build_parser()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 1 a requested check failed, 2 bad usage or input."""
    before = sys.unraisablehook
    sys.unraisablehook = partial(_interrupt_again, before)
    try:
        # Imported here, so that Ctrl-C during the import is handled as it is later on.
        from errcomp.cli.running import run

        return run(argv)
    except (KeyboardInterrupt, ImportError) as error:
        if not _is_interrupt(error):
            raise
        from errcomp.cli.streams import complain

        complain("interrupted")
        return 130
    finally:
        sys.unraisablehook = before


def _is_interrupt(error: BaseException | None) -> bool:
    """Say whether an interrupt caused an error: libraries that are loading may wrap it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _interrupt_again(
    otherwise: Callable[[sys.UnraisableHookArgs], object], dropped: sys.UnraisableHookArgs
) -> None:
    """Interrupt again after Python dropped the interrupt, as it does in its own callbacks."""
    if dropped.exc_type is KeyboardInterrupt:
        from _thread import interrupt_main
        from threading import Timer

        Timer(0.01, interrupt_main).start()  # when the callback has ended
    else:
        otherwise(dropped)
