"""The JSON Schemas: what every command prints with --json is what its schema says."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from errcomp.cli import main
from errcomp.documents import ROWS_ONLY, json_schema

jsonschema = pytest.importorskip("jsonschema")
pytestmark = pytest.mark.extras

#: Commands whose documents hold rows only, in this order; some read what an earlier one wrote.
_OTHERS: dict[str, tuple[str, ...]] = {
    "claims": ("claims", "list"),
    "claims-check": ("claims", "check"),
    "claims-extract": ("claims", "extract", "paper.csv", "--tool", "mine", "--source", "Table 3"),
    "dataset": ("datasets", "show", "neusight"),
    "datasets": ("datasets", "list"),
    "figures": ("metrics", "list"),
    "readers": ("readers",),
    "doctor": ("doctor",),
    "history-add": ("history", "add", "s.sqlite", "history.csv", "--name", "h"),
    "histories": ("history", "list", "s.sqlite"),
    "calibrate-fit": ("calibrate", "fit", "kernels.csv", "--unit", "ms", "--estimator", "device",
                      "-o", "m.npz"),
    "model": ("calibrate", "show", "m.npz"),
    "predictions": ("predict", "kernels.csv", "--unit", "ms", "--model", "m.npz"),
}  # fmt: skip


def test_what_each_command_prints_is_what_its_schema_says(each: Any) -> None:
    name = each.document["schema"].removeprefix("errcomp.").removesuffix("/1")
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = jsonschema.Draft202012Validator(schema).iter_errors(each.document)
    assert [error.message for error in errors] == []


def test_documents_of_rows_are_what_their_schemas_say(
    tables: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tables)
    # The study takes seconds: where it is shown, its document is checked too.
    assert sorted([*_OTHERS, "half-life-study"]) == sorted(ROWS_ONLY)
    for name, argv in _OTHERS.items():
        main([*argv, "--json"])
        document = json.loads(capsys.readouterr().out)
        assert document["schema"] == f"errcomp.{name}/1"
        jsonschema.validate(document, json_schema(name))


def test_a_schema_refuses_what_is_not_so(written: Any) -> None:
    schema = json_schema("audit")
    for key, value in (("rows", None), ("level", 1.0), ("n", -1), ("strange", 1)):
        document = copy.deepcopy(dict(written("audit").document)) | {key: value}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema)


def test_attributes_are_described_in_the_schema() -> None:
    properties = json_schema("audit")["properties"]
    assert properties["unit"]["description"] == "Unit of its pairs."
    assert properties["tools_not_audited"]["description"].startswith("Tools in the table")
