"""Files of LitePred are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.learned import litepred

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=litepred.FORMATS)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("litepred-accuracy", "shares of predictions with errors within 5 % and 10 %:"),
        ("litepred-configurations", r"shapes of kernels, but no latencies\."),
    ],
)
def test_they_are_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        fixture(name)


@pytest.mark.shared
def test_the_sample(shared_data: Path) -> None:
    path = shared_data / "tools" / "litepred" / "readme_accuracy_table.csv"
    with pytest.raises(InputError, match="other metric can be computed"):
        litepred.read(path)
