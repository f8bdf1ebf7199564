"""GPGPU-Sim: its log, with the cycles of each kernel."""

from __future__ import annotations

from os import PathLike

from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import Format, read_as
from errcomp.readers.core.source import Source
from errcomp.readers.simulators.gpgpu_log import is_accel_sim, is_log, read_log

__all__ = ["FORMATS", "read"]


def read(path: str | PathLike[str]) -> Output:
    r"""Read logs (stdout) of GPGPU-Sim 3.x and 4.x, run by itself.

    Those of Accel-Sim are for `errcomp.readers.simulators.accel_sim`.

    Parameters
    ----------
    path : path
        A log, or a folder or archive of logs.

    Returns
    -------
    Output
        For each launch of a kernel its simulated ``time`` in cycles of the core clock, with
        ``launch``, ``stream``, ``instructions``, ``ipc`` and ``clock_hz``; for the ``run`` the
        total; and the ``host time``, which the simulator itself took (measured).

    Raises
    ------
    InputError
        No kernel was launched, or a statistic is no number.

    Notes
    -----
    A kernel that was launched and did not finish is a row with a status; the total of such a run
    has no value. Other statistics (caches, DRAM, network) are not read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.txt"
    >>> _ = path.write_text(
    ...     "*** GPGPU-Sim Simulator Version 3.2.2  [build 0] ***\n"
    ...     "-gpgpu_clock_domains 700.0:700.0:700.0:924.0\n"
    ...     "kernel_name = gemm \nkernel_launch_uid = 1 \n"
    ...     "gpu_sim_cycle = 47500\ngpu_tot_sim_cycle = 47500\n")
    >>> read(path).rows.select("level", "predicted", "kernel", "clock_hz").rows()
    [('kernel', 47500.0, 'gemm', 700000000.0), ('model', 47500.0, None, 700000000.0)]
    """
    return read_as(path, FORMATS)


def _recognise(source: Source) -> bool:
    return is_log(source) and not is_accel_sim(source)


def _read(source: Source) -> Output:
    return read_log(source, "GPGPU-Sim", "gpgpu-sim-log")


FORMATS = (
    Format(
        name="gpgpu-sim-log",
        tool="GPGPU-Sim",
        files="log (stdout)",
        levels=("kernel", "model", "system"),
        quantities=("time", "host time"),
        units=("cycles", "s"),
        gives="predictions",
        sample="3.2.2",
        recognise=_recognise,
        read=_read,
        limits="Cycles and instructions only; caches, DRAM and network are not read.",
    ),
)
