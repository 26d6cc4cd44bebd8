#include "client/load/stage_summary.h"

#include <algorithm>
#include <utility>

namespace saccade::client {
namespace {

// Differences of the daemon's and the client's measurements can be slightly negative.
absl::Duration NotNegative(absl::Duration time) { return std::max(time, absl::ZeroDuration()); }

}  // namespace

StageSummary SummariseStages(const LoadResult& result) {
  StageSummary summary;
  summary.requests = result.samples.size();
  summary.not_sent = result.not_sent;
  summary.elapsed = result.elapsed;
  LoadStage latency{"latency", "from when the request was due to its answer", {}};
  LoadStage held{"held", "between when it was due and when it was sent", {}};
  LoadStage network{"network", "transport, and message handling on both sides", {}};
  LoadStage decode{"decode", "decoding the input", {}};
  LoadStage queue{"queue", "waiting for a batch and an instance", {}};
  LoadStage infer{"infer", "the forward pass", {}};
  LoadStage encode{"encode", "encoding the response", {}};
  LoadStage rest{"rest", "the daemon's remaining time", {}};
  double batches = 0;
  for (const LoadSample& sample : result.samples) {
    if (sample.held() > absl::Milliseconds(1)) ++(sample.waited ? summary.held : summary.woken_late);
    if (!sample.status.ok()) {
      CountFailure(sample.status, summary.failures);
      ++summary.failed;
      continue;
    }
    const Timings& timings = sample.timings;
    latency.times.push_back(sample.latency());
    held.times.push_back(NotNegative(sample.held()));
    network.times.push_back(NotNegative(sample.latency() - sample.held() - timings.total));
    decode.times.push_back(timings.decode);
    queue.times.push_back(timings.queue);
    infer.times.push_back(timings.infer);
    encode.times.push_back(timings.encode);
    rest.times.push_back(
        NotNegative(timings.total - timings.decode - timings.queue - timings.infer - timings.encode));
    ++summary.batch_sizes[sample.batch_size];
    batches += sample.batch_size;
  }
  summary.answers = latency.times.size();
  const auto answers = static_cast<double>(summary.answers);
  if (summary.answers > 0) summary.mean_batch_size = batches / answers;
  if (result.elapsed > absl::ZeroDuration())
    summary.per_second = answers / absl::ToDoubleSeconds(result.elapsed);
  for (LoadStage* stage : {&latency, &held, &network, &decode, &queue, &infer, &encode, &rest}) {
    stage->latency = Summarise(stage->times);
    summary.stages.push_back(std::move(*stage));
  }
  return summary;
}

}  // namespace saccade::client
