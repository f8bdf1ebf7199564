"""Model files: a fitted model in one file that lasts for years, needs only NumPy and runs no code.

A file ``*.errcomp`` is a ZIP archive. It has ``manifest.json`` (model, data of the fit, checksums
of all other entries), its checksum ``manifest.sha256``, arrays in NumPy's format and, for boosted
trees, the booster in xgboost's format. Nothing in it is pickled.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.modelfile.container import (
    LARGEST,
    check_bytes,
    decode,
    describe,
    encode,
    pack,
    unpack,
)
from errcomp.calibration.modelfile.content import (
    KINDS,
    FeatureRange,
    Member,
    ModelContent,
    plain_json,
    portable,
)
from errcomp.errors import InputError, describe_names
from errcomp.system.files import replacing
from errcomp.system.strict_json import loads
from errcomp.tables.frames import is_missing
from errcomp.tables.units import SECONDS

if TYPE_CHECKING:
    from errcomp.tables import Kernels

__all__ = [
    "KINDS",
    "FeatureRange",
    "Member",
    "ModelContent",
    "check_target",
    "check_unit",
    "fingerprint",
    "portable",
    "read_model",
    "write_model",
]

FORMAT = "errcomp-model"
#: Schema of files that are written.
SCHEMA = 1
_MANIFEST, _CHECKSUM = "manifest.json", "manifest.sha256"
_AGAIN = "Copy the file again, or write the model again."
#: Parsed JSON takes many times its length.
_LARGEST_MANIFEST = 16 * 2**20
_PLAIN = ("task", "unit", "fingerprint", "versions", "created", "extra")
_TUPLES = ("devices", "models", "modes", "levels", "conformal")
_KEYS = {"format", "schema", "features", "members", "entries", *_PLAIN, *_TUPLES}

_Stored = dict[str, NDArray[Any] | bytes]
_Step = Callable[[dict[str, Any], _Stored], tuple[dict[str, Any], _Stored]]

#: For each readable schema, the function that converts manifest and entries to the next schema;
#: None for the current one.
MIGRATIONS: dict[int, _Step | None] = {SCHEMA: None}


def write_model(path: str | PathLike[str], content: ModelContent) -> None:
    """Write a fitted model to one file.

    The same content gives the same bytes. The file appears under its name when it is complete and
    on disk, or not at all.

    Parameters
    ----------
    path : path
        By convention ``*.errcomp``. A model file of this name is replaced.
    content : ModelContent

    Raises
    ------
    InputError
        The content cannot be stored, the file would be larger than 256 MiB, a file of another
        kind has the name (it is not overwritten), or the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from errcomp.calibration.modelfile import FeatureRange, Member
    >>> content = ModelContent(
    ...     task="composition", unit="ms", features=(FeatureRange("matmul_share", "1", 0.2, 0.9),),
    ...     devices=("A100",), models=("bert",), modes=("inference",), levels=(0.5, 0.9),
    ...     members=(Member("line", "linear", {}, {"slope": np.ones(1)}),), fingerprint="0" * 64,
    ...     versions={"errcomp": "0.1.0"}, created="2025-01-31")
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "gpu.errcomp"
    >>> write_model(path, content)
    >>> read_model(path).devices
    ('A100',)
    """
    path = Path(path)
    data = pack(entries_of(content))
    if len(data) > LARGEST:
        raise InputError(
            f"{path}: the model has {len(data):,} bytes; a model file may have at most "
            f"{LARGEST:,}. Keep fewer posterior draws, or fewer trees."
        )
    # A file must only be written if it can be read.
    _parse(data)
    check_target(path)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_model(path: str | PathLike[str]) -> ModelContent:
    """Read a fitted model; needs only NumPy, and runs no code from the file.

    The manifest has the SHA-256 of every entry, and its own is stored beside it. Every other byte
    is known in advance. So a file with any change is refused.

    Parameters
    ----------
    path : path

    Returns
    -------
    ModelContent
        ``content.member(name).restore()`` is the fitted model.

    Raises
    ------
    InputError
        Not a model file; or it is truncated, changed, written by a newer errcomp, larger than
        256 MiB, or has an impossible value.

    Notes
    -----
    Checksums find damage. They do not prove who wrote a file: somebody else can write other numbers
    with matching checksums. Reading such a file does no harm, but its predictions may be wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from errcomp.calibration.modelfile import FeatureRange, Member
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "gpu.errcomp"
    >>> content = ModelContent(
    ...     task="composition",
    ...     unit="ms",
    ...     features=(FeatureRange("matmul_share", "1", 0.2, 0.9),),
    ...     devices=("A100", "V100"),
    ...     models=("bert",),
    ...     modes=("inference",),
    ...     levels=(0.5, 0.9),
    ...     members=(Member("line", "linear", {"loss": "huber"}, {"slope": np.ones(1)}),),
    ...     fingerprint="0" * 64,
    ...     versions={"errcomp": "0.1.0"},
    ...     created="2025-01-31",
    ... )
    >>> write_model(path, content)
    >>> read_model(path).member("line").arrays["slope"].tolist()
    [1.0]
    """
    path = Path(path)
    try:
        return _parse(_bytes_of(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _parse(data: bytes) -> ModelContent:
    entries = unpack(data)
    manifest = manifest_of(entries)
    schema = manifest["schema"]
    if schema > SCHEMA:
        raise InputError(
            f"was written by a newer errcomp (schema {schema}; this one reads up to {SCHEMA}). "
            "Upgrade errcomp."
        )
    if schema not in MIGRATIONS:
        raise InputError(f"has schema {schema}, which no version of errcomp has written. {_AGAIN}")
    check_bytes(data, entries)
    payload = stored(manifest, entries)
    while (step := MIGRATIONS[schema]) is not None:
        manifest, payload = step(manifest, payload)
        schema += 1
    return content_of(manifest, payload)


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a file, up to the size of a model."""
    try:
        if path.exists() and not path.is_file():
            raise InputError("is a folder or a special file. Name a model file.")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}). Check the path.") from error
    except ValueError as error:  # a zero byte in the name
        raise InputError(f"does not exist ({error}). Check the path.") from error
    if len(data) > LARGEST:
        raise InputError(f"is larger than {LARGEST >> 20} MiB, so it is not a model file.")
    return data


