"""What the survey's text and its Table 1 state: figures and single words, named in our own words.

Transcribed from both editions. A figure that another table of the dataset has is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

__all__ = ["HEADINGS", "STATEMENTS", "TAXONOMY", "Statement", "taxonomy"]

#: Edition, place, subject, as printed, and the unit of a number.
Statement = tuple[Literal["first", "second"], str, str, str, str]

#: Platforms of Table 1 in the order of its columns.
PLATFORMS = ("accelerators", "GPU", "distributed", "edge", "CPU")
#: Table 1, the same in both editions: type of model, and the number of tools for each platform.
TAXONOMY: dict[str, tuple[int, ...]] = {
    "analytical": (3, 3, 2, 0, 0),
    "cycle-accurate": (1, 2, 0, 0, 1),
    "trace-driven": (0, 0, 7, 0, 0),
    "ML-augmented": (0, 3, 0, 3, 1),
    "hybrid": (1, 2, 0, 0, 1),
}
#: Tools whose platform is "multi" in Table 2: the heading that they stand under.
HEADINGS = {"ArchGym": "accelerators", "HELP": "edge"}

STATEMENTS: tuple[Statement, ...] = (
    ("second", "abstract", "tools surveyed", "25", "count"),
    ("first", "abstract", "tools surveyed, first edition", "22", "count"),
    ("second", "section 3", "candidate papers", "287", "count"),
    ("first", "section 2", "papers left after screening", "118", "count"),
    ("second", "section 3", "papers classified", "53", "count"),
    ("second", "section 3", "foundational works", "12", "count"),
    ("second", "section 3", "types of models", "5", "count"),
    ("second", "section 3", "slowdown of cycle-accurate simulators", "10^3–10^4 times", ""),
    ("second", "section 4", "types of models for GPUs", "5", "count"),
    ("second", "section 4", "platforms of trace-driven methods", "distributed alone", ""),
    ("second", "section 4", "hybrid tools for edge devices", "none", ""),
    ("second", "section 4", "ML-augmented tools for distributed systems", "none", ""),
    ("second", "section 4", "research gaps", "3", "count"),
    ("second", "section 4", "least studied platform", "CPU", ""),
    ("second", "section 4", "tools with a known validation", "14", "count"),
    ("second", "section 4", "tools that validate only on CNNs", "9", "count"),
    ("first", "section 4.2", "tools that validate only on CNNs, %", "64", "%"),
    ("second", "section 5", "IPC correlation of cycle-accurate simulators", "0.90–0.97", ""),
    ("first", "section 5.2", "error of Accel-Sim after reverse engineering", "13.98", "%"),
    ("first", "section 5.1", "speed of Timeloop, times that of RTL", "2000", "x"),
    ("second", "Table 2", "platforms of LitePred", "85", "count"),
    ("second", "Table 2", "samples that HELP needs", "10", "count"),
    ("first", "section 5.4", "improvement by transfer learning", "22.5", "%"),
    ("first", "section 5.3", "devices that Echo scales to", "10K+", ""),
    ("second", "section 6.1", "scenarios of the suite", "36", "count"),
    ("second", "section 6.1", "categories of the suite", "9", "count"),
    ("second", "section 6.2", "tools with full experiments", "5", "count"),
    ("second", "section 6.2", "tools evaluated for each type of model", "one", ""),
    ("second", "section 7.10", "tools tested", "10", "count"),
    ("second", "section 2", "tools with a container, quick and repeatable", "2", "count"),
    ("second", "section 7.10", "tools with identical output in three runs", "4", "count"),
    ("second", "Table 5", "NVIDIA GPUs of NeuSight", "7", "count"),
    ("second", "Table 5", "AMD GPUs of NeuSight", "3", "count"),
    ("second", "Table 5", "GPUs of ASTRA-sim's runs", "2–16", ""),
    ("second", "section 7.1", "device with the lowest error", "V100", ""),
    ("second", "section 7.1", "error after doubling the batch size", "often doubles", ""),
    ("second", "section 7.1", "error of fused kernels", "higher", ""),
    ("second", "section 7.1", "training error on AMD devices", "exceeds inference", ""),
    ("second", "Figure 4", "error on T4 and P4 over the claim, at most", "4", "x"),
    ("first", "section 8", "error outside the training distribution, times", "3–4", ""),
    ("second", "section 7.2", "spread of the cycles across NPUs", "0", "count"),
    ("second", "section 7.2", "communication from 4 to 8 GPUs", "scales as expected", ""),
    ("second", "section 7.2", "communication overhead", "grows super-linearly", ""),
    ("second", "section 7.7", "communication overhead at 8 GPUs", "below 0.30%", ""),
    ("second", "section 7.3", "inference scenarios that VIDUR covers", "6", "count"),
    ("second", "section 7.3", "inference scenarios in I1 to I3", "12", "count"),
    ("second", "section 7.5", "nn-Meter's claim among all tools", "lowest", ""),
    ("second", "section 7.5", "attempts to deploy nn-Meter", "4", "count"),
    ("second", "section 7.5", "years until nn-Meter was unusable", "2", "count"),
    ("second", "section 7.6", "scenarios that some tool covers, %", "44", "%"),
    ("second", "Table 9", "tools that cover T4, I5 or D1", "none", ""),
    ("second", "section 7.8", "scenarios that ASTRA-sim leaves open, %", "75", "%"),
    ("second", "section 7.8", "scenarios that two tools predict", "none", ""),
    ("second", "section 7.9", "categories without full support", "T4, I5, D1", ""),
    ("second", "section 7.9", "claimed accuracy and reliability", "inversely correlated", ""),
    ("second", "section 7.9", "ranking by reliability", "reverses", ""),
    ("second", "section 7.9", "inference against training", "consistently better", ""),
    ("second", "section 7.9", "prediction variance of MoE models", "higher", ""),
    ("second", "section 7.9", "composition error", "exceeds kernel error", ""),
    ("first", "abstract", "kernel-level error, first edition", "2–9%", ""),
    ("first", "section 9", "relative error of a model", "σ_kernel √N", ""),
    ("second", "section 8", "GPUs of the worked example", "8 × 4 × 2 = 64", ""),
    ("second", "section 8", "FP16 peak of an A100 in TFLOPS", "312", "count"),
    ("second", "section 9", "FlashAttention's speed-up of attention", "2–4×", ""),
    ("second", "section 9", "goal for the composition error", "<3%", ""),
    ("second", "section 9", "goal for the scenarios with a tool", "30", "count"),
    ("second", "section 9", "goal for the error delta on new hardware", "<10%", ""),
)


def taxonomy() -> Iterator[tuple[str, str, int]]:
    """Return type of model, platform and printed number of tools for each cell of Table 1."""
    for method, counts in TAXONOMY.items():
        for platform, count in zip(PLATFORMS, counts, strict=True):
            yield method, platform, count
