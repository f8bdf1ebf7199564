"""Which measured operator of the NeuSight artifact is which predicted one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from errcomp.readers._neusight_files import Operator

__all__ = ["match_operators"]


def match_operators(
    predicted: Sequence[Operator], measured: Sequence[Operator]
) -> list[int] | None:
    """Find for each predicted operator its measured one.

    Two traces of one network can list their operators in another order, and then number them
    differently: ``add_1`` of one is ``add`` of the other. Unless both list the same names, an
    operator is recognised by what it is, by all it depends on and by all that depends on it.

    Returns
    -------
    list of int or None
        Position in ``measured`` for each operator of ``predicted``; None if they are not the same
        operators.
    """
    if [o.name for o in predicted] == [o.name for o in measured]:
        order = list(range(len(predicted)))
    else:
        numbers: dict[object, int] = {}
        places: defaultdict[object, list[int]] = defaultdict(list)
        for i, key in enumerate(_dataflow(measured, numbers)):
            places[key].append(i)
        wanted = _dataflow(predicted, numbers)
        if Counter(wanted) != Counter({key: len(found) for key, found in places.items()}):
            return None
        order = [places[key].pop(0) for key in wanted]
    if any(o.shape != measured[i].shape for o, i in zip(predicted, order, strict=True)):
        return None
    return order


def _dataflow(operators: Sequence[Operator], numbers: dict[object, int]) -> list[tuple[int, int]]:
    """Give the same number to operators with the same past and the same future."""
    above: dict[str, int] = {}
    users: defaultdict[str, list[str]] = defaultdict(list)
    kind = {o.name: re.sub(r"_\d+$", "", o.name) for o in operators}
    for operator in operators:
        inputs = tuple(sorted(above.get(name, -1) for name in operator.inputs))
        key = ("above", kind[operator.name], operator.shape, inputs)
        above[operator.name] = numbers.setdefault(key, len(numbers))
        for name in operator.inputs:
            users[name].append(operator.name)
    below: dict[str, int] = {}
    for operator in reversed(operators):
        outputs = tuple(sorted(below.get(name, -1) for name in users[operator.name]))
        follows = ("below", kind[operator.name], outputs)
        below[operator.name] = numbers.setdefault(follows, len(numbers))
    return [(above[o.name], below[o.name]) for o in operators]
