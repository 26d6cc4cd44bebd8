#include "server/drift/drift_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "absl/hash/hash.h"

namespace saccade::server {
namespace {

constexpr int64_t kSamplesOfASide = 64;

struct Scale {
  std::string_view name;
  double from;
  double to;
};

constexpr std::array<Scale, kFeatures> kScales = {{{"pixels", 8, 24},
                                                   {"brightness", 0, 1},
                                                   {"contrast", 0, 0.5},
                                                   {"sharpness", -10, -2},
                                                   {"score", 0, 1},
                                                   {"found", 0, 16}}};

const Scale& ScaleOf(Feature feature) { return kScales[static_cast<size_t>(feature)]; }

// The first three channels of an item, before they were normalised.
class Pixels {
 public:
  Pixels(const models::ImageInput& input, const models::Size& bucket, std::string_view bytes)
      : input_(input), bucket_(bucket), bytes_(bytes) {}

  // The mean of the channels, 0 to 1.
  double At(int64_t y, int64_t x) const {
    double sum = 0;
    for (int64_t channel = 0; channel < 3; ++channel) {
      float value = 0;
      std::memcpy(&value, bytes_.data() + sizeof value * ((channel * bucket_.height + y) * bucket_.width + x),
                  sizeof value);
      sum += value * input_.std[channel] + input_.mean[channel];
    }
    return sum / 3;
  }

 private:
  const models::ImageInput& input_;
  const models::Size bucket_;
  const std::string_view bytes_;
};

struct Moments {
  int64_t count = 0;
  double sum = 0;
  double squares = 0;
  // Sum of the absolute differences from the mean of the four neighbours.
  double edges = 0;
  uint64_t fingerprint = 0;

  void Add(const Pixels& pixels, int64_t y, int64_t x) {
    const double value = pixels.At(y, x);
    const double around =
        (pixels.At(y - 1, x) + pixels.At(y + 1, x) + pixels.At(y, x - 1) + pixels.At(y, x + 1)) / 4;
    ++count;
    sum += value;
    squares += value * value;
    edges += std::abs(value - around);
    fingerprint = absl::HashOf(fingerprint, value);
  }
};

template <typename Items>
void SampleItems(const Items& items, DriftSample& sample) {
  sample.Set(Feature::kFound, static_cast<double>(items.size()));
  sample.Set(Feature::kScore, items.empty() ? 0 : items.front().score);
  for (const auto& item : items) sample.classes.emplace_back(item.label, 1);
}

double ProbabilityOf(float top, const models::Classification& answer) {
  switch (answer.function) {
    case models::LogitFunction::kSigmoid:
      return 1 / (1 + std::exp(-top));
    case models::LogitFunction::kExp:
      return std::exp(top);
    case models::LogitFunction::kSoftmax:
      break;
  }
  const double sum =
      std::accumulate(answer.logits.begin(), answer.logits.end(), 0.0,
                      [top](double so_far, float logit) { return so_far + std::exp(logit - top); });
  return 1 / sum;
}

struct SampleResult {
  DriftSample& sample;

  void operator()(const models::Classification& answer) const {
    if (answer.logits.empty()) return;
    const auto top = std::max_element(answer.logits.begin(), answer.logits.end());
    sample.Set(Feature::kScore, ProbabilityOf(*top, answer));
    sample.classes.emplace_back(top - answer.logits.begin(), 1);
  }
  void operator()(const models::Detections& answer) const { SampleItems(answer.items, sample); }
  void operator()(const models::Actions& answer) const { SampleItems(answer.items, sample); }
  void operator()(const models::Segmentation& answer) const {
    const double pixels = static_cast<double>(std::max<int64_t>(1, answer.height * answer.width));
    for (size_t label = 0; label < answer.areas.size(); ++label) {
      if (answer.areas[label] > 0)
        sample.classes.emplace_back(label, static_cast<double>(answer.areas[label]) / pixels);
    }
  }
  // Their values have no scale that all models share.
  void operator()(const models::Disparity& /*answer*/) const {}
  void operator()(const models::Restoration& /*answer*/) const {}
  void operator()(const models::Embedding& /*answer*/) const {}
  void operator()(const models::Failure& /*answer*/) const {}
};

}  // namespace

std::string_view NameOf(Feature feature) { return ScaleOf(feature).name; }

size_t BinOf(Feature feature, double value) {
  const Scale& scale = ScaleOf(feature);
  const double bin = (value - scale.from) / (scale.to - scale.from) * kDriftBins;
  // The negation also takes NaN.
  if (!(bin > 0)) return 0;
  return std::min(kDriftBins - 1, static_cast<size_t>(std::min<double>(bin, kDriftBins)));
}

void SampleInput(const models::ImageInput& input, const models::Placement& placement,
                 const BytePieces& pixels, DriftSample& sample) {
  const models::Size& sent = placement.sent;
  sample.Set(Feature::kPixels, std::log2(static_cast<double>(sent.height) * static_cast<double>(sent.width)));
  const int64_t bytes =
      3 * placement.bucket.height * placement.bucket.width * static_cast<int64_t>(sizeof(float));
  if (input.medium == models::Medium::kVolume || pixels.pieces().size() != 1 ||
      static_cast<int64_t>(pixels.size()) < bytes)
    return;
  const models::Size& shown = placement.scaled;
  if (shown.height < 3 || shown.width < 3) return;
  const Pixels values(input, placement.bucket, pixels.pieces().front());
  const int64_t rows = std::min(kSamplesOfASide, shown.height - 2);
  const int64_t columns = std::min(kSamplesOfASide, shown.width - 2);
  Moments moments;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t y = placement.top + 1 + row * (shown.height - 2) / rows;
    for (int64_t column = 0; column < columns; ++column)
      moments.Add(values, y, placement.left + 1 + column * (shown.width - 2) / columns);
  }
  const auto count = static_cast<double>(moments.count);
  const double mean = moments.sum / count;
  sample.Set(Feature::kBrightness, mean);
  sample.Set(Feature::kContrast, std::sqrt(std::max(0.0, moments.squares / count - mean * mean)));
  sample.Set(Feature::kSharpness, std::log2(std::max(1e-6, moments.edges / count)));
  sample.fingerprint = moments.fingerprint;
}

void SampleAnswer(const models::TaskResult& result, DriftSample& sample) {
  std::visit(SampleResult{sample}, result);
}

}  // namespace saccade::server
