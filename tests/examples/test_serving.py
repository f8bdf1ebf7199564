from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from errcomp.errors import InputError
from errcomp.propagation.graph import time_at
from level_by_level.levels import ASSUMED, format_time
from level_by_level.serving import (
    LOADS,
    Accelerator,
    LevelsTable,
    LoadTable,
    ServingInputs,
    ServingSystem,
    amplification,
    levels_table,
    load_table,
    serving_system,
)

EXACT = Accelerator(
    gemm_spread=0.0,
    attention_spread=0.0,
    memory_spread=0.0,
    link_spread=0.0,
    network_spread=0.0,
    latency_spread=0.0,
)
MEMORY, LINK = 2e12 * 0.80, 300e9 * 0.78


@pytest.fixture(scope="module")
def system() -> ServingSystem:
    return serving_system()


@pytest.fixture(scope="module")
def tables(system: ServingSystem) -> dict[str, LevelsTable]:
    return {name: levels_table(name, system, draws=4096) for name in ASSUMED}


@pytest.fixture(scope="module")
def loads(system: ServingSystem) -> LoadTable:
    return load_table("repeats", system, draws=8192)


def exact_times(system: ServingSystem) -> dict[str, float]:
    kernels = system.kernels
    times = dict(zip(map(str, kernels.kernel), kernels.predicted, strict=True))
    return {name: float(time_at(graph, times)) for name, graph in system.graphs.items()}


def erlang_response(rho: float, c: int) -> float:
    """Mean response over mean service of M/M/c, from the sum over the states."""
    a = c * rho
    terms = [a**k / math.factorial(k) for k in range(c)]
    last = a**c / math.factorial(c) / (1 - rho)
    return 1 + last / (sum(terms) + last) / (c * (1 - rho))


class TestFigures:
    @pytest.mark.parametrize(
        ("kernel", "flops", "moved"),
        [
            ("qkv", 2 * 32 * 1280 * 8192, 2 * (32 * 8192 + 8192 * 1280 + 32 * 1280)),
            # Keys and values of one head for 1,024 + 256 / 2 tokens of 32 requests.
            ("attention", 32 * 8 * 2 * (2 * 1152 * 128), 32 * 1152 * 2 * 128 * 2),
            ("output matrix", 2 * 32 * 4000 * 8192, 2 * (32 * 8192 + 8192 * 4000 + 32 * 4000)),
            ("prefill qkv", 2 * 1024 * 1280 * 8192, 2 * (1024 * 9472 + 8192 * 1280)),
            ("prefill attention", 8 * 2 * (2 * 1024**2 * 128) / 2, 2 * 1024 * 18 * 128),
            ("prefill output matrix", 2 * 4000 * 8192, 2 * (8192 + 8192 * 4000 + 4000)),
        ],
    )
    def test_work(self, system: ServingSystem, kernel: str, flops: float, moved: float) -> None:
        assert system.work[kernel].flops == flops
        assert system.work[kernel].bytes == moved

    def test_decode_is_bound_by_memory_and_prefill_by_compute(self, system: ServingSystem) -> None:
        kernels = system.kernels
        classes = dict(zip(kernels.kernel, kernels.kernel_class, strict=True))
        times = dict(zip(kernels.kernel, kernels.predicted, strict=True))
        assert classes["gate and up"] == "gemm, memory-bound"
        assert times["gate and up"] == pytest.approx(
            1e3 * system.work["gate and up"].bytes / MEMORY
        )
        assert classes["prefill gate and up"] == "gemm"
        assert classes["attention"] == "attention, memory-bound"
        assert classes["norm"] == "elementwise"
        assert system.errors.error("gemm, memory-bound").spread == 0.10

    def test_levels(self, system: ServingSystem) -> None:
        times = exact_times(system)
        device = system.inputs.device

        def layer(counts: dict[str, int]) -> float:
            return sum(system.work[name].time(device) * n for name, n in counts.items())

        def all_reduce(tokens: int) -> float:
            return 1e3 * (2 * 7 / 8 * 2 * tokens * 8192 / LINK + 14 * 2e-6)

        def last(name: str) -> float:
            return system.work[name].time(device)

        assert times["decode layer"] == pytest.approx(layer(dict(system.decode)))
        step = 80 * (times["decode layer"] + 2 * all_reduce(32)) + last("output matrix") + 2.0
        assert times["decode step"] == pytest.approx(step, rel=1e-12)
        prefill = 80 * (layer(dict(system.prefill)) + 2 * all_reduce(1024)) + 2.0
        prefill += last("prefill output matrix")
        assert times["request"] == pytest.approx(256 * step + 32 * prefill, rel=1e-12)
        assert system.service_time == times["request"]


