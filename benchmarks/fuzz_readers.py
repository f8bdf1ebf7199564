"""Do the readers survive any input? Coverage-guided fuzzing of all of them, from their fixtures.

    python benchmarks/fuzz_readers.py --seconds 600 --keep tests/data/fuzz

Needs atheris in the environment (it instruments errcomp.readers; errcomp does not depend on it).
Every input is one file, read by each format that recognises it. The run stops at an exception that
is not errcomp's, after more than 5 seconds, or above 512 MiB of memory. The input is then kept in
the folder of --keep, and tests/readers/test_fuzz.py replays it.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["errcomp.readers"]):
    from errcomp.errors import ErrcompError
    from errcomp.readers.core.registry import formats
    from errcomp.readers.core.source import Source

    # Here, as it imports the readers.
    KNOWN = [one for one in formats() if not one.folder]

FIXTURES = Path(__file__).parents[1] / "tests" / "data" / "readers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--keep", type=Path, default=Path("crashes"))
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = work / "corpus"
    corpus.mkdir()
    for number, path in enumerate(sorted(FIXTURES.rglob("*"))):
        if path.is_file() and path.stat().st_size < 1 << 16:
            shutil.copy(path, corpus / f"{number:05}")
    target = work / "input"

    def read(data: bytes) -> None:
        target.write_bytes(data)
        for one in KNOWN:
            source = Source(target)
            with contextlib.suppress(ErrcompError):
                if one.recognise(source) and one.read is not None:
                    one.read(source)

    options = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={args.seconds}",
        "-timeout=5",
        "-rss_limit_mb=2048",
        "-malloc_limit_mb=512",
        "-max_len=65536",
        f"-artifact_prefix={args.keep}/",
    ]
    atheris.Setup(options, read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
