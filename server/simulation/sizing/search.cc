#include "server/simulation/sizing/search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace saccade::server::simulation {
namespace {

// Share of the machine's cores that passes and decoding may use together in the mean. With more, threads wait
// for cores, which the simulation does not model.
constexpr double kMaxCoreUse = 0.95;
// Share of the time from which on instances count as busy all the time.
constexpr double kSaturated = 0.9;
// Ratio of Breaking::breaks to Breaking::holds. A rate that exceeds by more what the instances compute at
// most does not hold, even if the queue is not full yet when the simulation ends.
constexpr double kRateStep = 1.02;

// Mean time of a pass over `size` items.
Nanos MeanPass(const MeasuredModel& model, const std::vector<double>& mix, int64_t size) {
  Nanos mean;
  for (size_t bucket = 0; bucket < mix.size(); ++bucket)
    mean += mix[bucket] * model.passes[bucket][static_cast<size_t>(size - 1)];
  return mean;
}

// 1, 2, 3, 4, 6, 8, 12, ... up to the measured maximum: the sizes between them change little.
std::vector<int64_t> BatchBounds(int64_t max) {
  std::vector<int64_t> bounds;
  for (int64_t size = 1; size < max; size *= 2) {
    bounds.push_back(size);
    if (size > 1 && size * 3 / 2 < max) bounds.push_back(size * 3 / 2);
  }
  bounds.push_back(max);
  return bounds;
}

// Items per second that one instance computes at most, with full batches.
double Capacity(const MeasuredModel& model, const std::vector<double>& mix, int64_t bound) {
  double best = 0;
  for (int64_t size = 1; size <= bound; ++size)
    best = std::max(best, static_cast<double>(size) * 1e9 / MeanPass(model, mix, size).count());
  return best;
}

// Items per second that no scheduler exceeds on one instance, because each bucket has its best batch size.
double MostItems(const MeasuredModel& model, const std::vector<double>& mix, int64_t bound) {
  Nanos mean;
  for (size_t bucket = 0; bucket < mix.size(); ++bucket) {
    Nanos best = kNever;
    for (int64_t size = 1; size <= bound; ++size) {
      const Nanos pass = model.passes[bucket][static_cast<size_t>(size - 1)];
      best = std::min(best, pass * (1 / static_cast<double>(size)));
    }
    mean += mix[bucket] * best;
  }
  return 1e9 / mean.count();
}

bool HasCores(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
              const Estimate& estimate) {
  return CoresUsed(model, traffic, configuration, estimate) <= kMaxCoreUse * model.cores;
}

class Search {
 public:
  Search(const MeasuredModel& model, const Traffic& traffic, const LatencyGoal& goal, const Limits& limits,
         const EstimateOptions& options)
      : model_(model), traffic_(traffic), goal_(goal), limits_(limits), options_(options) {}

  // The best batch bound for these numbers of replicas and instances; nullopt if none holds.
  std::optional<Found> Try(int replicas, int instances) const {
    std::optional<Found> best;
    for (const int64_t bound : BatchBounds(model_.max_batch_size())) {
      Found tried;
      tried.configuration.replicas = replicas;
      tried.configuration.instances = instances;
      tried.configuration.max_batch_size = bound;
      if (Capacity(model_, traffic_.mix, bound) * replicas * instances < 0.99 * traffic_.rate) continue;
      tried.configuration.max_queue_size = QueueBound(model_, tried.configuration, goal_, limits_);
      tried.estimate = EstimateOf(model_, traffic_, tried.configuration, goal_, options_);
      if (!tried.estimate.Meets(goal_) || !HasCores(model_, traffic_, tried.configuration, tried.estimate))
        continue;
      // A larger bound has to gain something, because it needs more memory.
      if (!best || tried.estimate.p99 < 0.98 * best->estimate.p99) best = tried;
    }
    return best;
  }

  // Fewest replicas, then fewest instances.
  std::optional<Found> Smallest() const {
    const int most = model_.max_instances();
    int low = 0;
    int high = 1;
    std::optional<Found> found;
    for (;; high = std::min(2 * high, limits_.max_replicas)) {
      found = Try(high, most);
      if (found || high == limits_.max_replicas) break;
      low = high;
    }
    if (!found) return std::nullopt;
    // `low` replicas do not hold, `high` do.
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      const std::optional<Found> tried = Try(middle, most);
      (tried ? high : low) = middle;
      if (tried) found = tried;
    }
    int fewest = 0;
    for (int enough = most; enough - fewest > 1;) {
      const int middle = fewest + (enough - fewest) / 2;
      const std::optional<Found> tried = Try(high, middle);
      (tried ? enough : fewest) = middle;
      if (tried) found = tried;
    }
    return found;
  }

 private:
  const MeasuredModel& model_;
  const Traffic& traffic_;
  const LatencyGoal& goal_;
  const Limits& limits_;
  const EstimateOptions& options_;
};

std::string Milliseconds(Nanos span) { return absl::StrFormat("%.3g ms", ToMilliseconds(span)); }

// The time within which 99 of 100 requests are answered if none ever waits.
Nanos Unloaded(const MeasuredModel& model, const std::vector<double>& mix) {
  // The slowest buckets with more than one request in 100 decide.
  std::vector<std::pair<Nanos, double>> passes;
  for (size_t bucket = 0; bucket < mix.size(); ++bucket)
    passes.emplace_back(model.passes[bucket][0], mix[bucket]);
  std::sort(passes.begin(), passes.end());
  double slower = 0;
  while (passes.size() > 1 && slower + passes.back().second <= 0.01) {
    slower += passes.back().second;
    passes.pop_back();
  }
  return passes.back().first + model.outside;
}

