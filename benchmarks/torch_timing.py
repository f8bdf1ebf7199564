"""Time PyTorch models: a piece of `collect_torch`, described in `slices`.

Kernels are, on a CUDA device, what the profiler saw run there; on the CPU the operators, each
without those that it calls, and the loops that torch.compile made. What the interpreter and
automatic differentiation take is in the time of the run alone.
"""

from __future__ import annotations

import bisect
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
#: Operators belong to a namespace, not that of automatic differentiation; loops of the compiler
#: are named after what they fuse.
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
        # As the profiler has them: its own tables take longer than the runs.
        self.found += profiled_runs(profile.profiler.kineto_results.events(), self.waits)
        # A profile refers to itself and holds all its events, and the collector is off.
        del profile
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
        import torch._dynamo.config as dynamo
        import torch._inductor.config as inductor

        # Networks share their code, and beyond a few compiled versions of it runs are eager.
        dynamo.recompile_limit = dynamo.accumulated_recompile_limit = 1000
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


def profiled_runs(events: Sequence[Any], on_device: bool) -> list[Profile]:
    """Return for each run the times of its kernels and of the run itself, in µs."""
    of_cpu = [event for event in events if event.device_type() == DeviceType.CPU]
    marks = sorted((e.start_ns(), e.end_ns()) for e in of_cpu if e.name() == _MARK)
    begins = [begin for begin, _ in marks]
    found: list[Profile] = [({}, (end - begin) / 1000) for begin, end in marks]
    # Backward passes may run on another thread: times, not parents, tell the run. Kernels of a
    # device end within their run, which waits for them.
    work = kernels_on_device(events) if on_device else own_times(of_cpu)
    for start, key, took in work:
        run = bisect.bisect_right(begins, start) - 1
        if run >= 0 and start <= marks[run][1]:
            found[run][0].setdefault(key, []).append(took / 1000)
    return found


def kernels_on_device(events: Sequence[Any]) -> Iterator[tuple[int, Key, int]]:
    """Yield start, kernel and duration in ns of what ran on a CUDA device."""
    for event in events:
        if event.device_type() == DeviceType.CUDA and event.name() != _MARK:
            yield event.start_ns(), (name_of(event.name()), "", ""), event.duration_ns()


def name_of(signature: str) -> str:
    """Shorten the signature of a kernel to its name.

    >>> name_of("void at::native::(anonymous namespace)::softmax_warp<float, 8>(float*, int)")
    'at::native::softmax_warp'
    >>> name_of("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(int)")
    'internal::gemvx::kernel'
    >>> name_of("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)")
    'cutlass_80_simt_sgemm_128x64_8x5_nn_align1'
    """
    name = signature.replace("(anonymous namespace)::", "")
    name = re.sub(r"^(void|std::enable_if<.*?>::type) ", "", name)
    # The arguments of a template distinguish its kernels.
    if found := re.match(r"cutlass\S*::Kernel\d*<(\w+)", name):
        return found[1]
    return re.split(r"[<(]", name)[0].strip()


def own_times(events: Sequence[Any]) -> Iterator[tuple[int, Key, int]]:
    """Yield start, operator and time in ns that it took without those that it called."""
    inside: dict[int, list[list[Any]]] = {}
    every = []
    for event in sorted(events, key=lambda e: (e.start_ns(), -e.duration_ns())):
        callers = inside.setdefault(event.start_thread_id(), [])
        while callers and callers[-1][0].end_ns() <= event.start_ns():
            callers.pop()
        if callers:
            callers[-1][1] -= event.duration_ns()
        callers.append([event, event.duration_ns()])
        every.append(callers[-1])
    for event, own in every:
        if _OPERATOR.search(event.name()):
            shapes = (s for s in event.shapes() if s and all(isinstance(n, int) for n in s))
            # Graphs are numbered as they are compiled, which differs between processes.
            name = re.sub(r"^graph_\d+_", "", event.name())
            key = (name, "+".join("x".join(map(str, shape)) for shape in shapes), "")
            yield event.start_ns(), key, max(own, 0)


if __name__ == "__main__":
    slices.main(Session)
