from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import errcomp as ec
from errcomp.claims.registry import claims_of, user_claim
from errcomp.errors import InputError

#: Device, mode, n, MAPE in percent and verdict; figures recomputed by hand from the artifact.
EXPECTED = {
    ("V100", "inference"): (10, 5.87, "consistent"),
    ("V100", "training"): (3, 8.91, "not verifiable"),
    ("H100", "inference"): (16, 8.74, "overstated"),
    ("H100", "training"): (18, 6.60, "consistent"),
    ("A100-80G", "training"): (10, 7.59, "consistent"),
    ("A100-40G", "inference"): (16, 8.63, "no claim"),
    ("A100-40G-SXM", "training"): (3, 10.51, "no claim"),
    ("L4", "inference"): (11, 14.07, "overstated"),
    ("T4", "inference"): (5, 18.51, "not verifiable"),
    ("P4", "inference"): (3, 27.10, "no claim"),
}


@pytest.fixture(scope="module")
def result() -> ec.claims.auditing.Audit:
    return ec.audit(ec.datasets.load("neusight"), by=["device", "mode"])


def test_a_published_source_without_a_figure_is_no_claim() -> None:
    assert [claim.kind for claim in claims_of("SimuMax")] == ["none"]
    result = ec.audit({"tool": ["SimuMax"] * 6, "predicted": [1.1] * 6, "measured": [1.0] * 6})
    assert (result.claims, result.overall.verdict.word) == ((), "no claim")


def test_every_configuration_is_counted_once(result: ec.claims.auditing.Audit) -> None:
    assert sum(row.n for row in result.rows) == 146
    assert len({row.key["device"] for row in result.rows}) == 12
    assert result.others == ("habitat", "micro", "roofline")


@pytest.mark.parametrize("key", EXPECTED)
def test_recomputed_figures(result: ec.claims.auditing.Audit, key: tuple[str, str]) -> None:
    row = next(r for r in result.rows if (r.key["device"], r.key["mode"]) == key)
    n, percent, word = EXPECTED[key]
    mape = row.figures["mape"]
    assert row.n == n
    assert round(100 * mape.value, 2) == pytest.approx(percent, abs=0.011)
    assert row.verdict.word == word
    # Three pairs, two models, or three models that differ much.
    assert (mape.low is None) == (
        key[0] in ("A100-40G-SXM", "P4", "T4") or key == ("V100", "training")
    )
    if mape.low is not None and mape.high is not None:
        assert 0 <= mape.low <= mape.value <= mape.high


def test_a_claim_about_a_subset_is_judged_on_that_subset(
    result: ec.claims.auditing.Audit,
) -> None:
    found = {(v.claim.printed, v.claim.claimed_by): v for v in result.claims if v.claim}
    overall = found["8.9%", "the tool's authors"]
    assert overall.recomputed is not None
    assert overall.recomputed.n == 103
    # The abstract names a subset; only the survey reads its figure as one over everything.
    assert found["2.3%", "the tool's authors"].word == "not verifiable"
    assert found["2.3%", "the survey, of NeuSight"].word == "overstated"


def test_what_holds_for_all_claims_together(result: ec.claims.auditing.Audit) -> None:
    kept = {tuple(row.key.values()) for row in result.rows if row.verdict.jointly == "overstated"}
    assert kept == set()
    # Seven groups, and the claims about all pairs and about those of NVIDIA.
    about_more = [v for v in result.claims if v.recomputed]
    assert [v.jointly for v in about_more] == ["overstated", "consistent"]
    assert result.judged_together == 7 + len(about_more)
    assert result.joint_level == pytest.approx(1 - 0.05 / 9)
    assert result.overall.verdict is about_more[0]


@pytest.mark.parametrize("by", [["device"], ["device", "mode"], []])
def test_the_errors_of_all_verdicts_add_up_to_what_is_allowed(by: list[str]) -> None:
    data = {
        "predicted": [1 + 0.01 * (i % 7) for i in range(60)],
        "measured": [1.0] * 60,
        "device": [i % 3 for i in range(60)],
        "mode": [i % 2 for i in range(60)],
        "tool": ["x", "y"] * 30,
    }
    claims = [user_claim("2%"), replace(user_claim("3%"), subset={"mode": "0"})]
    found = ec.audit(data, by=by, claims=claims)
    verdicts = [row.verdict for row in found.rows if row.key] + list(found.claims)
    judged = [verdict for verdict in verdicts if verdict.recomputed]
    assert all(verdict.jointly for verdict in judged)
    assert len(judged) * (1 - found.joint_level) == pytest.approx(1 - found.level)
    assert found.judged_together == len(judged)


