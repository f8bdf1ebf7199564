"""Which runs are held out: whole models, devices, both at once, whole vendors, or random runs.

A model for new devices must be evaluated on held-out devices. Random held-out runs share device and
model with runs of the fit, so their errors are too small.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Design, Names
from errcomp.datasets.devices import figures_of
from errcomp.errors import InputError, describe_names, offer

__all__ = ["SPLITS", "Split", "check_split", "split", "vendor_of", "vendors_of"]

Indices = NDArray[np.int64]

#: Names of the splits, in code and on the command line.
SplitName: TypeAlias = Literal[
    "leave-model-out",
    "leave-device-out",
    "leave-model-and-device-out",
    "leave-vendor-out",
    "random",
]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

#: Words in names of devices that are not in `errcomp.datasets.devices`. Whole words only: A100
#: is not A1000, and Apple's M1 is not NVIDIA's Tesla M.
_MAKERS = {
    "NVIDIA": r"nvidia|geforce|quadro|tesla|titan|jetson|dgx|rtx\d*[a-z]*|gtx\d*[a-z]*|"
    r"(k40|k80|m40|m60|p4|p40|p100|v100|t4|l4|l20|l40|a2|a10|a16|a30|a40|a100|a800|a[456]000|"
    r"h20|h100|h200|h800|b[123]00|gb[23]00|gh200)(s|g|x|sxm\d?|pcie|nvl)?",
    "AMD": r"amd|radeon|instinct|epyc|ryzen|mi\d{2,3}[a-z]?",
    "Intel": r"intel|xeon|gaudi\d?",
    "Google": r"google|tpu|tpuv\d+[a-z]*",
    "Apple": r"apple",
    "Arm": r"arm|neoverse",
}
_PATTERNS = {maker: re.compile(words, re.IGNORECASE) for maker, words in _MAKERS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """One group held out.

    Attributes
    ----------
    held_out : str
        Name of the group: a model, a device, ``"device / model"``, a vendor or ``"fold 3"``.
    train, test : ndarray of int
        Positions of the runs to fit and of those to evaluate, ascending. ``train`` is empty only
        if a device and a model are held out together and every run shares either.
    """

    held_out: str
    train: Indices
    test: Indices


def vendor_of(device: str) -> str | None:
    """Return the vendor of a device, from its name; None if the name does not show it.

    Parameters
    ----------
    device : str
        Short or full name: ``"H100"``, ``"NVIDIA A100-SXM4-40GB"``, ``"Intel Xeon 8380"``.

    Returns
    -------
    str or None
        A processor of unknown make (``"cpu"``) has the vendor ``"CPU"``. None also if the name
        has words of several vendors.

    Examples
    --------
    >>> [vendor_of(name) for name in ("MI210", "A100-40G", "AMD Radeon VII", "cpu", "accelerator")]
    ['AMD', 'NVIDIA', 'AMD', 'CPU', None]
    """
    listed = figures_of(device)
    if listed is not None:
        return listed.vendor
    words = re.findall(r"[A-Za-z0-9]+", device)
    makers = [maker for maker, pattern in _PATTERNS.items() if any(map(pattern.fullmatch, words))]
    named = [maker for maker in makers if maker.lower() in map(str.lower, words)]
    # The vendor's name takes precedence over a product's: "NVIDIA Titan", "AMD A10".
    chosen = named or makers
    if not chosen and any(word.lower() == "cpu" for word in words):
        return "CPU"
    return chosen[0] if len(chosen) == 1 else None


def vendors_of(device: Names, vendor: Names | None = None) -> Names:
    """Return the vendor of each run: from the key ``vendor`` if given, else from the device.

    Parameters
    ----------
    device : ndarray of str, shape (n,)
    vendor : ndarray of str, shape (n,), optional
        ``""`` or None where unknown.

    Returns
    -------
    ndarray of str, shape (n,)

    Raises
    ------
    InputError
        The vendor of a device is unknown; the message names the devices.

    Examples
    --------
    >>> vendors_of(np.array(["MI100", "V100"], dtype=object)).tolist()
    ['AMD', 'NVIDIA']
    """
    given = [None] * len(device) if vendor is None else [str(v) if v else None for v in vendor]
    known = {name: vendor_of(str(name)) for name in set(device.tolist())}
    vendors = [own or known[name] for own, name in zip(given, device.tolist(), strict=True)]
    unknown = dict.fromkeys(
        str(name) for name, maker in zip(device.tolist(), vendors, strict=True) if maker is None
    )
    if unknown:
        raise InputError(
            f"the vendor of {_count(len(unknown), 'device')} is unknown: "
            f"{describe_names([name or '(no name)' for name in unknown])}. Add a vendor "
            "column to the table."
        )
    return np.array(vendors, dtype=object)


def check_split(name: str) -> None:
    """Raise InputError if there is no split of that name.

    Examples
    --------
    >>> check_split("leave-one-out")
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: no split 'leave-one-out'. Did you mean \
'leave-model-out'? Splits: leave-model-out, leave-device-out, leave-model-and-device-out, \
leave-vendor-out, random
    """
    if name not in SPLITS:
        raise InputError(f"no split {name!r}. {offer('Splits', SPLITS, wanted=name)}")


def split(
    design: Design, name: str, *, vendor: Names | None = None, folds: int = 10, seed: int = 0
) -> tuple[Split, ...]:
    """Divide runs into those to fit and those to evaluate, once per held-out group.

    Every run is held out exactly once.

    Parameters
    ----------
    design : Design
        Its devices and models are the groups.
    name : str
        One of ``SPLITS``. ``"leave-model-and-device-out"`` holds out the runs of one model on one
        device and fits to those that share neither.
    vendor : ndarray of str, shape (n,), optional
        Of each run; by default from the names of the devices. Only for ``"leave-vendor-out"``.
    folds : int
        Only for ``"random"``: sizes of the folds differ by at most one run.
    seed : int
        Only for ``"random"``.

    Returns
    -------
    tuple of Split
        Ordered by the name of the group.

    Raises
    ------
    InputError
        The split does not exist, a run has no device or model, the vendor of a device is unknown,
        or there are too few groups; the message says how many are needed.

    Notes
    -----
    Misleads where groups are related: two sizes of one network, one device under two names. The fit
    then has seen the held-out group in part.

    Examples
    --------
    >>> device = np.array(["V100", "V100", "MI100"], dtype=object)
    >>> ones = np.ones(3)
    >>> design = Design(run=np.array(["a", "b", "c"], dtype=object), total=ones, measured=ones,
    ...                 x=np.empty((3, 0)), names=(), device=device,
    ...                 model=np.array(["x", "y", "x"], dtype=object),
    ...                 mode=device, unit="ms", task="composition")
    >>> [(s.held_out, s.train.tolist(), s.test.tolist())
    ...  for s in split(design, "leave-vendor-out")]
    [('AMD', [0, 1], [2]), ('NVIDIA', [2], [0, 1])]
    >>> [(s.held_out, s.train.tolist()) for s in split(design, "leave-model-and-device-out")]
    [('MI100 / x', [1]), ('V100 / x', []), ('V100 / y', [2])]
    """
    check_split(name)
    if name == "random":
        return _random(len(design), folds, seed)
    if name == "leave-vendor-out":
        return _leave_out(vendors_of(design.device, vendor), "vendor", name)
    if name == "leave-model-out":
        return _leave_out(_labels(design, "model", name), "model", name)
    if name == "leave-device-out":
        return _leave_out(_labels(design, "device", name), "device", name)
    return _leave_both_out(_labels(design, "device", name), _labels(design, "model", name), name)


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _labels(design: Design, column: str, name: str) -> Names:
    """Return the device or model of each run; raise where one is unknown."""
    groups: Names = getattr(design, column)
    missing = design.run[groups == ""].tolist()
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise InputError(
            f"{name} needs the {column} of every run; it is unknown for "
            f"{_count(len(missing), 'run')}: {', '.join(map(str, missing[:3]))}{more}. Add a "
            f"column '{column}'. If the table comes from the output of a tool, write it again: "
            f"errcomp ingest PATH --table kernels -o kernels.parquet with --set {column}=NAME, or "
            f"with --from-name '{{{column}}}_*' to take the {column} from file names"
        )
    return groups


def _insist(groups: Sequence[Any], word: str, name: str) -> None:
    if len(groups) < 2:
        only = f": {describe_names([str(group) for group in groups])}" if len(groups) else ""
        raise InputError(
            f"{name} needs runs of at least 2 {word}s, got {len(groups)}{only}. Add runs of "
            f"another {word}, or choose another split."
        )


def _leave_out(groups: Names, word: str, name: str) -> tuple[Split, ...]:
    labels = sorted(set(groups.tolist()))
    _insist(labels, word, name)
    return tuple(
        Split(str(label), np.flatnonzero(groups != label), np.flatnonzero(groups == label))
        for label in labels
    )


def _leave_both_out(device: Names, model: Names, name: str) -> tuple[Split, ...]:
    for groups, word in ((device, "device"), (model, "model")):
        _insist(sorted(set(groups.tolist())), word, name)
    parts = []
    for pair in sorted(set(zip(device.tolist(), model.tolist(), strict=True))):
        on, of = device == pair[0], model == pair[1]
        cell = " / ".join(map(str, pair))
        parts.append(Split(cell, np.flatnonzero(~on & ~of), np.flatnonzero(on & of)))
    return tuple(parts)


def _random(n: int, folds: int, seed: int) -> tuple[Split, ...]:
    if not 2 <= folds <= n:
        raise InputError(
            f"a random split into {folds} folds needs at least {max(folds, 2)} runs and 2 folds, "
            f"got {_count(n, 'run')}. Add runs, or use fewer folds."
        )
    order = np.random.default_rng(seed).permutation(n)
    fold = np.empty(n, dtype=np.int64)
    fold[order] = np.arange(n) % folds
    width = len(str(folds))
    return tuple(
        Split(f"fold {i + 1:0{width}d}", np.flatnonzero(fold != i), np.flatnonzero(fold == i))
        for i in range(folds)
    )
