"""Compare a framework's releases with one of them, the anchor, two live processes at a time.

A piece of about a minute has two processes on one pinned core, one per release. Both run the same
models slice by slice in turn (see `slices`; the script of a side is given), so that drift of the
clock or of other load affects both equally. The process that starts first may be slower (by up to a
fifth if memory is the limit), so each release comes first in some pieces. Other differences between
processes are averaged over pieces: three for each release, in a random order in each of three
rounds. In some pieces at the start, in the middle and at the end, both processes are the anchor:
they show the noise of the protocol itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from collecting import SEED, Bar, Load, as_csv, in_ms


@dataclass(frozen=True)
class Protocol:
    """How it is measured."""

    rounds: int = 3
    passes: int = 25
    least_runs: int = 10
    most_runs: int = 40
    slice_ms: float = 6.0
    profiled_every: int = 3
    least_slices: int = 15
    smallest_only: bool = False


QUICK = Protocol(rounds=1, passes=5, least_slices=3, smallest_only=True)


class Side:
    """A live process with one release."""

    def __init__(
        self, name: str, script: str, release: Path, models: Path, job: Mapping[str, Any]
    ) -> None:
        self.folder = models / name
        self.folder.mkdir()
        for file in models.glob("*.*"):
            if file.is_file():
                (self.folder / file.name).symlink_to(file)
        self.out = self.folder / "found.json"
        file = self.folder / "job.json"
        file.write_text(
            json.dumps({**job, "folder": str(self.folder), "out": str(self.out)}), encoding="utf-8"
        )
        self.said = (self.folder / "stderr.txt").open("w+")
        # As in `collecting`: memory is kept, otherwise every run would allocate it again.
        kept = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "4294967295"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name(script)), str(file)],
            env={**os.environ, **kept, "PYTHONPATH": str(release)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
        )

    def wait(self) -> Any:
        """Wait for an answer and return it."""
        if not (answer := self.process.stdout.readline()):
            self.said.seek(0)
            raise SystemExit(f"{self.folder.name} of the pair failed:\n{self.said.read()[-2000:]}")
        return json.loads(answer)

    def slice(self, *what: Any) -> None:
        """Run one slice."""
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        self.wait()

    def found(self) -> dict[str, Any]:
        """End it and return what it measured."""
        self.process.stdin.close()
        if self.process.wait():
            self.wait()
        return json.loads(self.out.read_text(encoding="utf-8"))

    def close(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        self.said.close()


def pieces(protocol: Protocol, releases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and release of each piece in the order of measurement; the first is the anchor."""
    anchor, *others = releases
    measured = [
        (f"{round_}-{version}", version)
        for round_ in range(1, protocol.rounds + 1)
        for version in np.random.default_rng([SEED, round_]).permutation(others).tolist()
    ]
    alike = {0: "start", len(measured) // 2: "middle", len(measured): "end"}
    for i in range(len(measured) + 1):
        if i in alike:
            yield from ((f"{alike[i]}-{anchor}-{n + 1}", anchor) for n in range(protocol.rounds))
        yield from measured[i : i + 1]


def measure(
    protocol: Protocol,
    script: str,
    releases: Sequence[Path],
    models: Path,
    names: Sequence[str],
    seed: Sequence[int],
) -> dict[str, Any]:
    """Measure one pair; the first release is the anchor."""
    core = max(os.sched_getaffinity(0))
    job = {"models": [*names], "core": core}
    sides: dict[str, Side] = {}
    load, begun, started = Load(), time.monotonic(), datetime.now(UTC)
    try:
        # Neither is always the one that was started first.
        both = dict(zip("ab", releases, strict=True))
        for name in "ab" if seed[-1] % 2 == 0 else "ba":
            sides[name] = Side(name, script, both[name], models, job)
            fastest = sides[name].wait()
        runs = [
            int(np.clip(1000 * protocol.slice_ms / t, protocol.least_runs, protocol.most_runs))
            for t in fastest
        ]
        rng = np.random.default_rng(seed)
        for turn in range(protocol.passes):
            for i in rng.permutation(len(names)):
                for profiled in (False, True)[: 2 if turn % protocol.profiled_every == 0 else 1]:
                    for name in "ba" if turn % 2 else "ab":
                        sides[name].slice(names[i], profiled, runs[i])
        first = next(iter(sides))
        a, b = (sides[name].found() for name in "ab")
    finally:
        for side in sides.values():
            side.close()
    others, stolen = load.used()
    return {
        "date": started.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - begun, 1),
        "other_cores": round(others, 3),
        "stolen_cores": round(stolen, 3),
        "started_first": first,
        "priority": a.pop("priority") + b.pop("priority"),
        "networks": {name: compared(a[name], b[name]) for name in names},
    }


