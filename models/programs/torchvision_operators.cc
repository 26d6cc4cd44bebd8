// Registers the operators of torchvision that its detectors call, so that their programs load without that
// library: the schemas are torchvision's, the kernels are this project's.
#include <torch/library.h>

#include "kernels/nms/nms.h"
#include "kernels/roi_align/roi_align.h"
#include "models/programs/torchvision_operators.h"

namespace saccade::models {
namespace {

at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold) {
  return kernels::nms(boxes, scores, iou_threshold);
}

at::Tensor RoiAlign(const at::Tensor& input, const at::Tensor& rois, double spatial_scale,
                    int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
  return kernels::roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned);
}

}  // namespace

void RegisterTorchvisionOperators() {
  static const torch::Library library = [] {
    torch::Library made(torch::Library::FRAGMENT, "torchvision", std::nullopt, __FILE__, __LINE__);
    made.def("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", Nms);
    made.def(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor",
        RoiAlign);
    return made;
  }();
  (void)library;
}

}  // namespace saccade::models
