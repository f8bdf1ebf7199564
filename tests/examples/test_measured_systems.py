"""What the serving page says of published measurements, computed from the files."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest

from errcomp import metrics
from errcomp.propagation.graph import Constant, Queue
from errcomp.propagation.terms import Floats

pytestmark = pytest.mark.shared

PAGE = Path(__file__).parents[2] / "docs" / "serving-p99.md"
TEXT = " ".join(PAGE.read_text(encoding="utf-8").split())
#: Errors of 90 % of a standard normal.
WITHIN = 1.645


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> Floats:
    return np.array([float(row[name]) for row in rows])


def grouped(rows: list[dict[str, str]], *keys: str) -> dict[str, list[dict[str, str]]]:
    def name(row: dict[str, str]) -> str:
        return " ".join(row[key] for key in keys)

    return {key: list(group) for key, group in itertools.groupby(rows, name)}


def signed(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %".replace("-", "−")


def sum_error(predicted: Floats, measured: Floats) -> float:
    return float(predicted.sum() / measured.sum()) - 1


def standardised(predicted: Floats, measured: Floats) -> float:
    """Sum of errors over what it would be if they were independent and without bias."""
    error = predicted - measured
    return float(error.sum() / np.sqrt((error**2).sum()))


@pytest.fixture(scope="module")
def blis(shared_data: Path) -> Path:
    return shared_data / "tools" / "blis"


@pytest.fixture(scope="module")
def end_to_end(blis: Path) -> list[dict[str, str]]:
    return rows_of(blis / "round2_e2e_validation_regime.csv")


@pytest.fixture(scope="module")
def replayed(blis: Path) -> list[dict[str, str]]:
    return rows_of(blis / "round3_trace_replay_results.csv")


class TestSteps:
    def test_errors_cancel_where_the_predictor_was_trained(self, blis: Path) -> None:
        rows = rows_of(blis / "round1_step_predictions.sample130_per_experiment.csv")
        assert len(rows) == 2080
        wape, total, z, low = {}, {}, {}, {}
        for name, group in grouped(rows, "experiment_id").items():
            predicted, measured = column(group, "predicted_us"), column(group, "step.duration_us")
            assert len(group) == 130
            wape[name] = float(metrics.wape(predicted=predicted, measured=measured))
            total[name] = sum_error(predicted, measured)
            z[name] = standardised(predicted, measured)
            low[name] = int((predicted < measured).sum())
        assert len(wape) == 16
        growth = [abs(total[name]) / wape[name] for name in wape]
        medians = [np.median([*wape.values()]), np.median(np.abs([*total.values()]))]
        assert f"| WAPE of the steps | {100 * medians[0]:.1f} % |" in TEXT
        assert f"| error of their sum | {100 * medians[1]:.1f} % |" in TEXT
        assert f"| growth: error of the sum over WAPE | {np.median(growth):.2f} |" in TEXT
        inside = [abs(value) < WITHIN for value in z.values()]
        assert f"In {sum(inside)} of the 16 experiments this ratio is within ±1.645" in TEXT
        worst = max(total, key=lambda name: abs(total[name]))
        assert worst.endswith("llama-2-7b-tp1-general")
        assert f"{low[worst]} of 130 predictions are too low" in TEXT
        assert (
            f"the WAPE is {100 * wape[worst]:.1f} %, and the error of the sum "
            f"{signed(total[worst])}"
        ) in TEXT

    def test_a_bias_remains_for_a_model_left_out(self, blis: Path) -> None:
        rows = rows_of(blis / "round2_lomo_per_step_results.csv")
        rows = [row for row in rows if row["regime"] != "ALL"]
        error = np.abs(column(rows, "mean_predicted") / column(rows, "mean_actual") - 1)
        assert f"over the {len(rows)} groups of BLIS's own table of held-out models" in TEXT
        assert f"the median error of the mean step time is {100 * np.median(error):.1f} %" in TEXT


class TestEndToEnd:
    """Ten experiments: which errors follow from the steps, and which do not."""

    def test_table(self, end_to_end: list[dict[str, str]], replayed: list[dict[str, str]]) -> None:
        again = {row["experiment"]: row for row in replayed}
        for row in end_to_end:
            names = ("gt_e2e_ms", "blis_e2e_ms", "gt_ttft_ms", "blis_ttft_ms", "blis_itl_ms")
            e2e, blis_e2e, ttft, blis_ttft, itl = (float(row[name]) for name in names)
            tokens = (blis_e2e - blis_ttft) / itl
            cells = [
                f"{row['model']} {row['workload']}",
                signed(blis_e2e / e2e - 1),
                signed(itl / float(row["gt_itl_ms"]) - 1),
                signed(itl * tokens / (e2e - ttft) - 1),
                f"{ttft / 1e3:.2f}",
                f"{blis_ttft / 1e3:.2f}",
                f"{float(again[row['experiment']]['blis_ttft_ms']) / 1e3:.2f}",
            ]
            assert f"| {' | '.join(cells)} |" in TEXT
        assert len(end_to_end) == 10

    def test_without_a_queue_the_error_is_that_of_a_token(
        self, end_to_end: list[dict[str, str]]
    ) -> None:
        calm = [row for row in end_to_end if float(row["blis_ttft_ms"]) < 1000]
        assert len(calm) == 6
        decode = column(calm, "blis_e2e_ms") - column(calm, "blis_ttft_ms")
        measured = column(calm, "gt_e2e_ms") - column(calm, "gt_ttft_ms")
        end = column(calm, "blis_e2e_ms") / column(calm, "gt_e2e_ms") - 1
        assert np.abs(end - (decode / measured - 1)).max() < 0.036

    def test_inter_token_latency_is_stated_per_half_token(
        self, end_to_end: list[dict[str, str]], replayed: list[dict[str, str]]
    ) -> None:
        def intervals(rows: list[dict[str, str]], who: str) -> Floats:
            decode = column(rows, f"{who}_e2e_ms") - column(rows, f"{who}_ttft_ms")
            return decode / column(rows, f"{who}_itl_ms")

        tokens = intervals(end_to_end, "blis")
        np.testing.assert_allclose(tokens, np.round(tokens), atol=1e-6)
        excess = intervals(end_to_end, "gt") - (2 * tokens + 1)
        assert excess.min() > 0
        assert excess.max() < 0.6
        recorded = intervals(replayed, "blis")
        assert (round(recorded.min()), round(recorded.max())) == (206, 253)

    def test_explosions_are_waiting(self, end_to_end: list[dict[str, str]]) -> None:
        wild = [row for row in end_to_end if float(row["blis_ttft_ms"]) > 1000]
        waiting = column(wild, "blis_ttft_ms") - column(wild, "gt_ttft_ms")
        error = column(wild, "blis_e2e_ms") - column(wild, "gt_e2e_ms")
        share = np.round(100 * waiting / error).astype(int)
        assert len(wild) == 4
        text = "In the four rows whose times are far too long, "
        text += f"{share.min()} to {share.max()} % of the error is TTFT"
        assert text in TEXT

    def test_two_explosions_are_no_amplified_error(
        self, end_to_end: list[dict[str, str]], replayed: list[dict[str, str]]
    ) -> None:
        wild = [row for row in end_to_end if float(row["blis_ttft_ms"]) > 1000]
        low = [r for r in wild if float(r["blis_itl_ms"]) < float(r["gt_itl_ms"])]
        found = [f"{row['model']} {row['workload']}" for row in low]
        assert found == ["llama-2-70b general", "mixtral-8x7b-v0-1 general"]
        again = {row["experiment"]: row for row in replayed}
        for row in low:
            # Shorter service never makes the response longer, at any load.
            ratio = float(row["blis_itl_ms"]) / float(row["gt_itl_ms"])
            for load in (0.5, 0.9, 0.999):
                station = Queue(Constant(1.0), arrival_rate=128 * load, servers=128)
                faster, real = station.response([ratio, 1.0])
                assert faster < real
            calm = again[row["experiment"]]
            same = float(calm["blis_itl_ms"]) - float(row["blis_itl_ms"])
            assert abs(same) < 1e-4
            assert float(calm["blis_ttft_ms"]) < 15
        assert "(12 and 14 ms)" in TEXT

    def test_two_explosions_could_be_by_the_stated_figures(
        self, end_to_end: list[dict[str, str]], replayed: list[dict[str, str]]
    ) -> None:
        wild = [row for row in end_to_end if float(row["blis_ttft_ms"]) > 1000]
        high = [r for r in wild if float(r["blis_itl_ms"]) > float(r["gt_itl_ms"])]
        assert {row["model"] for row in high} == {"codellama-34b"}
        ratio = column(high, "blis_itl_ms") / column(high, "gt_itl_ms")
        loads = [round(100 / x) for x in ratio]
        assert f"saturated at real loads above {loads[0]} and {loads[1]} %" in TEXT
        for x, load in zip(ratio, loads, strict=True):
            station = Queue(Constant(1.0), arrival_rate=load / 100 + 0.01)
            assert np.isfinite(station.response(1.0))
            assert np.isinf(station.response(x))
        # Replay has another step time: nothing tells the two causes apart.
        again = {row["experiment"]: row for row in replayed}
        for row in high:
            assert float(row["blis_itl_ms"]) > 14.5
            assert float(again[row["experiment"]]["blis_itl_ms"]) < 6.7


class TestRequests:
    def test_table(self, shared_data: Path) -> None:
        rows = rows_of(shared_data / "tools" / "llmservingsim" / "per_request_sim_vs_vllm.csv")
        growth, ratios = [], []
        for name, group in grouped(rows, "hardware", "model").items():
            assert len(group) == 300
            predicted, measured = column(group, "sim_ttft_ms"), column(group, "vllm_ttft_ms")
            wape = metrics.wape(predicted=predicted, measured=measured)
            mape = metrics.mape(predicted=predicted, measured=measured)
            mean = sum_error(predicted, measured)
            p99 = np.quantile(predicted, 0.99) / np.quantile(measured, 0.99) - 1
            per_token = sum_error(column(group, "sim_tpot_ms"), column(group, "vllm_tpot_ms"))
            growth.append(abs(mean) / wape)
            ratios.append(mean / per_token)
            cells = [name, signed(per_token), f"{100 * mape:.1f} %", f"{100 * wape:.1f} %"]
            assert f"| {' | '.join([*cells, signed(mean), signed(p99)])} |" in TEXT
        assert len(growth) == 4
        assert f"{100 * min(growth):.0f} to {100 * max(growth):.0f} % of the WAPE" in TEXT
        text = f"is {min(ratios):.1f} to {max(ratios):.0f} times the error of the time per token"
        assert text in TEXT


class TestOverlap:
    def test_errors_of_overlapping_kernels_do_not_cancel(self, shared_data: Path) -> None:
        path = shared_data / "tools" / "echo" / "slowdown_output_df_merged_features.csv"
        rows = rows_of(path)
        predicted = column(rows, "calculated duration with overlap")
        measured = column(rows, "ground truth duration with overlap")
        error = predicted - measured
        wape = metrics.wape(predicted=predicted, measured=measured)
        mape = metrics.mape(predicted=predicted, measured=measured)
        median = np.median(metrics.ape(predicted=predicted, measured=measured))
        total = sum_error(predicted, measured)
        alone = float(np.sqrt((error**2).sum()) / measured.sum())
        assert f"{len(rows)} kernels slow down" in TEXT
        assert (
            f"The median error is {100 * median:.1f} %, the MAPE {100 * mape:.1f} %, the WAPE "
            f"{100 * wape:.1f} %, and the error of the sum {signed(total)}, so the growth is "
            f"{abs(total) / wape:.2f}."
        ) in TEXT
        assert f"would be known to within {100 * alone:.1f} %." in TEXT
        assert f"The actual error of the sum is {abs(total) / alone:.1f} times as large" in TEXT
        largest = np.argsort(-np.abs(error))[:20]
        low = int((error[largest] < 0).sum())
        assert f"in {low} of the 20 largest errors the prediction is too low" in TEXT
