#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <limits>

#include "kernels/common/parallel.h"
#include "kernels/nms/nms_cpu.h"
#include "kernels/nms/nms_impl.h"

namespace saccade::kernels {
namespace {

template <typename A>
void RunAs(const NmsBound& bound) {
  const auto bytes = static_cast<int64_t>(NmsCpuWorkspaceBytes<A>(bound.problem));
  const at::Tensor workspace = at::empty({bytes}, bound.out.options().dtype(at::kByte));
  RunNmsCpu<A>(bound.problem, BestCpuIsa(), TorchParallel(),
               static_cast<std::byte*>(workspace.mutable_data_ptr()));
}

std::tuple<at::Tensor, at::Tensor> NmsPaddedCpu(const at::Tensor& boxes, const at::Tensor& scores,
                                                double iou_threshold, const OptionalTensor& labels,
                                                int64_t max_output) {
  const NmsBound bound = BindNms(boxes, scores, iou_threshold, labels, max_output);
  CheckFinite("nms", "boxes", bound.boxes);
  CheckFinite("nms", "scores", bound.scores);
  TORCH_CHECK(bound.problem.count <= std::numeric_limits<int32_t>::max(),
              "nms: argument 'boxes' should have at most 2147483647 rows, got ", bound.problem.count);
  boxes.scalar_type() == at::kDouble ? RunAs<double>(bound) : RunAs<float>(bound);
  return {bound.out, bound.out_count};
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) { m.impl("nms_padded", NmsPaddedCpu); }

}  // namespace saccade::kernels
