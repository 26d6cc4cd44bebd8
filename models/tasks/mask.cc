#include "models/tasks/mask.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "models/api/placement.h"
#include "models/tasks/mask_frame.h"

namespace saccade::models {
namespace {

// The mask gets a border of zeros of this width, and the box grows in proportion, so that edges fade as in
// training.
constexpr int64_t kBorderWidth = 1;

// One interpolation step along one axis of the bordered mask: source positions `low` and `high`, weighted.
// Positions outside the bordered mask repeat its last one.
struct Sample {
  int64_t low = 0;
  int64_t high = 0;
  float high_weight = 0;
};

// The box's whole pixels along one axis: [begin, begin + size).
struct Span {
  int64_t begin = 0;
  int64_t size = 0;
};

// Computes in float32 and truncates towards zero, as torchvision does.
Span GrownSpan(float low, float high, int64_t side) {
  const auto scale =
      static_cast<float>(static_cast<double>(side + 2 * kBorderWidth) / static_cast<double>(side));
  const float half = (high - low) * 0.5F * scale;
  const float centre = (high + low) * 0.5F;
  const auto begin = static_cast<int64_t>(centre - half);
  const auto end = static_cast<int64_t>(centre + half);
  return {begin, std::max<int64_t>(end - begin + 1, 1)};
}

// Returns the part of a span within [0, limit).
Span Visible(Span span, int64_t limit) {
  const int64_t begin = std::clamp<int64_t>(span.begin, 0, limit);
  const int64_t end = std::clamp<int64_t>(span.begin + span.size, 0, limit);
  return {begin, end - begin};
}

// Bilinear interpolation, corners not aligned, from a bordered mask of `side` to the visible part of the
// span.
std::vector<Sample> Samples(Span span, Span visible, int64_t side) {
  const int64_t bordered = side + 2 * kBorderWidth;
  const float scale = static_cast<float>(bordered) / static_cast<float>(span.size);
  std::vector<Sample> samples(static_cast<size_t>(visible.size));
  for (int64_t i = 0; i < visible.size; ++i) {
    const auto position = static_cast<float>(visible.begin - span.begin + i);
    const float source = std::max(scale * (position + 0.5F) - 0.5F, 0.0F);
    const int64_t low = std::min(static_cast<int64_t>(source), bordered - 1);
    const float weight = std::clamp(source - static_cast<float>(low), 0.0F, 1.0F);
    samples[static_cast<size_t>(i)] = {low, std::min(low + 1, bordered - 1), weight};
  }
  return samples;
}

std::vector<float> Bordered(const std::vector<float>& mask, int64_t side) {
  const int64_t bordered = side + 2 * kBorderWidth;
  std::vector<float> result(static_cast<size_t>(bordered * bordered));
  for (int64_t y = 0; y < side; ++y) {
    std::copy_n(mask.begin() + y * side, side, result.begin() + (y + kBorderWidth) * bordered + kBorderWidth);
  }
  return result;
}

bool IsUsable(const Detection& detection, Size grid) {
  const bool finite = std::isfinite(detection.x_min) && std::isfinite(detection.y_min) &&
                      std::isfinite(detection.x_max) && std::isfinite(detection.y_max);
  // Above any picture's size, and below the point where a float no longer fits an integer.
  const float max = std::max({std::fabs(detection.x_min), std::fabs(detection.y_min),
                              std::fabs(detection.x_max), std::fabs(detection.y_max)});
  return finite && max < 1e9F && grid.width > 0 &&
         static_cast<int64_t>(detection.mask.size()) == grid.height * grid.width;
}

// Collects run lengths; the first run is of zeros.
class Runs {
 public:
  void Add(bool one, int64_t count) {
    if (count == 0) return;
    if (one != one_) {
      counts_.push_back(static_cast<uint32_t>(run_));
      run_ = 0;
      one_ = one;
    }
    run_ += count;
  }

  std::vector<uint32_t> Finish() {
    counts_.push_back(static_cast<uint32_t>(run_));
    return std::move(counts_);
  }

