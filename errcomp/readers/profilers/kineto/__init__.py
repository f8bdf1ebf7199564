"""PyTorch profiler (Kineto): kernels, steps and times of devices from its Chrome traces."""

from __future__ import annotations

import re

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as

__all__ = ["FORMATS", "read"]

_NAME = "kineto-trace"
#: Names in the outermost object that Kineto writes next to the events.
_BESIDE = frozenset(
    (
        "deviceProperties",
        "distributedInfo",
        "record_shapes",
        "with_stack",
        "profile_memory",
        "with_modules",
        "with_flops",
        "cupti_version",
        "cuda_runtime_version",
        "baseTimeNanoseconds",
        "traceName",
        "traceEvents",
    )
)
_CATEGORY = re.compile(
    r'"cat"\s*:\s*"(?:cpu_op|cuda_runtime|cuda_driver|gpu_memcpy|gpu_memset|python_function|ac2g'
    r'|user_annotation|gpu_user_annotation|fwdbwd|cpu_instant_event|cuda_sync|xpu_runtime|kernel)"'
)
_OLD = re.compile(r'"pid"\s*:\s*"(?:CPU|CUDA) functions"')


def read(path: AnyPath) -> Output:
    r"""Read traces of the PyTorch profiler (Kineto): CUDA, ROCm, XPU or CPU only.

    Parameters
    ----------
    path : path
        A Chrome trace of ``torch.profiler`` (also gzip), or a folder or archive of traces. Events
        may be in an object with ``traceEvents`` or in a bare list. They are read in pieces: a trace
        may be larger than memory.

    Returns
    -------
    Output
        Measured times in us:

        * level kernel, ``time``: every kernel, memory copy and memory set on a GPU, with ``device``
          (its name, if the trace has it), ``device_id``, ``stream``, ``start`` (as in the
          trace), ``gap`` (since the previous one on its stream), ``launch_call`` and its ``launch``
          (start), ``op`` (the innermost operator that launched it), ``shape`` (its input shapes,
          as JSON), ``size_bytes``, and of collectives ``collective`` and ``ranks``. In training,
          ``phase`` says in which part of a step it was launched: forward, backward or optimizer,
          by annotations of that name, automatic differentiation, and PyTorch's own marks of
          optimizers; without an annotation, forward is all the rest. A trace without
          GPU work gives the operators on the CPU: their own time, without that of the
          operators they call.
        * level model, ``time``: each step of the profiler, as a ``run``. Without steps, the
          trace is one run, from its first event to the end of the last. A kernel belongs to the
          step in which it was launched.
        * level system, for each run and device, and for the whole ``trace``: ``busy time``
          (at least one thing runs), ``idle time`` (nothing runs, from the first start to the last
          end), ``computation time`` and ``communication time`` (at least one such kernel runs;
          copies are neither), ``overlap`` (both at once) and ``exposed communication``
          (communication less the overlap).

        Its ``graph`` makes an execution graph of the trace for `errcomp.propagate`.

    Raises
    ------
    InputError
        A trace is cut off, or has neither kernels nor operators.

    Notes
    -----
    ``kernel_class`` is guessed from the name. Times of communication kernels include waiting for
    other ranks. The time of a step is measured on the host: kernels may still run after its end.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "trace.json"
    >>> _ = path.write_text('''{"schemaVersion": 1, "traceEvents": [
    ...     {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_32x32_tn", "pid": 0, "tid": 7,
    ...      "ts": 15.0, "dur": 6.25, "args": {"device": 0, "stream": 7, "correlation": 1}}]}''')
    >>> read(path).rows.select("level", "quantity", "measured", "kernel_class").rows()[:2]
    [('kernel', 'time', 6.25, 'gemm'), ('model', 'time', 6.25, None)]
    """
    return read_as(path, FORMATS)


def _recognise(source: Source) -> bool:
    names = source.json_names
    if "schemaVersion" in names and _BESIDE.intersection(names):
        return True
    text = source.head.decode("utf-8", "replace")
    if "traceEvents" in names or "ph" in names:
        return _CATEGORY.search(text) is not None or _OLD.search(text) is not None
    return False


_tool = ToolFormats("PyTorch profiler", gives="measurements", reference="hardware")


@_tool.reads(
    _NAME,
    "Chrome trace of torch.profiler (Kineto): *.pt.trace.json, also gzip",
    "kernel, model, system: time, busy time, computation time, communication time, "
    "overlap, exposed communication, idle time (us)",
    _recognise,
    sample="PyTorch 2.0 to 2.5: CUDA (A100, H100) and ROCm 6.2 (MI250)",
    limits="A trace that is cut off is refused. Waits for events are in the graph only if the "
    "trace has cuda_sync events; other waits become fixed times.",
)
def _read(source: Source) -> Rows:
    from errcomp.readers.profilers.kineto.rows import read_rows

    return read_rows(source)


FORMATS = _tool.formats