def compared(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Put both sides of a network together: the change is that of slices run side by side."""
    pairs = [
        (x, y) for x, y in zip(a.pop("slices"), b.pop("slices"), strict=True) if None not in (x, y)
    ]
    times = np.array(pairs, float).reshape(-1, 2)
    if not len(times):
        return {"slices": 0}
    ratios = np.log(times[:, 1] / times[:, 0])
    run_a, run_b = np.median(times, axis=0).tolist()
    return {
        "slices": len(pairs),
        "log_ratio": round(float(np.median(ratios)), 6),
        "slice_spread": round(float(np.std(ratios, ddof=1)), 6) if len(pairs) > 1 else None,
        "a": {"run": run_a, **a},
        "b": {"run": run_b, **b},
    }


def rows_of(piece: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of a piece: of its runs and of their operators; times in ms."""
    runs, kernels = [], []
    for name, found in piece["networks"].items():
        model, _, shape = name.rpartition("_")
        keys = {
            "version": piece["version"],
            "piece": piece["piece"],
            "anchor_first": int(piece.get("started_first", "a") == "a"),
            "model": model,
            "input": shape,
        }
        a, b = found["a"], found["b"]
        both = [
            (f"{side}{what}", in_ms(times[what]))
            for what in ("run", "profiled_run", "profiled_model_run")
            for side, times in (("anchor_", a), ("", b))
        ]
        change = {key: found[key] for key in ("log_ratio", "slice_spread", "slices")}
        runs.append({**keys, **dict(both), **change})
        of_a, of_b = ({tuple(k["key"]): k for k in side["kernels"]} for side in (a, b))
        for kind in of_a | of_b:
            one, other = of_a.get(kind), of_b.get(kind)
            same = (
                one and other and one["count"] == other["count"] and min(one["time"], other["time"])
            )
            kernels.append(
                {
                    **keys,
                    "kernel_class": kind[0],
                    "kernel": f"{kind[0]} {kind[1]}".rstrip() + f"->{kind[2]}",
                    "anchor_count": one and one["count"],
                    "count": other and other["count"],
                    "anchor_time": one and in_ms(one["time"]),
                    "time": other and in_ms(other["time"]),
                    "log_ratio": round(float(np.log(other["time"] / one["time"])), 6)
                    if same
                    else None,
                }
            )
    return runs, kernels


class Study:
    """A folder with the pieces of a comparison.

    Parameters
    ----------
    releases : sequence of str
        The first is the anchor.
    fetch : callable
        Returns where a release is, to be imported from there.
    script : str
        Measures one side, in a process of its own.
    """

    def __init__(
        self,
        folder: Path,
        protocol: Protocol,
        releases: Sequence[str],
        fetch: Callable[[str], Path],
        script: str,
    ) -> None:
        self.folder, self.protocol, self.releases = folder, protocol, releases
        self.fetch, self.script = fetch, script
        self.stored = folder / "pieces"
        self.stored.mkdir(parents=True, exist_ok=True)
        self.plan = list(pieces(protocol, releases))

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Pieces still to be measured."""
        return [(name, v) for name, v in self.plan if not (self.stored / f"{name}.json").exists()]

    def write(self, name: str, text: str) -> None:
        """Write a file as a whole or not at all."""
        temporary = self.folder / f"{name}.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.folder / name)

    def measure(self, models: Path, names: Sequence[str]) -> None:
        """Measure the missing pieces."""
        bar = Bar(len(self.plan))
        anchor = self.fetch(self.releases[0])
        for name, version in self.missing:
            bar.show(len(self.plan) - len(self.missing))
            with tempfile.TemporaryDirectory(dir=models) as place:
                for file in models.iterdir():
                    if file.is_file():
                        (Path(place) / file.name).symlink_to(file)
                seed = [SEED, self.plan.index((name, version))]
                both = (anchor, self.fetch(version))
                found = measure(self.protocol, self.script, both, Path(place), names, seed)
            least = min(network["slices"] for network in found["networks"].values())
            text = (
                f"{found['seconds']:.0f} s, {least} slices or more of each network; other "
                f"processes used {found['other_cores']:.2f} cores"
            )
            if least < self.protocol.least_slices:
                bar.say(f"{name} dropped: {text}")
                continue
            whole = {"piece": name, "version": version, **found}
            self.write(f"pieces/{name}.json", json.dumps(whole) + "\n")
            bar.say(f"{name}: {text}")

    def tabulate(self, about: Mapping[str, Any]) -> None:
        """Write the tables of all pieces."""
        runs, kernels, told = [], [], []
        for name, _ in self.plan:
            piece = json.loads((self.stored / f"{name}.json").read_text(encoding="utf-8"))
            found = rows_of(piece)
            runs += found[0]
            kernels += found[1]
            del piece["networks"]
            told.append(piece)
        self.write("runs.csv", as_csv(runs))
        self.write("kernels.csv", as_csv(kernels))
        whole = {**about, "anchor": self.releases[0], "pieces": told}
        self.write("protocol.json", json.dumps(whole, indent=2) + "\n")
