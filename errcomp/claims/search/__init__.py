"""Search for the subset and the rule behind a published figure."""

from __future__ import annotations

from errcomp.claims.search.results import Match, SearchResult
from errcomp.claims.search.search import search_claim

__all__ = ["Match", "SearchResult", "search_claim"]
