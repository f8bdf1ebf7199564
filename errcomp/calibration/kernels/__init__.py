r"""Corrections of predicted kernels, learnt from measurements of similar kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import ndtri

from errcomp.calibration.kernels.parts import KernelNames, Part, names_of
from errcomp.calibration.kernels.pooling import quantile
from errcomp.errors import InputError, describe_names
from errcomp.results import Dropped
from errcomp.tables import Kernels
from errcomp.tables.backends import kernels_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from errcomp.calibration.design import Floats, Names
    from errcomp.tables.engine.kernels import KernelRows
    from errcomp.tables.table import Behind


#: A prediction below this share of the device's floor carries no information.
_BELOW_FLOOR = 0.25
_PARTS = ("ratio", "time")


class KernelCorrection:
    r"""Correction of predicted kernels by class, device and size, with partial pooling.

    .. math:: \ln \frac{m_i}{p_i} = \alpha_c + \delta_d + \gamma_{cf} + \gamma_{cd}
        + \beta_c (\ln p_i - \bar z_c) + \rho_{cdr} + \varepsilon_i

    with measured m and predicted p of one instance, class c, device d of family f, run r. If the
    table has a mode or a phase, a class is a kernel class in one of them: training adds backward
    passes under the same names. All effects are shrunken by variances that are fitted with them
    (empirical Bayes, restricted likelihood). Every class has its own spread, shrunken to those of
    the others. Errors are Student t with four degrees of freedom, so that outliers do not change
    their class. Within a run, kernels of a class count by their time, count · predicted, up to
    Kish's effective number of kernels; runs count equally unless they have few kernels. Slopes come
    only from sizes within runs, are shrunken to 0 with a standard deviation of 0.01, and are valid
    within the measured sizes.

    A prediction of 0 has no ratio, and one far below a launch has no useful one: as small as
    predictions of the fit that were below a quarter of both the floor (the 5 % quantile of the
    measured times) and their own measurement. Such kernels get their typical time instead, pooled
    in the same way.

    The level of each kernel names the basis of its correction:

    ======  ======================================================================================
    exact   this kernel (class, name and shape; without shapes the predicted time) on this device
    class   kernels of its class on this device
    device  this device over all classes, and the class on other devices if it was measured there
    global  the device was not measured: the class over all devices (its family first), or all
            kernels for a class that was not measured
    none    not corrected: no kernel with such a prediction (a time, or 0) was measured
    ======  ======================================================================================

    With less information bands are wider: the spread of a kernel grows if it was not measured
    itself, if its class was not measured on the device, and again if the class or the device was
    not measured at all.

    Parameters
    ----------
    family : str, optional
        Key with the family of a device, e.g. ``"vendor"`` or ``"architecture"``. Without it
        devices borrow from all others.

    Attributes
    ----------
    unit_ : str or None
        Unit of the times of the fit.
    n_ : int
        Kernels used.
    dropped_ : tuple of Dropped
        Kernels not used, with the reason.

    Notes
    -----
    Valid where new kernels are like the measured ones: same predictor, same way of measuring. In
    simulations of the model 90 % bands of single kernels cover 90 %. On the NeuSight table they
    cover 86 % on held-out models and 88 % on held-out devices. There the median absolute log error
    of its modelled kernels falls from 0.19 to 0.09 on new models and to 0.12 on new devices. The
    median error of a run's sum of kernels falls only from 5.9 % to 5.0 % on new models, and is
    *6.6 %* on new devices; its mean goes from 8.0 % to 7.7 % and to *8.4 %*: the remaining error
    belongs to runs. For the same reason 90 % bands of sums cover 80 % on new models (94 % on new
    devices, where they are twice as wide).

    Misleads where errors belong to a run rather than to its kernels (a device that lowered its
    clock, a run short of memory): the class absorbs them, and the next run is corrected for an
    effect that it lacks. Typical times mislead for large operators that the predictor leaves out:
    there 48 % of their time is within its 90 % band. A class, device, mode or phase that is spelled
    differently in a new table counts as not measured, and so does a phase that the new table lacks.
    A phase that the fitted table lacked is left out. A table without devices is one device.

    References
    ----------
    Smyth (2004), "Linear models and empirical Bayes methods for assessing differential expression
    in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3(1),
    doi:10.2202/1544-6115.1027 (spreads shrunken to each other).
    Lange, Little and Taylor (1989), "Robust Statistical Modeling Using the t Distribution", JASA
    84(408), doi:10.1080/01621459.1989.10478852.

    Examples
    --------
    >>> measured = Kernels(
    ...     {
    ...         "run": ["a", "a", "a", "b", "b", "b"],
    ...         "kernel": ["k1", "k2", "k3", "k1", "k2", "k3"],
    ...         "kernel_class": ["BMM"] * 6,
    ...         "device": ["T4"] * 6,
    ...         "predicted": [1.0, 2.0, 4.0, 3.0, 5.0, 0.0],
    ...         "measured": [1.21, 2.39, 4.81, 3.62, 6.01, 0.01],
    ...     },
    ...     unit="ms",
    ... )
    >>> new = Kernels(
    ...     {
    ...         "run": ["c"] * 4,
    ...         "kernel": ["k1", "k9", "view", "add"],
    ...         "kernel_class": ["BMM", "BMM", "BMM", "VEC"],
    ...         "device": ["T4", "T4", "T4", "T4"],
    ...         "predicted": [1.0, 3.0, 0.0, 1.0],
    ...     },
    ...     unit="ms",
    ... )
    >>> corrected = KernelCorrection().fit(measured).apply(new)
    >>> corrected.level.tolist()
    ['exact', 'class', 'class', 'device']
    >>> corrected.predicted[:3].round(2).tolist()
    [1.21, 3.61, 0.01]
    """

    KIND = "kernel-correction"

    unit_: str | None
    n_: int
    dropped_: tuple[Dropped, ...]

    def __init__(self, *, family: str | None = None) -> None:
        self.family = family

    def fit(self, kernels: Kernels | KernelRows | Any) -> Self:
        """Learn from kernels that were predicted and measured.

        Parameters
        ----------
        kernels : Kernels, KernelRows or dataframe
            Rows in an engine (a lazy frame, a DuckDB relation, Dask, Spark) stay there;
            `errcomp.tables.engine.kernels.KernelRows` says which results are exact then.

        Raises
        ------
        InputError
            No kernel has both times, kernels are of several tools, or the key of the family does
            not exist or has several values for a device.

        Examples
        --------
        >>> kernels = Kernels({"run": list("abcd"), "kernel": ["k"] * 4, "device": ["T4"] * 4,
        ...                    "predicted": [1.0, 2.0, 3.0, 4.0], "measured": [1.2, 2.4, 3.6, 4.8]})
        >>> KernelCorrection().fit(kernels).n_
        4
        """
        kernels = kernels_of(kernels, self.family)
        behind = kernels.behind
        _one_tool(kernels)
        if np.isnan(kernels.predicted).all() or np.isnan(kernels.measured).all():
            lacking = "predicted" if np.isnan(kernels.predicted).all() else "measured"
            raise InputError(
                f"{kernels.prefix}no kernel has a {lacking} time, but corrections are learnt from "
                "kernels with a predicted and a measured time. Add the column, or combine the "
                "profile with the prediction (errcomp join)."
            )
        names = names_of(kernels, self.family)
        self._check_families(kernels, names)
        usable, self.dropped_ = _usable(kernels, behind)
        if not usable.any():
            reasons = "; ".join(f"{d.n} {d.reason}" for d in self.dropped_)
            raise InputError(
                f"{kernels.prefix}no kernel to learn from ({reasons}). Measure kernels, and name "
                "their device."
            )
        p, m = kernels.predicted[usable], kernels.measured[usable]
        names, run, behind = names.at(usable), kernels.codes("run")[usable], behind.at(usable)
        count = kernels.count[usable].astype(np.float64)
        # Kernels smaller than those seen may just not have been measured: no prediction counts as
        # too small unless the fit had some.
        low = p[p < _BELOW_FLOOR * np.minimum(quantile(m, behind.n, 0.05), m)]
        self._largest_added = float(low.max()) if len(low) else 0.0
        added = p <= self._largest_added
        self._parts: dict[str, Part] = {}
        for name, mask, size in _by_part(p, added):
            # Without a predicted time every kernel counts once.
            weight = count[mask] * p[mask] if name == "ratio" else np.ones(len(size))
            y = np.log(m[mask]) - size
            part = Part.fit(y, size, weight, behind.at(mask), run[mask], names.at(mask))
            self._parts[name] = part
        self.unit_, self.n_ = kernels.unit, int(behind.n.sum())
        return self

    def _check_families(self, kernels: Kernels, names: KernelNames) -> None:
        if self.family is None:
            return
        if self.family not in kernels.keys:
            raise InputError(
                f"{kernels.prefix}no column {self.family!r}. The parameter 'family' must name the "
                "column that holds the family of each device. Columns: "
                f"{describe_names(kernels.keys, wanted=self.family)}"
            )
        pairs = sorted(set(zip(names.device.tolist(), names.family.tolist(), strict=True)))
        devices = [device for device, _ in pairs]
        twice = sorted({device for device in devices if devices.count(device) > 1})
        if twice:
            several = [family or "nothing" for device, family in pairs if device == twice[0]]
            raise InputError(
                f"{kernels.prefix}{self.family} must be the same in all rows of a device, got "
                f"{' and '.join(several[:3])} for device {twice[0]!r}"
                f"{f' (and {len(twice) - 1} more devices)' if len(twice) > 1 else ''}. Correct the "
                "table."
            )

    def apply(self, kernels: Kernels) -> CorrectedKernels:
        """Correct predicted kernels, measured or not.

        Raises
        ------
        InputError
            Before `fit`; kernels without predictions, of several tools, or in another unit than
            the fit's.

        Examples
        --------
        >>> kernels = Kernels({"run": list("abcd"), "kernel": ["k"] * 4, "device": ["T4"] * 4,
        ...                    "predicted": [1.0, 2.0, 3.0, 4.0], "measured": [1.2, 2.4, 3.6, 4.8]})
        >>> KernelCorrection().fit(kernels).apply(kernels).predicted.round(1).tolist()
        [1.2, 2.4, 3.6, 4.8]
        """
        self._fitted()
        _one_tool(kernels)
        if np.isnan(kernels.predicted).any():
            raise InputError(
                f"{kernels.prefix}kernels without a predicted time cannot be corrected. Add the "
                'column "predicted", or drop these kernels.'
            )
        if None not in (self.unit_, kernels.unit) and self.unit_ != kernels.unit:
            raise InputError(
                f"{kernels.prefix}the kernels are in {kernels.unit!r}, but the corrections were "
                f"fitted to times in {self.unit_!r}. Convert the kernels first."
            )
        phases = any(part.phases for part in self._parts.values())
        names, p = names_of(kernels, self.family, phases=phases), kernels.predicted
        added = p <= self._largest_added
        predicted, factor = p.copy(), np.ones(kernels.n)
        shared, own = np.full(kernels.n, np.inf), np.zeros(kernels.n)
        level = np.full(kernels.n, "none", dtype=object)
        for name, mask, size in _by_part(p, added):
            if name not in self._parts:
                continue
            answer = self._parts[name].predict(size, names.at(mask))
            predicted[mask] = np.exp(answer.log + size)
            factor[mask] = np.exp(answer.log) if name == "ratio" else np.nan
            shared[mask], own[mask], level[mask] = answer.shared, answer.own, answer.level
        # Kernels of one group share an error in a run.
        group = names.kind + "\x1f" + names.device
        group[np.isin(level.astype(str), ("device", "global"))] = "elsewhere"
        return summed(kernels, predicted, factor, added & (level != "none"), level,
                       (shared, own), group)  # fmt: skip

    def _fitted(self) -> None:
        if not hasattr(self, "_parts"):
            raise InputError(
                "this KernelCorrection is not fitted. Call fit(kernels) first, with kernels that "
                "were predicted and measured."
            )

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays (no objects), for `from_arrays`.

        Examples
        --------
        >>> kernels = Kernels({"run": list("abcd"), "kernel": ["k"] * 4, "device": ["T4"] * 4,
        ...                    "predicted": [1.0, 2.0, 3.0, 4.0], "measured": [1.2, 2.4, 3.6, 4.8]})
        >>> meta, arrays = KernelCorrection().fit(kernels).to_arrays()
        >>> meta["n"]
        4
        """
        self._fitted()
        meta = {
            "kind": self.KIND,
            "family": self.family,
            "unit": self.unit_,
            "n": self.n_,
            "largest_added": self._largest_added,
            "dropped": [d.to_dict() for d in self.dropped_],
            "parts": list(self._parts),
        }
        arrays: dict[str, NDArray[Any]] = {}
        for name, part in self._parts.items():
            arrays |= {f"{name}.{key}": value for key, value in part.to_arrays().items()}
        return meta, arrays

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the correction from the results of `to_arrays`.

        Raises
        ------
        InputError
            A value is missing, has the wrong type or shape, or is impossible.

        Examples
        --------
        >>> kernels = Kernels({"run": list("abcd"), "kernel": ["k"] * 4, "device": ["T4"] * 4,
        ...                    "predicted": [1.0, 2.0, 3.0, 4.0], "measured": [1.2, 2.4, 3.6, 4.8]})
        >>> correction = KernelCorrection().fit(kernels)
        >>> KernelCorrection.from_arrays(*correction.to_arrays()).n_
        4
        """
        _check_meta(meta, cls.KIND)
        made = cls(family=meta["family"])
        made.unit_, made.n_ = meta["unit"], meta["n"]
        made._largest_added = meta["largest_added"]
        made.dropped_ = tuple(
            Dropped(d["reason"], d["n"], tuple(d["rows"])) for d in meta["dropped"]
        )
        made._parts = {}
        for name in meta["parts"]:
            start = f"{name}."
            inner = {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
            made._parts[name] = Part.from_arrays(inner)
        return made


def _by_part(
    predicted: Floats, added: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[np.bool_], Floats]]:
    """Yield each part that has kernels, the kernels, and their log sizes (0 for times)."""
    if not added.all():
        yield "ratio", ~added, np.log(predicted[~added])
    if added.any():
        yield "time", added, np.zeros(int(added.sum()))


def _check_meta(meta: dict[str, Any], kind: str) -> None:
    texts = all(isinstance(meta.get(name, 0), str | None) for name in ("family", "unit"))
    parts, dropped = meta.get("parts"), meta.get("dropped")
    fine = (
        meta.get("kind") == kind
        and texts
        and isinstance(meta.get("n"), int)
        and isinstance(meta.get("largest_added"), float)
        and 0 <= meta["largest_added"] < np.inf
        and isinstance(parts, list)
        and bool(parts)
        and all(name in _PARTS for name in parts)
        and isinstance(dropped, list)
        and all(isinstance(d, dict) and {"reason", "n", "rows"} <= d.keys() for d in dropped)
    )
    if not fine:
        raise InputError(
            f"not a valid description of {kind}: it needs values for kind, family, unit, n, "
            "largest_added, parts and dropped; its keys are "
            f"{describe_names([str(key) for key in meta])}. Fit and write the corrections again."
        )


def _one_tool(kernels: Kernels) -> None:
    if len(kernels.tools) > 1:
        raise InputError(
            f"{kernels.prefix}kernels come from several tools ({describe_names(kernels.tools)}), "
            "which have different errors. Choose one tool with of_tool(...) (--tool)."
        )


def _usable(kernels: Kernels, behind: Behind) -> tuple[NDArray[np.bool_], tuple[Dropped, ...]]:
    """Return the kernels to learn from, and counts of the others."""
    nameless = (kernels.device == "") & (kernels.device != "").any()
    unmeasured = np.isnan(kernels.measured)
    reasons = {
        "not measured": unmeasured,
        "measured as 0": kernels.measured == 0,
        "without a device": nameless & (kernels.measured > 0),
    }
    dropped = tuple(
        Dropped(reason, int(behind.n[mask].sum()), tuple(kernels.rows[mask][:3].tolist()))
        for reason, mask in reasons.items()
        if mask.any()
    )
    return ~(unmeasured | (kernels.measured == 0) | nameless), dropped


# Corrected kernels, and their totals.

#: From the best known to the unknown; see `KernelCorrection`.
KERNEL_LEVELS = ("exact", "class", "device", "global", "none")


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedKernels:
    r"""Corrected times of n kernels, and their totals in r runs.

    Attributes
    ----------
    predicted : ndarray, shape (n,)
        Corrected time of one instance (median), in the unit of the table.
    factor : ndarray, shape (n,)
        Corrected over predicted time; NaN where a typical time replaces the prediction.
    added : ndarray of bool, shape (n,)
        Whether a typical time replaces a prediction of 0, or one far shorter than a launch.
    level : ndarray of str, shape (n,)
        One of `KERNEL_LEVELS`.
    spread : ndarray, shape (n,)
        Standard deviation of the log error of one kernel, from its central 90 % as for a normal.
        Infinite at level none.
    shared : ndarray, shape (n,)
        The part of `spread` that kernels of the same group have in common.
    run : ndarray of str, shape (r,)
        In the order of ``kernels.runs``.
    total, total_spread : ndarray, shape (r,)
        Σ count · corrected, and the standard deviation of its log error; NaN for a run with a
        failed kernel.
    share : ndarray, shape (r, 5)
        Share of the corrected time by level, in the order of `KERNEL_LEVELS`.
    uncorrected : ndarray of int, shape (r,)
        Instances at level none; those predicted as 0 have no share of the time.
    unit : str or None

    Notes
    -----
    The spread of a total assumes that kernels of one class on one device share their `shared`
    part in a run (the kernels of a class in a new run err together), that all kernels at the levels
    device and global share theirs, and that nothing else is shared:

    .. math:: s_r^2 = \sum_g \Big( \sum_{i \in g} w_i s_i \Big)^2 + \sum_i w_i^2 o_i^2,
        \qquad w_i = c_i t_i / \sum_j c_j t_j

    with shared s and own o, where :math:`s_i^2 + o_i^2` is the square of `spread`. It is too small
    where all kernels of a run err together, e.g. on a device that lowers its clock.
    """

    predicted: Floats
    factor: Floats
    added: NDArray[np.bool_]
    level: Names
    spread: Floats
    shared: Floats
    run: Names
    total: Floats
    total_spread: Floats
    share: Floats
    uncorrected: NDArray[np.int64]
    unit: str | None

    def band(self, level: float = 0.9) -> Floats:
        r"""Return equal-tailed bands of one instance, shape (n, 2).

        .. math:: t_i \exp(\pm z_{(1 + \text{level}) / 2}\, s_i)

        At level none the band is infinite, or [0, 0] for a kernel predicted as 0.

        Examples
        --------
        >>> kernels = Kernels({"run": list("abcd"), "kernel": ["k"] * 4, "device": ["T4"] * 4,
        ...                    "predicted": [1.0, 2.0, 3.0, 4.0], "measured": [1.2, 2.4, 3.6, 4.8]})
        >>> low, high = KernelCorrection().fit(kernels).apply(kernels).band(0.9)[0]
        >>> bool(low < 1.2 < high)
        True
        """
        z = float(ndtri((1 + level) / 2))
        some = self.predicted > 0
        step = np.where(some, z * self.spread, 0)
        ends: Floats = self.predicted[:, None] * np.exp(np.stack([-step, step], axis=1))
        return ends


def summed(
    kernels: Kernels,
    predicted: Floats,
    factor: Floats,
    added: NDArray[np.bool_],
    level: Names,
    parts: tuple[Floats, Floats],
    group: Names,
) -> CorrectedKernels:
    """Add corrected kernels up by run; kernels of one `group` share an error."""
    shared, own = parts
    run, n = kernels.codes("run"), kernels.n_runs
    time = kernels.count * predicted
    total = np.bincount(run, time, n)
    weight = time / np.where(total > 0, total, 1)[run]
    some = weight > 0
    common = np.where(some, weight * np.where(some, shared, 0), 0)
    _, joint = np.unique(group.astype(str), return_inverse=True)
    pairs, of = np.unique(run * (joint.max() + 1) + joint, return_inverse=True)
    square = np.bincount(of, common) ** 2
    spread = np.bincount(pairs // (joint.max() + 1), square, n)
    spread = np.sqrt(spread + np.bincount(run, (weight * own) ** 2, n))
    by_level = [np.bincount(run, weight * (level == name), n) for name in KERNEL_LEVELS]
    complete = ~np.isin(np.asarray(kernels.runs).astype(str), list(kernels.incomplete))
    return CorrectedKernels(
        predicted=predicted,
        factor=factor,
        added=added,
        level=level,
        spread=np.hypot(shared, own),
        shared=shared,
        run=np.asarray(kernels.runs, dtype=object),
        total=np.where(complete, total, np.nan),
        total_spread=np.where(complete, spread, np.nan),
        share=np.stack(by_level, axis=1).astype(np.float64),
        uncorrected=np.bincount(run, kernels.count * (level == "none"), n).astype(np.int64),
        unit=kernels.unit,
    )
