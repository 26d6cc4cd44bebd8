// A simulated daemon: the real admission and scheduler, on devices that may be slow or fail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/admission/admission.h"
#include "server/metrics/load_meter.h"
#include "server/simulation/fleet/options.h"
#include "server/simulation/scheduler_policy.h"
#include "server/simulation/sim_devices.h"
#include "server/simulation/sim_task.h"
#include "server/simulation/virtual_clock.h"

namespace saccade::server::simulation {

enum class ReplicaState {
  // Not in the list of replicas.
  kStarting,
  kReady,
  // Told to end; leaves the lists.
  kDraining,
  // Refuses connections.
  kGone,
  // Its node vanished: it neither answers nor refuses.
  kSilent,
};

class Replica {
 public:
  struct Pass {
    int instance = 0;
    Nanos ends = {};
  };

  // `clock` must outlive the replica.
  Replica(const FleetOptions& options, const Build& build, int zone, uint64_t seed, Clock* clock);

  // Offers a request to admission and to the scheduler. Takes `task` only if OK.
  absl::Status Take(std::unique_ptr<SimTask>& task, Nanos now);

  // Starts the next pass; nullopt if none is due.
  std::optional<Pass> StartPass(Nanos now);
  // Ends the pass of the instance and returns its tasks; empty if there is none, or if another instance tries
  // them. `failed` tells whether the pass failed.
  std::vector<std::unique_ptr<BatchTask>> EndPass(int instance, Nanos now, bool* failed);

  // Rejects all later requests, as a daemon does after the lame duck. Queued ones are computed.
  void StartDraining();
  // Destroys the requests that it holds: their watcher learns that they are lost.
  void Destroy();

  // Factor of the times of later passes, beside its build's.
  void set_slowdown(double factor) { slowdown_ = factor; }

  // Share of the time since the last call in which its instances computed.
  double TakeUtilization(Nanos now);
  // The share of its device that requests asked for since the last call, rejected ones included: the rate of
  // saccade_demand_seconds_total.
  double TakeDemand(Nanos now);

  // Counts an attempt that has ended, for the load report. A fault is one of the server.
  void CountEnded(bool fault);
  // Updates the load report with the daemon's own averages. Call it regularly, as the daemon does.
  void SampleLoad(Nanos now);
  // The weight that gRPC's weighted_round_robin computes from the load report; 0 if it is empty.
  double weight() const;

  Nanos wake_at() const { return policy_ == nullptr ? kNever : ToNanos(policy_->wake_at()); }
  // Requests that it holds.
  double load() const { return load_; }
  const Build& build() const { return build_; }
  int zone() const { return zone_; }

  ReplicaState state = ReplicaState::kStarting;
  // When the event loop is to ask again, to keep one such event.
  Nanos asked_at = kNever;

 private:
  struct Running {
    bool failed = false;
    Nanos began = {};
    std::vector<std::unique_ptr<BatchTask>> tasks;
  };

  // The demand since the replica's start.
  Nanos Demanded();

  const Build build_;
  const int zone_;
  double slowdown_ = 1;
  double load_ = 0;
  LoadCounters counters_;
  LoadMeter load_meter_;
  Nanos busy_ = {};
  Nanos measured_at_ = {};
  Nanos demanded_ = {};
  // The part of demanded_ that TakeDemand() has returned.
  Nanos demand_taken_ = {};
  Nanos demanded_at_ = {};
  Random random_;
  SimDevices devices_;
  // Before all tasks, which hold its tickets.
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<SchedulerPolicy> policy_;
  // By instance.
  std::vector<Running> running_;
};

}  // namespace saccade::server::simulation
