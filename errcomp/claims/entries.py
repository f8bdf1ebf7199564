"""A file of claims: what it may hold, reading it, and what its entries leave open.

The registry holds one such file per tool, and users write their own. `json_schema` describes it.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from errcomp.claims.printed import parse_printed
from errcomp.claims.registry import (
    NOT_STATED,
    USER_METRICS,
    VERIFIABLE,
    Claim,
    Given,
    Kind,
    average_of,
    metric_of,
    user_claim,
)
from errcomp.codec import DIALECT, Field
from errcomp.errors import InputError, did_you_mean, offer

__all__ = [
    "SCHEMA",
    "check_claims",
    "check_entries",
    "claims_given",
    "json_schema",
    "read_claims",
]

SCHEMA = "errcomp.claims-of-a-tool/2"
#: Files are read whole: a list of figures is small.
_LARGEST = 16 * 2**20
#: Those of pairs (`errcomp.readers`), and what only claims are about.
LEVELS = ("kernel", "collective", "model", "request", "system", "basic block", "design point")
REFERENCES = ("hardware", "RTL simulation", "simulator", "unclear", "none")
#: Metric → its kind; a share may have any limit, and other names of `metric_of` are known, too.
METRICS: Mapping[str, Kind] = {
    **USER_METRICS,
    "MAPE": "error",
    "RMSE": "error",
    "accuracy": "error",
    "alignment": "error",
    "IPC correlation": "correlation",
    "none": "none",
}
_SHARE = re.compile(r"share within \d+(\.\d+)?%")
_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?(/\S*)?|doi:\S+|10\.\d{4,9}/\S+")


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of an entry: its type in JSON Schema, what it holds, and who must give it."""

    about: str
    read: Callable[[Field], Any]
    schema: Mapping[str, Any]
    needed: bool = False
    #: Whether an entry without it is listed by `check_claims`.
    wanted: bool = False


def _text(field: Field) -> str:
    if not isinstance(field.value, str) or not field.value.strip():
        field.refuse("a text")
    return field.value


def _one_of(names: Iterable[str]) -> Callable[[Field], str]:
    known = list(names)

    def read(field: Field) -> str:
        if (text := _text(field)) not in known:
            raise InputError(
                f"{field.path}: {text!r} is unknown. {offer('Known', known, wanted=text)}"
            )
        return text

    return read


def _url(field: Field) -> str:
    if not _URL.fullmatch(text := _text(field)):
        field.refuse('a URL ("https://…") or a DOI')
    return text


def _day(field: Field) -> str:
    text = _text(field)
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        field.refuse("a day, such as 2026-11-26")
    if day > dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=1):
        field.refuse("a day that is not in the future")
    return day.isoformat()


def _count(field: Field) -> int | str:
    value = field.value
    if value == NOT_STATED:
        return NOT_STATED
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        field.refuse(f'a whole number of at least 1, or "{NOT_STATED}"')
    return value


def _subset(field: Field) -> dict[str, str]:
    return {key: _text(field.at(key)) for key in field.object()}


def _metric(field: Field) -> str:
    text = _text(field)
    if text in METRICS or _SHARE.fullmatch(text):
        return text
    try:
        metric_of(text)
    except InputError:
        known = offer("Metrics", [*METRICS], wanted=text)
        raise InputError(f"{field.path}: unknown metric {text!r}. {known}") from None
    return text


def _average(field: Field) -> str:
    text = _text(field)
    try:
        return NOT_STATED if text == NOT_STATED else average_of(text)
    except InputError as error:
        raise InputError(f"{field.path}: {error}, {NOT_STATED}") from error


_TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
_WORDS = {"type": "string"}
_KEYS: Mapping[str, _Key] = {
    "printed": _Key(
        "the figure as printed, with its % sign; empty where the source gives none",
        lambda field: _text(field) if field.value != "" else "",
        _WORDS,
        needed=True,
    ),
    "metric": _Key(
        "its metric, as the source names it: MAPE, error, R2, share within 10%, …",
        _metric,
        _TEXT,
        needed=True,
    ),
    "source": _Key(
        "where it is printed: publication and section, table or figure", _text, _TEXT, needed=True
    ),
    "aggregation": _Key(
        f"how many errors became one figure: mean, median, geometric mean, weighted, total, or "
        f"{NOT_STATED}",
        _average,
        _TEXT,
        wanted=True,
    ),
    "level": _Key("what was predicted", _one_of(LEVELS), {"enum": [*LEVELS]}, wanted=True),
    "reference": _Key(
        "what the prediction was compared with",
        _one_of(REFERENCES),
        {"enum": [*REFERENCES]},
        wanted=True,
    ),
    "protocol": _Key(
        "how it was evaluated: same devices, held-out networks, held-out device, …",
        _text,
        _TEXT,
        wanted=True,
    ),
    "workloads": _Key("what ran", _text, _TEXT, wanted=True),
    "n": _Key(
        f'number of predictions behind the figure, or "{NOT_STATED}"',
        _count,
        {"anyOf": [{"type": "integer", "minimum": 1}, {"const": NOT_STATED}]},
        wanted=True,
    ),
    "url": _Key("where the source can be looked up: URL or DOI", _url, _TEXT, wanted=True),
    "checked": _Key(
        "day on which the entry was compared with the source",
        _day,
        {"type": "string", "format": "date"},
        wanted=True,
    ),
    "quantity": _Key("the quantity: latency, throughput, memory, …", _text, _TEXT),
    "unit": _Key("unit of an MAE, such as ms", _text, _TEXT),
    "scope": _Key("what the source says it holds for", _text, _TEXT),
    "subset": _Key(
        "the same as keys of a pairs table",
        _subset,
        {"type": "object", "additionalProperties": _TEXT},
    ),
    "kind": _Key(
        "kind of the metric; derived from it where absent",
        _one_of(("error", "measured", "correlation", "share", "none")),
        {"enum": ["error", "measured", "correlation", "share", "none"]},
    ),
    "verifiable": _Key(
        "whether anybody could check it", _one_of(VERIFIABLE), {"enum": [*VERIFIABLE]}
    ),
    "reason": _Key("why, in a sentence", _text, _TEXT),
    "claimed_by": _Key("whose claim it is; the tool's authors where absent", _text, _TEXT),
    "edition": _Key("edition of the survey that has it", _text, _TEXT),
    "survey_verdict": _Key("the survey's verdict", _text, _TEXT),
    "note": _Key("what a reader should also know", _text, _TEXT),
}
_OF_A_FILE = ("schema", "tool", "position", "also", "work", "pairs", "claims")
#: What makes a claim this claim: two entries that agree in all of it contradict or repeat.
_IDENTITY = ("quantity", "metric", "level", "reference", "scope", "workloads", "source")


def read_claims(path: str | os.PathLike[str]) -> tuple[Claim, ...]:
    """Read a file of claims about one tool.

    Parameters
    ----------
    path : str or Path
        A JSON file. `json_schema` describes it; ``docs/claims.md`` has an example.

    Returns
    -------
    tuple of Claim
        In the order of the file, at least one.

    Raises
    ------
    InputError
        The file cannot be read, a key is unknown, missing or of another type, the metric is
        unknown, a share or correlation exceeds 1, a figure has no unit, or two entries are about
        the same. The message names the file, the entry and the value.

    Examples
    --------
    >>> import json, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.json"
    >>> entry = {"printed": "2.3%", "metric": "MAPE", "source": "README, Accuracy"}
    >>> _ = path.write_text(json.dumps({"schema": SCHEMA, "tool": "mine", "claims": [entry]}))
    >>> read_claims(path)[0].shown
    '2.3 %'
    """
    return tuple(_claims(_document(Path(path)), str(path)))


