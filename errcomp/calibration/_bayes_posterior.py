"""From sampled variables to the posterior by name, and to the model that predicts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtri

from errcomp.calibration._bayes_compat import import_arviz
from errcomp.calibration._bayes_input import UNKNOWN, Level
from errcomp.calibration._bayes_model import Integers, Sampled, Structure, effects, prior_draws
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
    def labels(self) -> dict[str, list[str]]:
        """What the last axis of a parameter is, where it has one."""
        names = self.columns.names
        found = {
            "launch": [names[column] for column in self.columns.launch],
            "linear": [names[column] for column in self.columns.linear],
            "device_shift": list(self.device.names),
            "device_launch": list(self.device.names) if self.columns.launch else [],
            "model_shift": list(self.model.names),
        }
        return {name: labels for name, labels in found.items() if labels}

    @cached_property
    def variables(self) -> dict[str, Floats]:
        """Draws of each parameter, shape (chains, draws) or (chains, draws, labels)."""
        raw = self._unpadded()
        found = effects(raw, devices=True, models=True)
        several = ("launch", "linear", "device_shift", "device_launch", "model_shift")
        found = {n: v for n, v in found.items() if n in self.labels or n not in several}
        if self.columns.offset is None:
            del found["offset"]
        spreads = {
            "device_sd": "device_shift",
            "launch_sd": "device_launch",
            "model_sd": "model_shift",
            "linear_sd": "linear",
        }
        return {**found, **{sd: raw[sd] for sd, of in spreads.items() if of in self.labels}}

    def _unpadded(self) -> dict[str, Floats]:
        """Return the variables of the graph without those that only fill its sizes."""
        sizes = {
            "launch": len(self.columns.launch),
            "linear_z": len(self.columns.linear),
            "device_shift_z": len(self.device.names),
            "device_launch_z": len(self.device.names),
            "model_shift_z": len(self.model.names),
        }
        raw = self.sampled.variables
        return {name: v[..., : sizes[name]] if name in sizes else v for name, v in raw.items()}

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
                # An unknown group is one more from the distribution of groups: evenly spread
                # instead of random draws of it leave less to chance.
                new = ndtri((rng.permutation(len(kept)) + 0.5) / len(kept))
                raw[name] = np.column_stack([raw[name][:, at], new])
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
        dims = {name: [f"{name}_of"] for name in self.labels}
        return az.from_dict(
            posterior=self.variables,
            sample_stats=self.sampled.stats,
            log_likelihood={"y": density.T.reshape(shape)},
            observed_data={"y": y},
            coords={f"{name}_of": labels for name, labels in self.labels.items()},
            dims={**dims, "y": ["run"]},
        )


def _flat(values: Floats) -> Floats:
    """Join the chains."""
    return values.reshape(-1, *values.shape[2:])


def prior_predictive(
    x: Floats,
    columns: Columns,
    device: Level,
    model: Level,
    rng: np.random.Generator,
    draws: int,
) -> PriorPredictive:
    """Simulate runs from the priors alone."""
    sizes = Structure(
        devices=len(device.names) + 1,
        models=len(model.names) + 1,
        launch=len(columns.launch),
        linear=len(columns.linear),
    )
    levels = {"devices": bool(device.names), "models": bool(model.names)}
    prior = HierarchicalModel(
        columns, device.names, model.names, effects(prior_draws(rng, draws, sizes), **levels)
    )
    log_ratio = prior.sample(x, rng, device=device.of, model=model.of)
    inside = float((np.abs(log_ratio) <= np.log(_RATIO_RANGE)).mean())
    low, median, high = np.exp(np.quantile(log_ratio, (0.05, 0.5, 0.95))).tolist()
    return PriorPredictive(log_ratio, inside, median, low, high)
