// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/cuda_error.h"
#include "kernels/nms/nms_cuda.h"
#include "kernels/nms/nms_impl.h"

namespace saccade::kernels {
namespace {

std::tuple<at::Tensor, at::Tensor> NmsPaddedOnCuda(const at::Tensor& boxes, const at::Tensor& scores,
                                                   double iou_threshold, const OptionalTensor& labels,
                                                   int64_t max_output) {
  const c10::cuda::CUDAGuard device(boxes.device());
  const NmsBound bound = BindNms(boxes, scores, iou_threshold, labels, max_output);
  const int64_t words = NmsCudaMaskWords(bound.problem);
  TORCH_CHECK(words >= 0, "nms: argument 'boxes' should have at most 131072 rows on CUDA, got ",
              boxes.sizes());
  // Adding zero turns -0 into +0, so that both compare as the same score.
  const at::Tensor order =
      std::get<1>(at::sort(bound.scores + 0, /*stable=*/true, /*dim=*/0, /*descending=*/true));
  // The caching allocator orders reuse on this stream, so the memory may be released while the kernels still
  // run.
  const at::Tensor mask = at::empty({words}, bound.out.options());
  const char* error =
      LaunchNmsCuda(bound.problem, boxes.scalar_type() == at::kDouble, order.const_data_ptr<int64_t>(),
                    reinterpret_cast<uint64_t*>(mask.mutable_data_ptr<int64_t>()),
                    c10::cuda::getCurrentCUDAStream().stream());
  CheckLaunch("nms", error);
  return {bound.out, bound.out_count};
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) { m.impl("nms_padded", NmsPaddedOnCuda); }

}  // namespace saccade::kernels
