#include "models/described/prototype_masks.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

// The cells along one axis whose centres are needed to interpolate between two positions of the picture. At
// least one, also for a box that ends before it starts.
struct Cells {
  int64_t first = 0;
  int64_t count = 0;
};

Cells CellsBetween(float low, float high, float start, float cell, int64_t cells) {
  const auto last = static_cast<float>(cells - 1);
  const auto first = static_cast<int64_t>(std::clamp(std::floor((low - start) / cell - 0.5F), 0.0F, last));
  const auto end = static_cast<int64_t>(std::clamp(std::floor((high - start) / cell - 0.5F) + 1, 0.0F, last));
  return {first, std::max(end, first) - first + 1};
}

// `frame` is that of the whole grid; `prototypes` is [K, h, w].
void MakeMask(const at::Tensor& prototypes, const MaskFrame& frame, Detection& one) {
  const Cells rows = CellsBetween(one.y_min, one.y_max, frame.y, frame.cell_height, frame.rows);
  const Cells columns = CellsBetween(one.x_min, one.x_max, frame.x, frame.cell_width, frame.columns);
  const std::vector<float> coefficients = std::move(one.mask);
  one.mask.assign(static_cast<size_t>(rows.count * columns.count), 0.0F);
  const float* corner = prototypes.const_data_ptr<float>() + rows.first * frame.columns + columns.first;
  for (const float coefficient : coefficients) {
    for (int64_t y = 0; y < rows.count; ++y) {
      const float* from = corner + y * frame.columns;
      float* to = one.mask.data() + y * columns.count;
      for (int64_t x = 0; x < columns.count; ++x) to[x] += coefficient * from[x];
    }
    corner += frame.rows * frame.columns;
  }
  for (float& value : one.mask) value = 1 / (1 + std::exp(-value));
  one.frame = frame;
  one.frame.x += static_cast<float>(columns.first) * frame.cell_width;
  one.frame.y += static_cast<float>(rows.first) * frame.cell_height;
  one.frame.columns = columns.count;
  one.frame.rows = rows.count;
}

}  // namespace

int64_t CountPrototypes(const Head& head, const at::Tensor& prototypes) {
  return prototypes.size(head.prototypes_last ? 2 : 0);
}

bool MakeMasks(const Head& head, const at::Tensor& prototypes, const Placement& placement,
               const ToSent& to_sent, std::vector<Detection>& detections) {
  const at::Tensor planes = head.prototypes_last ? prototypes.permute({2, 0, 1}).contiguous() : prototypes;
  MaskFrame frame{
      .x = to_sent.PixelX(0), .y = to_sent.PixelY(0), .columns = planes.size(2), .rows = planes.size(1)};
  const auto width = static_cast<float>(placement.bucket.width);
  const auto height = static_cast<float>(placement.bucket.height);
  frame.cell_width = (to_sent.PixelX(width) - frame.x) / static_cast<float>(frame.columns);
  frame.cell_height = (to_sent.PixelY(height) - frame.y) / static_cast<float>(frame.rows);
  std::atomic<bool> finite = true;
  at::parallel_for(0, static_cast<int64_t>(detections.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Detection& one = detections[static_cast<size_t>(i)];
      MakeMask(planes, frame, one);
      if (!AllFinite(one.mask)) finite = false;
    }
  });
  return finite;
}

}  // namespace saccade::models
