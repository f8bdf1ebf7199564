"""Model files whose content was changed, with checksums that fit: refused, or sound predictions.

Damage is found by the checksums, so other tests never get to what is checked behind them. Here a
value of the manifest or an array is changed, and the file packed again as errcomp packs it. Any
ending but `InputError` or bands that are finite and in order is a failure, and so is a warning.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import modelfile
from errcomp.calibration.fitted import CompositionModel
from errcomp.calibration.modelfile import read_model
from errcomp.calibration.modelfile.container import describe, encode, pack, unpack
from errcomp.calibration.storing import load_model, sound_numbers
from errcomp.errors import InputError
from errcomp.tables import Kernels

ARCHIVE = Path(__file__).resolve().parents[2] / "data" / "modelfile"
#: By name: a whole model, which predicts runs; models of one kind, which predict quantiles.
FILES = {path.stem: path for path in sorted(ARCHIVE.glob("v1/*.errcomp"))}
WHOLE = ("adapted", "whole")
#: A stack of what the whole model has, which the archived one lacks.
WEIGHTS = {regime: {"device": 0.25, "linear": 0.75} for regime in ("device", "global")}

Entries = dict[str, bytes]
Manifest = dict[str, Any]

NUMBERS = [0, -1, 1, 2, 2**31, 2**63 - 1, -(2**63), 0.5, -0.5, 1.5, 1e-300, 5e-324, 1e300, -1e300]
VALUES = [
    *NUMBERS,
    *(None, True, False, "", "A100", "linear", "ms", "1", "ö" * 300, "\x00", "nan"),
    *([], {}, [[]], [1e300] * 3, {"a": 1}, ["device"], [None]),
]
FLOATS = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 5e-324, 1e-300, 1e18, 1e300, -1e300]
WHOLE_NUMBERS = [0, 1, -1, 2, -2, 7, 10**6, 2**31 - 1, 2**62, -(2**63)]


@cache
def original(name: str) -> tuple[Entries, Manifest]:
    """Return the entries of an archived file without its manifest, and the manifest."""
    entries = {key: bytes(data) for key, data in unpack(FILES[name].read_bytes()).items()}
    manifest = json.loads(entries.pop("manifest.json"))
    if name == "whole":
        manifest["extra"]["estimators"].append("stack")
        manifest["extra"]["weights"] = WEIGHTS
    return entries, manifest


def packed(entries: Entries, manifest: Manifest) -> bytes:
    """Return the file with these entries, all checksums made to fit."""
    for path, data in entries.items():
        if path in manifest["entries"] and isinstance(manifest["entries"][path], dict):
            sums = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            manifest["entries"][path].update(sums)
    text = json.dumps(manifest).encode()
    checksum = hashlib.sha256(text).hexdigest().encode()
    return pack({**entries, "manifest.json": text, "manifest.sha256": checksum})


# --- what is changed -----------------------------------------------------------------------------


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value in the manifest, but to the index of the arrays."""
    if way:
        yield way
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if (*way, key) != ("entries",):
                yield from places(part, (*way, key))


def change_value(rng: random.Random, entries: Entries, manifest: Manifest) -> str:
    """Change, remove, add or swap a value of the manifest."""
    *way, last = rng.choice(list(places(manifest)))
    inside: Any = manifest
    for key in way:
        inside = inside[key]
    old = inside[last]
    how = rng.choice(["set", "set", "set", "scale", "remove", "add", "swap"])
    if how == "scale" and type(old) in (int, float):
        inside[last] = old * rng.choice([-1, 0.5, 2, 1e-9, 1e9, 1e200])
    elif how == "remove":
        del inside[last]
    elif how == "add" and isinstance(inside, list):
        inside.append(old)
    elif how == "add":
        inside[str(rng.choice(["more", "stack", "sum", ""]))] = old
    elif how == "swap" and isinstance(inside, list):
        other = rng.randrange(len(inside))
        inside[last], inside[other] = inside[other], old
    else:
        inside[last] = rng.choice(VALUES)
    return f"{how} {way} {last!r}: {str(old)[:60]}"


def change_array(rng: random.Random, entries: Entries, manifest: Manifest) -> str:
    """Change values, type or shape of an array, remove it or give it another name."""
    paths = sorted(path for path in entries if path.endswith(".npy"))
    if not paths:
        return "nothing left"
    path = rng.choice(paths)
    if rng.random() < 0.1:
        data, about = entries.pop(path), manifest["entries"].pop(path)
        if rng.random() < 0.5:
            other = rng.choice([*paths, path.replace(".npy", "_more.npy")])
            entries[other], manifest["entries"][other] = data, about
        return f"moved or removed {path}"
    array = loaded(entries[path])
    changed = rng.choice([change_cell, change_cell, change_cell, change_shape, change_type])
    array = changed(rng, array)
    entries[path] = encode(array)
    finite = manifest["entries"][path]["finite"]
    if array.dtype.kind == "f" and finite and not np.isfinite(array).all() and rng.random() < 0.7:
        finite = False
    manifest["entries"][path].update(describe(array, finite=False) | {"finite": finite})
    return f"{changed.__name__} {path}"


