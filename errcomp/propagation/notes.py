"""What a reader of a propagated total must know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import describe_names
from errcomp.propagation.errors.model import ErrorModel
from errcomp.propagation.errors.residuals import NOT_MODELLED
from errcomp.propagation.graph import Node
from errcomp.propagation.terms import Terms
from errcomp.results import Caveat

if TYPE_CHECKING:
    from errcomp.tables import Kernels

__all__ = [
    "failed",
    "in_sample",
    "lost_runs",
    "not_in_graph",
    "of_model",
    "of_terms",
    "other_devices",
]

#: Few clusters: variance components and their bands say little.
_FEW_CLUSTERS = 5


def of_terms(terms: Terms, kernels: Kernels, errors: ErrorModel) -> list[Caveat]:
    """Say which kernels the error model does not really know."""
    time = kernels.count * kernels.predicted
    total = float(time.sum())
    found = []
    known = np.isin(terms.classes, list(errors.classes))
    strangers = sorted(set(terms.classes[~known].tolist()) - {NOT_MODELLED})
    # A model that was given may say one thing of all classes; a fitted one falls back to it.
    if strangers and errors.components is not None:
        share = float(time[np.isin(terms.classes, strangers)].sum()) / total if total else 0.0
        found.append(
            Caveat(
                "unknown-class",
                f"no error was measured of {describe_names(strangers)} ({share:.1%} of the "
                "predicted time): the error of all classes together stands in",
                {"classes": strangers, "share": share},
            )
        )
    unmodelled = (terms.classes == NOT_MODELLED) & (NOT_MODELLED not in errors.classes)
    if unmodelled.any():
        n = int(terms.count[unmodelled].sum())
        found.append(
            Caveat(
                "not-modelled",
                f"{n} kernels are predicted to take no time, and nothing is known of how long "
                "such kernels take: they count as 0",
                {"n": n},
            )
        )
    return found


def failed(kernels: Kernels) -> list[Caveat]:
    """Say how many kernels of the run could not be predicted: they are no part of its time."""
    n = sum(dropped.n for dropped in kernels.dropped)
    if not n:
        return []
    return [
        Caveat(
            "failed-kernels",
            f"{n} kernel{'s' if n > 1 else ''} of the run could not be predicted (status): the "
            "time is that of the others",
            {"n": n},
        )
    ]


def lost_runs(kernels: Kernels) -> list[Caveat]:
    """Say which runs are not there because none of their kernels could be predicted."""
    there = set(kernels.runs)
    names = [name for name in kernels.incomplete if name not in there]
    if not names:
        return []
    return [
        Caveat(
            "lost-runs",
            f"of {len(names)} run{'s' if len(names) > 1 else ''} no kernel could be predicted "
            f"(status): {describe_names(names)}",
            {"runs": names},
        )
    ]


def not_in_graph(terms: Terms, kernels: Kernels, graph: Node) -> list[Caveat]:
    """Say which kernels of the table the graph leaves out."""
    unused = ~np.isin(terms.ids[: len(kernels)], list(graph.leaves()))
    if not unused.any():
        return []
    names = [str(name) for name in terms.ids[: len(kernels)][unused]]
    return [
        Caveat(
            "not-in-graph",
            f"the graph leaves out {len(names)} of {len(kernels)} kernels: {describe_names(names)}",
            {"n": len(names)},
        )
    ]


def of_model(errors: ErrorModel) -> list[Caveat]:
    """Return the caveats of an error model."""
    if errors.components is None:
        return []
    n, word = errors.components.n_clusters, errors.components.cluster
    if n >= _FEW_CLUSTERS:
        return []
    return [
        Caveat(
            "few-clusters",
            f"the errors were estimated from {n} {word}{'s' if n > 1 else ''} only: the bands "
            'under "estimated" '
            + ("may be too narrow" if n > 1 else "are too narrow, other runs are not known"),
            {"n_clusters": n, "cluster": word},
        )
    ]


def other_devices(errors: ErrorModel, kernels: Kernels) -> list[Caveat]:
    """Say where errors of one device are taken for those of another."""
    if errors.components is None or errors.components.cluster != "run":
        return []
    known = ", ".join(name or "no name" for name in errors.devices)
    others = sorted({str(name) for name in kernels.device} - set(errors.devices))
    if not others:
        return []
    return [
        Caveat(
            "other-device",
            f"the errors were estimated on one device ({known}): how errors differ between devices "
            f"is not known, and bands for {describe_names(others)} are too narrow",
            {"known": list(errors.devices), "others": others},
        )
    ]


def in_sample(errors: ErrorModel) -> Caveat:
    """Return the caveat of errors fitted to the runs that they are applied to."""
    return Caveat(
        "in-sample",
        f"the errors were estimated from the {errors.n_runs} measured "
        f"run{'s' if errors.n_runs > 1 else ''} of this table; bands of these very runs say "
        "nothing of how well bands do on others (see: propagate validate)",
        {"n_runs": errors.n_runs},
    )
