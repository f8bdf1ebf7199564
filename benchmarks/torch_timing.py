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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self

import slices
import torch
import torch_models
from slices import Key, Profile
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity
from torch_models import Step

_MARK = "one run"
#: Operators belong to a namespace, not that of automatic differentiation; loops of the compiler
#: are named after what they fuse.
_OPERATOR = re.compile(r"^(?!.*autograd::)\w+::\w|cpp_fused")
#: Ranges that were marked on the host appear on the device too.
_RANGE = re.compile(f"({'|'.join([_MARK, *torch_models.PHASES])})$|Optimizer[.]")


class Session(slices.Session):
    """A model on one thread of the CPU, or on a CUDA device."""

    def __init__(self, job: Mapping[str, Any], name: str, variant: str, profiled: bool) -> None:
        self.waits, self.profiled = job["on"] == "cuda", profiled
        self.once, self.captured = run_of(name, variant, job["on"])
        # A replay is one whole, and so is a forward pass alone.
        self.has_phases = variant != "graph" and name.endswith("training")
        self.clock: Clock = DeviceClock() if self.waits else Clock()
        self.found: list[Profile] = []
        if self.waits and profiled:
            # Profiles of a device take long, and its runs are warm by now.
            self.warm_up = (1, 3)
        super().__init__()

    def run(self) -> None:
        """Run the model once, and wait for its device."""
        if self.profiled:
            with torch.profiler.record_function(_MARK):
                self._run()
        else:
            self._run()

    def _run(self) -> None:
        self.once(torch.profiler.record_function if self.profiled else self.clock)
        if self.waits:
            torch.cuda.synchronize()

    def phases(self) -> Mapping[str, float]:
        """Return the times of the phases of the last run in µs."""
        return self.clock.times() if self.has_phases and not self.profiled else {}

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
        events = profile.profiler.kineto_results.events()
        self.found += profiled_runs(events, self.waits, self.captured)
        # A profile refers to itself and holds all its events, and the collector is off.
        del profile
        gc.collect()

    def profiles(self) -> list[Profile]:
        """Return the runs of all slices."""
        return self.found


class Clock:
    """Times the phases of a run on the host: `with clock("forward"): ...`."""

    def __init__(self) -> None:
        self.points: dict[str, tuple[Any, Any]] = {}

    def now(self) -> Any:
        """Return a point in time."""
        return time.perf_counter_ns()

    def __call__(self, phase: str) -> Self:
        """Choose the phase that comes next."""
        self.phase = phase
        return self

    def __enter__(self) -> None:
        self.begun = self.now()

    def __exit__(self, *_: object) -> None:
        self.points[self.phase] = self.begun, self.now()

    def times(self) -> dict[str, float]:
        """Return how long each phase took in the last run, in µs."""
        return {phase: (end - begun) / 1000 for phase, (begun, end) in self.points.items()}


class DeviceClock(Clock):
    """Times the phases of a run on its CUDA device, which may lag behind the host."""

    def now(self) -> Any:
        """Return an event that the device reaches in its turn."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def times(self) -> dict[str, float]:
        """Return how long each phase took in the last run, in µs."""
        return {p: 1000 * begun.elapsed_time(end) for p, (begun, end) in self.points.items()}


def untimed(_: str) -> AbstractContextManager[None]:
    """Leave a phase alone."""
    return nullcontext()


@functools.cache
def run_of(name: str, variant: str, device: str) -> tuple[Step, Sequence[Key]]:
    """Return what runs a model once, and the kernels that were captured in it, in their order.

    Profiled or not, it is the same one.
    """
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
    return captured(step) if variant == "graph" else (step, ())


def captured(step: Step) -> tuple[Step, Sequence[Key]]:
    """Return the replay of a run that was captured as a CUDA graph, and its kernels in order.

    Profilers do not tell the operators that a replay was captured from, so the kernels are those
    of the run itself.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step(untimed)
    torch.cuda.current_stream().wait_stream(aside)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        step(torch.profiler.record_function)
        torch.cuda.synchronize()
    events = profile.profiler.kineto_results.events()
    kernels = [key for _, key, _ in sorted(kernels_on_device(events), key=lambda kernel: kernel[0])]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(untimed)

    def replay(_: Any, kept: Step = step) -> None:
        # Its weights and inputs must live on: a graph knows their addresses alone.
        graph.replay()

    return replay, kernels


