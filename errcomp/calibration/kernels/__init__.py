r"""Phase 1: predicted kernels corrected by what was measured of kernels like them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import stats

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


#: Below this share of the device's floor a prediction says nothing of the kernel.
_BELOW_FLOOR = 0.25
_PARTS = ("ratio", "time")


class KernelCorrection:
    r"""Correction of predicted kernels by class, device and size, with partial pooling.

    .. math:: \ln \frac{m_i}{p_i} = \alpha_c + \delta_d + \gamma_{cf} + \gamma_{cd}
        + \beta_c (\ln p_i - \bar z_c) + \rho_{cdr} + \varepsilon_i

    with measured m and predicted p of one instance, class c, device d of family f, run r. A class
    is a kernel class in one mode, where the table has a mode: training adds backward passes to
    the same names. All effects are shrunken by variances that are fitted with them (empirical
    Bayes, restricted likelihood); every class has its own spread, shrunken to those of the
    others. Errors are Student t with four degrees of freedom: one absurd kernel does not move its
    class. Within a run, kernels of a class count by their time, count · predicted, but for no
    more than Kish's effective number of kernels; runs count equally unless they hold few kernels.
    Slopes come from sizes within runs alone, shrunken to 0 with a standard deviation of 0.01, and
    hold within the sizes measured.

    A prediction of 0, or one as small as those of the fit that were below a quarter of both the
    floor (the 5 % quantile of the measured times) and their own measurement, has no ratio: the
    typical time of such kernels, pooled in the same way, stands in for it.

    The level of each kernel says what its correction rests on:

    ======  ======================================================================================
    exact   this kernel (class, name and shape; without shapes the predicted time) on this device
    class   kernels of its class on this device
    device  this device over all classes, and the class on other devices if it was measured there
    global  the device was not measured: the class over all devices (its family first), or, for a
            class that was not measured, all kernels
    none    not corrected: of such predictions (times, or 0) none was measured at all
    ======  ======================================================================================

    Knowing less is a wider band: the spread of a kernel grows where it was not measured itself,
    where its class was not measured on the device, and again where the class was not measured
    anywhere, or the device was not.

    Parameters
    ----------
    family : str, optional
        Key that says to which family a device belongs, e.g. ``"vendor"`` or ``"architecture"``;
        without it devices borrow from all.

    Attributes
    ----------
    unit_ : str or None
        Of the times of the fit.
    n_ : int
        Kernels used.
    dropped_ : tuple of Dropped
        Kernels not used, with the reason.

    Notes
    -----
    Valid where new kernels are like those measured: same predictor, same way of measuring. In
    simulations of the model 90 % bands of single kernels cover 90 %; on the NeuSight table about
    87 %, for models as for devices that were not in the fit. The typical (median) error of its
    modelled kernels falls from 17 % to 8 % on new models and 11 % on new devices; that of a run's
    sum of kernels only from 5.9 % to 4.5 % and 5.6 %, and its mean from 8.0 % to 7.5 % and
    *8.4 %*, no better on new devices: what is left belongs to runs. For the same reason 90 %
    bands of sums cover 84 % on new models (94 % on new devices, where they are twice as wide).

    Misleads where errors belong to a run rather than to its kernels (a device that lowered its
    clock, a run short of memory): these go into the class, and the next run is corrected for what
    it will not do. Typical times mislead for large operators that the predictor leaves out: 48 %
    of their time is within its 90 % band there. A class of a device or mode that is written
    otherwise in a new table is a class that was not measured. Where the table has no device, all
    of it is one device.

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
            Rows in an engine (a lazy frame, a DuckDB relation, Dask, Spark) stay there; see
            `errcomp.tables.engine.kernels.KernelRows` for what is exact then.

        Raises
        ------
        InputError
            Nothing was predicted, or nothing measured; kernels of several tools; the key of the
            family does not exist, or a device has several.
        """
        kernels = kernels_of(kernels, self.family)
        behind = kernels.behind
        _one_tool(kernels)
        if np.isnan(kernels.predicted).all() or np.isnan(kernels.measured).all():
            lacking = "predicted" if np.isnan(kernels.predicted).all() else "measured"
            raise InputError(
                f"{kernels.prefix}no kernel has a time {lacking}: corrections are learnt from "
                "kernels with both. Add the column, or read the profile and the prediction "
                "together."
            )
        names = names_of(kernels, self.family)
        self._check_families(kernels, names)
        usable, self.dropped_ = _usable(kernels, behind)
        if not usable.any():
            reasons = "; ".join(f"{d.n} {d.reason}" for d in self.dropped_)
            raise InputError(
                f"{kernels.prefix}no kernel to learn from ({reasons}). Measure kernels on a "
                "named device."
            )
        p, m = kernels.predicted[usable], kernels.measured[usable]
        names, run, behind = names.at(usable), kernels.codes("run")[usable], behind.at(usable)
        count = kernels.count[usable].astype(np.float64)
        # Smaller kernels than those seen may simply not have been measured: nothing is taken for
        # such a prediction unless there were some.
        low = p[p < _BELOW_FLOOR * np.minimum(quantile(m, behind.n, 0.05), m)]
        self._largest_added = float(low.max()) if len(low) else 0.0
        added = p <= self._largest_added
        self._parts: dict[str, Part] = {}
        for name, mask, size in _by_part(p, added):
            # Where no time was predicted every kernel counts once.
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
                f"{kernels.prefix}no column {self.family!r} for the family of a device. Columns "
                f"to group by: {describe_names(kernels.keys, wanted=self.family)}"
            )
        pairs = sorted(set(zip(names.device.tolist(), names.family.tolist(), strict=True)))
        devices = [device for device, _ in pairs]
        twice = sorted({device for device in devices if devices.count(device) > 1})
        if twice:
            several = [family or "nothing" for device, family in pairs if device == twice[0]]
            raise InputError(
                f"{kernels.prefix}{self.family} must be the same in all rows of a device, got "
                f"{' and '.join(several[:3])} for device {twice[0]!r}"
                f"{f' (and {len(twice) - 1} more devices)' if len(twice) > 1 else ''}. Fix it."
            )

    def apply(self, kernels: Kernels) -> CorrectedKernels:
        """Correct predicted kernels, measured or not.

        Raises
        ------
        InputError
            Before `fit`; kernels without predictions, of several tools, or in another unit than
            the fit's.
        """
        self._fitted()
        _one_tool(kernels)
        if np.isnan(kernels.predicted).any():
            raise InputError(
                f"{kernels.prefix}predicted is missing, so there is nothing to correct. Add the "
                "column predicted."
            )
        if None not in (self.unit_, kernels.unit) and self.unit_ != kernels.unit:
            raise InputError(
                f"{kernels.prefix}the kernels are in {kernels.unit!r}, the corrections were "
                f"fitted in {self.unit_!r}. Convert the kernels first."
            )
        names, p = names_of(kernels, self.family), kernels.predicted
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
        # Whose groups err together in a run.
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
        """Return what JSON can hold, and the arrays (no objects), that make it again."""
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
        """Make it again from what `to_arrays` returned.

        Raises
        ------
        InputError
            Something is missing, of another type or shape, or cannot be.
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
    """Yield each part that has kernels, which these are, and their log sizes: 0 for times."""
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
            f"not a description of {kind}: kind, family, unit, n, largest_added, parts and dropped "
            f"are needed, got {describe_names([str(key) for key in meta])}. Fit and write the "
            "corrections again."
        )


