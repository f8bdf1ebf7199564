"""The tools of the registry, a line each: those that can be read and those that cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from errcomp.errors import InputError, describe_names, offer
from errcomp.readers.core.registry import Format, formats

__all__ = ["NO_OUTPUT", "Tool", "tools"]

_BY_HAND = (
    "Write its figures as a table with the columns predicted and measured: `errcomp audit` takes "
    "it."
)
#: Tools of the literature of which no output is public, so that no reader can be written or tested.
NO_OUTPUT = {
    "Concorde": "Neither code nor output is public.",
    "ESM": "No output is public.",
    "Lumos": "No output is public; the PyTorch profiler traces that it takes are read.",
    "Omniverse": "Neither code nor output is public.",
    "Path Forward (Li et al.)": "Neither code nor output is public.",
    "PRISM": "Neither code nor output is public.",
    "TLP": "Predictions are not stored; its training data are TVM/Ansor logs, which are read.",
}
_GIVES = {"predictions": 1, "measurements": 2, "both": 3, "neither": 0}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool with its formats.

    Attributes
    ----------
    name : str
    formats : tuple of Format
    why : str
        Why there is none, and what to do.
    """

    name: str
    formats: tuple[Format, ...]
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        readable = [one for one in self.formats if one.read is not None]
        gives = 0
        for one in readable:
            gives |= _GIVES[one.gives]
        return {
            "tool": self.name,
            "formats": [one.name for one in self.formats],
            "files": [one.files for one in readable],
            "level": list(dict.fromkeys(level for one in readable for level in one.levels)),
            "gives": next(name for name, code in _GIVES.items() if code == gives),
            "sample_tested": any(one.sample for one in readable),
            "details": [
                {
                    "name": one.name,
                    "files": one.files,
                    "levels": list(one.levels),
                    "quantities": list(one.quantities),
                    "units": list(one.units),
                    "gives": one.gives,
                    "reference": one.reference if _GIVES[one.gives] & 2 else None,
                    "sample": one.sample,
                    "read": one.read is not None,
                    "limits": one.limits
                    or (f"read along with {one.part_of}" if one.part_of else ""),
                }
                for one in self.formats
            ],
            "why": self.why,
        }


def tools(name: str | None = None) -> list[Tool]:
    """Return the tools by name, or the one of this name.

    Raises
    ------
    InputError
        There is no such tool.

    Examples
    --------
    >>> tools("lumos")[0].formats
    ()
    """
    by_tool: dict[str, list[Format]] = {}
    for one in formats():
        by_tool.setdefault(one.tool, []).append(one)
    found = [Tool(tool, tuple(own)) for tool, own in by_tool.items()]
    found += [Tool(tool, (), f"{why} {_BY_HAND}") for tool, why in NO_OUTPUT.items()]
    found.sort(key=lambda tool: tool.name.lower())
    if name is None:
        return found
    wanted = name.lower()
    same = [tool for tool in found if tool.name.lower() == wanted]
    # kineto, nsys and ncu are names of formats; "torch" is a part of names.
    same = same or [
        tool
        for tool in found
        if wanted in tool.name.lower() or any(one.name.startswith(wanted) for one in tool.formats)
    ]
    if len(same) != 1:
        if same:
            names = [tool.name for tool in same]
            raise InputError(f"{name!r} may be several tools. Tools: {describe_names(names)}")
        names = [tool.name for tool in found]
        # Who writes "kinteo" means a format.
        first_words = (one.name.partition("-")[0] for tool in found for one in tool.formats)
        plain = {tool.lower() for tool in names}
        names += [word for word in dict.fromkeys(first_words) if word not in plain]
        raise InputError(f"no tool {name!r}. {offer('Tools', names, wanted=name)}")
    return same
