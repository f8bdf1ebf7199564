"""Documents written before this version of errcomp: still read, still the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import errcomp as ec
from errcomp.documents import CLASSES

FOLDER = Path(__file__).parents[1] / "data" / "documents-v1"
ARCHIVED = sorted(FOLDER.glob("*.json"))


def test_every_kind_is_archived() -> None:
    kinds = {json.loads(path.read_text(encoding="utf-8"))["schema"] for path in ARCHIVED}
    assert kinds == {f"errcomp.{name}/1" for name in CLASSES}


@pytest.mark.parametrize("path", ARCHIVED, ids=lambda path: path.stem)
def test_an_archived_document_is_read_and_written_again(path: Path) -> None:
    result = ec.read_result(path)
    archived = json.loads(path.read_text(encoding="utf-8"))
    again = json.loads(result.to_json())
    assert again.keys() == archived.keys()
    # The conclusion of a search is a sentence, made of the other keys: its words may change.
    derived = {"conclusion": archived["conclusion"]} if "conclusion" in archived else {}
    assert again | derived == archived
    assert result.view().title
