"""Measure in fresh processes, piece by piece: common parts of the collectors of run times.

A collector describes its measurement (`describe`) and names a script that measures (see `slices`).
A piece of about a minute is one fresh process with some of the models, drawn again in each round.
Complete pieces are stored; another call measures the missing ones. A piece is left out if other
processes use more than 1.2 cores before or during it, unless --anyway, or if too few undisturbed
runs remain. When all pieces are complete, the folder gets

* kernels.csv: a table of kernels, times in ms; operators of a run whose type and shapes agree are
  one row.
* processes.csv: times of each run in each process.
* protocol.json: protocol, machine, versions, dates and load.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from slices import Key

#: What other processes may use, in cores.
MOST_OTHERS = 1.2
#: And what the host may take.
MOST_STOLEN = 0.05
SEED = 23
#: Decimals of times in ms: 1 ns.
_DECIMALS = 6


@dataclass(frozen=True)
class Protocol:
    """How it is measured: seconds are those of a piece, with its start; `on` names the device."""

    rounds: int = 5
    parts: int = 2
    seconds: float = 50.0
    least_passes: int = 3
    least_runs: int = 10
    most_runs: int = 100
    most_profiled_runs: int = 16
    slice_ms: float = 20.0
    smallest_only: bool = False
    on: str = "cpu"

    @property
    def pieces(self) -> int:
        """Number of processes."""
        return self.rounds * self.parts


#: What a quick try changes.
QUICK = {"rounds": 3, "parts": 1, "seconds": 5.0, "slice_ms": 1.0, "smallest_only": True}


class Load:
    """What others use of the machine, in cores, from when this was made."""

    def __init__(self) -> None:
        self._began = self._now()

    @staticmethod
    def _now() -> np.ndarray:
        first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        user, nice, system, _, _, irq, softirq, stolen, *_ = map(int, first.split()[1:])
        busy = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            busy -= usage.ru_utime + usage.ru_stime
        return np.array([time.monotonic(), busy, stolen / os.sysconf("SC_CLK_TCK")])

    def used(self) -> tuple[float, float]:
        """Return cores used by other processes, and those that the host gave to others."""
        seconds, busy, stolen = (self._now() - self._began).tolist()
        return max(0.0, busy / seconds), stolen / seconds


class Bar:
    """A line of progress on stderr; without a terminal, messages only."""

    def __init__(self, total: int) -> None:
        self.total, self.begun = total, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def show(self, done: float) -> None:
        """Draw the line again."""
        if self.terminal:
            bar = ("#" * round(30 * done / self.total)).ljust(30, "-")
            minutes = (time.monotonic() - self.begun) / 60
            line = f"\r[{bar}] {done:.1f} of {self.total} pieces, {minutes:.1f} min "
            print(line, end="", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a text above the line."""
        print(("\r\x1b[K" if self.terminal else "") + text, file=sys.stderr, flush=True)


def version_of(release: str) -> str:
    """Return the version number of a system's release, without the name of its build.

    The name says who built the kernel, not what ran on it.
    """
    found = re.match(r"\d+(\.\d+)*", release)
    return found.group() if found else ""


def machine() -> dict[str, Any]:
    """Describe the CPU and the system."""
    first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    cpu = {
        key.strip(): text.strip() for key, _, text in (s.partition(":") for s in first.split("\n"))
    }
    name = cpu.get("model name", platform.machine()).split("@")[0]
    for noise in ("(R)", "(TM)", " CPU", " Processor"):
        name = name.replace(noise, "")
    # Virtual machines hide the model behind its series; family and model number tell it.
    if "cpu family" in cpu:
        name = f"{name.strip()} f{cpu['cpu family']}m{cpu['model']}"
    flags = cpu.get("flags", "").split()
    wanted = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8")
    return {
        "device": name,
        "cpu": cpu.get("model name"),
        "cache": cpu.get("cache size"),
        "extensions": [flag for flag in wanted if flag in flags],
        "virtual": "hypervisor" in flags,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {version_of(platform.release())}".strip(),
    }


