"""LitePred: published accuracies, without pairs."""

from __future__ import annotations

from errcomp.readers.core import AnyPath, Output, ToolFormats, read_as


def read(path: AnyPath) -> Output:
    r"""Refuse files of LitePred, and give the reason.

    Parameters
    ----------
    path : path
        A table of accuracies, or of kernel configurations.

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
    errcomp.errors.InputError: ...accuracy.csv: recognised as table of accuracies by platform of ...
    """
    return read_as(path, FORMATS)


_tool = ToolFormats("LitePred", sample="Moonlit 348a402, README")

_tool.knows(
    "litepred-accuracy",
    "table of accuracies by platform",
    ("platform", "accuracy_within_5pct", "accuracy_within_10pct"),
    "The file holds only the shares of predictions with errors within 5 % and 10 %: no other "
    "metric can be computed from them.",
)

_tool.knows(
    "litepred-configurations",
    "table of kernel configurations",
    ("HW", "CIN", "COUT", "KERNEL_SIZE", "STRIDES"),
    "The file holds the shapes of kernels, but no latencies.",
    sample="",
)

FORMATS = _tool.formats
