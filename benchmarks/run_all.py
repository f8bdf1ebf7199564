"""Run every benchmark, one after the other, and write the page of the documentation.

Run: python benchmarks/run_all.py [--quick] [-o FOLDER] [--disk]

About an hour, and a few minutes more to install the peers at first; ``--disk`` adds a hundred
million rows of files. A script that fails is named at the end, and its last results stay. With
``--quick`` each is tried on small cases, nothing is kept (unless ``-o`` says where) and the page
stays.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import page

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every benchmark.")
    parser.add_argument("--quick", action="store_true", help="small cases")
    parser.add_argument("-o", dest="folder", help="folder of the results")
    parser.add_argument("--disk", action="store_true", help="also files larger than memory")
    options = parser.parse_args()
    more = ["--quick"] * options.quick + (["-o", options.folder] if options.folder else [])
    failed = []
    for name, script in page.QUESTIONS.items():
        if name == "grouped_disk" and not (options.disk or options.quick):
            continue
        print(f"== {name}", flush=True)
        command = [sys.executable, str(HERE / f"{script}.py"), *more]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    if not more:
        page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
