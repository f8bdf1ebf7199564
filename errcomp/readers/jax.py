"""JAX and XLA: kernels and steps from the profiler's ``xplane.pb`` and ``trace.json.gz``."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike

from errcomp.readers import _jax_rows, _jax_trace
from errcomp.readers.output import Output
from errcomp.readers.registry import Format, read_as
from errcomp.readers.source import Source

__all__ = ["FORMATS", "read"]


def read(path: str | PathLike[str]) -> Output:
    r"""Read traces of the profiler of JAX and TensorFlow (``*.xplane.pb``, ``*.trace.json.gz``).

    Parameters
    ----------
    path : path
        A file, or a folder or archive of files. The schema (XSpace) is built in: no protobuf
        library is needed. A trace as JSON is read where no ``xplane.pb`` is beside it, which has
        the same events.

    Returns
    -------
    Output
        In ps, measured: the ``time`` of what ran on each stream of a GPU or, on other devices, of
        each operation of XLA; where no device ran any, of the operations of XLA on the CPU.
        ``layer`` is the operation of the compiled program, ``model`` the program. Steps that the
        trace marks, else executions of programs, are runs (level model). ``start`` counts from
        the beginning of the trace.

    Raises
    ------
    InputError
        A file is damaged, or holds events of the host only.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> def message(number, content):
    ...     return bytes([number << 3 | 2, len(content)]) + content
    >>> kernel = message(4, b"\x08\x01" + message(2, b"\x08\x01" + message(2, b"fusion.1")))
    >>> event = message(4, b"\x08\x01\x10\x05\x18\x64")  # offset 5, duration 100
    >>> plane = message(2, b"/device:GPU:0") + message(3, message(2, b"Stream #1") + event) + kernel
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "host.xplane.pb"
    >>> _ = path.write_bytes(message(1, plane))
    >>> read(path).rows.select("kernel", "measured", "unit", "stream").rows()
    [('fusion.1', 100.0, 'ps', 'Stream #1')]
    """
    return read_as(path, FORMATS)


#: A plane, its length, perhaps a number, and its name.
_PLANE = re.compile(
    rb"\n[\x80-\xff]{0,9}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?\x12[\x01-\x7f]"
    rb"(?:/host:|/device:|Task Environment|#Chip)",
    re.DOTALL,
)


def _recognise(source: Source) -> bool:
    return _PLANE.match(source.head) is not None


def _format(
    name: str,
    files: str,
    sample: str,
    recognise: Callable[[Source], bool],
    call: Callable[[Source], Output],
) -> Format:
    return Format(
        name=name,
        tool="JAX",
        files=files,
        levels=("kernel", "model"),
        quantities=("time",),
        units=("ps",),
        gives="measurements",
        reference="hardware",
        sample=sample,
        recognise=recognise,
        read=call,
        limits="Operations that contain others (while, conditional) are left out where those are "
        "there. Times of the host are left out.",
    )


FORMATS = (
    _format("jax-xplane", "*.xplane.pb", "2026 (AMD GPU)", _recognise, _jax_rows.read_xplane),
    _format("jax-trace", "*.trace.json.gz", "", _jax_trace.is_trace, _jax_trace.read_trace),
)
