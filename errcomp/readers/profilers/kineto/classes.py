"""The class of work of a kernel, from its name."""

from __future__ import annotations

import re
from functools import cache

COMMUNICATION = "communication"
MEMORY = ("memcpy", "memset")

#: Class → parts of the names of libraries that copy or communicate and do nothing else.
_LIBRARIES: tuple[tuple[str, str], ...] = (
    ("memcpy", r"^\[?memcpy|^hipmemcpy|copybuffer(?!.*kernel)"),
    ("memset", r"^\[?memset|fillbuffer"),
    (
        COMMUNICATION,
        r"nccl|rccl|oneccl|nvshmem|deep_?ep::|c10d::|all_?reduce|reduce_?scatter|all_?gather"
        r"|all_?to_?all|cross_device_reduce|one_?shot_|two_?shot_|record_param_comms",
    ),
)
#: Class → parts of names of operations; the first match counts. Names of fused kernels hold the
#: names of all fused operators, so Triton kernels are classified by their beginning.
_OPERATIONS: tuple[tuple[str, str], ...] = (
    ("elementwise", r"^triton_poi_|(reshape|concat)_and_cache|append_?paged_?kv"),
    # The sum of the parts of a product that was split along its inner dimension.
    (
        "reduction",
        r"split_?k_?reduc|reduce_?split_?k|splitk_(kernel_)?reduc|execute_split_k_kernel"
        r"|^cijk_.*_postgsu",
    ),
    (
        "norm",
        r"(layer|rms|batch|group|instance|weight)_?norm|\bbn_|_bn_|cudnn.*norm|norm_(fwd|bwd)"
        r"|gammabeta|rowwisemoments",
    ),
    (
        "attention",
        r"flash(?!_?infer)|fmha|attention|attn|sdpa|\bmha_|_mla_|paged_?kv"
        r"|(prefill|decode)with\w*kvcache",
    ),
    ("softmax", r"softmax"),
    ("reduction", r"^triton_(red|per)_"),
    (
        "conv",
        r"conv(?!er[ts])|implicit_gemm|winograd|fprop|dgrad|wgrad|im2col|col2im|im3d2col|igemm_"
        r"|scudnn|hcudnn|[a-z]\d{3,5}cudnn|cudnn.*engine|nchwkcrs|vol2col|fft2d",
    ),
    (
        "gemm",
        r"gemm|gemv|cijk_|nvjet|matmul|addmm|baddbmm|(?<![a-z])b?mm(?![a-z])"
        r"|(?<![a-z])b?mm_?backward|::linear\b|einsum|tensorop|fused_moe|wgmma|dot_kernel"
        r"|_s(884|1688|16816)"
        r"|(?<![a-z0-9])(f4|f8|i8|bf16)(i4|f4|f8|i8|bf16)bf16",
    ),
    (
        "elementwise",
        r"elementwise|pointwise|vectorized|unrolled|multi_tensor_apply|foreach|fused_adam|dropout"
        r"|copy_|::copy|catarray|::cat\b|::fill_|::zero_|act_and_mul|gelu|silu|relu|sigmoid|tanh"
        r"|rotary|::(add|sub|mul|div|pow|sqrt|rsqrt|exp|neg|clamp(?:_min|_max)?|where)_?$"
        r"|::(to|_to_copy)_?$|nchwtonhwc|nhwctonchw|transpose|permut|repack|op_tensor|tensor_?transform"
        r"|quant(?!ile)|_to_(float|half|bfloat16|h?fp\d|bf16|int\d)|(?<![a-z])cast_|\bscal_kernel",
    ),
    (
        "reduction",
        r"reduce|reduction|::(sum|mean|max|min|norm|argmax|argmin|amax|cumsum)_?$|scan|l2norm"
        r"|nll_loss|cross_entropy",
    ),
)
#: Kernels that prepare another one: they do none of its work.
_HELPERS = (
    r"(?:^|[:\s])_*(?:init|initialize|prepare|populate|setup)_"
    r"|(?:^|[:\s_])(?:get|set)_\w*(?:starts|args|offsets|sizes)|compute_?(?:offsets|problem)"
)
#: Names of libraries that hold the name of an operation.
_NAMED_AFTER = re.compile(r"(?:fb|deep_?)gemm(?:_gpu)?", re.IGNORECASE)


def _compiled(rules: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in rules)


_OF_LIBRARY = _compiled(_LIBRARIES)
_OF_OPERATION = _compiled((("other", _HELPERS), *_OPERATIONS))
#: Template arguments may be thousands of characters long, and rarely show the class.
_READ, _LOOKED_AT = 4000, 400
_ANONYMOUS = "(anonymous namespace)::"
_SCOPES = re.compile(r"(?:\w+::)+")
_IDENTIFIERS = re.compile(r"[a-z_]\w*\b(?!::)", re.IGNORECASE)


@cache
def class_of(name: str) -> str:
    """Return the class of a kernel or operator: gemm, conv, …; ``other`` if no rule fits.

    The kernel's own name decides (``permute_2D_data_kernel`` of
    ``fbgemm_gpu::permute_2D_data_kernel<int>``). Where it shows no operation (``Kernel2``), the
    first template argument that shows one decides. Namespaces and names of libraries (``fbgemm``,
    ``cutlass``, ``cublas``) are not operations; only the namespace of a library for communication
    counts. Types of parameters never count. A kernel that adds the parts of a split product
    (split-K) is a reduction, one that quantises, converts, permutes or copies is elementwise, and
    one that only prepares another (its arguments, its workspace) is ``other``.

    Misleads if the name does: a library may give a kernel any name.

    Examples
    --------
    >>> class_of("ampere_sgemm_128x64_tn"), class_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    ('gemm', 'communication')
    >>> class_of("triton_poi_fused_convolution_relu_0"), class_of("aten::topk")
    ('elementwise', 'other')
    >>> class_of("void fbgemm_gpu::permute_2D_data_kernel<int>(int*)")
    'elementwise'
    >>> class_of("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_nn>(Params)")
    'gemm'
    """
    named, arguments = _parts(name[:_READ].replace(_ANONYMOUS, "").partition(" [clone")[0])
    named = named or name[:_LOOKED_AT]
    found = _first(_OF_LIBRARY, named)
    # "::" stays, because rules for operators need it: aten::add is an operator, fused_add is not.
    found = found or _first(_OF_OPERATION, _NAMED_AFTER.sub("", _SCOPES.sub("::", named)))
    for argument in () if found else _IDENTIFIERS.findall(arguments):
        found = found or _first(_OF_OPERATION, _NAMED_AFTER.sub("", argument))
    return found or "other"


def _first(rules: tuple[tuple[str, re.Pattern[str]], ...], text: str) -> str | None:
    return next((kind for kind, pattern in rules if pattern.search(text)), None)


def _parts(name: str) -> tuple[str, str]:
    """Return a name without template arguments and parameters, and its template arguments.

    Lists of parameters within template arguments are left out.
    """
    named: list[str] = []
    arguments: list[str] = []
    angles = round_ = 0
    for letter in name:
        if letter == "(" and not angles:
            break
        round_ = max(0, round_ + (letter == "(") - (letter == ")"))
        if not round_:
            angles = max(0, angles + (letter == "<") - (letter == ">"))
            (arguments if angles else named).append(" " if letter in "<>()" else letter)
    return "".join(named)[:_LOOKED_AT].strip(), "".join(arguments)[:_LOOKED_AT]