def check_target(path: str | PathLike[str]) -> None:
    """Refuse a path that cannot be written, before the model is fitted.

    Raises
    ------
    InputError
        The path is a folder, its folder does not exist, or it is a file other than a model file.
        A model file of a newer errcomp counts as one.

    Examples
    --------
    >>> check_target("no-such-folder/gpu.errcomp")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: no-such-folder/gpu.errcomp: the folder no-such-folder does not ...
    """
    path = Path(path)
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: a file name cannot have a zero byte. Name another file.")
    if path.is_dir():
        raise InputError(f"{path}: is a folder. Name a file.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist. Make it first.")
    if not os.path.lexists(path):
        return
    try:
        manifest_of(unpack(_bytes_of(path)))
    except InputError as error:
        raise InputError(
            f"{path}: exists and is not a readable model file, so it is not overwritten. "
            "Name another file, or remove it first."
        ) from error


def entries_of(content: ModelContent) -> dict[str, bytes]:
    """Return the entries of the file: manifest, its checksum, arrays and boosters.

    Raises
    ------
    InputError
        The content cannot be stored.
    """
    content.check()
    entries: dict[str, bytes] = {}
    index: dict[str, dict[str, Any]] = {}
    for member in content.members:
        for name, array in member.arrays.items():
            path = f"arrays/{member.name}/{name}.npy"
            entries[path] = encode(array)
            about = describe(array, finite=name not in member.non_finite)
            index[path] = _sums(entries[path]) | about
        if member.booster is not None:
            path = f"boosters/{member.name}.ubj"
            entries[path] = member.booster
            index[path] = _sums(member.booster)
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        **{name: getattr(content, name) for name in (*_PLAIN, *_TUPLES)},
        "features": [
            {"name": f.name, "unit": f.unit, "low": f.low, "high": f.high} for f in content.features
        ],
        "members": [{"name": m.name, "kind": m.kind, "meta": m.meta} for m in content.members],
        "entries": index,
    }
    plain = plain_json(manifest, "manifest")
    text = json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    entries[_MANIFEST] = text.encode()
    entries[_CHECKSUM] = hashlib.sha256(entries[_MANIFEST]).hexdigest().encode()
    return entries


def manifest_of(entries: Mapping[str, memoryview]) -> dict[str, Any]:
    """Return the manifest of a model file of any schema.

    Raises
    ------
    InputError
        It is missing, changed, not JSON, or of another format.
    """
    missing = [name for name in (_MANIFEST, _CHECKSUM) if name not in entries]
    if missing:
        raise InputError(
            f"is not a model file: it has no {describe_names(missing)}. Name a file that errcomp "
            "wrote."
        )
    if (length := len(entries[_MANIFEST])) > _LARGEST_MANIFEST:
        raise InputError(
            f"its manifest (the part in JSON) has {length:,} bytes; at most {_LARGEST_MANIFEST:,} "
            "are allowed. Store long lists of the model as NumPy arrays."
        )
    data = bytes(entries[_MANIFEST])
    if hashlib.sha256(data).hexdigest().encode() != entries[_CHECKSUM]:
        raise InputError(f"its manifest was changed: the checksum differs. {_AGAIN}")
    try:
        parsed = loads(data)
    except ValueError as error:
        raise InputError(f"its manifest is not valid JSON ({error}). {_AGAIN}") from error
    manifest = plain_json(parsed, "manifest")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        declared = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise InputError(
            f"is not a model file: its format is {repr(declared)[:80]}, not {FORMAT!r}. "
            "Name a file that errcomp wrote."
        )
    if type(manifest.get("schema")) is not int:
        raise InputError(f"its schema must be a whole number. {_AGAIN}")
    return manifest


