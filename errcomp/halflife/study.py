"""The half-lives of a frozen per-operator model and its composition term, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from errcomp.halflife.fitting import half_life
from errcomp.halflife.results import HalfLives
from errcomp.results import Estimate
from errcomp.system.processes import Progress
from errcomp.tables import History

__all__ = ["PROMISED", "ReleaseStudy", "release_study"]

#: Error that operators and runs are taken to promise: what was measured once and is looked up has
#: none of its own but the noise of the measurement.
PROMISED = 0.05
_LOOKED_UP = ("kernel", "operators", "run")
_MODELLED = ("composition", "model")


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseStudy:
    """What a history of releases says of a model frozen at the first one.

    Attributes
    ----------
    modelled : HalfLives
        Composition term and whole model: until their own error has doubled.
    looked_up : HalfLives
        Operators one by one, together, and runs as they were at the first release: until they are
        as wrong as a model whose 5 % has doubled.
    classes : HalfLives
        Operators by class, likewise.
    networks : HalfLives
        The whole model by network, held to the error that it has over all networks at first.
    alike : tuple of Estimate
        By level, the mean change between two processes of the first release: 0 but for noise.
    """

    modelled: HalfLives
    looked_up: HalfLives
    classes: HalfLives
    networks: HalfLives
    alike: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        parts = ("modelled", "looked_up", "classes", "networks")
        return {
            **{name: getattr(self, name).to_dict() for name in parts},
            "alike": [one.to_dict() for one in self.alike],
        }


def release_study(
    history: History, *, seed: int = 0, progress: Progress | None = None
) -> ReleaseStudy:
    """Estimate the half-lives of every level of a frozen model.

    Parameters
    ----------
    history : History
        With levels kernel, operators, run, composition and model, keys ``model`` (the network) and
        ``kernel_class``, as in the dataset ``ort-releases``. Networks are the clusters.
    seed : int
    progress : callable, optional

    Returns
    -------
    ReleaseStudy

    Raises
    ------
    InputError
        A level or a key is missing.
    """
    asked: dict[str, tuple[tuple[str, ...], str, float | None]] = {
        "modelled": (_MODELLED, "level", None),
        "looked_up": (_LOOKED_UP, "level", PROMISED),
        "classes": (("kernel",), "kernel_class", PROMISED),
        "networks": (("model",), "model", None),
    }
    parts: dict[str, HalfLives] = {}
    for i, (name, (levels, by, error)) in enumerate(asked.items()):
        table = history.where({"level": list(levels)})
        cluster = None if by == "model" else "model"
        if name == "networks":
            whole = next(g for g in parts["modelled"].groups if g.key["level"] == "model")
            error = float(np.expm1(whole.threshold.error))
        parts[name] = half_life(table, by=by, error=error, cluster=cluster, seed=seed)
        if progress is not None:
            progress(i + 1, len(asked))
    alike = tuple(_alike(history.where({"level": level}), level) for level in _LOOKED_UP)
    return ReleaseStudy(**parts, alike=alike)


def _alike(history: History, level: str) -> Estimate:
    """Return the mean log change at the first release, with an interval over networks."""
    first = history.version == history.version.min()
    changes, networks = -history.error()[first], history.codes("model")[first]
    means = np.bincount(networks, changes) / np.bincount(networks)
    n = len(means)
    half = _t(n - 1) * float(np.std(means, ddof=1)) / n**0.5
    value = float(means.mean())
    return Estimate(
        f"change of {level} between processes of one release",
        value,
        low=value - half,
        high=value + half,
        level=0.95,
        method="Student t over networks",
        n=int(first.sum()),
        unit="log",
        definition="mean over networks of the mean log(measured by one / by the other process)",
    )


def _t(df: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.975, df))
