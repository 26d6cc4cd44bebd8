#include "models/networks/psmnet/regression.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/upsample_trilinear3d.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/common/parallel.h"

namespace saccade::models {
namespace {

// Linear interpolation between two neighbours: near + weight * (far - near).
struct Tap {
  int64_t near = 0;
  int64_t far = 0;
  float weight = 0;
};

// Taps that enlarge a line from `from` to `to` positions. Aligned corners map the first position to the first
// and the last to the last; otherwise the outer edges of the first and the last position coincide.
std::vector<Tap> Taps(int64_t from, int64_t to, bool align_corners) {
  std::vector<Tap> taps;
  const double aligned = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  const double unaligned = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const auto position = static_cast<double>(i);
    const double at = align_corners ? aligned * position : std::max(0.0, unaligned * (position + 0.5) - 0.5);
    const int64_t near = std::min(static_cast<int64_t>(at), from - 1);
    taps.push_back({near, std::min(near + 1, from - 1), static_cast<float>(at - static_cast<double>(near))});
  }
  return taps;
}

void Blend(const float* near, const float* far, float weight, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = near[i] + weight * (far[i] - near[i]);
}

// Regresses disparities line by line: holds what all lines share. Scratch is a thread's buffers for one line.
class Lines {
 public:
  Lines(const at::Tensor& costs, int64_t factor, bool align_corners)
      : planes_(costs.size(0)),
        height_(costs.size(1)),
        width_(costs.size(2)),
        costs_(costs.const_data_ptr<float>()),
        disparities_(Taps(planes_, factor * planes_, align_corners)),
        rows_(Taps(height_, factor * height_, align_corners)),
        columns_(Taps(width_, factor * width_, align_corners)) {}

  int64_t height() const { return static_cast<int64_t>(rows_.size()); }
  int64_t width() const { return static_cast<int64_t>(columns_.size()); }

  struct Scratch {
    explicit Scratch(const Lines& lines)
        : line(static_cast<size_t>(lines.width_)),
          coarse(static_cast<size_t>(lines.planes_ * lines.width())),
          peak(static_cast<size_t>(lines.width())),
          total(static_cast<size_t>(lines.width())),
          fine(at::empty({static_cast<int64_t>(lines.disparities_.size()), lines.width()}, at::kFloat)) {}

    std::vector<float> line;    // one plane, at the costs' width
    std::vector<float> coarse;  // all planes, at full width
    std::vector<float> peak, total;
    at::Tensor fine;  // all disparities
  };

  void Regress(int64_t y, Scratch& scratch, float* out) const {
    Widen(rows_[static_cast<size_t>(y)], scratch);
    Exponentials(scratch);
    Average(scratch, out);
  }

 private:
  void Widen(const Tap& row, Scratch& scratch) const {
    for (int64_t d = 0; d < planes_; ++d) {
      const float* plane = costs_ + d * height_ * width_;
      Blend(plane + row.near * width_, plane + row.far * width_, row.weight, width_, scratch.line.data());
      float* wide = scratch.coarse.data() + d * width();
      for (const Tap& tap : columns_) {
        const float near = scratch.line[static_cast<size_t>(tap.near)];
        *wide++ = near + tap.weight * (scratch.line[static_cast<size_t>(tap.far)] - near);
      }
    }
  }

  // Subtracts the largest enlarged cost, so that exponentials cannot overflow and at least one is not 0. The
  // largest coarse cost may be far above it, if no enlarged position lies on it. Enlarges twice instead of
  // reading all enlarged costs again.
  void Exponentials(Scratch& scratch) const {
    const float* coarse = scratch.coarse.data();
    float* peak = scratch.peak.data();
    std::fill_n(peak, width(), -std::numeric_limits<float>::infinity());
    for (const Tap& tap : disparities_) {
      const float* near = coarse + tap.near * width();
      const float* far = coarse + tap.far * width();
      const float weight = tap.weight;
      for (int64_t x = 0; x < width(); ++x)
        peak[x] = std::max(peak[x], near[x] + weight * (far[x] - near[x]));
    }
    auto* fine = scratch.fine.mutable_data_ptr<float>();
    for (const Tap& tap : disparities_) {
      Blend(coarse + tap.near * width(), coarse + tap.far * width(), tap.weight, width(), fine);
      for (int64_t x = 0; x < width(); ++x) fine[x] -= peak[x];
      fine += width();
    }
    at::exp_(scratch.fine);
  }

  void Average(Scratch& scratch, float* out) const {
    std::fill_n(out, width(), 0.0F);
    std::fill(scratch.total.begin(), scratch.total.end(), 0.0F);
    const auto* fine = scratch.fine.const_data_ptr<float>();
    float* total = scratch.total.data();
    for (size_t d = 0; d < disparities_.size(); ++d, fine += width()) {
      for (int64_t x = 0; x < width(); ++x) {
        total[x] += fine[x];
        out[x] += static_cast<float>(d) * fine[x];
      }
    }
    for (int64_t x = 0; x < width(); ++x) out[x] /= total[x];
  }

  int64_t planes_, height_, width_;
  const float* costs_;
  std::vector<Tap> disparities_, rows_, columns_;
};

// Computes with ATen's operators: a GPU has memory for all lines' upsampled costs.
at::Tensor Composed(const at::Tensor& costs, int64_t factor, bool align_corners) {
  const std::vector<int64_t> size = {factor * costs.size(0), factor * costs.size(1), factor * costs.size(2)};
  const at::Tensor fine =
      at::upsample_trilinear3d(costs.to(at::kFloat).unsqueeze(0).unsqueeze(0), size, align_corners)
          .squeeze(0)
          .squeeze(0);
  const at::Tensor disparities = at::arange(size[0], fine.options()).view({-1, 1, 1});
  return at::softmax(fine, 0).mul_(disparities).sum(0);
}

}  // namespace

at::Tensor RegressDisparity(const at::Tensor& costs, int64_t factor, bool align_corners) {
  const bool here =
      costs.is_cpu() && (costs.scalar_type() == at::kFloat || costs.scalar_type() == at::kBFloat16);
  if (!here) return Composed(costs, factor, align_corners);
  const at::Tensor exact = costs.to(at::kFloat);
  const Lines lines(exact, factor, align_corners);
  const at::Tensor disparity = at::empty({lines.height(), lines.width()}, at::kFloat);
  auto* out = disparity.mutable_data_ptr<float>();
  kernels::TorchParallel().run(lines.height(), 4, [&](int64_t begin, int64_t end, int /*thread*/) {
    Lines::Scratch scratch(lines);
    for (int64_t y = begin; y < end; ++y) lines.Regress(y, scratch, out + y * lines.width());
  });
  return disparity;
}

}  // namespace saccade::models
