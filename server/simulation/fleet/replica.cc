#include "server/simulation/fleet/replica.h"

#include <algorithm>
#include <utility>

namespace saccade::server::simulation {
namespace {

// The size of an encoded picture.
constexpr int64_t kRequestBytes = 100'000;

std::vector<ModelOptions> OneModel(const FleetOptions& options) { return {{.latency = options.latency}}; }

}  // namespace

// The warm-up of a slow build would show its times; SchedulerPolicy teaches those of the model, and the
// scheduler learns the rest from the first passes.
Replica::Replica(const FleetOptions& options, const Build& build, int zone, uint64_t seed, Clock* clock)
    : build_(build),
      zone_(zone),
      random_(seed),
      devices_(OneModel(options), options.jitter, ~seed),
      admission_(*Admission::Create(options.admission, clock)),
      policy_(std::make_unique<SchedulerPolicy>(SchedulerOptions{.cores = 1}, std::vector{options.batcher},
                                                OneModel(options))),
      running_(devices_.models().front().instances) {}

absl::Status Replica::Take(std::unique_ptr<SimTask>& task, Nanos now) {
  auto ticket = admission_->Admit({.bytes = kRequestBytes});
  if (!ticket.ok()) return ticket.status();
  task->ticket = *std::move(ticket);
  std::unique_ptr<BatchTask> pushed = std::move(task);
  absl::Status taken = policy_->Push(0, pushed, ToTime(now));
  if (!taken.ok()) {
    task.reset(static_cast<SimTask*>(pushed.release()));
    return taken;
  }
  load_ = static_cast<double>(admission_->inflight().requests);
  return taken;
}

std::optional<Replica::Pass> Replica::StartPass(Nanos now) {
  if (policy_ == nullptr) return std::nullopt;
  std::optional<Policy::Batch> batch = policy_->Next(ToTime(now));
  if (!batch) return std::nullopt;
  const SimDevices::Pass pass = devices_.Compute(0, batch->instance, batch->tasks, now);
  Running& running = running_[batch->instance];
  running.failed = build_.failing > 0 && random_.Chance(build_.failing);
  running.began = now;
  running.tasks = std::move(batch->tasks);
  return Pass{.instance = batch->instance, .ends = now + (pass.took * (build_.slow * slowdown_)).Whole()};
}

std::vector<std::unique_ptr<BatchTask>> Replica::EndPass(int instance, Nanos now, bool* failed) {
  Running& running = running_[instance];
  if (running.tasks.empty()) return {};
  *failed = running.failed;
  busy_ += now - std::max(running.began, measured_at_);
  auto tasks = std::move(running.tasks);
  running.tasks.clear();
  if (*failed) {
    // Takes the tasks that another instance tries.
    policy_->Failed(0, instance, ToTime(now), &tasks);
  } else {
    policy_->Finished(0, instance, ToTime(now), /*learn=*/true);
  }
  load_ = static_cast<double>(admission_->inflight().requests) - static_cast<double>(tasks.size());
  return tasks;
}

void Replica::StartDraining() {
  admission_->StartDraining();
  if (policy_ != nullptr) policy_->Close(0);
}

void Replica::Destroy() {
  for (Running& running : running_) running.tasks.clear();
  policy_.reset();
}

double Replica::TakeUtilization(Nanos now) {
  Nanos busy = std::exchange(busy_, Nanos());
  for (const Running& running : running_) {
    if (!running.tasks.empty()) busy += now - std::max(running.began, measured_at_);
  }
  const Nanos span = now - std::exchange(measured_at_, now);
  return span > Nanos() ? busy / span / static_cast<double>(running_.size()) : 0;
}

double Replica::TakeDemand(Nanos now) {
  const Nanos span = now - std::exchange(demanded_at_, now);
  const Nanos demand = Demanded() - demand_taken_;
  demand_taken_ = demanded_;
  return span > Nanos() ? demand / span : 0;
}

Nanos Replica::Demanded() {
  if (policy_ != nullptr) demanded_ += Nanos(policy_->TakeDemand());
  return demanded_;
}

void Replica::CountEnded(bool fault) {
  ++counters_.requests;
  if (fault) ++counters_.failures;
}

void Replica::SampleLoad(Nanos now) {
  counters_.demand_of_cores = static_cast<int64_t>(Demanded().count());
  load_meter_.Sample(ToTime(now), counters_);
}

double Replica::weight() const {
  const LoadReport& report = load_meter_.report();
  const double rate = report.requests_per_second;
  if (rate <= 0 || report.utilization <= 0) return 0;
  // gRPC's error_utilization_penalty is 1 by default.
  return rate / (report.utilization + report.failures_per_second / rate);
}

}  // namespace saccade::server::simulation
