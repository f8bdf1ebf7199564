"""A question that a benchmark asks: what is measured for it, kept in one JSON shape."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import environments
import numpy as np
from collecting import Load
from environments import Peer
from timing import THREADS, Timed, Work, difference, in_turn, machine, middle, rounded, slope, timed

RESULTS = Path(__file__).parent / "results"
SCHEMA = 2
#: Cores that other processes may use when a measurement begins.
_QUIET = 0.1


@dataclass
class Question:
    """One question: what was asked and measured, written as one JSON document."""

    name: str
    title: str
    asked: str
    quick: bool = False
    runs: int = 9
    #: Seconds for the runs of one comparison.
    budget: float = 15.0
    cases: list[dict[str, Any]] = field(default_factory=list)
    growth: list[dict[str, Any]] = field(default_factory=list)
    targets: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, str]] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=machine)

    def uses(self, *packages: str) -> None:
        """Name packages of this environment whose versions matter."""
        self.packages |= {name: version(name) for name in packages}

    def against(
        self,
        case: str,
        n: int,
        unit: str,
        ours: Work | Peer,
        *,
        why: str,
        same: bool = True,
        **peers: Work | Peer,
    ) -> dict[str, dict[str, Any]]:
        """Time ours and each peer in turn; a keyword is a peer's name, ``_`` for a blank.

        ``why`` says why both sides do the same work. What they return is compared if it should be
        the ``same``.

        Returns
        -------
        dict of str to dict
            What was kept, by name of the peer, with what both sides returned as ``values``.
        """
        found = {}
        for label, peer in peers.items():
            name, both = label.replace("_", " "), (ours, peer)
            try:
                sides = [self._side(one) for one in both]
                seconds, values = in_turn(sides, self.runs, self.budget)
            except environments.PeerError as error:
                self.missing.append({"peer": name, "case": case, "reason": str(error)})
                print(f"{case}: no {name}: {error}", file=sys.stderr, flush=True)
                continue
            finally:
                for one in both:
                    if isinstance(one, Peer):
                        one.stop()
            differ = difference(*values) if same else None
            row = self.keep(case, n, unit, name, seconds, differ, why=why)
            found[name] = row | {"values": values}
        return found

    def takes(self, case: str, n: int, unit: str, ours: Work | Peer) -> dict[str, Any]:
        """Time ours alone, where no tool does the same work."""
        seconds, _ = in_turn([self._side(ours)], self.runs, self.budget)
        if isinstance(ours, Peer):
            ours.stop()
        row = {
            "case": case,
            "n": n,
            "unit": unit,
            "peer": None,
            "runs": len(seconds),
            "ours_seconds": float(np.median(seconds)),
            "ours_slowest": float(seconds.max()),
        }
        self.cases.append(row)
        print(f"{case}, {n:,} {unit}: {row['ours_seconds']:.4g} s", flush=True)
        return row

    def _side(self, work: Work | Peer) -> Timed:
        if not isinstance(work, Peer):
            return timed(work)
        work.start()
        self.packages |= work.versions
        return work.once

    def keep(
        self,
        case: str,
        n: int,
        unit: str,
        peer: str,
        seconds: np.ndarray,
        differ: float | None,
        *,
        why: str = "",
    ) -> dict[str, Any]:
        """Keep pairs of seconds (ours, peer)."""
        ratio, low, high = middle(seconds[:, 0] / seconds[:, 1])
        row = {
            "case": case,
            "n": n,
            "unit": unit,
            "peer": peer,
            "runs": len(seconds),
            "ours_seconds": float(np.median(seconds[:, 0])),
            "peer_seconds": float(np.median(seconds[:, 1])),
            "ratio": ratio,
            "ratio_low": low,
            "ratio_high": high,
            "ours_slowest": float(seconds[:, 0].max()),
            "ratio_worst": float((seconds[:, 0] / seconds[:, 1]).max()),
            "difference": differ,
            "why": why,
        }
        self.cases.append(row)
        print(
            f"{case}, {n:,} {unit}: {row['ours_seconds']:.4g} s, {peer} {row['peer_seconds']:.4g} s"
            f", ratio {ratio:.3g} [{low:.3g}, {high:.3g}]",
            flush=True,
        )
        return row

    def alone(self, work: Work | Peer) -> float:
        """Return the median seconds of ours."""
        found = in_turn([self._side(work)], self.runs, self.budget / 4)[0]
        if isinstance(work, Peer):
            work.stop()
        return float(np.median(found))

    def grows(
        self, case: str, unit: str, make: Callable[[int], Work], sizes: Sequence[int]
    ) -> dict[int, float]:
        """Time ours at growing sizes, and fit the slope; return the median seconds of each."""
        found = {n: self.alone(make(n)) for n in sizes}
        self.keep_growth(case, unit, found)
        return found

    def keep_growth(self, case: str, unit: str, seconds: dict[int, float]) -> None:
        """Keep the seconds at growing sizes, and fit the slope."""
        fit = slope(list(seconds), list(seconds.values()))
        self.growth.append(
            {
                "case": case,
                "unit": unit,
                "sizes": list(seconds),
                "seconds": list(seconds.values()),
                "fit": fit,
            }
        )
        text = ", ".join(f"{n:,}: {s:.3g} s" for n, s in seconds.items())
        print(f"{case} by {unit}: {text}; slope {fit and round(fit['slope'], 2)}", flush=True)

    def target(self, what: str, found: float, limit: float, unit: str) -> None:
        """Hold a figure against the most that it may be."""
        self.targets.append(
            {"what": what, "found": float(found), "limit": limit, "unit": unit}
            | {"met": bool(found <= limit)}
        )
        print(f"target: {what}: {found:.3g} of at most {limit:g} {unit}", flush=True)

    def note(self, what: str, found: float, unit: str) -> None:
        """Keep a figure that has no limit."""
        self.notes.append({"what": what, "found": found, "unit": unit})
        print(f"{what}: {found:.4g} {unit}", flush=True)

    def document(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        versions = {"errcomp": version("errcomp"), "python": platform.python_version()}
        return rounded(
            {
                "schema": SCHEMA,
                "question": self.name,
                "title": self.title,
                "asked": self.asked,
                "date": datetime.date.today().isoformat(),
                "quick": self.quick,
                "machine": self.about,
                "versions": versions | self.packages,
                "cases": self.cases,
                "growth": self.growth,
                "targets": self.targets,
                "notes": self.notes,
                "missing": self.missing,
            }
        )


def quiet(most: float = 60.0) -> float:
    """Wait until other processes use less than a tenth of a core; return what they use."""
    begun = time.monotonic()
    while True:
        load = Load()
        time.sleep(2)
        others, _ = load.used()
        if others < _QUIET or time.monotonic() - begun > most:
            return others


def ask(name: str, title: str, asked: str, measure: Callable[[Question], None]) -> None:
    """Run a script: read its options, measure, and write the results.

    ``--quick`` measures less, and its results are kept only where ``-o`` says so.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="fewer runs of smaller cases")
    parser.add_argument("-o", dest="folder", type=Path, help="folder of the results")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in THREADS.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | THREADS)
    quick = {"runs": 3, "budget": 1.5} if options.quick else {}
    question = Question(name, title, asked, quick=options.quick, **quick)
    question.about["others_before"] = round(0.0 if options.quick else quiet(), 2)
    begun = time.perf_counter()
    measure(question)
    print(f"{name}: {time.perf_counter() - begun:.0f} s in all", flush=True)
    folder = options.folder or (None if options.quick else RESULTS)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(question.document(), indent=2, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
