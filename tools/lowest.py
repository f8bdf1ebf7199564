"""Print constraints with the lowest versions that pyproject.toml allows.

`python tools/lowest.py [EXTRA ...]`: the dependencies of errcomp, and of the extras that are named,
are at their lower bounds; all else, such as what they need in turn and pytest, is as in
constraints.txt. `make lowest` installs these. Needs nothing but Python.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([a-z,-]+)\])?(?:>=([0-9.]+))?")


def normal(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lower_bounds(project: dict[str, object], extras: Sequence[str]) -> dict[str, str]:
    """Return the lower bound of each dependency; the highest one where several extras have one.

    Examples
    --------
    >>> project = {"name": "tool", "dependencies": ["numpy>=1.26"], "optional-dependencies": {
    ...     "fit": ["numpy>=2.0", "pymc>=5.28,<6"], "all": ["tool[fit]"]}}
    >>> lower_bounds(project, ["all"])
    {'numpy': '2.0', 'pymc': '5.28'}
    """
    found: dict[str, str] = {}
    for line in _requirements(project, extras):
        match = REQUIREMENT.match(line)
        if match is None or match[3] is None:
            raise SystemExit(f"pyproject.toml: {line!r} has no lower bound. Write NAME>=VERSION.")
        name, bound = normal(match[1]), match[3]
        found[name] = max(found.get(name, bound), bound, key=_parts)
    return found


def _requirements(project: dict[str, object], extras: Sequence[str]) -> Iterable[str]:
    """Yield the requirements of the project and of extras, which may name other extras."""
    dependencies, optional = project["dependencies"], project["optional-dependencies"]
    assert isinstance(dependencies, list)
    assert isinstance(optional, dict)
    yield from dependencies
    waiting = list(extras)
    for extra in waiting:
        for line in optional[extra]:
            match = REQUIREMENT.match(line)
            if match is not None and match[1] == project["name"]:
                waiting += match[2].split(",")
            else:
                yield line


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main(extras: Sequence[str]) -> None:
    """Print the constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lowest = lower_bounds(project, extras)
    for name, bound in lowest.items():
        print(f"{name}=={bound}")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name = normal(line.partition("==")[0])
        # A part, such as psycopg-binary, has the version of its package.
        part = any(name.startswith(f"{whole}-") for whole in lowest)
        if not line.startswith("#") and name not in lowest and not part:
            print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
