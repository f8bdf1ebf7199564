"""Tables pasted from papers as claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from errcomp.claims.entries import check_claims, read_claims
from errcomp.claims.extract import extract
from errcomp.claims.pasted import tables_in
from errcomp.errors import InputError

MARKDOWN = """\
Some text with | one bar.

| Tool [ref] | GPU | MAPE (%) | Max | Note |
|:-----------|:---:|---------:|----:|------|
| **Ours** [3] | V100 | 5.2 | 40 | [best](x) |
| Ours | H100 | 2.3* | 12 | |
| Habitat | V100 | 11.8 | 90 | |
"""
LATEX = r"""
\begin{table}
\caption{MAPE (\%) of each predictor. % a comment with \begin{tabular}
}
\begin{tabular}{@{}l*{3}{r}@{}}
\toprule
 & \multicolumn{2}{c}{GPU} & n \\ \cmidrule(lr){2-3}
Model & V100 & A100 & \\
\midrule
\multirow{2}{*}{\textbf{BERT}~\cite{bert}} & 5.2 & 6.1$^\dagger$ & 12 \\
 & 4.9 & \qty{7.0}{\percent} & 1,024 \\[2pt]
GPT-2 & $<$5 & -- & 8 \\
\bottomrule
\end{tabular}
\end{table}
"""
HTML = """<p>x</p><table><caption>Errors</caption>
<tr><th rowspan=2>Model</th><th>GPU</th></tr><tr><td>A100</td></tr></table>
<table><caption> Errors of
 cost models </caption><thead>
<tr><th rowspan="2">Network</th><th colspan="3">Error</th></tr>
<tr><th>mean</th><th>max</th><th>within 10%</th></tr></thead>
<tr><td rowspan="2">BERT<br>large</td><td>3.1&nbsp;%</td><td>9 %</td><td>99 %</td></tr>
<tr><td>2.2 %</td><td>8 %</td><td>98.5 %</td></tr>
<tr><td>all</td><td>2.6 %</td><td>9 %</td><td>98.8 %</td></tr></table>"""


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _shown(found: Any) -> list[tuple[Any, ...]]:
    keys = ("printed", "metric", "aggregation", "subset", "scope", "n")
    return [tuple(one.get(key) for key in keys) for one in found.document["claims"]]


def test_markdown_with_several_tools(tmp_path: Path) -> None:
    path = _file(tmp_path, "t.md", MARKDOWN)
    found = extract(path, tool="ours", source="Paper, Table 1", common={"level": "model"})
    assert _shown(found) == [
        ("5.2%", "MAPE", "mean", {"device": "V100"}, None, None),
        ("2.3%", "MAPE", "mean", {"device": "H100"}, None, None),
    ]
    assert all(one["source"] == "Paper, Table 1" for one in found.document["claims"])
    assert all(one["level"] == "model" for one in found.document["claims"])
    assert found.left_out == (
        "Column 'Max': one of the errors, not their average",
        "Rows of other tools: Habitat",
    )
    assert found.places[0] == "Ours [3], V100, MAPE (%)"


def test_marks_within_a_cell_are_no_end_of_it(tmp_path: Path) -> None:
    page = """<table><caption>MAPE of <b>ours</b></caption><tr><th>GPU</th><th>MAPE</th></tr>
