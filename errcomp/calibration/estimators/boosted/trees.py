"""The stored form of the boosted model: predicts with NumPy and SciPy only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats, Names, as_features
from errcomp.calibration.estimators.shared.spread import Spreads, is_number
from errcomp.errors import InputError, describe_rows

Integers = NDArray[np.int64]

_OBJECTIVES = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror")
_TYPES = {
    "roots": np.int64,
    "left": np.int64,
    "right": np.int64,
    "feature": np.int64,
    "threshold": np.float32,
    "missing_left": np.bool_,
    "value": np.float64,
}
_DEEPEST = 64
_MOST_NODES = 10_000_000
#: Rows times trees that are walked at once, to limit memory.
_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees as arrays of nodes; the nodes of a tree are adjacent, children after parents.

    Attributes
    ----------
    base : float
        Start value, to which the leaves are added.
    roots : ndarray of int64, shape (trees,)
        Where each tree begins.
    left, right : ndarray of int64, shape (nodes,)
        Children; -1 in a leaf.
    feature : ndarray of int64, shape (nodes,)
        Column to compare; 0 in a leaf.
    threshold : ndarray of float32, shape (nodes,)
        A value below it, rounded to float32, goes left; 0 in a leaf.
    missing_left : ndarray of bool, shape (nodes,)
        Where NaN goes.
    value : ndarray of float64, shape (nodes,)
        Value of a leaf; 0 elsewhere.
    """

    base: float
    roots: Integers
    left: Integers
    right: Integers
    feature: Integers
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    value: Floats

    @classmethod
    def flat(cls, base: float) -> Self:
        """Return a forest without trees: `base` everywhere."""
        return cls(base, **{name: np.zeros(0, dtype=kind) for name, kind in _TYPES.items()})

    @classmethod
    def from_booster(
        cls,
        booster: bytes | str,
        *,
        columns: Sequence[int] | None = None,
        base: float | None = None,
        unit: float = 1.0,
    ) -> Self:
        r"""Read a booster in xgboost's JSON (``Booster.save_raw("json")``).

        .. math:: f(x) = \text{base} + \text{unit} \cdot \sum_t \text{leaf}_t(x)

        Parameters
        ----------
        booster : bytes or str
        columns : sequence of int, optional
            The caller's column for each feature of the booster; the same by default.
        base : float, optional
            Instead of unit · ``base_score`` of the booster, e.g. where it was trained on a margin.
        unit : float
            Factor of the leaves.

        Raises
        ------
        InputError
            Not such a booster, or one of an unsupported kind.
        """
        try:
            learner = json.loads(booster)["learner"]
            _check_supported(learner)
            trees = learner["gradient_booster"]["model"]["trees"]
            features = int(learner["learner_model_param"]["num_feature"])
            names = np.arange(features) if columns is None else np.asarray(columns, np.int64)
            if base is None:
                base = unit * _base_score(learner["learner_model_param"]["base_score"])
            parts = [_nodes(tree, names, unit) for tree in trees]
        except (KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"not a booster in xgboost's JSON: {type(error).__name__}: {str(error)[:120]}. "
                'Save it with save_raw("json").'
            ) from error
        if not parts:
            return cls.flat(base)
        sizes = np.array([len(part["left"]) for part in parts])
        arrays = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        roots = np.cumsum(sizes) - sizes
        for name in ("left", "right"):
            shift = np.repeat(roots, sizes)
            arrays[name] = np.where(arrays[name] < 0, -1, arrays[name] + shift)
        arrays["roots"] = roots
        typed: dict[str, Any] = {name: arrays[name].astype(kind) for name, kind in _TYPES.items()}
        forest = cls(base, **typed)
        forest.check(int(names.max(initial=-1)) + 1)
        return forest

    def predict(self, x: Floats) -> Floats:
        """Return the sum of the leaves of each row, shape (n,); xgboost adds them in 32 bits."""
        total = np.full(len(x), self.base)
        if not len(self.roots):
            return total
        values = x.astype(np.float32)
        step = max(1, _AT_ONCE // len(self.roots))
        for start in range(0, len(x), step):
            rows = values[start : start + step]
            total[start : start + step] += self.value[self._leaves(rows)].sum(axis=1)
        return total

    def _leaves(self, x: NDArray[np.float32]) -> Integers:
        """Return the leaf of each row in each tree, shape (n, trees)."""
        node = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        row = np.arange(len(x))[:, None]
        while (inner := self.left[node] >= 0).any():
            seen = x[row, self.feature[node]]
            left = np.where(np.isnan(seen), self.missing_left[node], seen < self.threshold[node])
            node = np.where(inner, np.where(left, self.left[node], self.right[node]), node)
        return node

    def reach(self) -> float:
        """Return an upper bound of the absolute value of any prediction."""
        if not len(self.roots):
            return abs(self.base)
        return abs(self.base) + float(np.maximum.reduceat(np.abs(self.value), self.roots).sum())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without `base`."""
        return {name: getattr(self, name) for name in _TYPES}

    @classmethod
    def from_arrays(cls, base: Any, arrays: dict[str, NDArray[Any]], features: int) -> Self:
        """Restore the forest.

        Raises
        ------
        InputError
            An array is missing, has the wrong type, or does not describe trees over these features.
        """
        for name, kind in _TYPES.items():
            array = arrays.get(name)
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
                raise InputError(
                    f"the array {name!r} of the trees must be {np.dtype(kind)} with one "
                    f"dimension, got {str(array)[:60]}. Fit the model again."
                )
        if not is_number(base):
            raise InputError(f"the base value of the trees must be a number, got {str(base)[:60]}.")
        forest = cls(float(base), **{name: arrays[name] for name in _TYPES})
        forest.check(features)
        return forest

    def check(self, features: int) -> None:
        """Raise InputError unless each tree is valid: no cycle, no node outside, finite values."""
        n = len(self.left)
        if n > _MOST_NODES or any(
            len(getattr(self, name)) != n for name in _TYPES if name != "roots"
        ):
            raise damaged(f"must have at most {_MOST_NODES:,} nodes, and arrays of equal length")
        starts = self.roots
        if len(starts) > n or (n and (not len(starts) or starts[0] != 0)):
            raise damaged("must begin at node 0")
        if not n:
            return
        if (np.diff(starts) <= 0).any() or starts[-1] >= n:
            raise damaged("must follow each other")
        at, leaf = np.arange(n), self.left < 0
        end = np.repeat(np.append(starts[1:], n), np.diff(np.append(starts, n)))
        for child in (self.left, self.right):
            outside = np.where(leaf, child != -1, (child <= at) | (child >= end))
            if outside.any():
                raise damaged(
                    "must list the children of each node after the node, in the same tree",
                    f", wrong in {describe_rows(np.flatnonzero(outside).tolist(), word='node')}",
                )
        if ((self.feature < 0) | (self.feature >= max(features, 1))).any():
            raise damaged(f"must split on columns 0 to {features - 1} only")
        if not (np.isfinite(self.threshold).all() and np.isfinite(self.value).all()):
            raise damaged("must have finite thresholds and values")
        if (np.abs(self.value) > np.finfo(np.float32).max).any():
            raise damaged("must have values that fit into 32 bits")
        self._check_depth()

    def _check_depth(self) -> None:
        level = self.roots
        for _ in range(_DEEPEST):
            inner = level[self.left[level] >= 0]
            if not len(inner):
                return
            level = np.unique(np.concatenate([self.left[inner], self.right[inner]]))
        raise damaged(f"must be at most {_DEEPEST} levels deep")


def damaged(wanted: str, where: str = "") -> InputError:
    """Return the error for damaged trees in a file."""
    return InputError(f"the trees {wanted}{where}. The file is damaged. Fit the model again.")


def _check_supported(learner: dict[str, Any]) -> None:
    booster, model = learner["gradient_booster"]["name"], learner["learner_model_param"]
    objective = learner["objective"]["name"]
    targets = max(int(model.get("num_target", 1)), int(model["num_class"]))
    for value, fine, wanted in (
        (booster, booster == "gbtree", 'booster="gbtree"'),
        (objective, objective in _OBJECTIVES, f"one of the objectives {', '.join(_OBJECTIVES)}"),
        (f"{targets} targets", targets <= 1, "one target"),
    ):
        if not fine:
            raise InputError(f"boosters with {value} are not supported. Fit with {wanted}.")


def _base_score(text: str) -> float:
    """Return the number; since version 3 xgboost writes it in brackets."""
    return float(text.strip("[]"))


def _nodes(tree: dict[str, Any], columns: Integers, unit: float) -> dict[str, NDArray[Any]]:
    """Return the reachable nodes of a tree, numbered from the root downwards."""
    if any(tree["split_type"]):
        raise InputError("categorical splits are not supported. Encode categories as numbers.")
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise InputError("trees with several targets are not supported. Fit one model per target.")
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    order = [0]
    for node in order:
        if left[node] >= 0:
            order += [int(left[node]), int(right[node])]
        if len(order) > len(left):
            raise InputError("the nodes of a tree form a cycle. Save the booster again.")
    reached = np.array(order)
    number = np.full(len(left), -1)
    number[reached] = np.arange(len(reached))
    inner = left[reached] >= 0
    # A leaf has its value in the field of an inner node's threshold.
    condition = np.array(tree["split_conditions"], dtype=np.float32)[reached]
    used = np.array(tree["split_indices"])[reached]
    return {
        "left": np.where(inner, number[left[reached]], -1),
        "right": np.where(inner, number[right[reached]], -1),
        "feature": np.where(inner, columns[np.where(inner, used, 0)], 0),
        "threshold": np.where(inner, condition, np.float32(0)),
        "missing_left": np.where(inner, np.array(tree["default_left"])[reached] != 0, False),
        "value": np.where(inner, 0.0, unit * condition.astype(np.float64)),
    }


_MOST_FEATURES = 100_000
#: Largest logarithm of a spread.
_LARGEST_LOG = 100.0


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel:
    r"""Log-ratio of a run from boosted trees, with its spread.

    .. math:: y_r = o_r + f(x_r) + a_{d(r)} + e^{g(x_r)} \, \varepsilon_r

    with the offset o (a column of the features), forests f and g, the effect a of the device (0 if
    it was not in the fit), and ε of a Student t, one for known devices and one for new ones.

    Attributes
    ----------
    location, log_scale : Forest
        f and g.
    offset : int or None
        Column of o.
    features : int
        Columns of the fit.
    spreads : Spreads

    Examples
    --------
    >>> from errcomp.calibration.estimators.shared.spread import Spread
    >>> spreads = Spreads({"A": 0.1}, known=Spread(0.02, 4.0), new=Spread(0.05, 3.0))
    >>> model = TreeModel(Forest.flat(0.0), Forest.flat(0.0), offset=0, features=1, spreads=spreads)
    >>> x, device = np.array([[-0.2], [-0.2]]), np.array(["A", "B"], dtype=object)
    >>> model.predict_quantiles(x, [0.05, 0.5, 0.95], device=device).round(2).tolist()
    [[-0.14, -0.1, -0.06], [-0.32, -0.2, -0.08]]
    """

    location: Forest
    log_scale: Forest
    offset: int | None
    features: int
    spreads: Spreads

    KIND = "trees"

    def at(self, x: Floats) -> Floats:
        """Return offset and trees of checked rows, shape (n,): the median of a new device."""
        location = self.location.predict(x)
        return location if self.offset is None else location + x[:, self.offset]

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at ascending probabilities q, shape (n, len(q)).

        Raises
        ------
        InputError
            The number of features differs from the fit, the offset is unknown, a feature is too
            large for 32 bits, or q are not ascending probabilities.
        """
        rows = as_features(x, self.features)
        offset_of(rows, self.offset)
        check_in_32_bits(rows)
        scale = np.exp(self.log_scale.predict(rows))
        return self.spreads.around(self.at(rows), q, device, scale)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays, from which `from_arrays` restores the model."""
        forests = {"location": self.location, "log_scale": self.log_scale}
        meta = {
            "bases": {name: forest.base for name, forest in forests.items()},
            "offset": self.offset,
            "features": self.features,
            "spreads": self.spreads.to_meta(),
        }
        parts = ((n, forest.to_arrays()) for n, forest in forests.items())
        return meta, {f"{name}.{k}": array for name, part in parts for k, array in part.items()}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the model.

        Raises
        ------
        InputError
            A value is missing or impossible.
        """
        features, offset = meta.get("features"), meta.get("offset")
        bases, spreads = meta.get("bases"), meta.get("spreads")
        if type(features) is not int or not 0 < features <= _MOST_FEATURES:
            raise damaged(f"must have 1 to {_MOST_FEATURES:,} features, got {str(features)[:40]}")
        if offset is not None and (type(offset) is not int or not 0 <= offset < features):
            raise damaged(f"must have an offset among {features} columns, got {str(offset)[:40]}")
        if not isinstance(bases, dict) or not isinstance(spreads, dict):
            raise damaged("must have base values and spreads")
        forests = {}
        for name in ("location", "log_scale"):
            start = f"{name}."
            own = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            forests[name] = Forest.from_arrays(bases.get(name), own, features)
        if forests["log_scale"].reach() > _LARGEST_LOG:
            raise damaged(f"must have logarithms of spreads of at most {_LARGEST_LOG:g}")
        return cls(**forests, offset=offset, features=features, spreads=Spreads.from_meta(spreads))


def offset_of(x: Floats, offset: int | None) -> Floats:
    """Return the offset of each row, shape (n,), or 0; raise where it is unknown."""
    if offset is None:
        return np.zeros(len(x))
    unknown = np.flatnonzero(np.isnan(x[:, offset]))
    if len(unknown):
        raise InputError(
            f"the offset (column {offset}) must be known, got NaN in "
            f"{describe_rows(unknown.tolist())}. Drop these rows; other features may be NaN."
        )
    return x[:, offset]


def check_in_32_bits(x: Floats) -> None:
    """Raise InputError where trees cannot compare a feature."""
    large = np.flatnonzero((np.abs(x) > np.finfo(np.float32).max).any(axis=1))
    if len(large):
        raise InputError(
            f"features must fit into 32 bits (up to 3e38), got a larger value in "
            f"{describe_rows(large.tolist())}. Use another unit."
        )
