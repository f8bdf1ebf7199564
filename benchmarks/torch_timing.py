"""Time PyTorch models: a piece of `collect_torch`, described in `slices`.

Kernels are, on a CUDA device, what the profiler saw run there; on the CPU the operators that call
no other one, and the loops that torch.compile made. What the operators around them take, and the
interpreter, is in the time of the run alone.
"""

from __future__ import annotations

import functools
import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import slices
import torch
import torch_models
from slices import Key, Profile
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity

_MARK = "one run"
#: Operators belong to a namespace; loops of the compiler are named after what they fuse.
_OPERATOR = re.compile(r"^(?!.*autograd::)\w+::\w|cpp_fused")


class Session(slices.Session):
    """A model on one thread of the CPU, or on a CUDA device."""

    def __init__(self, folder: Path, name: str, variant: str, profiled: bool) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.waits, self.profiled = self.device == "cuda", profiled
        self.once = run_of(name, variant, self.device)
        self.found: list[Profile] = []
        super().__init__()

    def run(self) -> None:
        """Run the model once, and wait for its device."""
        if self.profiled:
            with torch.profiler.record_function(_MARK):
                self._run()
        else:
            self._run()

    def _run(self) -> None:
        self.once()
        if self.waits:
            torch.cuda.synchronize()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Profile the runs of a slice."""
        if not self.profiled:
            yield
            return
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self.waits
        with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
            yield
        self.found += profiled_runs(profile.events(), on_device=self.waits)
        # Events point to each other, and the collector is off.
        gc.collect()

    def profiles(self) -> list[Profile]:
        """Return the runs of all slices."""
        return self.found


@functools.cache
def run_of(name: str, variant: str, device: str) -> Callable[[], Any]:
    """Return what runs a model once; profiled or not, it is the same one."""
    # A compiled one must not hold the threads of its first user.
    torch.set_num_threads(1)
    model, shape, mode = name.split("_")
    built = torch_models.build(model, tuple(map(int, shape.split("x"))), mode, device)
    if variant == "compile":
        import torch._inductor.config as inductor

        # Only so do loops of the CPU's compiler appear in a profile.
        inductor.cpp.enable_kernel_profile = True
        built.module.compile(dynamic=False)
    step = built.step()
    return captured(step) if variant == "graph" else step


def captured(step: Callable[[], Any]) -> Callable[[], Any]:
    """Return the replay of a run that was captured as a CUDA graph."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def profiled_runs(events: Sequence[Any], *, on_device: bool) -> list[Profile]:
    """Return for each run the times of its kernels and of the run itself, in µs."""
    of_cpu = [event for event in events if event.device_type == DeviceType.CPU]
    marks = sorted((e.time_range.start, e.time_range.end) for e in of_cpu if e.name == _MARK)
    found: list[Profile] = [({}, end - begin) for begin, end in marks]
    # Backward passes may run on another thread: times, not parents, tell the run.
    run, later = -1, sorted(of_cpu, key=lambda event: event.time_range.start)
    for event in later:
        while run + 1 < len(marks) and event.time_range.start >= marks[run + 1][0]:
            run += 1
        if run < 0 or event.time_range.start > marks[run][1] or event.name == _MARK:
            continue
        for key, took in kernels_of(event, on_device=on_device):
            found[run][0].setdefault(key, []).append(took)
    return found


def kernels_of(event: Any, *, on_device: bool) -> Iterator[tuple[Key, float]]:
    """Yield the kernels of an operator with their times in µs."""
    shapes = "+".join(
        "x".join(map(str, shape)) for shape in event.input_shapes or () if shape and flat(shape)
    )
    if on_device:
        for kernel in event.kernels:
            yield (kernel.name.split("<")[0].split("(")[0], shapes, ""), kernel.duration
    elif not event.cpu_children and _OPERATOR.search(event.name):
        # Graphs are numbered as they are compiled, which differs between processes.
        yield (re.sub(r"^graph_\d+_", "", event.name), shapes, ""), event.time_range.elapsed_us()


def flat(shape: Sequence[Any]) -> bool:
    """Is this the shape of a tensor, not a list of such."""
    return all(isinstance(size, int) for size in shape)


if __name__ == "__main__":
    slices.main(Session)
