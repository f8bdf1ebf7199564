"""Components of the stack that changed between two versions: driver, CUDA, compiler."""

from __future__ import annotations

from errcomp.tables import History
from errcomp.tables.memory.history_columns import STACK

__all__ = ["Stack"]


class Stack:
    """The versions of the components (columns ``stack_…``) under each version of a history.

    Parameters
    ----------
    history : History

    Attributes
    ----------
    components : tuple of str
        Their names, without ``stack_``; empty if the history has none.
    """

    def __init__(self, history: History) -> None:
        columns = [name for name in history.keys if name.startswith(STACK)]
        self.components = tuple(name.removeprefix(STACK) for name in columns)
        self._values = {
            component: _by_version(history, column)
            for component, column in zip(self.components, columns, strict=True)
        }

    def changed(self, before: str, after: str) -> tuple[str, ...] | None:
        """Return the components that are not the same under two versions, with their versions.

        Returns
        -------
        tuple of str or None
            None if the history has no components. A component without a value counts as "unknown".

        Examples
        --------
        >>> history = History({"version": ["1", "2"], "stack_cuda": ["12.1", "12.4"],
        ...                    "stack_driver": ["550", "550"], "measured": [9.0, 8.0]})
        >>> Stack(history).changed("1", "2")
        ('cuda 12.1 to 12.4',)
        """
        if not self.components:
            return None
        found = []
        for component, values in self._values.items():
            old, new = (values.get(version, ()) for version in (before, after))
            if old != new:
                found.append(f"{component} {_listed(old)} to {_listed(new)}")
        return tuple(found)


def _by_version(history: History, column: str) -> dict[str, tuple[str, ...]]:
    """Return the values of a column under each version, in order."""
    values: dict[str, dict[str, None]] = {}
    for version, value in zip(
        history.version.tolist(), history.column(column).tolist(), strict=True
    ):
        of_version = values.setdefault(history.versions[version], {})
        if value is not None and value == value and str(value).strip():
            of_version[str(value).strip()] = None
    return {version: tuple(sorted(found)) for version, found in values.items()}


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values) or "unknown"
