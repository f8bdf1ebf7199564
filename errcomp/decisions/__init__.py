"""Which alternative is faster, how often choosing by predictions is wrong, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.decisions.comparing import Comparison
    from errcomp.decisions.kinds import DecisionKinds
    from errcomp.decisions.results import Decisions
    from errcomp.tables import Kernels, Pairs
    from errcomp.tables.choices import Choices

__all__ = ["compare", "compare_draws", "compare_kinds"]


def compare(
    table: Any,
    between: str | Sequence[str],
    *,
    within: str | Sequence[str] | None = None,
    errors: Any = None,
    evaluate: bool | None = None,
    tool: str | None = None,
    cluster: str | None = None,
    per: str | None = None,
    price: str | None = None,
    at_most: float | str | None = None,
    at_least: float | str | None = None,
    higher: bool = False,
    level: float = 0.9,
    seed: int = 0,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
) -> Comparison | Decisions:
    r"""Compare alternatives that were predicted under equal conditions.

    With `evaluate`, choices by the predictions are compared with the measurements: the
    share of comparisons that were right, the regret (measured time of the chosen alternative over
    that of the best, minus 1), and whether "A is faster with probability 95 %" came true in 95 %.
    Otherwise each comparison gets its probability.

    The probability comes from the errors of measured pairs of the same predictor: what all
    alternatives share under a condition cancels, what an alternative shares over conditions does
    not (docs/decisions.md has the model). Where all rows are measured, both alternatives of a
    comparison are left out of the error model (with fewer than four alternatives: the group of the
    condition).

    Parameters
    ----------
    table : path, dataframe, mapping of columns, Pairs, Kernels or name of a built-in table
        With the columns predicted and measured. Rows without a measurement are the choices to make;
        the others teach the error model. Of `Kernels`, the runs that they add up to are compared.
    between : str or sequence of str
        Key whose values are the alternatives, e.g. ``"device"``.
    within : str or sequence of str, optional
        Keys that must be equal; by default those that say what was run.
    errors : like `table`, optional
        More measured pairs of the same predictor, with the same keys.
    evaluate : bool, optional
        By default, whether every row is measured.
    tool : str, optional
        By default the tool that the table is about.
    cluster : str, optional
        Condition whose values are taken to be independent; ``"none"``: each condition. By default
        the model, or another condition with several values.
    per : str, optional
        Column that times are divided by: with ``per="batch"``, batch sizes are compared by the time
        of one item.
    price : str, optional
        Column of the price of a unit of time, such as the rent of an hour or the power: choices are
        then about costs, and each alternative gets the probability that no other is as fast at as
        low a cost. Rows that only teach the error model need no price.
    at_most : float or str, optional
        Limit of what is predicted (not of the cost), in the unit of the table or as a text such as
        ``"200 ms"``. The alternatives that keep it with a probability of `level` are chosen from.
    at_least : float or str, optional
        The same for a value of which more is better.
    higher : bool
        More is better, as of a throughput; always with `at_least`.
    level : float
        A comparison with a lower probability is too close to call.
    seed : int
    predicted, measured, unit : str, optional
        Columns of the table, and their unit.

    Returns
    -------
    Decisions or Comparison

    Raises
    ------
    InputError
        The table cannot be used, no alternatives were predicted under equal conditions, or too few
        were measured.

    Notes
    -----
    Lower is better, if not `higher`. In simulations with 4 to 12 alternatives, normal and t3
    errors, probabilities were close to the share that was right, as long as true differences are
    larger than errors. With differences as large as errors, comparisons at 95 % were wrong more
    often than 5 % (tables in docs/decisions.md).

    Warns
    -----
    GuessedWarning
        Keys were added to `within`, because an alternative has several rows under a condition.

    Examples
    --------
    >>> import errcomp as ec
    >>> found = ec.compare("neusight", between="device")
    >>> found
    Decisions(96 % of comparisons right, n=382)
    """
    from errcomp.decisions import comparing, evaluating
    from errcomp.tables.choices import choices_of

    if not 0.5 < level < 1:
        raise InputError(f"level must be between 0.5 and 1, got {level!r}. 90 % is 0.9.")
    pairs = _pairs(table, predicted=predicted, measured=measured, unit=unit)
    chosen = pairs.of_tool(tool)
    if len(chosen.tools) > 1:
        raise InputError(
            f"{pairs.prefix}the table has several tools: {', '.join(chosen.tools)}. Name one: "
            "--tool NAME (tool=...)."
        )
    how: dict[str, Any] = {"between": between, "cluster": cluster, "per": per}
    more, limit = _direction(at_most, at_least, higher)
    how |= {"price": price, "higher": more}
    if within is not None:
        how["within"] = (within,) if isinstance(within, str) else tuple(within)
    known = chosen if errors is None else _together(chosen, _pairs(errors), how)
    choices = choices_of(known, **how)
    name = chosen.tools[0] if chosen.tools else ""
    told: dict[str, Any] = {"source": pairs.source, "tool": name, "level": level}
    if evaluate is None:
        evaluate = not bool((chosen.measured != chosen.measured).any())
    if not evaluate:
        most = _limit(limit, known.unit)
        return comparing.predict(choices, unit=known.unit, limit=most, seed=seed, **told)
    if limit is not None:
        raise InputError(
            "--evaluate uses measured rows, and a limit applies only to rows without a "
            "measurement: leave out one of the two"
        )
    return evaluating.evaluate(
        choices,
        seed=seed,
        others=_others(pairs, name, choices),
        scores=_scores(choices),
        **told,
    )


def compare_kinds(
    table: Any,
    *,
    tool: str | None = None,
    level: float = 0.9,
    seed: int = 0,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
) -> DecisionKinds:
    """Evaluate the choices of every kind that a table allows: device, batch size and others.

    Parameters
    ----------
    table, tool, level, seed, predicted, measured, unit
        As in `compare`. Batch sizes are compared by the time of one item.

    Returns
    -------
    DecisionKinds

    Raises
    ------
    InputError
        No key that people choose between has alternatives that were measured.

    Examples
    --------
    >>> import errcomp as ec
    >>> ec.decisions.compare_kinds("neusight")
    DecisionKinds(device 96 % right, batch 75 % right, variant 96 % right)
    """
    from errcomp.decisions.kinds import DecisionKinds, Kind, kinds_of, no_kind

    pairs = _pairs(table, predicted=predicted, measured=measured, unit=unit)
    chosen = pairs.of_tool(tool)
    rows, reasons = [], []
    for key, per in kinds_of(chosen):
        try:
            found: Any = compare(chosen, key, per=per, level=level, seed=seed, evaluate=True)
        except InputError as error:
            reasons.append(str(error).partition(". ")[0])
            continue
        rows.append(Kind.of(found))
    if not rows:
        raise no_kind(chosen, reasons)
    name = chosen.tools[0] if len(chosen.tools) == 1 else ""
    return DecisionKinds(pairs.source, name, seed, tuple(rows))


def compare_draws(
    draws: Mapping[str, Any] | Any,
    *,
    names: Sequence[str] | None = None,
    prices: Mapping[str, float] | Sequence[float] | None = None,
    at_most: float | str | None = None,
    at_least: float | str | None = None,
    higher: bool = False,
    level: float = 0.9,
    unit: str | None = None,
) -> Comparison:
    """Compare alternatives by draws of their times: runs, graphs, serving configurations.

    Draws with the same position have the same errors of what the alternatives share, so that these
    cancel: those of `errcomp.propagation.draw_runs` do, and those that were made one alternative at
    a time do not.

    Parameters
    ----------
    draws : mapping of str to array of shape (draws,), or array of shape (draws, k)
        Times, or another positive quantity such as the P99 of a latency, energy or throughput.
    names : sequence of str, optional
        Of the columns of an array; by default ``"0"``, ``"1"`` and so on.
    prices : mapping of str to float, or sequence, optional
        Price of a unit of time: choices are then about costs.
    at_most, at_least, higher, level
        As in `compare`.
    unit : str, optional

    Returns
    -------
    Comparison
        Of more than 1,000 alternatives, comparisons with the chosen one only. Quantiles, fronts and
        comparisons of many alternatives come from some of the draws.

    Raises
    ------
    InputError
        The draws are not positive numbers of one length, or a price is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import errcomp as ec
    >>> rng = np.random.default_rng(1)
    >>> shared = rng.normal(0, 0.3, 4_000)
    >>> draws = {name: ms * np.exp(shared + rng.normal(0, 0.02, 4_000))
    ...          for name, ms in {"tp2": 105.0, "tp4": 100.0}.items()}
    >>> found = ec.decisions.compare_draws(draws, unit="ms")
    >>> found.choices[0].chosen, bool(found.p_faster[0] > 0.9)
    ('tp4', True)
    """
    from errcomp.decisions.alternatives import Asked
    from errcomp.decisions.drawn import compare_drawn

    if not 0.5 < level < 1:
        raise InputError(f"level must be between 0.5 and 1, got {level!r}. 90 % is 0.9.")
    more, limit = _direction(at_most, at_least, higher)
    asked = Asked(level, unit, "price" if prices is not None else "", more, _limit(limit, unit))
    return compare_drawn(draws, names=names, prices=prices, asked=asked)


def _direction(
    at_most: float | str | None, at_least: float | str | None, higher: bool
) -> tuple[bool, float | str | None]:
    """Return whether more is better, and the limit."""
    if at_most is not None and (higher or at_least is not None):
        raise InputError(
            "at_most means that less is better: leave out at_least and higher, or give at_least "
            "instead of at_most"
        )
    return higher or at_least is not None, at_least if at_most is None else at_most


def _pairs(table: Any, **columns: str | None) -> Pairs:
    from errcomp.datasets.inputs import pairs_in_memory
    from errcomp.tables import Kernels

    if isinstance(table, Kernels):
        return _runs(table)

    columns = {name: value for name, value in columns.items() if value is not None}
    return pairs_in_memory(table, **{**columns, "missing": "keep"})  # type: ignore[arg-type]


def _runs(kernels: Kernels) -> Pairs:
    """Return the runs of a table of kernels: the sum of their predictions, and the measured time.

    Where no run was measured from end to end, its measured kernels are added up.
    """
    import numpy as np

    from errcomp.tables import Pairs

    runs = kernels.totals()
    known = np.isfinite(runs.run_measured).any()
    return Pairs(
        {
            **{name: values.tolist() for name, values in runs.keys.items()},
            "predicted": runs.predicted,
            "measured": runs.run_measured if known else runs.measured,
        },
        missing="keep",
        unit=kernels.unit,
        source=kernels.source,
    )


def _limit(limit: float | str | None, unit: str | None) -> float | None:
    """Return a limit in the unit of the table."""
    from errcomp.tables.units import factor, number_and_unit

    if limit is None:
        return None
    found: tuple[float, str | None] | None
    try:
        found = float(limit), None
    except ValueError:
        found = number_and_unit(limit)
    if found is None or not 0 < found[0] < float("inf"):
        raise InputError(
            f"a limit must be a positive number or a text such as '200 ms', got {limit!r}"
        )
    value, own = found
    if own is None or own == unit:
        return value
    if unit is None:
        raise InputError(f"the limit is in {own}, but the table has no unit. State it: --unit ms.")
    return value * factor(own, unit)


def _together(pairs: Pairs, errors: Pairs, how: Mapping[str, Any]) -> Pairs:
    """Return both tables as one, with the keys that both have."""
    import numpy as np

    from errcomp.tables import Pairs
    from errcomp.tables.choices import positive_numbers

    errors = errors.of_tool(pairs.tools[0] if pairs.tools and errors.tools else None)
    if pairs.unit and errors.unit and pairs.unit != errors.unit:
        raise InputError(
            f"mixed units: {pairs.source or 'the table'} is in {pairs.unit!r}, "
            f"{errors.source or 'the table given as errors'} in {errors.unit!r}. Convert one of "
            "them."
        )
    between = how["between"]
    named = (between,) if isinstance(between, str) else between
    price = how["price"]
    for table in (pairs, errors):
        table.check_columns((*named, *how.get("within", ()), *filter(None, [how["per"]])))
    columns = {
        key: [*pairs.column(key).tolist(), *errors.column(key).tolist()]
        for key in pairs.keys
        if key in errors.keys and key != "tool"
    }
    if price and price not in columns:
        positive_numbers(pairs, "price", price)
        columns[price] = [*pairs.column(price).tolist(), *[float("nan")] * errors.n]
    for name in ("predicted", "measured"):
        columns[name] = np.concatenate([getattr(pairs, name), getattr(errors, name)]).tolist()
    return Pairs(columns, missing="keep", unit=pairs.unit or errors.unit, source=pairs.source)


def _others(pairs: Pairs, tool: str, choices: Choices) -> dict[str, Choices]:
    """Return the choices by the other tools of the table."""
    from errcomp.tables.choices import choices_of

    others = {}
    for name in pairs.tools:
        if name != tool:
            try:
                others[name] = choices_of(
                    pairs.of_tool(name),
                    between=choices.between,
                    within=choices.within,
                    per=choices.per or None,
                    price=choices.price or None,
                    higher=choices.higher,
                ).priced()
            except InputError:
                continue  # it has no two alternatives under equal conditions
    return others


def _scores(choices: Choices) -> Mapping[str, Callable[[str], float]]:
    """Return the figures of data sheets, where the alternatives are devices."""
    from errcomp.datasets.devices import figures_of
    from errcomp.tables.columns import role_of

    several = len(choices.between) > 1 or role_of("device", choices.between) is None
    if several or choices.price:
        return {}

    def peak(device: str) -> float:
        known = figures_of(device)
        return float("nan") if known is None else known.peak / known.dies

    def bandwidth(device: str) -> float:
        known = figures_of(device)
        return float("nan") if known is None else known.bandwidth / known.dies

    return {"data sheet: peak FLOP/s": peak, "data sheet: memory bandwidth": bandwidth}
