#include "server/simulation/sizing/estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "server/simulation/scheduler_policy.h"
#include "server/simulation/simulation.h"

namespace saccade::server::simulation {
namespace {

// The share of EstimateOptions::requests at the beginning that is not counted, because the queue begins empty
// and the scheduler still learns.
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

// The requests that one replica gets of a recording.
struct Replay {
  std::shared_ptr<const std::vector<Arrival>> arrivals;
  // Index of the first arrival that is counted.
  size_t counted = 0;
  // Share of the recording that the replicas get.
  double share = 1;
};

// The index at which the `window` consecutive requests begin that arrived in the shortest time. It is found
// to a thousandth of the window. REQUIRES: 0 < window <= recorded.size().
size_t BusiestStretch(const std::vector<Arrival>& recorded, size_t window) {
  const size_t step = std::max<size_t>(1, window / 1000);
  const auto length = [&](size_t begin) { return recorded[begin + window - 1].at - recorded[begin].at; };
  size_t best = 0;
  for (size_t begin = step; begin + window <= recorded.size(); begin += step) {
    if (length(begin) < length(best)) best = begin;
  }
  return best;
}

// The recorded requests that one of `replicas` gets, at the wished rate. A load balancer sends every replica
// its turn. The counted requests are whole rounds of the recording, so that each part of it has its own
// weight. A recording that is played only once has no warm-up, because that would drop a part of it.
Replay ReplayOf(const Traffic& traffic, int replicas, const EstimateOptions& options) {
  const std::vector<Arrival>& recorded = *traffic.recorded;
  const auto size = static_cast<int64_t>(recorded.size());
  const auto count = static_cast<double>(size);
  const int64_t share = (size + replicas - 1) / replicas;
  auto warm_up = static_cast<int64_t>(kWarmUp * static_cast<double>(options.requests));
  const int64_t rounds = std::max<int64_t>(1, (options.requests - warm_up + share - 1) / share);
  if (rounds == 1) warm_up = 0;
  int64_t counted = (rounds * size + replicas - 1) / replicas;
  int64_t begin = 0;
  Replay replay;
  if (share > options.max_recorded) {
    counted = options.max_recorded;
    const int64_t window = counted * replicas;
    begin = static_cast<int64_t>(BusiestStretch(recorded, static_cast<size_t>(window)));
    replay.share = static_cast<double>(window) / count;
  }
  const Nanos first = recorded[static_cast<size_t>(begin)].at;
  // The gap behind the last request is as long as the mean one.
  const Nanos length = (recorded.back().at - recorded.front().at) * (count / (count - 1));
  const double faster = count / traffic.rate * 1e9 / length.count();
  auto made = std::make_shared<std::vector<Arrival>>();
  made->reserve(static_cast<size_t>(warm_up + counted));
  for (int64_t turn = 0; turn < warm_up + counted; ++turn) {
    const int64_t number = begin + turn * replicas;
    const int64_t round = number / size;
    Arrival arrival = recorded[static_cast<size_t>(number % size)];
    arrival.at = ((arrival.at - first + length * static_cast<double>(round)) * faster).Whole();
    made->push_back(arrival);
  }
  replay.arrivals = std::move(made);
  replay.counted = static_cast<size_t>(warm_up);
  return replay;
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
  Estimate estimate;
  run.until = FromSeconds(static_cast<double>(options.requests) / rate);
  run.ledger.from = (run.until * kWarmUp).Whole();
  if (traffic.recorded != nullptr) {
    const Replay replay = ReplayOf(traffic, configuration.replicas, options);
    stream.recorded = replay.arrivals;
    run.until = replay.arrivals->back().at + Nanos(1);
    run.ledger.from = (*replay.arrivals)[replay.counted].at;
    estimate.replayed = replay.share;
  }
  run.ledger.to = run.until;
  run.streams = {stream};
  run.seed = options.seed;

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