def stored(manifest: dict[str, Any], entries: Mapping[str, memoryview]) -> _Stored:
    """Return the content of the entries by path, checked against the manifest.

    Raises
    ------
    InputError
        Entries are missing, not in the manifest, or differ from it in length, checksum, or type
        and shape of an array.
    """
    index = manifest.get("entries")
    if not isinstance(index, dict) or not all(isinstance(about, dict) for about in index.values()):
        raise InputError(f"its manifest has no index of its entries. {_AGAIN}")
    paths = set(entries) - {_MANIFEST, _CHECKSUM}
    for names, fault in ((set(index) - paths, "lacks"), (paths - set(index), "should not have")):
        if names:
            raise InputError(f"{fault} the entries {describe_names(sorted(names))}. {_AGAIN}")
    payload: _Stored = {}
    for path, about in index.items():
        sums = _sums(entries[path])
        if any(about.get(name) != value for name, value in sums.items()):
            raise InputError(f"entry {path!r} was changed: its checksum differs. {_AGAIN}")
        if path.endswith(".npy"):
            _check_keys(f"entry {path!r}", about, {*sums, "dtype", "shape", "finite"})
            try:
                payload[path] = decode(entries[path], about)
            except InputError as error:
                raise InputError(f"entry {path!r} {error} {_AGAIN}") from error
        else:
            _check_keys(f"entry {path!r}", about, set(sums))
            payload[path] = bytes(entries[path])
    return payload


def content_of(manifest: dict[str, Any], payload: _Stored) -> ModelContent:
    """Return the content of a file of the current schema.

    Raises
    ------
    InputError
        A value is missing, unknown, or impossible.
    """
    _check_keys("manifest", manifest, _KEYS)
    features = tuple(
        FeatureRange(**_checked(f"features[{i}]", part, {"name", "unit", "low", "high"}))
        for i, part in enumerate(_list("features", manifest["features"]))
    )
    parts = [
        _checked(f"members[{i}]", part, {"name", "kind", "meta"})
        for i, part in enumerate(_list("members", manifest["members"]))
    ]
    rest = dict(payload)
    members = tuple(_member(part, rest, manifest["entries"]) for part in parts)
    if rest:
        raise InputError(
            f"has entries that belong to none of its members: {describe_names(sorted(rest))}. "
            f"{_AGAIN}"
        )
    plain: dict[str, Any] = {name: manifest[name] for name in _PLAIN}
    tuples: dict[str, Any] = {name: tuple(_list(name, manifest[name])) for name in _TUPLES}
    content = ModelContent(features=features, members=members, **plain, **tuples)
    content.check()
    return content


def _member(part: dict[str, Any], rest: _Stored, index: dict[str, Any]) -> Member:
    """Take the entries of this member out of the rest."""
    before = f"arrays/{part['name']}/"
    paths = [path for path in rest if path.startswith(before) and path.endswith(".npy")]
    arrays: dict[str, Any] = {path[len(before) : -len(".npy")]: rest.pop(path) for path in paths}
    odd = tuple(name for name in arrays if not index[f"{before}{name}.npy"]["finite"])
    booster: Any = rest.pop(f"boosters/{part['name']}.ubj", None)
    return Member(**part, arrays=arrays, non_finite=odd, booster=booster)


def _sums(data: bytes | memoryview) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list, got {repr(value)[:80]}. {_AGAIN}")
    return value


