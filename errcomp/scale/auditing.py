"""What an audit needs of pairs that stay in an engine: one query for sums, one for medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errcomp.caveats.comparisons import GROUP_KEYS
from errcomp.scale._caveats import SUMS
from errcomp.scale._forms import sums_for
from errcomp.scale.pair_totals import PairTotals

if TYPE_CHECKING:
    from errcomp.claims.registry import Claim
    from errcomp.scale.pairs import PairRows

__all__ = ["totals_for_audit"]

#: Keys that verdicts and caveats ask for, whatever the reader groups by.
_ASKED = ("level", "reference", "in_training", *GROUP_KEYS)


def totals_for_audit(
    pairs: PairRows,
    *,
    by: Sequence[str],
    claims: Sequence[Claim],
    clusters: Sequence[str],
    figures: Sequence[str],
) -> PairTotals:
    """Add pairs up by every key that an audit looks at.

    Parameters
    ----------
    pairs : PairRows
    by : sequence of str
        Keys that the reader groups by.
    claims : sequence of Claim
        Those that may be judged: the keys of their subsets are needed.
    clusters : sequence of str
        Keys whose values are drawn whole.
    figures : sequence of str
        Names of figures that sums give.

    Raises
    ------
    InputError
        A key does not exist, or a row cannot be used.
    """
    pairs.check_columns((*by, *clusters))
    chosen = (*by, "tool", *(key for claim in claims for key in claim.subset))
    there = [key for key in dict.fromkeys(chosen) if key in pairs.keys]
    further = [key for key in (*_ASKED, *clusters) if key in pairs.keys and key not in there]
    sums = dict.fromkeys((*sums_for(figures, intervals=True), *SUMS))
    return PairTotals(pairs, by=there, clusters=clusters, within=further, sums=list(sums))
