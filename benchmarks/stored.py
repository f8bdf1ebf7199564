"""Tables that a script prints, stored with the command that prints them, for the documentation."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
_TABLE = re.compile(r"^(\|.*\|)\n\|[-:| ]+\|\n((?:\|.*\|\n)+)", re.M)


def tables(text: str) -> list[dict[str, Any]]:
    r"""Return the Markdown tables of a text, named by their first cell, or by the heading above.

    >>> text = "| mape | n = 3 |\n|---|---:|\n| log-t | 0.91 |\n"
    >>> tables(text)
    [{'name': 'mape', 'head': ['mape', 'n = 3'], 'rows': [['log-t', '0.91']]}]
    """
    found = []
    for match in _TABLE.finditer(text):
        head, *rows = [_cells(line) for line in (match[1] + "\n" + match[2]).splitlines()]
        headings = re.findall(r"^### (.*)$", text[: match.start()], re.M)
        found.append({"name": head[0], "heading": ["", *headings][-1], "head": head, "rows": rows})
    names = [one["name"] for one in found]
    for one in found:
        heading = one.pop("heading")
        if names.count(one["name"]) > 1:
            one["name"] = heading
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def write(name: str, command: str, text: str, **facts: Any) -> None:
    """Store the tables of a text as `docs/results/NAME.json`."""
    document = {"command": command, **facts, "tables": tables(text)}
    path = RESULTS / f"{name}.json"
    path.write_text(as_text(document), encoding="utf-8")


def as_text(document: dict[str, Any]) -> str:
    """Write a document with one line per row of a table, so that a diff shows the changed rows."""

    def plain(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    head = [f"{plain(key)}: {plain(value)}" for key, value in document.items() if key != "tables"]
    found = [
        f'  {{"name": {plain(one["name"])},\n   "head": {plain(one["head"])},\n   "rows": [\n    '
        + ",\n    ".join(map(plain, one["rows"]))
        + "]}"
        for one in document["tables"]
    ]
    return "{\n " + ",\n ".join([*head, '"tables": [\n' + ",\n".join(found) + "]"]) + "\n}\n"


@contextlib.contextmanager
def printed(name: str, **facts: Any) -> Iterator[dict[str, float]]:
    """Store what is printed meanwhile, with the command, the day and how long it took.

    What the block puts into the mapping is stored as `values`.
    """
    words, start, text = [Path(sys.argv[0]).name, *sys.argv[1:]], time.monotonic(), io.StringIO()
    values: dict[str, float] = {}
    with contextlib.redirect_stdout(text):
        yield values
    print(text.getvalue(), end="")
    if values:
        facts["values"] = values
    day, seconds = datetime.date.today().isoformat(), round(time.monotonic() - start)
    command = "python benchmarks/" + shlex.join(words)
    write(name, command, text.getvalue(), made=day, seconds=seconds, **facts)