def _one_tool(kernels: Kernels) -> None:
    if len(kernels.tools) > 1:
        raise InputError(
            f"{kernels.prefix}kernels of several tools ({describe_names(kernels.tools)}) have no "
            "common errors. Choose one with of_tool(...) (--tool)."
        )


def _usable(kernels: Kernels, behind: Behind) -> tuple[NDArray[np.bool_], tuple[Dropped, ...]]:
    """Say which kernels can be learnt from, and count the others."""
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


# Corrected kernels, and what they add up to.

#: From what is known best to nothing; see `KernelCorrection`.
KERNEL_LEVELS = ("exact", "class", "device", "global", "none")


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedKernels:
    r"""Corrected times of n kernels, and their totals in r runs.

    Attributes
    ----------
    predicted : ndarray, shape (n,)
        Corrected time of one instance (the median of what it may take), in the unit of the table.
    factor : ndarray, shape (n,)
        By which the prediction was multiplied; NaN where a typical time stands in for it.
    added : ndarray of bool, shape (n,)
        A typical time stands in for a prediction of 0, or of far less than a launch takes.
    level : ndarray of str, shape (n,)
        One of `KERNEL_LEVELS`.
    spread : ndarray, shape (n,)
        Standard deviation of the log error of one kernel: of the normal with the same central
        90 %. Infinite at level none.
    shared : ndarray, shape (n,)
        The part of `spread` that kernels of the same group have in common.
    run : ndarray of str, shape (r,)
        In the order of ``kernels.runs``.
    total, total_spread : ndarray, shape (r,)
        Σ count · corrected, and the standard deviation of its log error; NaN for a run with a
        failed kernel.
    share : ndarray, shape (r, 5)
        Of the corrected time, by level in the order of `KERNEL_LEVELS`.
    uncorrected : ndarray of int, shape (r,)
        Instances at level none: those predicted as 0 have no share of the time.
    unit : str or None

    Notes
    -----
    The spread of a total assumes that kernels of one class on one device share their `shared`
    part in a run (a new run of the class errs as a whole), that all kernels at the levels device
    and global share theirs, and that nothing else is common:

    .. math:: s_r^2 = \sum_g \Big( \sum_{i \in g} w_i s_i \Big)^2 + \sum_i w_i^2 o_i^2,
        \qquad w_i = c_i t_i / \sum_j c_j t_j

    with shared s and own o, :math:`s_i^2 + o_i^2` the square of `spread`. It is too small where a
    run errs as a whole, e.g. on a device that lowers its clock.
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

        Infinite, or [0, 0] for a kernel predicted as 0, at level none.
        """
        z = float(stats.norm.ppf((1 + level) / 2))
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
    """Add corrected kernels up by run; `group` names whose shared errors are the same."""
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
