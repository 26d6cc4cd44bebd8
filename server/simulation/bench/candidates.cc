#include "server/simulation/bench/candidates.h"

#include <utility>

#include "server/simulation/eager_policy.h"
#include "server/simulation/scheduler_policy.h"
#include "server/simulation/serving_policy.h"
#include "server/simulation/triton_policy.h"

namespace saccade::server::simulation {
namespace {

Tuned Tune(const Experiment& experiment, double in_time, PolicyFactory (*candidate)(absl::Duration)) {
  Tuned best;
  for (const double ms : {0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0}) {
    const absl::Duration delay = absl::Milliseconds(ms);
    const double goodput = Goodput(experiment, candidate(delay), in_time);
    if (goodput > best.goodput) best = {.goodput = goodput, .delay = delay};
  }
  return best;
}

}  // namespace

BatcherOptions UntunedOptions() {
  BatcherOptions options;
  options.max_batch_size = kMaxBatchSize;
  options.max_queue_size = 1 << 16;
  options.max_queue_delay = absl::InfiniteDuration();
  return options;
}

PolicyFactory SaccadePolicy() {
  return [](const std::vector<ModelOptions>& models) {
    int cores = 0;
    for (const ModelOptions& model : models) cores += model.instances;
    return std::make_unique<SchedulerPolicy>(SchedulerOptions{.cores = cores},
                                             std::vector<BatcherOptions>(models.size(), UntunedOptions()),
                                             models);
  };
}

PolicyFactory WeightedPolicy(int cores, std::vector<double> weights) {
  return [cores, weights = std::move(weights)](const std::vector<ModelOptions>& models) {
    std::vector<BatcherOptions> batchers(models.size(), UntunedOptions());
    for (size_t i = 0; i < weights.size(); ++i) batchers[i].weight = weights[i];
    return std::make_unique<SchedulerPolicy>(SchedulerOptions{.cores = cores}, batchers, models);
  };
}

PolicyFactory EagerCandidate() {
  return [](const std::vector<ModelOptions>& models) {
    return std::make_unique<EagerPolicy>(kMaxBatchSize, models);
  };
}

PolicyFactory TritonCandidate(absl::Duration max_queue_delay) {
  return [max_queue_delay](const std::vector<ModelOptions>& models) {
    return std::make_unique<TritonPolicy>(
        TritonOptions{.max_batch_size = kMaxBatchSize, .max_queue_delay = max_queue_delay}, models);
  };
}

PolicyFactory ServingCandidate(absl::Duration batch_timeout) {
  return [batch_timeout](const std::vector<ModelOptions>& models) {
    return std::make_unique<ServingPolicy>(
        ServingOptions{.max_batch_size = kMaxBatchSize, .batch_timeout = batch_timeout}, models);
  };
}

Tuned TuneTriton(const Experiment& experiment, double in_time) {
  return Tune(experiment, in_time, TritonCandidate);
}

Tuned TuneServing(const Experiment& experiment, double in_time) {
  return Tune(experiment, in_time, ServingCandidate);
}

}  // namespace saccade::server::simulation
