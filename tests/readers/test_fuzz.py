"""Damaged files: no crash, no hang, no value that changes unseen; see tests/fuzzing."""

from __future__ import annotations

import random
from pathlib import Path

import fuzz
import fuzz_mutators
import pytest

from errcomp.readers.core.registry import Format, formats

KEPT = [seed for seed in fuzz.seeds() if seed.given is not None]


@pytest.mark.parametrize("seed", KEPT, ids=lambda seed: f"{seed.place}/{seed.given.name}")
def test_what_fuzzing_found(seed: fuzz.Seed) -> None:
    mutant = fuzz_mutators.Mutant("kept", "any", seed.content)
    with fuzz.beside(seed) as place:
        _, what, where = fuzz.judged(seed, mutant, fuzz.Answer(), place)
    assert not what, where


def test_a_few_seconds_of_fuzzing() -> None:
    tally = fuzz.fuzz(fuzz.seeds(), seed=20261124, inputs=300)
    assert tally.inputs == 300
    assert not [(one.what, one.where, one.seed) for one in tally.findings]
    # Else the mutants would be too wild, or too tame.
    assert 120 < tally.refused < 270


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_some_minutes_of_fuzzing(seed: int) -> None:
    tally = fuzz.fuzz(fuzz.seeds(), seed, inputs=8000)
    assert not [(one.what, one.where, one.seed) for one in tally.findings]


def broken_reader(what: str) -> Format:
    """Return the reader of ASTRA-sim's log with an error put in."""
    (sound,) = [one for one in formats() if one.name == "astra-sim-log"]

    def read(source):  # type: ignore[no-untyped-def]
        assert sound.read is not None
        if what == "crash" and "12o" in source.text:
            raise KeyError("o")
        found = sound.read(source)
        if what == "hang" and "hang" in source.text:
            while True:
                pass
        if what == "silent":
            import dataclasses

            return dataclasses.replace(found, dropped=(), notes=())
        return found

    from dataclasses import replace

    return replace(sound, read=read)


@pytest.mark.parametrize(
    ("what", "content", "told"),
    [
        ("crash", "sys[0] finished, 1 cycles, exposed communication 3 cycles.\n12o\n", "KeyError"),
        (
            "hang",
            "sys[0] finished, 12 cycles, exposed communication 3 cycles.\nhang\n",
            "no answer",
        ),
        ("silent", "sys[0] finished, 9 cycles, exposed communication 3 cycles.\n", "unseen"),
    ],
)
# The time of a hang is measured with the same timer.
@pytest.mark.timeout(method="thread")
def test_the_oracles_see_what_is_wrong(
    what: str, content: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "SECONDS_PER_MIB", 0.3)
    reader = broken_reader(what)
    monkeypatch.setattr(fuzz, "ingest", lambda path: fuzz_ingest(path, among=[reader]))
    before = "sys[0] finished, 12 cycles, exposed communication 3 cycles.\n"
    (tmp_path / "astra.log").write_text(before)
    seed = fuzz.Seed(tmp_path, "astra.log")
    sound = fuzz.answer_of(tmp_path / "astra.log", "output", tables=False)
    mutant = fuzz_mutators.Mutant("made", "counted", content.encode())
    _, found, _ = fuzz.judged(seed, mutant, sound, tmp_path, tables=False)
    assert told in found


def fuzz_ingest(path: Path, among: list[Format]):  # type: ignore[no-untyped-def]
    from errcomp.readers.core.ingest import ingest

    return ingest(path, among=among)


def test_mutators_damage_and_stay_the_same_with_the_same_seed() -> None:
    text = b'{"a": 12.5, "b": [1, 2]}\nkernel,time\ngemm,12.25\nconv,3.5\n'
    ways = [way for some in fuzz_mutators.TEXT.values() for way in some]
    for way in ways:
        made = [way(text, random.Random(seed)) for seed in range(30)]
        assert made == [way(text, random.Random(seed)) for seed in range(30)], way
        assert any(one not in (None, text) for one in made), way