def check_claims(path: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Read files of claims strictly, and list what their entries leave open.

    Parameters
    ----------
    path : str or Path, optional
        A file of claims; by default all files of the registry.

    Returns
    -------
    list of dict
        One per entry, with ``tool``, ``printed``, ``metric``, ``source`` and ``missing``: the keys
        that the entry should have and does not.

    Raises
    ------
    InputError
        As in `read_claims`.

    Examples
    --------
    >>> rows = check_claims()
    >>> sum("url" in row["missing"] for row in rows)
    0
    """
    rows = []
    for name, document in _of_registry() if path is None else [(str(path), _document(Path(path)))]:
        claims = _claims(document, name)
        for entry, claim in zip(document["claims"], claims, strict=True):
            wanted = [key for key, one in _KEYS.items() if one.wanted and key not in entry]
            # Without a figure there is nothing to average or to count.
            if claim.kind == "none":
                wanted = [key for key in wanted if key not in ("aggregation", "protocol", "n")]
            row = {key: getattr(claim, key) for key in ("tool", "printed", "metric", "source")}
            rows.append({**row, "missing": wanted})
    return rows


def check_entries(document: Mapping[str, Any], name: str) -> tuple[Claim, ...]:
    """Return the claims of a document that is not a file yet.

    Raises
    ------
    InputError
        As in `read_claims`; `name` stands for the file.

    Examples
    --------
    >>> entry = {"printed": "2.3%", "metric": "MAPE", "source": "README, Accuracy"}
    >>> document = {"schema": SCHEMA, "tool": "mine", "claims": [entry]}
    >>> [claim.printed for claim in check_entries(document, "table.csv")]
    ['2.3%']
    """
    return tuple(_claims(document, name))


def claims_given(claims: Given | Sequence[Given], *, unit: str | None = None) -> list[Claim]:
    """Return claims that are given as figures, files or `Claim`.

    Raises
    ------
    InputError
        As in `read_claims`; or an MAE is in another unit than the pairs.

    Examples
    --------
    >>> [claim.printed for claim in claims_given(["2.3%", "median 1%"])]
    ['2.3%', '1%']
    """
    found: list[Claim] = []
    for one in [claims] if isinstance(claims, str | os.PathLike | Claim) else claims:
        if isinstance(one, Claim):
            found.append(one)
        elif isinstance(one, os.PathLike) or one.casefold().endswith(".json"):
            found += read_claims(one)
        else:
            found.append(user_claim(one))
    for one in found:
        if one.unit and unit and one.unit != unit:
            raise InputError(
                f"the claim {one.printed} ({one.source}) is in {one.unit}, but the pairs are in "
                f"{unit}. Write the claim in {unit}."
            )
    return found


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of claims.

    Examples
    --------
    >>> json_schema()["properties"]["claims"]["items"]["required"]
    ['printed', 'metric', 'source']
    """
    entry = {
        "type": "object",
        "properties": {k: {**one.schema, "description": one.about} for k, one in _KEYS.items()},
        "required": [key for key, one in _KEYS.items() if one.needed],
        "additionalProperties": False,
    }
    work = {"title": _TEXT, "year": {"type": "integer"}, "url": _TEXT}
    pairs = {"where": _TEXT, "licence": _TEXT}
    return {
        "$schema": DIALECT,
        "title": SCHEMA,
        "type": "object",
        "properties": {
            "schema": {"const": SCHEMA},
            "tool": {**_TEXT, "description": "name of the tool"},
            "position": {"type": "integer", "description": "place in lists of the registry"},
            "also": {"type": "array", "items": _TEXT, "description": "other names of the tool"},
            "work": {
                "type": "object",
                "properties": work,
                "required": [*work],
                "additionalProperties": False,
                "description": "its publication",
            },
            "pairs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": pairs,
                    "required": [*pairs],
                    "additionalProperties": False,
                },
                "description": "where predictions and measurements are published",
            },
            "claims": {"type": "array", "items": entry, "minItems": 1},
        },
        "required": ["schema", "tool", "claims"],
        "additionalProperties": False,
    }


def _of_registry() -> Iterable[tuple[str, Mapping[str, Any]]]:
    for folder in sorted((files("errcomp.claims") / "tools").iterdir(), key=lambda one: one.name):
        for file in sorted(folder.iterdir(), key=lambda one: one.name):
            yield f"{folder.name}/{file.name}", json.loads(file.read_text(encoding="utf-8"))


