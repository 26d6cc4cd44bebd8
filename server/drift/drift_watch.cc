#include "server/drift/drift_watch.h"

#include <utility>

namespace saccade::server {

namespace {

constexpr char kClass[] = "class";

}  // namespace

std::vector<std::string> DriftFeatures() {
  std::vector<std::string> names;
  for (size_t feature = 0; feature < kFeatures; ++feature)
    names.emplace_back(NameOf(static_cast<Feature>(feature)));
  names.emplace_back(kClass);
  return names;
}

DriftWatch::DriftWatch(int64_t window, std::optional<Distribution> reference)
    : window_(window),
      from_file_(reference.has_value()),
      complete_(reference.has_value()),
      reference_(reference ? *std::move(reference) : Distribution()),
      remembered_(kRemembered) {}

bool DriftWatch::Wants(absl::Time now) {
  constexpr int64_t kBetween = 1'000'000'000 / kLooksPerSecond;
  const int64_t at = absl::ToUnixNanos(now);
  int64_t next = next_look_.load(std::memory_order_relaxed);
  return at >= next && next_look_.compare_exchange_strong(next, at + kBetween, std::memory_order_relaxed);
}

bool DriftWatch::IsRepeated(uint64_t fingerprint) {
  if (fingerprint == 0) return false;
  return std::exchange(remembered_[fingerprint % kRemembered], fingerprint) == fingerprint;
}

void DriftWatch::Add(const DriftSample& sample) {
  absl::MutexLock lock(&mutex_);
  ++seen_;
  if (IsRepeated(sample.fingerprint)) ++repeated_;
  if (!complete_) {
    reference_.Add(sample);
    complete_ = reference_.items >= window_;
    return;
  }
  filling_.Add(sample);
  if (filling_.items < window_ / 2) return;
  filled_ = std::exchange(filling_, Distribution());
}

DriftReport DriftWatch::Report() const {
  DriftReport report{.window = window_, .reference_from_file = from_file_};
  {
    absl::MutexLock lock(&mutex_);
    report.seen = seen_;
    report.repeated = repeated_;
    report.reference_complete = complete_;
    report.reference = reference_;
    report.recent = filled_;
    report.recent.Add(filling_);
  }
  if (report.recent.items < window_ / 2) return report;
  for (size_t index = 0; index < kFeatures; ++index) {
    const auto feature = static_cast<Feature>(index);
    if (const auto drift = DriftOf(feature, report.reference, report.recent))
      report.drift.emplace_back(NameOf(feature), *drift);
  }
  if (const auto drift = DriftOfClasses(report.reference, report.recent))
    report.drift.emplace_back(kClass, *drift);
  return report;
}

}  // namespace saccade::server
