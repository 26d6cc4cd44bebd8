#include "server/metrics/exemplars.h"

#include <algorithm>
#include <utility>

namespace saccade::server {

void Exemplars::Keep(const Exemplar& exemplar) {
  // Chooses the same bucket as the histogram itself.
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), exemplar.value) - bounds_.begin();
  const absl::MutexLock lock(&mutex_);
  std::optional<Exemplar>& latest = latest_[static_cast<size_t>(bucket)];
  // Threads may arrive out of order, and Prometheus rejects an exemplar that is older than the one it has.
  if (!latest || latest->at <= exemplar.at) latest = exemplar;
}

BucketExemplars Exemplars::Latest() const {
  const absl::MutexLock lock(&mutex_);
  return latest_;
}

std::shared_ptr<Exemplars> ExemplarPool::Get(const prometheus::Labels& labels) {
  MetricLabels key;
  for (const auto& [name, value] : labels) key.push_back({name, value});
  const absl::MutexLock lock(&mutex_);
  std::erase_if(exemplars_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Exemplars>& kept = exemplars_[key];
  auto exemplars = kept.lock();
  if (exemplars == nullptr) {
    exemplars = std::make_shared<Exemplars>(bounds_);
    kept = exemplars;
  }
  return exemplars;
}

ExemplarsByLabels ExemplarPool::Latest() const {
  ExemplarsByLabels latest;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [labels, kept] : exemplars_) {
    if (const auto exemplars = kept.lock()) latest.emplace(labels, exemplars->Latest());
  }
  return latest;
}

}  // namespace saccade::server
