"""The linter of wording finds what it is for, and what it is for alone."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "wording.py"


@pytest.fixture(scope="module")
def wording() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wording", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found(wording: ModuleType, path: Path, text: str) -> list[tuple[int, str]]:
    """Return line and text of what the rules of the project find in a file of this text."""
    path.write_text(text, encoding="utf-8")
    return [(one.line, one.text) for one in wording.findings(path, wording.read_rules())]


BAD = [
    "none prints so",
    "devices that had no part in making them",
    "MAPE of the surest 80 %",
    "half expired",
    "the releases to blame",
    "is no text in UTF-8",
    "values that are none",
    "below sum by no more than chance may give",
    "As simple as that: 1 match",
    "bad runs are not told from steps",
    "runs that cannot be told apart",
    "6 of 9 were judged",
    "not so at the level that holds",
    "one error says nothing of the next",
    "name what is not written",
    "with another value (3)",
    "what it said of the runs",
    "until which release it holds",
    "how a table is read is said to its audit",
    "weighted with time",
    "the software moved",
    "a half life of 3 months",
    "two data sets",
    "20 percent",
    "the end to end time",
    "a grey color",
]


@pytest.mark.parametrize("sentence", BAD)
def test_a_banned_pattern_is_found_in_prose_and_in_strings(
    wording: ModuleType, tmp_path: Path, sentence: str
) -> None:
    assert found(wording, tmp_path / "a.md", f"# Head\n\nSee: {sentence}.\n")
    assert found(wording, tmp_path / "a.py", f'x = 1\ny = "See: {sentence}."\n')
    # Wrapped at each space.
    wrapped = sentence.replace(" ", "\n")
    assert found(wording, tmp_path / "b.md", f"See:\n{wrapped}.\n")


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no interval, and it is no longer shown",
        "A half-life of 3 months in two datasets, 20 %, end-to-end time",
        "The sum runs end to end",
        "The error says nothing about the next",
        "It is said to be exact",
    ],
)
def test_plain_sentences_pass(wording: ModuleType, tmp_path: Path, sentence: str) -> None:
    assert found(wording, tmp_path / "a.md", f"{sentence}.\n") == []
    assert found(wording, tmp_path / "a.py", f'x = "{sentence}."\n') == []


def test_words_of_documents_and_names_of_classes_pass(wording: ModuleType, tmp_path: Path) -> None:
    module = '"""Returns\n\nHalfLives or not\n"""\nVERDICTS = ("as before", "cannot be told")\n'
    assert found(wording, tmp_path / "a.py", module) == []
    assert found(wording, tmp_path / "b.py", 'x = "It cannot be told."\n') == [(1, "be told")]


def test_of_a_page_prose_and_output_are_read_and_code_is_not(
    wording: ModuleType, tmp_path: Path
) -> None:
    page = (
        "Call `judged(halflife)`, or [this](judged.md).\n\n"
        "    errcomp judged\n\n"
        "```console\n$ errcomp judged \\\n>   --judged\nThe run was judged.\n```\n\n"
        "```python\njudged = 1\n```\n\n"
        'Smith (1999), "How predictors are judged by users"\n\n'
        "It is\njudged.\n"
    )
    assert found(wording, tmp_path / "a.md", page) == [(8, "judged"), (18, "judged")]


def test_of_a_module_strings_docstrings_and_comments_are_read_and_names_are_not(
    wording: ModuleType, tmp_path: Path
) -> None:
    module = (
        '"""How runs\nare judged.\n\n>>> judged("x y")\n"""\n'
        'judged = {"judged": 1}\n'
        "# It is judged:\n"
        "# to the end,\n"
        "# it is judged.\n"
        "text = (\n"
        '    f"{judged} runs were not "\n'
        '    "told from steps, and "\n'
        "    f\"{'both judged'} here\"\n"
        ")\n"
        'head = "Judged"\n'
    )
    assert found(wording, tmp_path / "a.py", module) == [
        (2, "judged"),
        (7, "judged"),
        (9, "judged"),
        (11, "not told"),
        (13, "judged"),
        (15, "Judged"),
    ]


@pytest.mark.core
def test_what_it_prints_and_its_exit_code(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("The runs are evaluated.\n", encoding="utf-8")
    bad.write_text("One\n\nThe runs are judged.\n", encoding="utf-8")

    def run(*paths: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(SCRIPT), *map(str, paths)],
            capture_output=True,
            text=True,
            check=False,
        )

    assert (run(good).returncode, run(good).stdout) == (0, "")
    ran = run(tmp_path)
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[0] == (
        f'{bad}:3: \'judged\': write "evaluated", "tested", "checked", "compared"'
    )
    assert ran.stdout.splitlines()[1].startswith("Findings: 1.")


def test_a_rule_without_a_better_wording_is_refused(wording: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("# comment\n\nsurely\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"rules\.txt, line 3: expected pattern => better"):
        wording.read_rules(path)


def test_the_whole_repository_is_read(wording: ModuleType) -> None:
    read = {
        path.relative_to(ROOT).as_posix()
        for path in wording.files([ROOT / place for place in wording.PLACES])
        if path.exists()
    }
    assert {
        "README.md",
        "CHANGELOG.md",
        "docs/half-life.md",
        "docs/tutorials/audit-a-claim.md",
        "datasets/neusight/README.md",
        "errcomp/cli/commands/audit.py",
        "errcomp/claims/tools/gpus/neusight.json",
        "docs/notebooks/a-table-of-your-own.ipynb",
        "errcomp/caveats/claim.py",
        "benchmarks/timing.py",
        "examples/watch-a-simulator/README.md",
    } <= read
    assert not any("/build/" in path or "/results/" in path for path in read)
