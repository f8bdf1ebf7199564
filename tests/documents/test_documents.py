"""Documents turned back into results: nothing lost, nothing damaged let through."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.evaluation import Evaluation
from errcomp.claims.auditing import Audit
from errcomp.claims.replicate.judging import Cell, Replication
from errcomp.documents import is_document, load, read, read_result, view_of_rows
from errcomp.errors import InputError
from errcomp.halflife.results import HalfLives
from errcomp.report.text import briefly, render

#: What a value is replaced by, to see that only InputError comes of it.
_OTHERS = (None, True, -1, 0, 1e308, -1e308, 0.5, 10**18, "x", [], {}, [[]], [None], {"a": 1})
_DAMAGED = 20


def _text(result: Any) -> str:
    return "\n\n".join(render(briefly(table)) for table in result.view().tables_for("text"))


def test_the_tables_are_those_that_the_command_printed(each: Any) -> None:
    schema, document, result = read(each.path)
    assert schema == each.document["schema"]
    assert document == each.document
    assert _text(result) == each.printed
    assert result.to_json() + "\n" == each.path.read_text(encoding="utf-8")


def test_propagated_totals_come_back_with_their_bands_budgets_and_errors(written: Any) -> None:
    document = written("propagate one run").document
    found = load(document)
    assert found.source == document["source"]
    assert found.of().band(0.9).high == document["rows"][0]["bands"][2]["high"]
    assert found.of().by_class.names.tolist() == ["gemm", "softmax"]
    assert found.model.devices == ("D0", "D1", "D2", "D3")
    assert found.model.components.scale == document["errors"]["components"]["scale"]


def test_observed_errors_come_back_or_are_refused(written: Any) -> None:
    document = copy.deepcopy(dict(written("propagate one run").document))
    tails = load(document).model.tails
    assert tails.observed.n_clusters == 4
    assert tails.to_dict() == document["errors"]["tails"]
    document["errors"]["tails"]["observed"] = {
        "sizes": [2.0, 1.0], "below": [0.5, 1.0], "number": 2.0, "n_clusters": 2
    }  # fmt: skip
    with pytest.raises(InputError, match="sizes of observed errors must increase and"):
        load(document)


def test_an_endless_band_is_endless_again(written: Any) -> None:
    document = copy.deepcopy(dict(written("propagate one run").document))
    row = document["rows"][0]
    row["saturated"], row["median"] = 0.6, None
    row["bands"][2]["high"] = None
    found = load(document).of()
    assert (found.median, found.band(0.9).high) == (np.inf, np.inf)


def test_a_claim_is_judged_as_it_was(written: Any) -> None:
    found = load(written("audit").document)
    assert isinstance(found, Audit)
    row = next(r for r in found.rows if r.key == {"device": "V100", "mode": "inference"})
    assert row.verdict.claim is not None
    assert row.verdict.claim.interval == (0.0515, 0.0525)
    assert row.verdict.recomputed is not None
    assert row.verdict.recomputed.value == row.figures["mape"].value
    assert row.figures["mape"].method != row.figures["max_ape"].method


def test_an_evaluation_has_the_runs_of_its_best_estimator(written: Any) -> None:
    found = load(written("calibration").document)
    assert isinstance(found, Evaluation)
    (split, best), held = next(iter(found.held_out.items()))
    row = found.row(split, best)
    assert float(held.ape.mean()) == pytest.approx(row.figures["mean_ape"].value, rel=1e-12)
    assert len(row.pit) == row.n == 12


def test_what_is_known_of_single_runs_is_shown(written: Any) -> None:
    document = dict(written("calibration").document)
    result = load(document)
    run = result.rows[0].worst[0].run
    document["known"] = {run: "launches: 9.0 % of kernel time"}
    assert "launches: 9.0 %" in _text(load(document))


def test_half_lives_say_where_single_series_are_to_be_had(written: Any) -> None:
    found = load(written("half-lives").document)
    assert isinstance(found, HalfLives)
    with pytest.raises(InputError, match="does not hold the errors of single series.*--figure"):
        found.groups[0].panel.error  # noqa: B018


@pytest.mark.extras
def test_figures_of_single_series_are_refused_in_words(written: Any) -> None:
    pytest.importorskip("matplotlib")
    from errcomp.halflife.view.figures import FIGURES

    one = load(written("half-lives").document)
    for name in ("errors", "survival", "variogram"):
        with pytest.raises(InputError, match="the document does not hold"):
            FIGURES[name](one)
    with pytest.raises(InputError, match="the document does not hold"):
        FIGURES["heat"](load(written("half-lives by group").document))


def _cells() -> Replication:
    def cell(table: str, recomputed: Any, status: Any) -> Cell:
        where = f"Table {table}"
        return Cell(table, where, "1", "a", "b", "5.9%", recomputed, "fraction", status, "mean", "",
                    1)  # fmt: skip

    return Replication((cell("t1", 0.0587, "reproduced"), cell("t1", (0.05, 0.06), "reproduced"),
                        cell("t2", None, "no data")))  # fmt: skip


def test_recomputed_cells_of_one_table_keep_the_counts_of_all() -> None:
    whole = _cells()
    document = whole.of_table("t1").to_dict()
    found = load(document)
    assert found.cells == whole.cells[:2]
    assert found.counts() == whole.counts()
    assert "5.00 % to 6.00 %" in _text(found)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key, and the first and the last of every list."""
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = [(i, value[i]) for i in sorted({0, len(value) - 1})] if value else []
    else:
        return
    for key, one in parts:
        yield (*at, key)
        yield from _paths(one, (*at, key))


