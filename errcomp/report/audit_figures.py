"""Figures of an audit and of the pairs behind it: axes in, axes out, one message each.

`claimed` what was claimed against what the pairs say; `predicted_against_measured` every pair;
`ecdf` how many pairs err by how much; `bland_altman` whether the error depends on size; `by_group`
the errors of each group; `coverage_map` which workloads are predicted at all. None shows anything,
touches pyplot or changes Matplotlib's settings; Matplotlib is imported at first use
(``pip install 'errcomp[figures]'``). `errcomp.report.figures.save` writes the axes to a file.
"""

from __future__ import annotations

from errcomp.report._audit_agreement import bland_altman
from errcomp.report._audit_claimed import claimed
from errcomp.report._audit_coverage import coverage_map
from errcomp.report._audit_ecdf import ecdf
from errcomp.report._audit_groups import by_group
from errcomp.report._audit_scatter import predicted_against_measured

__all__ = [
    "bland_altman",
    "by_group",
    "claimed",
    "coverage_map",
    "ecdf",
    "predicted_against_measured",
]
