"""The tables that come with errcomp: what they are, where they came from, how to rebuild them.

Each dataset is a folder of CSV files with a README and a ``SHA256SUMS``, and a module here that
describes the columns and builds the files from the original. To add a dataset, declare it in the
``SPECS`` of such a module, and name that module in ``_MODULES``.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from errcomp.datasets._spec import Column, DatasetInfo, DatasetSpec, TableInfo
from errcomp.errors import InputError, offer
from errcomp.system.files import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import polars as pl

    from errcomp.tables import History, Kernels, Pairs

__all__ = [
    "build",
    "example_runs",
    "export",
    "folder",
    "histories",
    "info",
    "kernel_tables",
    "list",
    "load",
    "load_history",
    "load_kernels",
    "names",
    "tables",
]


#: Dataset name → the module with its ``SPECS``.
_MODULES = {
    "neusight": "errcomp.datasets.neusight",
    "neusight-kernels": "errcomp.datasets.neusight",
    "ort-cpu": "errcomp.datasets.measured",
    "ort-releases": "errcomp.datasets.measured",
    "survey": "errcomp.datasets.survey",
    "torch-cpu": "errcomp.datasets.measured",
    "torch-cuda": "errcomp.datasets.measured",
}
_SUMS = "SHA256SUMS"


def names() -> tuple[str, ...]:
    """Return the names that ``tables``, ``info`` and ``export`` accept.

    Examples
    --------
    >>> "neusight" in names()
    True
    """
    return tuple(_MODULES)


def kernel_tables() -> tuple[str, ...]:
    """Return the names of the datasets that hold kernels.

    Examples
    --------
    >>> kernel_tables()
    ('neusight-kernels', 'ort-cpu', 'torch-cpu', 'torch-cuda')
    """
    return tuple(name for name in names() if _spec(name).holds == "kernels")


def histories() -> tuple[str, ...]:
    """Return the names of the datasets that hold a history.

    Examples
    --------
    >>> histories()
    ('ort-releases',)
    """
    return tuple(name for name in names() if _spec(name).holds == "history")


def list() -> tuple[DatasetInfo, ...]:  # noqa: A001 - read as `datasets.list()`
    """Return the facts about every built-in dataset, as `info` does for one.

    Examples
    --------
    >>> [(dataset.name, dataset.rows) for dataset in list()][:2]
    [('neusight', 386), ('neusight-kernels', 3853)]
    """
    return tuple(info(name) for name in names())


def info(name: str) -> DatasetInfo:
    """Return source, commit, licence, columns with units, rows and checksum of a dataset.

    Parameters
    ----------
    name : str
        One of ``names()``.

    Returns
    -------
    DatasetInfo

    Raises
    ------
    InputError
        There is no such dataset, or its files are missing or modified.

    Examples
    --------
    >>> info("neusight").rows
    386
    """
    spec = _spec(name)
    files = []
    for file, columns in spec.tables.items():
        content, digest = _verified(name, file)
        files.append(TableInfo(file, content.count(b"\n") - 1, digest, columns))
    return DatasetInfo(
        name,
        spec.holds,
        spec.title,
        spec.source,
        spec.commit,
        spec.licence,
        spec.reference,
        spec.unit,
        tuple(files),
    )


@overload
def load(name: Literal["neusight"]) -> Pairs: ...


@overload
def load(name: Literal["neusight-kernels", "ort-cpu", "torch-cpu", "torch-cuda"]) -> Kernels: ...


@overload
def load(name: Literal["ort-releases"]) -> History: ...


@overload
def load(name: str) -> Any: ...


def load(name: str) -> Pairs | Kernels | History:
    """Load the table of a built-in dataset: pairs, kernels or a history.

    Parameters
    ----------
    name : str
        ============================  ==========================================================
        ``"neusight"``                `errcomp.Pairs`: the ASPLOS'25 artifact of NeuSight, 146
                                      configurations, four predictors
        ``"neusight-kernels"``        `errcomp.Kernels`: the operators of 87 runs on 8 devices of
                                      that artifact, each predicted and measured
        ``"ort-cpu"``,                `errcomp.Kernels`: small networks on one CPU core,
        ``"torch-cpu"``               measured operators and runs; no predictions
        ``"torch-cuda"``              `errcomp.Kernels`: twelve networks on one GPU, measured
                                      kernels, phases and runs; no predictions
        ``"ort-releases"``            `errcomp.History`: small networks in 35 releases of ONNX
                                      Runtime on one CPU core, and a model frozen at the first
        ============================  ==========================================================

    Returns
    -------
    Pairs, Kernels or History
        The table with its unit; ``source`` names the dataset.

    Raises
    ------
    InputError
        There is no such dataset, it holds several tables (see `tables`), or its file is modified
        (SHA-256 differs).

    Examples
    --------
    >>> pairs = load("neusight")
    >>> pairs.n, pairs.unit, pairs.where({"tool": "neusight"}).n
    (386, 'ms', 146)
    >>> load("neusight-kernels").n_runs
    87
    >>> load("ort-releases").versions[-1]
    '1.31.1'
    """
    from errcomp.tables import History, Kernels, Pairs

    spec = _spec(name)
    if spec.holds == "pairs":
        return Pairs(**_table(name, spec), subject=spec.subject)
    if spec.holds == "kernels":
        return Kernels(**_table(name, spec))
    if spec.holds == "history":
        return History(**_table(name, spec))
    raise InputError(
        f"dataset {name!r} holds several tables. Use errcomp.datasets.tables({name!r})."
    )


def example_runs() -> Kernels:
    """Return eight made-up runs of one kernel each, to try things out.

    Definition: each run takes 10 % longer than its kernel, on two devices.

    Returns
    -------
    Kernels
        In milliseconds.

    Examples
    --------
    >>> import errcomp as ec
    >>> ec.Composition(estimators=()).fit(ec.datasets.example_runs()).to_dict()["runs"]
    8
    """
    from errcomp.tables import Kernels

    times = [float(i) for i in range(1, 9)]
    return Kernels(
        {
            "run": [*"abcdefgh"],
            "kernel": ["gemm"] * 8,
            "device": [*"AABBAABB"],
            "measured": times,
            "run_measured": [1.1 * time for time in times],
        },
        unit="ms",
    )


def load_kernels(name: str) -> Kernels:
    """Load a table of kernels: the old name of `load`.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     load_kernels("ort-cpu").unit
    'ms'
    """
    table: Kernels = _loaded(name, "load_kernels", "kernels", kernel_tables())
    return table


def load_history(name: str) -> History:
    """Load a history of validations: the old name of `load`.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     load_history("ort-releases").unit
    'ms'
    """
    table: History = _loaded(name, "load_history", "history", histories())
    return table


def _loaded(name: str, old: str, holds: str, known: tuple[str, ...]) -> Any:
    warnings.warn(f"errcomp.datasets.{old} is now errcomp.datasets.load", DeprecationWarning, 3)
    if _spec(name).holds != holds:
        raise InputError(f"dataset {name!r} holds no {holds}. Datasets that do: {', '.join(known)}")
    return load(name)


def tables(name: str) -> dict[str, pl.DataFrame]:
    """Load every table of a dataset, with the columns of its file.

    Parameters
    ----------
    name : str
        One of ``names()``.

    Returns
    -------
    dict of str to polars.DataFrame
        File name without suffix → table; missing values are null.

    Raises
    ------
    InputError
        There is no such dataset, or a file is modified (SHA-256 differs).

    Examples
    --------
    >>> tables("neusight")["neusight"].height
    386
    """
    spec = _spec(name)
    return {Path(file).stem: _frame(name, file, columns) for file, columns in spec.tables.items()}


def build(
    name: str, source: str | os.PathLike[str], out_dir: str | os.PathLike[str]
) -> tuple[Path, ...]:
    """Derive a dataset from the original files; the same original gives the same bytes.

    Parameters
    ----------
    name : str
        One of ``names()``.
    source : path
        The original, e.g. the root of the NeuSight artifact.
    out_dir : path
        Created if missing. Receives the CSV files and their ``SHA256SUMS``.

    Returns
    -------
    tuple of Path
        The files written.

    Raises
    ------
    InputError
        There is no such dataset, the source is not the dataset's original, or the folder is not
        writable.

    Examples
    --------
    >>> import shutil, tempfile
    >>> original = Path(tempfile.mkdtemp())
    >>> _ = shutil.copy(folder("ort-cpu") / "ort-cpu.csv", original / "kernels.csv")
    >>> _ = shutil.copy(folder("ort-cpu") / "protocol.json", original)
    >>> [path.name for path in build("ort-cpu", original, original / "built")]
    ['ort-cpu.csv', 'protocol.json', 'SHA256SUMS']
    """
    contents = dict(_spec(name).build(Path(source)))
    sums = "".join(f"{sha256(content)}  {file}\n" for file, content in contents.items())
    # Write the checksums last: an interrupted build then does not verify.
    contents[_SUMS] = sums.encode()
    for file, content in contents.items():
        write(Path(out_dir) / file, content)
    return tuple(Path(out_dir) / file for file in contents)


def export(name: str, path: str | os.PathLike[str]) -> Path:
    """Write a dataset to a file: ``.csv``, ``.parquet``, ``.json`` or ``.jsonl``.

    Parameters
    ----------
    name : str
        One of ``names()``. A dataset of several tables needs a folder (a path without suffix) and
        gets one CSV file per table.
    path : path
        Replaced if it exists.

    Returns
    -------
    Path
        ``path``.

    Raises
    ------
    InputError
        There is no such dataset, the suffix is unknown, or the path is not writable.

    Examples
    --------
    >>> import tempfile
    >>> export("neusight", Path(tempfile.mkdtemp()) / "pairs.parquet").name
    'pairs.parquet'
    """
    spec, target = _spec(name), Path(path)
    if target.suffix == "":
        for file in spec.tables:
            write(target / file, _verified(name, file)[0])
        return target
    if len(spec.tables) > 1:
        raise InputError(
            f"{target}: dataset {name!r} has {len(spec.tables)} tables, which one file cannot "
            "hold. Give a folder (a path without suffix)."
        )
    (file,) = spec.tables
    if target.suffix == ".csv":
        write(target, _verified(name, file)[0])
    else:
        write(target, as_bytes(_frame(name, file, spec.tables[file]), target))
    return target


def folder(name: str) -> Path:
    """Return the folder with the files of a dataset, its README and its checksums.

    Examples
    --------
    >>> (folder("neusight") / "neusight.csv").is_file()
    True
    """
    _spec(name)
    package = Path(__file__).resolve().parents[1]
    # In a wheel the tables are inside the package; in a checkout, next to it.
    inside = package / "_datasets"
    return (inside if inside.is_dir() else package.parent / "datasets") / name


def _spec(name: str) -> DatasetSpec:
    if name not in _MODULES:
        raise InputError(f"there is no dataset {name!r}. {offer('Datasets', names(), wanted=name)}")
    spec = importlib.import_module(_MODULES[name]).SPECS[name]
    assert isinstance(spec, DatasetSpec)
    return spec


def _table(name: str, spec: DatasetSpec) -> dict[str, Any]:
    """Return the arguments that make the table of a dataset."""
    (file,) = spec.tables
    return {
        "data": _frame(name, file, spec.tables[file]),
        "columns": spec.columns,
        "unit": spec.unit,
        "source": f"dataset {name}",
        "line_offset": 2,
    }


def _verified(name: str, file: str) -> tuple[bytes, str]:
    """Read a file of a dataset and compare it with its checksum."""
    path = folder(name) / file
    try:
        content = path.read_bytes()
        sums = (path.parent / _SUMS).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}). The installation is incomplete: "
            "reinstall errcomp."
        ) from error
    digest = sha256(content)
    if f"{digest}  {file}" not in sums.splitlines():
        raise InputError(
            f"{path}: its SHA-256 ({digest[:12]}…) differs from the one in {_SUMS}: the table was "
            "modified. Reinstall errcomp, or rebuild the table from its original files: errcomp "
            f"datasets build {name} --from ORIGINAL --to {path.parent}"
        )
    return content, digest


def _frame(name: str, file: str, columns: Mapping[str, Column]) -> pl.DataFrame:
    import polars as pl

    types = {
        "text": pl.String(),
        "integer": pl.Int64(),
        "number": pl.Float64(),
        "boolean": pl.Boolean(),
    }
    content, _ = _verified(name, file)
    return pl.read_csv(content, schema={key: types[c.type] for key, c in columns.items()})


# Writing datasets to files, whole or not at all.


def as_bytes(frame: pl.DataFrame, target: Path) -> bytes:
    """Return a table in the format of the target's suffix."""
    buffer = io.BytesIO()
    if target.suffix == ".parquet":
        frame.write_parquet(buffer)
    elif target.suffix == ".json":
        frame.write_json(buffer)
    elif target.suffix in (".jsonl", ".ndjson"):
        frame.write_ndjson(buffer)
    else:
        raise InputError(
            f"{target}: unknown suffix {target.suffix!r}. Use .csv, .parquet, .json or .jsonl."
        )
    return buffer.getvalue()


def write(path: Path, content: bytes) -> None:
    """Write a file, complete or not at all; create its folder if needed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
