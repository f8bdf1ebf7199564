"""Reading YAML without what ends the process: deep nesting, and aliases that multiply."""

from __future__ import annotations

from typing import Any

#: Lists and objects within each other; the parser in C ends the process at some 20,000.
_DEEPEST = 200
#: Values that all aliases together repeat.
_MOST = 10_000_000


def loads(text: str) -> Any:
    """Parse YAML without objects; raises yaml.YAMLError or ValueError.

    Examples
    --------
    >>> loads("{a: &x [1, 2], b: *x}")
    {'a': [1, 2], 'b': [1, 2]}
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check(yaml.parse(text, Loader=loader))
        return yaml.load(text, Loader=loader)
    except (RecursionError, TypeError) as error:
        raise ValueError(str(error).split("\n")[0] or "nested too deeply") from error


def _check(events: Any) -> None:
    """Refuse what is nested too deeply, holds itself, or is too large with all its aliases."""
    import yaml

    sizes: dict[str, int] = {}
    repeated = 0
    # Of each list and object that is open: its anchor, and how many values it holds.
    opened: list[tuple[str | None, int]] = [(None, 0)]
    for event in events:
        size = 0
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, 1))
            if len(opened) > _DEEPEST + 1:
                raise ValueError(f"nested too deeply: more than {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = opened.pop()
            if anchor is not None:
                sizes[anchor] = size
        elif isinstance(event, yaml.ScalarEvent):
            size = 1
        elif isinstance(event, yaml.AliasEvent):
            if any(event.anchor == anchor for anchor, _ in opened):
                raise ValueError(f"{event.anchor} holds itself")
            size = sizes.get(event.anchor or "", 1)
            repeated += size
            if repeated > _MOST:
                raise ValueError(f"its aliases stand for more than {_MOST:,} values")
        anchor, before = opened[-1]
        opened[-1] = (anchor, before + size)
