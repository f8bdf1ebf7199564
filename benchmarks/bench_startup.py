"""How long `import errcomp` and `errcomp --help` take, as whole processes.

Run: python benchmarks/bench_startup.py [RUNS]. Prints minimum and median in milliseconds beside a
bare interpreter. Budget: 300 ms each.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import errcomp": ["-c", "import errcomp"],
    "errcomp --help": ["-m", "errcomp", "--help"],
}


def milliseconds(arguments: list[str]) -> float:
    """Time one process from start to end."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - begun)


def main(runs: int) -> None:
    """Print a line for each command."""
    for name, arguments in COMMANDS.items():
        milliseconds(arguments)  # warms the file cache
        times = [milliseconds(arguments) for _ in range(runs)]
        print(f"{name:16} min {min(times):6.1f} ms, median {statistics.median(times):6.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
