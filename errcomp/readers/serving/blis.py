"""BLIS (inference-sim): its runs, its times compared with vLLM's, and tables of errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import Sheet, Value, as_dropped, key, keys_of, long, without
from errcomp.readers.core.values import dict_of, list_of, number, number_at, text, whole
from errcomp.system.strict_json import loads_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# Runs of BLIS: its printed output, its file of metrics, and the tables of its own tests.

_TITLE = "=== Simulation Metrics ==="
_NAMES = {"vllm_estimated_duration_s", "e2e_mean_ms"}
_LATENCY = re.compile(r"(e2e|ttft|itl|scheduling_delay)_(mean|median|p\d+)_ms")
_RUN_QUANTITY = {
    "e2e": "time",
    "ttft": "ttft",
    "itl": "itl",
    "scheduling_delay": "queueing delay",
}
_TOTALS = {
    "vllm_estimated_duration_s": ("time", "s", "predicted"),
    "responses_per_sec": ("request throughput", "requests/s", "predicted"),
    "tokens_per_sec": ("generation throughput", "tokens/s", "predicted"),
    # The run time of the simulator, not a prediction.
    "simulation_duration_s": ("host time", "s", "measured"),
}
#: Names in the text of older versions.
_PRINTED = {
    "Completed Requests": "completed_requests",
    "Simulation Duration(s)": "simulation_duration_s",
    "vLLM estimated Duration(s)": "vllm_estimated_duration_s",
}
_LINE = re.compile(r"([A-Za-z][\w ()/]*?) *: *(\S+)")
_REQUEST = {
    "requestID": "request",
    "num_prefill_tokens": "prefill_tokens",
    "num_decode_tokens": "decode_tokens",
    "slo_class": "slo_class",
    "tenant_id": "tenant",
    "handled_by": "instance",
    "model": "model",
}
_TEST = {
    "model": "model",
    "workload": "workload",
    "approach": "approach",
    "rate": "rate",
    "hardware": "device",
    "tp": "tensor_parallel",
    "seed": "seed",
}
_UNLIKE = (
    "itl_ms or scheduling_delay_ms of a request: in µs or ms, depending on the version of BLIS, "
    "which the file does not state"
)


def is_run(source: Source) -> bool:
    """Say whether this is the text or file of a run."""
    if set(source.json_names) >= _NAMES:
        return True
    head = source.head
    ours = b"vllm_estimated_duration_s" in head or b"vLLM estimated Duration(s)" in head
    return ours and any(line.strip() == _TITLE for line in source.head_lines)


def is_tests(source: Source) -> bool:
    """Say whether these are the metrics that the tests of BLIS expect."""
    return "tests" in source.json_names and all(
        f'"{name}"'.encode() in source.head for name in _NAMES
    )


def _runs(source: Source) -> Iterator[Mapping[str, Any]]:
    if set(source.json_names) >= _NAMES:
        content = source.json()
        for run in content if isinstance(content, list) else [content]:
            if not isinstance(run, dict):
                raise source.error(f"a run must be a JSON object, got {str(run)[:40]}.")
            yield run
        return
    yield from _printed(source)


def _printed(source: Source) -> Iterator[Mapping[str, Any]]:
    """Read the values below each title: a JSON object, or one line per value."""
    values: dict[str, Any] | None = None
    block: list[str] = []
    began = 0
    for at, line in enumerate(source.lines(), start=1):
        if block:
            block.append(line)
            if line.rstrip() == "}":
                yield _parsed(source, block, began)
                values, block = None, []
        elif line.strip() == _TITLE:
            if values:
                yield values
            values = {}
        elif values is not None and line.strip():
            match = _LINE.fullmatch(line.strip())
            if line.startswith("{") and not values:
                block, began = [line], at
            elif match is not None:
                values |= _value(source, match, at)
            else:
                if values:
                    yield values
                values = None
    if block:
        raise source.error("the metrics are cut off: copy the output again.", line=began)
    if values:
        yield values


def _value(source: Source, match: re.Match[str], at: int) -> dict[str, float]:
    name = _PRINTED.get(match[1], match[1])
    if name in _TOTALS or name == "completed_requests" or _LATENCY.fullmatch(name):
        return {name: number_at(source, match[1], match[2], at)}
    return {}


def _parsed(source: Source, block: list[str], line: int) -> Mapping[str, Any]:
    try:
        metrics = loads_text("\n".join(block))
    except ValueError:
        raise source.error(
            "the metrics are not valid JSON: copy the output again.", line=line
        ) from None
    return cast("Mapping[str, Any]", metrics)


def _keys(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    keys: dict[str, str | float] = {}
    for old, new in names.items():
        value = record.get(old)
        known = [form for form in (text(value), whole(value), number(value)) if form is not None]
        if known:
            keys[new] = known[0]
    return keys


def _statistics(
    source: Source, run: Mapping[str, Any], keys: Mapping[str, Any]
) -> list[dict[str, Any]]:
    nothing = number(run.get("completed_requests")) == 0
    rows = []
    for name, value in run.items():
        row: dict[str, Any]
        column = "predicted"
        if match := _LATENCY.fullmatch(name):
            row = {"level": "request", "quantity": _RUN_QUANTITY[match[1]], "unit": "ms"}
            row["statistic"] = match[2]
        elif name in _TOTALS:
            quantity, unit, column = _TOTALS[name]
            row = {"level": "system", "quantity": quantity, "unit": unit}
        else:
            continue
        figure = number(value)
        if figure is None:
            raise source.error(f"{name} must be a number, got {str(value)[:40]!r}.")
        # BLIS writes zeros for means over no requests.
        none = nothing and column == "predicted"
        row["status"] = "no request completed" if none else None
        row[column] = None if none else figure
        rows.append({**keys, **row})
    return rows


def _request(
    source: Source, record: Mapping[str, Any], instance: str | None
) -> Iterator[dict[str, Any]]:
    keys = {"instance": instance, **_keys(record, _REQUEST)}
    ended = number(record.get("e2e_ms"))
    for name, quantity in (("e2e_ms", "time"), ("ttft_ms", "ttft")):
        if name not in record:
            continue
        value = number(record[name])
        if value is None or ended is None:
            wrong = record[name] if value is None else record.get("e2e_ms")
            raise source.error(
                f"{'e2e_ms' if value is not None else name} of request "
                f"{keys.get('request', '?')} must be a number, got {str(wrong)[:40]!r}."
            )
        # BLIS writes zeros for events that did not happen.
        status = None if value else "not finished"
        yield {
            "level": "request",
            "quantity": quantity,
            "unit": "ms",
            **keys,
            "predicted": value or None,
            "status": status,
        }


def _run_unfinished(run: Mapping[str, Any], name: str | None) -> list[str]:
    left = sum(number(run.get(key)) or 0 for key in ("still_queued", "still_running"))
    if not left:
        return []
    where = f" of {name}" if name else ""
    subject = f"1 request{where} was" if left == 1 else f"{left:.0f} requests{where} were"
    return [f"{subject} not finished: the statistics leave out unfinished requests."]


_QUANTITY = {"e2e": "time", "ttft": "ttft", "itl": "itl", "tpot": "tpot"}


# Files of BLIS that hold errors: signed errors are read as ratios, unsigned ones are not read.

RATIO_NOTE = (
    "The file has only relative errors: each measurement is read as 1, each prediction as "
    "1 + error. Totals, and errors weighted by size (WAPE), are meaningless."
)
_SIGNED = re.compile(r"(e2e|ttft|itl|tpot)_(mean|median|p\d+)_mpe")
_SIGNED_KEYS = {
    "exp_id": "experiment",
    "model": "model",
    "workload": "workload",
    "hardware": "device",
    "tp": "tensor_parallel",
    "precision": "precision",
    "max_num_batched_tokens": "max_num_batched_tokens",
}


def is_signed(source: Source) -> bool:
    """Say whether this is a collection of signed errors of several simulators."""
    return "experiments" in source.json_names and b'"simulators"' in source.head


def _signed_row(
    source: Source, simulator: str, keys: dict[str, Any], name: str, value: Any
) -> dict[str, Any]:
    match = _SIGNED.fullmatch(name)
    if match is None:
        return {}
    error = number(value)
    if error is None and value is not None:
        raise source.error(f"{keys['experiment']}: {name} must be a number, got {str(value)[:40]}.")
    return {
        **keys,
        "tool": simulator,
        "quantity": _QUANTITY[match[1]],
        "statistic": match[2],
        "measured": 1.0,
        "predicted": None if error is None else 1 + error / 100,
        "status": "no error stated" if error is None else None,
    }


_MEASURED = re.compile(r"gt_(e2e|ttft|itl|tpot)_ms")
#: Columns that describe an experiment; all others are errors, parts of them, or coefficients.
_KEYS = {
    "experiment": "experiment",
    "experiment_id": "experiment",
    "model": "model",
    "workload": "workload",
    "tp": "tensor_parallel",
    "fold": "fold",
    "family": "family",
    "held_out": "held_out",
    "held_out_workload": "held_out",
    "holdout_model": "held_out",
    "artifact": "artifact",
    "label": "label",
    "regime": "regime",
    "step.id": "step",
    "model_type": "variant",
    "n_test": "steps",
}
_UNSIGNED = ("mape", "xgb_mape", "test_mape")
_COUNTS = ("n_test", "test_n", "test_samples")
_ERRORS = re.compile(r"(?:e2e|ttft|itl)_error(?:_pct)?(?:_\w+)?")


def read(path: AnyPath) -> Output:
    r"""Read the output of BLIS and of its experiments.

    Parameters
    ----------
    path : path
        The output of a run or its metrics (JSON), predicted steps (``step.duration_us`` and
        ``predicted_us``), end-to-end experiments (``gt_e2e_ms`` and ``blis_e2e_ms``, …), mean steps
        (``mean_predicted`` and ``mean_actual``), signed errors of several simulators (JSON), or a
        folder or archive.

    Returns
    -------
    Output
        For a run, its requests or their statistics (end-to-end time, ttft, itl, in ms), and the
        duration and throughput of the system. Other files give pairs: a step is one forward pass
        (level model, µs); an experiment has the means over its requests (level request, ms).
        Signed errors become pairs of ratios: measured 1, predicted 1 + error. Failed experiments
        have a status.

    Raises
    ------
    InputError
        A file is damaged, or holds errors without a sign, which give no pairs.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.csv"
    >>> _ = path.write_text("experiment,gt_e2e_ms,blis_e2e_ms,e2e_error\nx,200,150,0.25\n")
    >>> read(path).rows.select("quantity", "predicted", "measured", "experiment").rows()
    [('time', 150.0, 200.0, 'x')]
    """
    return read_as(path, FORMATS)


def _measured_quantities(names: tuple[str, ...]) -> list[str]:
    """Return the quantities that both sides have, by their name in the columns."""
    quantities = [match[1] for name in names if (match := _MEASURED.fullmatch(name))]
    return [quantity for quantity in quantities if f"blis_{quantity}_ms" in names]


def _error_notes(sheet: Sheet, names: list[str]) -> list[str]:
    """Check the errors in the table, which are fractions, or % if their name says so."""
    notes = []
    for name in names:
        for column, scale in ((f"{name}_error", 1.0), (f"{name}_error_pct", 100.0)):
            if column not in sheet.columns:
                continue
            stated = sheet.numbers(column)
            measured = sheet.numbers(f"gt_{name}_ms")
            error = scale * np.abs(sheet.numbers(f"blis_{name}_ms") / measured - 1)
            # Differences of twice the rounding, if neither side is missing.
            unlike = np.abs(np.abs(stated) - error) > 1e-3 * np.maximum(error, scale * 1e-2)
            if unlike.any():
                rows = ", ".join(str(line) for line in sheet.lines[unlike][:3].tolist())
                notes.append(
                    f"In {int(unlike.sum())} of {len(sheet)} rows, {column} contradicts the values "
                    f"(first lines: {rows})."
                )
    return notes


def _unfinished(sheet: Sheet) -> list[str]:
    """Return a note on experiments whose two means are over different requests."""
    columns = ("blis_completed", "gt_requests")
    if not set(columns) <= set(sheet.columns):
        return []
    done, all_of_them = (sheet.numbers(column) for column in columns)
    fewer = done < all_of_them
    if not fewer.any():
        return []
    return [
        f"In {int(fewer.sum())} of {len(sheet)} experiments, BLIS completed fewer requests than "
        "were measured, so simulated and measured means are over different requests."
    ]


def _is_unsigned_table(source: Source) -> bool:
    names = set(source.header)
    if names & {"mean_actual", "predicted", "measured"} or _measured_quantities(source.header):
        return False
    summed = names & set(_UNSIGNED) and names & set(_COUNTS)
    return bool(summed) or ("experiment" in names and any(map(_ERRORS.fullmatch, names)))


def _is_unsigned_json(source: Source) -> bool:
    return "cv_test" in source.json_names and "per_experiment" in source.json_names


_OF_RUNS = ("time", "ttft", "itl", "queueing delay", "request throughput", "generation throughput")

_tool = ToolFormats("BLIS", gives="both", reference="hardware")


@_tool.reads(
    "blis-run",
    "output of blis run, or its metrics (JSON)",
    "request, system",
    is_run,
    quantities=(*_OF_RUNS, "host time"),
    units=("ms", "s", "requests/s", "tokens/s"),
    gives="predictions",
    reference=None,
    limits="errcomp reads only time and ttft of single requests: itl_ms and scheduling_delay_ms "
    "are in µs or ms, depending on the version, which the file does not state. Times of unfinished "
    "requests, which are 0 in the file, are read as missing.",
)
def read_run(source: Source) -> Rows:
    """Read the statistics of a run and, if present, its requests."""
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    unlike = repeated = 0
    for run in _runs(source):
        requests = list_of(run.get("requests"))
        name = text(run.get("instance_id"))
        for request in requests:
            if not isinstance(request, dict):
                raise source.error(f"a request must be a JSON object, got {str(request)[:40]}.")
            rows += _request(source, request, name)
            unlike += sum(key in request for key in ("itl_ms", "scheduling_delay_ms"))
        statistics = _statistics(source, run, {"instance": name})
        if requests:
            # The statistics follow from the requests.
            both = ("time", "ttft")
            added = [r for r in statistics if r["level"] == "system" or r["quantity"] not in both]
            repeated += len(statistics) - len(added)
            statistics = added
        rows += statistics
        notes += _run_unfinished(run, name)
    if not rows:
        raise source.error("no metrics below the title: the run was stopped. Run it again.")
    dropped = [
        *as_dropped(_UNLIKE, unlike),
        *as_dropped("statistic of requests that the file also lists one by one", repeated),
    ]
    return Rows(rows, dropped=dropped, notes=notes)


@_tool.reads(
    "blis-tests",
    "goldendataset.json",
    "request, system",
    is_tests,
    quantities=(*_OF_RUNS, "host time"),
    units=("ms", "s", "requests/s", "tokens/s"),
    gives="predictions",
    reference=None,
    limits="The file holds the values that BLIS's tests expect: predictions of the version that "
    "wrote them.",
)
def read_tests(source: Source) -> Rows:
    """Read the metrics of each test, with the simulated configuration as keys."""
    content = source.json()
    tests = content.get("tests") if isinstance(content, dict) else None
    if not isinstance(tests, list):
        raise source.error("tests must be a list. The file may be from another version of BLIS.")
    rows: list[dict[str, Any]] = []
    for index, test in enumerate(tests):
        metrics = test.get("metrics") if isinstance(test, dict) else None
        if not isinstance(metrics, dict):
            raise source.error(f"test {index + 1} has no metrics.")
        rows += _statistics(source, metrics, {"run": str(index + 1), **_keys(test, _TEST)})
    return Rows(rows)


@_tool.reads(
    "blis-steps",
    "predictions.csv (steps)",
    "model: time (us)",
    ("step.duration_us", "predicted_us"),
    sample="stepml-experiments 9293b22 (round 1)",
    limits="A step is one forward pass of a batch.",
)
def _steps(source: Source) -> Rows:
    sheet = source.sheet(["step.duration_us", "predicted_us"])
    values = [Value("time", "us", "predicted_us", "step.duration_us")]
    return Rows(long(sheet, values, keys_of(sheet, _KEYS), level="model"))


@_tool.reads(
    "blis-experiments",
    "tables with gt_*_ms and blis_*_ms",
    "request: time, ttft, itl (ms)",
    lambda source: bool(_measured_quantities(source.header)),
    sample="stepml-experiments 9293b22 (rounds 2 and 3)",
    limits="The values are means over the requests of an experiment. The errors that the table "
    "states are checked, but not read.",
)
def _experiments(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet()
    names = _measured_quantities(sheet.columns)
    keys = keys_of(sheet, _KEYS)
    if "status" in sheet.columns:
        keys["status"] = key(sheet, "status").cast(pl.String)
    values = [Value(_QUANTITY[name], "ms", f"blis_{name}_ms", f"gt_{name}_ms") for name in names]
    frame = long(sheet, values, keys, level="request", statistic="mean")
    missing = pl.when(pl.col("predicted").is_nan()).then(pl.lit("no prediction"))
    status = pl.col("status") if "status" in keys else pl.lit(None, dtype=pl.String)
    fine = status.is_null() | status.str.to_lowercase().is_in(["ok", "success"])
    frame = frame.with_columns(status=pl.when(fine).then(missing).otherwise(status))
    return Rows(frame, notes=[*_error_notes(sheet, names), *_unfinished(sheet)])


@_tool.reads(
    "blis-mean-steps",
    "lomo_per_step_results.csv",
    "model: time (us)",
    ("mean_predicted", "mean_actual", "mape"),
    sample="stepml-experiments 9293b22 (round 2)",
    limits="The values are means over steps; the file has no errors of single steps. Negative mean "
    "predictions have the status 'negative'.",
)
def _means(source: Source) -> Rows:
    import polars as pl

    sheet = source.sheet(["mean_predicted", "mean_actual"])
    values = [Value("time", "us", "mean_predicted", "mean_actual")]
    frame = long(sheet, values, keys_of(sheet, _KEYS), level="model", statistic="mean")
    nothing = pl.col("predicted").is_nan() & pl.col("measured").is_nan()
    frame, dropped = without(frame, nothing, "error without a mean prediction and measurement")
    notes = [
        "Each pair is the mean over many steps, so it hides errors that cancel between steps. The "
        "file does not state the unit: the times are read as µs, as in other files of this project."
    ]
    return Rows(frame, dropped=dropped, notes=notes)


@_tool.reads(
    "blis-errors",
    "baseline errors of several simulators (JSON)",
    "request: time, ttft, itl (ratio)",
    is_signed,
    sample="training 0ba6f03 (VIDUR, AIConfigurator, llm-optimizer, BLIS roofline)",
    limits="The file holds signed relative errors, which are read as pairs of ratios: totals and "
    "weighted errors are meaningless. The column tool names the simulator.",
)
def read_signed(source: Source) -> Rows:
    """Read (predicted - actual) / actual of each experiment and simulator."""
    content = source.json()
    experiments = content.get("experiments") if isinstance(content, dict) else None
    if not isinstance(experiments, dict):
        raise source.error(
            "experiments must be a JSON object. The file may be from another version of BLIS."
        )
    rows: list[dict[str, Any]] = []
    for name, experiment in experiments.items():
        simulators = experiment.get("simulators") if isinstance(experiment, dict) else None
        if not isinstance(simulators, dict):
            raise source.error(f"experiment {name!r} has no simulators.")
        about = dict_of(experiment.get("metadata"))
        keys = {
            new: value
            for old, new in _SIGNED_KEYS.items()
            if (value := text(about.get(old)) or whole(about.get(old))) is not None
        }
        keys["experiment"] = name
        for simulator, errors in simulators.items():
            if not isinstance(errors, dict):
                raise source.error(f"experiment {name!r}: the errors of {simulator} are missing.")
            rows += [_signed_row(source, simulator, keys, *pair) for pair in errors.items()]
    known = [row for row in rows if row]
    notes = [RATIO_NOTE]
    stated = content.get("summary")
    total = stated.get("total_measurements") if isinstance(stated, dict) else None
    if isinstance(total, int) and total != len(known):
        notes.append(f"The summary counts {total} errors, but the file has {len(known)}.")
    dropped = as_dropped("error of another quantity or statistic", len(rows) - len(known))
    return Rows(known, dropped=dropped, notes=notes)


_tool.knows(
    "blis-unsigned-errors",
    "evaluation_results.csv, regime_ridge_results.csv, lowo_per_step_results.csv",
    _is_unsigned_table,
    "The file holds mean errors without a sign, but neither predictions nor measurements. "
    "Use predictions.csv of the same experiment.",
    sample="stepml-experiments 9293b22",
)

_tool.knows(
    "blis-cross-validation",
    "cross-validation results (JSON)",
    _is_unsigned_json,
    "The file holds absolute percentage errors, but neither predictions nor measurements.",
    sample="training 0ba6f03 (iteration 24)",
)

FORMATS = _tool.formats
