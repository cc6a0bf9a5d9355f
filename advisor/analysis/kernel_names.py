"""The name of a kernel → what it does and on which units, as far as the name tells."""

import functools
import re

from advisor.analysis.word_search import WordSearch
from advisor.model.dataclass import dataclass

_KINDS: tuple[tuple[str, str], ...] = (
    (
        "communication",
        (
            r"nccl|rccl|msccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|SendRecv|"
            r"cross_device_reduce|quick_?reduce|nvshmem|symm_?mem"
        ),
    ),
    ("copy", r"reshape_and_cache|quantize_with_|per_token_quant|nchwToNhwc|nhwcToNchw"),
    ("attention", r"flash_|fmha|attn|attention|\bmha_"),
    (
        "optimizer",
        r"multi_tensor_apply|fused_?adam|\badam|(?<!rowwise_)adagrad|\blamb(?!da)|_sgd_|optimi[sz]er",
    ),
    (
        "embedding",
        (
            r"(?<!rotary_)embedding|index_?select|gather|scatter|index_?put|indexing_backward|"
            r"index_elementwise|permute_pooled|permute_\dD|jagged|_embs"
        ),
    ),
    ("matmul", r"^triton_\w*_(?:mm|bmm|addmm)(?:_|\b)"),
    ("generated", r"^triton_"),
    (
        "normalization",
        (
            r"layer_?norm|rms_?norm|batch_?norm|group_?norm|instance_?norm|\bbn_[fb]w|norm2d|"
            r"norm_kernel|RowwiseMoments|ComputeFusedParams|GammaBeta|ComputeInternalGradients"
        ),
    ),
    ("softmax", r"soft_?max"),
    (
        "copy",
        (
            r"transpose|tensorTransform|SubTensorOp\w*Cast|CatArray|concat|direct_copy|copy_kernel|"
            r"_copy_|convert(?!ed)|Memcpy|cast_kernel|slice_and_copy"
        ),
    ),
    (
        "convolution",
        (
            r"conv(?:ol|\d|_|n|\b)|Conv(?!ert)|dgrad|wgrad|fprop|implicit_gemm|winograd|scudnn|hcudnn|"
            r"im2col|col2im|igemm_|gcgemm|cgemm|fft[12]d|vector_fft|flip_filter|cask_cudnn"
        ),
    ),
    (
        "matmul",
        (
            r"(?<!fb)gemm|gemv|Cijk_|matmul|nvjet|\bbmm_|splitK_?reduce|dot_kernel|cutlass|tensorop|"
            r"xmma|wmma|_mm_|\bmm_kernel|fused_moe|grouped_mm|cublasLt"
        ),
    ),
    ("reduction", r"reduce|cumsum|scan_|\bscan"),
    (
        "elementwise",
        (
            r"elementwise|Functor|pointwise|dropout|act_and_mul|silu|gelu|relu|fused_add|rotary|rope|"
            r"distribution_|OpTensor|Op[12]d|activation|scalePackedTensor"
        ),
    ),
)
"""Kinds by what their names contain, the more telling first; of several the first counts."""

_TESTS = tuple((kind, WordSearch(pattern)) for kind, pattern in _KINDS)

_LAYOUT = WordSearch(r"nchwToNhwc|nhwcToNchw|transpose|tensorTransform")

_TENSOR_CORES = re.compile(
    r"tensorop|wmma|wgmma|gmma|warpgroup|nvjet|hmma|imma|mfma|_MI\d+x\d+|tf32|"
    r"[sh]884|[shi]1688|[shi]16816|i8816|xmma_\w*?(?:bf16|_f16|e4m3|e5m2|i8)|"
    r"ampere_(?:fp16|bf16)|Cijk_"
)
"""Instruction shapes and libraries that exist on tensor or matrix cores only."""

_FP32_PRODUCT = re.compile(
    r"sgemm|scudnn|f32f32_f32f32_f32|(?:dgrad|wgrad)\w*_engine<float|implicit_convolve_\w+<float|"
    r"winograd\w*(?:::\w+)?\w*<float|gemmSN_\w+<float"
)
"""cuBLAS's and cuDNN's names of products in fp32 on the ordinary units."""

_BF16 = WordSearch(r"bf16|bfloat16|_BB[SH]_|Bfloat16")

_VECTOR = WordSearch(r"gemv|gemmk1|gemvx|wvSplitK|skinny|LLMM1|\bdot_kernel")

_PAGED = WordSearch(r"paged|unified_attention|decode_attention|mla_decode|BatchDecode|flash_fwd_splitkv")

_FUSED_OPTIMIZER = re.compile(r"Fused(?:Adam|SGD|Adagrad)|fused_?adam|\bAdamFunctor")

_BACKWARD = WordSearch(r"backward|_bwd|\bbn_bw|(?<!wino)grad")


@dataclass(frozen=True, slots=True)
class KernelName:
    """What a kernel's name tells.

    Attributes:
        kind: one of `advisor.model.kernels.KERNEL_KINDS`.
        is_layout: a transposition or a conversion between NCHW and NHWC.
        is_fp32_product: a product or convolution in fp32 on the ordinary units.
        uses_tensor_cores: on tensor or matrix cores.
        is_bf16: a product or convolution in bf16.
        is_vector_product: matrix times vector, or a product of very few rows.
        is_paged: attention over a paged KV cache.
        is_backward: part of a backward pass.
        is_multi_tensor: handles many tensors at once (foreach, fused optimizers).
        is_fused_optimizer: a fused optimizer's own kernel.
    """

    kind: str
    is_layout: bool
    is_fp32_product: bool
    uses_tensor_cores: bool
    is_bf16: bool
    is_vector_product: bool
    is_paged: bool
    is_backward: bool
    is_multi_tensor: bool
    is_fused_optimizer: bool


@functools.lru_cache(maxsize=20_000)
def read_kernel_name(name: str) -> KernelName:
    """Read a kernel's name; what it does not show is False, and the kind "other"."""
    kind = kernel_kind(name)
    is_product = kind in {"matmul", "convolution"}
    on_tensor_cores = is_product and bool(_TENSOR_CORES.search(name))
    return KernelName(
        kind=kind,
        is_layout=kind == "copy" and _LAYOUT.search(name),
        is_fp32_product=is_product and not on_tensor_cores and bool(_FP32_PRODUCT.search(name)) and not _BF16.search(name),
        uses_tensor_cores=on_tensor_cores,
        is_bf16=is_product and _BF16.search(name),
        is_vector_product=kind == "matmul" and _VECTOR.search(name),
        is_paged=kind == "attention" and _PAGED.search(name),
        is_backward=_BACKWARD.search(name),
        is_multi_tensor="multi_tensor" in name,
        is_fused_optimizer=bool(_FUSED_OPTIMIZER.search(name)),
    )


def kernel_kind(name: str) -> str:
    """One of `advisor.model.kernels.KERNEL_KINDS`."""
    for kind, test in _TESTS:
        if test.search(name):
            return kind
    return "other"


def is_communication(name: str) -> bool:
    """Whether its kind is "communication", the first that is looked for."""
    kind, test = _TESTS[0]
    return kind == "communication" and test.search(name)