 private:
  std::vector<uint32_t> counts_;
  int64_t run_ = 0;
  bool one_ = false;
};

constexpr int64_t kColumnsAtOnce = 16;

// Marks the pixels at or above the threshold in up to kColumnsAtOnce columns of the region, column by column.
// The region is stored row by row, and one column at a time would load every cache line once per column.
void Threshold(const MaskRegion& region, int64_t first, int64_t columns, float threshold,
               std::vector<uint8_t>& set) {
  for (int64_t y = 0; y < region.height; ++y) {
    const float* row = region.values.data() + y * region.width + first;
    for (int64_t x = 0; x < columns; ++x) {
      set[static_cast<size_t>(x * region.height + y)] = row[x] >= threshold ? 1 : 0;
    }
  }
}

}  // namespace

MaskRegion PasteMask(const Detection& detection, int64_t mask_side, int64_t height, int64_t width) {
  const bool framed = detection.frame.columns > 0;
  const Size side{mask_side, mask_side};
  if (!IsUsable(detection, framed ? Size{detection.frame.rows, detection.frame.columns} : side)) return {};
  if (framed) return PasteFrame(detection, height, width);
  const Span rows = GrownSpan(detection.y_min, detection.y_max, mask_side);
  const Span columns = GrownSpan(detection.x_min, detection.x_max, mask_side);
  const Span seen_rows = Visible(rows, height);
  const Span seen_columns = Visible(columns, width);
  if (seen_rows.size <= 0 || seen_columns.size <= 0) return {};

  const int64_t bordered = mask_side + 2 * kBorderWidth;
  const std::vector<float> mask = Bordered(detection.mask, mask_side);
  const std::vector<Sample> ys = Samples(rows, seen_rows, mask_side);
  const std::vector<Sample> xs = Samples(columns, seen_columns, mask_side);
  MaskRegion region{seen_columns.begin, seen_rows.begin, seen_columns.size, seen_rows.size, {}};
  region.values.resize(static_cast<size_t>(region.width * region.height));
  std::vector<float> line(static_cast<size_t>(bordered));
  float* out = region.values.data();
  for (const Sample& y : ys) {
    const float* low = mask.data() + y.low * bordered;
    const float* high = mask.data() + y.high * bordered;
    for (size_t x = 0; x < line.size(); ++x) line[x] = (1 - y.high_weight) * low[x] + y.high_weight * high[x];
    for (const Sample& x : xs) {
      *out++ = (1 - x.high_weight) * line[static_cast<size_t>(x.low)] +
               x.high_weight * line[static_cast<size_t>(x.high)];
    }
  }
  return region;
}

std::vector<uint32_t> EncodeRle(const MaskRegion& region, int64_t height, int64_t width, float threshold) {
  Runs runs;
  if (region.values.empty()) {
    runs.Add(false, height * width);
    return runs.Finish();
  }
  const int64_t above = region.y;
  const int64_t below = height - region.y - region.height;
  runs.Add(false, region.x * height);
  std::vector<uint8_t> set(static_cast<size_t>(kColumnsAtOnce * region.height));
  for (int64_t first = 0; first < region.width; first += kColumnsAtOnce) {
    const int64_t columns = std::min(kColumnsAtOnce, region.width - first);
    Threshold(region, first, columns, threshold, set);
    for (int64_t x = 0; x < columns; ++x) {
      runs.Add(false, above);
      const uint8_t* column = set.data() + x * region.height;
      for (const uint8_t *at = column, *end = column + region.height; at != end;) {
        const uint8_t* next = std::find(at, end, static_cast<uint8_t>(*at == 0 ? 1 : 0));
        runs.Add(*at != 0, next - at);
        at = next;
      }
      runs.Add(false, below);
    }
  }
  runs.Add(false, (width - region.x - region.width) * height);
  return runs.Finish();
}

// Each count except the first three is stored as its difference to the count two before it, with five bits
// per character, lowest first. Bit 5 means that more characters follow; bit 4 of the last one is the sign.
std::string CocoText(const std::vector<uint32_t>& counts) {
  constexpr int64_t kBitsPerCharacter = 5;
  constexpr int64_t kDigitMask = (1 << kBitsPerCharacter) - 1;
  constexpr int64_t kSignBit = 1 << (kBitsPerCharacter - 1);
  constexpr int64_t kContinuationBit = 1 << kBitsPerCharacter;
  constexpr char kFirstCharacter = '0';
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t value = counts[i];
    if (i > 2) value -= counts[i - 2];
    for (bool more = true; more;) {
      const int64_t digit = value & kDigitMask;
      value >>= kBitsPerCharacter;
      more = value != ((digit & kSignBit) != 0 ? -1 : 0);
      text += static_cast<char>(kFirstCharacter + digit + (more ? kContinuationBit : 0));
    }
  }
  return text;
}

int64_t AreaOf(const std::vector<uint32_t>& counts) {
  int64_t area = 0;
  for (size_t i = 1; i < counts.size(); i += 2) area += counts[i];
  return area;
}

}  // namespace saccade::models
