from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import time_at
from errcomp.propagation.graph.canonical import MomentsAlgebra
from level_by_level.levels import ASSUMED, KERNELS
from level_by_level.training import (
    Accelerator,
    LevelsTable,
    TrainingInputs,
    TrainingJob,
    Transformer,
    levels_table,
    training_job,
)

EXACT = Accelerator(
    gemm_spread=0.0,
    attention_spread=0.0,
    memory_spread=0.0,
    link_spread=0.0,
    network_spread=0.0,
    latency_spread=0.0,
)
LINK, NETWORK = 300e9 * 0.78, 25e9 * 0.85
TOKENS, HIDDEN = 4096, 8192


@pytest.fixture(scope="module")
def job() -> TrainingJob:
    return training_job()


@pytest.fixture(scope="module")
def tables(job: TrainingJob) -> dict[str, LevelsTable]:
    return {name: levels_table(name, job, draws=4096) for name in ASSUMED}


def exact_times(job: TrainingJob) -> dict[str, float]:
    """Time of each level without errors, in milliseconds."""
    kernels = job.kernels
    times = dict(zip(map(str, kernels.kernel), kernels.predicted, strict=True))
    return {name: float(time_at(graph, times)) for name, graph in job.graphs.items()}


class TestFigures:
    def test_parameters_are_those_of_llama_2_70b(self) -> None:
        assert Transformer().parameters == 68_976_648_192

    @pytest.mark.parametrize(
        ("kernel", "flops", "moved"),
        [
            # 2 m n k, and 2 bytes of each of the three matrices.
            ("qkv", 2 * 4096 * 1280 * 8192, 2 * (4096 * 8192 + 8192 * 1280 + 4096 * 1280)),
            ("projection", 2 * 4096 * 8192 * 1024, 2 * (4096 * 1024 + 1024 * 8192 + 4096 * 8192)),
            ("gate and up", 2 * 4096 * 7168 * 8192, 2 * (4096 * 8192 + 8192 * 7168 + 4096 * 7168)),
            ("down", 2 * 4096 * 8192 * 3584, 2 * (4096 * 3584 + 3584 * 8192 + 4096 * 8192)),
            (
                "down, weights",
                2 * 3584 * 8192 * 4096,
                2 * (4096 * 3584 + 3584 * 8192 + 4096 * 8192),
            ),
            # 8 heads of 128: scores and their product with the values, half of them masked.
            ("attention", 8 * 2 * (2 * 4096**2 * 128) / 2, 2 * 4096 * (8 + 1 + 1 + 8) * 128),
            ("attention backward", 8 * 5 * (2 * 4096**2 * 128) / 2, 4 * 4096 * 18 * 128),
            ("norm", 0, 2 * 2 * 4096 * 8192),
            ("norm backward", 0, 3 * 2 * 4096 * 8192),
            ("residual", 0, 3 * 2 * 4096 * 8192),
            ("residual backward", 0, 3 * 2 * 4096 * 8192),
            ("rotary", 0, 2 * 2 * 4096 * 9 * 128),
            ("rotary backward", 0, 2 * 2 * 4096 * 9 * 128),
            ("swiglu", 0, 3 * 2 * 4096 * 3584),
            ("swiglu backward", 0, 5 * 2 * 4096 * 3584),
            (
                "output matrix",
                2 * 4096 * 4000 * 8192,
                2 * (4096 * 8192 + 8192 * 4000 + 4096 * 4000),
            ),
            ("loss", 0, 3 * 2 * 4096 * 4000),
            # 20 layers and the output matrix over 8 ranks; 30 bytes per parameter.
            ("optimizer", 0, 30 * (20 * 8192 * (10240 + 8192 + 86016) + 32000 * 8192) / 8),
        ],
    )
    def test_work(self, job: TrainingJob, kernel: str, flops: float, moved: float) -> None:
        work = job.work[kernel]
        assert work.flops == flops
        assert work.bytes == moved

    @pytest.mark.parametrize(
        ("kernel", "milliseconds"),
        [
            ("qkv", 1e3 * 85_899_345_920 / (312e12 * 0.62)),
            ("attention", 1e3 * 34_359_738_368 / (312e12 * 0.45)),
            ("norm", 1e3 * 134_217_728 / (2e12 * 0.80)),
        ],
    )
    def test_roofline(self, job: TrainingJob, kernel: str, milliseconds: float) -> None:
        predicted = dict(zip(job.kernels.kernel, job.kernels.predicted, strict=True))
        assert predicted[kernel] == pytest.approx(milliseconds, rel=1e-12)

    def test_classes(self, job: TrainingJob) -> None:
        classes = dict(zip(job.kernels.kernel, job.kernels.kernel_class, strict=True))
        assert set(classes.values()) == {"gemm", "attention", "elementwise"}
        assert classes["qkv, weights"] == "gemm"
        assert classes["optimizer"] == "elementwise"

    def test_backward_is_twice_forward_for_matrix_products(self, job: TrainingJob) -> None:
        def flops(counts: dict[str, int]) -> float:
            names = [n for n in counts if job.work[n].kernel_class == "gemm"]
            return sum(job.work[n].flops * counts[n] for n in names)

        assert flops(dict(job.backward)) == 2 * flops(dict(job.forward))

    def test_operations_are_six_per_parameter_and_token_and_attention(
        self, job: TrainingJob
    ) -> None:
        sequences, layers, heads = 256, 80, 64
        attention = 3 * sequences * layers * heads * 2 * (2 * TOKENS**2 * 128) / 2
        matrices = 80 * 8192 * (10240 + 8192 + 3 * 28672) + 32000 * 8192
        assert job.rule_of_thumb == 6.0 * matrices * sequences * TOKENS
        assert job.model_flops == pytest.approx(job.rule_of_thumb + attention, rel=1e-12)

    def test_memory(self, job: TrainingJob) -> None:
        per_token = 2 * (4 * 8192 + (10240 + 8192 + 86016) / 8)
        states = 18 * job.parameters_per_device
        assert job.memory == pytest.approx(states + 4 * 20 * TOKENS * per_token)
        assert job.memory < 80e9
        # One micro-batch is never kept four times.
        one = TrainingJob(TrainingInputs(global_batch=2))
        assert one.memory == pytest.approx(states + 20 * TOKENS * per_token)


