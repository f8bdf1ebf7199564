"""Peers are processes that wait for their turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Script = Callable[[str], ModuleType]

PEER = """
PACKAGES = ("numpy",)

def adding(a, b):
    print("no answer")
    return lambda: print("nor this") or a + b

def failing():
    def work():
        raise ValueError("no such thing")
    return work

def counting():
    import os
    return os.getpid

def ending():
    raise SystemExit(3)
"""


@pytest.fixture
def environments(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with one peer that needs no installation."""
    found = script("environments")
    side = (found.HERE / "peer_side.py").read_text(encoding="utf-8")
    (tmp_path / "peer_side.py").write_text(side, encoding="utf-8")
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "made.py").write_text(PEER, encoding="utf-8")
    monkeypatch.setattr(found, "HERE", tmp_path)
    return found


@pytest.mark.core
def test_a_peer_answers_as_often_as_it_is_asked(environments: ModuleType) -> None:
    peer = environments.Peer("made", "adding", a=1, b=2)
    peer.start()
    assert [*peer.versions] == ["numpy"]
    for _ in range(2):
        seconds, value = peer.once()
        assert 0 < seconds < 1
        assert value == 3
    peer.stop()


@pytest.mark.core
@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("failing", "ValueError: no such thing"),
        ("ending", "ended without an answer"),
        ("absent", "has no attribute 'absent'"),
    ],
)
def test_a_peer_that_fails_says_why(environments: ModuleType, task: str, reason: str) -> None:
    peer = environments.Peer("made", task)

    def work() -> None:
        peer.start()
        peer.once()

    with pytest.raises(environments.PeerError, match=reason):
        work()
    peer.stop()


@pytest.mark.core
def test_a_fresh_peer_has_a_process_of_its_own_for_each_run(environments: ModuleType) -> None:
    for fresh, processes in ((False, 1), (True, 3)):
        peer = environments.Peer("made", "counting", fresh=fresh)
        peer.start()
        assert len({peer.once()[1] for _ in range(3)}) == processes
        peer.stop()


@pytest.mark.core
def test_a_peer_of_an_interpreter_that_is_not_here_says_so(environments: ModuleType) -> None:
    (environments.HERE / "peers" / "made.txt").write_text("#python9.99\nnumpy==1\n")
    with pytest.raises(environments.PeerError, match=r"there is no python9\.99 here"):
        environments.Peer("made", "adding", a=1, b=2).start()


@pytest.mark.core
def test_a_peer_that_fails_is_kept_with_the_reason(
    script: Script, environments: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    question = script("asking").Question("q", "Title", "What?")
    failing = environments.Peer("made", "failing")
    assert question.against("case", 1, "rows", lambda: 1, why="", its_name=failing) == {}
    assert question.missing == [
        {"peer": "its name", "case": "case", "reason": "ValueError: no such thing"}
    ]
    assert "no its name: ValueError" in capsys.readouterr().err


def test_every_peer_says_what_it_is(script: Script) -> None:
    """Environments are pinned, and have no address to install from."""
    folder = script("environments").HERE / "peers"
    lists = sorted(folder.glob("*.txt"))
    assert lists
    for path in lists:
        assert path.with_suffix(".py").exists()
        for line in path.read_text(encoding="utf-8").removeprefix("#python3.13\n").splitlines():
            name, _, version = line.partition("==")
            assert name.replace("-", "").isalnum(), line
            assert version[0].isdigit(), line
