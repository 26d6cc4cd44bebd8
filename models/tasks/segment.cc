#include "models/tasks/segment.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

// Pixels of the sent picture, along one side, that lie between the same two positions of the map.
struct Cell {
  int64_t first = 0;  // pixel
  int64_t end = 0;
  int64_t before = 0;  // position
  int64_t after = 0;   // the next position, or the same at the map's end
};

struct Axis {
  std::vector<Cell> cells;       // in order
  std::vector<float> fractions;  // for each pixel, its relative distance from its cell's `before` to `after`
};

// `place_of` returns the position, possibly beyond the map, of the centre of a sent pixel.
template <typename PlaceOf>
Axis MakeAxis(int64_t sent, int64_t positions, const PlaceOf& place_of) {
  const auto last = static_cast<double>(positions - 1);
  Axis axis;
  axis.fractions.reserve(static_cast<size_t>(sent));
  for (int64_t i = 0; i < sent; ++i) {
    const double place = std::clamp(place_of(static_cast<double>(i) + 0.5), 0.0, last);
    const auto before = std::min(static_cast<int64_t>(place), std::max<int64_t>(positions - 2, 0));
    axis.fractions.push_back(static_cast<float>(place - static_cast<double>(before)));
    if (axis.cells.empty() || axis.cells.back().before != before)
      axis.cells.push_back({i, i, before, std::min(before + 1, positions - 1)});
    axis.cells.back().end = i + 1;
  }
  return axis;
}

Axis StrideAxis(int64_t sent, int64_t scaled, int64_t stride, int64_t positions) {
  const double ratio = static_cast<double>(scaled) / static_cast<double>(sent);
  return MakeAxis(sent, positions,
                  [&](double centre) { return (centre * ratio - 0.5) / static_cast<double>(stride); });
}

// `before` is the padding in front of the picture.
Axis GridAxis(int64_t sent, int64_t before, int64_t scaled, int64_t bucket, int64_t positions) {
  const double ratio = static_cast<double>(scaled) / static_cast<double>(sent);
  const double cells = static_cast<double>(positions) / static_cast<double>(bucket);
  return MakeAxis(sent, positions, [&](double centre) {
    return (static_cast<double>(before) + centre * ratio) * cells - 0.5;
  });
}

// Returns exactly a at 0 and exactly b at 1.
inline float Between(float a, float b, float fraction) { return a * (1 - fraction) + b * fraction; }

// Labels the picture row by row. Not thread-safe.
class RowLabeller {
 public:
  RowLabeller(const float* scores, int64_t positions, int64_t classes, const Axis& columns)
      : scores_(scores),
        row_size_(positions * classes),
        classes_(classes),
        columns_(columns),
        row_(static_cast<size_t>(row_size_)),
        best_(columns.fractions.size()),
        winner_(columns.fractions.size()) {}

  // Labels one row of pixels, at `fraction` within the cell `rows`.
  void Label(const Cell& rows, float fraction, uint8_t* labels) {
    const float* above = scores_ + rows.before * row_size_;
    const float* below = scores_ + rows.after * row_size_;
    for (int64_t i = 0; i < row_size_; ++i) row_[i] = Between(above[i], below[i], fraction);
    for (const Cell& cell : columns_.cells) Label(cell);
    std::copy(winner_.begin(), winner_.end(), labels);
  }

 private:
  // Loops over classes, then over the cell's pixels: loops without branches, which the compiler vectorises.
  void Label(const Cell& cell) {
    const float* left = row_.data() + cell.before * classes_;
    const float* right = row_.data() + cell.after * classes_;
    const float* fraction = columns_.fractions.data();
    float* best = best_.data();
    int32_t* winner = winner_.data();
    for (int64_t x = cell.first; x < cell.end; ++x) {
      best[x] = Between(left[0], right[0], fraction[x]);
      winner[x] = 0;
    }
    for (int64_t c = 1; c < classes_; ++c) {
      const float a = left[c];
      const float b = right[c];
      for (int64_t x = cell.first; x < cell.end; ++x) {
        const float score = Between(a, b, fraction[x]);
        const bool better = score > best[x];
        winner[x] = better ? static_cast<int32_t>(c) : winner[x];
        best[x] = better ? score : best[x];
      }
    }
  }

