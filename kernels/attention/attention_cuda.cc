// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/native/transformers/cuda/sdp_utils.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "kernels/attention/attention_binding.h"
#include "kernels/attention/attention_cuda.h"
#include "kernels/common/cuda_run.h"

namespace saccade::kernels {
namespace {

// LibTorch's FlashAttention, in the form for samples of different sizes, which never splits a sum by the
// number of free multiprocessors: a sample's bits depend neither on its batch nor on padding. The form for
// equal sizes does split, by the batch.
bool HasFlashAttention() {
  return sdp::is_flash_attention_available() && at::globalContext().userEnabledFlashSDP() &&
         at::cuda::getCurrentDeviceProperties()->major >= 8;
}

void RunFlashAttention(const char* op, const AttentionCall& call, const AttentionPackedShape& shape) {
  const AttentionProblem& p = call.problem;
  const int64_t queries = call.out.numel() / p.batch / p.out_channels;
  const auto rows = [&](int64_t count) {
    return at::empty({p.batch * count, p.heads, shape.head_channels},
                     call.out.options().memory_format(at::MemoryFormat::Contiguous));
  };
  const at::Tensor q = rows(queries);
  const at::Tensor k = rows(shape.keys);
  const at::Tensor v = rows(shape.keys);
  const at::Tensor numbers = at::empty({3, p.batch + 1}, call.out.options().dtype(at::kInt));
  AttentionPacked packed;
  packed.head_channels = shape.head_channels;
  packed.q = q.mutable_data_ptr();
  packed.k = k.mutable_data_ptr();
  packed.v = v.mutable_data_ptr();
  packed.query_starts = numbers.mutable_data_ptr<int32_t>();
  packed.key_starts = packed.query_starts + p.batch + 1;
  packed.used_keys = packed.key_starts + p.batch + 1;
  LaunchWithWorkspace(
      op, call.out, shape.workspace_floats, [&](float* workspace, void* stream) -> const char* {
        if (const char* error = LaunchAttentionPack(p, packed, workspace, stream)) return error;
        const at::Tensor out = std::get<0>(at::_flash_attention_forward(
            q, k, v, numbers[0], numbers[1], queries, shape.keys, /*dropout_p=*/0, /*is_causal=*/false,
            /*return_debug_mask=*/false, p.logit_scale, std::nullopt, std::nullopt,
            numbers[2].narrow(0, 0, p.batch)));
        packed.out = out.const_data_ptr();
        return LaunchAttentionUnpack(p, packed, workspace, stream);
      });
}

at::Tensor Run(const char* op, const AttentionCall& call) {
  if (call.out.numel() == 0) return call.out;
  const AttentionPackedShape shape = AttentionPackedShapeOf(call.problem);
  if (shape.head_channels != 0 && HasFlashAttention()) {
    RunFlashAttention(op, call, shape);
    return call.out;
  }
  const int64_t floats = AttentionCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected at most 2^31 positions per sample and 2^31 blocks of work on CUDA, got ",
              call.out.sizes());
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchAttentionCuda(call.problem, workspace, stream);
  });
  return call.out;
}

// float64 has no kernel, because it is only for checking; it uses the reference.
at::Tensor Plain(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                 double scale, AttentionKind kind, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  if (q.scalar_type() == at::kDouble) return AttentionReference(q, k, v, heads, scale, kind, valid);
  return Run(op, BindAttention(op, q, k, v, heads, scale, kind, valid));
}

at::Tensor AttentionOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                           double scale, bool pool, const OptionalTensor& valid) {
  return Plain("attention", q, k, v, heads, scale, pool ? AttentionKind::kPooled : AttentionKind::kSoftmax,
               valid);
}

at::Tensor Attention1nOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                             const OptionalTensor& valid) {
  return Plain("attention_1n", q, k, v, heads, 1, AttentionKind::kMean, valid);
}

at::Tensor ModuleOnCuda(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                        int64_t heads, double logit_scale, bool residual, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  if (x.scalar_type() == at::kDouble) {
    return AttentionModuleReference(x, kind, weights, heads, logit_scale, residual, valid);
  }
  return Run("attention_module", BindAttentionModule(x, kind, weights, heads, logit_scale, residual, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("attention", AttentionOnCuda);
  m.impl("attention_1n", Attention1nOnCuda);
  m.impl("attention_module", AttentionModuleAs<ModuleOnCuda>);
}

}  // namespace saccade::kernels
