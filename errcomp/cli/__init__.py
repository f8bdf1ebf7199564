"""The command line: parses, calls the library, prints. A command is imported when it is called."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

__all__ = ["build_parser", "main"]

#: Exit codes after Ctrl-C and after SIGTERM, by what they raise.
_CODES: dict[type[BaseException], int] = {KeyboardInterrupt: 130, SystemExit: 143}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    from errcomp.cli.running import build_parser

    return build_parser()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 1 a requested check failed, 2 bad usage or input."""
    before = sys.unraisablehook
    sys.unraisablehook = partial(_signal_again, before)
    try:
        # Imported here, so that Ctrl-C during the import is handled as it is later on.
        from errcomp.cli.running import run

        return run(argv)
    except (KeyboardInterrupt, ImportError) as error:
        # Only the code: a name for the signal itself would keep what it left open.
        code = _code_of_signal(error)
        if code is None:
            raise
        if code == _CODES[KeyboardInterrupt]:
            from errcomp.cli.streams import complain

            complain("interrupted")
            # What clears the mark that Ctrl-C leaves in code run by exec, such as that of data
            # classes: with it, `python -m` would end itself by SIGINT.
            exec("")
        return code
    finally:
        sys.unraisablehook = before


def _code_of_signal(error: BaseException | None) -> int | None:
    """Return the code if a signal caused an error: libraries that are loading may wrap it."""
    while error is not None:
        for kind, code in _CODES.items():
            if isinstance(error, kind):
                return code
        error = error.__cause__ or error.__context__
    return None


def _signal_again(
    otherwise: Callable[[sys.UnraisableHookArgs], object], dropped: sys.UnraisableHookArgs
) -> None:
    """Send a signal again after Python dropped it, as it does in its own callbacks."""
    if dropped.exc_type in _CODES:
        import signal
        from _thread import interrupt_main
        from threading import Timer

        number = signal.SIGINT if dropped.exc_type is KeyboardInterrupt else signal.SIGTERM
        Timer(0.01, interrupt_main, [number]).start()  # when the callback has ended
    else:
        otherwise(dropped)
