"""LitePred: published accuracies, which are no pairs."""

from __future__ import annotations

from os import PathLike

from errcomp.readers.core.keys import has
from errcomp.readers.core.no_times import no_times
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import read_as
from errcomp.readers.core.source import Source

__all__ = ["FORMATS", "read"]


def read(path: str | PathLike[str]) -> Output:
    r"""Refuse files of LitePred, and say why.

    Parameters
    ----------
    path : path
        A table of accuracies, or of configurations of kernels.

    Raises
    ------
    InputError
        Always: neither holds a prediction or a measurement.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "accuracy.csv"
    >>> _ = path.write_text(
    ...     "platform,accuracy_within_5pct,accuracy_within_10pct\nPixel5GPU,84.3,99.1\n")
    >>> read(path)
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: ...accuracy.csv: is accuracies of each platform of LitePred, ...
    """
    return read_as(path, FORMATS)


def _is_accuracy(source: Source) -> bool:
    return has(source.header, "platform", "accuracy_within_5pct", "accuracy_within_10pct")


def _is_configurations(source: Source) -> bool:
    return has(source.header, "HW", "CIN", "COUT", "KERNEL_SIZE", "STRIDES")


FORMATS = (
    no_times(
        "litepred-accuracy",
        "LitePred",
        "accuracies of each platform",
        _is_accuracy,
        "It holds shares of predictions within 5 and 10 %, and no prediction or measurement: "
        "other metrics cannot be computed from them.",
        sample="Moonlit 348a402, README",
    ),
    no_times(
        "litepred-configurations",
        "LitePred",
        "configurations of kernels",
        _is_configurations,
        "It holds shapes of kernels without latencies.",
    ),
)