def test_a_group_that_holds_all_pairs_is_no_further_test() -> None:
    data = {"predicted": [1 + 0.01 * i for i in range(12)], "measured": [1.0] * 12,
            "device": ["A"] * 12}  # fmt: skip
    found = ec.audit(data, claims=[user_claim("5%")])
    assert (found.judged_together, found.joint_level) == (1, found.level)
    assert [v.jointly for v in (found.rows[0].verdict, *found.claims)] == [None, None]


@pytest.mark.parametrize(
    ("keys", "cluster", "tried"),
    [
        ((), None, ()),
        (("device",), None, ("device",)),
        (("device", "model"), None, ("model", "device")),
        (("host",), "host", ("host",)),
    ],
)
def test_by_which_columns_pairs_could_err_alike_is_told(
    keys: tuple[str, ...], cluster: str | None, tried: tuple[str, ...]
) -> None:
    data = {"predicted": [1.1, 1.2, 0.9], "measured": [1.0] * 3}
    found = ec.audit({**data, **{key: list("abc") for key in keys}}, by=[], cluster=cluster)
    assert found.cluster_keys == tried
    assert found.to_dict()["cluster_keys"] == list(tried)


def test_whole_models_are_drawn_wherever_a_row_has_several(
    result: ec.claims.auditing.Audit,
) -> None:
    alone = {tuple(row.key.values()) for row in result.rows if not row.cluster}
    assert ("A100-40G-SXM", "training") in alone  # three models of one pair each
    row = next(r for r in result.rows if r.key == {"device": "H100", "mode": "inference"})
    pairs = ec.datasets.load("neusight").where({"tool": "neusight", **row.key})
    single = ec.summarize(pairs, figures=["mape"], cluster="none").pooled.figures["mape"]
    mape = row.figures["mape"]
    assert mape.low is not None
    assert single.low is not None
    assert mape.low < single.low
    assert row.to_dict()["cluster"] == "model"
    assert result.overall.cluster == "model,device"


def clustered_table(models: int) -> dict[str, list]:
    """Five pairs a model, whose errors differ much more between models than within."""
    errors = [0.3 * m + 0.01 * i for m in range(models) for i in range(5)]
    return {
        "predicted": [1 + e for e in errors],
        "measured": [1.0] * len(errors),
        "model": [f"m{m}" for m in range(models) for _ in range(5)],
    }


def test_no_verdict_where_models_are_too_few() -> None:
    found = ec.audit(clustered_table(2), claims=[user_claim("2.3%", aggregation="mean")])
    verdict = found.overall.verdict
    assert verdict.word == "not verifiable"
    assert verdict.reason == (
        "2 models are too few to represent others; at least 3 are needed (for results about only "
        "these 2, use --cluster none)."
    )
    assert found.to_dict()["overall"][0]["verdict"] == "not verifiable"
    taken = ec.audit(
        clustered_table(2), claims=[user_claim("2.3%", aggregation="mean")], cluster="none"
    )
    assert (taken.overall.cluster, taken.overall.verdict.word) == ("", "overstated")


@pytest.mark.parametrize(
    ("change", "cluster", "reason"),
    [
        ({"model": ["m"] * 20}, "model", "All 20 pairs are of one model, so they say nothing"),
        (
            {"model": [None] * 3 + ["m"] * 17},
            None,
            "The key model is missing in rows 1, 2, 3 of these pairs.",
        ),
        ({"model": [f"m{i}" for i in range(20)]}, None, ""),
    ],
)
def test_cluster_keys_that_say_nothing_give_a_reason(
    change: dict[str, list], cluster: str | None, reason: str
) -> None:
    table = {**clustered_table(4), **change}
    found = ec.audit(table, by=[], claims=[user_claim("2.3%", aggregation="mean")], cluster=cluster)
    verdict = found.overall.verdict
    assert verdict.word == ("not verifiable" if reason else "overstated")
    assert verdict.reason.startswith(reason)


def test_a_cluster_key_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match="key 'model' is given twice as a cluster"):
        ec.audit(clustered_table(4), cluster=["model", "model"])


def test_exact_copies_count_once() -> None:
    rng = np.random.default_rng(1)
    measured = np.exp(rng.normal(size=12))
    table = {"predicted": measured * np.exp(0.2 * rng.normal(size=12)), "measured": measured}
    once = ec.audit(table, by=[]).overall.figures["mape"]
    twice = {name: np.concatenate([values, values]) for name, values in table.items()}
    both = ec.audit(twice, by=[]).overall.figures["mape"]
    assert (both.low, both.high) == pytest.approx((once.low, once.high))
    assert both.method == "log-t, 12 different pairs"


