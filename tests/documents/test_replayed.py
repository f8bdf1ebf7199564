"""Files that earlier versions wrote: read by every command that reads such files."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from errcomp import documents
from errcomp.cli import main

FOLDER = Path(__file__).parents[1] / "data" / "replayed"
VERSIONS = sorted(path for path in FOLDER.iterdir() if path.is_dir())
DOCUMENTS = [path for version in VERSIONS for path in sorted(version.glob("*.json"))]


def ran(*argv: str | Path) -> tuple[int, str]:
    """Run a command; return its exit code, and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(part) for part in argv])
    return code, out.getvalue() + err.getvalue()


# A page has its figures where Matplotlib is installed.
@pytest.mark.core
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_is_made_of_every_document(path: Path, tmp_path: Path) -> None:
    code, said = ran("report", path, "-o", tmp_path / "page.html")
    assert code == 0, said
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    _, document, result = documents.read(path)
    title = documents.view_of_file(path).title
    assert title in page
    if result is not None:
        again = json.loads(result.to_json())
        # The conclusion of a search is a sentence, whose words may change.
        changed = {name for name in {*again, *document} if again.get(name) != document.get(name)}
        assert changed <= {"conclusion"}


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_a_model_predicts_what_it_predicted(version: Path) -> None:
    code, printed = ran("predict", version / "kernels.csv", "--unit", "ms",
                        "--model", version / "device.errcomp", "--json")  # fmt: skip
    assert code == 0, printed
    was = json.loads((version / "predictions.json").read_text(encoding="utf-8"))
    rows = json.loads(printed)["rows"]
    assert len(rows) == len(was["rows"]) > 0
    for now, before in zip(rows, was["rows"], strict=True):
        numbers = {name: value for name, value in before.items() if isinstance(value, float)}
        assert {name: now[name] for name in numbers} == pytest.approx(numbers, rel=1e-9)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_a_model_is_shown(version: Path) -> None:
    code, printed = ran("calibrate", "show", version / "device.errcomp", "--json")
    assert code == 0, printed
    was = json.loads((version / "model.json").read_text(encoding="utf-8"))
    now = json.loads(printed)
    assert now["schema"] == was["schema"]
    assert now["devices"] == was["devices"]
    assert now["fingerprint"] == was["fingerprint"]