class Collection:
    """A folder with the pieces of a measurement.

    Parameters
    ----------
    about : mapping
        Must be equal in all pieces: "device", "version", "protocol" with the variants, "models" by
        name ("model", "mode", "input", "batch"), and any further description.
    script : str
        Measures a piece in its own process: see `slices`.
    """

    def __init__(
        self, folder: Path, protocol: Protocol, about: Mapping[str, Any], script: str
    ) -> None:
        self.folder, self.protocol, self.script = folder, protocol, script
        here = Path(__file__).parent
        measured_by = ("slices.py", script)
        digests = {n: hashlib.sha256((here / n).read_bytes()).hexdigest() for n in measured_by}
        self.about = json.loads(json.dumps({**about, "scripts": digests}))
        self.pieces = [folder / "pieces" / f"{i:02}.json" for i in range(protocol.pieces)]
        self.pieces[0].parent.mkdir(parents=True, exist_ok=True)
        known = folder / "protocol.json"
        if known.exists():
            before = json.loads(known.read_text(encoding="utf-8"))
            differ = [key for key in self.about if before.get(key) != self.about[key]]
            if differ:
                raise SystemExit(
                    f"{folder} holds another measurement: {', '.join(differ)} differ. Give a "
                    "folder of its own."
                )
        else:
            self.write("protocol.json", json.dumps(self.about, indent=2) + "\n")

    @property
    def missing(self) -> list[int]:
        """Numbers of the pieces still to be measured."""
        return [i for i, path in enumerate(self.pieces) if not path.exists()]

    def write(self, name: str, text: str) -> None:
        """Write a file as a whole or not at all."""
        temporary = self.folder / f"{name}.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.folder / name)

    def measure(self, models: Path, *, anyway: bool) -> None:
        """Measure the missing pieces, one process each."""
        cores = os.sched_getaffinity(0)
        core = max(cores)
        # This process and what it reads stay away from the core that measures.
        os.sched_setaffinity(0, cores - {core} or cores)
        bar = Bar(len(self.pieces))
        for i in self.missing:
            bar.show(len(self.pieces) - len(self.missing))
            before = Load()
            time.sleep(2.0)
            if (others := before.used()[0]) > MOST_OTHERS and not anyway:
                bar.say(f"piece {i} skipped: other processes use {others:.1f} cores")
                continue
            found = self._piece(i, core, models, bar)
            slices = min(result["slices"] for result in found["results"])
            others, share = found["other_cores"], found["core_share"]
            text = (
                f"{found['seconds']:.0f} s, {slices} slices or more of each configuration; other "
                f"processes used {others:.2f} cores, it had {share:.1%} of its own"
            )
            disturbed = (
                others > MOST_OTHERS
                or found["stolen_cores"] > MOST_STOLEN
                or slices < self.protocol.least_passes
            )
            if slices == 0 or (disturbed and not anyway):
                bar.say(f"piece {i} dropped: {text}")
                continue
            self.write(f"pieces/{i:02}.json", json.dumps({**found, "anyway": anyway}) + "\n")
            bar.say(f"piece {i}: {text}")

    def _piece(self, number: int, core: int, models: Path, bar: Bar) -> dict[str, Any]:
        protocol = self.protocol
        of_round, part = divmod(number, protocol.parts)
        names = np.random.default_rng([SEED, of_round]).permutation(list(self.about["models"]))
        job = {
            **asdict(protocol),
            "folder": str(models),
            "models": names[part :: protocol.parts].tolist(),
            "variants": self.about["protocol"]["variants"],
            "core": core,
            "seed": [SEED, of_round, part],
            "out": str(models / "found.json"),
        }
        file = models / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        command = [sys.executable, str(Path(__file__).with_name(self.script)), str(file)]
        date, load, begun = datetime.now(UTC), Load(), time.monotonic()
        done = len(self.pieces) - len(self.missing)
        # Memory that is freed after every run is allocated again in every run, and more so under a
        # profiler. Keep it: page faults belong neither to the operators nor to the network.
        kept = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "4294967295"}
        said = models / "stderr.txt"
        with said.open("w") as stderr:
            child = subprocess.Popen(command, stderr=stderr, env={**os.environ, **kept})
            try:
                while child.poll() is None:
                    bar.show(done + min(1.0, (time.monotonic() - begun) / protocol.seconds))
                    time.sleep(0.5)
            finally:
                child.kill()
        if child.returncode:
            last = said.read_text(errors="replace")[-2000:]
            raise SystemExit(f"piece {number}: {command[1]} failed:\n{last}")
        others, stolen = load.used()
        return {
            "piece": number,
            "date": date.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - begun, 1),
            "other_cores": round(others, 3),
            "stolen_cores": round(stolen, 3),
            **json.loads(Path(job["out"]).read_text(encoding="utf-8")),
        }

    def tabulate(self) -> None:
        """Write the tables of all pieces."""
        pieces = [json.loads(path.read_text(encoding="utf-8")) for path in self.pieces]
        by_run: dict[tuple[str, str], list[dict[str, Any]]] = {
            (name, variant): []
            for name in self.about["models"]
            for variant in self.about["protocol"]["variants"]
        }
        for piece in pieces:
            for result in piece.pop("results"):
                by_run[result["name"], result["variant"]].append(
                    {**result, "piece": piece["piece"]}
                )
        kernels, processes = [], []
        phases = self.about["protocol"].get("phases", ())
        for (name, variant), results in by_run.items():
            about = self.about["models"][name]
            run = "/".join([about["model"], *about["path"], variant])
            keys = {
                "run": run,
                "device": self.about["device"],
                "model": about["model"],
                "mode": about["mode"],
                "batch": about["batch"],
                "input": about["input"],
                "variant": variant,
                "version": self.about["version"],
            }
            kernels += [{**keys, **row} for row in kernel_rows(run, results, phases)]
            processes += [{"run": run, **process_row(result)} for result in results]
        self.write("kernels.csv", as_csv(kernels))
        self.write("processes.csv", as_csv(processes))
        self.write("protocol.json", json.dumps({**self.about, "pieces": pieces}, indent=2) + "\n")


