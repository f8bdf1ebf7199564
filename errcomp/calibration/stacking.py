r"""Stacking: an average of models, weighted by how they did on runs whose group was left out.

The quantiles of the members are averaged (Vincentisation):

.. math:: Q(\tau) = \sum_m w_m \, Q_m(\tau), \qquad w_m \ge 0, \quad \sum_m w_m = 1

Unlike an average of densities it keeps the shape of its members: two narrow bands that are apart
become one narrow band between them, not one wide band over both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.calibration._stack_weights import stack_weights
from errcomp.calibration.design import QUANTILES, Floats, Names, PortableModel, ResidualModel
from errcomp.errors import InputError, describe_names

__all__ = ["StackModel", "StackedResidual", "stack_weights"]


@dataclass(frozen=True, slots=True, eq=False)
class StackModel:
    r"""Weights of a stack, by the names of its members: all that a model file holds of it.

    Attributes
    ----------
    names : tuple of str
        Of the members.
    weights : ndarray, shape (M,)
        Not negative, adding up to 1.
    members : mapping of str to PortableModel
        The models by name; empty until given by `bind`. A model file holds them beside the stack.

    Raises
    ------
    InputError
        Names and weights are not as many, a name is given twice, or weights are negative, not
        finite, or do not add up to 1.

    Examples
    --------
    >>> stack = StackModel(("a", "b"), np.array([0.75, 0.25]))
    >>> stack.combine({"a": np.array([[0.0, 1.0]]), "b": np.array([[2.0, 3.0]])}).tolist()
    [[0.5, 1.5]]
    """

    KIND: ClassVar[str] = "stack"

    names: tuple[str, ...]
    weights: Floats
    members: Mapping[str, PortableModel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        fine = weights.shape == (len(self.names),) and len(set(self.names)) == len(self.names) > 0
        # NaN fails the comparison too.
        if not (fine and (weights >= 0).all() and abs(weights.sum() - 1) < 1e-9):
            raise InputError(
                "a stack needs one weight per member, not negative, adding up to 1, got members "
                f"{describe_names(self.names)} and weights {weights.tolist()}"
            )

    def bind(self, members: Mapping[str, PortableModel]) -> Self:
        """Return the stack with its members, so that it can predict.

        Raises
        ------
        InputError
            A member with a weight is missing.
        """
        self._weighed(members)
        return type(self)(self.names, self.weights, dict(members))

    def _weighed(self, there: Mapping[str, Any]) -> dict[str, float]:
        """Return the weights above 0; raise if one of these members is not there."""
        found = {n: float(w) for n, w in zip(self.names, self.weights, strict=True) if w > 0}
        missing = [name for name in found if name not in there]
        if missing:
            raise InputError(
                f"the stack needs its members {describe_names(missing)}; there are "
                f"{describe_names(list(there))}. Give them with bind(...)."
            )
        return found

    def combine(self, quantiles: Mapping[str, Floats]) -> Floats:
        """Average quantiles of the members, shape (n, K) each; a member of weight 0 may be missing.

        Raises
        ------
        InputError
            A member with a weight is missing.
        """
        weighed = self._weighed(quantiles)
        found: Floats = np.sum([w * quantiles[name] for name, w in weighed.items()], axis=0)
        return found

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at probabilities q, shape (n, len(q)).

        Raises
        ------
        InputError
            The members were not given (`bind`).
        """
        weighed = self._weighed(self.members)
        each = {n: self.members[n].predict_quantiles(x, q, device=device) for n in weighed}
        return self.combine(each)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the names for JSON, and the weights; members are stored by themselves."""
        return {"members": list(self.names)}, {"weights": np.asarray(self.weights, dtype=float)}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the stack again, without members.

        Raises
        ------
        InputError
            Names or weights are missing or cannot be.
        """
        names, weights = meta.get("members"), arrays.get("weights")
        texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not texts or weights is None or weights.dtype.kind != "f":
            raise InputError(
                "a stack in a model file needs members (a list of names) and weights (an array of "
                f"numbers), got members {names!r} and weights {weights!r}. Write the file again."
            )
        return cls(tuple(names or ()), np.asarray(weights, dtype=np.float64))


