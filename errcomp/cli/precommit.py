"""The hook of pre-commit: each file must be a table of pairs that errcomp can audit."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from errcomp.cli.streams import complain
from errcomp.errors import ErrcompError


def main(argv: Sequence[str] | None = None) -> int:
    r"""Read each file as a table of pairs; print a line for each that fails.

    Returns
    -------
    int
        1 if a file failed, else 0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = path.write_text("predicted,measured\n11,10\n")
    >>> main([str(path)])
    0
    """
    parser = argparse.ArgumentParser(prog="errcomp-pairs", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--predicted", metavar="COLUMN", help="column of predictions")
    parser.add_argument("--measured", metavar="COLUMN", help="column of measurements")
    for name in ("zeros", "missing"):
        parser.add_argument(f"--{name}", choices=("raise", "exclude"), default="raise")
    args = parser.parse_args(argv)
    named = {side: getattr(args, side) for side in ("predicted", "measured")}
    columns = {side: column for side, column in named.items() if column}
    # Every file is read, so that one run names all that fail.
    failed = [file for file in args.files if _fails(file, columns, args.zeros, args.missing)]
    return int(bool(failed))


def _fails(file: str, columns: dict[str, str], zeros: str, missing: str) -> bool:
    from errcomp.readers import read

    try:
        with warnings.catch_warnings(action="ignore"):
            # The output of a tool may hold no pairs: asking for them raises then.
            _ = read(file, columns=columns or None, zeros=zeros, missing=missing).pairs  # type: ignore[arg-type]
    except ErrcompError as error:
        complain(str(error))
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
