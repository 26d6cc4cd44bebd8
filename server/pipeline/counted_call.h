// A call that takes part in no forward pass of its own: the steps of an ensemble answer it, or the cache.
// Admitted, turned away and counted as the others are.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/core/tensor_call.h"
#include "server/pipeline/pipeline.h"

namespace saccade::server {

// Not thread-safe. Holds its room until it is destroyed.
class CountedCall {
 public:
  // All of it, and what the call points to, must outlive this.
  CountedCall(const Pipeline::Rooms& rooms, ModelMetrics* metrics, const TensorCall& call);

  // DEADLINE_EXCEEDED or CANCELLED if it is, or what Admission::Admit says; counted as shed, and the reason
  // stated. `model` and its bounds as there.
  absl::Status Enter(const TensorCall& call, absl::string_view model, const Inflight& model_bounds);

  // Counts it, just before it is answered; called once. `computed` as RequestRecord has it. `items` and
  // `timings` are those of a success.
  void End(absl::StatusCode code, bool computed, int64_t items = 0, const Timings& timings = {});

 private:
  absl::Status Admit(const TensorCall& call, absl::string_view model, const Inflight& model_bounds);

  const Pipeline::Rooms rooms_;
  ModelMetrics* const metrics_;
  const std::string_view protocol_;
  const absl::Time arrival_;
  const std::shared_ptr<CallRecord> record_;
  Admission::Ticket ticket_;
};

}  // namespace saccade::server