absl::Status WhyNone(const std::vector<MeasuredModel>& models, const Traffic& traffic,
                     const LatencyGoal& goal, const Limits& limits) {
  const MeasuredModel* fastest = &models.front();
  for (const MeasuredModel& model : models) {
    if (Unloaded(model, traffic.mix) < Unloaded(*fastest, traffic.mix)) fastest = &model;
  }
  const Nanos alone = Unloaded(*fastest, traffic.mix);
  if (alone > goal.p99) {
    return absl::FailedPreconditionError(absl::StrCat(
        "one request alone takes ", Milliseconds(alone), ", of which ", Milliseconds(fastest->outside),
        " are outside of the pass, so no configuration answers within ", Milliseconds(goal.p99),
        "; expected --p99 of more than ", Milliseconds(alone),
        ", or measure the model with a faster precision or more threads (--save, then --latencies)"));
  }
  const double each = Capacity(*fastest, traffic.mix, fastest->max_batch_size()) * fastest->max_instances();
  const Nanos slow = alone * (1 + 3 * fastest->deviation);
  const double wanted = traffic.rate / each;
  if (wanted <= limits.max_replicas && slow > goal.p99) {
    return absl::FailedPreconditionError(absl::StrCat(
        "one request alone takes ", Milliseconds(alone), " in the mean and up to ", Milliseconds(slow),
        ", which leaves too little time of the ", Milliseconds(goal.p99),
        " for waiting, however many replicas there are; expected a larger --p99, or measure the model again ",
        "while the machine does nothing else"));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "%d replicas do not hold %.6g requests per second within %s: all %d cores of one compute at most %.4g "
      "per "
      "second; expected at least %.0f replicas (--max-replicas), a larger --p99 or a smaller --rate",
      limits.max_replicas, traffic.rate, Milliseconds(goal.p99), fastest->cores, each,
      std::max(std::ceil(wanted), limits.max_replicas + 1.0)));
}

std::string NameOf(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
                   const Limits& limits, const Estimate& broken) {
  if (!HasCores(model, traffic, configuration, broken) || broken.busy >= kSaturated) return "cores";
  if (broken.queue_full > broken.too_late && broken.queue_full > 0.005)
    return configuration.max_queue_size >= limits.max_held_items ? "memory" : "queue";
  if (broken.too_late > 0.005) return "deadline";
  return "bursts";
}

}  // namespace

double CoresUsed(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
                 const Estimate& estimate) {
  const double passes = estimate.busy * configuration.instances * model.threads;
  return passes + traffic.rate / configuration.replicas * model.decode.count() * 1e-9;
}

int64_t QueueBound(const MeasuredModel& model, const Configuration& configuration, const LatencyGoal& goal,
                   const Limits& limits) {
  const size_t size = static_cast<size_t>(configuration.max_batch_size) - 1;
  Nanos slowest;
  for (const auto& passes : model.passes) slowest = std::max(slowest, passes[size]);
  const double each = static_cast<double>(configuration.max_batch_size) / slowest.count();
  const Nanos left = std::max(Nanos(), goal.p99 - model.outside);
  const auto within = static_cast<int64_t>(std::ceil(each * configuration.instances * left.count()));
  return std::min(limits.max_held_items, std::max(within, configuration.max_batch_size));
}

absl::StatusOr<Found> FindSmallest(const std::vector<MeasuredModel>& models, const Traffic& traffic,
                                   const LatencyGoal& goal, const Limits& limits,
                                   const EstimateOptions& options) {
  std::optional<Found> best;
  const auto rank = [&](const Found& found) {
    const Configuration& chosen = found.configuration;
    const int cores = chosen.replicas * chosen.instances * models[found.model].threads;
    return std::make_tuple(chosen.replicas, cores, found.estimate.p99);
  };
  for (size_t index = 0; index < models.size(); ++index) {
    if (Unloaded(models[index], traffic.mix) > goal.p99) continue;
    std::optional<Found> found = Search(models[index], traffic, goal, limits, options).Smallest();
    if (!found) continue;
    found->model = index;
    if (!best || rank(*found) < rank(*best)) best = found;
  }
  if (!best) return WhyNone(models, traffic, goal, limits);
  return *best;
}

Breaking FindBreaking(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
                      const LatencyGoal& goal, const Limits& limits, const EstimateOptions& options) {
  Traffic tried = traffic;
  Breaking breaking;
  const double most = MostItems(model, traffic.mix, configuration.max_batch_size) * configuration.instances *
                      configuration.replicas;
  const auto at = [&](double rate) {
    tried.rate = rate;
    const Estimate estimate = EstimateOf(model, tried, configuration, goal, options);
    const bool holds =
        rate <= kRateStep * most && estimate.Meets(goal) && HasCores(model, tried, configuration, estimate);
    (holds ? breaking.holds : breaking.breaks) = rate;
    (holds ? breaking.before : breaking.after) = estimate;
    return holds;
  };
  double factor = 1;
  while (at(traffic.rate * factor)) factor *= 1.25;
  while (breaking.breaks > kRateStep * breaking.holds && breaking.holds > 0)
    at(std::sqrt(breaking.holds * breaking.breaks));
  tried.rate = breaking.breaks;
  breaking.what = NameOf(model, tried, configuration, limits, breaking.after);
  return breaking;
}

}  // namespace saccade::server::simulation
