"""Is ``expected_by_chance`` true, and does the search find what was planted?"""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.claims.search import search_claim
from errcomp.tables import Pairs

pytestmark = pytest.mark.slow

TOOLS = ("a", "b", "c")


def synthetic(rng: np.random.Generator) -> Pairs:
    """Three tools on 6 devices x 4 models x 2 modes, some missing, errors unrelated to the keys."""
    columns: dict[str, list[object]] = {
        key: [] for key in ("tool", "device", "model", "mode", "measured", "predicted")
    }
    cells = [(d, m, o) for d in range(6) for m in range(4) for o in range(2)]
    chosen = [cell for cell in cells if rng.random() < 0.8]
    for tool, spread in zip(TOOLS, (0.1, 0.3, 0.8), strict=True):
        for d, m, o in chosen:
            measured = rng.lognormal(4, 1)
            columns["tool"].append(tool)
            columns["device"].append(f"d{d}")
            columns["model"].append(f"m{m}")
            columns["mode"].append(f"o{o}")
            columns["measured"].append(measured)
            columns["predicted"].append(measured * rng.lognormal(0, spread))
    return Pairs(columns)


def near(rng: np.random.Generator, percent: float) -> str:
    """Print a figure drawn log-uniformly within a factor of two."""
    return f"{percent * 2 ** rng.uniform(-1, 1):.1f}%"


@pytest.mark.parametrize("figures", [{"a": 8.0}, {"a": 8.0, "b": 25.0}])
def test_matches_of_unrelated_figures_are_as_many_as_expected(figures: dict[str, float]) -> None:
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
