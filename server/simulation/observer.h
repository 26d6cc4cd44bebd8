// Callbacks for the steps of a simulation.
#pragma once

#include "absl/status/status.h"
#include "server/simulation/ledger.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_task.h"

namespace saccade::server::simulation {

class Observer {
 public:
  virtual ~Observer() = default;

  // OnArrival is called before the request is offered to the policy, OnTaken or OnRefused afterwards.
  virtual void OnArrival(const SimTask& /*task*/, Instant /*now*/) {}
  virtual void OnTaken(const SimTask& /*task*/, Instant /*now*/) {}
  virtual void OnRefused(const SimTask& /*task*/, const absl::Status& /*why*/, Instant /*now*/) {}

  virtual void OnStart(const Policy::Batch& /*batch*/, Instant /*now*/) {}
  virtual void OnFinish(int /*model*/, int /*instance*/, Instant /*now*/) {}

  // Called once for every request.
  virtual void OnEnd(const SimTask& /*task*/, Outcome /*outcome*/, Instant /*now*/) {}

  // The policy has no further batch at `now`, and asked to be called again at `wake`.
  virtual void OnSettled(Instant /*now*/, Instant /*wake*/) {}
};

}  // namespace saccade::server::simulation
