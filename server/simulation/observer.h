// Whoever looks over a simulation's shoulder.
#pragma once

#include "absl/status/status.h"
#include "server/simulation/ledger.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_task.h"

namespace saccade::server::simulation {

class Observer {
 public:
  virtual ~Observer() = default;

  // Before and after it is offered to the policy.
  virtual void OnArrival(const SimTask& /*task*/, Instant /*now*/) {}
  virtual void OnTaken(const SimTask& /*task*/, Instant /*now*/) {}
  virtual void OnRefused(const SimTask& /*task*/, const absl::Status& /*why*/, Instant /*now*/) {}

  virtual void OnStart(const Policy::Batch& /*batch*/, Instant /*now*/) {}
  virtual void OnFinish(int /*model*/, int /*instance*/, Instant /*now*/) {}

  // Every request, once.
  virtual void OnEnd(const SimTask& /*task*/, Outcome /*outcome*/, Instant /*now*/) {}

  // The policy has no more batches for now, and wants to be asked again at `wake`.
  virtual void OnSettled(Instant /*now*/, Instant /*wake*/) {}
};

}  // namespace saccade::server::simulation