def test_few_pairs_do_not_say_that_a_tool_is_better_than_claimed() -> None:
    table = {"predicted": [1.01, 1.011, 0.99, 1.012] * 3, "measured": list(range(1, 13))}
    table["predicted"] = [p * m for p, m in zip(*table.values(), strict=True)]
    claim = user_claim("20%", aggregation="mean")
    assert ec.audit(table, by=[], claims=[claim]).rows[0].verdict.word == "understated"
    few = {name: values[:11] for name, values in table.items()}
    verdict = ec.audit(few, by=[], claims=[claim]).rows[0].verdict
    assert verdict.word == "not verifiable"
    assert "may have missed rare large errors: at least 12 pairs are needed." in verdict.reason


def test_a_selection_of_rows_is_not_held_against_claims_about_more() -> None:
    part = ec.datasets.load("neusight").where({"device": "H100"})
    found = ec.audit(part, by=["mode"])
    words = {(v.claim.printed, *v.claim.subset.values()): v.word for v in found.claims if v.claim}
    assert words["8.9%", "NVIDIA"] == "not verifiable"
    assert words["2.3%", "H100", "inference"] == "overstated"


def test_claims_do_not_depend_on_the_grouping() -> None:
    pairs = ec.datasets.load("neusight").where({"device": ["H100", "V100"]})
    by_model = ec.audit(pairs, by=["model"])
    found = {
        (v.claim.printed, *v.claim.subset.values()): v.word for v in by_model.claims if v.claim
    }
    assert found["2.3%", "H100", "inference"] == "overstated"
    assert found["5.2%", "V100", "inference"] == "consistent"


def test_the_document_has_the_documented_keys(result: ec.claims.auditing.Audit) -> None:
    document = result.to_dict()
    wanted = {"device", "mode", "n", "mape", "mape_low", "mape_high", "gmape", "max_ape"}
    wanted |= {"claimed", "verdict", "caveats"}
    assert all(wanted <= row.keys() for row in document["rows"])
    assert document["n"] == 146
    assert document["seed"] == 0


def test_every_tool_of_the_users_table_is_audited_alone() -> None:
    data = {
        "predicted": [1.1, 1.2, 0.9, 3.0, 2.0, 4.0],
        "measured": [1.0] * 6,
        "tool": ["a"] * 3 + ["b"] * 3,
    }
    found = ec.audit(data)
    assert found.by == ()
    assert [(row.tool, row.n) for row in found.by_tool] == [("a", 3), ("b", 3)]
    assert [row.verdict.word for row in found.rows] == ["no claim", "no claim"]


