"""Held-out evaluation of pipelines whose held-out errors are known."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp import datasets
from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.evaluation import evaluate
from errcomp.calibration.evaluation.splits import SPLITS
from errcomp.calibration.predictions import Predictions
from errcomp.documents import json_schema, load
from errcomp.errors import InputError
from errcomp.metrics import mape
from errcomp.tables import Kernels

DEVICES = ("V100", "P4", "T4", "L4", "MI100", "MI210")
MODELS = ("bert", "gpt", "opt", "vit", "t5")
Z, TAILS = stats.norm.ppf(QUANTILES), stats.norm.ppf((1 + np.array(LEVELS)) / 2)


def table(*, seed=0, per=2, gap=0.3, noise=0.02, **columns):
    """Two kernels per run; every run takes exp(gap + something of its device and its own) more."""
    rng = np.random.default_rng(seed)
    device = np.repeat(DEVICES, len(MODELS) * per)
    model = np.tile(np.repeat(MODELS, per), len(DEVICES))
    n = len(device)
    run = np.array([f"{d}/{m}/{i}" for i, (d, m) in enumerate(zip(device, model, strict=True))])
    of_device = dict(zip(DEVICES, noise * rng.standard_normal(len(DEVICES)), strict=True))
    total = 3 * np.exp(rng.standard_normal(n))
    shift = gap + np.array([of_device[d] for d in device]) + noise * rng.standard_normal(n)
    data = {
        "run": np.repeat(run, 2),
        "device": np.repeat(device, 2),
        "model": np.repeat(model, 2),
        "kernel": ["a", "b"] * n,
        "kernel_class": ["a", "b"] * n,
        "count": [1, 2] * n,
        "measured": np.repeat(total / 3, 2),
        "predicted": np.repeat(total / 3, 2) * 1.1,
        "run_measured": np.repeat(total * np.exp(shift), 2),
    }
    return Kernels({**data, **columns}, unit="ms")


def predictions(kernels, log_factor, sd, *, task="composition"):
    totals = kernels.totals()
    total = totals.measured if task == "composition" else totals.predicted
    center = total * np.exp(log_factor)
    sd = np.broadcast_to(np.asarray(sd, dtype=float), center.shape)[:, None]
    return Predictions(
        run=totals.run,
        total=total,
        predicted=center,
        low=center[:, None] * np.exp(-sd * TAILS),
        high=center[:, None] * np.exp(sd * TAILS),
        quantiles=center[:, None] * np.exp(sd * Z),
        parts={},
        fallback=totals.run,
        calibrated=np.ones(len(totals), dtype=bool),
        warnings=((),) * len(totals),
        estimator="fake",
        unit=kernels.unit,
    )


def learnt(train):
    """The sum with the spread it has, and one factor with the spread around it."""
    totals = train.totals()
    y = np.log(totals.run_measured / totals.measured)
    return {
        "sum": lambda new: predictions(new, 0.0, max(float(np.abs(y).max()) / 2, 1e-3)),
        "global": lambda new: predictions(new, float(y.mean()), float(y.std()) + 1e-9),
    }


def changed(change, estimator="fake"):
    """A pipeline that knows the gap, its predictions changed as given."""
    return lambda _: {estimator: lambda new: change(predictions(new, 0.3, 0.03))}


def test_figures_are_those_of_the_held_out_predictions():
    kernels = table()
    found = evaluate(learnt, kernels, splits=["leave-device-out"])
    totals = kernels.totals()
    y = np.log(totals.run_measured / totals.measured)
    device = totals.keys["device"]
    without = {d: y[device != d].mean() for d in DEVICES}
    expected = totals.measured * np.exp([without[d] for d in device])
    held = found.held_out["leave-device-out", "global"]
    order = {run: i for i, run in enumerate(totals.run)}
    at = np.array([order[run] for run in held.run])
    assert held.predicted == pytest.approx(expected[at])
    assert held.measured == pytest.approx(totals.run_measured[at])
    row = found.row("leave-device-out", "global")
    ape = np.abs(expected / totals.run_measured - 1)
    assert row.n == 60
    assert row.figures["mean_ape"].value == pytest.approx(ape.mean())
    assert row.figures["median_ape"].value == pytest.approx(np.median(ape))
    assert row.figures["p90_ape"].value == pytest.approx(np.quantile(ape, 0.9))
    assert row.figures["max_ape"].value == pytest.approx(ape.max())
    assert row.figures["bias"].value == pytest.approx((expected / totals.run_measured - 1).mean())
    assert [w.ape for w in row.worst] == pytest.approx(np.sort(ape)[::-1][:5])
    assert row.worst[0].run == totals.run[int(np.argmax(ape))]


def test_intervals_are_of_the_groups_held_out():
    found = evaluate(learnt, table(), splits=["leave-device-out", "leave-model-out"])
    device = found.row("leave-device-out", "global").figures
    assert device["mean_ape"].method == "log-t, 6 devices"
    assert device["mean_ape"].low < device["mean_ape"].value < device["mean_ape"].high
    assert device["median_ape"].low is not None
    assert "no interval for a maximum" in device["max_ape"].method
    assert device["max_ape"].low is None
    assert "5 models" in found.row("leave-model-out", "global").figures["bias"].method


def test_cells_of_model_and_device_are_drawn_in_a_random_split():
    kernels = table()
    found = evaluate(learnt, kernels, splits=["random"]).row("random", "global")
    assert found.figures["mean_ape"].method == "log-t, 30 cells"


def test_both_at_once_draws_both_keys():
    split = "leave-model-and-device-out"
    found = evaluate(learnt, table(), splits=split).row(split, "global")
    one = found.figures["mean_ape"]
    assert one.method == "log-t, 6 devices x 5 models"
    assert len(found.groups) == 30
    assert found.band(0.9).coverage_low < found.band(0.9).coverage < found.band(0.9).coverage_high
    assert found.against[0].difference.method == "Student t, 6 devices x 5 models"


@pytest.mark.parametrize("task", ["composition", "prediction"])
def test_nothing_held_out_is_in_the_fit_and_nothing_true_in_what_predicts(task):
    kernels, seen = table(), []

    def make(train):
        fitted = set(train.device.tolist())
        assert np.isfinite(train.run_measured).all()
        assert np.isfinite(train.measured).all()

        def predict(new):
            assert not fitted & set(new.device.tolist())
            assert np.isnan(new.run_measured).all()
            assert np.isnan(new.totals().run_measured).all()
            assert np.isfinite(new.predicted).all()
            assert np.isnan(new.measured).all() == (task == "prediction")
            seen.append(new.n_runs)
            return predictions(new, 0.2, 0.1, task=task)

        return {"spy": predict}

    found = evaluate(make, kernels, splits=["leave-device-out"], task=task)
    assert seen == [10] * 6
    assert np.isfinite(kernels.run_measured).all()
    assert np.isfinite(kernels.measured).all()
    totals = kernels.totals()
    total = totals.measured if task == "composition" else totals.predicted
    assert sorted(found.held_out["leave-device-out", "spy"].total) == pytest.approx(sorted(total))
    assert found.task == task
    naive = mape(predicted=total, measured=totals.run_measured)
    row = found.row("leave-device-out", "spy")
    assert row.against[0].mean_ape_against == pytest.approx(naive)


def test_bands_by_hand():
    kernels = table()
    found = evaluate(learnt, kernels, splits=["leave-model-out"])
    held = found.held_out["leave-model-out", "global"]
    row = found.row("leave-model-out", "global")
    for at, level in enumerate(LEVELS):
        low, high = held.low[:, at], held.high[:, at]
        inside = (low <= held.measured) & (held.measured <= high)
        band = row.band(level)
        assert (band.level, band.n, band.unbounded) == (level, 60, 0)
        assert band.coverage == pytest.approx(inside.mean())
        assert band.mean_width == pytest.approx(((high - low) / held.predicted).mean())
        missed = np.maximum(low - held.measured, 0) + np.maximum(held.measured - high, 0)
        score = (high - low + 2 / (1 - level) * missed) / held.total
        assert band.interval_score == pytest.approx(score.mean())
        for group in row.groups:
            share, (low, high) = group.coverage[level], group.interval[level]
            assert share == pytest.approx(inside[held.group == group.group].mean())
            assert low <= share <= high
    assert [g.n for g in row.groups] == [12] * 5
    assert sorted(g.group for g in row.groups) == sorted(MODELS)


def test_scores_of_a_pipeline_that_knows_the_law():
    kernels = table(noise=0.05, per=10)
    known = changed(lambda p: p)

    def law(_):
        return {
            "right": lambda new: predictions(new, 0.3, np.hypot(0.05, 0.05)),
            "narrow": lambda new: predictions(new, 0.3, 0.02),
            "wide": lambda new: predictions(new, 0.3, 0.3),
        }

    found = evaluate(law, kernels, splits=["leave-model-out"])
    crps = {name: found.row("leave-model-out", name).crps for name in ("right", "narrow", "wide")}
    assert crps["right"] == min(crps.values())
    pit = {name: found.row("leave-model-out", name).pit_histogram for name in crps}
    assert all(sum(counts) == 300 for counts in pit.values())
    assert pit["narrow"][0] + pit["narrow"][-1] > 150 > pit["right"][0] + pit["right"][-1]
    assert pit["wide"][4] + pit["wide"][5] > 150
    assert evaluate(known, kernels, splits=["random"]).rows[0].n == 300


def test_a_group_whose_bands_miss_is_named():
    def make(_):
        def predict(new):
            off = np.where(new.totals().keys["device"] == "MI210", 0.9, 0.3)
            return predictions(new, off, 0.1)

        return {"fake": predict}

    row = evaluate(make, table(), splits=["leave-device-out"]).rows[0]
    assert [g.group for g in row.weak_groups] == ["MI210"]
    assert row.weak_groups[0].coverage[0.9] == 0
    assert row.weak_groups[0].to_dict()["coverage_90_high"] < 0.6
    assert row.to_dict()["weak_groups"] == ["MI210"]
    # With models left out no group is missed as a whole.
    assert evaluate(make, table(), splits=["leave-model-out"]).rows[0].weak_groups == ()


@pytest.mark.parametrize(
    ("gap", "beats", "words"),
    [
        (0.3, True, r"beats sum \(MAPE [\d.]+ percentage points lower\)"),
        (0.0, False, r"does not beat sum \(MAPE [\d.]+ percentage points higher\)"),
    ],
)
def test_what_beats_the_sum_says_so_and_what_does_not(gap, beats, words):
    def make(_):
        return {"fake": lambda new: predictions(new, 0.3 if gap else 0.2, 0.1)}

    row = evaluate(make, table(gap=gap), splits=["leave-device-out"]).rows[0]
    assert row.beats_sum is beats
    assert re.fullmatch(words, row.verdict)
    one = row.against[0]
    assert (one.against, one.n) == ("sum", 60)
    assert one.difference.value == pytest.approx(one.mean_ape - one.mean_ape_against)
    assert one.difference.low < one.difference.value < one.difference.high
    assert one.outcome == ("better" if beats else "worse")


def test_what_chance_may_explain_is_said_to_be_so():
    def make(_):
        return {"fake": lambda new: predictions(new, 0.002 * np.arange(new.n_runs), 0.1)}

    rng = np.random.default_rng(5)
    found = [
        evaluate(make, table(gap=0.0, noise=0.05, seed=s), splits=["leave-device-out"]).rows[0]
        for s in rng.integers(1 << 30, size=6)
    ]
    unsure = [row for row in found if row.beats_sum is None]
    assert unsure
    for row in unsure:
        assert row.verdict.startswith("may beat sum (MAPE ")
        assert row.to_dict()["beats_sum"] is None


def test_baselines_are_beaten_one_by_one():
    def make(train):
        return {
            **learnt(train),
            "fitted": lambda new: predictions(new, 0.3, 0.03),
            "linear": lambda new: predictions(new, 0.6, 0.03),
        }

    found = evaluate(make, table(), splits=["leave-model-out"])
    rows = {row.estimator: row for row in found.rows}
    assert [d.against for d in rows["fitted"].against] == ["sum", "global", "linear"]
    # A baseline has to beat the sum only, and the sum nothing.
    assert [d.against for d in rows["linear"].against] == ["sum"]
    assert rows["sum"].against == ()
    assert rows["sum"].beats_sum is None
    assert rows["sum"].verdict == ""
    assert "beats sum (" in rows["fitted"].verdict
    assert re.search(r"linear \(MAPE [\d.]+ percentage points lower\)", rows["fitted"].verdict)
    document = found.to_dict()["against_baselines"]
    assert {(d["estimator"], d["against"]) for d in document} >= {("fitted", "linear")}


def test_the_surest_runs_are_chosen_by_width_alone():
    def make(_):
        def predict(new):
            # Widths rise with the error in half of the runs, in the order of their names.
            i = np.array([int(run.rsplit("/", 1)[1]) for run in new.totals().run])
            return predictions(new, 0.3 + 0.02 * (i % 10), 0.05 + 0.01 * (i % 10))

        return {"fake": predict}

    row = evaluate(make, table(noise=0.001), splits=["leave-device-out"]).rows[0]
    curve = row.abstention
    assert (np.diff(curve.mean_error) > -1e-3).all()
    assert curve.mean_error[-1] == pytest.approx(row.figures["mean_ape"].value)
    assert row.answered.n == 48
    assert row.answered.value == pytest.approx(curve.at(0.8))
    assert row.answered.value < row.figures["mean_ape"].value
    assert curve.area < row.figures["mean_ape"].value
    steps = row.to_dict()["abstention"]
    assert (steps[0]["share"], steps[-1]["share"], len(steps)) == (0.1, 1.0, 19)
    assert steps[-2]["mean_ape"] == pytest.approx(curve.at(0.95))
    document = evaluate(make, table(noise=0.001), splits=["leave-device-out"]).to_dict()
    assert load(document).rows[0].answered.n == 48


def test_equal_widths_leave_nobody_out():
    row = evaluate(changed(lambda p: p), table(), splits=["leave-device-out"]).rows[0]
    assert row.answered.n == 60
    assert row.answered.value == pytest.approx(row.figures["mean_ape"].value)


def test_bands_without_end_and_refused_bands_are_counted():
    def change(p):
        low, high, quantiles = p.low.copy(), p.high.copy(), p.quantiles.copy()
        high[0, 3] = np.inf
        low[:, 2] = high[:, 2] = np.nan
        low[1, 1] = np.nan
        quantiles[0] = np.nan
        return replace(p, low=low, high=high, quantiles=quantiles)

    row = evaluate(changed(change), table(), splits=["leave-device-out"]).rows[0]
    assert [band.n for band in row.bands] == [60, 54, 0, 60]
    assert row.band(0.95).unbounded == 6
    assert row.band(0.95).mean_width == np.inf
    assert np.isnan(row.band(0.9).coverage)
    assert np.isnan(row.pit).sum() == 6
    assert sum(row.pit_histogram) == 54
    # The curve needs 90 % bands.
    assert row.abstention is None
    assert row.answered.method == "no bands, so runs cannot be sorted by band width"
    found = row.to_dict()
    assert found["mean_width_95"] is None
    assert found["coverage_90"] is None
    assert found["abstention"] == []
    assert found["by_group"][0]["coverage_90"] is None
    json.dumps(found, allow_nan=False)


def test_runs_without_a_band_are_the_least_sure():
    def change(p):
        low = p.low.copy()
        low[:3] = np.nan
        return replace(p, low=low)

    row = evaluate(changed(change), table(), splits=["leave-device-out"]).rows[0]
    # 42 of 60 have a band: fewer than the 80 % asked for.
    assert row.answered.n == 42
    assert row.to_dict()["answered_share"] == pytest.approx(0.7)


def test_without_quantiles_there_is_no_crps():
    row = evaluate(
        changed(lambda p: replace(p, quantiles=np.full_like(p.quantiles, np.nan))),
        table(),
        splits=["leave-device-out"],
    ).rows[0]
    assert np.isnan(row.crps)
    assert row.to_dict()["crps"] is None


def test_predictions_are_matched_by_name():
    def turned(p):
        arrays = ("run", "total", "predicted", "low", "high", "quantiles")
        return replace(p, **{name: getattr(p, name)[::-1] for name in arrays})

    kernels = table()
    plain, other = (
        evaluate(changed(c), kernels, splits=["leave-device-out"]).to_dict()
        for c in (lambda p: p, turned)
    )
    assert plain == other


def test_what_refuses_is_counted_with_the_reason():
    def make(train):
        if "P4" not in train.device:
            raise InputError("too few groups")
        found = learnt(train)

        def shy(new):
            if "T4" in new.device:
                raise InputError("not this one")
            return found["global"](new)

        return {**found, "shy": shy}

    found = evaluate(make, table(), splits=["leave-device-out"])
    assert [(r.estimator, r.held_out, r.n, r.reason) for r in found.refused] == [
        ("", "P4", 10, "too few groups"),
        ("shy", "T4", 10, "not this one"),
    ]
    rows = {row.estimator: row for row in found.rows}
    assert (rows["global"].n, rows["global"].refused) == (50, 10)
    assert (rows["shy"].n, rows["shy"].refused) == (40, 20)
    # Compared on the runs that both answered.
    assert {d.against: d.n for d in rows["shy"].against} == {"sum": 40, "global": 40}
    assert found.to_dict()["refused"][0]["reason"] == "too few groups"


def test_nothing_answered_is_an_error():
    def make(_):
        raise InputError("no idea")

    with pytest.raises(InputError, match="leave-device-out: no held-out run was predicted. L4: no"):
        evaluate(make, table(), splits=["leave-device-out"])
    with pytest.raises(InputError, match="random: no held-out run was predicted\\.$"):
        evaluate(lambda _: {}, table(), splits=["random"])


def test_what_the_runs_do_not_allow_is_left_out_and_said():
    one = table(device=["L4"] * table().n)
    found = evaluate(learnt, one, splits=["leave-device-out", "leave-model-out"])
    assert {row.split for row in found.rows} == {"leave-model-out"}
    (reason,) = found.to_dict()["not_done"].values()
    assert "leave-device-out needs runs of at least 2 devices, got 1: L4" in reason
    with pytest.raises(InputError, match=r"2 devices, got 1: L4.*2 vendors"):
        evaluate(learnt, one, splits=["leave-device-out", "leave-vendor-out"])


def test_a_bug_is_not_a_refusal():
    def make(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        evaluate(make, table())


def test_a_cell_that_shares_with_all_others_is_refused():
    full = table()
    kernels = full.take(
        np.isin(full.device, ["V100", "P4"])
        & np.isin(full.column("model"), ["bert", "gpt"])
        & ~((full.device == "P4") & (full.column("model") == "gpt"))
    )
    found = evaluate(learnt, kernels, splits=["leave-model-and-device-out"])
    assert [r.held_out for r in found.refused] == ["V100 / bert"]
    assert "has the held-out device or model" in found.refused[0].reason
    assert found.rows[0].figures["mean_ape"].method == (
        "no interval: 2 models are too few to represent others; at least 3 are needed"
    )
    difference = found.row("leave-model-and-device-out", "global").against[0]
    assert difference.difference.method == found.rows[0].figures["mean_ape"].method
    assert difference.outcome == "undecided"


def test_random_splits_flatter_by_what_the_device_explains():
    def by_device(train):
        totals = train.totals()
        y = np.log(totals.run_measured / totals.measured)
        of = {d: y[totals.keys["device"] == d].mean() for d in set(totals.keys["device"])}

        def predict(new):
            device = new.totals().keys["device"]
            return predictions(new, np.array([of.get(d, y.mean()) for d in device]), 0.1)

        return {"device": predict}

    kernels = table(per=4, noise=0.0)
    shift = dict(zip(DEVICES, [0.3, -0.3, 0.25, -0.25, 0.2, -0.35], strict=True))
    kernels.run_measured = kernels.run_measured * np.exp([shift[d] for d in kernels.device])
    found = evaluate(by_device, kernels, splits=["random", "leave-device-out", "leave-model-out"])
    flattery = {one.split: one for one in found.flattery}
    assert set(flattery) == {"leave-device-out", "leave-model-out"}
    assert flattery["leave-device-out"].against == "random"
    assert flattery["leave-device-out"].mean_ape_against == pytest.approx(0, abs=1e-9)
    assert flattery["leave-device-out"].difference.value > 0.05
    assert flattery["leave-device-out"].outcome == "worse"
    assert flattery["leave-model-out"].difference.value == pytest.approx(0, abs=1e-9)
    assert evaluate(by_device, kernels, splits=["leave-model-out"]).flattery == ()
    json.dumps(found.to_dict(), allow_nan=False)


def test_transfer_to_an_unseen_vendor():
    def make(train):
        vendors = {d.startswith("MI") for d in train.device.tolist()}
        # Off by 20 % on what it has seen, and by 50 % on runs of a vendor it knows nothing of.

        def predict(new):
            known = np.array([d.startswith("MI") in vendors for d in new.totals().keys["device"]])
            return predictions(new, 0.3 + np.log(np.where(known, 1.2, 1.5)), 0.1)

        return {"fake": predict}

    kernels = table(noise=0.0)
    splits = ["leave-vendor-out", "leave-device-out"]
    found = evaluate(make, kernels, splits=splits)
    amd, nvidia = found.transfer
    assert (amd.vendor, amd.n_unseen, amd.n_seen) == ("AMD", 20, 40)
    assert (nvidia.vendor, nvidia.n_unseen, nvidia.n_seen) == ("NVIDIA", 40, 20)
    for one in (amd, nvidia):
        assert one.unseen == pytest.approx(0.5)
        assert one.seen == pytest.approx(0.2)
        assert one.gap == pytest.approx(0.3)
        assert one.cost.difference.value == pytest.approx(0.3)
        assert one.cost.against == "leave-device-out"
    assert found.to_dict()["vendor_transfer"][0]["cost_mean_ape_difference"] == pytest.approx(0.3)
    assert evaluate(make, kernels, splits=splits[:1]).transfer == ()


def test_a_vendor_that_was_refused_elsewhere_is_not_compared():
    def make(train):
        if "MI100" not in train.device and "MI210" in train.device:
            raise InputError("MI100 alone cannot be left out")
        if "MI210" not in train.device and "MI100" in train.device:
            raise InputError("nor can MI210")
        return learnt(train)

    found = evaluate(make, table(), splits=["leave-vendor-out", "leave-device-out"])
    # Of AMD nothing was answered by device; of NVIDIA there is nothing to compare it with.
    assert found.transfer == ()


def test_vendors_may_be_a_column():
    vendor = np.where(np.char.startswith(np.repeat(DEVICES, 20), "MI"), "first", "second")
    found = evaluate(learnt, table(vendor=vendor), splits=["leave-vendor-out"])
    assert {g.group for g in found.rows[0].groups} == {"first", "second"}


def test_runs_that_cannot_be_judged_are_named():
    kernels = table()
    kernels.run_measured[kernels.run == kernels.runs[0]] = np.nan
    kernels.measured[np.flatnonzero(kernels.run == kernels.runs[3])[0]] = np.nan
    found = evaluate(learnt, kernels, splits=["leave-device-out"])
    assert found.not_judged == (kernels.runs[0], kernels.runs[3])
    assert found.rows[0].n == 58
    kernels.run_measured[:] = np.nan
    with pytest.raises(
        InputError,
        match=r"no run has .* a measured time of each of its kernels\. Runs in the table: 60\.",
    ):
        evaluate(learnt, kernels)
    kernels.source = "runs.csv"
    with pytest.raises(
        InputError, match=r"runs.csv: no run has .* a predicted time of each of its"
    ):
        evaluate(learnt, kernels, task="prediction")


def test_a_table_without_groups_can_be_split_at_random_only():
    kernels = Kernels(
        {
            "run": list("abcdefgh"),
            "kernel": ["k"] * 8,
            "kernel_class": ["k"] * 8,
            "count": [1] * 8,
            "measured": [1.0 + i for i in range(8)],
            "run_measured": [1.4 + 1.4 * i + 0.1 * (i % 3) for i in range(8)],
        },
        unit="ms",
    )
    row = evaluate(learnt, kernels, splits=["random"]).rows[0]
    assert (row.n, len(row.groups)) == (8, 8)
    # Every run is a cluster of its own.
    assert row.figures["mean_ape"].method == "log-t"
    with pytest.raises(InputError, match="needs the device of every run"):
        evaluate(learnt, kernels, splits=["leave-device-out"])


def test_progress_counts_fits():
    seen = []
    evaluate(
        learnt,
        table(),
        splits=["leave-device-out", "leave-vendor-out", "leave-device-out"],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(i + 1, 8) for i in range(8)]


def test_progress_counts_refused_fits_too():
    seen = []

    def make(train):
        if "P4" not in train.device:
            raise InputError("no")
        return learnt(train)

    evaluate(make, table(), splits=["leave-device-out"], progress=lambda *at: seen.append(at))
    assert seen == [(i + 1, 6) for i in range(6)]


def test_only_what_was_asked_for_is_judged():
    found = evaluate(learnt, table(), splits=["leave-model-out"], estimators=["global"])
    assert [row.estimator for row in found.rows] == ["global"]
    assert [d.against for d in found.rows[0].against] == ["sum"]
    with pytest.raises(
        InputError, match="not among the fitted estimators: best. Fitted: sum, global"
    ):
        evaluate(learnt, table(), estimators=["global", "best"])
    with pytest.raises(
        InputError, match="no row for split 'random' and estimator 'global'. Rows: leave-model-out"
    ):
        found.row("random", "global")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"task": "T1"}, "task must be one of composition, prediction, got 'T1'"),
        ({"splits": []}, "splits is empty"),
        ({"splits": ["leave-one-out"]}, "no split 'leave-one-out'"),
        ({"splits": "leave-one-out"}, "no split 'leave-one-out'"),
    ],
)
def test_arguments_that_cannot_be(arguments, words):
    with pytest.raises(InputError, match=words):
        evaluate(learnt, table(), **arguments)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: replace(p, predicted=-p.predicted), "one prediction above 0, got 10 predict"),
        (lambda p: replace(p, predicted=p.predicted * np.nan), "unusable values for L4/bert"),
        (lambda p: replace(p, run=p.run + "x"), "10 predictions for 10 runs"),
        (lambda p: replace(p, run=p.run[:5], predicted=p.predicted[:5]), "5 predictions for 10"),
        (
            lambda p: replace(p, low=p.low[:, :2]),
            r"got columns of shape \(2,\), \(4,\) and \(23,\)",
        ),
    ],
)
def test_predictions_that_cannot_be(change, words):
    with pytest.raises(InputError, match=words):
        evaluate(changed(change), table(), splits=["leave-device-out"])


@pytest.fixture(scope="module")
def by_device():
    """The published kernels of NeuSight, each device left out; no test changes it."""
    return evaluate(learnt, datasets.load("neusight-kernels"), splits=["leave-device-out"])


def test_the_document_has_the_promised_columns_and_is_the_same_again(by_device):
    kernels = datasets.load("neusight-kernels")
    document, one, other = (
        json.loads(json.dumps(found.to_dict(), allow_nan=False))
        for found in (
            evaluate(learnt, kernels, splits=SPLITS),
            by_device,
            evaluate(learnt, kernels, splits=["random"]),
        )
    )
    for name in ("rows", "against_baselines", "held_out"):
        again = [one[name], other[name]]
        for split, found in zip(("leave-device-out", "random"), again, strict=True):
            assert found == [row for row in document[name] if row["split"] == split] != []
    for name in ("known", "flagged", "not_judged"):
        assert document[name] == one[name] == other[name]
    every = [row for row in document["rows"] if row["runs_judged"] == "all"]
    rest = [row for row in document["rows"] if row["runs_judged"] == "not flagged"]
    assert len(every) == len(rest) == 2 * len(SPLITS)
    assert {row["n"] for row in rest} == {87 - len(document["flagged"])} == {76}
    for row in every:
        assert {"split", "estimator", "n", "mean_ape", "median_ape", "p90_ape"} <= set(row)
        assert {"coverage_90", "mean_width_90", "coverage_50_low", "interval_score_95"} <= set(row)
        assert row["n"] == 87
    naive = [row for row in every if row["estimator"] == "sum"]
    # As published with the data: 7.6 % and 3.8 %, whatever the split.
    assert {round(row["mean_ape"], 4) for row in naive} == {0.0757}
    assert {round(row["median_ape"], 4) for row in naive} == {0.0379}


def test_a_document_comes_back_with_bands_without_end_and_a_vendor():
    def make(train):
        less = 0.02 * len(set(train.device.tolist()))

        def predict(new):
            off = new.totals().keys["device"] == "MI210"
            found = predictions(new, np.where(off, 0.5, 0.4) - less, 0.05)
            high = found.high.copy()
            high[0, 3] = np.inf
            return replace(found, high=high)

        return {"fake": predict}

    # Five devices of one vendor have an interval, one of another has none.
    vendor = np.where(np.repeat(DEVICES, 20) == "MI210", "second", "first")
    splits = ["leave-vendor-out", "leave-device-out"]
    found = evaluate(make, table(vendor=vendor.tolist()), splits=splits)
    document = json.loads(json.dumps(found.to_dict()))
    again = load(document)
    assert again.to_dict() == document
    for row in again.rows:
        band = row.band(0.95)
        assert (band.unbounded, band.mean_width, band.interval_score) == (
            2 if row.split == "leave-vendor-out" else 6,
            np.inf,
            np.inf,
        )
        assert np.isfinite(row.band(0.9).mean_width)
    for one, other in zip(again.transfer, found.transfer, strict=True):
        cost, before = one.cost, other.cost
        for name in ("split", "estimator", "against", "n"):
            assert getattr(cost, name) == getattr(before, name)
        assert cost.mean_ape == pytest.approx(before.mean_ape)
        assert cost.mean_ape_against == pytest.approx(before.mean_ape_against)
        ends = [(c.difference.value, c.difference.low, c.difference.high) for c in (cost, before)]
        assert ends[0] == ends[1]
        # The only device of the second vendor is held out alone in both splits.
        assert (abs(cost.difference.value) > 0.01) == (one.vendor == "first")
        assert cost.difference.figure == "mean_ape_difference"
        assert cost.difference.level == (0.95 if one.vendor == "first" else None)


def test_the_schema_of_an_evaluation_describes_every_key():
    kernels = table(vendor=["v"] * 120)
    found = evaluate(learnt, kernels, splits=["leave-device-out"])
    document, schema = found.to_dict(), json_schema("calibration")
    parts, number = schema["$defs"], {"type": ["number", "null"]}
    share, some = {**number, "minimum": 0.0, "maximum": 1.0}, {"type": "integer", "minimum": 0}

    def described(one, document, *optional):
        assert (one["type"], one["additionalProperties"]) == ("object", False)
        assert list(one["properties"]) == list(document)
        assert one["required"] == [name for name in document if name not in optional]
        return {
            name: {word: value for word, value in about.items() if word != "description"}
            for name, about in one["properties"].items()
        }

    keys = described(schema, document, "flagged")
    for name, part in (
        ("rows", "EvaluationRow"),
        ("against_baselines", "Difference"),
        ("vendor_transfer", "VendorTransfer"),
    ):
        assert keys[name] == {"type": "array", "items": {"$ref": f"#/$defs/{part}"}}
    row = described(parts["EvaluationRow"], document["rows"][0], "runs_judged")
    for figure in ("mean_ape", "median_ape", "p90_ape", "max_ape", "bias"):
        assert [row[f"{figure}{end}"] for end in ("", "_low", "_high")] == [number] * 3
        assert row[f"{figure}_method"] == {"type": "string"}
    group = described(parts["GroupRow"], document["rows"][0]["by_group"][0])
    for percent in (50, 80, 90, 95):
        ends = [f"coverage_{percent}{end}" for end in ("", "_low", "_high")]
        assert [row[end] for end in ends] == [group[end] for end in ends] == [share] * 3
        assert row[f"mean_width_{percent}"] == row[f"interval_score_{percent}"] == number
        assert row[f"bands_{percent}"] == row[f"unbounded_{percent}"] == some
    assert row["answered_share"] == {"type": "number", "minimum": 0.0, "maximum": 1.0}
    answered = [row[f"answered_mean_ape{end}"] for end in ("", "_low", "_high")]
    assert answered == [number] * 3
    assert row["abstention_area"] == number
    assert row["abstention_curve"] == {"type": "array", "items": {"type": "number"}}
    assert row["abstention"]["type"] == "array"
    step = described(row["abstention"]["items"], document["rows"][0]["abstention"][0])
    assert step == {"share": {"type": "number"}, "mean_ape": {"type": "number"}}
    cost = parts["VendorTransfer"]["properties"]
    assert [cost[f"cost_mean_ape_difference{end}"] for end in ("", "_low", "_high")] == [number] * 3
    held = described(keys["held_out"]["items"], document["held_out"][0])
    assert keys["held_out"]["type"] == "array"
    assert held["split"] == row["split"] == {"enum": sorted(SPLITS)}
    assert held["estimator"] == {"type": "string"}
    assert held["runs"]["type"] == "array"
    run = described(held["runs"]["items"], document["held_out"][0]["runs"][0])
    positive = {"type": "number", "exclusiveMinimum": 0.0}
    assert run == {
        **{name: {"type": "string"} for name in ("run", "group", "device", "model")},
        **dict.fromkeys(("measured", "total", "predicted"), positive),
        "calibrated": {"type": "boolean"},
        **{f"{end}_{level}": number for level in (50, 80, 90, 95) for end in ("low", "high")},
    }


def test_rows_without_the_flagged_runs(by_device) -> None:
    """They are those of the same predictions, without these runs; comparisons are of all runs."""
    found = by_device
    assert found.flagged is not None
    assert sorted({name.split("/")[0] for name in found.flagged}) == [
        "A100-40G", "A100-80G", "L4", "MI210"
    ]  # fmt: skip
    for row in found.not_flagged:
        held = found.held_out[row.split, row.estimator]
        fine = held.take(~np.isin(held.run.astype(str), list(found.flagged)))
        assert row.figures["mean_ape"].value == pytest.approx(fine.ape.mean())
        assert row.n == len(fine) == 76
    again = load(found.to_dict())
    assert [row.runs_judged for row in again.not_flagged] == ["not flagged"] * 2
    compared = [[one.mean_ape for one in row.against] for row in found.rows]
    assert [[one.mean_ape for one in row.against] for row in again.rows] == compared
    text = str(found)
    assert "without 11 flagged runs" in text
    # The worst runs show the rule, without its evidence.
    assert "flagged by phases" in text
    assert "flagged by phases:" not in text
    others = evaluate(learnt, datasets.load("ort-cpu"), splits=["leave-model-out"])
    assert (others.flagged, others.not_flagged) == ({}, ())
    assert "flagged" not in str(others)


@pytest.mark.slow
@pytest.mark.extras
def test_processes_change_nothing():
    pytest.importorskip("joblib")

    def make(train):
        totals = train.totals()
        if "V100" not in totals.keys["device"]:
            raise InputError("no V100")
        y = np.log(totals.run_measured / totals.measured)
        return {"fake": lambda new: predictions(new, float(y.mean()), float(y.std()))}

    seen = []
    one, two = (
        evaluate(
            make, table(), splits=["leave-device-out", "random"], n_jobs=n_jobs,
            progress=lambda *done: seen.append(done),
        )
        for n_jobs in (None, 2)
    )  # fmt: skip
    assert [r.reason for r in two.refused] == ["no V100"]
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())
    assert seen == 2 * [(i, 16) for i in range(1, 17)]