class StackedResidual:
    r"""Fits several models of the log-ratio and weighs them by runs of groups left out.

    Each member is fitted once per group without it, which gives quantiles that did not see the
    run; `stack_weights` weighs them; then each is fitted to all runs. Every member stays available
    in ``members_``.

    Valid for new groups of the kind left out (``by``). Misleads where the runs to come are new in
    another way: weights learnt by leaving models out favour models that know the devices.

    Parameters
    ----------
    members : mapping of str to callable
        Each makes a new, unfitted `ResidualModel`.
    by : {"model", "device"}
        What is left out.

    Attributes
    ----------
    members_ : dict of str to ResidualModel
        Fitted to all runs.
    out_of_fold_ : ndarray, shape (M, n, len(QUANTILES))
        Quantiles of the runs of each group by fits without it; also what bands are calibrated on.
    weights_ : dict of str to float
    portable_ : StackModel

    Raises
    ------
    InputError
        No members are given, ``by`` is unknown, or the groups are not given or fewer than two.

    Examples
    --------
    >>> StackedResidual({}, by="model").fit(np.zeros((4, 1)), np.zeros(4))
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: a stack needs members: a mapping of names to what makes a model
    """

    def __init__(
        self,
        members: Mapping[str, Callable[[], ResidualModel]],
        *,
        by: Literal["model", "device"] = "model",
    ) -> None:
        self.members = members
        self.by = by

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what it was made with, as scikit-learn's ``clone`` asks for it."""
        return {"members": self.members, "by": self.by}

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Fit members and weights; see `ResidualModel.fit`."""
        if not self.members:
            raise InputError("a stack needs members: a mapping of names to what makes a model")
        if self.by not in ("model", "device"):
            raise InputError(f"by must be 'model' or 'device', got {self.by!r}")
        x, truth = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        known = {
            name: np.asarray(values, dtype=object)
            for name, values in (("device", device), ("model", model))
            if values is not None
        }
        groups = known.get(self.by)
        there = [] if groups is None else sorted(set(groups.tolist()))
        if groups is None or len(there) < 2:
            raise InputError(
                f"a stack by {self.by} needs runs of at least 2 {self.by}s, got "
                f"{describe_names(list(map(str, there)))}. Give {self.by}=, or stack by the other."
            )
        self.out_of_fold_ = np.empty((len(self.members), len(truth), len(QUANTILES)))
        for group in there:
            held = groups == group
            inside = {name: values[~held] for name, values in known.items()}
            at = known["device"][held] if "device" in known else None
            for i, make in enumerate(self.members.values()):
                fitted = make().fit(x[~held], truth[~held], **inside)
                quantiles = fitted.predict_quantiles(x[held], QUANTILES, device=at)
                self.out_of_fold_[i, held] = quantiles
        weights = stack_weights(self.out_of_fold_, truth, groups, QUANTILES)
        self.members_ = {name: make().fit(x, truth, **known) for name, make in self.members.items()}
        names = tuple(self.members)
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        portable = {name: member.portable_ for name, member in self.members_.items()}
        self.portable_ = StackModel(names, weights).bind(portable)
        return self

    def predict_quantiles(
        self,
        X: ArrayLike,  # noqa: N803
        q: Sequence[float] = QUANTILES,
        *,
        device: ArrayLike | None = None,
    ) -> Floats:
        """Return quantiles, shape (n, len(q)), ascending in every row."""
        at = None if device is None else np.asarray(device, dtype=object)
        return self.portable_.predict_quantiles(np.asarray(X, dtype=float), q, device=at)

    def predict(self, X: ArrayLike, *, device: ArrayLike | None = None) -> Floats:  # noqa: N803
        """Return the median of the log-ratio, shape (n,)."""
        return self.predict_quantiles(X, [0.5], device=device)[:, 0]

    def predict_interval(
        self,
        X: ArrayLike,  # noqa: N803
        level: float | Sequence[float] = 0.9,
        *,
        device: ArrayLike | None = None,
    ) -> Floats:
        """Return equal-tailed bands: shape (n, 2) for one level, (n, 2, levels) for several."""
        levels = np.atleast_1d(np.asarray(level, dtype=float))
        ends = [
            self.predict_quantiles(X, [0.5 - one / 2, 0.5 + one / 2], device=device)
            for one in levels.tolist()
        ]
        return ends[0] if np.ndim(level) == 0 else np.stack(ends, axis=2)
