"""Published claims about the accuracy of tools, and whether they hold."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public name to the module that has it; imported at first use, to keep ``import errcomp`` quick.
_LAZY = {
    "Claim": "errcomp.claims.registry",
    "Printed": "errcomp.claims.printed",
    "Replication": "errcomp.claims.replicate",
    "audit": "errcomp.claims.auditing",
    "claims": "errcomp.claims.registry",
    "claims_of": "errcomp.claims.registry",
    "check_claims": "errcomp.claims.entries",
    "find": "errcomp.claims.registry",
    "forensics": "errcomp.claims.forensics",
    "parse_printed": "errcomp.claims.printed",
    "read_claims": "errcomp.claims.entries",
    "replicate_survey": "errcomp.claims.replicate",
    "search_claim": "errcomp.claims.search",
    "user_claim": "errcomp.claims.registry",
}

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
