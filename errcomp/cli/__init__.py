"""The command line: parses, calls the library, prints. A command is imported when it is called."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

__all__ = ["build_parser", "main"]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    from errcomp.cli.running import build_parser

    return build_parser()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 1 a check failed, 2 bad usage or input, 130 interrupted."""
    if argv is None:  # in a process of its own, most objects live to its end
        gc.set_threshold(50_000, 20, 20)
    try:
        # Imported here, so that Ctrl-C during the import is handled as it is later on.
        from errcomp.cli.running import run

        return run(argv)
    except KeyboardInterrupt:
        from errcomp.cli.streams import complain

        complain("interrupted")
        # What clears the mark that Ctrl-C leaves in code run by exec, such as that of data
        # classes: with it, `python -m` would end itself by SIGINT.
        exec("")
        return 130