def test_the_users_own_claim_is_judged() -> None:
    data = {"predicted": [1.5 + 0.01 * i for i in range(20)], "measured": [1.0] * 20}
    found = ec.audit(data, claims=[user_claim("2.3%")])
    assert [v.word for v in found.claims] == ["overstated"]


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(InputError, match="no column 'colour'"):
        ec.audit(ec.datasets.load("neusight"), by=["colour"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["n"]}, "n"),
        ({"by": ["verdict"]}, "verdict"),
        ({"method": "wilson"}, "wilson"),
        ({"level": 2.0}, "level"),
        ({"seed": -1}, "seed"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    data = {"predicted": [1.0, 2.0], "measured": [1.0, 1.0], "n": [1, 2], "verdict": ["a", "b"]}
    with pytest.raises(InputError, match=message):
        ec.audit(data, **options)


@pytest.mark.slow
def test_many_groups_with_a_claim_each_are_judged_together() -> None:
    n = 260
    data = {
        "predicted": [1 + 0.01 * (i % 7) for i in range(4 * n)],
        "measured": [1.0] * (4 * n),
        "host": [i // 4 for i in range(4 * n)],
    }
    found = ec.audit(data, by="host", claims=[user_claim("2.3%")])
    assert len(found.rows) == n
    assert all(row.verdict.jointly is not None for row in found.rows if row.verdict.recomputed)


def test_clusters_that_were_given_are_not_replaced() -> None:
    pairs = ec.datasets.load("neusight").of_tool()
    row = ec.audit(pairs, by=[], cluster="device").overall
    asked = ec.summarize(pairs, figures=["mape"], cluster="device").pooled.figures["mape"]
    assert row.cluster == "device"
    assert row.figures["mape"].low == asked.low
    assert row.figures["mape"].high == asked.high


def test_keys_name_the_configurations_of_several_tools() -> None:
    table = {
        "predicted": [1.1, 1.2, 1.3, 1.2, 1.3],
        "measured": [1.0] * 5,
        "tool": ["a"] * 3 + ["b"] * 2,
        "batch": [1, 2, 3, 1, 2],
        "app": ["p", "q", "r", "s", "t"],
    }
    for keys in ("batch", ["batch"]):
        (found,) = [c for c in ec.audit(table, keys=keys).caveats if c.code == "coverage-differs"]
        assert (found.evidence["common"], found.evidence["keys"]) == (2, ["batch"])
    for pairs in (table, pl.DataFrame(table).lazy()):
        with pytest.raises(InputError, match="no column 'bach'"):
            ec.audit(pairs, keys=["bach"])


def some_pairs(sigma: float, n: int = 60, seed: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    measured = np.exp(rng.standard_normal(n))
    predicted = measured * np.exp(sigma * rng.standard_normal(n))
    return {"predicted": predicted, "measured": measured, "part": ["a", "b"] * (n // 2)}


def test_overall_is_the_row_of_the_only_tool() -> None:
    found = ec.audit({"predicted": [11.0, 12.0], "measured": [10.0, 10.0]}, by=[])
    assert found.overall is found.by_tool[0]
    with pytest.warns(DeprecationWarning, match=r"audit.overall is a row now: leave out \[0\]"):
        assert found.overall[0] is found.overall
    tools = {"predicted": [11.0] * 4, "measured": [10.0] * 4, "tool": ["a", "a", "b", "b"]}
    several = ec.audit(tools, by=[])
    with pytest.raises(InputError, match=r"2 tools were audited: a, b\. Use by_tool"):
        _ = several.overall


def test_a_correlation_is_judged() -> None:
    claims = [user_claim("0.99", metric="correlation")]
    found = ec.audit(some_pairs(0.8), claims=claims)
    (verdict,) = found.claims
    assert verdict.word == "overstated"
    assert verdict.recomputed is not None
    assert (verdict.recomputed.figure, verdict.recomputed.level) == ("pearson", 0.95)
    # Only the verdict has it: the figures of a row are the same in every audit.
    assert "pearson" not in found.overall.figures
    document = found.to_dict()
    assert document["claims"][0]["recomputed"]["high"] < 0.985
    assert "pearson" not in document["overall"][0]
    assert ec.audit(some_pairs(0.2), claims=claims).claims[0].word == "consistent"
    assert ec.audit(some_pairs(0.8, n=6), claims=claims).claims[0].word == "not verifiable"


def test_correlations_of_groups_are_judged_together() -> None:
    claims = [user_claim("0.99", metric="correlation")]
    found = ec.audit(some_pairs(0.8, n=300), by=["part"], claims=claims)
    assert found.judged_together == 3
    verdicts = [row.verdict for row in found.rows]
    assert {verdict.jointly for verdict in verdicts} <= {"overstated", "consistent"}
    assert all(verdict.jointly is not None for verdict in verdicts)


def test_a_correlation_by_clusters() -> None:
    pairs = {**some_pairs(0.8), "model": [f"m{i % 12}" for i in range(60)]}
    (verdict,) = ec.audit(
        pairs, cluster="model", claims=[user_claim("0.99", metric="correlation")]
    ).claims
    assert verdict.recomputed is not None
    assert verdict.recomputed.method == "jackknife of z, 12 models"


def test_a_mean_absolute_error_is_judged_in_the_unit_of_the_pairs() -> None:
    pairs = ec.Pairs(some_pairs(0.5), unit="ms")
    (verdict,) = ec.audit(pairs, claims=[user_claim("0.01", metric="MAE")]).claims
    assert verdict.word == "overstated"
    assert verdict.recomputed is not None
    assert (verdict.recomputed.figure, verdict.recomputed.unit) == ("mae", "ms")
    (percent,) = ec.audit(pairs, claims=[user_claim("1%", metric="MAE")]).claims
    assert percent.recomputed is not None
    assert percent.recomputed.figure == "mape"


def test_what_needs_single_pairs_is_not_verifiable_where_only_sums_are_at_hand() -> None:
    import polars as pl

    rows = pl.LazyFrame(some_pairs(0.5))
    (one,) = ec.audit(rows, claims=[user_claim("0.99", metric="correlation")]).claims
    assert one.word == "not verifiable"
    assert "needs single pairs" in one.reason
    (other,) = ec.audit(rows, claims=[user_claim("0.01", metric="MAE")]).claims
    assert other.word == "overstated"


def test_a_missing_label_leaves_a_claim_undecided_in_whole_sentences() -> None:
    columns = {
        "predicted": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "measured": [2.0, 2.0, 3.0, 5.0, 5.0, 6.0],
        "model": ["a", None, "b", "c", "c", "a"],
    }
    found = ec.audit(columns, claims=[user_claim("5%", aggregation="mean")])
    assert [verdict.word for verdict in found.claims] == ["not verifiable"]
    assert found.claims[0].reason == (
        "The key model is missing in row 2 of these pairs. Fill it in, or name another key as "
        "cluster."
    )
