"""Folders of Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.errors import EngineError, InputError
from errcomp.summary import summarize
from errcomp.tables.engine import scanning
from errcomp.tables.engine.scanning import is_large, parquet_files, scan

Run = Callable[..., Any]


@pytest.fixture
def folder(table: pl.DataFrame, tmp_path: Path) -> Path:
    """Write the pairs in parts of a folder with a folder in it."""
    (tmp_path / "logs" / "more").mkdir(parents=True)
    for i in range(6):
        part = tmp_path / "logs" / ("more" if i % 2 else ".") / f"part-{i}.parquet"
        table[i * 1000 : (i + 1) * 1000].write_parquet(part)
    return tmp_path / "logs"


def test_a_folder_a_pattern_and_a_file(folder: Path) -> None:
    assert [p.name for p in parquet_files(folder / "part-0.parquet")] == ["part-0.parquet"]
    assert len(parquet_files(folder)) == 6
    assert len(parquet_files(f"{folder}/*.parquet")) == 3
    assert len(parquet_files(f"{folder}/**/*.parquet")) == 6
    assert parquet_files(folder / "nothing") == []
    (folder / "README.txt").write_text("mine", encoding="utf-8")
    assert parquet_files(folder) == []  # a folder of something else, perhaps a tool's output


def test_what_stays_where_it_lies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = folder / "part-0.parquet"
    assert is_large(folder)
    assert not is_large(one)
    monkeypatch.setattr(scanning, "LARGE", 1000)
    assert is_large(one)
    # A name is a name, not a pattern.
    named = one.rename(folder / "part[0].parquet")
    assert is_large(named)
    named.rename(one)
    one.write_bytes(b"no parquet")
    assert not is_large(one)
    assert not is_large("neusight")


def test_the_rows_are_those_of_the_table(folder: Path, table: pl.DataFrame) -> None:
    options: dict[str, Any] = {"by": "device", "figures": ("mape", "max_ape"), "method": "log-t"}
    found, expected = summarize(scan(folder), **options), summarize(table, **options)
    assert [row.n for row in found.rows] == [row.n for row in expected.rows]
    assert found.pooled.figures["max_ape"].value == expected.pooled.figures["max_ape"].value
    assert found.macro["mape"] == pytest.approx(expected.macro["mape"], rel=1e-12)


def test_rows_can_be_chosen(folder: Path, table: pl.DataFrame) -> None:
    rows = scan(folder).where({"device": 1, "model": ["net3", "net4"]})
    kept = table.filter(
        pl.col("device") == 1, pl.col("model").is_in(["net3", "net4"]), pl.col("status") == "OK"
    )
    assert rows.n == len(kept)
    assert rows.selection == {"device": ("1",), "model": ("net3", "net4")}
    with pytest.raises(InputError, match=r"no row has model=net33\. Did you mean 'net3'\?"):
        scan(folder).where({"model": "net33"})
    with pytest.raises(InputError, match="no column 'modelx'. Did you mean 'model'"):
        scan(folder).where({"modelx": "net3"})


def test_the_file_of_a_bad_row_is_named(folder: Path) -> None:
    path = folder / "more" / "part-3.parquet"
    part = pl.read_parquet(path).with_columns(status=pl.lit("ok"))
    spoilt = pl.when(pl.int_range(pl.len()) == 7).then(float("nan"))
    part.with_columns(measured=spoilt.otherwise(pl.col("measured"))).write_parquet(path)
    with pytest.raises(InputError, match=r"got nan in 1 row: file=\S*part-3\.parquet, device="):
        summarize(scan(folder), figures="mape")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "net"}, "it lacks model; it also has net"),
        ({}, "model is Int64 instead of String"),
    ],
)
def test_a_file_with_other_columns_is_named(
    change: dict[str, str], message: str, folder: Path
) -> None:
    path = folder / "part-4.parquet"
    part = pl.read_parquet(path).rename(change)
    if not change:
        part = part.with_columns(model=pl.lit(1, dtype=pl.Int64))
    part.write_parquet(path)
    with pytest.raises(
        InputError, match=rf"part-4\.parquet: its columns differ from those of .*{message}"
    ):
        scan(folder)


def test_a_file_that_is_none_is_named(folder: Path) -> None:
    (folder / "part-2.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match=r"part-2.parquet: not a readable Parquet file "):
        scan(folder)
    with pytest.raises(
        InputError, match=r"nothing/\*\.parquet: no Parquet file\. Name a Parquet file,"
    ):
        scan("nothing/*.parquet")


def test_a_file_that_is_cut_off_later_is_the_engines_error(folder: Path) -> None:
    rows = scan(folder)
    for path in parquet_files(folder):
        path.unlink()
    with pytest.raises(EngineError, match="Polars failed: "):
        summarize(rows, figures="mape")


def test_columns_of_other_names(folder: Path, tmp_path: Path, table: pl.DataFrame) -> None:
    other = table.rename({"measured": "wall_ms", "predicted": "their_ms"})
    other.write_parquet(tmp_path / "other.parquet")
    names = {"measured": "wall_ms", "predicted": "their_ms"}
    rows = scan(tmp_path / "other.parquet", columns=names, unit="ms")
    assert (rows.unit, rows.keys) == ("ms", ("device", "model", "run"))
    with pytest.raises(InputError, match="missing columns predicted, measured"):
        scan(tmp_path / "other.parquet")
    text = other.with_columns(wall_ms=pl.col("wall_ms").cast(pl.String))
    text.write_parquet(tmp_path / "text.parquet")
    with pytest.raises(InputError, match="measured must be a number, but the column holds String"):
        scan(tmp_path / "text.parquet", columns=names)


def test_units_must_agree(table: pl.DataFrame, tmp_path: Path) -> None:
    for i, unit in enumerate(("ms", "us")):
        table.with_columns(unit=pl.lit(unit)).write_parquet(tmp_path / f"{i}.parquet")
    assert scan(tmp_path / "0.parquet").unit == "ms"
    with pytest.raises(InputError, match="mixed units: 'ms' and 'us'"):
        scan(tmp_path)


def test_folders_as_spark_and_hive_write_them(folder: Path, table: pl.DataFrame) -> None:
    for key in (0, 1, 2):
        part = folder / "table" / f"device={key}" / "mode=some%20mode"
        part.mkdir(parents=True)
        rows = table.filter(pl.col("device") == key).drop("device")
        rows.write_parquet(part / "part-00000.snappy.parquet")
        (part / ".part-00000.snappy.parquet.crc").write_bytes(b"crc")
    (folder / "table" / "_SUCCESS").touch()
    (folder / "table" / "_temporary").mkdir()
    (folder / "table" / "_temporary" / "part-0.parquet").write_bytes(b"half")
    expected = summarize(table, by="device", figures="mape", method="log-t")
    for path in (folder / "table", f"{folder}/table/**", f"{folder}/table/*/*/*.parquet"):
        found = summarize(scan(path), by=["device", "mode"], figures="mape", method="log-t")
        assert [r.key["device"] for r in found.rows] == [0, 1, 2]
        assert [r.n for r in found.rows] == [r.n for r in expected.rows]
        assert found.rows[0].key["mode"] == "some mode"
        assert found.macro["mape"] == pytest.approx(expected.macro["mape"], rel=1e-12)
    table.write_parquet(folder / "table" / "device=0" / "more.parquet")
    with pytest.raises(InputError, match="its folders have the keys"):
        scan(folder / "table")


def test_a_key_that_is_a_column_as_well(tmp_path: Path, table: pl.DataFrame) -> None:
    part = tmp_path / "device=9"
    part.mkdir()
    table.write_parquet(part / "part-0.parquet")
    assert scan(part).where({"device": 1}).n  # the file knows better
    (part / "mode=train").mkdir()
    (part / "part-0.parquet").rename(part / "mode=train" / "part-0.parquet")
    with pytest.raises(
        InputError,
        match="the file has a column 'device', and a folder in its path sets this key, too",
    ):
        scan(part)


def test_columns_may_stand_in_another_order(folder: Path, table: pl.DataFrame) -> None:
    path = folder / "part-4.parquet"
    part = pl.read_parquet(path)
    part.select(reversed(part.columns)).write_parquet(path)
    found, expected = (summarize(t, figures="bias", level=None) for t in (scan(folder), table))
    assert found.pooled.figures["bias"].value == pytest.approx(
        expected.pooled.figures["bias"].value, rel=1e-12
    )


def test_a_pattern_counts_each_file_once(folder: Path, table: pl.DataFrame) -> None:
    kept = int((table["status"] == "OK").sum())
    assert scan(f"{folder}/**").n == kept
    assert scan(f"{folder}/*").n == kept


def test_names_with_brackets_and_links_that_lead_nowhere(
    tmp_path: Path, table: pl.DataFrame
) -> None:
    path = tmp_path / "run[1].parquet"
    table.write_parquet(path)
    assert scan(path).n == scan(tmp_path).n
    (tmp_path / "lost.parquet").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"lost.parquet: not a readable Parquet file "):
        scan(tmp_path)


def test_the_command_reads_a_pattern(folder: Path, run: Run) -> None:
    ran = run("metrics", f"{folder}/**/*.parquet", "--by", "device", "--json")
    assert ran.code == 0
    document = ran.json
    assert [row["device"] for row in document["rows"]] == [0, 1, 2]
    assert document["dropped"][0]["reason"] == "the prediction failed (status)"
    assert "median_ape_approx" in document["pooled"]
    refused = run("metrics", folder, "--figures", "median_ape")
    assert (refused.code, "Use median_ape_approx" in refused.err) == (2, True)
    assert (
        "resamples single pairs, but these pairs stay in Polars."
        in run("metrics", folder, "--method", "bca").err
    )


@pytest.mark.core
def test_an_audit_leaves_a_folder_on_disk(
    folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errcomp.report.html.pictures", lambda figures: ([], []))
    claim = ("--claim", "12%", "--aggregation", "mean")
    page = tmp_path / "page.html"
    ran = run("audit", f"{folder}/**/*.parquet", "--by", "device", *claim, "-o", page)
    assert ran.code == 0
    assert "The pairs stayed in Polars; errcomp read only sums and counts." in " ".join(
        ran.out.split()
    )
    assert "The pairs stayed in Polars;" in page.read_text()
    document = run("audit", folder, "--by", "device", *claim, "--json").json
    assert document["engine"] == "Polars"
    assert "duplicated-configurations" in document["not_looked_for"]
    assert run("report", folder, "-o", page).code == 0
    assert "To plot individual pairs, make the report" not in page.read_text()


def test_what_looks_at_single_pairs_refuses_a_folder(folder: Path, run: Run) -> None:
    ran = run("claims", "search", folder, "--figure", "x=2%")
    assert ran.code == 2
    assert "Parquet files. This command loads all pairs into memory" in ran.err


def test_rows_of_a_folder_cannot_be_excluded(folder: Path, run: Run) -> None:
    ran = run("audit", folder, "--exclude", "rows.csv")
    assert ran.code == 2
    assert "--exclude applies only to tables in memory" in ran.err


def test_a_folder_with_other_files_says_how_to_name_a_pattern(
    folder: Path, tmp_path: Path, run: Run
) -> None:
    part = next(folder.rglob("*.parquet"))
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "part-0.parquet").write_bytes(part.read_bytes())
    (mixed / "notes.txt").write_text("of the run")
    assert (
        f"To read only its Parquet files, quote a pattern: '{mixed}/*.parquet'"
        in run("audit", mixed).err
    )
    assert run("audit", f"{mixed}/*.parquet", "--json").code == 0
    unquoted = run("audit", mixed / "part-0.parquet", mixed / "part-1.parquet")
    assert f"If you typed a pattern, quote it: '{mixed}/*.parquet'" in unquoted.err


def test_columns_that_are_missing_are_named_without_ours(tmp_path: Path, run: Run) -> None:
    for i in range(2):
        pl.DataFrame({"time": [1.0], "model_ms": [1.1]}).write_parquet(tmp_path / f"{i}.parquet")
    err = run("audit", tmp_path).err
    assert "_errcomp" not in err
    assert "--column NAME=COLUMN" in err


def test_a_summary_for_ci_says_what_was_not_looked_for(
    folder: Path, tmp_path: Path, run: Run
) -> None:
    summary = tmp_path / "audit.md"
    claim = ("--claim", "12%", "--aggregation", "mean")
    assert run("audit", folder, "--by", "device", *claim, "--markdown", summary).code == 0
    assert "These caveats need single pairs and were not checked: affine, " in summary.read_text()


def test_a_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.parquet").write_bytes(b"PAR1")

    def refuse(self: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        parquet_files(tmp_path)
