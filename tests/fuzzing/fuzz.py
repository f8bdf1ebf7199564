"""Damage files that errcomp reads, and look for crashes, hangs, and numbers that change unseen.

    python tests/fuzzing/fuzz.py --minutes 30              # `make fuzz MINUTES=30`
    python tests/fuzzing/fuzz.py --inputs 2000 --seed 7    # the same inputs each time

It begins with the fixtures of all readers, with tables of people, and with the corpus in
tests/data/fuzz. What leads to an answer that was not seen before (another message, another note) is
damaged further. What is found is made small and stored in build/fuzz; put it into the corpus once
it is mended. `--grow 20` adds the smallest inputs with answers that no file there leads to.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz_mutators import Mutant, archive_of, is_text, mutant_of

from errcomp.errors import ErrcompError, GuessedWarning, InputError, LeftOutWarning
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.core.registry import UnforeseenError

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "data" / "readers"
TABLES = Path(__file__).parent / "tables"
FOUND = ROOT / "build" / "fuzz"
#: Below format/case, ``17-sim.log`` stands in the place of the file sim.log of that fixture.
CORPUS = ROOT / "tests" / "data" / "fuzz"
#: What a file may take: seconds per MiB, but not less than this.
SECONDS_PER_MIB = 5.0
#: Inputs that led to new answers and are kept to be damaged further.
_KEPT = 400
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|[\d.,]*\d|\S*/\S*")


@dataclass(frozen=True, slots=True)
class Seed:
    """A file with those beside it, and its kind: a tool's output, or a table to load as such."""

    folder: Path
    name: str
    kind: str = "output"
    given: Path | None = None

    @property
    def content(self) -> bytes:
        """The file itself, or what the corpus has in its place."""
        return (self.given or self.folder / self.name).read_bytes()

    @property
    def place(self) -> str:
        """Where its files in the corpus are."""
        below = self.folder.is_relative_to(FIXTURES)
        return self.folder.relative_to(FIXTURES).as_posix() if below else self.folder.name


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a file: values and how they are accounted for, or the message of an error."""

    values: tuple[Any, ...] = ()
    account: tuple[Any, ...] = ()
    error: str = ""

    @property
    def kind(self) -> str:
        """The answer without what is different in each file."""
        told = self.error or " ".join(map(str, self.account))
        return _QUOTED.sub("~", told)[:300]


@dataclass(frozen=True, slots=True)
class Finding:
    """An input with which a promise was broken."""

    what: str
    where: str
    seed: Seed
    mutant: Mutant


@dataclass
class Tally:
    """What a worker did."""

    inputs: int = 0
    refused: int = 0
    findings: list[Finding] = field(default_factory=list)
    kinds: dict[str, tuple[Seed, bytes]] = field(default_factory=dict)
    peak_mib: float = 0.0


def seeds() -> list[Seed]:
    """Return the fixtures of all readers, and tables of people."""
    outputs = [
        Seed(path.parent, path.name)
        for path in sorted(FIXTURES.rglob("*"))
        if path.is_file() and path.stat().st_size < 200_000 and path.suffix != ".pt"
    ]
    kept = [
        Seed(_home(path.parent), path.name.partition("-")[2], _kind(path), path)
        for path in sorted(CORPUS.rglob("*"))
        if path.is_file()
    ]
    tables = [Seed(TABLES, path.name, path.name.partition(".")[0]) for path in TABLES.iterdir()]
    return outputs + sorted(tables, key=lambda one: one.name) + kept


def _home(folder: Path) -> Path:
    return TABLES if folder.name == TABLES.name else FIXTURES / folder.relative_to(CORPUS)


def _kind(path: Path) -> str:
    name = path.name.partition("-")[2]
    return name.partition(".")[0] if path.parent.name == TABLES.name else "output"


class Hang(BaseException):
    """A file took longer than it may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `Hang` if the block takes longer."""

    def end(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def answer_of(path: Path, kind: str, *, tables: bool) -> Answer:
    """Read a file as a user would."""
    try:
        if kind != "output":
            return _table(path, kind)
        found = ingest(path)
    except InputError as error:
        if isinstance(error, UnforeseenError):
            raise
        return Answer(error=str(error))
    if tables:
        _tables(found)
    return Answer(_values(found), _account(found))


def _table(path: Path, kind: str) -> Answer:
    from errcomp.propagation.errors import read_errors
    from errcomp.readers import history, kernels
    from errcomp.readers.core.content import notes_on
    from errcomp.readers.plain import read_pairs

    told = notes_on(path)
    if kind == "pairs":
        with warnings.catch_warnings(record=True) as guesses:
            # A damaged name of a column may still be recognised, or lists left out: both are said.
            warnings.simplefilter("always", GuessedWarning)
            warnings.simplefilter("always", LeftOutWarning)
            pairs = read_pairs(path, zeros="exclude")
        told = (*told, *(str(one.message) for one in guesses))
        rows = zip(pairs.predicted.tolist(), pairs.measured.tolist(), strict=True)
        return Answer(
            tuple(sorted(rows)), (*told, *((drop.reason, drop.n) for drop in pairs.dropped))
        )
    if kind == "kernels":
        return Answer(tuple(sorted(map(str, kernels.read(path).predicted.tolist()))), told)
    if kind == "errors":
        return Answer((str(read_errors(path)),), told)
    return Answer(tuple(sorted(map(str, history.read(path).measured.tolist()))), told)


def _tables(found: Output) -> None:
    for name in ("pairs", "kernels", "runs", "history"):
        try:
            getattr(found, name)
        except ErrcompError:
            continue
    if found.graph is not None:
        found.graph()


def _values(found: Output) -> tuple[Any, ...]:
    rows = found.rows.select("predicted", "measured").rows()
    return tuple(sorted(map(str, rows)))


def _account(found: Output) -> tuple[Any, ...]:
    status = found.rows["status"]
    return (
        *found.notes,
        *((drop.reason, drop.n) for drop in found.dropped),
        *(skip.reason for skip in found.skipped),
        *status.drop_nulls().value_counts(sort=True).rows(),
    )


def broken(mutant: Mutant, before: Answer, after: Answer) -> str:
    """Return which promise the answer breaks; empty if none."""
    if after.error or before.error:
        if mutant.promise == "same" and not before.error:
            return f"a wrapping is refused: {after.error[:150]}"
        return ""
    if after.values == before.values:
        return ""
    if mutant.promise == "same":
        return "a wrapping changes values"
    told = after.account != before.account or any(
        "not end with a line break" in str(one) for one in after.account
    )
    if mutant.promise == "counted" and not told:
        changed = set(before.values) ^ set(after.values)
        return f"values change unseen: {sorted(changed)[:4]}"
    return ""


def judged(
    seed: Seed, mutant: Mutant, before: Answer, place: Path, *, tables: bool = True
) -> tuple[Answer, str, str]:
    """Read a mutant beside the files of its seed; return the answer, what is wrong, and where."""
    path = place / seed.name
    path.write_bytes(mutant.content)
    limit = max(SECONDS_PER_MIB, SECONDS_PER_MIB * len(mutant.content) / (1 << 20))
    try:
        with within(limit), warnings.catch_warnings():
            warnings.simplefilter("error")
            after = answer_of(path, seed.kind, tables=tables)
    except ErrcompError as error:
        cause = error.__cause__ or error
        if isinstance(error, UnforeseenError):
            return (
                Answer(error="unforeseen"),
                f"{type(cause).__name__}: {str(cause)[:150]}",
                _place(cause),
            )
        return Answer(error=str(error)), "", ""
    except Hang:
        return Answer(error="hang"), f"no answer in {limit:.0f} s", ""
    except Exception as error:
        return Answer(error="crash"), f"{type(error).__name__}: {str(error)[:150]}", _place(error)
    what = broken(mutant, before, after)
    return after, what, ""


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if "/errcomp/" in one.filename] or list(frames)
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


@contextmanager
def beside(seed: Seed) -> Iterator[Path]:
    """Yield a folder with the files of a seed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        for path in seed.folder.iterdir() if seed.kind == "output" else ():
            if path.is_file() and path.stat().st_size < 1 << 20:
                shutil.copyfile(path, Path(name) / path.name)
        yield Path(name)