def loaded(data: bytes) -> np.ndarray[Any, Any]:
    """Return the array in a file of NumPy."""
    found: np.ndarray[Any, Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return found


def change_cell(rng: random.Random, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Set one value, a row or all values; or move them."""
    if not array.size:
        return array
    array = array.copy()
    how = rng.choice(["one", "one", "some", "all", "reversed"])
    flat = array.reshape(-1)
    if how == "reversed":
        flat[:] = flat[::-1].copy()
        return array
    start = rng.randrange(array.size)
    end = {"one": start + 1, "some": start + max(1, array.size // 3), "all": array.size}[how]
    at = slice(0 if how == "all" else start, end)
    if array.dtype.kind == "f":
        value: Any = rng.choice([*FLOATS, float(flat[start]) * rng.choice([-1.0, 1e6, 1e-6])])
        with np.errstate(over="ignore"):
            flat[at] = value
    elif array.dtype.kind == "i":
        low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        value = rng.choice([*WHOLE_NUMBERS, int(flat[start]) + 1, array.size, start])
        flat[at] = max(low, min(high, value))
    elif array.dtype.kind == "b":
        flat[at] = not flat[start]
    else:
        flat[at] = rng.choice(["", "A", str(flat[rng.randrange(array.size)])])
    return array


def change_shape(rng: random.Random, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Give the array another shape, or other lengths."""
    made: list[Callable[[], np.ndarray[Any, Any]]] = [
        lambda: array[:-1] if array.ndim else array,
        lambda: array[:0] if array.ndim else array,
        lambda: array[..., :-1] if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array.reshape(-1),
        lambda: array.T,
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.reshape(-1)[:1].reshape(()) if array.size else array,
    ]
    return np.ascontiguousarray(rng.choice(made)())


def change_type(rng: random.Random, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Give the array another type."""
    types = ["f8", "f4", "i8", "i4", "i1", "?", "U3"]
    if array.dtype.kind == "U":
        return np.zeros(array.shape, rng.choice(types[:-1]))
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(types))


# --- what becomes of it --------------------------------------------------------------------------


@cache
def expected(name: str) -> dict[str, Any]:
    """Return what the archived file was given, and what it predicted."""
    found: dict[str, Any] = json.loads(FILES[name].with_suffix(".json").read_text(encoding="utf-8"))
    return found


@cache
def kernels() -> Kernels:
    """Return runs to predict."""
    return Kernels(expected("whole")["kernels"], unit="ms")


def predict_runs() -> None:
    """Load the whole model, show it, and predict runs with each of its estimators."""
    model = load_model("gpu.errcomp")
    json.loads(model.to_json())
    assert str(model)
    model.usable(kernels())
    for estimator in model.estimators:
        check_runs(model, estimator)


def check_runs(model: CompositionModel, estimator: str) -> None:
    """Predict runs: finite and positive, in bands that are in order and within each other."""
    found = model.predict(kernels(), estimator=estimator)
    json.loads(found.to_json())
    assert str(found)
    ends = np.column_stack([found.low[:, ::-1], found.predicted, found.high])
    assert np.isfinite(ends).all(), ends
    assert (ends > 0).all(), ends
    assert (np.diff(ends) >= 0).all(), ends
    assert np.isfinite(found.quantiles).all()
    assert (np.diff(found.quantiles) >= -1e-9 * found.quantiles[:, 1:]).all(), found.quantiles
    assert all(np.isfinite(part).all() for part in found.parts.values())


def predict_quantiles(name: str) -> None:
    """Load a file with a model of one kind; its quantiles are finite and ascend."""
    given = expected(name)
    device = np.array(given["device"], dtype=object)
    for member in read_model("gpu.errcomp").members:
        restored = member.restore()
        with sound_numbers():
            found = restored.predict_quantiles(np.array(given["x"]), given["q"], device=device)
            # As a loaded model does.
            if not np.isfinite(found).all():
                raise FloatingPointError("no numbers")
        assert found.shape == (len(given["x"]), len(given["q"]))
        assert (np.diff(found) >= 0).all(), found


def ending(name: str, data: bytes) -> str:
    """Return what becomes of a file with these bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modelfile, "_bytes_of", lambda _: data)
        try:
            predict_runs() if name in WHOLE else predict_quantiles(name)
        except InputError as error:
            return "refused" if "\n" not in str(error) else "refused in several lines"
    return "predicts"


def one(name: str, seed: int, number: int) -> str:
    """Change a file once or twice, and return what becomes of it."""
    rng = random.Random(f"{seed} {number}")
    entries, manifest = original(name)
    entries, manifest = dict(entries), json.loads(json.dumps(manifest))
    said = [
        rng.choice([change_value, change_array])(rng, entries, manifest)
        for _ in range(rng.choice([1, 1, 1, 2]))
    ]
    try:
        return ending(name, packed(entries, manifest))
    except Exception as error:
        raise AssertionError(f"change {number} of seed {seed}: {'; '.join(said)}") from error


def fuzzed(name: str, seed: int, times: int) -> set[str]:
    """Change the file many times; return the endings."""
    return {one(name, seed, number) for number in range(times)}


@pytest.mark.parametrize("name", FILES)
def test_the_originals_predict(name: str) -> None:
    entries, manifest = original(name)
    assert ending(name, packed(dict(entries), json.loads(json.dumps(manifest)))) == "predicts"


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_changed_content_is_refused_or_predicts_sound_bands(name: str) -> None:
    # Both happen, so the changes are neither all harmless nor all nonsense.
    assert fuzzed(name, seed=0, times=100) == {"refused", "predicts"}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_thousands_of_changes(name: str) -> None:
    assert fuzzed(name, seed=1, times=2000) == {"refused", "predicts"}
