"""The manifest of a model file: its content without the arrays, and an index of the arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from errcomp.calibration.modelfile.arrays import decode, describe, encode
from errcomp.calibration.modelfile.content import FeatureRange, Member, ModelContent, plain_json
from errcomp.errors import InputError, describe_names
from errcomp.system.strict_json import loads

__all__ = ["FORMAT", "SCHEMA", "content_of", "entries_of", "manifest_of", "stored"]

FORMAT = "errcomp-model"
#: Of the files written now.
SCHEMA = 1
_MANIFEST, _CHECKSUM = "manifest.json", "manifest.sha256"
_AGAIN = "Copy the file again, or write the model again."
#: JSON takes many times its length when it is parsed.
_LARGEST_MANIFEST = 16 * 2**20
_PLAIN = ("task", "unit", "fingerprint", "versions", "created", "extra")
_TUPLES = ("devices", "models", "modes", "levels", "conformal")
_KEYS = {"format", "schema", "features", "members", "entries", *_PLAIN, *_TUPLES}


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
    """Return the manifest of a model file of whatever schema.

    Raises
    ------
    InputError
        There is none, it was changed, is no JSON, or is that of something else.
    """
    missing = [name for name in (_MANIFEST, _CHECKSUM) if name not in entries]
    if missing:
        raise InputError(
            f"is no model file: it has no {describe_names(missing)}. Name one that errcomp wrote."
        )
    if (length := len(entries[_MANIFEST])) > _LARGEST_MANIFEST:
        raise InputError(
            f"its manifest has {length:,} bytes; that of a model has at most "
            f"{_LARGEST_MANIFEST:,}. Put long lists into arrays."
        )
    data = bytes(entries[_MANIFEST])
    if hashlib.sha256(data).hexdigest().encode() != entries[_CHECKSUM]:
        raise InputError(f"its manifest was changed: the checksum differs. {_AGAIN}")
    try:
        found = loads(data)
    except ValueError as error:
        raise InputError(f"its manifest is not valid JSON ({error}). {_AGAIN}") from error
    manifest = plain_json(found, "manifest")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        said = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise InputError(
            f"is no model file: its format is {repr(said)[:80]}, not {FORMAT!r}. "
            "Name a file that errcomp wrote."
        )
    if type(manifest.get("schema")) is not int:
        raise InputError(f"its schema must be a whole number. {_AGAIN}")
    return manifest


def stored(
    manifest: dict[str, Any], entries: Mapping[str, memoryview]
) -> dict[str, NDArray[Any] | bytes]:
    """Return what the entries hold, by path, each as the manifest says it has to be.

    Raises
    ------
    InputError
        Entries are missing, not in the manifest, of another length or checksum; or an array is
        not what the manifest says.
    """
    index = manifest.get("entries")
    if not isinstance(index, dict) or not all(isinstance(about, dict) for about in index.values()):
        raise InputError(f"its manifest has no index of its entries. {_AGAIN}")
    there = set(entries) - {_MANIFEST, _CHECKSUM}
    for names, what in ((set(index) - there, "lacks"), (there - set(index), "should not have")):
        if names:
            raise InputError(f"{what} the entries {describe_names(sorted(names))}. {_AGAIN}")
    found: dict[str, NDArray[Any] | bytes] = {}
    for path, about in index.items():
        sums = _sums(entries[path])
        if any(about.get(name) != value for name, value in sums.items()):
            raise InputError(f"entry {path!r} was changed: its checksum differs. {_AGAIN}")
        if path.endswith(".npy"):
            _check_keys(f"entry {path!r}", about, {*sums, "dtype", "shape", "finite"})
            try:
                found[path] = decode(entries[path], about)
            except InputError as error:
                raise InputError(f"entry {path!r} {error} {_AGAIN}") from error
        else:
            _check_keys(f"entry {path!r}", about, set(sums))
            found[path] = bytes(entries[path])
    return found


def content_of(manifest: dict[str, Any], found: dict[str, NDArray[Any] | bytes]) -> ModelContent:
    """Return the content of a file of the schema that is written now.

    Raises
    ------
    InputError
        Something is missing, not known, or cannot be.
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
    rest = dict(found)
    members = tuple(_member(part, rest, manifest["entries"]) for part in parts)
    if rest:
        raise InputError(f"entries belong to no member: {describe_names(sorted(rest))}. {_AGAIN}")
    plain: dict[str, Any] = {name: manifest[name] for name in _PLAIN}
    tuples: dict[str, Any] = {name: tuple(_list(name, manifest[name])) for name in _TUPLES}
    content = ModelContent(features=features, members=members, **plain, **tuples)
    content.check()
    return content


def _member(
    part: dict[str, Any], rest: dict[str, NDArray[Any] | bytes], index: dict[str, Any]
) -> Member:
    """Take what belongs to this member out of the rest."""
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
        what = "lacks" if odd[0] in keys else "should not have"
        raise InputError(f"{where} {what} {odd[0]!r}. {_AGAIN}")
