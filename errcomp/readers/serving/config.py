"""What a configuration beside the output of VIDUR or Frontier says of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from errcomp.errors import InputError
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import number, text, whole

__all__ = ["Config", "config_beside", "dry_run", "is_frontier", "is_frontier_beside", "is_vidur"]

_NESTED = ("cluster_config", "request_generator_config", "metrics_config")
#: Key of a row, and where it stands: in nested files below these names, in flat ones as one name.
_WHERE = {
    "model": (("cluster_config", "replica_config", "model_name"), "replica_model_name"),
    "device": (("cluster_config", "replica_config", "device"), "replica_device"),
    "network": (("cluster_config", "replica_config", "network_device"), "replica_network_device"),
    "tensor_parallel": (
        ("cluster_config", "replica_config", "tensor_parallel_size"),
        "replica_num_tensor_parallel_workers",
    ),
    "attention_tensor_parallel": (
        ("cluster_config", "replica_config", "attn_tensor_parallel_size"),
        "",
    ),
    "pipeline_stages": (
        ("cluster_config", "replica_config", "num_pipeline_stages"),
        "replica_num_pipeline_stages",
    ),
    "replicas": (("cluster_config", "num_replicas"), "cluster_num_replicas"),
    "scheduler": (
        ("cluster_config", "replica_scheduler_config", "name"),
        "replica_scheduler_provider",
    ),
    "qps": (
        ("request_generator_config", "interval_generator_config", "qps"),
        "poisson_request_interval_generator_qps",
    ),
}
_LAYERS = ("cluster_config", "replica_config", "model_config", "num_layers")


@dataclass(frozen=True, slots=True)
class Config:
    """What is known of a run.

    Attributes
    ----------
    keys : dict
        Keys of its rows.
    layers, stages : int or None
        Of the model, and in the pipeline.
    dummy : str
        The predictor was replaced by constants: how. Empty otherwise.
    notes : tuple of str
    """

    keys: dict[str, Any] = field(default_factory=dict)
    layers: int | None = None
    stages: int | None = None
    dummy: str = ""
    notes: tuple[str, ...] = ()


def is_vidur(source: Source) -> bool:
    """Say whether this is a configuration that VIDUR writes."""
    names = source.json_names
    if all(name in names for name in _NESTED):
        return "execution_time_predictor_config" in names and "sys_arch" not in names
    return any(line.startswith("replica_scheduler_provider:") for line in source.head_lines)


def is_frontier(source: Source) -> bool:
    """Say whether this is a configuration that Frontier writes."""
    return all(name in source.json_names for name in (*_NESTED, "sys_arch"))


def is_frontier_beside(source: Source) -> bool:
    """Say whether the files beside this one are Frontier's, for formats that VIDUR has too."""
    try:
        config = source.sibling("config.json")
        if config is not None:
            return is_frontier(config)
        traces = source.sibling("op_traces.jsonl")
        if traces is not None and '"simulation_info"' in "".join(traces.head_lines[:1]):
            return True
        events = source.sibling("event_trace.json")
        return events is not None and b'"cluster_type"' in events.head
    except InputError:
        return False


def config_beside(source: Source) -> Config:
    """Read ``config.json`` (or the older ``config.yml``) in the same folder, if there is one.

    One that cannot be read leaves the rows without its keys, with a note.
    """
    try:
        if (beside := source.sibling("config.json")) is not None:
            content = beside.json()
        elif (beside := source.sibling("config.yml")) is not None:
            content = beside.yaml()
        else:
            return Config()
    except InputError as error:
        return Config(notes=(f"No model, device and scheduler are known: {error}",))
    if not isinstance(content, dict):
        return Config(notes=(f"No model, device and scheduler are known: {beside.name} is none.",))
    keys = {}
    for name, (path, flat) in _WHERE.items():
        value = _at(content, path)
        value = content.get(flat) if value is None else value
        found = text(value) or whole(value) or number(value)
        if found is not None:
            keys[name] = found
    run = text(_at(content, ("metrics_config", "output_dir")) or content.get("output_dir"))
    if run and run.strip("/"):
        keys["run"] = run.rstrip("/").rsplit("/", 1)[-1]
    layers, stages = _at(content, _LAYERS), keys.get("pipeline_stages")
    return Config(
        keys,
        whole(layers) or None,
        whole(stages) or None,
        _dummy(content),
    )


def dry_run(how: str) -> tuple[str, ...]:
    """Return what to know of a run without a predictor of times."""
    if not how:
        return ()
    return (
        f"A dry run of the simulator ({how}): its times are no predictions of any hardware, and "
        "say nothing of its accuracy.",
    )


def _dummy(content: dict[str, Any]) -> str:
    for part in _objects(content):
        if part.get("enable_dummy_mode") is True:
            time = number(part.get("dummy_execution_time_ms"))
            if time is None:
                return "a constant for every operator"
            return f"{time:g} ms for every operator"
    return ""


def _at(content: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(content, dict):
            return None
        content = content.get(name)
    return content


def _objects(content: Any, depth: int = 6) -> Iterator[dict[str, Any]]:
    if isinstance(content, dict) and depth:
        yield content
        for value in content.values():
            yield from _objects(value, depth - 1)
