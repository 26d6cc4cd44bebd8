#include "server/catalog/instance_trial.h"

#include <pthread.h>

#include <algorithm>
#include <barrier>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "models/device/use_threads.h"

namespace saccade::server {
namespace {

// As in a configuration.
constexpr int kMaxTriedInstances = 64;
// How long passes are computed for one measurement, and how many at least and at most.
constexpr absl::Duration kTrialTime = absl::Milliseconds(500);
constexpr int kMinTrialPasses = 1;
constexpr int kMaxTrialPasses = 200;
// The pause between two single passes, as between two requests, so that the other threads go to sleep.
constexpr absl::Duration kTrialPause = absl::Milliseconds(3);

using TrialPass = std::function<absl::Status()>;

// The median time of passes after the first, which allocates and chooses algorithms; nullopt if one fails.
std::optional<double> SecondsOf(const TrialPass& pass, Clock* clock) {
  if (!pass().ok()) return std::nullopt;
  const absl::Time start = clock->Now();
  std::vector<double> took;
  while (took.size() < kMaxTrialPasses &&
         (took.size() < kMinTrialPasses || clock->Now() - start < kTrialTime)) {
    const absl::Time begin = clock->Now();
    if (!pass().ok()) return std::nullopt;
    took.push_back(absl::ToDoubleSeconds(clock->Now() - begin));
    absl::SleepFor(kTrialPause);
  }
  std::nth_element(took.begin(), took.begin() + static_cast<int64_t>(took.size() / 2), took.end());
  return took[took.size() / 2];
}

// Passes in a second that one of several threads computes, all of which begin at the same time; nullopt if
// one fails.
std::optional<double> RateOf(const TrialPass& pass, std::barrier<>& begin, Clock* clock) {
  const bool first = pass().ok();
  begin.arrive_and_wait();
  if (!first) return std::nullopt;
  const absl::Time start = clock->Now();
  int passes = 0;
  while (passes < kMaxTrialPasses && (passes < kMinTrialPasses || clock->Now() - start < kTrialTime)) {
    if (!pass().ok()) return std::nullopt;
    ++passes;
  }
  const double seconds = absl::ToDoubleSeconds(clock->Now() - start);
  return seconds > 0 ? std::optional(passes / seconds) : std::nullopt;
}

// The seconds of an item while so many instances compute full batches.
std::optional<double> SecondsPerItem(const PassMaker& make, const InstanceTrial& trial, InstanceSplit split) {
  int64_t size = trial.max_batch_size;
  std::vector<TrialPass> passes;
  while (passes.size() < static_cast<size_t>(split.instances)) {
    TrialPass pass = make(size);
    if (pass == nullptr && size == 1) return std::nullopt;
    if (pass == nullptr) {
      size = std::max<int64_t>(1, size / 2);
    } else {
      passes.push_back(std::move(pass));
    }
  }
  std::barrier begin(split.instances);
  std::vector<std::optional<double>> rates(passes.size());
  std::vector<std::thread> threads;
  threads.reserve(passes.size());
  try {
    for (size_t i = 0; i < passes.size(); ++i) {
      threads.emplace_back([&, i] {
        pthread_setname_np(pthread_self(), "trial");
        models::UseThreads(split.threads);
        rates[i] = RateOf(passes[i], begin, trial.clock);
      });
    }
  } catch (const std::system_error&) {
    // The system has no thread left. Those that were started wait for the others.
    for (size_t i = threads.size(); i < passes.size(); ++i) begin.arrive_and_drop();
    for (std::thread& thread : threads) thread.join();
    return std::nullopt;
  }
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const auto& rate : rates) {
    if (!rate) return std::nullopt;
    sum += *rate * static_cast<double>(size);
  }
  return 1 / sum;
}

std::optional<double> TrialSlowness(const PassMaker& make, const InstanceTrial& trial, InstanceSplit split) {
  if (trial.goal == Optimize::kThroughput) return SecondsPerItem(make, trial, split);
  const TrialPass pass = make(1);
  return pass == nullptr ? std::nullopt : SecondsOf(pass, trial.clock);
}

int InstancesFor(const InstanceTrial& trial, int threads) {
  if (trial.instances > 0) return trial.instances;
  return trial.goal == Optimize::kLatency ? 1 : std::clamp(trial.cores / threads, 1, kMaxTriedInstances);
}

}  // namespace

absl::StatusOr<InstanceSplit> LoadForGoal(const LoadForSplit& load, const InstanceTrial& trial) {
  const auto split_of = [&](int threads) { return InstanceSplit{InstancesFor(trial, threads), threads}; };
  const int max = std::max(1, trial.cores / std::max(1, trial.instances));
  const auto threads = LoadForLeastCost(
      [&](int tried) { return load(split_of(tried).instances); },
      [&](const PassMaker& make, int tried) { return TrialSlowness(make, trial, split_of(tried)); }, max);
  if (!threads.ok()) return threads.status();
  return split_of(*threads);
}

}  // namespace saccade::server
