"""Is ``expected_by_chance`` true, are its words, and does the search find what was planted?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from errcomp.claims.search import chance, search_claim
from errcomp.claims.search.chance import nulls
from errcomp.tables import Pairs

pytestmark = pytest.mark.slow

TOOLS = ("a", "b", "c")


Floats = np.typing.NDArray[np.float64]
#: Errors of three tools in logarithms, in units of their spread, from codes of device and model.
Law = Callable[[np.random.Generator, Floats, Floats], Floats]


def plain(rng: np.random.Generator, device: Floats, model: Floats) -> Floats:
    return rng.normal(size=(3, len(device)))


def effects(rng: np.random.Generator, device: Floats, model: Floats) -> Floats:
    """Devices and models that a tool gets wrong."""
    per_device, per_model = rng.normal(size=(2, 3, 6))
    own = rng.normal(size=(3, len(device)))
    return 0.6 * per_device[:, device] + 0.6 * per_model[:, model] + 0.5 * own


def shared(rng: np.random.Generator, device: Floats, model: Floats) -> Floats:
    """What is hard for one tool is hard for all."""
    n = len(device)
    return np.sqrt(0.9) * rng.normal(size=n) + np.sqrt(0.1) * rng.normal(size=(3, n))


def mixed(rng: np.random.Generator, device: Floats, model: Floats) -> Floats:
    """One error in ten is five times the usual."""
    shape = (3, len(device))
    return rng.normal(size=shape) * np.where(rng.random(shape) < 0.1, 5, 0.7)


def synthetic(rng: np.random.Generator, law: Law = plain) -> Pairs:
    """Three tools on 6 devices x 4 models x 2 modes, some missing."""
    columns: dict[str, list[object]] = {
        key: [] for key in ("tool", "device", "model", "mode", "measured", "predicted")
    }
    cells = [(d, m, o) for d in range(6) for m in range(4) for o in range(2)]
    chosen = [cell for cell in cells if rng.random() < 0.8]
    device, model, _ = np.array(chosen).T
    error = np.clip(law(rng, device, model) * [[0.1], [0.3], [0.8]], -3, 3)
    for tool, own in zip(TOOLS, error, strict=True):
        for (d, m, o), one in zip(chosen, own, strict=True):
            measured = rng.lognormal(4, 1)
            columns["tool"].append(tool)
            columns["device"].append(f"d{d}")
            columns["model"].append(f"m{m}")
            columns["mode"].append(f"o{o}")
            columns["measured"].append(measured)
            columns["predicted"].append(measured * np.exp(one))
    return Pairs(columns)


def means(pairs: Pairs) -> dict[str, float]:
    """Mean error of each tool over the whole table."""
    error = abs(pairs.predicted - pairs.measured) / pairs.measured
    return {tool: float(error[pairs.column("tool") == tool].mean()) for tool in TOOLS}


def near(rng: np.random.Generator, percent: float) -> str:
    """Print a figure drawn log-uniformly within a factor of two."""
    return f"{percent * 2 ** rng.uniform(-1, 1):.1f}%"


@pytest.mark.parametrize("figures", [{"a": 8.0}, {"a": 8.0, "b": 25.0}])
def test_matches_of_unrelated_figures_are_as_many_as_expected(
    figures: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Under one law, the widest: figures within a factor of two of those that were published.
    monkeypatch.setattr(chance, "nulls", lambda table, figures: nulls(table, figures)[:1])
    rng = np.random.default_rng(11)
    pairs = synthetic(rng)
    printed = {tool: f"{percent:.1f}%" for tool, percent in figures.items()}
    expected = search_claim(pairs, printed).searched["by_complexity"]
    runs = 75
    counts = np.zeros((runs, len(expected)))
    for run in range(runs):
        drawn = {tool: near(rng, percent) for tool, percent in figures.items()}
        levels = search_claim(pairs, drawn, top=500).searched["by_complexity"]
        counts[run] = [np.nan if row["found"] is None else row["found"] for row in levels]
    compared = 0
    for level, row in enumerate(expected):
        found = counts[:, level]
        if np.isnan(found).any() or row["expected"] * runs < 5:
            continue
        # Matches come in clumps (rules agree on the same rows), so the spread is the observed one.
        error = np.hypot(found.std(ddof=1) / np.sqrt(runs), row["standard_error"])
        assert abs(found.mean() - row["expected"]) < 4 * error, level
        compared += 1
    assert compared >= 10


def test_expected_number_is_a_valid_p_value() -> None:
    rng = np.random.default_rng(12)
    runs, smallest = 75, []
    for _ in range(runs):
        figures = {"a": near(rng, 8.0), "b": near(rng, 25.0), "c": near(rng, 70.0)}
        matches = search_claim(synthetic(rng), figures).matches
        smallest.append(matches[0].expected_by_chance if matches else 1.0)
    for alpha in (0.02, 0.05, 0.1, 0.2):
        share = np.mean(np.array(smallest) < alpha)
        assert share <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / runs)


def test_a_planted_subset_is_found_first() -> None:
    rng = np.random.default_rng(13)
    runs, first = 40, 0
    for _ in range(runs):
        pairs = synthetic(rng)
        device = f"d{rng.integers(6)}"
        models = sorted(rng.choice([f"m{i}" for i in range(4)], 2, replace=False).tolist())
        part = pairs.where({"device": device})
        part = part.take(np.isin(part.column("model").astype(str), models))
        if part.n < 6:
            runs -= 1
            continue
        error = abs(part.predicted - part.measured) / part.measured
        figures = {
            tool: f"{100 * error[part.column('tool') == tool].mean():.1f}%" for tool in TOOLS
        }
        best = search_claim(pairs, figures).matches[0]
        wanted = {"device": [device], "model": models}
        rows = pairs.where({"tool": "a", **best.where})
        first += rows.rows.tolist() == pairs.where({"tool": "a", **wanted}).rows.tolist()
        assert best.expected_by_chance < 0.05
    assert runs > 20
    assert first >= 0.9 * runs


LAWS = (plain, effects, shared, mixed)


@pytest.mark.parametrize("closeness", [1.02, 1.05, 1.16, 1.5, 2.0])
def test_wrong_figures_near_the_mean_are_seldom_no_coincidence(closeness: float) -> None:
    rng = np.random.default_rng([14, round(100 * closeness)])
    runs, wrong = 40, 0
    for run in range(runs):
        pairs = synthetic(rng, LAWS[run % 4])
        whole = means(pairs)
        shift = rng.uniform(-1, 1, 3)
        if run // 4 % 2:
            shift = shift[0] + 0.1 * shift  # what is wrong with one is wrong with all
        # Coarse figures have matches, fine ones make them rare.
        figures = {
            tool: f"{100 * whole[tool] * closeness**by:.{run // 8 % 2}f}%"
            for tool, by in zip(TOOLS[: 1 + run // 2 % 3], shift.tolist(), strict=False)
        }
        found = search_claim(pairs, figures, keys=["device", "model"], top=1)
        wrong += "coincidence is unlikely" in found.conclusion
    assert wrong / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("keys", [("device",), ("device", "mode")])
def test_two_figures_of_a_planted_subset_are_found_first(keys: tuple[str, ...]) -> None:
    rng = np.random.default_rng([16, len(keys)])
    runs, first, wanted_runs = 0, 0, 45
    while runs < wanted_runs:
        pairs = synthetic(rng, LAWS[runs % 4])
        values = {"device": [f"d{rng.integers(6)}"], "mode": [f"o{rng.integers(2)}"]}
        inside = np.isin(pairs.column("tool"), ["a", "b"])
        for key in keys:
            inside &= np.isin(pairs.column(key), values[key])
        if inside.sum() < 6:
            continue
        part = pairs.take(inside)
        error = abs(part.predicted - part.measured) / part.measured
        figures = {
            tool: f"{100 * error[part.column('tool') == tool].mean():.1f}%" for tool in TOOLS[:2]
        }
        best = search_claim(pairs, figures, top=1).matches[0]
        rows = pairs.where({"tool": ["a", "b"], **best.where})
        first += rows.rows.tolist() == part.rows.tolist()
        runs += 1
    assert first / runs >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / runs)
