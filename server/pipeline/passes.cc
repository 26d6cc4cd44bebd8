#include "server/pipeline/passes.h"

#include <utility>

namespace saccade::server {

Shares SharesOf(std::vector<std::unique_ptr<BatchTask>> batch) {
  Shares shares;
  shares.reserve(batch.size());
  for (auto& task : batch) shares.emplace_back(static_cast<CallShare*>(task.release()));
  return shares;
}

bool ComputeShares(Shares shares, Clock* clock, ModelMetrics* metrics, const RunPass& run) {
  if (shares.empty()) return false;
  const absl::Time started = clock->Now();
  auto answers = run(shares);
  const absl::Time ended = clock->Now();
  if (answers.ok()) {
    int64_t size = 0;
    for (const auto& share : shares) size += share->size();
    metrics->RecordBatch(size, ended - started);
    for (size_t i = 0; i < shares.size(); ++i) {
      shares[i]->Answer(std::move((*answers)[i]), {size, started, ended});
      shares[i].reset();
    }
    return true;
  }
  if (shares.size() == 1) {
    shares[0]->FailComputed(answers.status());
    return false;
  }
  for (auto& share : shares) {
    Shares alone;
    alone.push_back(std::move(share));
    ComputeShares(std::move(alone), clock, metrics, run);
  }
  return false;
}

}  // namespace saccade::server
