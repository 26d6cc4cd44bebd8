#include "models/networks/psmnet/cost_volume.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "kernels/common/parallel.h"

namespace saccade::models {
namespace {

// Writes one line of one plane.
template <typename T>
void WriteLine(const T* left, const T* right, int64_t channels, int64_t width, int64_t disparity, T* out) {
  const int64_t beyond = std::min(disparity, width);
  std::fill_n(out, beyond * 2 * channels, T(0));
  out += beyond * 2 * channels;
  for (int64_t x = beyond; x < width; ++x) {
    out = std::copy_n(left + x * channels, channels, out);
    out = std::copy_n(right + (x - disparity) * channels, channels, out);
  }
}

// Computes the volume with ATen's operators, plane by plane.
at::Tensor Composed(const at::Tensor& left, const at::Tensor& right, int64_t planes) {
  const int64_t channels = left.size(1);
  const int64_t width = left.size(3);
  // at::zeros() would ignore the memory format.
  at::Tensor volume = at::empty({1, 2 * channels, planes, left.size(2), width},
                                left.options().memory_format(at::MemoryFormat::ChannelsLast3d))
                          .zero_();
  for (int64_t disparity = 0; disparity < std::min(planes, width); ++disparity) {
    const int64_t seen = width - disparity;
    const at::Tensor plane = volume.select(2, disparity).narrow(3, disparity, seen);
    plane.narrow(1, 0, channels).copy_(left.narrow(3, disparity, seen));
    plane.narrow(1, channels, channels).copy_(right.narrow(3, 0, seen));
  }
  return volume;
}

template <typename T>
at::Tensor Written(const at::Tensor& left, const at::Tensor& right, int64_t planes) {
  const int64_t channels = left.size(1);
  const int64_t height = left.size(2);
  const int64_t width = left.size(3);
  const at::Tensor from_left = left.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor from_right = right.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor volume = at::empty({1, 2 * channels, planes, height, width},
                                      left.options().memory_format(at::MemoryFormat::ChannelsLast3d));
  const auto* l = from_left.const_data_ptr<T>();
  const auto* r = from_right.const_data_ptr<T>();
  auto* out = volume.mutable_data_ptr<T>();
  kernels::TorchParallel().run(planes * height, 16, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t from = line % height * width * channels;
      WriteLine(l + from, r + from, channels, width, line / height, out + line * width * 2 * channels);
    }
  });
  return volume;
}

}  // namespace

at::Tensor ConcatenationVolume(const at::Tensor& left, const at::Tensor& right, int64_t planes) {
  if (left.is_cpu() && left.scalar_type() == at::kFloat) return Written<float>(left, right, planes);
  if (left.is_cpu() && left.scalar_type() == at::kBFloat16) return Written<at::BFloat16>(left, right, planes);
  return Composed(left, right, planes);
}

}  // namespace saccade::models