class TestAmplification:
    @pytest.mark.parametrize("rho", [0.01, 0.5, 0.7, 0.85, 0.95, 0.999])
    @pytest.mark.parametrize("quantile", [None, 0.5, 0.99])
    def test_one_exponential_server(self, rho: float, quantile: float | None) -> None:
        found = amplification(rho, quantile=quantile)
        assert found == pytest.approx(1 / (1 - rho), rel=1e-6)

    @pytest.mark.parametrize("rho", [0.3, 0.7, 0.95])
    @pytest.mark.parametrize("servers", [2, 32])
    def test_many_servers(self, rho: float, servers: int) -> None:
        # d ln R / d ln S at a fixed rate: rho grows with S, and R / S with rho.
        h = 1e-6
        slope = math.log(erlang_response(rho * (1 + h), servers))
        slope -= math.log(erlang_response(rho * (1 - h), servers))
        expected = 1 + slope / (2 * h)
        assert amplification(rho, servers) == pytest.approx(expected, rel=1e-6)

    def test_regular_service(self) -> None:
        # Pollaczek and Khinchine: R = S (1 + rho / (2 (1 - rho))).
        rho = 0.8
        response = 1 + rho / (2 * (1 - rho))
        expected = 1 + rho / (2 * (1 - rho) ** 2) / response
        assert amplification(rho, service_cv2=0.0) == pytest.approx(expected, rel=1e-6)

    def test_grows_with_load_and_falls_with_servers(self) -> None:
        for few, many in itertools.pairwise([1, 2, 8, 32]):
            assert amplification(0.9, few) > amplification(0.9, many)
        for low, high in itertools.pairwise(LOADS):
            assert amplification(low, 32) < amplification(high, 32)


class TestLoads:
    def test_without_spreads(self) -> None:
        system = serving_system(ServingInputs(device=EXACT, host_spread=0.0))
        row = load_table("independent", system, loads=[0.7], draws=512).rows[0]
        assert [*row.half, *row.band, row.median] == pytest.approx([row.predicted] * 5, rel=1e-9)
        assert row.saturated == 0

    def test_p99_of_an_idle_server_is_that_of_the_service(self, system: ServingSystem) -> None:
        row = load_table("repeats", system, loads=[0.01], draws=512).rows[0]
        assert row.predicted == pytest.approx(-math.log(0.01) * system.service_time, rel=1e-9)
        assert row.amplification == pytest.approx(1, abs=1e-6)
        assert row.if_slower == pytest.approx(0.05, rel=1e-6)

    def test_regular_requests_take_what_one_takes(self) -> None:
        system = serving_system(ServingInputs(output_cv2=0.0))
        row = load_table("repeats", system, loads=[0.01], draws=512).rows[0]
        assert row.predicted == pytest.approx(system.service_time, rel=1e-9)

    def test_one_slot_follows_the_closed_form(self) -> None:
        # P99 = -ln 0.01 S / (1 - rho); its log-sd is that of S over 1 - rho for small errors.
        device = dataclasses.replace(
            EXACT, gemm_spread=0.004, attention_spread=0.004, memory_spread=0.004
        )
        system = serving_system(ServingInputs(device=device, slots=1, host_spread=0.0))
        request = levels_table("comonotonic", system, draws=4096).row("request")
        table = load_table("comonotonic", system, draws=4096, loads=[0.5, 0.9])
        for row in table.rows:
            expected = -math.log(0.01) * system.service_time / (1 - row.utilisation)
            assert row.predicted == pytest.approx(expected, rel=1e-9)
            width = math.log(row.half[1] / row.half[0]) / (2 * stats.norm.ppf(0.75))
            amplified = request.relative_sd / (1 - row.utilisation)
            assert width == pytest.approx(amplified, rel=0.05)
            slower = 1.05 * (1 - row.utilisation) / (1 - 1.05 * row.utilisation) - 1
            assert row.if_slower == pytest.approx(slower, rel=1e-9)

    def test_saturation(self, loads: LoadTable, tables: dict[str, LevelsTable]) -> None:
        # Saturated where S exceeds its prediction over rho; S is nearly log-normal.
        request = tables["repeats"].row("request")
        spread = math.sqrt(math.log1p(request.relative_sd**2))
        for row in loads.rows:
            z = math.log(request.predicted / row.utilisation / request.median) / spread
            assert row.saturated == pytest.approx(stats.norm.sf(z), abs=0.012)
            assert math.isinf(row.band[1]) == (row.saturated > 0.05)
            assert row.half[0] < row.median < row.half[1]
        assert loads.rows[-1].saturated > 0.15

    def test_same_error_of_service_more_error_of_response(self, loads: LoadTable) -> None:
        gains = [row.if_slower for row in loads.rows]
        assert gains == sorted(gains)
        assert gains[0] < 0.0505
        assert gains[-1] > 10

    def test_a_full_queue_never_ends_if_slower(self, system: ServingSystem) -> None:
        table = load_table("repeats", system, loads=[0.96], draws=512)
        assert table.rows[0].if_slower == math.inf
        assert str(table).splitlines()[-1].split()[-3] == "never"

    def test_prints_a_table(self, loads: LoadTable) -> None:
        lines = str(loads).splitlines()
        assert lines[0] == "errors of kernels: repeats"
        assert lines[1].split()[:2] == ["load", "P99"]
        assert [line.split()[0] for line in lines[2:]] == ["0.50", "0.70", "0.85", "0.95"]
        assert "– never" in lines[-1]

    def test_same_seed_same_table(self, system: ServingSystem, loads: LoadTable) -> None:
        assert load_table("repeats", system, draws=8192) == loads
        assert load_table("repeats", system, draws=8192, seed=1) != loads


