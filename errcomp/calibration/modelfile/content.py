"""Content of a model file, with the checks that run when it is written and when it is read."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

from numpy.typing import NDArray

from errcomp.calibration.design import TASKS, PortableModel, Task
from errcomp.calibration.estimators import estimators
from errcomp.calibration.modelfile.container import describe
from errcomp.errors import InputError, describe_names
from errcomp.tables.units import SECONDS

#: Kinds of members other than estimators, each with the class that restores it.
_PARTS = {
    "adapted": ("errcomp.calibration.transfer.adapting", "Adapted"),
    "held-out": ("errcomp.calibration.transfer.held_out", "HeldOut"),
    "kernel-correction": ("errcomp.calibration.kernels", "KernelCorrection"),
    "training": ("errcomp.calibration.fitted", "Training"),
}

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}(?:\.[A-Za-z0-9_]{1,64})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HASH = re.compile(r"[0-9a-f]{64}")
_DEEPEST = 32
_LARGEST_INTEGER = 2**63


def kinds() -> dict[str, tuple[str, str]]:
    """Return every kind of member with module and name of the class that restores it."""
    stored = [member.stored for member in estimators().values() if member.stored is not None]
    by_kind = _PARTS | {kind: (module, name) for kind, module, name in stored}
    return dict(sorted(by_kind.items()))


#: Every kind of member, with module and name of the class that restores it.
KINDS = kinds()


def portable(kind: str) -> type[PortableModel]:
    """Return the class of this kind of model, and import its module.

    Raises
    ------
    InputError
        No such kind; the message lists the kinds.

    Examples
    --------
    >>> portable("forest")
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: unknown kind of model: 'forest'. Kinds: adapted, \
held-out, hierarchical, kernel-correction, linear, physics, training, trees. If a newer errcomp \
wrote the model, upgrade errcomp.
    """
    _check_kind(kind)
    module, name = kinds()[kind]
    reader: type[PortableModel] = getattr(import_module(module), name)
    return reader


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """A feature, and its range in the fit.

    Attributes
    ----------
    name : str
        The column of `errcomp.calibration.design.Design`.
    unit : str
        ``"1"`` for a share; never the unit of the times.
    low, high : float or None
        Smallest and largest value in the fit; both None if it was never known.
    """

    name: str
    unit: str
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One fitted model in the file.

    Attributes
    ----------
    name : str
        Letters, digits and ``_``; unique in the file.
    kind : str
        One of `kinds`.
    meta : mapping
        Metadata for JSON.
    arrays : mapping of str to ndarray
        float64, float32, int64, int32, int8, bool or text of at most 256 characters.
    non_finite : tuple of str
        Names of the arrays in which NaN or infinity has a meaning. All others must be finite.
    booster : bytes or None
        The boosted trees in xgboost's format (UBJSON), for use with xgboost; errcomp does not read
        them.
    """

    name: str
    kind: str
    meta: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    non_finite: tuple[str, ...] = ()
    booster: bytes | None = None

    @classmethod
    def of(
        cls,
        name: str,
        model: PortableModel,
        *,
        non_finite: Sequence[str] = (),
        booster: bytes | None = None,
    ) -> Self:
        """Return a fitted model as a member of a file.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import GlobalFactor
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> Member.of("global", model).kind
        'linear'
        """
        meta, arrays = model.to_arrays()
        return cls(name, model.KIND, meta, arrays, tuple(non_finite), booster)

    def restore(self) -> PortableModel:
        """Restore the model.

        Raises
        ------
        InputError
            A value of the model is missing or impossible.

        Examples
        --------
        >>> from errcomp.calibration.estimators.linear.baselines import GlobalFactor
        >>> model = GlobalFactor().fit([[0.0]] * 4, [0.1, 0.2, 0.3, 0.2]).portable_
        >>> Member.of("global", model).restore().line.intercept
        0.2
        """
        try:
            return portable(self.kind).from_arrays(dict(self.meta), dict(self.arrays))
        except InputError as error:
            # NumPy writes an array in several lines.
            raise InputError(" ".join(str(error).split())) from error


