"""Registry of published claims: each tool's stated accuracy, and whether it can be checked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import ClassVar, Literal, TypeAlias

from errcomp.claims.printed import Printed, in_percent, parse_printed
from errcomp.codec import Derived, Document, Field
from errcomp.errors import InputError, did_you_mean, offer

__all__ = [
    "USER_METRICS",
    "VERIFIABLE",
    "Claim",
    "Work",
    "claims",
    "claims_about",
    "claims_of",
    "find",
    "tools",
    "user_claim",
    "work_of",
]

#: The source was read and does not say it.
NOT_STATED = "not stated"
Kind = Literal["error", "measured", "correlation", "share", "none"]
Verifiable = Literal["verifiable", "no output", "no hardware", "no pairs"]

#: What the four words mean.
VERIFIABLE: Mapping[str, str] = {
    "verifiable": "the predictions and measurements that the claim is about are published",
    "no output": "the tool no longer produces predictions",
    "no hardware": "predictions can be produced, but the hardware to measure is not available",
    "no pairs": "predictions and measurements have not been published together",
}

#: Metrics that say how much is right; the error is the difference to 100 %.
_COMPLEMENTS = ("accuracy", "alignment")


@dataclass(frozen=True, slots=True)
class Claim(Document):
    """One published figure and what its source states about it, or leaves open.

    Attributes
    ----------
    tool : str
        Name of the tool, as in `tools`.
    quantity : str
        What was predicted.
    printed : str
        The figure as printed; empty where the source gives none.
    metric : str
        As the source names it: MAPE, error, RMSE, accuracy, Kendall tau, share within 10%, …
    kind : {"error", "measured", "correlation", "share", "none"}
        Kind of metric: a relative error, an error in the unit of the data, and so on. Figures of
        different kinds cannot be compared.
    level : str
        kernel, basic block, model, collective, system, or design point.
    reference : str
        What the prediction was compared with: hardware, RTL simulation, simulator, unclear, none.
    aggregation : str
        How many errors became one figure; ``"not stated"`` where the source does not say.
    workloads, scope : str
        What the figure is about, and what its source says it holds for.
    subset : mapping of str to str
        The same as keys of a pairs table, e.g. ``{"device": "V100", "mode": "inference"}``; empty
        where the source claims it for the tool as a whole or does not say.
    source, edition, claimed_by : str
        Where the figure was published, in which edition of the survey, and who claims it.
    verifiable : {"verifiable", "no output", "no hardware", "no pairs"}
        Whether anybody could check it; `VERIFIABLE` says what each word means.
    reason : str
        Why, in a sentence.
    survey_verdict : str
        The survey's own verdict, unchecked; empty where it gives none.
    note : str
        What a reader should also know.
    url : str
        Where the figure is printed: a DOI, a paper, or a repository.
    checked : str
        Day on which the entry was compared with the text at `url`; empty if only with the survey.
    protocol : str
        How it was evaluated: on which devices and networks, held out or not.
    n : int or str
        Number of predictions behind the figure, or ``"not stated"``.
    unit : str
        Unit of an MAE; empty for other metrics.

    Examples
    --------
    >>> claim = find(tool="neusight", device="V100", mode="inference")[0]
    >>> claim.printed, claim.interval, claim.aggregation
    ('5.2%', (0.0515, 0.0525), 'not stated')
    """

    KEYS: ClassVar = (
        *("tool", "quantity", "printed", "metric", "kind", "level", "reference", "verifiable"),
        *("reason", "aggregation", "workloads", "scope", "subset", "source", "edition"),
        *("claimed_by", "survey_verdict", "note"),
        Derived("low", float | None, lambda claim: claim.low),
        Derived("high", float | None, lambda claim: claim.high),
    )

    tool: str
    quantity: str
    printed: str
    metric: str
    kind: Kind
    level: str
    reference: str
    verifiable: Verifiable
    reason: str
    aggregation: str = NOT_STATED
    workloads: str = NOT_STATED
    scope: str = NOT_STATED
    subset: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    edition: str = ""
    claimed_by: str = "the tool's authors"
    survey_verdict: str = ""
    note: str = ""
    url: str = ""
    checked: str = ""
    protocol: str = NOT_STATED
    n: int | str = NOT_STATED
    unit: str = ""

    def _agree(self, field: Field) -> None:
        """Refuse a figure that cannot be read."""
        try:
            self.interval  # noqa: B018 - read once, here, where its place is known
        except InputError as error:
            raise InputError(f"{field.at('printed').path}: {error}") from error

    @property
    def figure(self) -> Printed | None:
        """The figure as an error (or a share, a correlation); None where the source gives none.

        An accuracy or alignment becomes an error: 97.6 % becomes 2.4 %.
        """
        if not self.printed:
            return None
        figure = parse_printed(self.printed)
        return figure.complement() if self.metric in _COMPLEMENTS else figure

    @property
    def interval(self) -> tuple[float, float] | None:
        """Ends of the fractions that would be printed like the figure; None without a figure.

        `contains` knows which end belongs to it.
        """
        return None if (figure := self.figure) is None else figure.ends

    def contains(self, value: float) -> bool:
        """Say whether this number, a fraction, would be printed like the claim.

        Examples
        --------
        >>> user_claim("≤5%").contains(0.05), user_claim("<5%").contains(0.05)
        (True, False)
        """
        return (figure := self.figure) is not None and figure.contains(value)

    @property
    def low(self) -> float | None:
        """Lower end of `interval`."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """Upper end of `interval`."""
        return None if self.interval is None else self.interval[1]

    @property
    def central(self) -> float | None:
        """The claimed fraction: the figure itself, or the upper end of a bound or range."""
        if self.interval is None:
            return None
        low, high = self.interval
        if parse_printed(self.printed).kind != "value":
            return high
        return round((low + high) / 2, 12)

    @property
    def shown(self) -> str:
        """The figure as results print it: an error or a share in per cent."""
        return in_percent(self.printed) if self.kind in ("error", "share") else self.printed


#: A figure as text, a file of claims, or a claim.
Given: TypeAlias = str | os.PathLike[str] | Claim


@dataclass(frozen=True, slots=True)
class Work:
    """The publication of a tool: title, year, and a link to look it up."""

    title: str
    year: int
    url: str


@cache
def _registry() -> tuple[tuple[Claim, ...], Mapping[str, str], Mapping[str, Work]]:
    """Read the files of the tools: the claims, other names of tools, and their publications."""
    texts = [
        file.read_text(encoding="utf-8")
        for folder in (files("errcomp.claims") / "tools").iterdir()
        for file in folder.iterdir()
    ]
    known = sorted(map(json.loads, texts), key=lambda one: int(one["position"]))
    entries = tuple(Claim(tool=one["tool"], **entry) for one in known for entry in one["claims"])
    names = {plain(name): one["tool"] for one in known for name in (one["tool"], *one["also"])}
    return entries, names, {one["tool"]: Work(**one["work"]) for one in known}


def work_of(tool: str) -> Work:
    """Return the publication of a tool in the registry.

    Examples
    --------
    >>> work_of("Timeloop").year, work_of("Timeloop").url
    (2019, 'https://doi.org/10.1109/ISPASS.2019.00042')
    """
    _, names, works = _registry()
    return works[names[plain(tool)]]


def claims() -> tuple[Claim, ...]:
    """Return every claim known, in the order of the survey's table of tools.

    Examples
    --------
    >>> len({claim.tool for claim in claims()})
    57
    """
    return _registry()[0]


def tools() -> tuple[str, ...]:
    """Return the names of the tools with at least one entry, in the order of the survey's table.

    Examples
    --------
    >>> tools()[:3]
    ('Timeloop', 'MAESTRO', 'Sparseloop')
    """
    return tuple(dict.fromkeys(claim.tool for claim in claims()))


def claims_of(tool: str) -> tuple[Claim, ...]:
    """Return the claims about one tool; nothing for a tool that is not in the registry.

    Case and punctuation do not matter, and ``micro`` is Li et al., as the NeuSight artifact has it.
    Use `find` where an unknown tool is a mistake.

    Examples
    --------
    >>> [claim.printed for claim in claims_of("micro")]
    ['7%', '15.2%', '30.8%']
    >>> claims_of("my own predictor")
    ()
    """
    entries, names, _ = _registry()
    name = names.get(plain(tool))
    return tuple(claim for claim in entries if claim.tool == name)


def claims_about(claims: Sequence[Claim], tools: Sequence[str]) -> Mapping[str, tuple[Claim, ...]]:
    """Return which claims are about each of the tools in a table.

    The claims on a single tool are about this one, whatever they call it.

    Raises
    ------
    InputError
        There are several tools, and no claim is about any of them.

    Examples
    --------
    >>> a, b = (user_claim("5%", tool=name) for name in ("A", "B"))
    >>> {tool: [one.tool for one in some] for tool, some in claims_about([a], ["a", "b"]).items()}
    {'a': ['A'], 'b': []}
    >>> [claim.tool for claim in claims_about([a, b], ["mine"])["mine"]]
    ['A', 'B']
    """
    if len(tools) == 1:
        return {tools[0]: tuple(claims)}
    found = {
        tool: tuple(one for one in claims if not one.tool or plain(one.tool) == plain(tool))
        for tool in tools
    }
    if claims and not any(found.values()):
        raise InputError(
            f"the claims are about {claims[0].tool}, but the tools in the table are "
            f"{', '.join(tools)}. Name the tool of the claims as in the table, or choose one tool "
            "(--tool, in Python tool=)."
        )
    return found


def find(
    tool: str | None = None, *, device: str | None = None, mode: str | None = None
) -> tuple[Claim, ...]:
    """Return the claims about a tool, a device, a mode, or a combination of them.

    Parameters
    ----------
    tool : str, optional
        Name of a tool; all tools by default.
    device, mode : str, optional
        Only claims about this device or mode.

    Returns
    -------
    tuple of Claim
        Never empty.

    Raises
    ------
    InputError
        The tool is not in the registry (the message lists the closest names), or has no claim
        about that device or mode (the message lists those with a claim).

    Examples
    --------
    >>> [claim.printed for claim in find("NeuSight", device="H100")]
    ['2.3%', '4.1%']
    >>> find("neusigth")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: no claim of 'neusigth' is known. Did you mean 'NeuSight'? Tools \
