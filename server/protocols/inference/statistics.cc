#include "server/protocols/inference/statistics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

void ToMessage(uint64_t count, absl::Duration time, inference::StatisticDuration* message) {
  message->set_count(count);
  message->set_ns(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(time))));
}

void ToMessage(const Spent& spent, inference::StatisticDuration* message) {
  ToMessage(spent.count, spent.time, message);
}

void ToMessage(const ModelStatistics& statistics, inference::InferStatistics* message) {
  const ModelUsage& usage = statistics.usage;
  ToMessage(usage.success, message->mutable_success());
  ToMessage(usage.fail, message->mutable_fail());
  ToMessage(usage.queue, message->mutable_queue());
  ToMessage(usage.input, message->mutable_compute_input());
  ToMessage(usage.infer, message->mutable_compute_infer());
  ToMessage(usage.output, message->mutable_compute_output());
  const CacheTotals& cache = statistics.cache;
  ToMessage(static_cast<uint64_t>(cache.hits), cache.hit_time, message->mutable_cache_hit());
  ToMessage(static_cast<uint64_t>(cache.misses), cache.miss_time, message->mutable_cache_miss());
}

void ToMessage(const ModelStatistics& statistics, inference::ModelStatistics* message) {
  const ModelUsage& usage = statistics.usage;
  message->set_name(statistics.model);
  message->set_version(absl::StrCat(statistics.version));
  message->set_inference_count(usage.pictures);
  message->set_execution_count(usage.passes);
  if (usage.last != absl::InfinitePast()) {
    message->set_last_inference(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMillis(usage.last))));
  }
  ToMessage(statistics, message->mutable_inference_stats());
  for (const auto& [size, spent] : usage.by_batch_size) {
    inference::InferBatchStatistics& batch = *message->add_batch_stats();
    batch.set_batch_size(static_cast<uint64_t>(size));
    ToMessage(spent, batch.mutable_compute_infer());
    // The times for decoding and encoding belong to requests, not to batches, so only the counts are set.
    batch.mutable_compute_input()->set_count(spent.count);
    batch.mutable_compute_output()->set_count(spent.count);
  }
}

}  // namespace

void ToMessage(absl::Span<const ModelStatistics> statistics, inference::ModelStatisticsResponse* message) {
  for (const ModelStatistics& model : statistics) ToMessage(model, message->add_model_stats());
}

}  // namespace saccade::server