class TestLevels:
    def test_all_reduce(self, job: TrainingJob) -> None:
        times = exact_times(job)
        ring = 2 * 7 / 8 * (2 * TOKENS * HIDDEN) / LINK + 14 * 2e-6
        added = times["layer and TP"] - times["layer"]
        assert added == pytest.approx(4 * 1e3 * ring, rel=1e-12)

    def test_layer_is_the_sum_of_its_kernels(self, job: TrainingJob) -> None:
        counts = {**job.forward, **job.backward}
        expected = sum(job.work[name].time(job.inputs.device) * n for name, n in counts.items())
        assert exact_times(job)["layer"] == pytest.approx(expected, rel=1e-12)
        assert counts["norm"] == counts["residual backward"] == 2

    def test_stage_pipeline_and_bubble(self, job: TrainingJob) -> None:
        times = exact_times(job)
        layers = 20 * times["layer and TP"]
        size = 2 * TOKENS * HIDDEN
        all_reduce = 2 * 7 / 8 * size / LINK + 14 * 2e-6
        send = size / 8 / NETWORK + 10e-6
        gather = 7 / 8 * size / LINK + 7 * 2e-6
        first = layers + 2 * 1e3 * (send + gather)
        names = ("output matrix", "loss", "output matrix, inputs", "output matrix, weights")
        head = sum(job.work[name].time(job.inputs.device) for name in names)
        last = layers + head + 1e3 * all_reduce
        assert times["stage"] == pytest.approx(last, rel=1e-12)
        assert times["pipeline"] == pytest.approx(3 * first + last + 127 * last, rel=1e-12)
        # Stages of equal length would idle for 3 of 131 slots.
        assert 1 - 128 * last / times["pipeline"] == pytest.approx(3 / 131, rel=0.02)

    def test_gradients(self, job: TrainingJob) -> None:
        times = exact_times(job)
        without = exact_times(
            TrainingJob(TrainingInputs(data_parallel=1, global_batch=128, contention=0.0))
        )
        size = 4 * (20 * 8192 * (10240 + 8192 + 86016) + 32000 * 8192) / 8
        optimizer = job.work["optimizer"].time(job.inputs.device)
        assert without["gradients"] == pytest.approx(without["pipeline"] + optimizer, rel=1e-12)
        # Two ranks: 2 messages, the whole volume.
        hidden = 1e3 * (size * 19 / 20 / NETWORK + 2 * 10e-6)
        rest = 1e3 * (size / 20 / NETWORK + 2 * 10e-6)
        backward = sum(
            20 * job.work[name].time(job.inputs.device) * n for name, n in job.backward.items()
        )
        head = ("output matrix, inputs", "output matrix, weights")
        backward += sum(job.work[name].time(job.inputs.device) for name in head)
        backward += 41 * 1e3 * (2 * 7 / 8 * 2 * TOKENS * HIDDEN / LINK + 14 * 2e-6)
        assert hidden > backward  # what is hidden is the backward pass
        added = hidden + 0.15 * backward - backward + rest + optimizer
        assert times["gradients"] - times["pipeline"] == pytest.approx(added, rel=1e-9)

    def test_stragglers(self, job: TrainingJob) -> None:
        # Median of the largest of 64 standard normals: Phi(x)^64 = 1/2.
        from scipy import stats

        slowest = stats.norm.ppf(0.5 ** (1 / 64))
        times = exact_times(job)
        factor = times["iteration"] / times["gradients"]
        assert factor == pytest.approx(math.exp(0.01 * slowest), rel=1e-12)

    def test_one_of_everything(self) -> None:
        small = Transformer(layers=4, hidden=1024, ffn=4096, heads=8, kv_heads=8, vocabulary=32000)
        inputs = TrainingInputs(
            model=small,
            device=EXACT,
            tensor_parallel=1,
            pipeline_parallel=1,
            data_parallel=1,
            global_batch=1,
            jitter=0.0,
        )
        job = training_job(inputs)
        times = exact_times(job)
        assert times["layer and TP"] == times["layer"]
        assert times["pipeline"] == pytest.approx(times["stage"], rel=1e-12)
        optimizer = job.work["optimizer"].time(EXACT)
        assert times["iteration"] == pytest.approx(times["stage"] + optimizer, rel=1e-12)
        assert inputs.devices == 1

    def test_one_micro_batch_passes_every_stage_once(self) -> None:
        job = training_job(TrainingInputs(data_parallel=1, global_batch=1, contention=0.0))
        times = exact_times(job)
        optimizer = job.work["optimizer"].time(job.inputs.device)
        assert times["gradients"] == pytest.approx(times["pipeline"] + optimizer, rel=1e-12)


