"""The class of work of a kernel, from its name."""

from __future__ import annotations

import re
from functools import cache

COMMUNICATION = "communication"
MEMORY = ("memcpy", "memset")

#: Class → parts of names; the first match counts. Names of fused kernels hold the
#: names of all fused operators, so Triton kernels are classified by their beginning.
CLASSES: tuple[tuple[str, str], ...] = (
    ("memcpy", r"^\[?memcpy|^hipmemcpy|copybuffer(?!.*kernel)"),
    ("memset", r"^\[?memset|fillbuffer"),
    (
        COMMUNICATION,
        r"nccl|rccl|oneccl|nvshmem|deep_?ep::|c10d::|all_?reduce|reduce_?scatter|all_?gather"
        r"|all_?to_?all|cross_device_reduce|one_?shot_|two_?shot_|record_param_comms",
    ),
    ("elementwise", r"^triton_poi_"),
    (
        "norm",
        r"(layer|rms|batch|group|instance|weight)_?norm|\bbn_|_bn_|cudnn.*norm|norm_(fwd|bwd)"
        r"|gammabeta|rowwisemoments",
    ),
    ("attention", r"flash|fmha|attention|attn|sdpa|\bmha_|_mla_|paged_kv"),
    ("softmax", r"softmax"),
    ("reduction", r"^triton_(red|per)_"),
    (
        "conv",
        r"conv(?!ert)|implicit_gemm|winograd|fprop|dgrad|wgrad|im2col|col2im|im3d2col|igemm_"
        r"|scudnn|hcudnn|cudnn.*engine|nchwkcrs|vol2col|fft2d",
    ),
    (
        "gemm",
        r"gemm|gemv|cijk_|cutlass|cublas(?!lt.*splitk.*reduce)|nvjet|matmul|_mm_|\bmm\b|addmm|\bbmm"
        r"|baddbmm|::linear\b|einsum|tensorop|fused_moe|wgmma|xmma|splitkreduce|dot_kernel|_s(884|1688|16816)",
    ),
    (
        "elementwise",
        r"elementwise|pointwise|vectorized|unrolled|multi_tensor_apply|foreach|fused_adam|dropout"
        r"|copy_|::copy|catarray|::cat\b|::fill_|::zero_|act_and_mul|gelu|silu|relu|sigmoid|tanh"
        r"|rotary|::(add|sub|mul|div|pow|sqrt|rsqrt|exp|neg|clamp(?:_min|_max)?|where|to|_to_copy)_?$|nchwtonhwc"
        r"|nhwctonchw|transpose|permute|op_tensor|tensor_?transform",
    ),
    (
        "reduction",
        r"reduce|reduction|::(sum|mean|max|min|norm|argmax|argmin|amax|cumsum)_?$|scan|l2norm"
        r"|nll_loss|cross_entropy",
    ),
)
_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in CLASSES)
#: Template arguments may be thousands of characters long, and rarely show the class.
_LOOKED_AT = 400
_ANONYMOUS = "(anonymous namespace)::"


@cache
def class_of(name: str) -> str:
    """Return the class of a kernel or operator: gemm, conv, …; ``other`` if no rule fits.

    Misleads if the name does: a library may give a kernel any name.

    Examples
    --------
    >>> class_of("ampere_sgemm_128x64_tn"), class_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    ('gemm', 'communication')
    >>> class_of("triton_poi_fused_convolution_relu_0"), class_of("aten::topk")
    ('elementwise', 'other')
    """
    # Types of parameters are shared by many kernels.
    text = name.replace(_ANONYMOUS, "").partition("(")[0][:_LOOKED_AT] or name
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), "other")
