"""How long the search for the subset behind a claim takes.

Run: python benchmarks/bench_search.py [--quick] [-o FOLDER]

No other tool searches the same subsets under the same rules.
"""

from __future__ import annotations

import asking

import errcomp as ec
from errcomp.claims.search import search_claim

CLAIM = {"neusight": "2.3%"}
QUESTIONS = {
    "one figure": CLAIM,
    "one figure near that of the whole table": {"neusight": "8.9%"},
    "three figures": {"neusight": "2.3%", "habitat": "121.4%", "micro": "30.8%"},
}
#: Growing lattices.
KEYS = (
    ["device"],
    ["device", "model"],
    ["device", "model", "mode"],
    ["device", "model", "mode", "variant"],
)


def measure(question: asking.Question) -> None:
    question.uses("numpy")
    pairs, searched = ec.datasets.load("neusight"), {}
    lattice = KEYS[1] if question.quick else None
    for name, figures in QUESTIONS.items():

        def ours(name: str = name, figures: dict[str, str] = figures) -> None:
            searched[name] = search_claim(pairs, figures, keys=lattice).searched["subsets"]

        ours()
        question.takes(name, searched[name], "subsets", ours)
    growth = {}
    for keys in KEYS[:2] if question.quick else KEYS:
        n = search_claim(pairs, CLAIM, keys=keys).searched["subsets"]
        growth[n] = question.alone(lambda keys=keys: search_claim(pairs, CLAIM, keys=keys))
    question.keep_growth("one figure, 103 rules", "subsets", growth)


if __name__ == "__main__":
    asking.ask(
        "search",
        "Claim search",
        "Which subset of the built-in table, under which rule, gives a published figure?",
        measure,
    )
