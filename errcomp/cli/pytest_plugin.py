"""Claims about accuracy as tests of pytest: the option ``--errcomp-check`` and a fixture.

pytest loads this module by itself where errcomp is installed; it loads the rest of errcomp only if
a claim is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from errcomp.claims.auditing import Audit
    from errcomp.report.junit import CheckReport

__all__ = ["errcomp_check"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--errcomp-check``."""
    parser.getgroup("errcomp", "errors of predictions").addoption(
        "--errcomp-check",
        action="append",
        default=[],
        metavar="TABLE=CLAIM",
        help="add a test that fails if the pairs in TABLE show that the claim is overstated, e.g. "
        "'results.csv=MAPE 5 %%'; may be repeated",
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each claim of ``--errcomp-check``."""
    for text in config.getoption("--errcomp-check"):
        # A path may hold an equals sign, a claim does not.
        table, sign, claim = text.rpartition("=")
        if not sign or not table or not claim:
            raise pytest.UsageError(f"--errcomp-check takes TABLE=CLAIM, got {text!r}")
        items.append(_Claim.from_parent(session, name=text, table=table, claim=claim))


class _Claim(pytest.Item):
    """The test of one claim."""

    def __init__(self, *, table: str, claim: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table, self.claim = table, claim

    def runtest(self) -> None:
        """Check the claim."""
        _judge(_report(_audit(self.table, self.claim)))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> str | Any:
        """Return the message alone for errors about the table or the claim."""
        from errcomp.errors import ErrcompError

        if isinstance(excinfo.value, ErrcompError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Return how pytest names the test."""
        return self.table, None, f"errcomp: {self.name}"


@pytest.fixture
def errcomp_check() -> Callable[..., Audit]:
    """Return a function that fails the test if a claim is overstated.

    ``errcomp_check(table, claim, **options)`` takes what `errcomp.audit` takes, and returns the
    audit. The test fails if the pairs show that the claim is overstated, and is skipped, with the
    reason, if they cannot decide.

    Examples
    --------
    ::

        def test_the_model_keeps_its_promise(errcomp_check):
            errcomp_check("results.csv", "MAPE 5 %", by="gpu")
    """

    def check(table: Any, claim: str, **options: Any) -> Audit:
        audit = _audit(table, claim, **options)
        _judge(_report(audit))
        return audit

    return check


def _audit(table: Any, claim: str, **options: Any) -> Audit:
    from errcomp.claims.auditing import audit

    found: Audit = audit(table, claims=claim, **options)
    return found


def _report(audit: Audit) -> CheckReport:
    from errcomp.claims.view.audit_check import report_audit

    return report_audit(audit)


def _judge(report: CheckReport) -> None:
    """Fail or skip the test that runs."""
    failed = [case for case in report.cases if case.outcome == "failure"]
    if failed:
        told = "\n".join(f"{case.name}: {case.message}" for case in failed)
        pytest.fail(f"{report.verdict}\n{told}", pytrace=False)
    if all(case.outcome == "skipped" for case in report.cases):
        pytest.skip(report.cases[0].message)
