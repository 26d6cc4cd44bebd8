#include "server/simulation/sizing/estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "server/simulation/scheduler_policy.h"
#include "server/simulation/simulation.h"

namespace saccade::server::simulation {
namespace {

// The part of the requests at the beginning that is not counted, because the queue begins empty and the
// scheduler still learns.
constexpr double kWarmUp = 0.1;

// Counts why requests were rejected, how long the others took, and the policy's demand.
class Counter final : public Observer {
 public:
  Counter(Nanos from, Nanos within) : from_(from), within_(within) {}

  void OnRefused(const SimTask& task, const absl::Status& why, Nanos /*now*/) override {
    if (task.entry().arrival < from_) return;
    ++(absl::StrContains(why.message(), "queue is full") ? queue_full_ : too_late_);
  }
  void OnStart(const Policy::Batch& batch, Nanos now) override {
    if (now < from_) return;
    ++batches_;
    items_ += static_cast<int64_t>(batch.tasks.size());
  }
  void OnEnd(const SimTask& task, Outcome outcome, Nanos now) override {
    if (task.entry().arrival < from_) return;
    if (outcome == Outcome::kShed) ++too_late_;
    const bool answered = outcome == Outcome::kInTime || outcome == Outcome::kLate;
    if (answered && now - task.entry().arrival <= within_) ++within_count_;
  }

  int64_t queue_full() const { return queue_full_; }
  int64_t too_late() const { return too_late_; }
  int64_t within() const { return within_count_; }
  double mean_batch() const {
    return batches_ == 0 ? 0 : static_cast<double>(items_) / static_cast<double>(batches_);
  }

 private:
  const Nanos from_;
  const Nanos within_;
  int64_t queue_full_ = 0;
  int64_t too_late_ = 0;
  int64_t within_count_ = 0;
  int64_t batches_ = 0;
  int64_t items_ = 0;
};

// The recorded requests that one of `replicas` gets, at the wished rate, repeated until there are `requests`.
// A load balancer sends every replica its turn.
std::shared_ptr<const std::vector<Arrival>> Replay(const Traffic& traffic, int replicas, int64_t requests) {
  const std::vector<Arrival>& recorded = *traffic.recorded;
  const auto count = static_cast<double>(recorded.size());
  const Nanos first = recorded.front().at;
  // The gap behind the last request is as long as the mean one.
  const Nanos length = (recorded.back().at - first) * (count / (count - 1));
  const double faster = count / traffic.rate * 1e9 / length.count();
  auto made = std::make_shared<std::vector<Arrival>>();
  for (int64_t number = 0; static_cast<int64_t>(made->size()) < requests; number += replicas) {
    const int64_t round = number / static_cast<int64_t>(recorded.size());
    Arrival arrival = recorded[static_cast<size_t>(number % static_cast<int64_t>(recorded.size()))];
    arrival.at = ((arrival.at - first + length * static_cast<double>(round)) * faster).Whole();
    made->push_back(arrival);
  }
  return made;
}

}  // namespace

Estimate EstimateOf(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
                    const LatencyGoal& goal, const EstimateOptions& options) {
  const double rate = traffic.rate / configuration.replicas;
  ModelOptions computed;
  computed.instances = configuration.instances;
  computed.shapes.resize(model.passes.size());
  computed.measured = model.passes;
  BatcherOptions batcher;
  batcher.max_batch_size = configuration.max_batch_size;
  batcher.default_policy.max_queue_size = configuration.max_queue_size;
  // As the daemon reads it from a queue policy, which counts requests.
  batcher.max_queue_size = configuration.max_batch_size * configuration.max_queue_size;
  batcher.threads = model.threads;

  StreamOptions stream;
  stream.rate = rate;
  stream.cv = traffic.cv;
  stream.buckets = traffic.mix;
  stream.deadline = goal.deadline == kNever ? kNever : std::max(Nanos(1), goal.deadline - model.outside);
  Simulation::Options run;
  run.until = FromSeconds(static_cast<double>(options.requests) / rate);
  if (traffic.recorded != nullptr) {
    stream.recorded = Replay(traffic, configuration.replicas, options.requests);
    run.until = stream.recorded->back().at + Nanos(1);
  }
  run.streams = {stream};
  run.seed = options.seed;
  run.ledger.from = (run.until * kWarmUp).Whole();
  run.ledger.to = run.until;

  const int cores = model.threads * configuration.instances;
  auto policy = std::make_unique<SchedulerPolicy>(SchedulerOptions{.cores = cores},
                                                  std::vector<BatcherOptions>{batcher},
                                                  std::vector<ModelOptions>{computed});
  SchedulerPolicy* const scheduler = policy.get();
  SimDevices devices({computed}, model.deviation, options.seed);
  Counter counter(run.ledger.from, goal.p99 - model.outside);
  Simulation simulation(run, &devices, std::move(policy), nullptr, &counter);
  Nanos demand;
  simulation.At(run.ledger.from, [scheduler](Nanos) { scheduler->TakeDemand(); });
  simulation.At(run.until - Nanos(1), [&](Nanos) { demand = Nanos(scheduler->TakeDemand()); });
  simulation.Run();

  const Ledger& ledger = simulation.ledger();
  const Nanos span = run.ledger.to - run.ledger.from;
  const auto all = static_cast<double>(ledger.all().total());
  const auto share = [all](int64_t count) { return all == 0 ? 0 : static_cast<double>(count) / all; };
  Estimate estimate;
  estimate.requests = ledger.all().total();
  estimate.answered = share(ledger.latency().count());
  estimate.queue_full = share(counter.queue_full());
  estimate.too_late = share(counter.too_late());
  estimate.goodput = static_cast<double>(counter.within()) * 1e9 / span.count() * configuration.replicas;
  estimate.busy = simulation.busy(0) / span / configuration.instances;
  estimate.demand = demand / span;
  estimate.mean_batch = counter.mean_batch();
  if (ledger.latency().count() > 0) estimate.p50 = ledger.latency().Percentile(0.5) + model.outside;
  const double quantile = estimate.answered > 0 ? 0.99 / estimate.answered : 2;
  estimate.p99 = quantile > 1 ? kNever : ledger.latency().Percentile(quantile) + model.outside;
  return estimate;
}

}  // namespace saccade::server::simulation
