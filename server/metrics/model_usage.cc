#include "server/metrics/model_usage.h"

#include <algorithm>
#include <iterator>

namespace saccade::server {

void UsageDetails::AddFailure(absl::Duration took) {
  const absl::MutexLock lock(&mutex_);
  failed_ += std::max(absl::ZeroDuration(), took);
}

void UsageDetails::AddComputed(absl::Time ended) {
  const absl::MutexLock lock(&mutex_);
  last_ = std::max(last_, ended);
}

void UsageDetails::AddPass(int64_t size, absl::Duration took) {
  const absl::MutexLock lock(&mutex_);
  Spent& spent = passes_[size];
  ++spent.count;
  spent.time += std::max(absl::ZeroDuration(), took);
}

void UsageDetails::Fill(ModelUsage& usage) const {
  const absl::MutexLock lock(&mutex_);
  usage.fail.time = failed_;
  usage.last = last_;
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
