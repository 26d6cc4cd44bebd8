#include "models/layers/value_range.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/histc.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace saccade::models {
namespace {

constexpr int64_t kBins = 2048;
constexpr double kMaxByte = 255;
constexpr double kBeyond = 1e-4;
// Ranges tried by kMse, as shares of the whole one.
constexpr double kNarrowest = 0.2;
constexpr double kStep = 0.02;

Grid GridBetween(double low, double high) {
  // Maps of zeros alone are exact with every scale.
  if (high <= low) return {1, 0};
  const double scale = (high - low) / kMaxByte;
  return {scale, std::clamp<int64_t>(std::llround(-low / scale), 0, 255)};
}

}  // namespace

const char* RangeMethodName(RangeMethod method) {
  switch (method) {
    case RangeMethod::kMinMax:
      return "min-max";
    case RangeMethod::kPercentile:
      return "percentile";
    case RangeMethod::kMse:
      break;
  }
  return "mse";
}

void ValueRange::Widen(const at::Tensor& x) {
  if (x.numel() == 0) return;
  const auto [low, high] = at::aminmax(x);
  const auto smallest = low.item<double>();
  const auto largest = high.item<double>();
  // A NaN anywhere is both.
  if (!std::isfinite(smallest) || !std::isfinite(largest))
    throw std::runtime_error("a map holds a value that is not finite");
  low_ = std::min(low_, smallest);
  high_ = std::max(high_, largest);
  seen_ = true;
}

void ValueRange::Count(const at::Tensor& x) {
  if (x.numel() == 0 || high_ <= low_) return;
  counts_.resize(kBins);
  const at::Tensor counts = at::histc(x.to(at::kFloat), kBins, low_, high_).to(at::kDouble).contiguous();
  const auto* count = counts.const_data_ptr<double>();
  for (double& sum : counts_) sum += *count++;
}

double ValueRange::Error(const Grid& grid) const {
  const double width = (high_ - low_) / kBins;
  double error = 0;
  for (int64_t bin = 0; bin < kBins; ++bin) {
    const double value = low_ + (static_cast<double>(bin) + 0.5) * width;
    const double byte =
        std::clamp(std::nearbyint(value / grid.scale) + static_cast<double>(grid.zero), 0.0, kMaxByte);
    const double off = value - grid.scale * (byte - static_cast<double>(grid.zero));
    error += counts_[static_cast<size_t>(bin)] * off * off;
  }
  return error;
}

Grid ValueRange::Best(RangeMethod method) const {
  const Grid whole = GridBetween(low_, high_);
  if (method == RangeMethod::kMinMax || counts_.empty()) return whole;
  if (method == RangeMethod::kPercentile) {
    const double width = (high_ - low_) / kBins;
    const double allowed = kBeyond * std::accumulate(counts_.begin(), counts_.end(), 0.0);
    double low = low_;
    double high = high_;
    double beyond = 0;
    for (size_t bin = 0; bin < counts_.size() && (beyond += counts_[bin]) <= allowed; ++bin) low += width;
    beyond = 0;
    for (size_t bin = counts_.size(); bin-- > 0 && (beyond += counts_[bin]) <= allowed;) high -= width;
    return GridBetween(std::min(low, 0.0), std::max(high, 0.0));
  }
  Grid best = whole;
  double smallest = Error(whole);
  for (double share = 1 - kStep; share > kNarrowest; share -= kStep) {
    const Grid grid = GridBetween(share * low_, share * high_);
    if (const double error = Error(grid); error < smallest)
      std::tie(best, smallest) = std::tuple(grid, error);
  }
  return best;
}

}  // namespace saccade::models
