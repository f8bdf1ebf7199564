"""Complete the list of components that `cyclonedx-py requirements` makes of constraints.txt.

`python tools/sbom.py FILE` prints the list in this file, with what the constraints do not say: who
gets a component, and what it needs. `required` is what errcomp itself needs, `optional` what its
extras need, `excluded` what only its development needs. These come from the packages of the
environment that runs this. Addresses of a package index are left out. `make sbom` calls it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = "errcomp"
#: Extras of errcomp for its development.
DEVELOPMENT = {"dev", "docs"}
#: What comes with an environment, in the version that its Python has.
UNPINNED = {"setuptools"}


def normal(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed_by(name: str, extras: Iterable[str] = ()) -> list[Requirement]:
    """Return the requirements of an installed package with these extras, in this environment."""
    try:
        lines = requires(name) or []
    except PackageNotFoundError:  # one that only another platform needs
        return []
    found = [Requirement(line) for line in lines]
    wanted = ["", *extras]
    return [
        one
        for one in found
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in wanted)
    ]


def closure(extras: Sequence[str]) -> set[str]:
    """Return the names of all packages that errcomp with these extras needs."""
    found: set[str] = set()
    waiting = [(ROOT, frozenset(extras))]
    seen = set(waiting)
    for name, wanted in waiting:
        for one in needed_by(name, wanted):
            each = (normal(one.name), frozenset(one.extras))
            found.add(each[0])
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return found - {ROOT}


def completed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with scopes and dependencies, without addresses."""
    root = document["metadata"]["component"] | {"version": metadata(ROOT)["Version"]}
    of_users = [
        extra for extra in metadata(ROOT).get_all("Provides-Extra", []) if extra not in DEVELOPMENT
    ]
    required, optional = closure(()), closure(of_users)
    refs = {normal(one["name"]): one["bom-ref"] for one in document["components"]}
    if missing := sorted(optional - set(refs) - UNPINNED):
        raise SystemExit(f"constraints.txt lacks {', '.join(missing)}. Add NAME==VERSION for each.")
    components = []
    for one in document["components"]:
        name = normal(one["name"])
        scope = "required" if name in required else "optional" if name in optional else "excluded"
        kept = {key: value for key, value in one.items() if key != "externalReferences"}
        components.append({**kept, "scope": scope})
    needs = {root["bom-ref"]: needed_by(ROOT, of_users)}
    needs |= {ref: needed_by(name) for name, ref in refs.items()}
    dependencies = [
        {
            "ref": ref,
            "dependsOn": sorted({refs[normal(n.name)] for n in found if normal(n.name) in refs}),
        }
        for ref, found in sorted(needs.items())
    ]
    tools = [
        {key: one[key] for key in ("group", "name", "type", "version") if key in one}
        for one in document["metadata"]["tools"]["components"]
    ]
    return {
        **document,
        "metadata": {**document["metadata"], "component": root, "tools": {"components": tools}},
        "components": components,
        "dependencies": dependencies,
    }


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    json.dump(completed(given), sys.stdout, indent=1, sort_keys=True)
    print()