class TestErrors:
    def test_without_spreads_every_band_is_the_prediction(self) -> None:
        inputs = TrainingInputs(device=EXACT, contention_spread=0.0, jitter=0.0)
        for assumption in ("independent", "comonotonic"):
            table = levels_table(assumption, training_job(inputs), draws=512)
            for row in table.rows:
                assert [row.mean, row.median, row.low, row.high] == pytest.approx(
                    [row.predicted] * 4, rel=1e-9
                )
                assert row.relative_sd == pytest.approx(0, abs=1e-9)

    def test_more_sharing_means_more_growth(self, tables: dict[str, LevelsTable]) -> None:
        for less, more in itertools.pairwise(ASSUMED):
            for low, high in zip(tables[less].rows, tables[more].rows, strict=True):
                assert low.since_kernels <= high.since_kernels * 1.01, (less, more, low.level)

    def test_comonotonic_errors_of_kernels_do_not_cancel(
        self, tables: dict[str, LevelsTable]
    ) -> None:
        row = tables["comonotonic"].row("layer")
        assert row.growth == pytest.approx(1, rel=1e-9)
        assert tables["comonotonic"].row(KERNELS).relative_sd == row.relative_sd

    def test_kernels_alone_cancel_with_the_root_of_their_number(self) -> None:
        wires = dataclasses.replace(
            Accelerator(), link_spread=0.0, network_spread=0.0, latency_spread=0.0
        )
        job = training_job(TrainingInputs(device=wires))
        table = levels_table("independent", job, draws=4096)
        variance = 0.0
        for name, count in {**job.forward, **job.backward}.items():
            work = job.work[name]
            spread = {"gemm": 0.08, "attention": 0.15}.get(work.kernel_class, 0.10)
            mean = work.time(wires) * math.exp(spread**2 / 2)
            variance += count * mean**2 * math.expm1(spread**2)
        layer = table.row("layer")
        assert layer.relative_sd * layer.mean == pytest.approx(math.sqrt(variance), rel=0.02)
        stage, pipeline = table.row("stage"), table.row("pipeline")
        head = 0.08**2 * 3 * job.work["output matrix"].time(wires) ** 2
        assert stage.relative_sd * stage.mean == pytest.approx(
            math.sqrt(20 * variance + head), rel=0.02
        )
        # 128 micro-batches, of which the slowest stage counts: hardly anything is left.
        assert pipeline.relative_sd < 1.2 * stage.relative_sd / math.sqrt(128)

    @pytest.mark.parametrize("assumption", ASSUMED)
    def test_moments_agree_with_simulation(
        self, job: TrainingJob, tables: dict[str, LevelsTable], assumption: str
    ) -> None:
        algebra = MomentsAlgebra(job.terms(assumption))
        for row in tables[assumption].rows[1:]:
            form = job.graphs[row.level].evaluate(algebra)
            assert form.mean == pytest.approx(row.mean, rel=2e-3)
            assert form.sd / form.mean == pytest.approx(row.relative_sd, rel=0.03)

    def test_bands_are_those_of_a_log_normal(self, tables: dict[str, LevelsTable]) -> None:
        for table in tables.values():
            row = table.row("stage")
            width = math.log(row.high / row.low) / (2 * 1.6449)
            assert width == pytest.approx(row.relative_sd, rel=0.03)

    def test_same_seed_same_table(self, job: TrainingJob, tables: dict[str, LevelsTable]) -> None:
        # By their text: since Python 3.13, rows with NaN are not equal to themselves.
        assert repr(levels_table("classes", job, draws=4096)) == repr(tables["classes"])
        other = levels_table("classes", job, draws=4096, seed=1).row("iteration")
        first = tables["classes"].row("iteration")
        assert repr(other) != repr(first)
        assert other.high == pytest.approx(first.high, rel=0.01)

    def test_growth_is_against_the_level_below(self, tables: dict[str, LevelsTable]) -> None:
        rows = tables["repeats"].rows
        assert math.isnan(rows[0].growth)
        for below, row in itertools.pairwise(rows):
            assert row.growth == pytest.approx(row.relative_sd / below.relative_sd)
        assert rows[-1].since_kernels == pytest.approx(np.prod([r.growth for r in rows[1:]]))

    def test_utilisation_is_plausible(
        self, job: TrainingJob, tables: dict[str, LevelsTable]
    ) -> None:
        for table in tables.values():
            found = job.utilisation_of(table.row("iteration"))
            assert 0.40 < found.low < found.median < found.high < 0.55
        row = tables["repeats"].row("iteration")
        by_hand = job.model_flops / (64 * 312e12 * row.median / 1e3)
        assert job.utilisation_of(row).median == pytest.approx(by_hand)
        assert str(job.utilisation_of(row)).startswith("46.")

    def test_prints_a_table(self, tables: dict[str, LevelsTable]) -> None:
        lines = str(tables["repeats"]).splitlines()
        assert lines[0] == "errors of kernels: repeats"
        assert [line.split("  ")[0] for line in lines[2:]] == [
            row.level for row in tables["repeats"].rows
        ]
        assert "nan" not in str(tables["repeats"])


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"pipeline_parallel": 3}, "pipeline_parallel must divide the 80 layers, got 3"),
            ({"tensor_parallel": 16}, "tensor_parallel must divide kv_heads = 8, got 16"),
            ({"global_batch": 255}, "multiple of data_parallel x micro_batch = 2, got 255"),
            ({"sequence": 0}, "TrainingInputs.sequence must be finite and positive"),
            ({"sequence": 4096.5}, "must be a whole number, got 4096.5"),
            ({"micro_batch": True}, "must be a whole number, got True"),
            ({"jitter": math.nan}, "TrainingInputs.jitter must be finite and not negative"),
            ({"contention": "a lot"}, "TrainingInputs.contention must be a number"),
            ({"contention": 1.5}, "contention must be at most 1, got 1.5"),
            ({"jitter_correlation": 1.5}, "jitter_correlation must be at most 1"),
        ],
    )
    def test_inputs(self, change: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            TrainingInputs(**change)  # type: ignore[arg-type]

    def test_device(self) -> None:
        with pytest.raises(
            InputError, match=r"Accelerator.gemm_efficiency must be finite and positive"
        ):
            Accelerator(gemm_efficiency=0.0)
        with pytest.raises(
            InputError, match=r"Accelerator.link_spread must be finite and not negative"
        ):
            Accelerator(link_spread=-0.1)

    def test_model(self) -> None:
        with pytest.raises(InputError, match="must be a multiple of heads, got 8192 and 60"):
            Transformer(heads=60)

    def test_latency_may_be_zero(self) -> None:
        device = Accelerator(link_latency=0.0, network_latency=0.0)
        faster = exact_times(training_job(TrainingInputs(device=device)))
        saved = exact_times(training_job())["layer and TP"] - faster["layer and TP"]
        assert saved == pytest.approx(4 * 14 * 2e-3)

    def test_too_little_memory(self) -> None:
        with pytest.raises(InputError, match=r"needs 107.6 GB, a device has 80.0 GB. Use more"):
            training_job(TrainingInputs(pipeline_parallel=2))

    def test_assumption(self) -> None:
        with pytest.raises(InputError, match="assumption must be one of independent, repeats"):
            levels_table("unknown")

    def test_level(self, tables: dict[str, LevelsTable]) -> None:
        with pytest.raises(InputError, match="no level 'job'. Levels: kernels, layer, "):
            tables["repeats"].row("job")

    @pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
    def test_time(self, job: TrainingJob, time: float) -> None:
        with pytest.raises(InputError, match="the time must be positive and finite"):
            job.utilisation(time)
