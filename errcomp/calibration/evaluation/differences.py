"""Differences of mean errors on the same held-out runs, with intervals that respect clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from errcomp.calibration.design import Floats, Names
from errcomp.calibration.evaluation.held_out import HeldOut
from errcomp.metrics.intervals._estimate import estimate_of
from errcomp.metrics.intervals._features import Cells, Single, spreads_of
from errcomp.metrics.intervals._kinds import Request
from errcomp.metrics.intervals.dependence import dependence
from errcomp.results import Estimate

__all__ = [
    "Difference",
    "VendorTransfer",
    "clusters_of",
    "difference",
    "figure_of",
    "mean_in_clusters",
    "vendor_transfers",
    "verdict",
]

#: Fewer clusters tell too little of a difference.
_FEWEST_CLUSTERS = 5

#: Whose runs are alike. Where device and model are new at once, errors are shared within either:
#: both keys count. Vendors are too few to be clusters.
_CLUSTERS = {
    "leave-model-out": ("model",),
    "leave-device-out": ("device",),
    "leave-model-and-device-out": ("device", "model"),
    "leave-vendor-out": ("device",),
    "random": ("cell",),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean error of an estimator in a split less that of another estimator, or in another split.

    Attributes
    ----------
    split, estimator : str
    against : str
        The other estimator, or the other split.
    n : int
        Runs that both answered.
    mean_ape, mean_ape_against : float
        On these runs.
    difference : Estimate
        The former less the latter, a fraction: -0.01 is one point less.
    """

    split: str
    estimator: str
    against: str
    n: int
    mean_ape: float
    mean_ape_against: float
    difference: Estimate

    @property
    def outcome(self) -> Literal["better", "worse", "undecided"]:
        """Whether the interval of the difference is below 0, above 0, or neither."""
        if self.difference.low is None or self.difference.high is None:
            return "undecided"
        if self.difference.high < 0:
            return "better"
        return "worse" if self.difference.low > 0 else "undecided"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "split": self.split,
            "estimator": self.estimator,
            "against": self.against,
            "n": self.n,
            "mean_ape": self.mean_ape,
            "mean_ape_against": self.mean_ape_against,
            **self.difference.to_row(),
            "method": self.difference.method,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class VendorTransfer:
    """What it costs to know no device of a vendor.

    Attributes
    ----------
    estimator, vendor : str
    n_unseen, n_seen : int
        Runs of the vendor, and of all others.
    unseen : float
        Mean APE on the vendor's runs, all its devices left out.
    seen : float
        Mean APE on the runs of the other vendors, each device left out alone.
    gap : float
        ``unseen - seen``. Vendors differ in difficulty too, so that it is no effect; and there are
        too few vendors for an interval.
    cost : Difference
        The effect: the vendor's runs with all its devices left out, against the same runs with
        their own device left out alone.
    """

    estimator: str
    vendor: str
    n_unseen: int
    n_seen: int
    unseen: float
    seen: float
    gap: float
    cost: Difference

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = ("estimator", "vendor", "n_unseen", "n_seen", "unseen", "seen", "gap")
        found = {name: getattr(self, name) for name in plain}
        return {**found, **{f"cost_{k}": v for k, v in self.cost.difference.to_row().items()}}


def clusters_of(split: str, held: HeldOut) -> dict[str, Names]:
    """Return the clusters of the runs by the name of what they share; the first is the coarser."""
    return {name: getattr(held, name) for name in _CLUSTERS[split]}


def figure_of(name: str, held: HeldOut, clusters: Mapping[str, Names], seed: int) -> Estimate:
    """Compute a figure of the errors, with its interval over what the runs share."""
    ask = Request("default", 0.95, 9999, seed, dependence(dict(clusters), given=True))
    found = estimate_of(name, predicted=held.predicted, measured=held.measured, ask=ask)
    return replace(found, caveats=())


def mean_in_clusters(
    values: Floats, clusters: Mapping[str, Names], *, figure: str, level: float = 0.95
) -> Estimate:
    r"""Mean of values of either sign, outcomes of one cluster being alike.

    .. math:: \bar d \pm t_\nu \, s

    with the cluster-robust standard error s and its degrees of freedom, two-way where two keys
    cross; see `errcomp.metrics.intervals._smooth.of_clusters`.
    """
    from scipy.special import stdtrit

    n, mean = len(values), float(values.mean())
    definition = "mean over the runs"
    drawn = dependence(dict(clusters), given=True)
    if drawn.reason or (drawn.units or n) < _FEWEST_CLUSTERS:
        words = drawn.words or f"{n} runs"
        reason = drawn.reason or f"no interval from {words}: at least 5 are needed"
        return Estimate(figure, mean, method=reason, n=n, definition=definition)
    r, one = values - mean, np.ones(n)
    spread = spreads_of(Cells(r, one, one, Single(float(r @ r), n, float(n))), drawn)[-1]
    room = spread.error * float(stdtrit(spread.freedom, (1 + level) / 2))
    method = f"Student t, {drawn.words or f'{n} runs'}"
    return Estimate(figure, mean, mean - room, mean + room, level, method, n, definition=definition)


def difference(
    one: HeldOut, other: HeldOut, *, split: str, estimator: str, against: str
) -> Difference | None:
    """Compare two sets of predictions on the runs that both have; None where there are none."""
    position = {run: i for i, run in enumerate(other.run.tolist())}
    both = np.array([run in position for run in one.run.tolist()], dtype=bool)
    if not both.any():
        return None
    left = one.take(both)
    right = other.take(np.array([position[run] for run in left.run.tolist()], dtype=np.int64))
    found = mean_in_clusters(
        left.ape - right.ape, clusters_of(split, left), figure="mean_ape_difference"
    )
    means = float(left.ape.mean()), float(right.ape.mean())
    return Difference(split, estimator, against, len(left), *means, found)


def verdict(differences: Sequence[Difference]) -> str:
    """Say which baselines were beaten, which perhaps, and which not."""
    parts = []
    for words, side, chosen in (
        ("beats {}", "lower", [d for d in differences if d.outcome == "better"]),
        (
            "below {} by no more than chance may give",
            "lower",
            [d for d in differences if d.outcome == "undecided" and d.difference.value < 0],
        ),
        (
            "does not beat {}",
            "higher",
            [d for d in differences if d.outcome != "better" and d.difference.value >= 0],
        ),
    ):
        names = ", ".join(
            f"{d.against} ({100 * abs(d.difference.value):.2f} points {side})" for d in chosen
        )
        if names:
            parts.append(words.format(names))
    return "; ".join(parts)


def vendor_transfers(
    estimator: str, unseen: HeldOut, by_device: HeldOut
) -> tuple[VendorTransfer, ...]:
    """Compare runs of a vendor left out with runs of devices left out alone, vendor by vendor."""
    found = []
    of_run = dict(zip(unseen.run.tolist(), unseen.group.tolist(), strict=True))
    vendor = np.array([of_run.get(run, "") for run in by_device.run.tolist()], dtype=object)
    for name in dict.fromkeys(unseen.group.tolist()):
        part = unseen.take(unseen.group == name)
        others = by_device.take((vendor != name) & (vendor != ""))
        cost = difference(
            part,
            by_device,
            split="leave-vendor-out",
            estimator=estimator,
            against="leave-device-out",
        )
        if cost is None or not len(others):
            continue
        gone, there = float(part.ape.mean()), float(others.ape.mean())
        found.append(
            VendorTransfer(
                estimator, str(name), len(part), len(others), gone, there, gone - there, cost
            )
        )
    return tuple(found)