@dataclass(frozen=True, slots=True, eq=False)
class ModelContent:
    """Content of a model file.

    Attributes
    ----------
    task : {"composition", "prediction"}
    unit : str or None
        Unit of the times in the fit (``"ms"``); None where it was not stated.
    features : tuple of FeatureRange
        In the order of the columns.
    devices, models, modes : tuple of str
        Names in the fit.
    levels : tuple of float
        Levels of the bands, ascending, in (0, 1).
    members : tuple of Member
        At least one.
    fingerprint : str
        Fingerprint of the table of the fit, see `errcomp.calibration.modelfile.fingerprint`.
    versions : mapping of str to str
        Versions of errcomp and of the libraries used in the fit.
    created : str
        Date of the fit, ``"YYYY-MM-DD"``, given by the caller.
    conformal : tuple of mapping
        Calibration of the bands, as metadata for JSON.
    extra : mapping
        Everything else, as metadata for JSON.

    Raises
    ------
    InputError
        From `check`: which part is impossible, its value, and the remedy.

    Notes
    -----
    After reading from a file, mappings have their keys in alphabetical order, and tuples inside
    them are lists.
    """

    task: Task
    unit: str | None
    features: tuple[FeatureRange, ...]
    devices: tuple[str, ...]
    models: tuple[str, ...]
    modes: tuple[str, ...]
    levels: tuple[float, ...]
    members: tuple[Member, ...]
    fingerprint: str
    versions: Mapping[str, str]
    created: str
    conformal: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def member(self, name: str) -> Member:
        """Return the member of this name.

        Raises
        ------
        InputError
            No such member; the message lists the members.

        Examples
        --------
        >>> import numpy as np
        >>> from errcomp.calibration.modelfile import FeatureRange, Member, ModelContent
        >>> content = ModelContent(
        ...     task="composition", unit="ms",
        ...     features=(FeatureRange("matmul_share", "1", 0.2, 0.9),),
        ...     devices=("A100",), models=("bert",), modes=("inference",), levels=(0.5, 0.9),
        ...     members=(Member("line", "linear", {}, {"slope": np.ones(1)}),),
        ...     fingerprint="0" * 64,
        ...     versions={"errcomp": "0.1.0"}, created="2025-01-31")
        >>> content.member("line").kind
        'linear'
        """
        for member in self.members:
            if member.name == name:
                return member
        names = describe_names([member.name for member in self.members], wanted=name)
        raise InputError(f"the model file has no member {name!r}. Members: {names}")

    def check(self) -> None:
        """Raise InputError unless every part is valid.

        Examples
        --------
        >>> import numpy as np
        >>> from errcomp.calibration.modelfile import FeatureRange, Member, ModelContent
        >>> content = ModelContent(
        ...     task="composition", unit="ms",
        ...     features=(FeatureRange("matmul_share", "1", 0.2, 0.9),),
        ...     devices=("A100",), models=("bert",), modes=("inference",), levels=(0.5, 0.9),
        ...     members=(Member("line", "linear", {}, {"slope": np.ones(1)}),),
        ...     fingerprint="0" * 64,
        ...     versions={"errcomp": "0.1.0"}, created="2025-01-31")
        >>> content.check()  # passes: nothing is raised
        """
        if self.task not in TASKS:
            raise _bad("task", self.task, f"one of {', '.join(TASKS)}")
        if self.unit is not None and not (isinstance(self.unit, str) and self.unit in SECONDS):
            raise _bad("unit", self.unit, f"a unit of time ({', '.join(SECONDS)}) or None")
        for name in ("devices", "models", "modes"):
            _check_names(name, getattr(self, name))
        _check_levels(self.levels)
        if not isinstance(self.fingerprint, str) or not _HASH.fullmatch(self.fingerprint):
            raise _bad("fingerprint", self.fingerprint, "64 hexadecimal digits: use fingerprint()")
        _check_date(self.created)
        _check_versions(self.versions)
        _check_features(self.features)
        _check_members(self.members)
        if not isinstance(self.conformal, tuple):
            raise _bad("conformal", self.conformal, "a tuple of mappings")
        for i, meta in enumerate(self.conformal):
            _check_mapping(f"conformal[{i}]", meta)
        _check_mapping("extra", self.extra)


def plain_json(value: Any, where: str, depth: int = 0) -> Any:
    """Return a value that JSON holds without loss; tuples become lists.

    Raises
    ------
    InputError
        A value that JSON cannot hold (the message gives its place), NaN or infinity, an integer
        beyond 64 bits, text that is not Unicode, or too deep nesting.

    Examples
    --------
    >>> plain_json({"knots": (1, 2.5)}, "meta")
    {'knots': [1, 2.5]}
    >>> plain_json({"knots": {1, 2}}, "meta")
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: meta.knots must be a value for JSON (text, finite numbers, true, \
false, None, lists, mappings with text keys), got {1, 2}.
    """
    if depth > _DEEPEST:
        raise InputError(f"{where[:200]} is nested more than {_DEEPEST} levels deep. Flatten it.")
    if value is None or value is True or value is False:
        return value
    if _is_text(value):
        return value
    if type(value) is int and -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        return value
    # NumPy's float64 is a float.
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return [plain_json(part, f"{where}[{i}]", depth + 1) for i, part in enumerate(value)]
    if isinstance(value, Mapping) and all(map(_is_text, value)):
        return {key: plain_json(part, f"{where}.{key}", depth + 1) for key, part in value.items()}
    wanted = "text, finite numbers, true, false, None, lists, mappings with text keys"
    raise _bad(where[:200], value, f"a value for JSON ({wanted})")


