import pytest

from advisor.analysis.kernel_names import read_kernel_name
from advisor.model.kernels import KERNEL_KINDS

KINDS = [
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(params)", "attention"),
    ("attn_fwd", "attention"),
    ("void reshape_and_cache_flash_kernel<__nv_bfloat16>(float*)", "copy"),
    ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>()", "optimizer"),
    ("void split_embedding_codegen_forward_unweighted_kernel<float>()", "embedding"),
    ("void rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise"),
    ("triton_poi_fused_add_mul_0", "generated"),
    ("triton_tem_fused_mm_3", "matmul"),
    ("void vectorized_layer_norm_kernel<float, float>(int)", "normalization"),
    ("void cudnn::bn_bw_1C11_kernel_new<float, float>(float)", "normalization"),
    ("void cunn_SoftMaxForward<8, float, float, float, Epilogue>(float*)", "softmax"),
    ("void cudnn::ops::nchwToNhwcKernel<float, float>(int)", "copy"),
    ("void CatArrayBatchedCopy<float, unsigned int, 2>(float*)", "copy"),
    ("void elementwise_kernel<128, 2, direct_copy_kernel_cuda(TensorIteratorBase&)>(int)", "copy"),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5>(int)", "convolution"),
    ("cudnn_volta_scudnn_winograd_128x128_nt_v1", "convolution"),
    ("ampere_sgemm_128x64_tn", "matmul"),
    ("Cijk_Alik_Bljk_BBS_BH_MT256x32x64_MI16x16x1", "matmul"),
    ("nvjet_tst_64x64_64x16_2x1_TNT", "matmul"),
    ("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)", "embedding"),
    ("void reduce_kernel<512, 1, ReduceOp<float, sum_functor(float){lambda(float)#1}>>()", "reduction"),
    ("void vectorized_elementwise_kernel<4, AddFunctor<float>>(int)", "elementwise"),
    ("void max_pool_forward_nchw<float>(int)", "other"),
]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_the_name_of_a_kernel_tells_what_it_does(name, kind):
    assert read_kernel_name(name).kind == kind


def test_every_kind_has_an_example():
    assert {kind for _, kind in KINDS} == set(KERNEL_KINDS)


@pytest.mark.parametrize(
    ("name", "is_fp32", "on_tensor_cores"),
    [
        ("volta_sgemm_64x64_nt", True, False),
        ("ampere_sgemm_32x32_sliced1x4_tn", True, False),
        ("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4", False, True),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32", False, True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8", True, False),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", False, True),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_stages_64x4_tn", False, True),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7>(int)", True, False),
        ("void vectorized_elementwise_kernel<4, AddFunctor<float>>(int)", False, False),
    ],
)
def test_products_tell_on_which_units_they_run(name, is_fp32, on_tensor_cores):
    told = read_kernel_name(name)
    assert (told.is_fp32_product, told.uses_tensor_cores) == (is_fp32, on_tensor_cores)


def test_winograd_is_no_gradient():
    assert not read_kernel_name("volta_scudnn_winograd_128x128_nt_v1").is_backward
    assert read_kernel_name("void cudnn::detail::dgrad_engine<float, 512>(int)").is_backward