def _checked(where: str, value: Any, keys: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object, got {repr(value)[:80]}. {_AGAIN}")
    _check_keys(where, value, keys)
    return value


def _check_keys(where: str, value: Mapping[str, Any], keys: set[str]) -> None:
    if odd := sorted(keys ^ set(value)):
        fault = "lacks" if odd[0] in keys else "should not have"
        raise InputError(f"{where} {fault} {odd[0]!r}. {_AGAIN}")


_NAMES = ("run", "kernel", "kernel_class", "device")
_TIMES = ("predicted", "measured", "run_measured")


def fingerprint(kernels: Kernels) -> str:
    r"""Return the SHA-256 of a table of kernels, independent of its source.

    Every row is written as JSON, sorted by column; 1 and 1.0 are the same number, and missing
    values are left out. The rows are sorted by their bytes, and hashed after a first line with the
    unit, the number of rows and the runs with failed kernels.

    Parameters
    ----------
    kernels : Kernels

    Returns
    -------
    str
        64 hexadecimal digits. The same for the same rows in another order, with the columns in
        another order, from another library or file format, on another platform.

    Notes
    -----
    It shows whether two tables are identical. The same times in another unit, or with names spelled
    differently, have another fingerprint. Misleads where numbers were rounded in a text file.

    Examples
    --------
    >>> from errcomp.tables import Kernels
    >>> table = Kernels({"run": ["a", "b"], "kernel": ["mm", "mm"], "measured": [1.0, 2.0]})
    >>> swapped = Kernels({"measured": [2, 1], "kernel": ["mm", "mm"], "run": ["b", "a"]})
    >>> fingerprint(table) == fingerprint(swapped), fingerprint(table)[:16]
    (True, '7d5bbd98371308a4')
    """
    columns = {name: getattr(kernels, name) for name in (*_NAMES, "count", *_TIMES)}
    columns |= {name: kernels.column(name) for name in kernels.keys if name not in columns}
    cells = [_cells(name, columns[name]) for name in sorted(columns)]
    rows = sorted(",".join(filter(None, row)).encode() for row in zip(*cells, strict=True))
    first = {"failed": sorted(kernels.incomplete), "n": kernels.n, "unit": kernels.unit}
    digest = hashlib.sha256(json.dumps(first, sort_keys=True).encode())
    for row in rows:
        digest.update(b"\n" + row)
    return digest.hexdigest()


def _cells(name: str, values: NDArray[Any]) -> list[str]:
    """Return ``"name":value`` for each row, ``""`` where it is missing."""
    known: dict[Any, str] = {}
    texts = []
    for value in values.tolist():
        # True equals 1 but must not share its text, so the cache has only some types as keys.
        key = (type(value), value) if isinstance(value, str | int | float | bool) else None
        text = known.get(key) if key else None
        if text is None:
            text = "" if _is_blank(value) else f"{json.dumps(name)}:{json.dumps(_plain(value))}"
            if key:
                known[key] = text
        texts.append(text)
    return texts


def _is_blank(value: Any) -> bool:
    return value == "" if isinstance(value, str) else is_missing(value)


def _plain(value: Any) -> Any:
    """Return a value with one form in JSON: whole floats as integers, dates as ISO 8601."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, datetime.datetime):
        # Libraries without dates store midnight.
        date = value.time() == datetime.time() and value.tzinfo is None
        return (value.date() if date else value).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in sorted(value.items())}
    return str(value)


# Units of the times that go into a model and come out.


def check_unit(of_model: str | None, given: str | None) -> float:
    r"""Return the factor that converts times in the given unit to the unit of the model.

    .. math:: t_\text{model} = f \, t_\text{given}, \qquad
              f = \frac{\text{seconds in one given unit}}{\text{seconds in one unit of the model}}

    Parameters
    ----------
    of_model : str or None
        Unit of the times in the fit; None where it was not stated.
    given : str or None
        Unit of the times to predict from.

    Returns
    -------
    float
        A power of ten; 1 where neither has a unit.

    Raises
    ------
    InputError
        Only one of them is stated, or one is not a unit of time.

    Notes
    -----
    Misleads where neither unit is stated: times in ms and in µs then look the same.

    Examples
    --------
    >>> check_unit("ms", "us"), check_unit("ms", "s")
    (0.001, 1000.0)
    """
    for unit in (of_model, given):
        if unit is not None and unit not in SECONDS:
            raise InputError(
                f"{unit!r} is not a known unit of time. Known: {', '.join(SECONDS)}. "
                "Convert the times, or state their unit."
            )
    if of_model is None and given is None:
        return 1.0
    if given is None:
        raise InputError(
            f"the model was fitted to times in {of_model}, but the given times have no unit. "
            "State their unit, for instance --unit ms (in Python unit='ms')."
        )
    if of_model is None:
        raise InputError(
            f"the given times are in {given}, but the model was fitted to times without a unit. "
            "Fit the model again and state the unit of its times."
        )
    # A quotient of rounded seconds is not a power of ten: 1e-3 / 1e-6 is above 1000.
    return 10.0 ** round(math.log10(SECONDS[given] / SECONDS[of_model]))