class TestErrors:
    def test_more_sharing_means_more_growth(self, tables: dict[str, LevelsTable]) -> None:
        for less, more in itertools.pairwise(ASSUMED):
            for low, high in zip(tables[less].rows, tables[more].rows, strict=True):
                assert low.since_kernels <= high.since_kernels * 1.01, (less, more, low.level)

    def test_decode_layer(self, system: ServingSystem, tables: dict[str, LevelsTable]) -> None:
        counts = dict(system.decode)
        times = {name: system.work[name].time(system.inputs.device) for name in counts}
        total = sum(times[name] * n for name, n in counts.items())
        # All bound by memory: one spread of 10 %; each kernel errs on its own.
        variance = sum(times[name] ** 2 * n for name, n in counts.items()) * math.expm1(0.01)
        row = tables["independent"].row("decode layer")
        assert row.relative_sd == pytest.approx(math.sqrt(variance) / total, rel=0.02)


class TestBadInput:
    @pytest.mark.parametrize("load", [0.0, 1.0, 1.2, -0.5, math.nan, "half"])
    def test_utilisation(self, system: ServingSystem, load: float) -> None:
        for function in (amplification, system.queue):
            with pytest.raises(InputError, match="the utilisation must be between 0 and 1, got"):
                function(load)

    def test_servers(self) -> None:
        with pytest.raises(InputError, match="servers"):
            amplification(0.5, 0)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"slots": 0}, "ServingInputs.slots must be finite and positive, got 0"),
            ({"output": 2.5}, "ServingInputs.output must be a whole number"),
            ({"host": -1.0}, "ServingInputs.host must be finite and not negative"),
            ({"quantile": 1.0}, "quantile must be between 0 and 1, got 1.0"),
            ({"tensor_parallel": 3}, "tensor_parallel must divide heads = 64, got 3"),
        ],
    )
    def test_inputs(self, change: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            ServingInputs(**change)  # type: ignore[arg-type]

    def test_host_may_be_idle(self, system: ServingSystem) -> None:
        idle = serving_system(ServingInputs(host=0.0))
        saved = exact_times(system)["decode step"] - exact_times(idle)["decode step"]
        assert saved == pytest.approx(2.0)

    def test_too_little_memory(self) -> None:
        with pytest.raises(InputError, match=r"need \d+\.\d GB, a device has 80.0 GB"):
            serving_system(ServingInputs(tensor_parallel=1))

    def test_assumption(self, system: ServingSystem) -> None:
        with pytest.raises(InputError, match="assumption must be one of"):
            load_table("matrix", system)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0.0123, "0.012 ms"),
        (1.0, "1.00 ms"),
        (123.44, "123.4 ms"),
        (1e3, "1.00 s"),
        (2_186_230.0, "2186 s"),
        (np.inf, "never"),
    ],
)
def test_times_print_with_their_unit(milliseconds: float, text: str) -> None:
    assert format_time(milliseconds) == text
