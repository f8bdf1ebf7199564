"""What stands around the code agrees with it: versions, citation, workflow, package description."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import errcomp
from errcomp.cli import build_parser

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
#: What people who come to the repository look for.
AROUND = (
    *("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "CITATION.cff", "PACKAGE.md"),
    *(f".github/ISSUE_TEMPLATE/{name}.md" for name in ("bug", "reader", "question")),
    *(".github/pull_request_template.md", ".github/workflows/ci.yml", "docs/versioning.md"),
)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def releases() -> list[tuple[str, str, str]]:
    """Return version, date and text of each release in the changelog, the latest first."""
    parts = re.split(r"^## (.*)\n", read("CHANGELOG.md"), flags=re.M)
    found = []
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        if heading == "Unreleased":
            continue
        named = re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", heading)
        assert named is not None, heading
        found.append((named[1], named[2], text))
    return found


def test_the_changelog_has_each_version_with_its_date_and_sorted_entries() -> None:
    versions = [tuple(map(int, version.split("."))) for version, _, _ in releases()]
    assert len(versions) >= 2
    assert versions == sorted(versions, reverse=True)
    for version, _, text in releases():
        headings = re.findall(r"^### (.*)$", text, re.M)
        assert headings == [one for one in SECTIONS if one in headings], version
        for part in re.split(r"^### .*$", text, flags=re.M)[1:]:
            assert part.strip().startswith("- "), version


def test_the_latest_release_is_the_version_everywhere() -> None:
    version, date, _ = releases()[0]
    assert errcomp.__version__ == version
    # The build reads it from the package.
    assert PROJECT["dynamic"] == ["version"]
    citation = yaml.safe_load(read("CITATION.cff"))
    assert (citation["version"], citation["date-released"]) == (version, date)
    assert citation["license"] == PROJECT["license"]
    assert citation["title"] == PROJECT["name"]
    assert [one["name"] for one in citation["authors"]] == [
        one["name"] for one in PROJECT["authors"]
    ]


@pytest.mark.parametrize("name", AROUND)
def test_what_visitors_look_for_is_there_without_made_up_addresses(name: str) -> None:
    text = read(name)
    assert len(text.split()) > 30
    assert re.findall(r"example\.(?:com|org)|\bTODO\b|\w@\w+\.\w|YOUR[-_ ]", text) == []
    if "ISSUE_TEMPLATE" in name:
        _, head, body = text.split("---\n", 2)
        assert set(yaml.safe_load(head)) == {"name", "about", "labels"}
        assert body.strip()


def test_the_description_of_the_package_needs_no_other_file() -> None:
    assert PROJECT["readme"] == "PACKAGE.md"
    links = re.findall(r"\]\(([^)]*)\)|<(?:img|a) [^>]*=\"([^\"]*)\"", read("PACKAGE.md"))
    assert [link for pair in links for link in pair if link and "://" not in link] == []


def test_commands_of_the_description_exist() -> None:
    lines = re.findall(r"^ {4}(errcomp .*?)(?: +#.*)?$", read("PACKAGE.md"), re.M)
    assert len(lines) >= 3
    for line in lines:
        build_parser().parse_args(shlex.split(line)[1:])
    named = set(re.findall(r"`errcomp (\w+)", read("PACKAGE.md")))
    assert named <= set(dict(build_parser()._subparsers._group_actions[0].choices))  # type: ignore[union-attr,arg-type]


@pytest.mark.extras
def test_python_of_the_description_runs() -> None:
    pytest.importorskip("matplotlib")
    (block,) = re.findall(r"^```python\n(.*?)^```", read("PACKAGE.md"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(compile(block, "PACKAGE.md", "exec"), names)
    assert "ec" in names or "errcomp" in names


def jobs() -> dict[str, Any]:
    """Return the jobs of the hosted workflow."""
    found: dict[str, Any] = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]
    return found


def steps(job: dict[str, Any]) -> list[str]:
    """Return the commands of a job, for each entry of its matrix."""
    entries = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
    commands = [step["run"] for step in job["steps"] if "run" in step]
    return [
        re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda one, entry=entry: entry[one[1]], command)  # type: ignore[misc]
        for entry in entries
        for command in commands
    ]


def test_the_hosted_workflow_runs_what_exists() -> None:
    targets = set(" ".join(re.findall(r"^([a-z -]+):", read("Makefile"), re.M)).split())
    every = [command for job in jobs().values() for command in steps(job)]
    assert ".ci/run" in every
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    made = [command.split()[1:] for command in every if command != ".ci/run"]
    assert all(command.startswith("make ") for command in every if command != ".ci/run")
    assert {target for words in made for target in words} >= {"test", "lint", "types", "core"}
    assert {target for words in made for target in words} <= targets


def test_the_hosted_workflow_may_only_read_and_ends() -> None:
    text = read(".github/workflows/ci.yml")
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert "secrets" not in text
    assert all(job["timeout-minutes"] <= 180 for job in jobs().values())


def test_the_hosted_workflow_has_every_python_that_the_package_names() -> None:
    named = {
        one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)
    }
    include = jobs()["tests"]["strategy"]["matrix"]["include"]
    assert {entry["python"] for entry in include} == named