def _bad(where: str, value: Any, wanted: str) -> InputError:
    return InputError(f"{where} must be {wanted}, got {repr(value)[:80]}.")


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which Python allows in text
        return False
    return True


def _check_names(where: str, names: Any) -> None:
    if not isinstance(names, tuple) or not all(map(_is_text, names)):
        raise _bad(where, names, "a tuple of names")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{where} has {twice!r} twice. Name each once.")


def _check_levels(levels: Any) -> None:
    ascending = (
        isinstance(levels, tuple)
        and all(isinstance(level, float) for level in levels)
        and all(low < high for low, high in zip((0.0, *levels), (*levels, 1.0), strict=True))
    )
    if not ascending:
        raise _bad("levels", levels, "a tuple of ascending fractions between 0 and 1")


def _check_date(date: Any) -> None:
    try:
        if _DATE.fullmatch(date):
            datetime.date.fromisoformat(date)
            return
    except (TypeError, ValueError):
        pass
    raise _bad("created", date, "a date, YYYY-MM-DD")


def _check_versions(versions: Any) -> None:
    texts = isinstance(versions, Mapping) and all(
        _is_text(part) for pair in versions.items() for part in pair
    )
    if not texts or "errcomp" not in versions:
        raise _bad("versions", versions, "a mapping of text to text with the key errcomp")


def _check_features(features: Any) -> None:
    if not isinstance(features, tuple) or not all(isinstance(f, FeatureRange) for f in features):
        raise _bad("features", features, "a tuple of FeatureRange")
    _check_names("features", tuple(feature.name for feature in features))
    for feature in features:
        where = f"feature {feature.name!r}:"
        if not _is_text(feature.unit):
            raise _bad(f"{where} unit", feature.unit, "text")
        ends = (feature.low, feature.high)
        if ends == (None, None):
            continue
        numbers = all(isinstance(end, float) and math.isfinite(end) for end in ends)
        if not numbers or ends[0] > ends[1]:
            raise _bad(
                f"{where} low and high", ends, "finite floats with low <= high, or both None"
            )


def _check_members(members: Any) -> None:
    if not isinstance(members, tuple) or not all(isinstance(m, Member) for m in members):
        raise _bad("members", members, "a tuple of Member")
    if not members:
        raise InputError("members must contain at least one fitted model, got none.")
    _check_names("members", tuple(member.name for member in members))
    for member in members:
        if not _NAME.fullmatch(member.name) or "." in member.name:
            raise _bad("name of a member", member.name, "1 to 64 letters, digits and _")
        _check_kind(member.kind)
        where = f"member {member.name!r}:"
        _check_mapping(f"{where} meta", member.meta)
        if member.booster is not None and not isinstance(member.booster, bytes):
            raise _bad(f"{where} booster", member.booster, "bytes or None")
        _check_arrays(where, member)


def _check_arrays(where: str, member: Member) -> None:
    if not isinstance(member.arrays, Mapping):
        raise _bad(f"{where} arrays", member.arrays, "a mapping of names to arrays")
    for name, array in member.arrays.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            wanted = "letters, digits and _ (at most one full stop between them)"
            raise _bad(f"{where} name of an array", name, wanted)
        try:
            describe(array, finite=name not in member.non_finite)
        except InputError as error:
            raise InputError(f"{where} array {name!r} {error}") from error
    for name in member.non_finite:
        if name not in member.arrays:
            known = describe_names(list(member.arrays), wanted=name)
            raise InputError(
                f"{where} non_finite names {name!r}, which is not an array. Arrays: {known}"
            )


def _check_kind(kind: Any) -> None:
    if not isinstance(kind, str) or kind not in kinds():
        raise InputError(
            f"unknown kind of model: {repr(kind)[:80]}. Kinds: {', '.join(kinds())}. "
            "If a newer errcomp wrote the model, upgrade errcomp."
        )


def _check_mapping(where: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise _bad(where, value, "a mapping")
    plain_json(value, where)
