// The daemon's scheduler with a client that waits for each answer.
#include "server/simulation/scheduler_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "server/simulation/simulation.h"

namespace saccade::server::simulation {
namespace {

// Measures how long requests are queued while an instance is idle.
class WaitWatcher final : public Observer {
 public:
  void OnTaken(const SimTask& /*task*/, Nanos now) override { taken_ = now; }
  void OnStart(const Policy::Batch& /*batch*/, Nanos now) override {
    ++passes_;
    longest_ = std::max(longest_, now - taken_);
  }

  int64_t passes() const { return passes_; }
  Nanos longest() const { return longest_; }

 private:
  Nanos taken_;
  int64_t passes_ = 0;
  Nanos longest_;
};

// Longest wait of a client that sends its next request `pause` after each answer.
WaitWatcher LoneClient(const LinearLatency& latency, double jitter, Nanos pause, Nanos deadline) {
  const std::vector<ModelOptions> models = {ModelOptions{.latency = latency}};
  SimDevices device(models, jitter, 1);
  WaitWatcher watcher;
  Simulation simulation(
      {.streams = {{.rate = 1e9 / pause.count(), .cv = 0, .one_at_a_time = true, .deadline = deadline}},
       .until = 30 * kSecond,
       .seed = 1,
       .ledger = {}},
      &device,
      std::make_unique<SchedulerPolicy>(SchedulerOptions{.cores = 1},
                                        std::vector<BatcherOptions>{{.max_batch_size = 16}}, models),
      nullptr, &watcher);
  simulation.Run();
  EXPECT_EQ(simulation.mistakes().total(), 0);
  EXPECT_EQ(simulation.ledger().all()[Outcome::kLate] + simulation.ledger().all()[Outcome::kInTime],
            simulation.ledger().all().total());
  return watcher;
}

TEST(SchedulerPolicyTest, ALoneClientNeverWaits) {
  for (const double share_of_alpha : {0.0, 0.2, 0.9}) {
    for (const double jitter : {0.0, 0.1, 0.3}) {
      for (const Nanos pause : {50 * kMicrosecond, 2 * kMillisecond}) {
        for (const Nanos deadline : {50 * kMillisecond, 30 * kSecond}) {
          const LinearLatency latency = {.alpha = 10 * kMillisecond * share_of_alpha,
                                         .beta = 10 * kMillisecond * (1 - share_of_alpha)};
          const WaitWatcher watcher = LoneClient(latency, jitter, pause, deadline);
          EXPECT_GT(watcher.passes(), 1000);
          EXPECT_EQ(ToMilliseconds(watcher.longest()), 0)
              << "alpha's share " << share_of_alpha << ", jitter " << jitter << ", pause "
              << ToMilliseconds(pause) << " ms, deadline " << ToMilliseconds(deadline) << " ms";
        }
      }
    }
  }
}

}  // namespace
}  // namespace saccade::server::simulation
