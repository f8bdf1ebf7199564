"""The files that a command writes: checked before the work, and written all of them or none."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from errcomp.errors import InputError, MissingExtraError
from errcomp.system.files import check_target, together

__all__ = ["beside", "check_targets", "write_files"]

#: Options that name a file to write, by where the arguments have them.
_OPTIONS = {"output": "-o", "target": "-o", "junit": "--junit", "markdown": "--markdown"}


def check_targets(
    args: argparse.Namespace,
    inputs: Iterable[Path | str | None],
    figures: Sequence[tuple[str, Path]] = (),
) -> None:
    """Refuse files that cannot be written, or must not be, before any work is done.

    Parameters
    ----------
    args : Namespace
        Its -o, --junit and --markdown, as far as the command has them.
    inputs : iterable of path
        What the command reads; None and what is no file count as nothing.
    figures : sequence of (str, Path)
        What --figure asks for.

    Raises
    ------
    InputError
        A file cannot be written, is one that is read, or is named twice.
    MissingExtraError
        Figures are asked for, and matplotlib is not installed.
    """
    read = [Path(name) for name in inputs if name is not None and Path(name).exists()]
    taken: dict[Path, str] = {}
    for option, target in _targets(args, figures):
        try:
            check_target(target)
        except InputError as error:
            raise InputError(f"{option}: {error}") from error
        if target.exists() and any(target.samefile(path) for path in read):
            raise InputError(
                f"{option}: {target} would overwrite a file that is read; name another file"
            )
        other = taken.setdefault(target.resolve(), option)
        if other is not option:
            raise InputError(f"{option}: {target} is written by {other} too; name two files")
    if figures and find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "figures", "drawing figures")


def _targets(
    args: argparse.Namespace, figures: Iterable[tuple[str, Path]]
) -> Iterator[tuple[str, Path]]:
    for name, option in _OPTIONS.items():
        target = getattr(args, name, None)
        if target is not None:
            yield option, Path(target)
    for name, target in figures:
        yield f"--figure {name}", target


def beside(args: argparse.Namespace, path: Path, write: Callable[[Path], object]) -> None:
    """Have a file written together with the result of the command."""
    args.beside = [*getattr(args, "beside", ()), (path, write)]


def write_files(files: Iterable[tuple[Path, Callable[[Path], object]]]) -> None:
    """Write all of these files whole, or none, and say which."""
    files = list(files)
    with together():
        for path, write in files:
            write(path)
    for path, _ in files:
        print(f"wrote {path}", file=sys.stderr)
