"""How long the search for the subset behind a claim takes, beside searching by hand.

Run: python benchmarks/bench_search.py [--quick] [-o FOLDER]

There is no other tool for it. By hand: subsets of devices and models one after the other, as a
filter of a frame (pandas) or as masks (NumPy), and the mean error of each: one rule where errcomp
tries a hundred. Both sides search other numbers of subsets, so that seconds are those of 1,000
subsets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import asking
import numpy as np
import pandas as pd
import timing

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
SOME = 4_000


def subsets(devices: list[str], models: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield unions of devices with unions of models, simple ones first."""
    for size in range(1, len(devices) + 1):
        for chosen in itertools.combinations(devices, size):
            for count in range(1, len(models) + 1):
                for named in itertools.combinations(models, count):
                    yield list(chosen), list(named)


def table() -> pd.DataFrame:
    pairs = ec.datasets.load("neusight").of_tool("neusight")
    error = np.abs(pairs.predicted / pairs.measured - 1)
    names = {key: pairs.codes(key) for key in ("device", "model")}
    return pd.DataFrame({"error": error, **{k: v.astype(str) for k, v in names.items()}})


def by_pandas(most: int) -> Callable[[], None]:
    frame = table()
    chosen = itertools.islice(subsets(sorted(set(frame.device)), sorted(set(frame.model))), most)
    listed = list(chosen)

    def work() -> None:
        found = []
        for devices, models in listed:
            part = frame[frame.device.isin(devices) & frame.model.isin(models)]
            if len(part) and round(100 * part.error.mean(), 1) == 2.3:
                found.append((devices, models))

    return work


def by_numpy(most: int) -> Callable[[], None]:
    frame = table()
    error, names = frame.error.to_numpy(), {}
    for key in ("device", "model"):
        column = frame[key].to_numpy()
        names[key] = {one: column == one for one in sorted(set(column))}
    listed = list(itertools.islice(subsets([*names["device"]], [*names["model"]]), most))

    def work() -> None:
        found = []
        for devices, models in listed:
            rows = np.logical_or.reduce([names["device"][one] for one in devices])
            rows &= np.logical_or.reduce([names["model"][one] for one in models])
            if rows.any() and round(100 * error[rows].mean(), 1) == 2.3:
                found.append((devices, models))

    return work


def measure(question: asking.Question) -> None:
    question.uses("numpy", "pandas")
    pairs, searched = ec.datasets.load("neusight"), {}
    most = SOME // 8 if question.quick else SOME
    lattice = KEYS[1] if question.quick else None
    for name, figures in QUESTIONS.items():

        def ours(name: str = name, figures: dict[str, str] = figures) -> None:
            searched[name] = search_claim(pairs, figures, keys=lattice).searched["subsets"]

        for peer, work in (("pandas by hand", by_pandas(most)), ("NumPy by hand", by_numpy(most))):
            sides = [timing.timed(ours), timing.timed(work)]
            seconds, _ = timing.in_turn(sides, min(question.runs, 5), question.budget)
            each = seconds / np.array([searched[name], most]) * 1_000
            question.keep(
                f"{name}, time per 1,000 subsets", searched[name], "subsets", peer, each, None
            )
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
