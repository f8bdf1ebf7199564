"""zsh itself loads the script and completes, key by key as somebody types."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from errcomp.cli.commands.completion import script

#: Loads the script as a user does, and notes what the completion of a line offers.
STARTUP = r"""
PROMPT= RPROMPT=
fpath=($ZDOTDIR/functions $fpath)
autoload -Uz compinit && compinit -u -D
setopt no_beep
compadd() {
  local -a hits
  builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- $hits >> $OFFERED
  builtin compadd "$@"
}
offer() {
  _main_complete
  compstate[insert]= compstate[list]=
  print -r -- --end-- >> $OFFERED
}
zle -C offer complete-word offer
bindkey '^I' offer
print -r -- --end-- >> $OFFERED
"""
KILL_LINE = "\x15"


@pytest.fixture(scope="module")
def zsh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], list[str]]]:
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh (Debian: apt-get install zsh)")
    folder = tmp_path_factory.mktemp("zsh")
    home, here = folder / "home", folder / "here"
    (home / "functions").mkdir(parents=True)
    (here / "results").mkdir(parents=True)
    (here / "pairs of mine.csv").touch()
    (home / ".zshrc").write_text(STARTUP, encoding="utf-8")
    (home / "functions" / "_errcomp").write_text(script("zsh"), encoding="utf-8")
    offered = folder / "offered"
    offered.touch()
    terminal, other_end = os.openpty()
    process = subprocess.Popen(
        ["zsh", "-d", "-i"],  # no files but the one above
        stdin=other_end, stdout=other_end, stderr=other_end, cwd=here, start_new_session=True,
        env={**os.environ, "ZDOTDIR": str(home), "OFFERED": str(offered), "TERM": "dumb"},
    )  # fmt: skip
    os.close(other_end)

    def answered() -> list[str]:
        until = time.monotonic() + 20
        while not (text := offered.read_text(encoding="utf-8")).endswith("--end--\n"):
            assert time.monotonic() < until, os.read(terminal, 4096)
            time.sleep(0.005)
        offered.write_text("", encoding="utf-8")
        return list(dict.fromkeys(text.splitlines()[:-1]))

    def typed(line: str) -> list[str]:
        os.write(terminal, f"{KILL_LINE}{line}\t".encode())
        return answered()

    answered()
    yield typed
    process.kill()
    process.wait()
    os.close(terminal)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("errcomp au", ["audit"]),
        ("errcomp halflife ", ["blame", "check", "fit", "forecast", "show"]),
        ("errcomp --v", ["--version"]),
        ("errcomp audit --agg", ["--aggregation"]),
        ("errcomp audit neusight --json --fa", ["--fail-on"]),
        ("errcomp audit --fail-on ", ["overstated", "understated", r"not\ verifiable"]),
        ("errcomp audit --fail-on not", [r"not\ verifiable"]),
        ("errcomp join a b --match ", ["keys", "order", "name"]),
        ("errcomp audit ne", ["neusight"]),
        ("errcomp audit pa", [r"pairs\ of\ mine.csv"]),
        ("errcomp audit neusight -o pa", [r"pairs\ of\ mine.csv"]),
        ("errcomp propagate va", ["validate"]),
        ("errcomp halflife fit o", ["ort-releases"]),
        ("errcomp datasets show neu", ["neusight", "neusight-kernels"]),
        ("errcomp datasets build neusight --to ", ["results"]),
        ("errcomp completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_zsh_completes(zsh: Callable[[str], list[str]], line: str, expected: list[str]) -> None:
    assert zsh(line) == expected
