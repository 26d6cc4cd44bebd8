// Callbacks for the steps of a simulation.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/simulation/ledger.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_task.h"

namespace saccade::server::simulation {

class Observer {
 public:
  virtual ~Observer() = default;

  // OnArrival is called before the request is offered to the policy, OnTaken or OnRefused afterwards.
  virtual void OnArrival(const SimTask& /*task*/, Nanos /*now*/) {}
  virtual void OnTaken(const SimTask& /*task*/, Nanos /*now*/) {}
  virtual void OnRefused(const SimTask& /*task*/, const absl::Status& /*why*/, Nanos /*now*/) {}

  // The policy predicted `said` before the request is prepared; it is refused with an error, and pushed after
  // OK.
  virtual void OnConsidered(const SimTask& /*task*/, absl::Span<const int64_t> /*buckets*/,
                            const absl::Status& /*said*/, Nanos /*now*/) {}
  // After each call of Policy::Sweep().
  virtual void OnSwept(Nanos /*now*/) {}

  virtual void OnStart(const Policy::Batch& /*batch*/, Nanos /*now*/) {}
  virtual void OnFinish(int /*model*/, int /*instance*/, Nanos /*now*/) {}

  // A pass on the instance has failed. Called after OnFinish, and before OnRetry of those of its requests
  // that will be computed once more.
  virtual void OnFailed(int /*model*/, int /*instance*/, Nanos /*now*/) {}
  virtual void OnRetry(const SimTask& /*task*/, int /*failed_on*/, Nanos /*now*/) {}

  // Called once for every request.
  virtual void OnEnd(const SimTask& /*task*/, Outcome /*outcome*/, Nanos /*now*/) {}

  // The policy has no further batch at `now`, and asked to be called again at `wake`.
  virtual void OnSettled(Nanos /*now*/, Nanos /*wake*/) {}
};

}  // namespace saccade::server::simulation
