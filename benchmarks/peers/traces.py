"""PyTorch profiler traces: HolisticTraceAnalysis, its parser and its analyses."""

import logging
from pathlib import Path

from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
from hta.trace_analysis import TraceAnalysis
from memory import peak_gib

logging.disable(logging.CRITICAL)
PACKAGES = ("HolisticTraceAnalysis", "pandas")


def read(path):
    """Read, and return the peak memory of the process in GiB."""

    def work():
        parse_trace_dataframe(path, ParserConfig.get_default_cfg())
        return peak_gib()

    return work


def figures(path):
    def work():
        trace = TraceAnalysis(trace_dir=str(Path(path).parent), include_last_profiler_step=True)
        _, kernels = trace.get_gpu_kernel_breakdown(
            visualize=False, duration_ratio=1.0, num_kernels=1000, include_memory_kernels=True
        )
        times = trace.get_temporal_breakdown(visualize=False).iloc[0]
        overlap = trace.get_comm_comp_overlap(visualize=False).iloc[0]
        sums = dict(zip(kernels["name"], kernels["sum (us)"], strict=True))
        return sums | {
            "idle time": times["idle_time(us)"],
            "computation time": times["compute_time(us)"],
            "overlap": overlap["comp_comm_overlap_pctg"],
        }

    return work
