"""Files of claims: what they may hold, what is refused, and what audits make of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import errcomp as ec
from errcomp.claims import claims, entries, find, registry
from errcomp.claims.entries import SCHEMA, check_claims, read_claims
from errcomp.cli import main
from errcomp.errors import InputError

ENTRY = {"printed": "2.3%", "metric": "MAPE", "source": "README, Accuracy"}


def written(folder: Path, *given: Mapping[str, Any], **others: Any) -> Path:
    path = folder / "mine.json"
    document = {"schema": SCHEMA, "tool": "mine", "claims": list(given), **others}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_registry_is_read_strictly_and_equals_what_audits_use() -> None:
    folder = Path(registry.__file__).parent / "tools"
    read = [claim for file in folder.glob("*/*.json") for claim in read_claims(file)]
    assert sorted(map(repr, read)) == sorted(map(repr, claims()))
    rows = check_claims()
    assert len(rows) == len(claims())
    # Every entry has a source to look up, and says how it was averaged, or that nobody says.
    assert not [row for row in rows if {"url", "aggregation"} & set(row["missing"])]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("mdape", ("error", "error", "median")),
        ("MAPE", ("MAPE", "error", "not stated")),
        ("mre", ("error", "error", "mean")),
        ("r2", ("R2", "correlation", "not stated")),
        ("share within 5%", ("share within 5%", "share", "not stated")),
        ("alignment", ("alignment", "error", "not stated")),
    ],
)
def test_a_metric_has_its_kind_and_average(
    tmp_path: Path, metric: str, expected: tuple[str, str, str]
) -> None:
    (claim,) = read_claims(written(tmp_path, {**ENTRY, "metric": metric, "printed": "90%"}))
    assert (claim.metric, claim.kind, claim.aggregation) == expected
    assert (claim.tool, claim.protocol, claim.n) == ("mine", "not stated", "not stated")


def test_what_an_entry_says_is_kept(tmp_path: Path) -> None:
    given = {
        **ENTRY,
        "metric": "MAE",
        "printed": "0.3",
        "unit": "ms",
        "aggregation": "mean",
        "n": 12,
        "protocol": "held-out networks",
        "level": "kernel",
        "reference": "simulator",
        "checked": "2026-11-01",
        "url": "doi:10.1000/x",
        "subset": {"device": "V100"},
    }
    (claim,) = read_claims(written(tmp_path, given))
    for key, value in given.items():
        assert getattr(claim, key) == value
    assert claim.kind == "measured"
    (row,) = check_claims(tmp_path / "mine.json")
    assert row == {"tool": "mine", "printed": "0.3", "metric": "MAE",
                   "source": "README, Accuracy", "missing": ["workloads"]}  # fmt: skip


def test_what_is_missing_is_listed(tmp_path: Path) -> None:
    none = {"printed": "", "metric": "none", "source": "README"}
    rows = check_claims(written(tmp_path, ENTRY, none))
    assert rows[0]["missing"] == [
        *("aggregation", "level", "reference", "protocol", "workloads", "n", "url", "checked"),
    ]
    assert rows[1]["missing"] == ["level", "reference", "workloads", "url", "checked"]


BAD = [
    ({"metric": "mapee"}, r"claims\[1\].metric: unknown metric 'mapee'. Did you mean 'MAPE'\?"),
    ({"metric": "share within 10%", "printed": "120%"},
     r"claims\[1\].printed must be at most 1 or 100 %, because it is a share within 10%, got"),
    ({"metric": "r2", "printed": "1.2"}, r"printed must be at most 1 or 100 %, because it is a R2"),
    ({"printed": "5.2"}, r"claims\[1\].printed: '5.2' has no unit. Write \"5.2%\".*\"0.052\""),
    ({"metric": "MAE", "printed": "5.2"}, r"an MAE needs the unit of its data, e.g. \"unit\""),
    ({"printed": ""}, r"printed must be a figure; the metric \"none\" stands for"),
    ({"metric": "none"}, r"printed must be a figure; the metric \"none\" stands for"),
    ({"printed": "about 5"}, r"claims\[1\].printed: .*about 5"),
    ({"printed": 5}, r"claims\[1\].printed must be a text, got 5"),
    ({"source": " "}, r"claims\[1\].source must be a text, got ' '"),
    ({"levels": "kernel"}, r"claims\[1\] has an unknown key 'levels'. Did you mean 'level'\?"),
    ({"level": "kernels"}, r"claims\[1\].level: 'kernels' is unknown. Did you mean 'kernel'\?"),
    ({"url": "example"}, r"claims\[1\].url must be a URL \(\"https://…\"\) or a DOI, got 'exa"),
    ({"checked": "26.11.2026"}, r"checked must be a day, such as 2026-11-26, got '26.11.2026'"),
    ({"checked": "2999-01-01"}, r"checked must be a day that is not in the future"),
    ({"n": 0}, r"claims\[1\].n must be a whole number of at least 1, or \"not stated\", got 0"),
    ({"n": True}, r"claims\[1\].n must be a whole number"),
    ({"aggregation": "avreage"}, r"claims\[1\].aggregation: no average is called 'avreage'"),
    ({"subset": "V100"}, r"claims\[1\].subset must be an object, got 'V100'"),
    ({"subset": {"device": 1}}, r"claims\[1\].subset.device must be a text, got 1"),
    ({"printed": "4%", "source": "other"},
     r"claims\[1\] \(4%\) and claims\[0\] \(2.3%\) describe the same quantity"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "expected"), BAD, ids=[str(one[0]) for one in BAD])
def test_bad_entries_name_file_entry_value_and_remedy(
    tmp_path: Path, changed: dict[str, Any], expected: str
) -> None:
    path = written(tmp_path, {**ENTRY, "source": "other"}, {**ENTRY, **changed})
    with pytest.raises(InputError, match=expected) as refused:
        read_claims(path)
    assert str(refused.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", 'not a file of claims. Its first key must be "schema"'),
        ('{"schema": "errcomp.audit/1"}', "not a file of claims"),
        (json.dumps({"schema": SCHEMA, "claims": [ENTRY]}), "has no key 'tool'"),
        (json.dumps({"schema": SCHEMA, "tool": "x", "claims": []}), "a list of length 1 or more"),
        (json.dumps({"schema": SCHEMA, "tool": "x", "claim": [ENTRY]}), "unknown key 'claim'"),
        (json.dumps({"schema": SCHEMA, "tool": "x", "claims": [{}]}), "has no key 'printed'"),
    ],
    ids=["cut", "deep", "list", "other", "no tool", "no claims", "unknown", "empty"],
)
def test_a_file_that_holds_no_claims_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=expected):
        read_claims(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_claims(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_claims(tmp_path)


def test_a_file_larger_than_claims_can_be_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    with path.open("wb") as file:
        file.truncate(entries._LARGEST + 1)
    with pytest.raises(InputError, match="larger than a file of claims can be"):
        read_claims(path)


@pytest.mark.extras
def test_the_published_schema_accepts_what_is_read(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = entries.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(json.loads(json.dumps(schema)))
    for file in (Path(registry.__file__).parent / "tools").glob("*/*.json"):
        valid.validate(json.loads(file.read_text(encoding="utf-8")))
    assert valid.is_valid(json.loads(written(tmp_path, ENTRY).read_text(encoding="utf-8")))
    assert not valid.is_valid(json.loads(written(tmp_path, {"printed": "1%"}).read_text()))
    assert not valid.is_valid(json.loads(written(tmp_path, ENTRY, x=1).read_text()))


PAIRS = {"tool": ["a", "a", "b", "b"] * 3, "sim": [11.0, 9.0, 10.2, 9.8] * 3, "hw": [10.0] * 12}


def test_an_audit_takes_a_file_of_claims(tmp_path: Path) -> None:
    path = written(tmp_path, {**ENTRY, "printed": "10%"}, tool="A")
    for given in (str(path), path, [path], [*read_claims(path)]):
        result = ec.audit(PAIRS, predicted="sim", measured="hw", claims=given)
        # A claim that names one of several tools is about this one.
        words = {row.tool: row.verdict.word for row in result.by_tool}
        assert words["b"] == "no claim"
        assert words["a"] != "no claim"
    of_one = ec.audit(PAIRS, predicted="sim", measured="hw", tool="b", claims=path)
    assert of_one.by_tool[0].verdict.claim == read_claims(path)[0]
    both = ec.audit(PAIRS, predicted="sim", measured="hw", claims=["5%", path])
    assert [row.verdict.word == "no claim" for row in both.by_tool] == [False, False]
    assert find("NeuSight")[0] not in of_one.claims


def test_the_commands_check_and_audit_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, {**ENTRY, "printed": "10%"}, tool="neusight")
    assert main(["claims", "check", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["printed"] == "10%"
    assert main(["claims", "check", str(path), "--fail-on", "missing"]) == 1
    assert "0 of 1 entries have all keys" in capsys.readouterr().out
    assert main(["audit", "neusight", "--claims", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    judged = [*document["claims"], *document["rows"], *document["overall"]]
    assert {one["claim_source"] for one in judged} == {None, "README, Accuracy"}
    assert main(["audit", "neusight", "--claims", str(path), "--claim", "5%"]) == 2
    assert "--claim and --claims both" in capsys.readouterr().err
    assert main(["claims", "check", str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read" in capsys.readouterr().err
    assert main(["audit", "neusight", "--claims", str(path), "-o", str(path)]) == 2


def test_a_complete_file_passes(tmp_path: Path) -> None:
    entry = {
        **ENTRY,
        **dict.fromkeys(("aggregation", "protocol", "workloads", "n"), "not stated"),
        "level": "model",
        "reference": "hardware",
        "url": "https://example.org/paper",
        "checked": "2026-11-01",
    }
    path = written(tmp_path, entry)
    assert check_claims(path)[0]["missing"] == []
    assert main(["claims", "check", str(path), "--fail-on", "missing"]) == 0


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"position": "1"}, "position must be a whole number, got '1'"),
        ({"also": "x"}, "also must be a list, got 'x'"),
        ({"also": [1]}, r"also\[0\] must be a text, got 1"),
        ({"work": 5}, "work must be an object, got 5"),
        ({"work": {"title": "t", "url": "https://a.b"}}, "work has no key 'year'"),
        ({"work": {"title": "t", "year": True, "url": "https://a.b"}}, "work.year must be a whole"),
        ({"work": {"title": "t", "year": 1, "link": "u"}}, "work has an unknown key 'link'"),
        ({"pairs": [{"where": "here"}]}, r"pairs\[0\] has no key 'licence'"),
        ({"pairs": {}}, "pairs must be a list"),
    ],
    ids=str,
)
def test_what_a_file_says_of_its_tool_has_the_form_of_the_schema(
    tmp_path: Path, others: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        read_claims(written(tmp_path, ENTRY, **others))


def test_an_mae_in_another_unit_than_the_pairs_is_refused(tmp_path: Path) -> None:
    entry = {**ENTRY, "metric": "MAE", "printed": "0.5", "unit": "ms", "level": "request"}
    path = written(tmp_path, entry)
    one = {"sim": PAIRS["sim"], "hw": PAIRS["hw"]}
    with pytest.raises(InputError, match=r"the claim 0\.5 .* is in ms, but the pairs are in us"):
        ec.audit(one, predicted="sim", measured="hw", unit="us", claims=path)
    for unit in ("ms", None):
        result = ec.audit(one, predicted="sim", measured="hw", unit=unit, claims=path)
        assert result.overall.verdict.claim == read_claims(path)[0]


def test_claims_about_no_tool_of_the_table_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, ENTRY, tool="c")
    with pytest.raises(InputError, match="claims are about c, but the tools in the table are a, b"):
        ec.audit(PAIRS, predicted="sim", measured="hw", claims=path)
    # A single tool is meant, whatever it is called.
    result = ec.audit(PAIRS, predicted="sim", measured="hw", claims=path, tool="a")
    assert result.overall.verdict.claim == read_claims(path)[0]
