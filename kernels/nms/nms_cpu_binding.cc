#include <c10/util/Exception.h>
#include <torch/library.h>

#include <limits>

#include "kernels/common/cpu_run.h"
#include "kernels/common/dtype_dispatch.h"
#include "kernels/nms/nms_cpu.h"
#include "kernels/nms/nms_impl.h"

namespace saccade::kernels {
namespace {

template <typename A>
size_t WorkspaceBytes(const NmsProblem& problem, int /*threads*/) {
  return NmsCpuWorkspaceBytes<A>(problem);
}

std::tuple<at::Tensor, at::Tensor> NmsPaddedCpu(const at::Tensor& boxes, const at::Tensor& scores,
                                                double iou_threshold, const OptionalTensor& labels,
                                                int64_t max_output) {
  const NmsBound bound = BindNms(boxes, scores, iou_threshold, labels, max_output);
  CheckFinite("nms", {{"boxes", bound.boxes}, {"scores", bound.scores}});
  TORCH_CHECK(bound.problem.count <= std::numeric_limits<int32_t>::max(),
              "nms: argument 'boxes' should have at most 2147483647 rows, got ", bound.problem.count);
  WithAccumulateType(DtypeOf(boxes), [&]<typename A>(A /*zero*/) {
    RunCpuCode<WorkspaceBytes<A>, RunNmsCpu<A>>(bound.problem);
  });
  return {bound.out, bound.out_count};
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CPU, m) { m.impl("nms_padded", NmsPaddedCpu); }

}  // namespace saccade::kernels
