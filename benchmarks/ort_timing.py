"""Time ONNX models in ONNX Runtime: a piece of `collect_ort`, described in `slices`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import slices
from slices import Key, Profile

LEVELS = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "disable": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


class Session(slices.Session):
    """A model on one thread."""

    def __init__(self, job: Mapping[str, Any], name: str, variant: str, profiled: bool) -> None:
        folder = Path(job["folder"])
        model = folder / f"{name}.onnx"
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = LEVELS[variant]
        options.log_severity_level = 3
        options.enable_profiling = profiled
        options.profile_file_prefix = f"{folder / name}_{variant}"
        self.session = ort.InferenceSession(str(model), options, ["CPUExecutionProvider"])
        self.feeds = dict(np.load(model.with_suffix(".npz")))
        super().__init__()

    def run(self) -> None:
        """Run the model once."""
        self.session.run(None, self.feeds)

    def profiles(self) -> list[Profile]:
        """End the session's profile and read it."""
        file = Path(self.session.end_profiling())
        runs = list(profiled_runs(file))
        file.unlink()
        return runs


def profiled_runs(file: Path) -> Iterator[Profile]:
    """Yield for each run the times of its operators and of the run itself, in µs."""
    nodes: dict[Key, list[float]] = {}
    for event in json.loads(file.read_text()):
        # Old releases also time the fences before and after an operator.
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            args = event["args"]
            inputs = "+".join(map(shape_of, args["input_type_shape"]))
            key = Key(args["op_name"], inputs, shape_of(args["output_type_shape"][0]))
            nodes.setdefault(key, []).append(event["dur"])
        elif event["name"] == "model_run":
            # Written when the run ends, after its operators.
            yield nodes, event["dur"]
            nodes = {}


def shape_of(typed: Mapping[str, Sequence[int]]) -> str:
    """Write {"float": [1, 64]} as 1x64; a scalar is one element."""
    (dimensions,) = typed.values()
    return "x".join(map(str, dimensions)) or "1"


if __name__ == "__main__":
    slices.main(Session)
