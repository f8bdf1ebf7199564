"""The bounds on how many scenarios several tools cover, against every way they could."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from errcomp.claims.replicate.judgements import _reachable

CASES = [
    (size, counts) for size in (1, 3, 4, 5) for counts in product(range(1, size + 1), repeat=2)
]
CASES += [(4, counts) for counts in product(range(1, 5), repeat=3)]


@pytest.mark.parametrize(("size", "counts"), CASES)
def test_bounds_are_those_of_all_assignments(size, counts):
    covered = [
        [sum(scenario in chosen for chosen in sets) for scenario in range(size)]
        for sets in product(*(combinations(range(size), n) for n in counts))
    ]
    expected = {(sum(n == 1 for n in tools), sum(n > 1 for n in tools)) for tools in covered}
    assert _reachable(counts, size) == expected


def test_without_tools_nothing_is_covered():
    assert _reachable([], 3) == _reachable([0, 0], 3) == {(0, 0)}