def fuzz(given: Sequence[Seed], seed: int, *, inputs: int = 0, seconds: float = 0.0) -> Tally:
    """Damage seeds until so many inputs were read, or for so long."""
    rng, tally, begun = random.Random(seed), Tally(), time.monotonic()
    known: set[tuple[str, str]] = set()
    while (inputs and tally.inputs < inputs) or (seconds and time.monotonic() - begun < seconds):
        chosen = rng.choice(given)
        with beside(chosen) as place:
            kept = [chosen.content]
            before = _before(chosen, place)
            for _ in range(60):
                if inputs and tally.inputs >= inputs:
                    break
                base = kept[0] if rng.random() < 0.6 else rng.choice(kept)
                mutant = mutant_of(base, rng) if base else None
                if mutant is None:
                    continue
                if base is not kept[0]:  # its own answer is not known
                    mutant = Mutant(mutant.how, "any", mutant.content)
                target = chosen
                if chosen.kind == "output" and rng.random() < 0.05:
                    suffix, mutant = archive_of({chosen.name: mutant.content}, rng)
                    mutant = Mutant(mutant.how, "any", mutant.content)
                    target = Seed(chosen.folder, f"packed{suffix}")
                after, what, where = judged(
                    target, mutant, before, place, tables=rng.random() < 0.3
                )
                (place / target.name).unlink(missing_ok=True)
                tally.inputs += 1
                tally.refused += bool(after.error)
                if (
                    what
                    and (where or f"{chosen.folder.parent.name} {mutant.how}", what[:40])
                    not in known
                ):
                    known.add((where or f"{chosen.folder.parent.name} {mutant.how}", what[:40]))
                    tally.findings.append(Finding(what, where, target, mutant))
                elif after.kind not in tally.kinds and len(mutant.content) < 100_000:
                    tally.kinds[after.kind] = (target, mutant.content)
                    if len(kept) < _KEPT:
                        kept.append(mutant.content)
    tally.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return tally


