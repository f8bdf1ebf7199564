"""The tables that come with errcomp: what they are, where they came from, how to rebuild them.

Each dataset is a folder of CSV files with a README and a ``SHA256SUMS``, and a module here that
says what the columns mean and builds the files from the original. To add one, declare it in the
``SPECS`` of such a module and name that in ``_MODULES``.
"""

from __future__ import annotations

import hashlib
import importlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.datasets._spec import Column, DatasetInfo, DatasetSpec, TableInfo
from errcomp.errors import InputError, offer
from errcomp.system.files import replacing
from errcomp.tables import History, Kernels, Pairs

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import polars as pl

__all__ = [
    "build",
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


#: Dataset name to the module that has it in its ``SPECS``.
_MODULES = {
    "neusight": "errcomp.datasets.neusight",
    "neusight-kernels": "errcomp.datasets.neusight",
    "ort-cpu": "errcomp.datasets.measured",
    "ort-releases": "errcomp.datasets.measured",
    "survey": "errcomp.datasets.survey",
    "torch-cpu": "errcomp.datasets.measured",
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
    """Return the names that ``load_kernels`` accepts.

    Examples
    --------
    >>> kernel_tables()
    ('neusight-kernels', 'ort-cpu', 'torch-cpu')
    """
    return tuple(name for name in names() if _spec(name).holds == "kernels")


def histories() -> tuple[str, ...]:
    """Return the names that ``load_history`` accepts.

    Examples
    --------
    >>> histories()
    ('ort-releases',)
    """
    return tuple(name for name in names() if _spec(name).holds == "history")


def list() -> tuple[DatasetInfo, ...]:  # noqa: A001 - the name the design gives it
    """Return what is known about every embedded dataset."""
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
        There is no such dataset, or its files are missing or were modified.

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


def load(name: str) -> Pairs:
    """Load an embedded dataset of predictions and measurements.

    Parameters
    ----------
    name : str
        ``"neusight"``: the ASPLOS'25 artifact of NeuSight, 146 configurations, four predictors.

    Returns
    -------
    Pairs
        Unit and subject are set; ``source`` names the dataset.

    Raises
    ------
    InputError
        There is no such dataset, it holds no pairs, or its file was modified (SHA-256 differs).

    Examples
    --------
    >>> pairs = load("neusight")
    >>> pairs.n, pairs.unit, pairs.where({"tool": "neusight"}).n
    (386, 'ms', 146)
    """
    spec = _spec(name)
    if spec.holds == "kernels":
        raise InputError(
            f"dataset {name!r} is a table of kernels, not of pairs. Use `errcomp propagate "
            f"{name}`, or errcomp.datasets.load_kernels({name!r})."
        )
    if spec.holds == "history":
        raise InputError(
            f"dataset {name!r} is a history of validations, not a table of pairs. Use `errcomp "
            f"halflife fit {name}`, or errcomp.datasets.load_history({name!r})."
        )
    if spec.holds != "pairs":
        raise InputError(
            f"dataset {name!r} holds tables, not pairs. Use errcomp.datasets.tables({name!r})."
        )
    return Pairs(**_table(name, spec), subject=spec.subject)


def load_kernels(name: str) -> Kernels:
    """Load an embedded table of kernels, for ``errcomp.propagation`` and ``errcomp.calibration``.

    Parameters
    ----------
    name : str
        ``"neusight-kernels"``: the operators of 87 runs on 8 devices of the ASPLOS'25 artifact of
        NeuSight, predicted and measured one by one. ``"ort-cpu"`` and ``"torch-cpu"``: small
        networks on one CPU core, operators and runs measured by errcomp; no predictions.

    Returns
    -------
    Kernels
        Unit is set; ``source`` names the dataset.

    Raises
    ------
    InputError
        There is no such dataset, it holds no kernels, or its file was modified (SHA-256 differs).

    Examples
    --------
    >>> kernels = load_kernels("neusight-kernels")
    >>> kernels.n_runs, kernels.unit, len(set(kernels.device))
    (87, 'ms', 8)
    """
    spec = _spec(name)
    if spec.holds != "kernels":
        raise InputError(
            f"dataset {name!r} is not a table of kernels. Those are: {', '.join(kernel_tables())}"
        )
    return Kernels(**_table(name, spec))


def load_history(name: str) -> History:
    """Load an embedded history of validations, for ``errcomp.halflife``.

    Parameters
    ----------
    name : str
        ``"ort-releases"``: small networks in 35 releases of ONNX Runtime on one CPU core, against
        a model frozen at the first; measured by errcomp.

    Returns
    -------
    History
        Unit is set; ``source`` names the dataset.

    Raises
    ------
    InputError
        There is no such dataset, it holds no history, or its file was modified (SHA-256 differs).

    Examples
    --------
    >>> history = load_history("ort-releases")
    >>> history.versions[0], history.versions[-1], history.unit
    ('1.15.0', '1.31.1', 'ms')
    """
    spec = _spec(name)
    if spec.holds != "history":
        raise InputError(
            f"dataset {name!r} is not a history of validations. Those are: {', '.join(histories())}"
        )
    return History(**_table(name, spec))


def tables(name: str) -> dict[str, pl.DataFrame]:
    """Load every table of a dataset as it is in its file.

    Parameters
    ----------
    name : str
        One of ``names()``.

    Returns
    -------
    dict of str to polars.DataFrame
        File name without suffix to its table; missing values are null.

    Raises
    ------
    InputError
        There is no such dataset, or a file was modified (SHA-256 differs).

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
        Made if missing. Gets the CSV files and their ``SHA256SUMS``, each complete or not at all.

    Returns
    -------
    tuple of Path
        The files written.

    Raises
    ------
    InputError
        There is no such dataset, the source cannot be read as one, or the folder is not writable.
    """
    contents = dict(_spec(name).build(Path(source)))
    sums = "".join(f"{sha256(content)}  {file}\n" for file, content in contents.items())
    # The checksums come last: a build that was interrupted does not verify.
    contents[_SUMS] = sums.encode()
    for file, content in contents.items():
        write(Path(out_dir) / file, content)
    return tuple(Path(out_dir) / file for file in contents)


def export(name: str, path: str | os.PathLike[str]) -> Path:
    """Write a dataset to a file of the user's: ``.csv``, ``.parquet``, ``.json`` or ``.jsonl``.

    Parameters
    ----------
    name : str
        One of ``names()``. A dataset of several tables goes to a folder (a path without suffix),
        one CSV file for each.
    path : path
        Replaced if it exists.

    Returns
    -------
    Path
        ``path``.

    Raises
    ------
    InputError
        There is no such dataset, the suffix is unknown or the place is not writable.
    """
    spec, target = _spec(name), Path(path)
    if target.suffix == "":
        for file in spec.tables:
            write(target / file, _verified(name, file)[0])
        return target
    if len(spec.tables) > 1:
        raise InputError(
            f"{target}: dataset {name!r} has {len(spec.tables)} tables, one file cannot hold them. "
            "Give a folder (a path without suffix)."
        )
    (file,) = spec.tables
    if target.suffix == ".csv":
        write(target, _verified(name, file)[0])
    else:
        write(target, as_bytes(_frame(name, file, spec.tables[file]), target))
    return target


def folder(name: str) -> Path:
    """Return the folder with the files of a dataset, its README and its checksums."""
    _spec(name)
    package = Path(__file__).resolve().parents[1]
    # In a wheel the tables are inside the package; in a checkout they are beside it.
    inside = package / "_datasets"
    return (inside if inside.is_dir() else package.parent / "datasets") / name


def _spec(name: str) -> DatasetSpec:
    if name not in _MODULES:
        raise InputError(f"there is no dataset {name!r}. {offer('Datasets', names(), wanted=name)}")
    spec = importlib.import_module(_MODULES[name]).SPECS[name]
    assert isinstance(spec, DatasetSpec)
    return spec


def _table(name: str, spec: DatasetSpec) -> dict[str, Any]:
    """Return what a dataset of one table is as arguments of its kind of table."""
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
            f"{path}: its SHA-256 ({digest[:12]}…) is not the one in {_SUMS}: the table was "
            f"modified. Reinstall errcomp, or rebuild it with: errcomp datasets build {name}"
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


# Files of a dataset written out: as the user wants them, whole or not at all.


def as_bytes(frame: pl.DataFrame, target: Path) -> bytes:
    """Return a table in the format of a suffix."""
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
    """Write a file, complete or not at all, and the folder for it if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def sha256(content: bytes) -> str:
    """Return the checksum of a content as text."""
    return hashlib.sha256(content).hexdigest()