with a claim: Timeloop, ...
    """
    found = claims() if tool is None else claims_of(tool)
    if not found:
        known_tools = offer("Tools with a claim", tools(), wanted=str(tool))
        raise InputError(f"no claim of {tool!r} is known. {known_tools}")
    for key, wanted in (("device", device), ("mode", mode)):
        if wanted is None:
            continue
        known = sorted({claim.subset[key] for claim in found if key in claim.subset})
        found = tuple(c for c in found if plain(c.subset.get(key, "")) == plain(wanted))
        if not found:
            raise InputError(
                f"no claim{f' of {tool}' if tool else ''} is about {key} {wanted!r}. "
                f"{did_you_mean(wanted, known)}"
                f"Claims exist for: {', '.join(known) or f'no {key}'}."
            )
    return found


#: Metrics that the user can name for a claim, and the kind of each.
USER_METRICS: Mapping[str, Kind] = {
    "error": "error",
    "MAE": "measured",
    "correlation": "correlation",
    "R2": "correlation",
    "Kendall tau": "correlation",
    "share within 10%": "share",
}


#: How people name a metric, in lower case → the metric, and the average that the name states.
_METRIC_NAMES: Mapping[str, tuple[str, str | None]] = {
    **dict.fromkeys(("error", "relative error", "absolute error", "ape"), ("error", None)),
    **dict.fromkeys(("mape", "mean error", "mean relative error", "mre"), ("error", "mean")),
    "mean absolute percentage error": ("error", "mean"),
    **dict.fromkeys(("mdape", "medape", "median ape", "median error"), ("error", "median")),
    **dict.fromkeys(("gmape", "geomean error"), ("error", "geometric mean")),
    **dict.fromkeys(("wape", "wmape"), ("error", "weighted")),
    **dict.fromkeys(("mae", "mean absolute error"), ("MAE", None)),
    **dict.fromkeys(("r2", "r²", "r^2", "r squared"), ("R2", None)),
    **dict.fromkeys(("correlation", "pearson", "pearson correlation"), ("correlation", None)),
    **dict.fromkeys(("kendall tau", "kendall", "tau"), ("Kendall tau", None)),
    "share within 10%": ("share within 10%", None),
    "within 10": ("share within 10%", None),
}
#: How people name an average, in lower case → the aggregation of a claim.
_AVERAGES: Mapping[str, str] = {
    **dict.fromkeys(("mean", "average", "avg"), "mean"),
    "median": "median",
    **dict.fromkeys(("geometric mean", "geomean", "gmean"), "geometric mean"),
    **dict.fromkeys(("weighted", "weighted mean"), "weighted"),
    **dict.fromkeys(("total", "sum"), "total"),
}


def metric_of(name: str) -> tuple[str, str | None]:
    """Return the metric that a name stands for, and the average that the name states, if any.

    Raises
    ------
    InputError
        No metric of a claim has this name.

    Examples
    --------
    >>> metric_of("mape"), metric_of("Kendall-tau"), metric_of("R2")
    (('error', 'mean'), ('Kendall tau', None), ('R2', None))
    """
    found = _METRIC_NAMES.get(name.casefold()) or _METRIC_NAMES.get(_spaced(name))
    if found is None:
        known = offer("Metrics", list(USER_METRICS), wanted=name)
        raise InputError(f"a claim cannot have the metric {name!r}. {known}")
    return found


def average_of(name: str) -> str:
    """Return the aggregation that a name stands for.

    Raises
    ------
    InputError
        No average has this name.

    Examples
    --------
    >>> average_of("geomean"), average_of("geometric-mean"), average_of("Average")
    ('geometric mean', 'geometric mean', 'mean')
    """
    if (found := _AVERAGES.get(_spaced(name))) is None:
        known = offer("Averages", list(dict.fromkeys(_AVERAGES.values())), wanted=name)
        raise InputError(f"no average is called {name!r}. {known}")
    return found


def _spaced(name: str) -> str:
    return " ".join(name.casefold().replace("-", " ").replace("_", " ").split())


def _in_words(text: str) -> tuple[str, str | None, str | None]:
    """Split "MAPE 2.3 %" into the figure, the metric and the average that its words name."""
    metric = average = None
    for names in (_METRIC_NAMES, _AVERAGES):
        for name in sorted(names, key=len, reverse=True):
            rest = re.sub(rf"(?<![\w²]){re.escape(name)}(?![\w²^])", " ", text, flags=re.I)
            if rest == text:
                continue
            if names is _METRIC_NAMES:
                metric, average = _METRIC_NAMES[name]
            else:
                average = average or _AVERAGES[name]
            text = rest
            break
    if metric or average:
        text = re.sub(
            r"(?<!\w)(of|is|an?|the|absolute|relative|percentage|errors?)(?!\w)", " ", text
        )
        text = text.replace("=", " ").replace(":", " ").strip()
    return text, metric, average


def user_claim(
    printed: str, *, aggregation: str | None = None, metric: str = "error", tool: str = ""
) -> Claim:
    """Make the user's own claim from a figure, to compare with pairs.

    Parameters
    ----------
    printed : str
        The figure as printed, e.g. ``"2.3%"`` or ``"<5%"``, with or without its metric and average:
        ``"MAPE 2.3 %"``, ``"median error < 5%"``, ``"R2 = 0.97"``.
    aggregation : str, optional
        How it was aggregated, if its source says it: mean, median, geometric mean (or geomean),
        weighted, or total (the error of a sum, or the difference of two means).
    metric : {"error", "MAE", "correlation", "R2", "Kendall tau", "share within 10%"}
        The metric; also ``"mape"``, ``"r2"`` and other common names. Only errors have an
        aggregation. An MAE is a number in the unit of the pairs; an "MAE" in per cent is a MAPE,
        and taken as such. A correlation is Pearson's.
    tool : str
        Whose figure it is.

    Returns
    -------
    Claim
        Without a stated level: it is compared with whatever pairs it is given.

    Raises
    ------
    InputError
        The text is not one figure, the metric is unknown, or an aggregation is given for a metric
        that is not an error.

    Examples
    --------
    >>> user_claim("2.3%", aggregation="mean").interval
    (0.0225, 0.0235)
    >>> claim = user_claim("MAPE 2.3 %")
    >>> claim.printed, claim.metric, claim.aggregation
    ('2.3 %', 'error', 'mean')
    """
    printed, named, average = _in_words(printed)
    metric, stated = metric_of(named if named and metric == "error" else metric)
    if aggregation is not None:
        aggregation = average_of(aggregation)
    for other in (average, stated):
        if other is not None and aggregation not in (None, other):
            raise InputError(
                f"the claim names the average {other!r}, got aggregation={aggregation!r}. Leave "
                "one of them out."
            )
        aggregation = aggregation or other
    if aggregation is not None and metric != "error":
        raise InputError(
            f"the metric {metric} is not an error, so it has no aggregation, got "
            f"aggregation={aggregation!r}. Leave it out."
        )
    figure = parse_printed(printed)
    if (figure.value or figure.high) < 0 or figure.high <= 0:
        raise InputError(
            f"the claim {printed!r} is not positive. Write the size of the error, without a sign."
        )
    kind = USER_METRICS[metric]
    if metric == "MAE" and figure.percent:
        kind = "error"
    if not figure.percent and figure.low > 1 and kind != "measured":
        raise InputError(
            f"the claim {printed!r} has no % sign, and as a fraction it is more than 100 %. "
            f'Write "{printed}%", or "{100 * (figure.value or figure.low):g}%" if you mean that.'
        )
    return Claim(
        tool=tool,
        quantity="as in the pairs",
        printed=printed,
        metric=metric,
        kind=kind,
        level="not stated",
        reference="not stated",
        verifiable="verifiable",
        reason="The claim is assumed to be about these pairs.",
        aggregation=aggregation or ("mean" if metric == "MAE" else "not stated"),
        source="given by the user",
        claimed_by="the user",
    )


def plain(name: str) -> str:
    """Return a name without case and punctuation."""
    return "".join(c for c in name.casefold() if c.isalnum())
