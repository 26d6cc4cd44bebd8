#include "server/batching/bench/decisions.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

namespace saccade::server::bench {
namespace {

// Requests that each busy model has in its queue or its passes.
constexpr int kOpenRequests = 16;
// Items in a batch.
constexpr int64_t kBatch = 4;

// Runs passes on virtual time: a device starts the next pass when its last one is over.
class Loop {
 public:
  explicit Loop(const World& world) : world_(world) {
    BatcherOptions options;
    options.max_batch_size = kBatch;
    for (int model = 0; model < world.models; ++model) {
      scheduler_.AddModel(options, world.AllDevices());
      for (int64_t size = 1; size <= kBatch; ++size) scheduler_.Learn(model, 0, size, PassTime(size));
    }
    for (int model = 0; model < world.busy; ++model) {
      for (int i = 0; i < kOpenRequests; ++i) Push(model);
    }
  }

  // Ends the oldest pass and replaces its requests. Returns how many were pushed.
  int64_t Step() {
    const Running ended = running_.front();
    running_.pop_front();
    now_ = std::max(now_, ended.ends);
    scheduler_.Finished(ended.model, ended.instance, now_, /*learn=*/true);
    HandOut();
    for (int64_t i = 0; i < ended.size; ++i) Push(ended.model);
    return ended.size;
  }

 private:
  struct Running {
    int model = 0;
    int instance = 0;
    int64_t size = 0;
    absl::Time ends;
  };

  void Push(int model) {
    now_ += absl::Nanoseconds(200);
    BatchTask::Traits traits;
    traits.arrival = now_;
    traits.deadline = now_ + absl::Minutes(10);
    std::unique_ptr<BatchTask> task = std::make_unique<Request>(std::move(traits), &rejected_);
    Require(scheduler_.Push(model, task, now_, &dropped_).ok(), "a request was rejected");
    HandOut();
  }

  void HandOut() {
    while (auto batch = scheduler_.Next(now_, &dropped_)) {
      const auto size = static_cast<int64_t>(batch->tasks.size());
      running_.push_back({batch->model, batch->instance, size, now_ + PassTime(size)});
    }
    Require(dropped_.empty(), "a request was dropped");
  }

  const World world_;
  Scheduler scheduler_{SchedulerOptions{}};
  absl::Time now_ = absl::FromUnixSeconds(1);
  std::deque<Running> running_;
  std::vector<Scheduler::Dropped> dropped_;
  std::atomic<int64_t> rejected_ = 0;
};

}  // namespace

absl::Duration TimeOfDecision(const World& world, double seconds) {
  Loop loop(world);
  // The queues fill, and the latencies settle.
  const absl::Duration warm = CpuTime() + absl::Seconds(seconds / 4);
  while (CpuTime() < warm) loop.Step();
  int64_t pushed = 0;
  const absl::Duration began = CpuTime();
  absl::Duration took;
  do {
    for (int i = 0; i < 64; ++i) pushed += loop.Step();
    took = CpuTime() - began;
  } while (took < absl::Seconds(seconds));
  return took / pushed;
}

}  // namespace saccade::server::bench
