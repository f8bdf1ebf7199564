"""Can printed figures be true? What is impossible, under which condition, and bad input."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp import read_result
from errcomp.claims.forensics import Finding, forensics
from errcomp.claims.forensics.reading import NAMES, tables_of
from errcomp.errors import InputError


def checked(*rows: tuple[Any, ...], names: str = "quantity value n") -> tuple[Finding, ...]:
    """Check rows of the columns named; missing fields are empty."""
    columns = names.split()
    return forensics(
        {name: [dict(zip(columns, row, strict=False)).get(name, "") for row in rows]
         for name in columns}
    ).rows  # fmt: skip


def only(*rows: tuple[Any, ...], names: str = "quantity value n") -> Finding:
    """Return the only finding that is not "possible"."""
    (finding,) = [row for row in checked(*rows, names=names) if row.verdict != "possible"]
    return finding


@pytest.mark.parametrize(
    ("rows", "proof"),
    [
        ([("share within 10%", "83.4%", 12)], "10 of 12 are 83.33 %, 11 of 12 are 91.67 %"),
        ([("mean", "2.3%", 20), ("max", "50%", 20)], "1 of 20 is at least 49.5 % (max 50%)"),
        ([("max", "2%", 5), ("mean", "4%", 5)], "Their mean is at most 2.5 %, not 4%."),
        ([("min", "3%", 5), ("mean", "1%", 5)], "Their mean is at least 2.5 %, not 1%."),
        ([("median", "9%", 9), ("mean", "4.0%", 9)], "5 of 9 are at least 8.5 % (median 9%)"),
        ([("bias", "-7%", 9), ("MAPE", "5%", 9)], "-7% exceeds 5%"),
        ([("geomean", "7%", 9), ("mean", "5%", 9)], "geometric mean is at most the arithmetic"),
        ([("rms", "4.0%", 9), ("mean", "5.0%", 9)], "root mean square is at least the mean"),
        ([("rms", "20%", 9), ("mean", "5%", 9)], "at most the mean × √9, here 16.5 %"),
        ([("rms", "9%", 9), ("mean", "5.0%", 9), ("max", "11.0%", 9)], "√(mean × max)"),
        ([("sd", "9%", 9), ("rms", "5%", 9)], "times as much: at most 5.834 %, not 9%"),
        ([("median", "11%", 9), ("within 10%", "89%", 9)], "the 8 smallest of 9 are at most 10 %"),
        ([("p90", "6%", 100), ("max", "4%", 100)], "at least one error would be both"),
        ([("max", "8%", 9), ("within 10%", "89%", 9)], "the largest of 9 is at least 10 %"),
        ([("rms", "5%", 100), ("max", "90%", 100)], "The rms is at least 8.95 %, not 5%."),
        ([("mean", "5%"), ("median", "13.0%")], "50 % are at least 12.95 % (median 13.0%)"),
        ([("mean", "120%", 9), ("bias", "-90%", 9)], "(mean − bias) / 2 = 104.5 %"),
        # (1.201225 + 0.9005) / 2 = 1.0508625
        ([("mean", "120.123%", 9), ("bias", "-90.1%", 9)], "/ 2 = 105.1 %; a prediction that is"),
        # √(0.095² − 0.045²) = 0.083666…; √(10 / 9) times √(0.105² − 0.035²) is 0.104350…, and
        # times 0.105 it is 0.110680…
        ([("sd", "1%", 10), ("rms", "10%", 10), ("mean", "4%", 10)],
         "times as much: between 8.367 % and 10.43 % for absolute errors and between 8.367 % and "
         "11.07 % for signed ones, not 1%."),
    ],
)  # fmt: skip
def test_figures_that_exclude_each_other(rows: list[tuple[Any, ...]], proof: str) -> None:
    finding = only(*rows)
    assert finding.verdict == "impossible"
    assert proof in finding.proof


@pytest.mark.parametrize(
    "rows",
    [
        [("share within 10%", "83.3%", 12)],
        [("share within 10%", "83%", 12)],
        [("mean", "2.5%", 20), ("max", "50%", 20)],  # one error of 50 %, the others exact
        [("max", "2%", 5), ("mean", "2%", 5), ("min", "2%", 5), ("rms", "2%", 5), ("sd", "0%", 5)],
        [("median", "9%", 9), ("mean", "5%", 9)],
        [("bias", "-5%", 9), ("MAPE", "5%", 9)],
        [("median", "10%", 2), ("within 10%", "50%", 2), ("mean", "10%", 2)],
        [("p90", "5%", 10), ("max", "50%", 10)],
        [("mean", "~2%", 20), ("max", "50%", 20)],  # nobody says how near "about" is
        [("mean", "<5%"), ("max", "5–10%")],
        [("correlation", "0.99", 20), ("mean", "5%", 20)],
        # Ends that touch: 5.5 % is printed as 5 % or 6 %.
        [("geomean", "6%", 9), ("mean", "5%", 9)],
        [("mean", "3%", 5), ("max", "2%", 5)],
        [("mean", "2%", 5), ("min", "3%", 5)],
        [("overall max", "5%", 30), ("max", "4%", 10), ("max", "3%", 20)],
        [
            ("error", "4%"),
            ("error", "6%"),
            ("error", "8%"),
            ("error", "30%"),
            ("overall median", "6%"),
        ],
    ],
)
def test_figures_that_can_be_true(rows: list[tuple[Any, ...]]) -> None:
    assert {row.verdict for row in checked(*rows)} == {"possible"}


def test_an_impossible_mean_names_only_what_excludes_it() -> None:
    finding = only(
        ("mean", "2.0%", 12), ("min", "0%", 12), ("median", "1%", 12), ("max", "50%", 12)
    )
    assert finding.figures == ("mean 2.0%", "max 50%")


def test_three_figures_together_exclude_what_no_two_do() -> None:
    rows = [("mean", "8.0%", 10), ("within 10%", "50%", 10), ("max", "60%", 10)]
    for i in range(3):
        assert {row.verdict for row in checked(*rows[:i], *rows[i + 1 :])} == {"possible"}
    finding = only(*rows)
    assert (finding.verdict, len(finding.figures)) == ("impossible", 3)
    told = "1 of 10 is at least 59.5 % (max 60%), 4 of 10 are at least 10 % (within 10% 50%)"
    assert told in finding.proof


def test_without_n_the_least_n_is_the_condition() -> None:
    finding = only(("mean", "5.0%"), ("max", "50%"))
    assert (finding.verdict, finding.condition) == ("possible only if", "n is at least 10")
    assert "With n = 9: " in finding.proof
    finding = only(("share within 5%", "83.3%"))
    assert finding.condition == "n is at least 6"


def test_digits_cut_off_are_a_condition() -> None:
    # 11 of 12 are 91.67 %, printed as 91.6 %.
    finding = only(("share within 10%", "91.6%", 12))
    assert finding.verdict == "possible only if"
    assert finding.condition == "digits were cut off, not rounded"


def test_a_low_correlation_with_small_errors_needs_measurements_that_vary_little() -> None:
    finding = only(("r", "0.90"), ("max", "5%"))
    assert finding.condition == "the sd of the measurements is at most 13 % of their mean"
    # By hand: the sd of differences is at least √(1 - 0.905²) of that of the measurements.
    assert pytest.approx(0.130, abs=5e-4) == 0.055 / (1 - 0.905**2 - 0.055**2) ** 0.5


@pytest.mark.parametrize(
    ("rows", "verdict", "told"),
    [
        ([("overall mean", "7.5%", 30), ("mean", "4%", 10), ("mean", "9%", 20)], "", ""),
        ([("overall mean", "5.0%", 30), ("mean", "4%", 10), ("mean", "9%", 20)],
         "impossible", "(10 × 4% + 20 × 9%) / 30 is between 6.833 % and 7.833 %"),
        ([("overall mean", "6.5%", 30), ("mean", "4%", 10), ("mean", "9%", 20)],
         "possible only if", "plain mean of the parts' figures"),
        ([("overall mean", "5.0%", 31), ("mean", "4%", 10), ("mean", "9%", 20)],
         "possible only if", "their n sum to 30, not 31"),
        ([("mean", "5.0%", 30), ("mean", "4%", 10), ("mean", "9%", 20)], "impossible", "/ 30"),
        ([("overall max", "5%", 30), ("max", "4%", 10), ("max", "9%", 20)],
         "impossible", "The largest of the parts is 9%, not 5%."),
        ([("overall median", "2%", 30), ("median", "4%", 10), ("median", "9%", 20)],
         "impossible", "from 4% to 9%; 2% does not"),
        ([("overall within 5%", "50%", 30), ("within 5%", "40%", 10), ("within 5%", "55%", 20)],
         "", ""),
        ([("overall within 5%", "60%", 30), ("within 5%", "40%", 10), ("within 5%", "55%", 20)],
         "impossible", ""),
    ],
)  # fmt: skip
def test_a_whole_agrees_with_its_parts(
    rows: list[tuple[Any, ...]], verdict: str, told: str
) -> None:
    found = [row for row in checked(*rows) if row.verdict != "possible"]
    assert [row.verdict for row in found] == [verdict] * bool(verdict)
    assert all(told in row.condition + row.proof for row in found)


def test_parts_without_their_n_bound_the_whole() -> None:
    names = "quantity value part"
    finding = only(("mean", "11%", "all"), ("mean", "4%", "A"), ("mean", "9%", "B"), names=names)
    assert finding.verdict == "impossible"
    inside = checked(("mean", "8%", "all"), ("mean", "4%", "A"), ("mean", "9%", "B"), names=names)
    assert {row.verdict for row in inside} == {"possible"}


@pytest.mark.parametrize(
    ("error", "verdict", "condition"),
    [
        ("10%", "possible", ""),
        ("9.1%", "possible only if", "relative to the prediction"),
        ("20%", "impossible", ""),
    ],
)
def test_an_error_agrees_with_the_times_beside_it(error: str, verdict: str, condition: str) -> None:
    rows = [("predicted", "110.0 ms"), ("measured", "100.0 ms"), ("error", error)]
    (finding,) = checked(*rows)
    assert finding.verdict == verdict
    assert condition in finding.condition


def test_a_speedup_agrees_with_the_times_beside_it() -> None:
    times = [("baseline", "10.0"), ("time", "4.0")]
    assert checked(*times, ("speedup", "2.5x"))[0].verdict == "possible"
    assert checked(*times, ("speedup", "0.4x"))[0].condition == "it is new over old time"
    assert checked(*times, ("speedup", "3.5x"))[0].verdict == "impossible"


def test_figures_of_a_table_are_recomputed_from_its_errors() -> None:
    errors = [("error", text) for text in ("4%", "6%", "8%", "30%")]
    for name, right, wrong in (
        *(("mean", "12%", "15%"), ("median", "7%", "11%"), ("max", "30%", "32.0%")),
        *(("within 10%", "75%", "100%"), ("min", "4%", "7%")),
    ):
        found = checked(*errors, (f"overall {name}", right))
        assert {row.verdict for row in found} <= {"possible", "possible only if"}, name
        wrongs = [row for row in checked(*errors, (f"overall {name}", wrong))
                  if row.verdict == "impossible"]  # fmt: skip
        assert "Of the 4 cases printed" in wrongs[-1].proof, name


def test_groups_are_tables_of_their_own() -> None:
    rows = [("A", "mean", "1%", 20), ("B", "max", "50%", 20)]
    assert {row.group for row in checked(*rows, names="group quantity value n")} == {"A", "B"}
    assert only(("A", *rows[0][1:]), ("A", *rows[1][1:]), names="group quantity value n").group


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("meen", "2%")], "row 1: unknown quantity 'meen'. Did you mean 'mean'?"),
        ([("within 5%", "120%")], "a share cannot exceed 100 %"),
        ([("mean", "2%"), ("max", "3")], "some values have a % sign and others not: max 3"),
        ([("mean", "2%", "1.5")], "n must be a whole number from 1 to 1,000,000,000, got '1.5'"),
        ([("mean", "2%", "0")], "got '0'"),
        ([("mean", "about")], "row 1: mean: cannot read the figure 'about'"),
        ([("mean", "1.2.3")], "row 1: mean: cannot read the figure '1.2.3"),
        ([("mean", "-3%")], "it cannot be negative"),
        ([("mean", "")], "cannot read the figure ''"),
        ([("predicted", "3 ms"), ("measured", "3 us")], "different units: predicted 3 ms, meas"),
    ],
)
def test_bad_figures_are_refused(rows: list[tuple[Any, ...]], words: str) -> None:
    with pytest.raises(InputError) as refused:
        checked(*rows)
    assert words in str(refused.value)


def test_a_table_without_its_columns_or_rows_is_refused() -> None:
    with pytest.raises(InputError, match="missing column value"):
        forensics({"quantity": ["mean"]})
    with pytest.raises(InputError, match="no printed figures"):
        forensics({"quantity": [""], "value": [""]})


def test_numbers_without_a_sign_are_per_cent_if_any_exceeds_one() -> None:
    assert only(("mean", 2.3, 20), ("max", 50, 20)).figures == ("mean 2.3%", "max 50%")
    assert only(("mean", "0.023", 20), ("max", "0.50", 20)).verdict == "impossible"
    assert checked(("within 10%", "0.8333", 12), ("max", "0.2", 12))[0].verdict == "possible"


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_the_command_answers_people_machines_and_ci(run: Any, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"printed.{suffix}"
    printed = {"mean": "2.3%", "max": "50%"}
    rows = [{"quantity": name, "value": text, "n": 20} for name, text in printed.items()]
    if suffix == "json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("quantity,value,n\nmean,2.3%,20\nmax,50%,20\n")
    ran = run("claims", "forensics", path)
    assert (ran.code, "impossible" in ran.out) == (0, True)
    ran = run("claims", "forensics", path, "--json", "--fail-on", "impossible")
    document = json.loads(ran.out)
    assert (ran.code, document["rows"][0]["verdict"]) == (1, "impossible")
    assert document["impossible"] == 1
    target = tmp_path / "found.json"
    assert run("claims", "forensics", path, "-o", target).code == 0
    assert read_result(target).rows == forensics(path).rows


def test_digits_of_a_csv_stay_as_printed(tmp_path: Path) -> None:
    path = tmp_path / "printed.csv"
    path.write_text("quantity,value,n\nwithin 10%,83.0,12\nmean,5.0,12\n")
    # 10 of 12 are 83.3 %: printed with a decimal as 83.3, without one as 83.
    (finding,) = (row for row in forensics(path).rows if row.verdict == "impossible")
    assert finding.figures == ("within 10% 83.0%",)


@pytest.mark.parametrize(
    ("rows", "value", "low", "high"),
    [
        ([("mean", "2.3%", 20), ("max", "50%", 20)], 0.023, 0.495 / 20, None),
        ([("max", "2%", 5), ("mean", "4%", 5)], 0.04, None, 0.025),
        ([("max", "8%", 9), ("within 10%", "89%", 9)], 0.08, 0.10, None),
        ([("within 10%", "89%", 9), ("median", "11%", 9)], 0.11, None, 0.10),
        ([("bias", "-7%", 9), ("mean", "5%", 9)], -0.07, -0.055, 0.055),
        ([("mean", "120%", 9), ("bias", "-90%", 9)], 1.20, None, 1.105),
        ([("rms", "20%", 9), ("mean", "5%", 9)], 0.20, None, 0.165),
        ([("rms", "5%", 100), ("max", "90%", 100)], 0.05, 0.895 / 10, None),
        ([("geomean", "7%", 9), ("mean", "5%", 9)], 0.07, None, 0.055),
        ([("sd", "9%", 9), ("rms", "5%", 9)], 0.09, None, 0.055 * (9 / 8) ** 0.5),
        # √(RMS² − mean²) to √(RMS² − 0²) · √(n / (n − 1)), at the ends of the rounding.
        ([("sd", "1%", 10), ("rms", "10%", 10), ("mean", "5%", 10)], 0.01,
         (0.095**2 - 0.055**2) ** 0.5, 0.105 * (10 / 9) ** 0.5),
        # Signed errors with a bias near the mean are as near together as absolute ones.
        ([("sd", "9.9%", 99), ("rms", "10%", 99), ("mean", "8%", 99), ("bias", "8%", 99)], 0.099,
         (0.095**2 - 0.085**2) ** 0.5, (0.105**2 - 0.075**2) ** 0.5 * (99 / 98) ** 0.5),
        # 9 % is too small for signed errors and too large for absolute ones: no interval.
        ([("sd", "8.50%", 99), ("rms", "10.00%", 99), ("mean", "8.00%", 99), ("bias", "0.00%", 99)],
         0.085, None, None),
        ([("sd", "30%"), ("max", "10%")], 0.3, None, 0.105 * 2**0.5),
        ([("sd", "30%", 4), ("mean", "10%", 4)], 0.3, None, 0.105 * 2 * (4 / 3) ** 0.5),
        ([("share within 10%", "83.4%", 12)], 0.834, None, None),
        ([("overall mean", "5.0%", 30), ("mean", "4%", 10), ("mean", "9%", 20)],
         0.05, (0.035 + 2 * 0.085) / 3, (0.045 + 2 * 0.095) / 3),
        ([("overall max", "5%", 30), ("max", "4%", 10), ("max", "9%", 20)], 0.05, 0.085, 0.095),
        ([("predicted", "12"), ("measured", "10"), ("error", "5%")],
         0.05, 11.5 / 10.5 - 1, 12.5 / 9.5 - 1),
    ],
)  # fmt: skip
def test_what_the_others_allow(
    rows: list[tuple[Any, ...]], value: float, low: float | None, high: float | None
) -> None:
    finding = only(*rows)
    assert (finding.value, finding.low, finding.high) == pytest.approx((value, low, high))


def test_an_sd_names_no_more_figures_than_it_takes() -> None:
    rows = [("sd", "20%", 10), ("bias", "1%", 10), ("mean", "5%", 10), ("rms", "10%", 10)]
    assert only(*rows).figures == ("sd 20%", "rms 10%")
    rows[0] = ("sd", "1%", 10)
    assert only(*rows).figures == ("sd 1%", "rms 10%", "mean 5%")
    one = checked(("sd", "9%", 1), ("rms", "5%", 1))  # undefined, so it excludes nothing
    assert {row.verdict for row in one} == {"possible"}


def test_a_figure_of_the_whole_needs_all_parts() -> None:
    rows = [("overall mean", "5.0%", 30), ("mean", "4%", 10), ("mean", "9%", 20), ("max", "9%", 5)]
    assert {row.verdict for row in checked(*rows)} == {"possible"}


def test_times_of_one_case_give_its_error_in_the_mean_of_all() -> None:
    names = "quantity value part"
    rows = [("predicted", "12.0", "a"), ("measured", "10.0", "a"), ("predicted", "9.0", "b"),
            ("measured", "10.0", "b")]  # fmt: skip
    assert only(*rows, ("mean", "19%", "all"), names=names).verdict == "impossible"
    right = checked(*rows, ("mean", "15%", "all"), names=names)
    assert {row.verdict for row in right} == {"possible"}
    # Two of three cases say nothing about the mean of three.
    assert {row.verdict for row in checked(*rows, ("n", "3", "all"), ("mean", "19%", "all"),
                                           names=names)} == {"possible"}  # fmt: skip


@pytest.mark.parametrize(
    ("signed", "condition"),
    [("10%", None), ("-10%", "measured − predicted"), ("9.1%", "relative to the prediction")],
)
def test_signed_errors(signed: str, condition: str | None) -> None:
    rows = [("predicted", "110.0"), ("measured", "100.0"), ("signed error", signed)]
    (finding,) = checked(*rows)
    assert finding.verdict == ("possible" if condition is None else "possible only if")
    assert (condition or "") in finding.condition


@pytest.mark.parametrize(
    ("name", "quantity", "at"),
    [
        ("MAPE", "mean", None),
        ("max_ape", "max", None),
        ("Overall mean", "mean", None),
        ("share_within_10", "share", 0.10),
        ("within ±5 %", "share", 0.05),
        ("≤20%", "share", 0.20),
        ("<= 0.1", "share", 0.10),
        ("accuracy within 10 percent", "share", 0.10),
        ("P95 APE", "quantile", 0.95),
        ("90th percentile error", "quantile", 0.90),
        ("Geometric mean (%)", "geomean", None),
        ("Kendall tau", "not checked", None),
    ],
)
def test_names_that_papers_use(name: str, quantity: str, at: float | None) -> None:
    (table,) = tables_of({"quantity": [name], "value": ["50%"]})
    (figure,) = table.whole.figures
    assert figure.quantity == quantity
    assert figure.at == at or (at is None and figure.at != figure.at)


def test_what_is_not_checked_is_read_and_shown() -> None:
    (row,) = checked(("R2", "0.98"), ("mean", "5%"), ("rmse", "12.3 ms"))
    assert (row.verdict, row.figures) == ("possible", ("R2 0.98", "mean 5%", "rmse 12.3 ms"))


def test_a_weighted_mean_lies_between_the_smallest_and_the_largest() -> None:
    assert only(("wape", "30%", 9), ("max", "20%", 9)).high == pytest.approx(0.205)
    assert only(("wape", "3%", 9), ("min", "5%", 9)).verdict == "impossible"
    assert {row.verdict for row in checked(("wape", "20%", 9), ("max", "20%", 9))} == {"possible"}


def test_the_number_of_cases_may_be_a_figure_of_its_own() -> None:
    assert only(("n", "20"), ("mean", "2.3%"), ("max", "50%")).n == 20
    with pytest.raises(InputError, match="n must be a whole number"):
        checked(("n", ">90%"), ("mean", "2.3%"))


def test_any_figures_are_answered_or_refused() -> None:
    rng = random.Random(0)
    names = [*NAMES, "within 10%", "p90", "p0", "overall mean", "overall max", "≤5%"]
    signed = ["0%", "5.0%", "120%", "<5%", "≥5%", "5–10%", "~3%", "1e-3%", "-4%", ">90%", "100%"]
    bare = ["0.5", "12", "3x", "10 ms", "9 us", "1e300", "0", ""]
    answered = refused = 0
    for _ in range(600):
        n = rng.randint(1, 6)
        values = signed if rng.random() < 0.7 else [*signed, *bare]
        table = {
            "quantity": rng.choices(names, k=n),
            "value": rng.choices(values, k=n),
            "n": rng.choices(["", "1", "2", "12", "1000000000", "1,000", "7.0"], k=n),
            "part": rng.choices(["", "", "all", "A", "B"], k=n),
        }
        try:
            found = forensics(table)
        except InputError:
            refused += 1
        else:
            assert found.rows
            for shown in found.view().tables:
                cells = [column.cell(row) for row in shown.rows for column in shown.columns]
                assert any(cell.text for cell in cells)
            # All tables are printed in the same way: that is tried with every tenth.
            assert answered % 10 or str(found)
            assert found.to_json()
            answered += 1
    assert min(answered, refused) > 200


def test_the_survey_is_screened_with_its_own_figures() -> None:
    root = Path(__file__).parents[3]
    table = root / "examples" / "printed-figures" / "survey.csv"
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    printed = {
        row["printed"]
        for file in (root / "datasets" / "survey").glob("*.csv")
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())
        if "printed" in row
    }
    assert {row["value"].strip("-%x s") for row in rows} <= printed
    (finding,) = [row for row in forensics(table).rows if row.verdict != "possible"]
    assert (finding.part, finding.verdict) == ("first edition", "possible only if")
    assert "relative to the prediction" in finding.condition


def test_what_three_figures_exclude_does_not_name_a_fourth() -> None:
    rows = [("mean", "8.0%", 10), ("within 10%", "50%", 10), ("max", "60%", 10)]
    finding = only(*rows, ("min", "0%", 10), ("p90", "10%", 10))
    assert finding.figures == ("mean 8.0%", "within 10% 50%", "max 60%")


def test_a_correlation_is_compared_with_a_mean_through_n() -> None:
    finding = only(("r", "0.90", 3), ("mean", "1.0%", 3))
    spread = 0.0315 / (1 - 0.905**2 - 0.0315**2) ** 0.5
    assert finding.condition.endswith(f"at most {100 * spread:.3g} % of their mean")


def test_a_part_with_two_numbers_of_cases_is_two_sets() -> None:
    names = "part quantity value n"
    rows = [("A", "mean", "1%", 20), ("A", "max", "50%", 10), ("B", "mean", "1%", 10)]
    assert {row.verdict for row in checked(*rows, names=names)} == {"possible"}
    assert only(*rows, ("A", "max", "50%", 20), names=names).part == "A, n=20"


def test_a_large_n_that_is_not_searched_for_is_a_condition_still() -> None:
    finding = only(("mean", "0.10%"), ("max", "90%"))
    assert finding.condition == "n is at least 401"
    assert "With n = 400: Of the errors, 1 of 400 is at least 89.5 %" in finding.proof


@pytest.mark.parametrize("name", ["rms", "geomean"])
def test_other_means_name_only_what_excludes_them_too(name: str) -> None:
    low = [("min", "30%", 10), ("max", "90%", 10), ("median", "30%", 10)]
    finding = only((name, "10%", 10), *low)
    assert finding.verdict == "impossible"
    assert len(finding.figures) == 2


def test_a_bound_without_an_end_has_no_value_to_draw() -> None:
    finding = only(("mean", "≥50%", 9), ("max", "20%", 9))
    assert (finding.value, finding.high) == (None, pytest.approx(0.205))


def test_about_excludes_nothing_even_if_digits_were_cut_off() -> None:
    finding = only(("within 10%", "91.6%", 12), ("mean", "~2%", 12), ("max", "50%", 12))
    assert finding.condition == "digits were cut off, not rounded"


@pytest.mark.parametrize(
    ("whole", "first", "word"),
    [("10%", "2%", "impossible"), ("7%", "2%", "possible"), ("10%", "11%", "possible")],
)
def test_parts_of_unknown_size_bound_the_whole_by_each_of_them(
    whole: str, first: str, word: str
) -> None:
    rows = [("mean", whole, "", "all")]
    rows += [("mean", text, "", part) for text, part in ((first, "a"), ("8%", "b"), ("4%", "c"))]
    words = {one.verdict for one in checked(*rows, names="quantity value n part")}
    assert ("impossible" in words) == (word == "impossible")


def test_sets_of_one_size_are_counted_from_one() -> None:
    rows = [(name, text, 5) for text in ("2%", "3%") for name in ("mean", "max")]
    assert [one.part for one in checked(*rows)] == ["n=5, 1", "n=5, 2"]


@pytest.mark.parametrize("n", ["inf", "nan", "five", "1e400"])
def test_an_n_that_is_no_number_is_refused(n: str) -> None:
    with pytest.raises(InputError, match=f"n must be a whole number .*got '{n}'"):
        checked(("mean", "2%", n))


def test_shares_of_an_unknown_number_are_told_in_per_cent() -> None:
    finding = only(("within 10%", "90%"), ("median", "11%"))
    assert finding.figures == ("median 11%", "within 10% 90%")
    assert finding.proof == (
        "By within 10% 90%, at least 89.5 % of the errors are at most 10 %; by median 11%, at "
        "least 50 % are at least 10.5 %: together more than all."
    )
    assert (finding.value, finding.low, finding.high) == (0.11, None, 0.1)
    finding = only(("max", "8%"), ("within 10%", "89%"))
    assert finding.figures == ("max 8%", "within 10% 89%")
    assert finding.proof == (
        "By max 8%, at least 100 % of the errors are at most 8.5 %; by within 10% 89%, at least "
        "10.5 % are at least 10 %: together more than all."
    )
    assert (finding.value, finding.low, finding.high) == (0.08, 0.1, None)


def test_an_rms_without_an_upper_end_bounds_an_sd_from_below() -> None:
    finding = only(("sd", "1%"), ("rms", ">20%"), ("mean", "2%"))
    assert finding.figures == ("sd 1%", "rms >20%", "mean 2%")
    assert finding.proof.endswith("√(n / (n − 1)) times as much: at least 19.84 %, not 1%.")
    assert finding.low == pytest.approx((0.2**2 - 0.025**2) ** 0.5)
    assert finding.high is None


def test_an_rms_is_not_compared_with_single_cases() -> None:
    rows = [("overall rms", "50%"), ("error", "4%"), ("error", "6%")]
    assert {row.verdict for row in checked(*rows)} == {"possible"}
    finding = only(("overall max", "50%"), *rows[1:])
    assert finding.proof == (
        "Of the 2 cases printed, the overall max is between 5.5 % and 6.5 %, not 50%."
    )


def test_numbers_of_a_dataframe_are_read_with_the_digits_they_need() -> None:
    """10 of 12 are 83.33 %: possible if 83 is printed, impossible if 83.0 is."""
    columns = {"quantity": ["share within 10%"], "value": [83.0], "n": [12.0], "other": ["x"]}
    found = forensics(pl.DataFrame(columns))
    assert [(row.verdict, row.n) for row in found.rows] == [("possible", 12)]
    assert found.source == ""
    text = {"quantity": ["share within 10%"], "value": ["83.0"], "n": ["12"]}
    (finding,) = forensics(pl.DataFrame(text)).rows
    assert finding.verdict == "impossible"
    assert finding.figures == ("share within 10% 83.0%",)
