"""How long errcomp takes to start, as whole processes.

Run: python benchmarks/bench_startup.py [--quick] [-o FOLDER]

A process of its own for each run, from its start to its end; files are in the system's cache. The
audit searches for the subset of the claim and has intervals. "Nothing compiled" is the first run
after an installation: Python compiles every module that it imports.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable

import asking

#: What may not be imported by the package alone.
HEAVY = ("pandas", "pymc", "matplotlib", "sklearn", "statsmodels")


def process(*arguments: str) -> Callable[[], None]:
    def work() -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    return work


def uncompiled(*arguments: str) -> Callable[[], None]:
    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            process("-X", f"pycache_prefix={folder}", *arguments)()

    return work


def pulled_in() -> list[str]:
    """Return the heavy packages that `import errcomp` loads."""
    code = f"import errcomp, sys; print(*(n for n in {HEAVY!r} if n in sys.modules))"
    return subprocess.check_output([sys.executable, "-c", code], text=True).split()


def measure(question: asking.Question) -> None:
    question.uses("numpy")
    question.takes("a bare interpreter", 1, "process", process("-c", "pass"))
    question.takes("import errcomp", 1, "process", process("-c", "import errcomp"))
    audit = ("-m", "errcomp", "audit", "neusight")
    for name, work, limit in (
        ("errcomp --help", process("-m", "errcomp", "--help"), 0.3),
        ("errcomp audit neusight", process(*audit), 1.0),
        ("errcomp audit neusight, without compiled files", uncompiled(*audit), 4.0),
        ("errcomp report neusight", process("-m", "errcomp", "report", "neusight"), 2.0),
    ):
        question.target(name, question.takes(name, 1, "process", work)["ours_slowest"], limit, "s")
    question.target("heavy packages loaded by import errcomp", len(pulled_in()), 0, "packages")


if __name__ == "__main__":
    asking.ask(
        "startup",
        "Start-up",
        "A whole process, from start to end: importing the package, printing the help, or an "
        "audit.",
        measure,
    )
