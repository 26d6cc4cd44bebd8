#include "server/batching/bench/traffic.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "server/batching/device_model.h"
#include "server/core/clock.h"

namespace saccade::server::bench {
namespace {

constexpr int64_t kBatch = 32;

// A model with a thread for each of its instances.
class Served {
 public:
  Served(const World& world, DeviceGroup* group, double speed) : speed_(speed) {
    BatcherOptions options;
    options.max_batch_size = kBatch;
    options.max_queue_size = 4096;
    auto model = DeviceModel<Request>::Create(options, world.AllDevices(), group);
    Require(model.ok(), "a model was refused");
    model_ = std::move(*model);
    for (const int64_t size : {int64_t{1}, kBatch}) model_->Learn(0, size, PassTime(size) / speed);
    for (int instance = 0; instance < world.devices; ++instance) {
      threads_.emplace_back([this, instance] { Compute(instance); });
    }
  }
  ~Served() {
    model_->Close();
    for (std::thread& thread : threads_) thread.join();
  }

  DeviceModel<Request>& model() { return *model_; }

 private:
  void Compute(int instance) {
    for (;;) {
      const auto batch = model_->Take(instance);
      if (batch.empty()) return;
      absl::SleepFor(PassTime(static_cast<int64_t>(batch.size())) / speed_);
      model_->Finished(instance, /*learn=*/true);
    }
  }

  const double speed_;
  std::unique_ptr<DeviceModel<Request>> model_;
  std::vector<std::thread> threads_;
};

}  // namespace

Traffic Send(const World& world, double rate, double speed, double seconds) {
  std::atomic<int64_t> rejected = 0;
  DeviceGroup group(SchedulerOptions{}, Clock::Real());
  std::vector<std::unique_ptr<Served>> models;
  for (int model = 0; model < world.models; ++model) {
    models.push_back(std::make_unique<Served>(world, &group, speed));
  }
  std::vector<absl::Duration> submits;
  submits.reserve(static_cast<size_t>(rate * seconds * 1.1));
  const absl::Duration cpu = CpuTime();
  const absl::Time began = absl::Now();
  const absl::Time end = began + absl::Seconds(seconds);
  int64_t sent = 0;
  // Sends what is due and sleeps for a moment, as a network thread gets its requests in bursts.
  absl::Time now = began;
  for (; now < end; now = absl::Now()) {
    const auto due = static_cast<int64_t>(absl::ToDoubleSeconds(now - began) * rate);
    for (; sent < due; ++sent) {
      BatchTask::Traits traits;
      traits.arrival = absl::Now();
      const absl::Time submitted = traits.arrival;
      auto request = std::make_unique<Request>(std::move(traits), &rejected);
      DeviceModel<Request>& model = models[static_cast<size_t>(sent % world.busy)]->model();
      if (!model.Submit(request).ok()) ++rejected;
      submits.push_back(absl::Now() - submitted);
    }
    absl::SleepFor(absl::Microseconds(100));
  }
  const absl::Duration used = CpuTime() - cpu;
  std::sort(submits.begin(), submits.end());
  Traffic traffic;
  traffic.rejected = rejected;
  traffic.requests_per_second = static_cast<double>(sent) / absl::ToDoubleSeconds(now - began);
  if (submits.empty()) return traffic;
  traffic.cpu = used / sent;
  traffic.submit_median = submits[submits.size() / 2];
  traffic.submit_p99 = submits[submits.size() * 99 / 100];
  return traffic;
}

}  // namespace saccade::server::bench
