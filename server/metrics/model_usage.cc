#include "server/metrics/model_usage.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace saccade::server {

void DurationHistogram::Add(absl::Duration took) {
  const double ratio = absl::ToDoubleSeconds(took) / kMinSeconds;
  const double bucket = ratio <= 1 ? 0 : std::ceil(kPerDoubling * std::log2(ratio));
  counts_[static_cast<size_t>(std::min(bucket, static_cast<double>(kBounds)))].fetch_add(
      1, std::memory_order_relaxed);
}

std::vector<std::pair<double, uint64_t>> DurationHistogram::Cumulative() const {
  std::vector<std::pair<double, uint64_t>> all;
  uint64_t sum = 0;
  for (size_t i = 0; i <= kBounds; ++i) {
    sum += counts_[i].load(std::memory_order_relaxed);
    all.emplace_back(i == kBounds ? std::numeric_limits<double>::infinity()
                                  : kMinSeconds * std::exp2(static_cast<double>(i) / kPerDoubling),
                     sum);
  }
  return all;
}

void UsageDetails::AddFailure(absl::Duration took) {
  const absl::MutexLock lock(&mutex_);
  failed_ += std::max(absl::ZeroDuration(), took);
}

void UsageDetails::AddComputed(absl::Time ended, bool answered) {
  const absl::MutexLock lock(&mutex_);
  if (answered) ++computed_;
  last_ = std::max(last_, ended);
}

void UsageDetails::AddPass(int64_t size, absl::Duration took) {
  const absl::MutexLock lock(&mutex_);
  Spent& spent = passes_[size];
  ++spent.count;
  spent.time += std::max(absl::ZeroDuration(), took);
}

void UsageDetails::Fill(ModelUsage& usage) const {
  usage.answered_seconds = answered_.Cumulative();
  const absl::MutexLock lock(&mutex_);
  usage.fail.time = failed_;
  usage.last = last_;
  for (Spent* const stage : {&usage.queue, &usage.input, &usage.infer, &usage.output})
    stage->count = computed_;
  usage.by_batch_size.assign(passes_.begin(), passes_.end());
}

std::shared_ptr<UsageDetails> UsagePool::Get(const std::string& model, const std::string& version) {
  const absl::MutexLock lock(&mutex_);
  for (auto it = details_.begin(); it != details_.end();) {
    it = it->second.expired() ? details_.erase(it) : std::next(it);
  }
  std::weak_ptr<UsageDetails>& kept = details_[{model, version}];
  auto details = kept.lock();
  if (details == nullptr) {
    details = std::make_shared<UsageDetails>();
    kept = details;
  }
  return details;
}

}  // namespace saccade::server
