"""Write `docs/glossary.md` from the terms that errcomp explains: `python tools/glossary.py`."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from errcomp.report.terms import Term, terms

PAGE = Path(__file__).resolve().parents[1] / "docs" / "glossary.md"
HEAD = """# Glossary

Terms as errcomp uses them, each with a page that says more. With `--explain`, a command explains
the terms that its tables use; HTML pages explain theirs in column heads and at the end.
"""


def glossary() -> str:
    """Return the page."""
    parts = [HEAD]
    for section, members in groupby(terms(), lambda term: term.section):
        parts.append(f"## {section}\n")
        parts += [
            f"{entry(term)}\n" for term in sorted(members, key=lambda term: term.name.lower())
        ]
    return "\n".join(parts)


def entry(term: Term) -> str:
    """Return the entry of a term, with a link to its page."""
    page, _, _ = term.page.partition("#")
    title = page.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    title = re.sub("^half ", "half-", title).capitalize()
    text = f"**{term.name}**: {term.text}"
    found = re.findall(r"(\d+(?:\.\d+)?)(?: to (\d+))? %", re.sub("`.*?`|95 %", "", text))
    # A definition has no source: tests/docs/test_sources.py asks for one of each number.
    given = ", ".join(dict.fromkeys(f"{number} %" for pair in found for number in pair if number))
    return f"{text} [{title}]({term.page})" + (f" <!-- given: {given} -->" if given else "")


if __name__ == "__main__":
    PAGE.write_text(glossary(), encoding="utf-8")
