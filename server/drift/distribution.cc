#include "server/drift/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace saccade::server {
namespace {

// Counts added to each bin of the smaller distribution, and the same share to each bin of the other: so an
// empty bin has a logarithm, a single value in it means little, and equal shares remain equal.
constexpr double kPrior = 0.5;

std::optional<double> StabilityIndex(absl::Span<const double> then, absl::Span<const double> now) {
  const double then_sum = std::accumulate(then.begin(), then.end(), 0.0);
  const double now_sum = std::accumulate(now.begin(), now.end(), 0.0);
  if (then_sum <= 0 || now_sum <= 0) return std::nullopt;
  const double prior = kPrior / std::min(then_sum, now_sum);
  const double whole = 1 + prior * static_cast<double>(then.size());
  double index = 0;
  for (size_t bin = 0; bin < then.size(); ++bin) {
    const double before = (then[bin] / then_sum + prior) / whole;
    const double after = (now[bin] / now_sum + prior) / whole;
    index += (after - before) * std::log(after / before);
  }
  return index;
}

double CountOf(const Distribution& distribution, int64_t label) {
  const auto found = distribution.classes.find(label);
  return found == distribution.classes.end() ? 0 : found->second;
}

double Sum(const std::map<int64_t, double>& classes) {
  return std::accumulate(classes.begin(), classes.end(), 0.0,
                         [](double sum, const auto& entry) { return sum + entry.second; });
}

}  // namespace

void Distribution::Add(const DriftSample& sample) {
  ++items;
  for (size_t feature = 0; feature < kFeatures; ++feature) {
    if (sample.values[feature])
      ++bins[feature][BinOf(static_cast<Feature>(feature), *sample.values[feature])];
  }
  for (const auto& [label, share] : sample.classes) {
    const bool known = classes.size() < kMaxDriftClasses || classes.contains(label);
    classes[known ? label : kOtherClasses] += share;
  }
}

void Distribution::Add(const Distribution& other) {
  items += other.items;
  for (size_t feature = 0; feature < kFeatures; ++feature) {
    for (size_t bin = 0; bin < kDriftBins; ++bin) bins[feature][bin] += other.bins[feature][bin];
  }
  for (const auto& [label, share] : other.classes) classes[label] += share;
}

std::optional<double> DriftOf(Feature feature, const Distribution& then, const Distribution& now) {
  const auto index = static_cast<size_t>(feature);
  return StabilityIndex(then.bins[index], now.bins[index]);
}

std::optional<double> DriftOfClasses(const Distribution& then, const Distribution& now) {
  std::vector<std::pair<double, int64_t>> frequent;
  for (const auto& [label, count] : then.classes) frequent.emplace_back(-count, label);
  std::sort(frequent.begin(), frequent.end());
  frequent.resize(std::min(frequent.size(), kDriftBins - 1));
  std::vector<double> before;
  std::vector<double> after;
  for (const auto& [count, label] : frequent) {
    before.push_back(-count);
    after.push_back(CountOf(now, label));
  }
  before.push_back(std::max(0.0, Sum(then.classes) - std::accumulate(before.begin(), before.end(), 0.0)));
  after.push_back(std::max(0.0, Sum(now.classes) - std::accumulate(after.begin(), after.end(), 0.0)));
  return StabilityIndex(before, after);
}

}  // namespace saccade::server
