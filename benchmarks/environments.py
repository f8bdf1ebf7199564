"""Peers in environments of their own, and the live process that runs one of them when told.

A peer is a file `peers/NAME.py` with functions that make work, and `peers/NAME.txt` with what is
installed for it, into `.peers/NAME` beside this file; without such a list it runs in this
environment. A first line such as `#python3.13` names another interpreter.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).parent
#: Seconds for an installation, and for one run of a peer.
_INSTALL = 900


class PeerError(Exception):
    """A peer is not there, failed, or ended before it answered."""


def environment(name: str) -> tuple[str, str | None]:
    """Return the interpreter of a peer, made if it is not there, and why there is none."""
    folder, wanted = HERE / ".peers" / name, HERE / "peers" / f"{name}.txt"
    if not wanted.exists():
        return sys.executable, None
    python, mark = folder / "bin" / "python", folder / "installed"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return str(python), None
    first = wanted.read_text(encoding="utf-8").split("\n", 1)[0]
    base = first[1:] if first.startswith("#") else sys.executable
    print(f"installing {name}", file=sys.stderr, flush=True)
    try:
        made = subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=False)
    except FileNotFoundError:
        return "", f"there is no {base} here"
    if made.returncode:
        return "", f"{base} makes no environment"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    try:
        done = subprocess.run(
            [*pip, "-r", str(wanted)], capture_output=True, text=True, timeout=_INSTALL, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"was not installed within {_INSTALL} s"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return "", f"does not install: {(lines or ['pip failed'])[-1][:200]}"
    mark.write_text(digest)
    return str(python), None


class Peer:
    """Work of a peer: a function of its file, and what that is given.

    Parameters
    ----------
    name : str
        File in `peers` and environment.
    task : str
        Function that makes the data and returns the work, with nothing left to prepare.
    fresh : bool
        Whether each run has a process of its own, so that nothing is compiled or cached before.
    arguments
        Plain values for it.
    """

    def __init__(self, name: str, task: str, *, fresh: bool = False, **arguments: Any) -> None:
        self.name, self.task, self.fresh, self.arguments = name, task, fresh, arguments
        self._used = False
        self.versions: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process and let it prepare."""
        python, reason = environment(self.name)
        if reason is not None:
            raise PeerError(reason)
        given = json.dumps({"task": self.task, "arguments": self.arguments})
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(HERE / "peer_side.py"), self.name, given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.versions = self._answer()["versions"]

    def once(self) -> tuple[float, Any]:
        """Let it work once; return seconds and value."""
        if self.fresh and self._used:
            self.stop()
            self.start()
        self._used = True
        stdin, _ = self._pipes()
        try:
            print("go", file=stdin, flush=True)
        except BrokenPipeError as error:
            raise PeerError(f"{self.task} ended") from error
        found = self._answer()
        return found["seconds"], found["value"]

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            for pipe in self._pipes():
                pipe.close()
            self._process.kill()
            self._process.wait()
            self._process = None

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _answer(self) -> dict[str, Any]:
        _, stdout = self._pipes()
        if not (line := stdout.readline()):
            raise PeerError(f"{self.task} ended without an answer")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise PeerError(found["error"])
        return found