<tr><td><a href="x">H100</a> PCIe</td><td><b>2.3</b> %</td></tr></table>"""
    (grid,) = tables_in(_file(tmp_path, "t.html", page))
    assert grid.caption == "MAPE of ours"
    found = extract(_file(tmp_path, "t.html", page), tool="ours", source="Paper")
    assert _shown(found) == [("2.3 %", "MAPE", "mean", {"device": "H100 PCIe"}, None, None)]


def test_latex_with_spans_and_marks(tmp_path: Path) -> None:
    path = _file(tmp_path, "t.tex", LATEX)
    found = extract(path, tool="mine", source="Paper, Table 2", columns="device")
    assert _shown(found) == [
        ("5.2%", "MAPE", "mean", {"model": "BERT", "device": "V100"}, None, 12),
        ("6.1%", "MAPE", "mean", {"model": "BERT", "device": "A100"}, None, 12),
        ("4.9%", "MAPE", "mean", {"model": "BERT", "device": "V100"}, "no. 2", 1024),
        ("7.0%", "MAPE", "mean", {"model": "BERT", "device": "A100"}, "no. 2", 1024),
        ("<5%", "MAPE", "mean", {"model": "GPT-2", "device": "V100"}, None, 8),
    ]
    assert tables_in(path)[0].caption == "MAPE (%) of each predictor."


def test_html_with_spans_and_several_tables(tmp_path: Path) -> None:
    path = _file(tmp_path, "t.html", HTML)
    with pytest.raises(InputError, match="table 1 has no figure that could be a claim"):
        extract(path, tool="x", source="Blog")
    found = extract(path, tool="x", source="Blog", number=2)
    assert _shown(found) == [
        ("3.1 %", "error", "mean", {"model": "BERT large"}, None, None),
        ("99 %", "share within 10%", None, {"model": "BERT large"}, None, None),
        ("2.2 %", "error", "mean", {"model": "BERT large"}, "no. 2", None),
        ("98.5 %", "share within 10%", None, {"model": "BERT large"}, "no. 2", None),
        ("2.6 %", "error", "mean", None, "all", None),
        ("98.8 %", "share within 10%", None, None, "all", None),
    ]
    assert "1 other tables of the file. Add --number 2, …" in found.left_out
    with pytest.raises(InputError, match="table 3 was asked for, but the file has 2"):
        extract(path, tool="x", source="Blog", number=3)


@pytest.mark.parametrize(
    ("heading", "metric", "aggregation"),
    [
        ("MAPE", "MAPE", "mean"),
        ("Median error (%)", "error", "median"),
        ("Geomean APE error", "error", "geometric mean"),
        ("Avg. Err. [%]", "error", "mean"),
        ("Rel. error", "error", None),
        ("Accuracy (%)", "accuracy", None),
        ("R²", "R2", None),
        ("Kendall's τ (tau)", "Kendall tau", None),
        ("Pearson correlation", "correlation", None),
        ("≤ 5%", "share within 5%", None),
        ("within ±10 %", "share within 10%", None),
    ],
)
def test_metrics_by_their_headings(
    tmp_path: Path, heading: str, metric: str, aggregation: str | None
) -> None:
    figure = "0.97" if metric in ("R2", "Kendall tau", "correlation") else "7.5%"
    path = _file(tmp_path, "t.csv", f'GPU;"{heading}"\nV100;{figure}\n')
    (entry,) = extract(path, tool="x", source="S").document["claims"]
    assert (entry["printed"], entry["metric"], entry.get("aggregation")) == (
        figure, metric, aggregation,
    )  # fmt: skip


def test_tools_in_columns_and_a_metric_of_the_caption(tmp_path: Path) -> None:
    path = _file(tmp_path, "t.tsv", "GPU\tOurs\tHabitat\nV100\t5.2%\t11.8%\n")
    with pytest.raises(InputError, match="the heading 'Ours' names no metric.*--metric MAPE"):
        extract(path, tool="Ours", source="S")
    found = extract(path, tool="Ours", source="S", metric="median error")
    assert _shown(found) == [("5.2%", "error", "median", {"device": "V100"}, None, None)]
    assert found.left_out == ("Columns of other tools: Habitat",)


def test_titles_within_a_table_say_what_follows(tmp_path: Path) -> None:
    text = "Tool,GPU,Error\nInference,,\nA,V100,5%\nTraining,,\nA,V100,7%\n"
    found = extract(_file(tmp_path, "t.csv", text), tool="A", source="S")
    assert [one["scope"] for one in found.document["claims"]] == ["Inference", "Training"]


def test_numbers_of_a_key_are_no_figures(tmp_path: Path) -> None:
    text = "Batch,seq_len,MAPE\n8,128,5%\n16,512,7%\n"
    found = extract(_file(tmp_path, "t.csv", text), tool="A", source="S")
    assert [one["subset"] for one in found.document["claims"]] == [
        {"batch": "8", "seq_len": "128"},
        {"batch": "16", "seq_len": "512"},
    ]


def test_numbers_without_unit_and_words_are_left_out(tmp_path: Path) -> None:
    text = "GPU,Error,Time (ms),Error (%)\nV100,12.5,3.1,4.0\nH100,0.05,2.2,fast\n"
    found = extract(_file(tmp_path, "t.csv", text), tool="x", source="S", metric="error",
                    only=["Error", "Error (%)"])  # fmt: skip
    assert [one["printed"] for one in found.document["claims"]] == ["4.0%", "0.05"]
    assert found.left_out[0] == "Column 'Error': no % sign and no unit"
    assert "'fast' in column 'Error (%)': not a figure" in found.left_out


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.csv", "GPU,MAPE\nV100,fast\n", "has no figure that could be a claim"),
        ("t.csv", 'GPU,MAPE\n"V100,5%\n', "not valid CSV"),
        ("t.csv", "GPU,MAPE\n", "no table of at least two rows"),
        ("t.md", "no table here\n", "no table of at least two rows"),
        ("t.tex", r"\begin{tabular}{l} a & b \\ 1 & 2", "no table of at least two rows"),
        ("t.html", "<table><tr><td>5%", "no table of at least two rows"),
        ("t.xyz", "a,b\n1,2\n", r"the name of a table must end in one of \.csv, \.tsv, \.md"),
        ("t.csv", "", "is empty"),
        ("t.csv", "Tool,MAPE\nA,5%\nB,6%\n", r"no row is about 'x'\. Column 'Tool': A, B"),
        ("t.csv", "GPU,R2\nV100,97%\nH100,5\n", "at most 1 or 100 %"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = _file(tmp_path, name, text)
    with pytest.raises(InputError, match=words) as refused:
        extract(path, tool="x", source="S")
    assert str(refused.value).startswith(str(path))


def test_an_unknown_column_is_named_with_the_known_ones(tmp_path: Path) -> None:
    path = _file(tmp_path, "t.csv", "GPU,MAPE\nV100,5%\n")
    with pytest.raises(InputError, match=r"no column 'MAPA'\. Did you mean 'MAPE'"):
        extract(path, tool="x", source="S", only=["MAPA"])
    with pytest.raises(InputError, match="a claim cannot have the metric 'elegance'"):
        extract(path, tool="x", source="S", metric="elegance")
    with pytest.raises(InputError, match="cannot be read|no such file"):
        extract(tmp_path / "no.csv", tool="x", source="S")
    large = _file(tmp_path, "large.md", "|a|b|\n" * 800_000)
    with pytest.raises(InputError, match="larger than"):
        extract(large, tool="x", source="S")


def test_hostile_latex_takes_no_long(tmp_path: Path) -> None:
    path = _file(tmp_path, "t.tex", r"\begin{tabular}{" * 60_000 + "{" * 60_000)
    with pytest.raises(InputError, match="no table"):
        tables_in(path)


def test_the_command_previews_and_then_writes(run: Any, tmp_path: Path) -> None:
    path, target = _file(tmp_path, "t.md", MARKDOWN), tmp_path / "claims.json"
    argv = ("claims", "extract", path, "--tool", "Ours", "--source", "Paper, Table 1")
    preview = run(*argv)
    assert "then write them: --to claims.json" in preview.out
    assert "Left out: Rows of other tools: Habitat." in preview.out
    assert not target.exists()
    ran = run(*argv, "--level", "model", "--to", target, "--json")
    assert [row["place"] for row in ran.json["rows"]][1] == "Ours, H100, MAPE (%)"
    assert f"wrote {target}" in ran.err
    claims = read_claims(target)
    assert [(claim.printed, claim.level, dict(claim.subset)) for claim in claims] == [
        ("5.2%", "model", {"device": "V100"}),
        ("2.3%", "model", {"device": "H100"}),
    ]
    assert next(row["missing"] for row in check_claims(target)) == [
        "reference", "protocol", "workloads", "n", "url", "checked",
    ]  # fmt: skip
    bad = run(*argv, "--level", "galaxy", "--to", tmp_path / "other.json")
    assert bad.code == 2
    assert "'galaxy' is unknown" in bad.err
    assert not (tmp_path / "other.json").exists()
    pairs = _file(tmp_path, "p.csv", "predicted,measured,device\n"
                  + "".join(f"{100 + i % 9},100,V100\n" for i in range(40)))  # fmt: skip
    judged = run("audit", pairs, "--by", "device", "--claims", target, "--json").json
    assert judged["rows"][0]["claim"]["printed"] == "5.2%"


@pytest.mark.shared
def test_the_survey_s_own_tables(shared_data: Path, tmp_path: Path) -> None:
    (survey,) = (shared_data.parent / "background").glob("000_*.txt")
    path = _file(tmp_path, "survey.md", survey.read_text(encoding="utf-8"))
    grids = tables_in(path)
    number = 1 + next(i for i, grid in enumerate(grids) if "Claimed" in grid.rows[0])
    found = extract(path, tool="NeuSight", source="Survey, Table 6", metric="MAPE",
                    number=number, only=["Claimed"])  # fmt: skip
    assert [(one["printed"], one["subset"]["device"]) for one in found.document["claims"]] == [
        ("5.2%", "V100"), ("7.4%", "V100"), ("2.3%", "H100"), ("4.1%", "H100"),
        ("5.8%", "A100-80G"), ("3.8%", "L4"), ("6.1%", "T4"),
    ]  # fmt: skip
    number = 1 + next(i for i, grid in enumerate(grids) if "Accuracy" in grid.rows[0])
    for tool, printed in (("NeuSight", "2.3%"), ("Accel-Sim", "10–20%"), ("nn-Meter", "<1%")):
        found = extract(path, tool=tool, source="Survey", metric="error", number=number)
        assert [one["printed"] for one in found.document["claims"]] == [printed]


def test_a_metric_given_by_name_decides_what_no_heading_says(tmp_path: Path) -> None:
    text = "| Model | GPU | Seen | New |\n|--|--|--|--|\n| BERT | V100 | 0.91 | 0.8 |\n"
    path = _file(tmp_path, "t.md", text + "| – | H100 | 0.87 | – |\n")
    with pytest.raises(InputError, match="the heading 'Seen' names no metric"):
        extract(path, tool="mine", source="Paper")
    for metric, found in (("kendall-tau", "Kendall tau"), ("R2", "R2")):
        taken = extract(path, tool="mine", source="Paper", metric=metric)
        assert _shown(taken) == [
            ("0.91", found, None, {"model": "BERT", "device": "V100"}, "Seen", None),
            ("0.8", found, None, {"model": "BERT", "device": "V100"}, "New", None),
            ("0.87", found, None, {"device": "H100"}, "Seen", None),
        ]
        assert taken.left_out == ()