def _damaged(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    found = here = copy.copy(document)
    for key in path[:-1]:
        here[key] = copy.copy(here[key])
        here = here[key]
    if value is ...:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    return found


def test_damage_ends_in_a_message_and_in_nothing_else(each: Any) -> None:
    document = each.document
    rng = np.random.default_rng(0)
    every = [path for path in _paths(document) if path != ("schema",)]
    said = []
    for i in rng.permutation(len(every))[:_DAMAGED]:
        for value in (..., _OTHERS[rng.integers(len(_OTHERS))]):
            bad = _damaged(document, every[i], value)
            try:
                _text(load(bad))
            except InputError as error:
                said.append(str(error))
    assert len(said) > _DAMAGED / 2
    assert [text for text in said if "-o FILE.json" not in text] == []


#: Keys that documents of earlier versions lack.
_LATER = {
    "errcomp.audit/1": {"measurements"},
    "errcomp.calibration/1": {"flagged"},
    "errcomp.half-life-check/1": {"autocorrelation"},
    "errcomp.half-life-dry-run/1": {"reported"},
}


def test_every_key_is_needed(each: Any) -> None:
    document = each.document
    for name in document.keys() - _LATER.get(document["schema"], set()):
        short = {key: value for key, value in document.items() if key != name}
        with pytest.raises(InputError, match=f"no key '{name}'"):
            load(short)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("rows", 3, "mape_low"), "0.1", r"rows\[3\]\.mape_low must be a number, got '0.1'"),
        (("rows", 3, "mape_high"), -1, r"rows\[3\]\.mape_high must be at least the lower bound"),
        (("rows", 0, "n"), True, r"rows\[0\]\.n must be a whole number, not negative, got true"),
        (("rows", 0, "verdict"), "fine", r"rows\[0\]\.verdict must be one of consistent, "),
        (("n",), 5, r"n is 5, but the rest of the document gives \d+"),
        (("rows",), {}, r"rows must be a list, got an object with 0 keys"),
        (("level",), 1.0, r"level must be a number above 0 and below 1, got 1.0"),
        (("level",), float("nan"), r"level must be a finite number, .* got nan"),
        (("seed",), 10**30, r"seed must be a finite number, .* got a number with too many digits"),
        (("source",), "\ud800", r"source must be a finite number, text, .* got '\\ud800'"),
    ],
)  # fmt: skip
def test_the_message_names_key_value_and_remedy(
    written: Any, path: tuple[Any, ...], value: Any, message: str
) -> None:
    bad = _damaged(written("audit").document, path, value)
    with pytest.raises(InputError, match=message) as raised:
        load(bad)
    assert str(raised.value).endswith("errcomp audit … -o FILE.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xff\xfe{", "is not valid UTF-16"),
        (b'{"schema": "errcomp.audit/1", "a": "\xe9"}', r"is not valid UTF-8 text \(byte 37 is "),
        (b'{"schema": "errcomp.audit/1", "rows": [', "line 1, column 40: .* ends too early"),
        (b'{"schema": "errcomp.audit/1", "n": NaN}', "n must be a finite number, .* got NaN"),
        (b'{"schema": "errcomp.audit/1", "n": 1e999}', "n must be a finite number, .* got 1e999"),
        (b'{"schema": "errcomp.audit/1", "n": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"schema": "errcomp.audit/1", "n": 1, "n": 2}', "the key 'n' twice in one object"),
        (b'{"schema": "errcomp.audit/1", "n": ' + b"[" * 90 + b"]" * 90 + b"}", "60 levels deep"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[1, 2]", "not an errcomp document: it is not an object"),
        (b'{"rows": []}', "not an errcomp document: it has no key 'schema'"),
        (b'{"schema": "other/1"}', "not an errcomp document: its key 'schema' is 'other/1'"),
        (b'{"schema": "errcomp.audit/2"}', r"'schema' is 'errcomp\.audit/2': a newer"),
        (b'{"schema": "errcomp.thing/1"}', r"'schema' is 'errcomp\.thing/1': a newer"),
        (b'{"schema": "errcomp.audit/1"}', "errcomp.audit/1: the document has no key 'source'"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_what_is_wrong(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: ")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "none.json", "no such file"),
        (Path("a\0b"), "no such file"),
    ):
        assert not is_document(path)
        with pytest.raises(InputError, match=message):
            read(path)


def test_a_document_of_rows_only_has_no_result(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    document = {"schema": "errcomp.claims/1", "rows": [{"tool": "x"}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert read(path) == ("errcomp.claims/1", document, None)
    with pytest.raises(InputError, match=r"documents of this kind hold only rows\."):
        load(document)
    with pytest.raises(InputError, match=r"claims\.json: errcomp\.claims/1 .* hold only rows\."):
        read_result(path)


def test_a_document_is_told_from_a_table(tmp_path: Path, written: Any) -> None:
    path = tmp_path / "some.json"
    for content, told in (
        (b'[{"measured": 1, "predicted": 2}]', False),
        (b'{"schema": [1, 2], "measured": [1, 2]}', False),
        (b'{"rows": [], "schema": "errcomp.audit/1"', True),
        ('{"schema": "errcomp.audit/1"}'.encode("utf-16"), True),
    ):
        path.write_bytes(content)
        assert is_document(path) is told
    assert is_document(written("audit").path)


def test_a_file_in_the_utf_16_of_a_shell_is_read(tmp_path: Path, written: Any) -> None:
    one = written("metrics")
    path = tmp_path / "shell.json"
    path.write_text(one.path.read_text(encoding="utf-8"), encoding="utf-16")
    assert read(path)[1] == one.document


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("verdict", "consistent", "must be 'overstated', which follows from the interval"),
        ("mape", -0.5, r"rows\[3\]\.mape must be from 0 to inf, got -0.5"),
        ("within_10", 5.0, r"rows\[3\]\.within_10 must be from 0 to 1, got 5.0"),
    ],
)
def test_a_page_never_shows_what_was_not_found(
    written: Any, key: str, value: Any, message: str
) -> None:
    document = copy.deepcopy(dict(written("audit").document))
    row = document["rows"][3]
    assert row["verdict"] == "overstated"
    row[key] = value
    with pytest.raises(InputError, match=message):
        load(document)


@pytest.mark.parametrize("document", [{}, {"rows": "x"}, {"rows": [1]}, {"rows": [{}, None]}])
def test_a_document_without_rows_is_not_shown(document: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^r\.json: the document has no rows to show$"):
        view_of_rows(document, "r.json")


def test_rows_are_shown_with_the_columns_that_fit() -> None:
    rows = [{"name": "a", "n": 3, "parts": [1]}, {"name": None, "n": None, "on": "yes"}]
    (table,) = view_of_rows({"schema": "errcomp.x/1", "rows": rows}, "r.json").tables
    assert table.title == "errcomp.x/1 of r.json"
    assert [(column.header, column.right) for column in table.columns] == [
        ("name", False), ("n", True), ("on", False)
    ]  # fmt: skip
    texts = [[column.cell(row).text for column in table.columns] for row in rows]
    assert texts == [["a", "3", "–"], ["–", "–", "yes"]]
    assert table.notes == ["Columns not shown, because their values are nested: parts."]
    assert view_of_rows({"rows": []}, "r.json").tables[0].notes == []