  const float* scores_;
  int64_t row_size_;
  int64_t classes_;
  const Axis& columns_;
  std::vector<float> row_;  // scores interpolated between two rows of the map
  std::vector<float> best_;
  std::vector<int32_t> winner_;
};

void CountLabels(const uint8_t* labels, int64_t count, std::vector<int64_t>& areas) {
  for (int64_t i = 0; i < count; ++i) ++areas[labels[i]];
}

}  // namespace

namespace {

Segmentation Label(const at::Tensor& scores, Size sent, const Axis& rows, const Axis& columns) {
  const int64_t classes = scores.size(2);
  Segmentation result = {sent.height, sent.width,
                         std::vector<uint8_t>(static_cast<size_t>(sent.height * sent.width)),
                         std::vector<int64_t>(static_cast<size_t>(classes))};
  const auto* data = scores.const_data_ptr<float>();
  std::mutex mutex;
  const auto label = [&](int64_t begin, int64_t end) {
    RowLabeller labeller(data, scores.size(1), classes, columns);
    std::vector<int64_t> areas(static_cast<size_t>(classes));
    for (int64_t c = begin; c < end; ++c) {
      const Cell& cell = rows.cells[static_cast<size_t>(c)];
      for (int64_t y = cell.first; y < cell.end; ++y) {
        uint8_t* row = result.labels.data() + y * sent.width;
        labeller.Label(cell, rows.fractions[static_cast<size_t>(y)], row);
        CountLabels(row, sent.width, areas);
      }
    }
    const std::lock_guard lock(mutex);
    for (size_t c = 0; c < areas.size(); ++c) result.areas[c] += areas[c];
  };
  at::parallel_for(0, static_cast<int64_t>(rows.cells.size()), 1, label);
  return result;
}

}  // namespace

Segmentation LabelMap(const at::Tensor& scores, int64_t stride, const Placement& placement) {
  const auto [sent, scaled] = std::pair(placement.sent, placement.scaled);
  return Label(scores, sent, StrideAxis(sent.height, scaled.height, stride, scores.size(0)),
               StrideAxis(sent.width, scaled.width, stride, scores.size(1)));
}

Segmentation LabelMapOfGrid(const at::Tensor& scores, const Placement& placement) {
  const auto [sent, scaled] = std::pair(placement.sent, placement.scaled);
  const Size bucket = placement.bucket;
  return Label(scores, sent,
               GridAxis(sent.height, placement.top, scaled.height, bucket.height, scores.size(0)),
               GridAxis(sent.width, placement.left, scaled.width, bucket.width, scores.size(1)));
}

std::vector<TaskResult> Segment(const Description& description, const Batch& batch,
                                const std::function<ScoreMaps(const Batch&)>& network) {
  const c10::InferenceMode inference;
  CheckBatch(description, batch);
  const ScoreMaps maps = network(batch);

  std::vector<TaskResult> results;
  results.reserve(batch.placements.size());
  for (size_t i = 0; i < batch.placements.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const Size size = maps.extents[index];
    const at::Tensor scores =
        maps.scores[index].narrow(1, 0, size.height).narrow(2, 0, size.width).permute({1, 2, 0}).contiguous();
    const bool finite_pixels =
        maps.finite_pixels.empty() ? AllFinite(batch.pixels[index]) : maps.finite_pixels[i];
    if (!finite_pixels) {
      results.emplace_back(NotFiniteInput());
    } else if (!AllFinite(scores)) {
      results.emplace_back(NotFiniteOutput(description.architecture, "a score"));
    } else {
      results.emplace_back(LabelMap(scores, maps.stride, batch.placements[i]));
    }
  }
  return results;
}

}  // namespace saccade::models
