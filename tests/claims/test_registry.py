"""What the registry knows of each tool, and that it says nothing it does not know."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from errcomp.claims import Claim, claims, claims_of, find, registry, user_claim
from errcomp.claims.registry import VERIFIABLE, tools, work_of
from errcomp.documents import json_schema
from errcomp.errors import InputError

_KINDS = {"error", "correlation", "share", "none"}
_LEVELS = {"kernel", "basic block", "model", "collective", "system", "design point"}
_REFERENCES = {"hardware", "RTL simulation", "simulator", "unclear", "none"}


@pytest.mark.parametrize("claim", claims(), ids=lambda c: f"{c.tool} {c.printed or 'none'}")
def test_every_claim_says_what_can_be_said(claim: Claim):
    assert claim.verifiable in VERIFIABLE
    assert claim.kind in _KINDS
    assert claim.level in _LEVELS
    assert claim.reference in _REFERENCES
    assert claim.aggregation in {"not stated", "mean", "median", "geometric mean", "total"}
    assert claim.reason.endswith(".")
    assert claim.source
    assert claim.edition
    assert re.fullmatch(r"https://[a-z0-9.-]+/\S+", claim.url)
    assert re.fullmatch(r"(20\d\d-\d\d-\d\d)?", claim.checked)
    own_paper = claim.claimed_by == "the tool's authors" and "abstract" in claim.source
    own_paper &= "first version" not in claim.source
    assert not own_paper or claim.url == work_of(claim.tool).url
    assert (claim.interval is None) == (claim.printed == "") == (claim.kind == "none")
    if claim.interval:
        assert 0 <= claim.interval[0] < claim.interval[1] < 2
    assert json.loads(json.dumps(claim.to_dict()))["tool"] == claim.tool


def test_every_tool_has_a_publication_to_look_up():
    for tool in tools():
        work = work_of(tool)
        assert len(work.title) > 10
        assert 2000 < work.year < 2030
        assert work.url.startswith("https://")
    assert work_of("micro") == work_of("Path Forward (Li et al.)")


def test_a_file_holds_one_tool_and_nothing_unknown():
    files = sorted((Path(registry.__file__).parent / "tools").glob("*/*.json"))
    assert len(files) == len(tools())
    positions = []
    for file in files:
        entry = json.loads(file.read_text(encoding="utf-8"))
        assert set(entry) - {"pairs"} == {
            *("schema", "tool", "position", "also", "work", "claims")
        }, file.name
        assert entry["schema"] == "errcomp.claims-of-a-tool/2"
        positions.append(entry["position"])
        prints = [(c["printed"], c["source"], str(c.get("subset")), c["quantity"], c.get("scope"))
                  for c in entry["claims"]]  # fmt: skip
        assert len(prints) == len(set(prints)), file.name
    assert sorted(positions) == list(range(1, len(files) + 1))


def test_nn_meter_claims_shares_of_models_not_an_error_of_kernels():
    first, *others = claims_of("nn-Meter")
    assert first.claimed_by == "the survey, of nn-Meter"
    assert "misreading" in first.note
    assert [(c.metric, c.kind, c.level) for c in others] == [
        ("share within 10%", "share", "model")
    ] * 4
    assert [c.printed for c in others] == ["99.0%", "99.1%", "99.0%", "83.4%"]


def test_the_tools_of_the_survey_are_all_there():
    assert len(tools()) == 57
    assert {"Timeloop", "nn-Meter", "gem5", "Omniverse"} <= set(tools())


@pytest.mark.shared
def test_claims_agree_with_the_transcribed_table(shared_data):
    with (shared_data / "survey" / "tools.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    in_survey = {claim.tool for claim in claims() if claim.edition != "not in the survey"}
    assert {row["tool"] for row in rows} == in_survey
    for row in rows:
        printed = row["claimed_accuracy_as_printed"].split(" ")[0].replace("—", "")
        own = claims_of(row["tool"])
        assert printed.replace("N/A", "") in {claim.printed for claim in own}, row["tool"]
        first = own[0]
        assert row["reference"].startswith(first.reference)
        if row["claimed_low_pct"] and first.kind == "error":
            low, high = (float(row[f"claimed_{end}_pct"]) / 100 for end in ("low", "high"))
            assert first.low <= low + 1e-12
            assert high <= first.high + 1e-12


def test_intervals_are_those_of_the_printed_precision():
    by_print = {(c.tool, c.printed): c.interval for c in claims()}
    assert by_print["AMALI", "23.6%"] == (0.2355, 0.2365)
    assert by_print["VIDUR", "<5%"] == (0.0, 0.05)
    assert by_print["Timeloop", "5–10%"] == (0.05, 0.10)
    # Accuracy and alignment say how much is right.
    assert by_print["ESM", "97.6%"] == (0.0235, 0.0245)
    assert by_print["SimAI", "98.1%"] == by_print["SimAI", "1.9%"] == (0.0185, 0.0195)
    assert by_print["LitePred", "99.3%"] == by_print["LitePred", "0.7%"]


def test_a_correlation_or_a_share_is_no_error():
    kinds = {(c.tool, c.metric): c.kind for c in claims()}
    assert kinds["GRANITE", "Kendall tau"] == "correlation"
    assert kinds["Accel-Sim", "IPC correlation"] == "correlation"
    assert user_claim("0.97", metric="correlation").shown == "0.97"
    assert user_claim("0.97", metric="share within 10%").shown == "97 %"
    assert kinds["Omniverse", "share within 10%"] == "share"


def test_what_neusight_claims():
    own = claims_of("neusight")
    per_device = [c for c in own if "device" in c.subset]
    assert {(c.subset["device"], c.subset["mode"]): c.printed for c in per_device} == {
        ("V100", "inference"): "5.2%",
        ("V100", "training"): "7.4%",
        ("H100", "inference"): "2.3%",
        ("H100", "training"): "4.1%",
        ("A100-80G", "training"): "5.8%",
        ("L4", "inference"): "3.8%",
        ("T4", "inference"): "6.1%",
    }
    assert {c.survey_verdict for c in per_device} == {"Match", "Close", "Mismatch"}
    assert all(c.verifiable == "verifiable" and c.level == "model" for c in own)
    assert [(c.printed, c.claimed_by) for c in own if not c.subset] == [
        ("2.3%", "the survey, of NeuSight"),
        ("2.3%", "the tool's authors"),
    ]
    assert [dict(c.subset) for c in own if c.printed == "8.9%"] == [{"vendor": "NVIDIA"}]
    by_neusight = [c for c in claims() if "baseline" in c.claimed_by]
    assert {(c.tool, c.printed) for c in by_neusight} == {
        ("Habitat", "121.4%"),
        ("Path Forward (Li et al.)", "30.8%"),
        ("AccelWattch", "32%"),
    }


@pytest.mark.parametrize("name", ["NeuSight", "neusight", "NEU-SIGHT", "neu sight"])
def test_case_and_punctuation_do_not_matter(name):
    assert claims_of(name) == claims_of("NeuSight") != ()


def test_other_names_are_known():
    assert claims_of("micro") == claims_of("Li et al.") == claims_of("Path Forward (Li et al.)")


def test_a_tool_of_the_users_own_has_no_claim_and_that_is_no_error():
    assert claims_of("roofline") == ()


def test_find_narrows():
    assert [c.printed for c in find("neusight", device="h100", mode="training")] == ["4.1%"]
    assert {c.tool for c in find(device="V100")} == {"NeuSight", "Wattchmen"}
    assert find() == claims()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tool": "neusigth"}, "Did you mean 'NeuSight'"),
        ({"tool": "vidor"}, "VIDUR"),
        ({"tool": "zzzzzz"}, "Tools with a claim: Timeloop"),
        ({"tool": "neusight", "device": "A10"}, r"Claims exist for: .*V100"),
        ({"tool": "vidur", "mode": "training"}, "exist for: no mode"),
        ({"device": "A10"}, "no claim is about device 'A10'"),
    ],
)
def test_find_says_what_there_is(arguments, message):
    with pytest.raises(InputError, match=message):
        find(**arguments)


def test_a_claim_of_the_users_own():
    claim = user_claim("<5%", aggregation="median", tool="mine")
    assert claim.interval == (0.0, 0.05)
    assert (claim.tool, claim.aggregation, claim.kind) == ("mine", "median", "error")
    assert user_claim("2%").aggregation == "not stated"
    with pytest.raises(InputError, match="cannot read"):
        user_claim("about two percent")


def test_no_figure_has_no_interval():
    claim = claims_of("PRISM")[0]
    assert (claim.interval, claim.low, claim.high) == (None, None, None)


def test_the_package_names_everything_it_offers():
    import errcomp.claims

    assert "find" in dir(errcomp.claims)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = errcomp.claims.nothing


@pytest.mark.parametrize(
    ("text", "printed", "metric", "aggregation"),
    [
        ("MAPE 2.3 %", "2.3 %", "error", "mean"),
        ("2.3% MAPE", "2.3%", "error", "mean"),
        ("mape of 2.3%", "2.3%", "error", "mean"),
        ("mean absolute percentage error of 4.1 %", "4.1 %", "error", "mean"),
        ("average error: 7%", "7%", "error", "mean"),
        ("median error < 5 %", "< 5 %", "error", "median"),
        ("geomean 3%", "3%", "error", "geometric mean"),
        ("WAPE 3%", "3%", "error", "weighted"),
        ("error 2.3%", "2.3%", "error", "not stated"),
        ("R2 = 0.97", "0.97", "R2", "not stated"),
        ("Kendall tau 0.8", "0.8", "Kendall tau", "not stated"),
        ("MAE 3", "3", "MAE", "mean"),
        ("5–10%", "5–10%", "error", "not stated"),
    ],
)
def test_a_claim_may_name_its_metric(
    text: str, printed: str, metric: str, aggregation: str
) -> None:
    claim = user_claim(text)
    assert (claim.printed, claim.metric, claim.aggregation) == (printed, metric, aggregation)


@pytest.mark.parametrize(
    ("name", "metric", "aggregation"),
    [
        ("mape", "error", "mean"),
        ("MAPE", "error", "mean"),
        ("mae", "MAE", "mean"),
        ("r2", "R2", "not stated"),
        ("correlation", "correlation", "not stated"),
        ("kendall-tau", "Kendall tau", "not stated"),
        ("within-10", "share within 10%", "not stated"),
    ],
)
def test_common_names_of_metrics(name: str, metric: str, aggregation: str) -> None:
    claim = user_claim("0.03", metric=name)
    assert (claim.metric, claim.aggregation) == (metric, aggregation)


@pytest.mark.parametrize("name", ["geomean", "geometric mean", "geometric-mean", "Geometric_Mean"])
def test_common_names_of_averages(name: str) -> None:
    assert user_claim("3%", aggregation=name).aggregation == "geometric mean"


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("MAPE 3%", {"aggregation": "median"}, "names the average 'mean', got aggregation='median"),
        ("3%", {"metric": "mape", "aggregation": "median"}, "names the average 'mean'"),
        ("3%", {"aggregation": "mode"}, "no average is called 'mode'. Averages: mean, median"),
        ("3%", {"metric": "mapping"}, "cannot have the metric 'mapping'. Metrics: error, MAE"),
        ("about three", {}, "cannot read the figure 'about three'"),
    ],
)
def test_words_that_contradict_or_say_nothing(
    text: str, given: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        user_claim(text, **given)


@pytest.mark.parametrize("printed", ["-5%", "-0.05", "<0%"])
def test_a_claim_is_the_size_of_an_error(printed):
    with pytest.raises(InputError, match="is not positive"):
        user_claim(printed)


def test_the_schema_of_an_audit_has_each_figure_with_its_definition_and_ends():
    known = json_schema("audit")["$defs"]["AuditRow"]["properties"]
    for name in ("mape", "median_ape", "gmape", "wape", "bias", "within_10"):
        assert known[name]["description"]
        assert {f"{name}_low", f"{name}_high"} <= set(known)
    assert known["max_ape"]["description"]
    assert "max_ape_low" not in known


def test_a_source_without_a_figure_has_no_central_value() -> None:
    nothing = replace(user_claim("5%"), printed="")
    assert nothing.interval is nothing.low is nothing.high is nothing.central is None
    assert not nothing.contains(0.05)
    assert [user_claim(text).central for text in ("5.2%", "<5%", "5–10%")] == [0.052, 0.05, 0.1]


@pytest.mark.parametrize(
    ("printed", "remedy"),
    [("2.3", 'Write "2.3%", or "230%"'), (">2", 'Write ">2%", or "200%"')],
)
def test_a_fraction_above_one_is_refused_with_both_readings(printed: str, remedy: str) -> None:
    with pytest.raises(InputError) as raised:
        user_claim(printed)
    assert str(raised.value) == (
        f"the claim {printed!r} has no % sign, and as a fraction it is more than 100 %. {remedy} "
        "if you mean that."
    )
    assert user_claim("230%").central == 2.3
    assert user_claim("1.0").central == 1.0
    assert user_claim("2.3", metric="MAE").kind == "measured"
    assert user_claim("2.3%", metric="MAE").kind == "error"
