"""The phases of a training step by the names that programs give to ranges of their time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORWARD, BACKWARD, OPTIMIZER = PHASES = ("forward", "backward", "optimizer")
_SUFFIX = r"(?:[ ._-]?(?:pass|step|update))?"
_NAMES = (
    (FORWARD, re.compile(f"(?:forward|fwd){_SUFFIX}")),
    # Automatic differentiation of PyTorch marks each of its own steps.
    (BACKWARD, re.compile(rf"(?:loss\.)?(?:backward|bwd){_SUFFIX}|autograd::engine::evaluate_.*")),
    # Optimizers of PyTorch mark their own calls.
    (OPTIMIZER, re.compile(rf"opt(?:im(?:i[sz]er)?)?{_SUFFIX}|optimizer\.(?:step|zero_grad)#.*")),
)
#: From the first letter or digit to the last.
_INNER = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def phase_of(name: str) -> str | None:
    """Return the phase that a range names; None if it names none.

    Examples
    --------
    >>> [phase_of(name) for name in ("## forward ##", "Optimizer.step#SGD.step", "layer 1")]
    ['forward', 'optimizer', None]
    """
    inner = _INNER.search(name)
    plain = inner.group().lower() if inner else ""
    return next((phase for phase, known in _NAMES if known.fullmatch(plain)), None)


def phases_at(
    ranges: Sequence[tuple[str, float, float]], at: NDArray[Any]
) -> NDArray[np.int64] | None:
    """Return the phase of each point in time as a position in `PHASES`, -1 for none.

    The innermost range counts. Where nothing names forward passes, all that is not in a backward
    pass or an optimizer is forward: losses, inputs and copies too. Ranges of all threads count,
    because backward passes may run on a thread of their own.

    Parameters
    ----------
    ranges : sequence of (phase, start, end)
    at : ndarray, shape (n,)

    Returns
    -------
    ndarray of int, shape (n,), or None
        None where there is no backward pass, and no forward pass is named.

    Examples
    --------
    >>> ranges = [("backward", 4.0, 8.0), ("optimizer", 6.0, 7.0)]
    >>> phases_at(ranges, np.array([1.0, 5.0, 6.5, 7.5])).tolist()
    [0, 1, 2, 1]
    """
    named = {phase for phase, _, _ in ranges}
    if not named & {FORWARD, BACKWARD}:
        return None
    order = np.argsort(at, kind="stable")
    # Inner ranges start later, so they come after those around them.
    inner = sorted(ranges, key=lambda one: (one[1], -one[2]))
    first = np.searchsorted(at[order], [start for _, start, _ in inner])
    last = np.searchsorted(at[order], [end for _, _, end in inner], side="right")
    found = np.full(len(at), -1 if FORWARD in named else PHASES.index(FORWARD), dtype=np.int64)
    for (phase, _, _), i, j in zip(inner, first, last, strict=True):
        found[order[i:j]] = PHASES.index(phase)
    return found
