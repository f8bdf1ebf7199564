"""Which columns identify a configuration, and so match the rows of several tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["RUN_KEYS", "VARIANT_KEYS", "cannot_match"]

#: Keys whose values are ways of running the same workload.
VARIANT_KEYS = ("devices", "variant", "mode", "precision", "dtype", "compiler", "backend", "phase")

#: Keys that say what was run and where: rows that differ in one of them are never the same
#: configuration, even if a tool has only one value.
RUN_KEYS = ("device", "model", "mode", "batch", "seq_len", "kernel_class", *VARIANT_KEYS)


def cannot_match(name: str, values_of_tools: Sequence[Iterable[Any]]) -> bool:
    """Say whether a column names the tool rather than a configuration: a trace, a file, a version.

    Such a column has a single value within each tool, and different values between tools. It cannot
    match rows of two tools, and does not say what was run. Keys in `RUN_KEYS` do: tools with one
    device each have no configuration in common.

    Examples
    --------
    >>> cannot_match("trace", [["sim.csv"] * 3, ["hw.csv"] * 3])
    True
    >>> cannot_match("device", [["H100"] * 3, ["L4"] * 3]), cannot_match("batch_id", [[1, 2], [3]])
    (False, False)
    """
    every = [set(values) for values in values_of_tools]
    return name not in RUN_KEYS and len(set.union(*every)) > 1 and all(len(v) == 1 for v in every)
