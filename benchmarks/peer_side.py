"""The process of a peer: prepares its work, then does it once for each line that it reads.

Run by `environments.Peer` with the interpreter of the peer's environment; the standard library is
all that is sure to be there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

#: Seconds that one timing takes at least, so that the clock and the call do not count.
_LEAST = 0.005
#: Seconds of work that is run once more before it is decided how often it is repeated.
_SHORT = 0.1


def repeated(
    work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> Callable[[], tuple[float, Any]]:
    """Return what runs work, several times over if it is short: seconds of one run, and its value.

    How often is decided by the first run, or by the second one of short work.
    """
    often = 0

    def once() -> tuple[float, Any]:
        nonlocal often
        begun = clock()
        value = work()
        if not often:
            seconds = clock() - begun
            if seconds < _SHORT:  # the first run may import, and fill caches
                begun = clock()
                work()
                seconds = min(seconds, clock() - begun)
            often = max(1, round(_LEAST / max(seconds, 1e-7)))
            return seconds, value
        for _ in range(often - 1):
            work()
        return (clock() - begun) / often, value

    return once


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Keep what a peer prints out of the answers."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def main(name: str, given: str, answers: TextIO) -> None:
    def answer(**what: Any) -> None:
        print(json.dumps(what, default=float), file=answers, flush=True)

    path = Path(__file__).parent / "peers" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"peer_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module, asked = importlib.util.module_from_spec(spec), json.loads(given)
    try:
        with silent():
            spec.loader.exec_module(module)
            once = repeated(getattr(module, asked["task"])(**asked["arguments"]))
        answer(versions={package: metadata.version(package) for package in module.PACKAGES})
        for _ in sys.stdin:
            with silent():
                seconds, value = once()
            answer(seconds=seconds, value=value)
    except Exception as error:  # whatever a peer raises is the answer
        answer(error=f"{type(error).__name__}: {error}"[:300])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.stdout)
