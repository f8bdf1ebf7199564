"""Draw the picture of the README: claimed accuracy against recomputed, from the built-in table.

Run: python docs/picture.py            writes docs/audit.svg
"""

from __future__ import annotations

from pathlib import Path

import errcomp as ec
from errcomp.claims.view.figures import claimed
from errcomp.propagation.view.figures import save


def main(target: Path) -> None:
    """Draw one line per device and mode, the largest error at the top."""
    result = ec.audit(ec.datasets.load("neusight"), by=["device", "mode"])
    save(claimed(result), target)


if __name__ == "__main__":
    main(Path(__file__).parent / "audit.svg")
