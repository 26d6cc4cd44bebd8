#include "models/tasks/mask_frame.h"

#include <algorithm>
#include <cmath>

namespace saccade::models {
namespace {

// One interpolation step along one axis: the cells `low` and `high`, weighted.
struct Step {
  int64_t low = 0;
  int64_t high = 0;
  float high_weight = 0;
};

// The step at a position of the picture, for `cells` cells of size `cell` from `start`. Positions before the
// first centre and after the last take that cell alone.
Step StepAt(float position, float start, float cell, int64_t cells) {
  const float place = std::clamp((position - start) / cell - 0.5F, 0.0F, static_cast<float>(cells - 1));
  const auto low = static_cast<int64_t>(place);
  return {low, std::min(low + 1, cells - 1), place - static_cast<float>(low)};
}

// Interpolates at every pair of a row's and a column's step, row by row.
std::vector<float> Interpolated(const Detection& detection, const std::vector<Step>& rows,
                                const std::vector<Step>& columns) {
  const int64_t width = detection.frame.columns;
  std::vector<float> line(static_cast<size_t>(width));
  std::vector<float> values;
  values.reserve(rows.size() * columns.size());
  for (const Step& row : rows) {
    const float* low = detection.mask.data() + row.low * width;
    const float* high = detection.mask.data() + row.high * width;
    for (size_t x = 0; x < line.size(); ++x)
      line[x] = (1 - row.high_weight) * low[x] + row.high_weight * high[x];
    for (const Step& column : columns) {
      values.push_back((1 - column.high_weight) * line[static_cast<size_t>(column.low)] +
                       column.high_weight * line[static_cast<size_t>(column.high)]);
    }
  }
  return values;
}

// The first pixel whose centre is at or after `edge`, within [0, limit].
int64_t PixelAt(float edge, int64_t limit) {
  return static_cast<int64_t>(std::clamp(std::ceil(edge - 0.5F), 0.0F, static_cast<float>(limit)));
}

}  // namespace

MaskRegion PasteFrame(const Detection& detection, int64_t height, int64_t width) {
  const MaskFrame& frame = detection.frame;
  const int64_t left = PixelAt(detection.x_min, width);
  const int64_t top = PixelAt(detection.y_min, height);
  const int64_t right = PixelAt(detection.x_max, width);
  const int64_t bottom = PixelAt(detection.y_max, height);
  if (right <= left || bottom <= top) return {};
  std::vector<Step> rows;
  for (int64_t y = top; y < bottom; ++y)
    rows.push_back(StepAt(static_cast<float>(y) + 0.5F, frame.y, frame.cell_height, frame.rows));
  std::vector<Step> columns;
  for (int64_t x = left; x < right; ++x)
    columns.push_back(StepAt(static_cast<float>(x) + 0.5F, frame.x, frame.cell_width, frame.columns));
  return {left, top, right - left, bottom - top, Interpolated(detection, rows, columns)};
}

std::vector<float> MaskOverBox(const Detection& detection, int64_t side) {
  const MaskFrame& frame = detection.frame;
  if (detection.mask.empty() || frame.columns == 0) return detection.mask;
  const auto steps = [side](float low, float high, float start, float cell, int64_t cells) {
    std::vector<Step> made;
    const float size = (high - low) / static_cast<float>(side);
    for (int64_t i = 0; i < side; ++i)
      made.push_back(StepAt(low + (static_cast<float>(i) + 0.5F) * size, start, cell, cells));
    return made;
  };
  return Interpolated(detection,
                      steps(detection.y_min, detection.y_max, frame.y, frame.cell_height, frame.rows),
                      steps(detection.x_min, detection.x_max, frame.x, frame.cell_width, frame.columns));
}

}  // namespace saccade::models