def profiled_runs(
    events: Sequence[Any], on_device: bool, replayed: Sequence[Key] = ()
) -> list[Profile]:
    """Return for each run the times of its kernels and of the run itself, in µs.

    A graph that was captured from as many kernels as are here gets their names: `replayed`.
    """
    of_cpu = [event for event in events if event.device_type() == DeviceType.CPU]
    marks = sorted((e.start_ns(), e.end_ns()) for e in of_cpu if e.name() == _MARK)
    begins = [begin for begin, _ in marks]
    # Backward passes may run on another thread: times, not parents, tell the run. Kernels of a
    # device end within their run, which waits for them.
    work = kernels_on_device(events) if on_device else own_times(of_cpu)
    inside: list[list[tuple[Key, float]]] = [[] for _ in marks]
    for start, key, took in sorted(work, key=lambda kernel: kernel[0]):
        run = bisect.bisect_right(begins, start) - 1
        if run >= 0 and start <= marks[run][1]:
            inside[run].append((key, took / 1000))
    found: list[Profile] = []
    for (begin, end), kernels in zip(marks, inside, strict=True):
        times: dict[Key, list[float]] = {}
        known = replayed if len(replayed) == len(kernels) else [key for key, _ in kernels]
        for key, (_, took) in zip(known, kernels, strict=True):
            times.setdefault(key, []).append(took)
        found.append((times, (end - begin) / 1000))
    return found


def phase_at(events: Sequence[Any]) -> Callable[[int], str]:
    """Return what tells the phase at a time in ns: forward, where no phase is marked."""
    marks = sorted(
        (e.start_ns(), e.end_ns(), e.name())
        for e in events
        if e.device_type() == DeviceType.CPU and e.name() in torch_models.PHASES
    )
    begins = [begin for begin, *_ in marks]

    def phase(when: int) -> str:
        if not marks:
            return torch_models.PHASES[0]
        at = bisect.bisect_right(begins, when) - 1
        return marks[at][2] if at >= 0 and when <= marks[at][1] else ""

    return phase


def kernels_on_device(events: Sequence[Any]) -> Iterator[tuple[int, Key, int]]:
    """Yield start, kernel and duration in ns of what ran on a CUDA device.

    A kernel has the shapes and the phase of the operator that launched it.
    """
    # Calls of the driver, and what the profiler itself does, have numbers of their own.
    operators = {
        e.correlation_id(): e
        for e in events
        if e.device_type() == DeviceType.CPU and "::" in e.name()
    }
    phase = phase_at(events)
    for event in events:
        if event.device_type() != DeviceType.CUDA or _RANGE.match(event.name()):
            continue
        by = operators.get(event.linked_correlation_id())
        about = (
            ("", "", "", "") if by is None else (shapes_of(by), "", by.name(), phase(by.start_ns()))
        )
        yield event.start_ns(), Key(name_of(event.name()), *about), event.duration_ns()


def shapes_of(event: Any) -> str:
    """Write the shapes of an operator's inputs, those of its tensors alone."""
    shapes = (s for s in event.shapes() if s and all(isinstance(n, int) for n in s))
    return "+".join("x".join(map(str, shape)) for shape in shapes)


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
    phase = phase_at(events)
    for event, own in every:
        if _OPERATOR.search(event.name()):
            # Graphs are numbered as they are compiled, which differs between processes.
            name = re.sub(r"^graph_\d+_", "", event.name())
            key = Key(name, shapes_of(event), phase=phase(event.start_ns()))
            yield event.start_ns(), key, max(own, 0)


if __name__ == "__main__":
    slices.main(Session)