def kernel_rows(
    run: str, results: Sequence[Mapping[str, Any]], phases: Sequence[str] = ()
) -> Iterable[dict[str, Any]]:
    """Return a row for each operator of a run, with means over processes.

    Where runs have phases, a row also has its phase, and how long that took without profiler.

    Means, not medians: operators and run stay those of the same processes, some of which are
    slower in both.
    """
    kinds = [[(*kernel["key"], kernel["count"]) for kernel in r["kernels"]] for r in results]
    if any(kind != kinds[0] for kind in kinds):
        raise SystemExit(f"{run}: its operators differ between processes")
    whole = {
        name: [result[source] for result in results]
        for name, source in (
            ("run_measured", "run"),
            ("profiled_run", "profiled_run"),
            ("profiled_model_run", "profiled_model_run"),
        )
    }
    of_run: dict[str, Any] = {name: in_ms(np.mean(times)) for name, times in whole.items()}
    of_run["run_spread"] = spread(whole["run_measured"])
    took = {
        phase: in_ms(np.mean([result["phases"][phase] for result in results]))
        for phase in results[0].get("phases", ())
    }
    for i, (*key, count) in enumerate(kinds[0]):
        kernel = Key(*key)
        times = [result["kernels"][i]["time"] for result in results]
        yield {
            "kernel": f"{kernel.name} {kernel.inputs}".rstrip()
            + (f"->{kernel.output}" if kernel.output else ""),
            "kernel_class": kernel.operator or kernel.name,
            "shape": kernel.output,
            **({"phase": kernel.phase, "phase_measured": took.get(kernel.phase)} if phases else {}),
            "count": count,
            "measured": in_ms(np.mean(times)),
            "measured_spread": spread(times),
            **of_run,
        }


def process_row(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the times of a run in one process."""
    return {
        "piece": result["piece"],
        "slices": result["slices"],
        "runs_per_slice": result["runs"],
        "profiled_runs_per_slice": result["profiled_runs"],
        "run_measured": in_ms(result["run"]),
        "kernels": in_ms(sum(kernel["count"] * kernel["time"] for kernel in result["kernels"])),
        "profiled_run": in_ms(result["profiled_run"]),
        "profiled_model_run": in_ms(result["profiled_model_run"]),
    }


def in_ms(microseconds: float) -> float:
    return round(float(microseconds) / 1000, _DECIMALS)


def spread(times: Sequence[float]) -> float | None:
    """Return standard deviation / mean over processes; None where that means nothing."""
    mean = np.mean(times)
    return round(float(np.std(times, ddof=1) / mean), 4) if len(times) > 1 and mean > 0 else None


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main(
    doc: str,
    script: str,
    describe: Callable[[Path, Protocol], Mapping[str, Any]],
    protocols: Mapping[str, Protocol] = {"cpu": Protocol()},
) -> int:
    """Run a collector: `describe` writes models to a folder and says what is measured.

    `protocols` say how, for each kind of device that the collector can measure.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--quick", action="store_true", help="try it: smallest shapes, seconds only"
    )
    parser.add_argument("--anyway", action="store_true", help="measure on a busy machine too")
    if len(protocols) > 1:
        parser.add_argument("--device", choices=list(protocols), default="cpu", dest="on")
    args = parser.parse_args()
    protocol = protocols[getattr(args, "on", "cpu")]
    if args.quick:
        protocol = replace(protocol, **QUICK)
    with tempfile.TemporaryDirectory() as models:
        about = describe(Path(models), protocol)
        collection = Collection(args.folder, protocol, about, script)
        collection.measure(Path(models), anyway=args.anyway)
    if missing := len(collection.missing):
        print(f"{missing} of {protocol.pieces} pieces are missing: run this again", file=sys.stderr)
        return 1
    collection.tabulate()
    return 0
