// RoIAlign: averages regions of a feature map into a fixed number of bins ("Mask R-CNN", as defined by
// torchvision).
//
// A region's bin is the average of bilinear samples on a regular grid within it; samples more than one pixel
// outside the map count as zero. `sampling_ratio` is the number of samples per bin along each axis; 0 or less
// means as many as a bin has pixels, rounded up. `aligned` shifts coordinates by half a pixel, so that a
// map's pixel i covers [i, i + 1]; without it, regions smaller than a pixel are enlarged to one.
//
// Features are float32, float64 or bfloat16 (on CUDA also float16), contiguous, channels-last or strided, and
// are read in place. Regions are float32 (float64 for float64), or of the features' type, though bfloat16 is
// too coarse for them. Sums are accumulated in float32 (float64 for float64). Results are dense:
// channels-last if the features (for a pyramid, its first level) are, otherwise contiguous.
//
// `valid` is the valid extent of each sample, starting at the origin: int64 [B, spatial dims] on the
// features' device. Positions outside it are treated as if the map were cropped there. Extents outside the
// map are errors on the CPU and clamped on CUDA.
//
// On the CPU, regions that are not finite, that belong to a sample that does not exist, or that need more
// than 65536 samples per bin are errors. On CUDA, where checking would require synchronisation, the first two
// give NaN.
//
// Calls allocate their result, block until it is ready on the CPU (on CUDA they only enqueue), are
// thread-safe, and throw c10::Error with the argument, what was expected and what was given. They are also
// torch.ops.saccade.roi_align, roi_align_pyramid and roi_align_3d. If the features require grad, a
// differentiable composition runs instead, whose memory grows with regions times the size of a map; regions
// get no gradient, as in torchvision.
//
// A region's result depends on that region and its sample alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace saccade::kernels {

// features [B, C, H, W], rois [K, 5] as (sample, x1, y1, x2, y2); returns [K, C, pooled_height,
// pooled_width].
at::Tensor roi_align(const at::Tensor& features, const at::Tensor& rois, double spatial_scale,
                     int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio = -1,
                     bool aligned = false, const std::optional<at::Tensor>& valid = std::nullopt);

// Same for a pyramid of up to 8 levels [B, C, H_l, W_l], where each region is pooled from the level that
// suits its size:
//   floor(canonical_level + log2(sqrt(area) / canonical_scale) + 1e-6), clamped to the pyramid,
// where a level of scale 2^-k is level k; exactly as torchvision's MultiScaleRoIAlign. If there are several
// levels, scales must halve from each to the next. A box with a negative area has no level and gives zeros.
//   boxes   [K, 5], like rois above
//   valid   int64 [levels, B, 2]
struct RoiAlignPyramid {
  std::vector<at::Tensor> levels;
  std::vector<double> spatial_scales;
  int64_t canonical_scale = 224;
  int64_t canonical_level = 4;
};
at::Tensor roi_align_pyramid(const RoiAlignPyramid& pyramid, const at::Tensor& boxes, int64_t pooled_height,
                             int64_t pooled_width, int64_t sampling_ratio = -1, bool aligned = false,
                             const std::optional<at::Tensor>& valid = std::nullopt);

// Segments of a video's map (R-C3D): features [B, C, T, H, W], rois [K, 3] as (sample, t1, t2); returns [K,
// C, pooled_length, pooled_height, pooled_width]. Time is pooled like an axis of roi_align. Height and width
// are pooled whole, as an aligned region [0, H] x [0, W] in pixels with the same sampling_ratio. With a ratio
// of 0 or less, and H and W multiples of the number of bins, that is the average over each bin's pixels.
at::Tensor roi_align_3d(const at::Tensor& features, const at::Tensor& rois, double temporal_scale,
                        int64_t pooled_length, int64_t pooled_height, int64_t pooled_width,
                        int64_t sampling_ratio = -1, bool aligned = false,
                        const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