def _document(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path}: larger than a file of claims can be (16 MiB)")
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(found, Mapping) or found.get("schema") != SCHEMA:
        raise InputError(
            f'{path}: not a file of claims. Its first key must be "schema": "{SCHEMA}"; then come '
            '"tool" and "claims", a list of figures with "printed", "metric" and "source".'
        )
    return found


def _claims(document: Mapping[str, Any], name: str) -> list[Claim]:
    """Return the claims of a document, whose file is called `name` in messages."""
    try:
        whole = Field(document, "", document)
        _known(whole, _OF_A_FILE)
        tool = _text(whole.at("tool"))
        _about(whole)
        found: list[Claim] = []
        for field in whole.at("claims").items(1):
            claim = _claim(field, tool)
            for i, other in enumerate(found):
                same = all(getattr(claim, key) == getattr(other, key) for key in _IDENTITY)
                if same and claim.subset == other.subset:
                    raise InputError(
                        f"{field.path} ({claim.printed}) and claims[{i}] ({other.printed}) "
                        'describe the same quantity. Keep one, or state the difference in "scope", '
                        '"subset" or "workloads".'
                    )
            found.append(claim)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return found


def _about(whole: Field) -> None:
    """Refuse other keys of the file than the schema has, apart from its claims."""
    if whole.has("position"):
        _whole(whole.at("position"))
    for name in whole.at("also").items() if whole.has("also") else ():
        _text(name)
    if whole.has("work"):
        work = whole.at("work")
        _known(work, ("title", "year", "url"))
        _text(work.at("title"))
        _whole(work.at("year"))
        _url(work.at("url"))
    for pairs in whole.at("pairs").items() if whole.has("pairs") else ():
        _known(pairs, ("where", "licence"))
        _text(pairs.at("where"))
        _text(pairs.at("licence"))


def _whole(field: Field) -> None:
    if isinstance(field.value, bool) or not isinstance(field.value, int):
        field.refuse("a whole number")


def _known(field: Field, known: Iterable[str]) -> None:
    for key in field.object():
        if key not in known:
            place = field.path or "the document"
            raise InputError(f"{place} has an unknown key {key!r}. {did_you_mean(key, known)}")


def _claim(field: Field, tool: str) -> Claim:
    _known(field, _KEYS)
    for key, one in _KEYS.items():
        if one.needed:
            field.at(key)
    given = {key: one.read(field.at(key)) for key, one in _KEYS.items() if field.has(key)}
    if _SHARE.fullmatch(given["metric"]):
        kind: Kind = "share"
    elif given["metric"] in METRICS:
        kind = METRICS[given["metric"]]
    else:
        given["metric"], average = metric_of(given["metric"])
        kind = METRICS[given["metric"]]
        given.setdefault("aggregation", average or NOT_STATED)
    given.setdefault("kind", kind)
    _figure(field, given)
    return Claim(
        **{
            "tool": tool,
            "quantity": "as in the pairs",
            "level": NOT_STATED,
            "reference": NOT_STATED,
            "verifiable": "verifiable",
            "reason": "The claim is assumed to be about the pairs it is compared with.",
            **given,
        }
    )


def _figure(field: Field, given: Mapping[str, Any]) -> None:
    """Refuse a figure that its metric cannot have."""
    printed, metric, kind = given["printed"], given["metric"], given["kind"]
    at = field.at("printed")
    if (printed == "") != (kind == "none"):
        at.refuse('a figure; the metric "none" stands for a source that gives none')
    if not printed:
        return
    try:
        figure = parse_printed(printed)
    except InputError as error:
        raise InputError(f"{at.path}: {error}") from error
    if kind in ("share", "correlation") and figure.low > 1:
        at.refuse(f"at most 1 or 100 %, because it is a {metric}")
    if kind == "error" and not figure.percent and figure.low > 1:
        raise InputError(
            f'{at.path}: {printed!r} has no unit. Write "{printed}%", or as a fraction, '
            f'"{(figure.value or figure.low) / 100:g}".'
        )
    if kind == "measured" and "unit" not in given:
        raise InputError(f'{field.path}: an MAE needs the unit of its data, e.g. "unit": "ms".')