def _before(seed: Seed, place: Path) -> Answer:
    path = place / seed.name
    path.write_bytes(seed.content)
    try:
        return answer_of(path, seed.kind, tables=False)
    except ErrcompError as error:
        return Answer(error=str(error))


def smaller(finding: Finding) -> Finding:
    """Remove lines, as long as the same goes wrong at the same place; only of what crashes."""
    if not finding.where or not is_text(finding.mutant.content):
        return finding
    with beside(finding.seed) as place:
        lines, step = (
            finding.mutant.content.split(b"\n"),
            len(finding.mutant.content.split(b"\n")) // 2,
        )
        while step >= 1:
            at = 0
            while at < len(lines):
                fewer = lines[:at] + lines[at + step :]
                tried = Mutant(finding.mutant.how, "any", b"\n".join(fewer))
                _, _, where = judged(finding.seed, tried, Answer(), place)
                if where == finding.where:
                    lines = fewer
                else:
                    at += step
            step //= 2
    return Finding(
        finding.what,
        finding.where,
        finding.seed,
        Mutant(finding.mutant.how, "any", b"\n".join(lines)),
    )


def grow(kinds: dict[str, tuple[Seed, bytes]], most: int) -> None:
    """Add the smallest inputs with new answers to the corpus, made smaller if lines allow."""
    known = {_answer(one, one.content).kind for one in seeds() if one.given is not None}
    new = [(len(content), kind, seed, content) for kind, (seed, content) in kinds.items()]
    number = len([path for path in CORPUS.rglob("*") if path.is_file()])
    for _, kind, seed, content in sorted(new, key=lambda one: one[:2]):
        if most <= 0 or kind in known or seed.name.startswith("packed"):
            continue
        known.add(kind)
        lines = content.split(b"\n") if is_text(content) else []
        at = 0
        while at < len(lines) and len(lines) < 200:
            fewer = lines[:at] + lines[at + 1 :]
            if _answer(seed, b"\n".join(fewer)).kind == kind:
                lines = fewer
            else:
                at += 1
        folder = CORPUS / seed.place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}-{seed.name}").write_bytes(b"\n".join(lines) if lines else content)
        number, most = number + 1, most - 1


def _answer(seed: Seed, content: bytes) -> Answer:
    with beside(seed) as place:
        return judged(seed, Mutant("", "any", content), Answer(), place)[0]


def _work(job: tuple[int, float, int]) -> Tally:
    seed, seconds, inputs = job
    return fuzz(seeds(), seed, seconds=seconds, inputs=inputs)


def main() -> int:
    """Fuzz in as many processes as there are cores; exit with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--inputs", type=int, default=0, help="per process, instead of minutes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--grow", type=int, default=0, help="inputs to add to the corpus")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    begun = time.monotonic()
    seconds = 60 * args.minutes if not args.inputs else 0.0
    jobs = [(args.seed + i, seconds, args.inputs) for i in range(args.workers)]
    with multiprocessing.get_context("fork").Pool(args.workers) as pool:
        tallies = pool.map(_work, jobs)
    inputs, took = sum(one.inputs for one in tallies), time.monotonic() - begun
    found = {
        (one.where or f"{one.seed.folder.parent.name} {one.mutant.how}", one.what[:40]): one
        for tally in tallies
        for one in tally.findings
    }
    print(
        f"seed {args.seed}: {inputs:,} inputs in {took:.0f} s ({inputs / took:.0f} a second), "
        f"{sum(one.refused for one in tallies):,} refused, "
        f"{len(set().union(*(one.kinds for one in tallies))):,} different answers, "
        f"peak memory {max(one.peak_mib for one in tallies):.0f} MiB, {len(found)} findings"
    )
    shutil.rmtree(FOUND, ignore_errors=True)
    FOUND.mkdir(parents=True)
    grow({kind: one for tally in tallies for kind, one in tally.kinds.items()}, args.grow)
    for number, one in enumerate(found.values()):
        least = smaller(one)
        name = f"{number}-{one.seed.folder.parent.name}-{one.mutant.how}"
        (FOUND / f"{name}-{one.seed.name}").write_bytes(least.mutant.content)
        print(f"{name}: {one.seed.folder.name}/{one.seed.name}: {one.what} {one.where}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
