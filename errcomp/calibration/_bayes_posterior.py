"""From sampled variables to the posterior by name, and to the model that predicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtri

from errcomp.calibration._bayes_compat import import_arviz
from errcomp.calibration._bayes_input import UNKNOWN, Level, Runs
from errcomp.calibration._bayes_model import (
    SPREADS,
    Integers,
    Sampled,
    Structure,
    effect_shapes,
    effects,
    prior_draws,
)
from errcomp.calibration._hierarchical_arrays import DRAWS
from errcomp.calibration.design import Floats
from errcomp.calibration.hierarchical import Columns, HierarchicalModel

__all__ = ["Posterior", "PriorPredictive", "prior_predictive"]

#: Draws that are stored: with 1000 a quantile at 5 % is known to 0.7 points of probability.
_MOST_STORED = 1000
_RATIO_RANGE = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class PriorPredictive:
    """What the priors alone say of runs.

    Attributes
    ----------
    log_ratio : ndarray, shape (draws, n)
        One simulated log-ratio of each run under each draw of the priors.
    share_within_tenfold : float
        Share of simulated ratios of the measured run to the sum of its kernels in [0.1, 10].
    median, low, high : float
        Median and central 90 % of the simulated ratios, all runs together.
    """

    log_ratio: Floats
    share_within_tenfold: float
    median: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """The draws of the parameters that have data, under the names that users see.

    Attributes
    ----------
    sampled : Sampled
    columns : Columns
    device, model : Level
    """

    sampled: Sampled
    columns: Columns
    device: Level
    model: Level

    @cached_property
    def axes(self) -> dict[str, dict[str, list[str]]]:
        """Names along the axes of each parameter that has axes, and values along them."""
        costs, features, varied = (
            [self.columns.names[column] for column in part]
            for part in (self.columns.launch, self.columns.linear, self.columns.varying)
        )
        devices = list(self.device.names)
        found = {
            "launch": {"cost": costs},
            "linear": {"feature": features},
            "device_shift": {"device": devices},
            "device_launch": {"device": devices if costs else []},
            "device_slope": {"device": devices, "varying_feature": varied},
            "model_shift": {"model": list(self.model.names)},
        }
        return {name: axes for name, axes in found.items() if all(axes.values())}

    @property
    def labels(self) -> dict[str, list[list[str]]]:
        """The names alone."""
        return {name: list(axes.values()) for name, axes in self.axes.items()}

    @cached_property
    def variables(self) -> dict[str, Floats]:
        """Draws of each parameter, shape (chains, draws, ...)."""
        raw = self._unpadded()
        found = effects(raw, devices=True, models=True)
        found = {n: v for n, v in found.items() if n in self.axes or not DRAWS[n]}
        if self.columns.offset is None:
            del found["offset"]
        spreads = {sd: raw[sd] for effect, sd in SPREADS.items() if effect in self.axes}
        return {**found, **spreads}

    def _unpadded(self) -> dict[str, Floats]:
        """Return the variables of the graph without those that only fill its sizes."""
        sizes = _sizes(self.columns, self.device, self.model)
        shapes = {f"{name}_z": shape for name, shape in effect_shapes(sizes).items()}
        shapes["launch"] = (sizes.launch,)
        kept: dict[str, Any] = {name: (..., *map(slice, shape)) for name, shape in shapes.items()}
        return {name: v[kept.get(name, ...)] for name, v in self.sampled.variables.items()}

    def portable(self, rng: np.random.Generator) -> HierarchicalModel:
        """Return the model that predicts, with at most 1000 draws, evenly taken from all."""
        total = self.sampled.stats["energy"].size
        kept = np.linspace(0, total - 1, min(_MOST_STORED, total)).round().astype(int)
        return self._model(kept, rng, without=(UNKNOWN,))

    def _model(
        self, kept: Integers, rng: np.random.Generator, without: tuple[str, ...] = ()
    ) -> HierarchicalModel:
        raw = {name: _flat(v)[kept] for name, v in self._unpadded().items()}
        known = {}
        for prefix, level in (("device", self.device), ("model", self.model)):
            known[prefix] = [name for name in level.names if name not in without]
            at = [level.names.index(name) for name in known[prefix]]
            for name in [n for n in raw if n.startswith(prefix) and n.endswith("_z")]:
                raw[name] = np.concatenate([raw[name][:, at], _one_more(raw[name], rng)], axis=1)
        draws = effects(raw, devices=bool(self.device.names), models=bool(self.model.names))
        return HierarchicalModel(self.columns, known["device"], known["model"], draws)

    def to_arviz(self, x: Floats, y: Floats) -> Any:
        """Return the posterior as ArviZ has it, with the log-likelihood of each run."""
        az = import_arviz()
        everything = np.arange(self.sampled.stats["energy"].size)
        full = self._model(everything, np.random.default_rng(0))
        mu = full.location(x, device=self.device.of, model=self.model.of)
        density = np.asarray(stats.t.logpdf(y[:, None], full.draws["nu"], mu, full.draws["sigma"]))
        shape = (*self.sampled.stats["energy"].shape, len(y))
        coords = {axis: names for axes in self.axes.values() for axis, names in axes.items()}
        return az.from_dict(
            posterior=self.variables,
            sample_stats=self.sampled.stats,
            log_likelihood={"y": density.T.reshape(shape)},
            observed_data={"y": y},
            coords=coords,
            dims={**{name: list(axes) for name, axes in self.axes.items()}, "y": ["run"]},
        )


def _sizes(columns: Columns, device: Level, model: Level) -> Structure:
    return Structure(
        devices=len(device.names),
        models=len(model.names),
        launch=len(columns.launch),
        linear=len(columns.linear),
        varying=len(columns.varying),
    )


def _flat(values: Floats) -> Floats:
    """Join the chains."""
    return values.reshape(math.prod(values.shape[:2]), *values.shape[2:])


def _one_more(z: Floats, rng: np.random.Generator) -> Floats:
    """Return standard normals of one more group: shape (draws, 1, ...) for (draws, groups, ...).

    An unknown group is one more from the distribution of groups. Evenly spread instead of random
    draws of it leave less to chance.
    """
    n, each = len(z), z.shape[2:]
    order = np.repeat(np.arange(n)[:, None], math.prod(each), axis=1)
    found: Floats = ndtri((rng.permuted(order, axis=0) + 0.5) / n).reshape(n, 1, *each)
    return found


def prior_predictive(runs: Runs, rng: np.random.Generator, draws: int) -> PriorPredictive:
    """Simulate runs from the priors alone."""
    columns, device, model = runs.columns, runs.device, runs.model
    sizes = _sizes(columns, device, model)
    # One more of each, which is unknown.
    sizes = sizes._replace(devices=sizes.devices + 1, models=sizes.models + 1)
    levels = {"devices": bool(device.names), "models": bool(model.names)}
    prior = HierarchicalModel(
        columns, device.names, model.names, effects(prior_draws(rng, draws, sizes), **levels)
    )
    log_ratio = prior.sample(runs.x, rng, device=device.of, model=model.of)
    inside = float((np.abs(log_ratio) <= np.log(_RATIO_RANGE)).mean())
    low, median, high = np.exp(np.quantile(log_ratio, (0.05, 0.5, 0.95))).tolist()
    return PriorPredictive(log_ratio, inside, median, low, high)
