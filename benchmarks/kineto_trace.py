"""A made-up trace of PyTorch's profiler, of any size, as Kineto writes them, from a seed.

Steps of operators that call others, launches, kernels on two streams of which one communicates,
copies, Python functions and flows, in whole microseconds (the peer of the reader rounds to those).
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import IO, Any

SEED = 20261122
KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "ampere_sgemm_128x64_tn",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
    "float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>"
    "(float*, float const*, int, int, int, bool const*, int, bool)",
]
OPS = ["aten::add", "aten::linear", "aten::mean", "aten::conv2d", "aten::softmax"]
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
X = """  {{
    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid},
    "ts": {ts}, "dur": {dur},
    "args": {{
      {args}
    }}
  }},
"""
FLOW = """  {{
    "ph": "{ph}", "id": {id}, "pid": {pid}, "tid": {tid}, "ts": {ts},
    "cat": "ac2g", "name": "ac2g"{more}
  }},
"""


class Writer:
    """Writes events, and knows the time."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.rng = file, random.Random(SEED)
        self.id, self.host, self.device, self.network = 0, 1000, 1000, 1000

    def event(self, cat: str, name: str, ts: int, dur: int, **where: Any) -> None:
        """Write an event with a duration."""
        args = where.pop("args")
        where = {"pid": 4242, "tid": 4242, **where}
        self.file.write(X.format(cat=cat, name=name, ts=ts, dur=dur, args=args, **where))

    def launched(self, cat: str, name: str, stream: int, more: str = "") -> None:
        """Write work of the GPU with the call that launches it."""
        self.id += 1
        took = self.rng.randrange(4, 9)
        call = "cudaLaunchKernel" if cat == "kernel" else "cudaMemcpyAsync"
        common = f'"External id": {self.id // 3}, "correlation": {self.id}'
        self.event("cuda_runtime", call, self.host, took, args=f'{common}, "cbid": 211')
        self.flow("s", 4242, 4242, self.host)
        begin = max(self.host + 3, self.network if stream == 20 else self.device)
        dur = round(self.rng.lognormvariate(3.2 if stream == 20 else 2.3, 0.8))
        args = (
            f'{common}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, {more}'
            '"registers per thread": 32, "shared memory": 0, "blocks per SM": 7.4,\n'
            '      "grid": [800, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 43'
        )
        self.event(cat, name, begin, dur, pid=0, tid=stream, args=args)
        self.flow("f", 0, stream, begin)
        if stream == 20:
            self.network = begin + dur + 1
        else:
            self.device = begin + dur + 1
        self.host += took + 1

    def flow(self, ph: str, pid: int, tid: int, ts: int) -> None:
        """Write one end of a flow."""
        more = ', "bp": "e"' if ph == "f" else ""
        self.file.write(FLOW.format(ph=ph, id=self.id, pid=pid, tid=tid, ts=ts, more=more))

    def operator(self, number: int) -> None:
        """Write an operator that calls another, which launches kernels."""
        kind = self.rng.randrange(len(OPS))
        begin = self.host
        self.host += 2
        for _ in range(1 + kind % 2):
            self.launched("kernel", KERNELS[kind], 7)
        shape = f"[[{2 ** (number % 8)}, 512], [512, {64 * (1 + kind)}], []]"
        common = f'"Record function id": 0, "Sequence number": {number}, "Ev Idx": {number}'
        took = self.host - begin
        args = f'"External id": {self.id // 3}, {common}, "Input Dims": {shape}'
        self.event("cpu_op", OPS[kind], begin, took, args=args)
        inside = f'"External id": {self.id}, {common}, "Input Dims": {shape}'
        self.event("cpu_op", OPS[kind] + "_", begin + 1, took - 2, args=inside)
        name = f"nn/modules/module.py(15{number % 90}): _call_impl"
        args = f'"Python id": {number}, "Python parent id": {number // 2}, "Ev Idx": {number}'
        self.event("python_function", name, begin - 1, took + 2, args=args)
        self.host += 3

    def step(self, number: int) -> None:
        """Write a step of the profiler."""
        begin = self.host
        for i in range(400):
            self.operator(400 * number + i)
            if i % 40 == 20:
                self.launched("kernel", NCCL, 20)
            if i % 100 == 50:
                name = "Memcpy HtoD (Pinned -> Device)"
                self.launched("gpu_memcpy", name, 7, '"bytes": 65536, ')
        self.host = max(self.host, self.device, self.network)
        name, took = f"ProfilerStep#{number}", self.host - begin
        self.event("user_annotation", name, begin, took, args='"External id": 1')
        self.host += 1


def make(path: Path, mib: int) -> None:
    """Write a trace of about this size."""
    with path.open("w") as file:
        file.write('{\n  "schemaVersion": 1,\n  "distributedInfo": {"rank": 0, "world_size": 2},\n')
        file.write('  "deviceProperties": [{"id": 0, "name": "Made Up 100"}],\n')
        file.write('  "displayTimeUnit": "ms",\n  "traceEvents": [\n')
        writer, number = Writer(file), 0
        while file.tell() < mib << 20:
            writer.step(number)
            number += 1
        file.write('  {"name": "process_name", "ph": "M", "ts": 0, "pid": 0, "args": {}}\n]}\n')
