"""A table on standard input, as a file: readers look at a file more than once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from errcomp.errors import InputError
from errcomp.system.limits import current, how_to_raise

#: Name of standard input in messages, bytes that are copied at once, and most bytes in all.
STDIN, _BLOCK, _PIPED = "standard input", 1 << 20, 4 << 30


@contextmanager
def standard_input() -> Iterator[Path]:
    """Yield a file with what standard input holds: readers look at a file more than once.

    Messages and warnings name standard input instead of the file.
    """
    if sys.stdin is None:
        raise InputError("standard input is closed. Give a file, or pipe a table into the command.")
    limit = current().unpacked or _PIPED
    with TemporaryDirectory(prefix="errcomp-") as folder:
        path = Path(folder, "table")
        with path.open("wb") as file:
            while block := sys.stdin.buffer.read(_BLOCK):
                if file.tell() + len(block) > limit:
                    raise InputError(
                        f"standard input has more than {limit:,} bytes. "
                        f"{how_to_raise('unpacked', '8GB')}"
                    )
                file.write(block)
        try:
            with warnings.catch_warnings(record=True) as caught:
                yield path
        except InputError as error:
            error.args = (str(error).replace(str(path), STDIN),)
            raise
        finally:
            for warning in caught:
                text = str(warning.message).replace(str(path), STDIN)
                warnings.warn(text, warning.category, stacklevel=2)
